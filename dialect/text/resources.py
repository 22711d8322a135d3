"""Resources: the weights of a module that stand behind its text, or in a section of its bytecode.

MLIR copies them into its context permanently, and renames them if another module has taken their
names. So axir takes them out before MLIR reads the module: the text and bytecode for MLIR name them
by handles of this process, and the arrays are views of the file. If a module was printed without
them, they are looked up in a file beside it. MLIR's documentation describes the notation: "MLIR
Language Reference" and "MLIR Bytecode Format".
"""

from __future__ import annotations

import binascii
import itertools
import re
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
from iree.compiler import ir

from axir.dialect.core.annotations import HostArray
from axir.dialect.core.attributes import dense, dense_to_numpy
from axir.dialect.core.context import context
from axir.dialect.core.errors import WeightsError
from axir.dialect.core.memo import ByIdentity
from axir.dialect.core.types import ShapedArray, type_of_mlir

from .bytecode import BYTECODE, Content
from .bytecode_weights import weights_in_bytecode
from .text_weights import damaged, weights_in_text

__all__ = [
    "UNTYPED",
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

# Handles are names of this process: of the module, and of the weights in it.
_HANDLE = re.compile(r'dense_resource<"?axir\.(\d+)\.(\d+)"?> : (.*)$', re.DOTALL)
_ELIDED = "__elided__"
_ALIGNMENT_BYTES = 4
# The number of bytes of weights that are compared before all of them are.
_COMPARED_FIRST = 64
_numbers = itertools.count()

UNTYPED = np.dtype("V1")
"""The dtype of arrays of bytes, of whose type nobody knows."""

# Reads arrays from files of parameters, by the suffix of the file; other rooms offer them.
_archives: dict[str, Callable[[Path], Mapping[str, HostArray]]] = {}


def offer_archives(suffix: str, read: Callable[[Path], Mapping[str, HostArray]]) -> None:
    """Registers a reader for files of parameters with a suffix; they may stand beside a module."""
    _archives[suffix] = read


class Resources:
    """The weights of a module, by the numbers in their handles.

    Args:
        file: Name of the module in errors; files of weights are searched beside it.
        number: Number of the module in handles.
        names: Names of its weights; None for constants.
        blobs: The content of the weights in it, and whether it is written in hexadecimal digits.
    """

    def __init__(
        self,
        file: str,
        number: int,
        names: Sequence[str | None],
        blobs: Mapping[int, tuple[memoryview, bool]],
    ):
        self.file = file
        self.number = number
        self._names = list(names)
        self._places = {label: place for place, label in enumerate(names) if label is not None}
        self._blobs = dict(blobs)
        self._arrays: dict[tuple[int, ShapedArray], HostArray] = {}
        self._beside: Mapping[str, HostArray] | None = None
        self._unnamed: frozenset[str] = frozenset()

    def give(self, weights: Mapping[str, HostArray], unnamed: Iterable[str] = ()) -> None:
        """Sets the weights that are not in the module.

        Args:
            weights: These weights, by name.
            unnamed: The weights that are constants: their names are not a user's.
        """
        self._beside, self._unnamed = weights, frozenset(unnamed)

    def handle(self, name: str, kind: ir.Type) -> ir.Attribute:
        """Returns an attribute that stands for weights."""
        place = self._places.setdefault(name, len(self._names))
        if place == len(self._names):
            self._names.append(name)
        return ir.Attribute.parse(f"dense_resource<{_prefix(self.number)}{place}> : {kind}")

    def name(self, place: int) -> str | None:
        """Returns the name of weights; None if they are a constant."""
        return None if self.is_unnamed(place) else self._names[place]

    def is_unnamed(self, place: int) -> bool:
        """Tells whether weights that were given are a constant."""
        return self._names[place] in self._unnamed

    def array(self, place: int, wanted: ShapedArray) -> HostArray:
        """Returns weights as a read-only array, in place if possible.

        Raises:
            WeightsError: if they are missing, or have another size or type.
        """
        key = (place, wanted)
        if key not in self._arrays:
            found = self._found(place)
            is_typed = found.dtype != UNTYPED
            if is_typed and (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
                raise WeightsError(
                    f"The weights {self._names[place]!r} of {self.file} are "
                    f"{ShapedArray(found.shape, found.dtype)} where they lie, but "
                    f"{wanted} in the module.",
                    "They are not of this module: export both again.",
                    where="",
                )
            if wanted.dtype == np.bool_ and found.size == -(-wanted.size // 8) != wanted.size:
                # Bytecode packs truth values.
                bits = found.view(np.uint8)
                found = np.unpackbits(bits, count=wanted.size, bitorder="little")
            if found.nbytes != wanted.size * wanted.dtype.itemsize:
                raise WeightsError(
                    f"The weights {self._names[place]!r} of {self.file} have {found.nbytes:,} "
                    f"bytes, but a {wanted} has {wanted.size * wanted.dtype.itemsize:,}.",
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

    def _found(self, place: int) -> HostArray:
        if place in self._blobs:
            content, is_digits = self._blobs[place]
            if is_digits:
                content = _decoded(content, self._names[place], self.file)
            return np.frombuffer(content, UNTYPED)
        name = self._names[place] or ""
        beside = self._archive()
        if name in beside:
            return np.ascontiguousarray(beside[name]).reshape(beside[name].shape)
        if name == _ELIDED:
            raise WeightsError(
                f"{self.file} was printed without its weights ({_ELIDED}), and without their "
                "names.",
                "Export it again, and print it without a limit for large elements.",
                where="",
            )
        path = Path(self.file)
        names = " or ".join(path.with_suffix(suffix).name for suffix in _archives)
        put = f"Put {names} there, with an array of this name; or export" if names else "Export"
        raise WeightsError(
            f"The weights {name!r} are not in {self.file}, and no file beside it has them.",
            f"{put} the module again, with its weights.",
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


def _prefix(number: int) -> str:
    return f"axir.{number}."


def _decoded(digits: memoryview, name: str | None, file: str) -> memoryview:
    """Returns the content of hexadecimal digits, without the alignment before resources."""
    called = "a constant" if name is None else repr(name)
    try:
        content = binascii.unhexlify(digits)
    except binascii.Error:
        raise WeightsError(
            f"The weights {called} of {file} are not written in pairs of hexadecimal digits.",
            "The module is damaged: export it again.",
            where="",
        ) from None
    if name is None:
        return memoryview(content)
    if len(content) < _ALIGNMENT_BYTES:
        raise WeightsError(
            f"The weights {called} of {file} are cut off.",
            "The module is damaged: export it again.",
            where="",
        )
    return memoryview(content)[_ALIGNMENT_BYTES:]


_of_modules: ByIdentity[ir.Module, Resources] = ByIdentity()
_by_number: WeakValueDictionary[int, Resources] = WeakValueDictionary()


def remember_resources(module: ir.Module, resources: Resources) -> None:
    """Keeps the weights of a module for as long as it lives."""
    _of_modules.keep(module, resources)


def resources_of(module: ir.Module) -> Resources | None:
    """Returns the weights of a module; None if it names no weights."""
    return _of_modules.get(module)


def resource_name(attribute: ir.Attribute) -> str | None:
    """Returns the name of the weights that an attribute stands for; None without a name."""
    found = _weights_of(attribute)
    return None if found is None else found[0].name(found[1])


def resource_array(attribute: ir.Attribute) -> HostArray | None:
    """Returns the weights that an attribute stands for; None for other attributes.

    Raises:
        WeightsError: if they are missing, or of another size or type.
    """
    found = _weights_of(attribute)
    if found is None:
        return None
    resources, place, kind = found
    return resources.array(place, type_of_mlir(ir.Type.parse(kind, context())))


def _weights_of(attribute: ir.Attribute) -> tuple[Resources, int, str] | None:
    """Returns the weights that an attribute stands for: their resources, number, and type."""
    found = _HANDLE.match(str(attribute)) if _is_plain(attribute) else None
    resources = None if found is None else _by_number.get(int(found[1]))
    return None if found is None or resources is None else (resources, int(found[2]), found[3])


def write_out(op: ir.Operation) -> None:
    """Writes weights into an operation and its inner operations, for programs without handles.

    Raises:
        WeightsError: if they are missing, or of another size or type.
    """
    failures: list[WeightsError] = []

    def replace(inner: ir.Operation) -> ir.WalkResult:
        for name in inner.attributes:
            try:
                attribute = inner.attributes[name]
                written = _written_out(attribute)
            except WeightsError as error:  # would lose its class in the walk
                failures.append(error)
                return ir.WalkResult.INTERRUPT
            if written is not attribute:
                inner.attributes[name] = written
        return ir.WalkResult.ADVANCE

    with context():
        op.walk(replace)
    if failures:
        raise failures[0]


def _written_out(attribute: ir.Attribute) -> ir.Attribute:
    """Returns an attribute with its weights written out, or itself if it has no weights."""
    if isinstance(attribute, ir.ArrayAttr):
        entries = list(attribute)
        written = list(map(_written_out, entries))
        is_same = all(a is b for a, b in zip(entries, written, strict=True))
        return attribute if is_same else ir.ArrayAttr.get(written)
    if isinstance(attribute, ir.DictAttr):
        found = {entry.name: entry.attr for entry in attribute}
        changed = {key: _written_out(value) for key, value in found.items()}
        is_same = all(found[key] is changed[key] for key in found)
        return attribute if is_same else ir.DictAttr.get(changed)
    array = resource_array(attribute)
    return attribute if array is None else dense(array)


def _is_plain(attribute: ir.Attribute) -> bool:
    """Tells whether an attribute has no specific class, as resources do not."""
    return type(attribute) is ir.Attribute or isinstance(attribute, ir.DenseResourceElementsAttr)


def name_constants(
    module: ir.Module, weights: Mapping[str, HostArray], unnamed: Iterable[str] = ()
) -> None:
    """Gives constants of a module that are weights the names of these weights.

    Programs that read models write weights as constants, and lose their names.

    Args:
        module: The module.
        weights: Weights by name.
        unnamed: The weights with names in the module only.
    """
    resources = _of_modules.get(module)
    if resources is None:
        resources = Resources("the module", next(_numbers), (), {})
        remember_resources(module, resources)
        _by_number[resources.number] = resources
    without_names = frozenset(unnamed)
    resources.give(weights, without_names)
    named: dict[str, ir.Attribute] = {}
    constants: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name.endswith(".constant") and "value" in op.attributes:
            attribute = op.attributes["value"]
            found = _weights_of(attribute)
            name = None if found is None else found[0].name(found[1])
            if name is not None:
                named[name] = attribute
            elif found is not None and found[0].is_unnamed(found[1]):
                pass  # it is known already, and has no name
            elif isinstance(op.results[0].type, ir.RankedTensorType):
                constants.append(op)
        return ir.WalkResult.ADVANCE

    with context():
        module.operation.walk(visit)
        own = {name: x for name, x in weights.items() if name not in without_names}
        # Weights without a constant come first: biases of zeros are equal.
        alike = _Alike({name: own[name] for name in sorted(own, key=lambda name: name in named)})
        for op in constants:
            name = alike.name(op.attributes["value"], op.results[0].type)
            if name is not None and name not in named:
                named[name] = resources.handle(name, op.results[0].type)
            if name is not None:
                op.attributes["value"] = named[name]


class _Alike:
    """Weights by a key that distinguishes most of them: their types, and few of their bytes.

    Args:
        weights: The weights by name, in the order in which to take equal ones.
    """

    def __init__(self, weights: Mapping[str, HostArray]):
        self._weights = weights
        self._names: dict[tuple[Hashable, ...], deque[str]] = {}
        self._shapes = {array.shape for array in weights.values() if array.size > 1}
        for name, array in weights.items():
            if array.size > 1:
                self._names.setdefault(_outline(array), deque()).append(name)

    def name(self, attribute: ir.Attribute, kind: ir.RankedTensorType) -> str | None:
        """Returns the name of weights that a constant of several elements holds, each in turn."""
        if tuple(kind.shape) not in self._shapes or isinstance(kind.element_type, ir.IndexType):
            return None
        array = resource_array(attribute)
        if array is None:
            array = dense_to_numpy(ir.DenseElementsAttr(attribute))
        names = self._names.get(_outline(array), deque())
        for name in names:
            if np.array_equal(_bytes_of(self._weights[name]), _bytes_of(array)):
                names.remove(name)
                names.append(name)
                return name
        return None


def _outline(array: HostArray) -> tuple[Hashable, ...]:
    content = _bytes_of(array)
    few = content[:: len(content) // _COMPARED_FIRST | 1]  # odd: not the same byte of each number
    return array.dtype, array.shape, few.tobytes()


def _bytes_of(array: HostArray) -> HostArray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


# Taking them out ----------------------------------------------------------------------------------


def split(data: Content, name: str) -> tuple[Content, Resources | None]:
    """Returns text or bytecode without weights, and the weights; None if it names no weights.

    Args:
        data: The content of a file.
        name: Its name.

    Raises:
        WeightsError: if weights are cut off, or two have one name.
    """
    number = next(_numbers)
    is_bytecode = data[: len(BYTECODE)] == BYTECODE
    if is_bytecode:
        try:
            found = weights_in_bytecode(data, _prefix(number))
        except (ValueError, IndexError, KeyError):  # the reader reports the fault
            return data, None
    else:
        found = weights_in_text(data, _prefix(number), name)
    if found is None:
        return data, None
    made, names, blobs = found
    for label, count in Counter(names).items():
        if label is not None and count > 1:
            raise damaged(f"two have the name {label!r}", name)
    resources = Resources(name, number, names, {n: (x, not is_bytecode) for n, x in blobs.items()})
    _by_number[number] = resources
    return made, resources
