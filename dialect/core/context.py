"""The process-wide MLIR context, and the locations that tie every op to the user's source line.

One context serves the whole process: types, attributes and locations are uniqued in it and never
freed, so array data never becomes an attribute here (constants travel as constvars). Elsewhere: the
state of a thread (`state.py`), types (`types.py`) and the building of ops
(`dialect/program/tracer.py`).
"""

from __future__ import annotations

import functools
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from iree.compiler import ir

from . import dialect_modules
from .state import state

# A context with all dialects takes 10 ms to make; the first lowered module loads them.
_CONTEXT = ir.Context(load_on_create_dialects=["builtin", "func"])
# The wheel's MLIR cannot register a dialect from Python: axir's ops stay unregistered in this
# process. axir verifies them, and `iree-opt --irdl-file` is a second verifier.
_CONTEXT.allow_unregistered_dialects = True
_CONTEXT.enable_multithreading(False)
dialect_modules.offer()


def _cast_dense(attribute: ir.Attribute) -> ir.Attribute:
    for kind in (ir.DenseFPElementsAttr, ir.DenseIntElementsAttr):
        try:
            return kind(attribute)
        except ValueError:
            continue
    return ir.DenseElementsAttr(attribute)


def _register_dense_cast() -> None:
    # The bindings' cast supports integers and floats, and fails for complex numbers.
    example = ir.Attribute.parse("dense<0> : tensor<i32>", _CONTEXT)
    ir.register_type_caster(ir.Attribute(example).typeid, replace=True)(_cast_dense)


_register_dense_cast()


def internal_folders(base: Path) -> tuple[str, ...]:
    """Returns the folders of axir's own files, given the folder that contains the rooms.

    A clone of any name also contains tests and examples; their lines count as a user's. In an
    installed package, all other rooms lie below the public room.
    """
    if not (base / "frontend").is_dir():
        return (f"{base}/",)
    return tuple(f"{base / room}/" for room in ("frontend", "dialect", "passes", "runtime"))


_INTERNAL_FOLDERS = internal_folders(Path(__file__).resolve().parents[2])

_FILE_LINE = re.compile(r'loc\("(.*)":(\d+):\d+\)$')
_is_internal: dict[str, bool] = {}


class HiddenPaths(list[str]):
    """Beginnings of the paths of files that belong neither to the user nor to axir.

    Libraries add their own paths, so that errors name the line of the library's caller.
    """

    def append(self, path: str) -> None:
        """Adds a path."""
        super().append(path)
        _is_internal.clear()

    def remove(self, path: str) -> None:
        """Takes a path away."""
        super().remove(path)
        _is_internal.clear()


hidden_paths = HiddenPaths()
_locations: dict[tuple[str, int, str], ir.Location] = {}


def bare_context() -> ir.Context:
    """Returns the context for traced programs; they need only the dialects `builtin` and `func`."""
    return _CONTEXT


@functools.cache
def context() -> ir.Context:
    """Returns the MLIR context that all modules of this process share, with all dialects."""
    _CONTEXT.load_all_available_dialects()
    return _CONTEXT


def is_user_file(filename: str) -> bool:
    """Tells whether `filename` lies outside axir's own rooms."""
    internal = _is_internal.get(filename)
    if internal is None:
        internal = filename.startswith((*_INTERNAL_FOLDERS, "<frozen", *hidden_paths))
        _is_internal[filename] = internal
    return not internal


def user_frame() -> FrameType | None:
    """Returns the innermost frame that does not belong to axir, or None."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        internal = _is_internal.get(filename)
        if internal is None:
            internal = not is_user_file(filename)
        if not internal:
            return frame
        frame = frame.f_back
    return None


# Modules with functions between a user's code and the promotion of operands.
_OPERATORS = ("axir.numpy", "axir.dtypes", "axir.dialect.")


def is_written_by_user() -> bool:
    """Tells whether the innermost call of NumPy's functions and operators is the user's own.

    Options that are strict with users' code must not judge computations of axir's other modules.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_OPERATORS):
        frame = frame.f_back
    return frame is None or is_user_file(frame.f_code.co_filename)


def is_called_by_axir(module: str) -> bool:
    """Tells whether the caller of a module is code of axir; Python's library calls for others."""
    frame = sys._getframe(1)
    name = str(frame.f_globals.get("__name__"))
    while frame.f_back is not None and (
        name == module or name.partition(".")[0] in sys.stdlib_module_names
    ):
        frame = frame.f_back
        name = str(frame.f_globals.get("__name__"))
    return name.startswith("axir.")


def file_location(filename: str, line: int, scope: str = "") -> ir.Location:
    """Returns the (cached) MLIR location of a line of a file, under the name of a scope if any."""
    key = (filename, line, scope)
    location = _locations.get(key)
    if location is None:
        location = ir.Location.file(filename, line, 0, context=_CONTEXT)
        if scope:
            location = ir.Location.name(scope, location, context=_CONTEXT)
        _locations[key] = location
    return location


def name_location(name: str) -> ir.Location:
    """Returns the location that names an argument, as JAX and others write it."""
    return ir.Location.name(name, context=_CONTEXT)


def current_location() -> ir.Location:
    """Returns the location that an op recorded now should carry.

    It is the location of the op that a pass is rewriting, if any, else the user's line.
    """
    origin = state.origin
    if origin is not None:
        return origin.location
    frame = user_frame()
    if frame is None:
        return file_location("<axir>", 0)
    return file_location(frame.f_code.co_filename, frame.f_lineno, state.scope)


def scope_of(location: ir.Location) -> str:
    """Returns the scopes in which an op was recorded, joined by slashes."""
    return location.name_str if isinstance(location, ir.NameLoc) else ""


def describe_location(location: ir.Location) -> str | None:
    """Renders a location as `file:line` (`line n` in a text), or None if it names no file."""
    while not isinstance(location, ir.FileLineColLoc):
        if hasattr(location, "child_loc"):  # the name of a scope
            location = location.child_loc
        elif hasattr(location, "callee"):  # where a function is inlined
            location = location.callee
        elif hasattr(location, "locations") and list(location.locations):
            location = next(iter(location.locations))
        else:
            break
    try:
        if location.filename == "-":
            return f"line {location.start_line}"
        return f"{location.filename}:{location.start_line}"
    except (RuntimeError, ValueError, AttributeError):
        # Diagnostics carry locations without their class.
        found = _FILE_LINE.match(str(location))
        if found is None:
            return None
        return f"line {found[2]}" if found[1] == "-" else f"{found[1]}:{found[2]}"


@dataclass(frozen=True)
class NameStack:
    """Names of scopes, from the outermost one.

    >>> str(NameStack(("layer",)).extend("attention"))
    'layer/attention'
    """

    names: tuple[str, ...] = ()

    def extend(self, name: str) -> NameStack:
        """Returns the names with one more inside."""
        return NameStack((*self.names, name))

    def __add__(self, other: NameStack) -> NameStack:
        return NameStack(self.names + other.names)

    def __str__(self) -> str:
        return "/".join(self.names)


@dataclass(frozen=True)
class SourceInfo:
    """Where an operation comes from.

    Attributes:
        line: The user's line, as `file:line in function: source`, or None.
        name_stack: The scopes around it.
        traceback: Always None: only lines are kept, not their callers.
    """

    line: str | None
    name_stack: NameStack
    traceback: None = None


def source_info_of(location: ir.Location) -> SourceInfo:
    """Returns where the operation of a location comes from."""
    names = tuple(filter(None, scope_of(location).split("/")))
    return SourceInfo(describe_location(location), NameStack(names))
