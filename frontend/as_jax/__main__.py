"""`python -m axir.as_jax` runs a script, module or string in which `import jax` gives axir.

It runs them as Python would.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence
from types import ModuleType, TracebackType

USAGE = """\
usage: python -m axir.as_jax script.py [arguments]
       python -m axir.as_jax -m module [arguments]
       python -m axir.as_jax -c code [arguments]

Runs a program in which `import jax` gives axir.
"""


def main(arguments: Sequence[str]) -> None:
    """Runs a script, a module or a string, with the rest of the arguments as `sys.argv`.

    Args:
        arguments: The arguments behind `python -m axir.as_jax`.

    Raises:
        SystemExit: 0 after help, 1 after an exception in the program, 2 for wrong usage or a
            missing file, and the program's own exit status.
    """
    if arguments and arguments[0] in ("-h", "--help"):
        print(USAGE, end="")
        raise SystemExit(0)
    kind = arguments[0] if arguments and arguments[0] in ("-m", "-c") else "script"
    rest = list(arguments) if kind == "script" else list(arguments[1:])
    if not rest or (kind == "script" and rest[0].startswith("-")):
        print(USAGE, end="", file=sys.stderr)
        raise SystemExit(2)
    try:
        {"script": run_script, "-m": run_module, "-c": run_code}[kind](rest[0], rest[1:])
    except Exception as error:
        error.__traceback__ = of_the_program(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        raise SystemExit(1) from None


def run_script(path: str, arguments: list[str]) -> None:
    """Runs a script, a folder or a zip file."""
    if not os.path.exists(path):
        print(f"python -m axir.as_jax: there is no file {path!r}.", file=sys.stderr)
        raise SystemExit(2)
    sys.argv = [path, *arguments]
    if os.path.isfile(path) and not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    runpy.run_path(path, run_name="__main__")


def run_module(name: str, arguments: list[str]) -> None:
    """Runs a module, or the module `__main__` of a package."""
    sys.argv = [name, *arguments]
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def run_code(text: str, arguments: list[str]) -> None:
    """Runs the text of a program."""
    sys.argv = ["-c", *arguments]
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = ""
    sys.modules["__main__"] = ModuleType("__main__")
    exec(compile(text, "<string>", "exec"), vars(sys.modules["__main__"]))


def of_the_program(traceback: TracebackType | None) -> TracebackType | None:
    """Returns a traceback without the frames of this file and of the modules that run programs."""
    own = (__file__, "<frozen runpy>", runpy.__file__)
    while traceback is not None and traceback.tb_frame.f_code.co_filename in own:
        traceback = traceback.tb_next
    return traceback


if __name__ == "__main__":
    main(sys.argv[1:])
