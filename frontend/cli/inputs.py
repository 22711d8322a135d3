"""Arguments of a call as the command line writes them: `x=@x.npy`, `y=2x3xf32=1,2,3`."""

from __future__ import annotations

import cmath
import difflib
import io
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError
from axir.dialect.core.extended_dtypes import keys_of
from axir.dialect.core.types import ShapedArray
from axir.dialect.text.signature import Argument, Signature, parse_type

_TYPE = r"(?:\d+x)*(?:bf16|f16|f32|f64|u?i\d+|complex<f\d\d>)"
_LITERAL = re.compile(rf"({_TYPE})=(.*)", re.DOTALL)
_FILL = re.compile(r"(zeros|ones|random):(.*)")
_NOT_FINITE = re.compile("inf|nan", re.IGNORECASE)
_WORDS = {"true": True, "false": False, "True": True, "False": False}


def read_inputs(
    inputs: Sequence[str],
    signature: Signature,
    function: str = "main",
    fills_missing: bool = False,
) -> list[ConcreteArray]:
    """Reads the arguments of a call.

    Args:
        inputs: One text for each argument, or for a file of several.
        signature: The function's signature.
        function: The function's name, for messages.
        fills_missing: Whether arguments that are not given become random numbers.

    Raises:
        ParameterError: if a name or a value cannot be understood, or an argument is missing.
        ShapeError, DTypeError: if a value is not of the type that its argument has.
        OSError: if a file cannot be read.
    """
    arguments = _by_name(signature.arguments)
    values: dict[str, ConcreteArray] = {}
    positional: list[str] = []
    unused: list[str] = []
    for text in inputs:
        name, value = _split(text, arguments, function)
        if name is not None:
            _assign(values, name, _read_value(value, arguments[name]))
        elif _is_archive(value):
            unused += _assign_archive(values, Path(value[1:]), arguments)
        else:
            positional.append(value)
    free = [name for name in arguments if name not in values]
    if len(positional) > len(free):
        raise ParameterError(
            f"@{function} takes {len(arguments)} arguments; {positional[len(free)]!r} is one more.",
            _listing(list(arguments.values())),
            where="",
        )
    for name, value in zip(free, positional, strict=False):
        values[name] = _read_value(value, arguments[name])
    missing = [name for name in arguments if name not in values]
    if missing and (unused or not fills_missing):
        raise _missing_error([arguments[name] for name in missing], arguments, function, unused)
    for name in missing:
        values[name] = _array(arguments[name], _filled("random", arguments[name].type))
    return [
        _of_type(wanted.type, values[name])
        for wanted, name in zip(signature.arguments, arguments, strict=True)
    ]


def _of_type(wanted: ShapedArray, value: ConcreteArray) -> ConcreteArray:
    dtype: UserObject = wanted.dtype
    return ConcreteArray(wanted, keys_of(value.host(), dtype)) if dtypes.is_key(dtype) else value


def _missing_error(
    wanted: Sequence[Argument],
    arguments: Mapping[str, Argument],
    function: str,
    unused: Sequence[str],
) -> ParameterError:
    first = shell_name(wanted[0].name)
    return ParameterError(
        f"@{function} needs a value for {', '.join(a.name for a in wanted)}.",
        f"{first}=@FILE.npy or {first}=zeros:{wanted[0].text} gives one. "
        + " ".join([_listing(list(arguments.values())), *unused]),
        where="",
    )


def _by_name(arguments: Sequence[Argument]) -> dict[str, Argument]:
    """Returns arguments by their normal names; of equal ones the later get a number."""
    named: dict[str, Argument] = {}
    for argument in arguments:
        base = name = normal_name(argument.name)
        number = 1
        while name in named:
            name, number = f"{base}_{number}", number + 1
        # Values of random keys are given as their words.
        named[name] = Argument(argument.name if name == base else name, argument.type.words)
    return named


def normal_name(name: str) -> str:
    """Returns a name without the quotes and brackets that are hard to write in shells.

    >>> normal_name("params['w'][0]")
    'params.w.0'
    """
    return re.sub(r"[\[\]'\".]+", ".", name).strip(".")


def shape_of_input(
    text: str, names: Sequence[str], number: int
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yields names of arguments and the shapes that an input gives them, if it does.

    Args:
        text: The input.
        names: Normal names of the arguments.
        number: The number of the argument if the input names none.

    >>> list(shape_of_input("x=2x3xf32=1", ["x", "y"], 0)), list(shape_of_input("1.5", ["x"], 0))
    ([('x', (2, 3))], [])
    """
    ends = (found.start() for found in re.finditer("=", text))
    end = next((end for end in ends if normal_name(text[:end]) in names), None)
    value = text if end is None else text[end + 1 :]
    if end is None and _is_archive(value):
        content = _load(Path(value[1:]))
        if isinstance(content, dict):
            yield from ((normal_name(name), x.shape) for name, x in content.items())
        return
    if end is not None:
        name = normal_name(text[:end])
    elif number < len(names):
        name = names[number]
    else:
        return
    if value.startswith("@"):
        content = _load(Path(value[1:]))
        if isinstance(content, np.ndarray):
            yield name, content.shape
    elif (stated := _LITERAL.fullmatch(value)) or (stated := _FILL.fullmatch(value)):
        kind = stated[1] if stated.re is _LITERAL else stated[2]
        if kind:
            yield name, parse_type(kind).shape


def shell_name(name: str) -> str:
    """Returns a name in a form that needs no quotes in a shell."""
    return name if re.fullmatch(r"\w+", name) else normal_name(name)


def _listing(arguments: Sequence[Argument]) -> str:
    if not arguments:
        return "It takes no arguments."
    return "Its arguments are " + ", ".join(f"{a.name}: {a.text}" for a in arguments) + "."


def _split(text: str, arguments: Mapping[str, Argument], function: str) -> tuple[str | None, str]:
    """Returns the normal name (None for a positional input) and the value of an input."""
    name, equals, _ = text.partition("=")
    for end in (found.start() for found in re.finditer("=", text)):
        if normal_name(text[:end]) in arguments:  # a name may hold an equals sign itself
            return normal_name(text[:end]), text[end + 1 :]
    if not equals or text.startswith("@") or _LITERAL.fullmatch(text) or _FILL.match(text):
        return None, text
    near = difflib.get_close_matches(normal_name(name), arguments, n=2, cutoff=0.5)
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    raise ParameterError(
        f"@{function} has no argument {name!r}.",
        hint + _listing(list(arguments.values())),
        where="",
    )


def _assign(values: dict[str, ConcreteArray], name: str, value: ConcreteArray) -> None:
    if name in values:
        raise ParameterError(f"The argument {name} is given twice.", "Give it once.", where="")
    values[name] = value


def _is_archive(value: str) -> bool:
    return value.startswith("@") and value.endswith(".npz")


def _assign_archive(
    values: dict[str, ConcreteArray], path: Path, arguments: Mapping[str, Argument]
) -> list[str]:
    """Takes the function's arguments from an archive; returns remarks about the rest.

    So the archive of one function's results serves the next function, which takes some of them.
    """
    content = _load(path)
    if isinstance(content, np.ndarray):
        raise _unreadable(path, ValueError("it holds one array, not an archive."))
    names = targets = list(content)
    if names == [f"arr_{index}" for index in range(len(names))]:
        targets = [*arguments, *names[len(arguments) :]]
    unused = []
    for name, target in zip(names, map(normal_name, targets), strict=False):
        if target in arguments:
            _assign(values, target, _array(arguments[target], content[name]))
        else:
            unused.append(f"{path} also holds {name!r}.")
    return unused


def _load(path: Path) -> np.ndarray | dict[str, np.ndarray]:
    """Returns the array of a `.npy`, or the arrays of a `.npz` by name."""
    try:
        # A source that is not a file, such as a pipe, is read once and from front to back.
        source = path if path.is_file() else io.BytesIO(path.read_bytes())
        content = np.load(source, allow_pickle=False)
        if isinstance(content, np.ndarray):
            return content
        with content:
            return {name: content[name] for name in content.files}
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        if "pickle" in str(error) and "Object arrays" not in str(error):
            error = ValueError("it does not begin like one.")
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> ParameterError:
    return ParameterError(
        f"{path} is not a readable NumPy file: {(str(error).splitlines() or ['damaged'])[0]}",
        "Write it with numpy.save or numpy.savez, as numbers rather than Python objects.",
        where="",
    )


def _read_value(text: str, argument: Argument) -> ConcreteArray:
    if text.startswith("@"):
        content = _load(Path(text[1:]))
        if not isinstance(content, np.ndarray):
            raise ParameterError(
                f"{argument.name}={text}: an archive holds several arrays.",
                f"Give {text} without a name; its arrays are taken by their names.",
                where="",
            )
        return _array(argument, content)
    if fill := _FILL.fullmatch(text):
        stated = parse_type(fill[2]) if fill[2] else argument.type
        return _array(argument, _filled(fill[1], stated))
    if literal := _LITERAL.fullmatch(text):
        stated = parse_type(literal[1])
        return _array(argument, _elements(literal[2], stated, argument.name))
    return _array(argument, _elements(text, argument.type, argument.name))


def _filled(kind: str, value_type: ShapedArray) -> np.ndarray:
    if kind != "random":
        return (np.zeros if kind == "zeros" else np.ones)(value_type.shape, value_type.dtype)
    generator = np.random.default_rng(0)  # the same numbers every time
    if dtypes.is_inexact(value_type.dtype):
        return generator.standard_normal(value_type.shape).astype(value_type.dtype)
    return generator.integers(0, 2, value_type.shape).astype(value_type.dtype)


def _elements(text: str, value_type: ShapedArray, name: str) -> np.ndarray:
    words = [word for word in re.split(r"[\s,\[\]]+", text) if word]
    try:
        numbers = [_number(word, value_type.dtype) for word in words]
        with np.errstate(over="raise"):
            flat = np.array(numbers).astype(value_type.dtype)
        if dtypes.is_integer(value_type.dtype) and flat.tolist() != numbers:
            raise OverflowError
    except (ValueError, OverflowError, FloatingPointError, TypeError):
        raise ParameterError(
            f"{name}={text[:60]!r}: these are not elements of dtype {value_type.dtype}.",
            "Write them as 1,2,3 (or 1+2j, true) in the range of the dtype.",
            where="",
        ) from None
    if len(words) == 1:
        return np.full(value_type.shape, flat[0], value_type.dtype)
    if len(words) != value_type.size:
        raise ShapeError(
            f"{name} has {len(words)} elements, but its type {value_type} has {value_type.size}.",
            "Give all elements in row-major order, or one for all.",
            where="",
        )
    return flat.reshape(value_type.shape)


def _number(word: str, dtype: np.dtype) -> object:
    if word in _WORDS:
        return _WORDS[word]
    if dtypes.is_inexact(dtype):
        value = complex(word) if dtypes.is_complex(dtype) else float(word)
        if not cmath.isfinite(value) and not _NOT_FINITE.search(word):
            raise OverflowError(word)
        return value
    number = int(word, 0)
    if dtype == dtypes.bool_ and number not in (0, 1):
        raise ValueError(word)
    return number


def _array(argument: Argument, host: np.ndarray) -> ConcreteArray:
    """Returns the array for an argument; the values must have the argument's type."""
    wanted = argument.type
    if host.dtype.kind == "V" and host.dtype.itemsize == 2 and wanted.dtype == dtypes.bfloat16:
        host = host.view(dtypes.bfloat16)  # NumPy's files do not know bfloat16
    found = f"{host.dtype}{list(host.shape)}"
    if host.shape != wanted.shape:
        raise ShapeError(
            f"{argument.name} must be {wanted}, but the value given is {found}.",
            "Modules take the shapes they were exported for; `axir opt -p 'vmap{axis_size=…}'` "
            "adds a batch axis.",
            where="",
        )
    if host.dtype != wanted.dtype:
        raise DTypeError(
            f"{argument.name} must be {wanted}, but the value given is {found}.",
            f"Convert it: numpy.save(path, x.astype({str(wanted.dtype)!r})).",
            where="",
        )
    return ConcreteArray(wanted, np.ascontiguousarray(host).reshape(wanted.shape))
