"""Resources: the weights of a module that stand behind its text, or in a section of its bytecode.

MLIR copies them into its context, for good, and renames those whose names another module has taken.
They are taken out before it reads the module: the text and bytecode that it reads name them by
handles of this process, and the arrays are views of the file. Where a module was printed without
them, they are looked up in a file beside it. The notation is that of MLIR's documentation, "MLIR
Language Reference" and "MLIR Bytecode Format".
"""

from __future__ import annotations

import binascii
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np
from iree.compiler import ir

from axir.dialect.core.annotations import HostArray
from axir.dialect.core.attributes import dense, dense_to_numpy
from axir.dialect.core.context import context
from axir.dialect.core.errors import WeightsError
from axir.dialect.core.types import ShapedArray, type_of_mlir

from .bytecode import BYTECODE, Content
from .bytecode_weights import named_weights

__all__ = [
    "Resources",
    "name_constants",
    "offer_archives",
    "remember_resources",
    "resource_array",
    "resource_name",
    "resources_of",
    "split",
    "write_out",
]

_SECTION = b"{-#"
_SECTION_END = b"#-}"
_STRING = rb'"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
_USE = re.compile(rb"%s|//[^\n]*|dense_resource<\s*(%s|[^>\s\"]+)\s*>" % (_STRING, _STRING))
_HANDLE = re.compile(r'dense_resource<"?axir\.(\d+)\.(.*?)"?> : (.*)$', re.DOTALL)
_TOKEN = re.compile(rb"\s*(?:([A-Za-z_0-9][\w$.-]*)|(\S))")
_ELIDED = "__elided__"
# A constant in digits, and what stands behind it. An element has whole bytes, in their order.
_DIGITS = b'dense<"0x'
_LARGE = 1 << 15
_ELEMENT = rb"(?:f64|f32|f16|bf16|[us]?i(?:64|32|16|8))"
_TYPE = re.compile(rb'"\s*>\s*:\s*tensor<(?:\d+x)*(?:%s|complex<%s>)>' % (_ELEMENT, _ELEMENT))
_LONGEST_TYPE = 400
_ALIGNMENT_BYTES = 4
_PATH = ["", "dialect_resources", "builtin"]
_INDENTATION = 80
_numbers = itertools.count()

# Reads arrays from files of parameters, by the suffix of the file; other rooms offer them.
_archives: dict[str, Callable[[Path], Mapping[str, HostArray]]] = {}


def offer_archives(suffix: str, read: Callable[[Path], Mapping[str, HostArray]]) -> None:
    """Says what reads files of parameters of a suffix, which may stand beside a module."""
    _archives[suffix] = read


class Resources:
    """The weights of a module, by name.

    Args:
        file: What the module is called in errors; files of weights are looked for beside it.
        number: What handles of its weights begin with.
        blobs: The content of each, and whether it is written in hexadecimal digits.
    """

    def __init__(self, file: str, number: int, blobs: Mapping[str, tuple[memoryview, bool]]):
        self.file = file
        self.number = number
        self._blobs = dict(blobs)
        self._arrays: dict[tuple[str, ShapedArray], HostArray] = {}
        self._beside: Mapping[str, HostArray] | None = None

    def give(self, weights: Mapping[str, HostArray]) -> None:
        """Says what weights are that are not in the module."""
        self._beside = weights

    def array(self, name: str, wanted: ShapedArray) -> HostArray:
        """Returns the array of a name, read-only, where it lies if it can.

        Raises:
            WeightsError: if there is none, or one of another size.
        """
        key = (name, wanted)
        if key not in self._arrays:
            found = self._found(name)
            if wanted.dtype == np.bool_ and found.size == -(-wanted.size // 8) != wanted.size:
                # Bytecode packs truth values.
                found = np.unpackbits(found, count=wanted.size, bitorder="little")
            if found.nbytes != wanted.size * wanted.dtype.itemsize:
                raise WeightsError(
                    f"The weights {name!r} of {self.file} have {found.nbytes:,} bytes, but a "
                    f"{wanted} has {wanted.size * wanted.dtype.itemsize:,}.",
                    "The module is damaged, or not of these weights: export it again.",
                    where="",
                )
            flat = found.reshape(-1).view(np.uint8)
            is_aligned = not flat.size or flat.ctypes.data % wanted.dtype.alignment == 0
            flat = flat if is_aligned else flat.copy()
            array = flat.view(wanted.dtype).reshape(wanted.shape)
            array.flags.writeable = False
            self._arrays[key] = array
        return self._arrays[key]

    def _found(self, name: str) -> HostArray:
        if name in self._blobs:
            content, is_digits = self._blobs[name]
            if is_digits:
                content = _decoded(content, name, self.file)
            return np.frombuffer(content, np.uint8)
        beside = self._archive()
        if name in beside:
            return np.ascontiguousarray(beside[name])
        path = Path(self.file)
        names = " or ".join(path.with_suffix(suffix).name for suffix in _archives)
        if name == _ELIDED:
            raise WeightsError(
                f"{self.file} was printed without its weights ({_ELIDED}), and without their "
                "names.",
                "Export it again, and print it without a limit for large elements.",
                where="",
            )
        raise WeightsError(
            f"The weights {name!r} are not in {self.file}, and no file beside it has them.",
            f"Put {names} there, with an array of this name; or export the module again, with its "
            "weights.",
            where="",
        )

    def _archive(self) -> Mapping[str, HostArray]:
        """Returns the arrays of files of parameters beside the module."""
        if self._beside is None:
            found: dict[str, HostArray] = {}
            for suffix, read in _archives.items():
                path = Path(self.file).with_suffix(suffix)
                if path.is_file():
                    found |= read(path)
            self._beside = found
        return self._beside


def _decoded(digits: memoryview, name: str, file: str) -> memoryview:
    """Returns what is written in hexadecimal digits, without the alignment before resources."""
    try:
        content = binascii.unhexlify(digits)
    except binascii.Error:
        raise WeightsError(
            f"The weights {name!r} of {file} are not written in pairs of hexadecimal digits.",
            "The module is damaged: export it again.",
            where="",
        ) from None
    if _is_constant(name):
        return memoryview(content)
    if len(content) < _ALIGNMENT_BYTES:
        raise WeightsError(
            f"The weights {name!r} of {file} are cut off.",
            "The module is damaged: export it again.",
            where="",
        )
    return memoryview(content)[_ALIGNMENT_BYTES:]


_of_modules: WeakKeyDictionary[ir.Module, Resources] = WeakKeyDictionary()
_by_number: WeakValueDictionary[int, Resources] = WeakValueDictionary()


def remember_resources(module: ir.Module, resources: Resources) -> None:
    """Keeps the weights of a module for as long as it lives."""
    _of_modules[module] = resources


def resources_of(module: ir.Module) -> Resources | None:
    """Returns the weights of a module, None if it names none."""
    return _of_modules.get(module)


def resource_name(attribute: ir.Attribute) -> str | None:
    """Returns the name of the weights that an attribute stands for, None if it has none."""
    found = _HANDLE.match(str(attribute)) if _is_plain(attribute) else None
    return None if found is None or _is_constant(found[2]) else found[2]


def resource_array(attribute: ir.Attribute) -> HostArray | None:
    """Returns the weights that an attribute stands for, None if it is another one.

    Raises:
        WeightsError: if they are not there, or of another size.
    """
    found = _HANDLE.match(str(attribute)) if _is_plain(attribute) else None
    resources = None if found is None else _by_number.get(int(found[1]))
    if found is None or resources is None:
        return None
    return resources.array(found[2], type_of_mlir(ir.Type.parse(found[3], context())))


def write_out(op: ir.Operation) -> None:
    """Writes weights into an operation and those in it, for programs that know no handles.

    Raises:
        WeightsError: if they are not there, or of another size.
    """
    failures: list[WeightsError] = []

    def replace(inner: ir.Operation) -> ir.WalkResult:
        for name in inner.attributes:
            try:
                array = resource_array(inner.attributes[name])
            except WeightsError as error:  # would lose its class in the walk
                failures.append(error)
                return ir.WalkResult.INTERRUPT
            if array is not None:
                inner.attributes[name] = dense(array)
        return ir.WalkResult.ADVANCE

    with context():
        op.walk(replace)
    if failures:
        raise failures[0]


def _is_constant(name: str) -> bool:
    """Tells whether weights were a constant, without a name of its own."""
    return name.startswith("#")


def _is_plain(attribute: ir.Attribute) -> bool:
    """Tells whether an attribute has no class of its own, as resources have none."""
    return type(attribute) is ir.Attribute or isinstance(attribute, ir.DenseResourceElementsAttr)


def name_constants(module: ir.Module, weights: Mapping[str, HostArray]) -> None:
    """Gives constants of a module, which are weights, the names of these.

    Programs that read models write weights as constants, and forget their names.
    """
    resources = _of_modules.get(module)
    if resources is None:
        resources = Resources("the module", next(_numbers), {})
        remember_resources(module, resources)
        _by_number[resources.number] = resources
    resources.give(weights)
    named: dict[str, ir.Attribute] = {}
    constants: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name.endswith(".constant") and "value" in op.attributes:
            attribute = op.attributes["value"]
            name = resource_name(attribute)
            if name is not None:
                named[name] = attribute
            elif isinstance(op.results[0].type, ir.RankedTensorType):
                constants.append(op)
        return ir.WalkResult.ADVANCE

    with context():
        module.operation.walk(visit)
        for op in constants:
            attribute = op.attributes["value"]
            # Those that have no constant yet come first: biases of zeros are equal.
            names = [*(name for name in weights if name not in named), *named]
            name = _named_as(attribute, op.results[0].type, names, weights)
            if name is not None and name not in named:
                handle = f'dense_resource<"axir.{resources.number}.{name}"> : {op.results[0].type}'
                named[name] = ir.Attribute.parse(handle)
            if name is not None:
                op.attributes["value"] = named[name]


def _named_as(
    attribute: ir.Attribute,
    kind: ir.RankedTensorType,
    names: Iterable[str],
    weights: Mapping[str, HostArray],
) -> str | None:
    """Returns the first name of weights that a constant of several elements holds."""
    shape = tuple(kind.shape)
    alike = [name for name in names if weights[name].shape == shape and weights[name].size > 1]
    if not alike or isinstance(kind.element_type, ir.IndexType):
        return None
    array = resource_array(attribute)
    if array is None:
        array = dense_to_numpy(ir.DenseElementsAttr(attribute))
    for name in alike:
        if weights[name].dtype == array.dtype and weights[name].tobytes() == array.tobytes():
            return name
    return None


# Taking them out ----------------------------------------------------------------------------------


def split(data: Content, name: str) -> tuple[Content, Resources | None]:
    """Returns text or bytecode without weights, and these; None if it names none.

    Args:
        data: The content of a file.
        name: What it is called.

    Raises:
        WeightsError: if weights are cut off, or two have one name.
    """
    number = next(_numbers)
    if data[: len(BYTECODE)] == BYTECODE:
        try:
            rewritten = named_weights(data, f"axir.{number}.")
        except (ValueError, IndexError, KeyError):  # whoever reads it says what is wrong
            return data, None
        if rewritten is None:
            return data, None
        made, blobs = rewritten
        resources = Resources(name, number, {key: (x, False) for key, x in _distinct(blobs, name)})
    else:
        parts = _Text(data)
        if not parts.is_changed:
            return data, None
        written = () if parts.section is None else _written(data, parts.section, name)
        digits = {key: (x, True) for key, x in _distinct(written, name)}
        made = _USE.sub(lambda found: _renamed(found, number), parts.text)
        digits |= {f"#{index}": (x, True) for index, x in enumerate(parts.constants)}
        resources = Resources(name, number, digits)
    _by_number[number] = resources
    return made, resources


class _Text:
    """Text of a module in parts.

    Attributes:
        text: The text, in which large constants are resources called `#0`, `#1`, ...
        constants: What they hold, in hexadecimal digits.
        section: Where the section of resources begins and ends, if there is one.
    """

    def __init__(self, data: Content):
        self.constants: list[memoryview] = []
        self.section: tuple[int, int] | None = None
        memory = memoryview(data)
        pieces: list[bytes | memoryview] = []
        begin = position = 0
        place = _section_start(data, 0)
        limit = len(data) if place < 0 else place
        while (start := data.find(_DIGITS, position, limit)) >= 0:
            position = start + len(_DIGITS)
            end = data.find(b'"', position)
            if end - position < _LARGE or not _TYPE.match(data[end : end + _LONGEST_TYPE]):
                continue
            pieces += [memory[begin:start], b'dense_resource<"#%d"' % len(self.constants)]
            self.constants.append(memory[position:end])
            begin = position = end + 1
        if place >= 0:
            end = data.rfind(_SECTION_END, place)
            end = len(data) if end < 0 else end
            self.section = place + len(_SECTION), end
            pieces += [memory[begin:place], memory[end + len(_SECTION_END) :]]
            self.text = b"".join(pieces)
        else:
            self.text = b"".join([*pieces, memory[begin:]]) if pieces else b""
        has_names = bool(pieces) or data.find(b"dense_resource") >= 0
        self.is_changed = has_names
        if has_names and not pieces:
            self.text = data[:]


def _section_start(data: Content, position: int) -> int:
    """Returns where the section of resources begins, negative if there is none."""
    while (position := data.find(_SECTION, position)) >= 0:
        line = data[max(0, position - _INDENTATION) : position].rpartition(b"\n")[2]
        if not line.strip():
            break
        position += 1
    return position


def _renamed(found: re.Match[bytes], number: int) -> bytes:
    if found[1] is None:
        return found[0]
    return b'dense_resource<"axir.%d.%s">' % (number, found[1].strip(b'"'))


def _written(
    data: Content, section: tuple[int, int], name: str
) -> Iterator[tuple[str, memoryview]]:
    """Yields the arrays of a section by name, in hexadecimal digits.

    Args:
        data: The text.
        section: Where the section begins and ends in it.
        name: What the text is called.
    """
    memory = memoryview(data)
    path = [""]
    key = ""
    position, end = section
    while (found := _TOKEN.match(memory, position, end)) is not None:
        position = found.end()
        sign = found[2]
        begin, close = found.span(1)
        if sign == b'"':
            begin, close = position, _end_of_string(data, position, end, name)
            position = close + 1
        if sign == b"{":
            path.append(key)
        elif sign == b"}" and len(path) > 1:
            path.pop()
        elif sign == b"}":
            raise _damaged("a bracket is closed that was not opened", name)
        elif sign == b'"' and path == _PATH and not _is_key(memory, position):
            if data[begin : begin + 2] != b"0x":
                raise _damaged(f"{key!r} is not written in hexadecimal digits", name)
            yield key, memory[begin + 2 : close]
        elif sign in (None, b'"'):
            key = data[begin:close].decode(errors="replace")
    if path != [""]:
        raise _damaged("they are cut off", name)


def _end_of_string(data: Content, position: int, end: int, name: str) -> int:
    """Returns where a string ends, which may have gigabytes."""
    close = data.find(b'"', position, end)
    if close < 0:
        raise _damaged("they are cut off", name)
    return close


def _is_key(section: memoryview, position: int) -> bool:
    """Tells whether what ends at a position is the name of something."""
    return bytes(section[position : position + _INDENTATION]).lstrip()[:1] == b":"


def _distinct(blobs: Iterable[tuple[str, memoryview]], file: str) -> list[tuple[str, memoryview]]:
    found: dict[str, memoryview] = {}
    for name, content in blobs:
        if name in found:
            raise _damaged(f"two have the name {name!r}", file)
        found[name] = content
    return list(found.items())


def _damaged(what: str, file: str) -> WeightsError:
    return WeightsError(
        f"The weights of {file} cannot be read: {what}.",
        "The module is damaged: export it again.",
        where="",
    )
