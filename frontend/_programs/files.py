"""Writing files whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from axir.dialect.core.annotations import UserObject
from axir.dialect.core.errors import ParameterError


def write_module_file(module: UserObject, path: str | Path, debug_info: bool = True) -> None:
    """Writes a module to a `.mlir` (text) or `.mlirbc` (bytecode) file, atomically.

    Raises:
        ParameterError: if the suffix is another one.
    """
    path = Path(path)
    if path.suffix not in (".mlir", ".mlirbc"):
        raise ParameterError(
            f"{path}: a module is saved as .mlir (text) or .mlirbc (bytecode), not "
            f"{path.suffix or 'without a suffix'!r}.",
            "Compiled programs (.vmfb) are made by `axir compile`.",
        )
    if path.suffix == ".mlir":
        text = module.operation.get_asm(enable_debug_info=debug_info)
        write_file(path, text.encode())
        return
    write_file(path, lambda name: module.operation.write_bytecode(name))


def bytecode_of(module: UserObject) -> bytes:
    """Returns a module as MLIR bytecode."""
    with tempfile.NamedTemporaryFile() as file:
        module.operation.write_bytecode(file.name)
        return Path(file.name).read_bytes()


def write_file(path: Path, content: bytes | Callable[[str], UserObject]) -> None:
    """Writes a file whole or not at all: to a temporary one beside it, which is then renamed.

    Raises:
        FileNotFoundError: if the folder does not exist.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path.parent))
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except FileNotFoundError:  # such as in /proc
        raise OSError(errno.EACCES, "No file can be made in that folder", str(path)) from None
    except OSError as error:  # users do not know the name of the temporary file
        raise OSError(error.errno, error.strerror, str(path)) from None
    try:
        os.close(handle)
        if isinstance(content, bytes):
            Path(temporary).write_bytes(content)
        else:
            content(temporary)
        # A temporary file is private; the final file gets the usual permissions.
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
