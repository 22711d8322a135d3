"""The library of Fourier transforms as machine code, compiled once for a machine.

Elsewhere: its functions (`passes/legalize/fft/library.py`), and where the code is kept
(`invocation/kept_code.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from axir.dialect.core.single_flight import single_flight

from .cache import code_fingerprint
from .invocation.kept_code import kept_code

# The names of its kernels begin with this: as in `passes/legalize/fft/library.py`, which few
# programs need.
_PREFIX = "axir_transform_"
_made: dict[str, bytes] = {}


class _NotCompiledError(Exception):
    pass


def transform_code(
    kernels: Iterable[str], machine: str, compile_it: Callable[[bytes], bytes | None]
) -> tuple[bytes, ...] | None:
    """Returns the object files of the library's kernels among the kernels of a program.

    Args:
        kernels: Names of kernels.
        machine: The inputs of the machine code other than its text.
        compile_it: Makes an object file of LLVM IR; None after an error.

    Returns:
        The object files; None after an error.
    """
    try:
        wanted = (name for name in kernels if name.startswith(_PREFIX))
        return tuple(_code_of(name, machine, compile_it) for name in wanted)
    except _NotCompiledError:
        return None


def _code_of(name: str, machine: str, compile_it: Callable[[bytes], bytes | None]) -> bytes:
    def make() -> bytes:
        from axir.passes.legalize.fft.library import transform_library  # late: once for a machine

        made = compile_it(transform_library(name).encode())
        if made is None:
            raise _NotCompiledError
        return made

    def found() -> bytes:
        if name not in _made:
            source = f"{name} {code_fingerprint()} {machine}".encode()
            _made[name] = kept_code(name, source, make)
        return _made[name]

    return single_flight(("transforms", name), found)[0]
