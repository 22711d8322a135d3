"""Arguments of a call as the command line writes them: `x=@x.npy`, `y=2x3xf32=1,2,3`."""

from __future__ import annotations

import difflib
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from axir.dialect import dtypes
from axir.dialect.array import Array
from axir.dialect.errors import DTypeError, ParameterError, ShapeError
from axir.dialect.signature import Argument, Signature, parse_type
from axir.dialect.types import ShapedArray

_TYPE = r"(?:\d+x)*(?:bf16|f16|f32|f64|u?i\d+|complex<f\d\d>)"
_LITERAL = re.compile(rf"({_TYPE})=(.*)", re.DOTALL)
_FILL = re.compile(r"(zeros|ones|random):(.*)")
_WORDS = {"true": True, "false": False, "True": True, "False": False}


def read_inputs(
    inputs: Sequence[str],
    signature: Signature,
    function: str = "main",
    fills_missing: bool = False,
) -> list[Array]:
    """Reads the arguments of a call.

    Args:
        inputs: One text for each argument, or for a file of several.
        signature: What the function takes.
        function: What it is called, for messages.
        fills_missing: Whether arguments that are not given become random numbers.

    Raises:
        ParameterError: if a name or a value cannot be understood, or an argument is missing.
        ShapeError, DTypeError: if a value is not of the type that its argument has.
        OSError: if a file cannot be read.
    """
    arguments = {normal_name(a.name): a for a in signature.arguments}
    values: dict[str, Array] = {}
    positional = []
    for text in inputs:
        name, value = _split(text, arguments, function)
        if name is not None:
            _assign(values, name, _read_value(value, arguments[name]))
        elif _is_archive(value):
            _assign_archive(values, Path(value[1:]), arguments, function)
        else:
            positional.append(value)
    free = [name for name in arguments if name not in values]
    if len(positional) > len(free):
        raise ParameterError(
            f"@{function} takes {len(arguments)} arguments; {positional[len(free)]!r} is one more.",
            _listing(signature.arguments),
            where="",
        )
    for name, value in zip(free, positional, strict=False):
        values[name] = _read_value(value, arguments[name])
    missing = [name for name in arguments if name not in values]
    if missing and not fills_missing:
        wanted = [arguments[name] for name in missing]
        raise ParameterError(
            f"@{function} needs a value for {', '.join(a.name for a in wanted)}.",
            " ".join(f"{shell_name(a.name)}=@FILE.npy or {shell_name(a.name)}=zeros:{a.text}"
                     for a in wanted[:1]) + f" gives one. {_listing(signature.arguments)}",
            where="",
        )
    for name in missing:
        values[name] = _array(arguments[name], _filled("random", arguments[name].type))
    return [values[name] for name in arguments]


def normal_name(name: str) -> str:
    """Returns a name without the quotes and brackets that shells make hard to write.

    >>> normal_name("params['w'][0]")
    'params.w.0'
    """
    return re.sub(r"[\[\]'\".]+", ".", name).strip(".")


def shell_name(name: str) -> str:
    """Returns a name as it can be written in a shell without quotes."""
    return name if re.fullmatch(r"\w+", name) else normal_name(name)


def _listing(arguments: Sequence[Argument]) -> str:
    if not arguments:
        return "It takes no arguments."
    return "Its arguments are " + ", ".join(f"{a.name}: {a.text}" for a in arguments) + "."


def _split(
    text: str, arguments: Mapping[str, Argument], function: str
) -> tuple[str | None, str]:
    """Returns the normal name (None for a positional input) and the value of an input."""
    name, equals, value = text.partition("=")
    if equals and normal_name(name) in arguments:
        return normal_name(name), value
    if not equals or text.startswith("@") or _LITERAL.fullmatch(text) or _FILL.match(text):
        return None, text
    near = difflib.get_close_matches(normal_name(name), arguments, n=2, cutoff=0.5)
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    raise ParameterError(
        f"@{function} has no argument {name!r}.",
        hint + _listing(list(arguments.values())),
        where="",
    )


def _assign(values: dict[str, Array], name: str, value: Array) -> None:
    if name in values:
        raise ParameterError(f"The argument {name} is given twice.", "Give it once.", where="")
    values[name] = value


def _is_archive(value: str) -> bool:
    return value.startswith("@") and value.endswith(".npz")


def _assign_archive(
    values: dict[str, Array], path: Path, arguments: Mapping[str, Argument], function: str
) -> None:
    content = _load(path)
    if isinstance(content, np.ndarray):
        raise _unreadable(path, ValueError("it holds one array, not an archive."))
    names = list(content)
    if names == [f"arr_{index}" for index in range(len(names))]:
        targets = list(arguments)[: len(names)]
    else:
        targets = [normal_name(name) for name in names]
    for name, target in zip(names, targets, strict=False):
        if target not in arguments:
            raise ParameterError(
                f"{path} holds {name!r}, but @{function} has no such argument.",
                _listing(list(arguments.values())),
                where="",
            )
        _assign(values, target, _array(arguments[target], content[name]))


def _load(path: Path) -> np.ndarray | dict[str, np.ndarray]:
    """Returns the array of a `.npy`, or the arrays of a `.npz` by name."""
    try:
        content = np.load(path, allow_pickle=False)
        if isinstance(content, np.ndarray):
            return content
        with content:
            return {name: content[name] for name in content.files}
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> ParameterError:
    return ParameterError(
        f"{path} is not a readable NumPy file: {(str(error).splitlines() or ['damaged'])[0]}",
        "Write it with numpy.save or numpy.savez, as numbers rather than Python objects.",
        where="",
    )


def _read_value(text: str, argument: Argument) -> Array:
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


def _number(word: str, dtype: np.dtype) -> Any:
    if word in _WORDS:
        return _WORDS[word]
    if dtypes.is_complex(dtype):
        return complex(word)
    if dtypes.is_float(dtype):
        return float(word)
    number = int(word, 0)
    if dtype == dtypes.bool_ and number not in (0, 1):
        raise ValueError(word)
    return number


def _array(argument: Argument, host: np.ndarray) -> Array:
    """Returns the array for an argument, whose type the values must have."""
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
    return Array(wanted, np.ascontiguousarray(host).reshape(wanted.shape))


