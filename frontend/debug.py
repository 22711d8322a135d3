"""Looking into programs while they run: `debug.print`, `debug.callback`, `debug.breakpoint`.

These functions read values and change none. Elsewhere: callbacks with results
(`frontend/_transforms/callbacks.py`). Under `grad` they run once, with the values of the forward
computation; under `vmap` once for each place of the batch, in order.
"""

from __future__ import annotations

import bdb
import builtins
import functools
import logging
import pdb
import string
from collections.abc import Callable, Mapping, Sequence
from types import CodeType

from axir._devices.drawing import drawing_of
from axir._devices.layouts import mesh_axes
from axir._devices.meshes import AbstractMesh, Mesh, context
from axir._devices.partitions import NamedSharding, PartitionSpec
from axir._devices.sharding import Sharding, SingleDeviceSharding
from axir._transforms.callbacks import callback_name, words_of_keys
from axir._trees import tree
from axir.dialect.core.annotations import Options, PyTree, Tree, UserObject
from axir.dialect.core.array import Array, ConcreteArray, as_array
from axir.dialect.core.context import user_frame
from axir.dialect.core.errors import AxirError, NonArrayArgumentError, ParameterError
from axir.dialect.ops.calls.callbacks import Callback, debug_callback_primitive
from axir.dialect.ops.sharding.layout_callback import layout_callback_primitive
from axir.dialect.program.meshes.layouts import Layout, MeshAxes
from axir.dialect.program.tracer import Tracer
from axir.extend.core import Effect
from axir.runtime import default_device

__all__ = [
    "DebugEffect", "OrderedDebugEffect", "breakpoint", "callback", "inspect_array_sharding", "log",
    "print", "visualize_array_sharding", "visualize_sharding",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


_logger = logging.getLogger(__name__)


class DebugEffect(Effect):
    """The effect of an operation that shows values."""


class OrderedDebugEffect(Effect):
    """The effect of an operation that shows values in program order."""


class MissingFormatArgumentError(AxirError, KeyError, IndexError):
    """A format string names an argument that was not passed."""

    # KeyError would show the text in quotes.
    __str__ = AxirError.__str__


def callback(
    callback: Callable[..., None] | None = None,
    *args: object,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: object,
) -> Callable[..., None] | None:
    """Calls a Python function for its effect, also from compiled code, and ignores its result.

    Args:
        callback: Takes arrays in the trees of `args` and `kwargs`. Leaves that are not arrays
            (strings ...) are passed on as they are. Without it the result is a function of it,
            `args` and `kwargs`: `callback(ordered=True)(f, x)`.
        *args: Trees of arrays.
        ordered: Accepted for compatibility: calls are always in the order of the program.
        partitioned: Accepted for compatibility: arrays are always whole.
        **kwargs: Trees of arrays.

    >>> import axir, axir.numpy as jnp
    >>> seen = []
    >>> def f(x):
    ...     axir.debug.callback(lambda v: seen.append(float(v)), 2 * x)
    ...     return x ** 2
    >>> float(axir.jit(axir.grad(f))(3.0)), seen
    (6.0, [6.0])
    """
    if callback is None:
        _refuse_early_arguments("callback(ordered=True)(function, x)", args, kwargs)
        return functools.partial(_callback, ordered)
    _callback(ordered, callback, *args, **kwargs)
    return None


def _refuse_early_arguments(form: str, args: Sequence[object], kwargs: Mapping) -> None:
    if args or kwargs:
        raise ParameterError(
            f"debug.{form.partition('(')[0]}: arguments {args or dict(kwargs)} without what takes "
            "them.",
            f"Options come first, and the arguments in the second call: axir.debug.{form}.",
        )


def _callback(
    ordered: bool, callback: Callable[..., None], /, *args: object, **kwargs: object
) -> None:
    if not callable(callback):
        raise NonArrayArgumentError(
            f"debug.callback takes a function first, not {callback!r} of type "
            f"{type(callback).__name__!r}.",
            "Write axir.debug.callback(function, *args).",
        )
    _bind(callback, callback_name(callback), args, kwargs, ordered)


def _bind(
    function: Callable[..., object],
    name: str,
    args: tuple[object, ...],
    kwargs: dict[str, object],
    ordered: bool,
) -> None:
    leaves, in_tree = tree.flatten((args, kwargs))
    fixed: dict[int, UserObject] = {}
    operands = []
    for index, leaf in enumerate(leaves):
        value = _value(leaf)
        if value is None:
            fixed[index] = leaf
        else:
            operands.append(value)
    call = functools.partial(_call, function, in_tree, fixed)
    debug_callback_primitive.bind(
        *words_of_keys(operands), callback=Callback(call, name), ordered=bool(ordered)
    )


def _value(leaf: object) -> UserObject:
    """Returns a leaf as a value, or None for a leaf that is no array."""
    if type(leaf) is ConcreteArray or type(leaf) is Tracer:
        return leaf
    try:
        return as_array(leaf)
    except (AxirError, TypeError, ValueError, OverflowError):
        return None


def _call(
    function: Callable[..., object],
    in_tree: tree.TreeDef,
    fixed: Mapping[int, object],
    *arrays: Array,
) -> Sequence[UserObject]:
    remaining = iter(arrays)
    leaves = [fixed[n] if n in fixed else next(remaining) for n in range(in_tree.num_leaves)]
    arguments: UserObject = in_tree.unflatten(leaves)
    args, kwargs = arguments
    function(*args, **kwargs)
    return ()


def print(
    fmt: str | None = None,
    *args: object,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: object,
) -> Callable[..., None] | None:
    """Prints values of a running program: `print(fmt.format(*args, **kwargs))`.

    Args:
        fmt: A format string, not an f-string: while a function is traced there are no values yet.
            Without it the result is a function of it, `args` and `kwargs`, which may then have the
            names of options: `print(ordered=True)("x = {}", x)`.
        *args: Trees of arrays for `{}` and `{0}`.
        ordered: Accepted for compatibility: lines are always in the order of the program.
        partitioned: Accepted for compatibility: arrays are always whole.
        skip_format_check: Whether unused and missing arguments are no errors while tracing.
        **kwargs: Trees of arrays for `{name}`.

    Raises:
        ParameterError: while tracing, if the format string leaves arguments unused or is malformed.
        MissingFormatArgumentError: if it names arguments that are not there.

    >>> import axir, axir.numpy as jnp
    >>> @axir.jit
    ... def f(x):
    ...     axir.debug.print("x = {}, sum = {total:.2f}", x, total=jnp.sum(x))
    ...     return x + 1
    >>> f(jnp.arange(3.0))
    x = [0. 1. 2.], sum = 3.00
    Array([1., 2., 3.], dtype=float32)
    """
    if fmt is None:
        _refuse_early_arguments('print(ordered=True)("x = {}", x)', args, kwargs)
        return functools.partial(_print_formatted, ordered, skip_format_check)
    _print_formatted(ordered, skip_format_check, fmt, *args, **kwargs)
    return None


def _print_formatted(
    ordered: bool, skip_format_check: bool, fmt: str, /, *args: object, **kwargs: object
) -> None:
    _check_format("print", fmt, args, kwargs, skip_format_check)
    _bind(functools.partial(_print, fmt), f"debug.print({fmt!r})", args, kwargs, ordered)


def log(
    fmt: str,
    *args: object,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: object,
) -> None:
    """Logs values of a running program: as `print`, to the logger `axir.debug`, of level INFO.

    Takes the arguments and raises the errors of `print`.

    >>> import axir, logging
    >>> with_values = axir.jit(lambda x: axir.debug.log("x = {}", x))
    >>> logger = logging.getLogger("axir.debug")
    >>> logger.addFilter(lambda record: builtins.print(record.getMessage()))
    >>> logger.setLevel(logging.INFO)
    >>> with_values(2.0)
    x = 2.0
    >>> logger.setLevel(logging.NOTSET); logger.filters.clear()
    """
    _check_format("log", fmt, args, kwargs, skip_format_check)
    _bind(functools.partial(_log, fmt), f"debug.log({fmt!r})", args, kwargs, ordered)


def _check_format(
    name: str,
    fmt: str,
    args: Sequence[object],
    kwargs: Mapping[str, object],
    may_not_fit: bool,
) -> None:
    if not isinstance(fmt, str):
        raise NonArrayArgumentError(
            f"debug.{name} takes a format string first, not {fmt!r} of type "
            f"{type(fmt).__name__!r}.",
            f'Write axir.debug.{name}("x = {{}}", x).',
        )
    if may_not_fit:
        return
    checker = _FormatChecker()
    try:
        checker.format(fmt, *args, **kwargs)
    except (IndexError, KeyError) as error:
        raise _missing_argument(name, fmt, error, args, kwargs) from None
    except ValueError as error:
        problem = str(error)
        raise ParameterError(
            f"debug.{name}: {fmt!r} is no format string: {problem}.", "Write { as {{ and } as }}."
        ) from None
    if checker.unused:
        raise ParameterError(
            f"debug.{name}: the format string uses no argument {', '.join(checker.unused)}.",
            "Name each with {} or {name}; an f-string has none left: pass a plain string.",
        )


def _missing_argument(
    name: str,
    fmt: str,
    error: IndexError | KeyError,
    args: Sequence[object],
    kwargs: Mapping[str, object],
) -> MissingFormatArgumentError:
    names = ", ".join(map(repr, kwargs)) or "none"
    missing = f"no argument named {error.args[0]!r} was passed"
    if isinstance(error, IndexError):
        wanted = [field for _, field, _, _ in string.Formatter().parse(fmt) if field is not None]
        missing = f"more positional arguments are needed than the {len(args)} passed"
        if all(not field for field in wanted):
            missing = f"{len(wanted)} positional arguments are needed, but {len(args)} were passed"
    return MissingFormatArgumentError(
        f"debug.{name}: {fmt!r} names what is not there: {missing}. Named arguments: {names}.",
        "Pass a value for each {} and {name}.",
    )


def _log(fmt: str, *args: object, **kwargs: object) -> None:
    _logger.info(fmt.format(*args, **kwargs))


def _print(fmt: str, *args: object, **kwargs: object) -> None:
    builtins.print(fmt.format(*args, **kwargs))


class _FormatChecker(string.Formatter):
    """Finds out, without values, whether a format string uses its arguments.

    Attributes:
        unused: The arguments that the last format string did not use: positions and names.
    """

    unused: Sequence[str] = ()

    def get_field(
        self, field_name: str, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> object:
        # Indices and attributes of the argument wait for its value.
        first = field_name.partition(".")[0].partition("[")[0]
        key = int(first) if first.isdecimal() else first
        return self.get_value(key, args, kwargs), key

    def convert_field(self, value: object, conversion: object) -> object:
        return value

    def format_field(self, value: object, format_spec: str) -> str:
        return ""

    def check_unused_args(
        self, used_args: set[int | str], args: Sequence[object], kwargs: Mapping[str, object]
    ) -> None:
        self.unused = [repr(n) for n in [*range(len(args)), *kwargs] if n not in used_args]


_TOKEN = "<token>"  # no variable is called so


def breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Tree = None,
    stdin: object = None,
    stdout: object = None,
) -> PyTree:
    r"""Stops a running program in `pdb`, with the variables of the line that calls this.

    In compiled code, array variables hold the values of the running program at that line. Other
    variables hold their values from tracing. `c` goes on; `q` ends the program with `BdbQuit`.

    Args:
        backend, filter_frames, num_frames: Accepted for compatibility: `pdb` is the debugger, and
            sees the frame of the line.
        ordered: Accepted for compatibility: stops are always in the order of the program.
        token: Arrays before which the program does not stop; they are returned.
        stdin: Where commands are read from, by default the terminal.
        stdout: Where `pdb` writes to, by default the terminal.

    >>> import io, axir
    >>> def f(x):
    ...     y = 2 * x
    ...     axir.debug.breakpoint(stdin=io.StringIO("p y\nc\n"), stdout=output)
    ...     return y
    >>> output = io.StringIO()
    >>> float(axir.jit(f)(4.0)), "Array(8., dtype=float32)" in output.getvalue()
    (8.0, True)
    """
    frame = user_frame()
    assert frame is not None  # the caller of this function
    code = frame.f_code
    # One statement on the user's line: where `pdb` stops.
    source = "\n" * (frame.f_lineno - 1) + "pass"
    stop = compile(source, code.co_filename, "exec")
    moving: dict[str, Options] = {}
    fixed: dict[str, Options] = {}
    for name, value in frame.f_locals.items():
        is_traced = any(type(leaf) is Tracer for leaf in tree.leaves(value))
        (moving if is_traced else fixed)[name] = value
    function = functools.partial(_stop, stop, frame.f_globals, fixed, stdin, stdout)
    if token is not None:
        moving[_TOKEN] = token
    _bind(function, "debug.breakpoint", (moving,), {}, ordered)
    return token


def _stop(
    code: CodeType,
    namespace: dict[str, object],
    fixed: dict[str, object],
    stdin: UserObject,
    stdout: UserObject,
    moving: dict[str, object],
) -> None:
    # Its handler of Ctrl-C would stay, and end the program some other way after the debugger.
    debugger = _Debugger(stdin=stdin, stdout=stdout, nosigint=True)
    moving.pop(_TOKEN, None)
    debugger.run(code, namespace, {**fixed, **moving})
    if debugger.was_quit:
        raise bdb.BdbQuit


class _Debugger(pdb.Pdb):
    """The debugger, which remembers how it was left: `run` keeps `BdbQuit` to itself."""

    was_quit = False

    def set_quit(self) -> None:
        """Ends the program."""
        self.was_quit = True
        super().set_quit()


# Where arrays lie ---------------------------------------------------------------------------------


def inspect_array_sharding(value: object, *, callback: Callable[[Sharding], None]) -> None:
    """Calls a function with the sharding of an array, also of one within a compiled function.

    The sharding of a value in a program is known when the program is partitioned: the function is
    called then, once for each compilation.

    Args:
        value: An array, or a tree of arrays.
        callback: Takes a sharding.

    >>> import axir, axir.numpy as jnp
    >>> seen = []
    >>> inspect_array_sharding(jnp.ones(3), callback=seen.append)
    >>> seen
    [SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)]
    """
    mesh = context.mesh

    def told(shape: tuple[int, ...], layout: Layout | None, axes: MeshAxes) -> None:
        callback(_sharding_of(layout, axes, mesh))

    for leaf in tree.leaves(value):
        if type(leaf) is Tracer:
            layout_callback_primitive.bind(leaf, callback=told)
        else:
            callback(as_array(leaf).sharding)


def _sharding_of(
    layout: Layout | None, axes: MeshAxes, mesh: Mesh | AbstractMesh | None
) -> Sharding:
    """Returns a layout as a sharding, over the mesh in use if it has these axes."""
    if layout is None:
        return SingleDeviceSharding(default_device())
    if mesh is None or mesh_axes(mesh) != axes:
        mesh = AbstractMesh([size for _, size in axes], [name for name, _ in axes])
    spec = [None if not names else names[0] if len(names) == 1 else names for names in layout]
    return NamedSharding(mesh, PartitionSpec(*spec))


def visualize_sharding(
    shape: Sequence[int],
    sharding: Sharding,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: object = None,
) -> None:
    """Prints a box for each part of an array, with the devices that hold it.

    Args:
        shape: Shape of the array, of one or two dimensions.
        sharding: Its sharding.
        use_color: Accepted for compatibility, as are the following: boxes are text.
        scale: So.
        min_width: So.
        max_width: So.
        color_map: So.

    Raises:
        ParameterError: for other numbers of dimensions.

    >>> from axir.sharding import AbstractMesh, NamedSharding, PartitionSpec
    >>> mesh = AbstractMesh((2, 2), ("x", "y"))
    >>> visualize_sharding((4, 4), NamedSharding(mesh, PartitionSpec(None, ("y", "x"))))
    ┌───┬───┬───┬───┐
    │ 0 │ 2 │ 1 │ 3 │
    └───┴───┴───┴───┘
    """
    builtins.print(drawing_of(tuple(shape), sharding))


def visualize_array_sharding(arr: UserObject, **options: Options) -> None:
    """Prints how an array is spread over devices, also one within a compiled function.

    Args:
        arr: The array, of one or two dimensions.
        **options: As of `visualize_sharding`.

    >>> import axir.numpy as jnp
    >>> visualize_array_sharding(jnp.ones((2, 3)))
    ┌───────┐
    │ CPU 0 │
    └───────┘
    """
    shape = tuple(arr.shape)
    inspect_array_sharding(arr, callback=lambda place: visualize_sharding(shape, place, **options))
