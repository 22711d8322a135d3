"""Types of values: shape, dtype and weak type, interned, with their MLIR form.


Here: also the axes of a mesh along which devices may hold different values, within `shard_map`.
They are part of a value's type, and in MLIR the encoding of its tensor type. The rules `varying` of
ops determine the axes of results (`dialect/program/meshes/varying_axes.py`).

Elsewhere: dtype promotion (`dtypes.py`) and attributes of ops (`attributes.py`).
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import ml_dtypes
from iree.compiler import ir

from axir.dialect.core.symbolic.texts import read_extent, write_extent

from . import dtypes
from .annotations import AnyDtype, Dtype, Extent, Options
from .context import bare_context
from .errors import DTypeError, ShapeError, check_layout
from .extended_dtypes import KeyDtype, key_dtype
from .quantized_types import is_quantized_text, quantization, quantization_of_text
from .symbolic_dims import SymbolicDim, is_symbolic_dim, symbolic_dim_bounds

Axes = frozenset[Hashable]
NOWHERE: Axes = frozenset()


@dataclass(frozen=True, kw_only=True)
class ManualAxisType:
    """The relation of an array's parts along manual axes of a mesh.

    Attributes:
        varying: Names of the axes along which the parts differ.
        unreduced: Names of the axes along which the parts are not summed yet.
        reduced: Names of the axes along which the parts have been summed.
    """

    varying: Axes = NOWHERE
    unreduced: Axes = NOWHERE
    reduced: Axes = NOWHERE


def in_order(axes: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Returns names of axes in an order that does not depend on the process.

    >>> in_order(frozenset("ji"))
    ('i', 'j')
    """
    return tuple(sorted(axes, key=lambda name: (type(name).__name__, str(name))))


def as_encoding(axes: Axes) -> ir.Attribute:
    """Returns the encoding of a tensor type with values that differ along axes.

    >>> print(as_encoding(frozenset(["i", 0])))
    [0, "i"]
    """
    with bare_context():
        return ir.ArrayAttr.get(
            [
                ir.IntegerAttr.get(ir.IntegerType.get_signless(64), name)
                if type(name) is int
                else ir.StringAttr.get(str(name))
                for name in in_order(axes)
            ]
        )


def from_encoding(encoding: ir.Attribute | None) -> Axes:
    """Returns the axes that an encoding names.

    >>> sorted(from_encoding(as_encoding(frozenset("ij"))))
    ['i', 'j']
    """
    if not isinstance(encoding, ir.ArrayAttr):
        return NOWHERE
    return frozenset(attribute.value for attribute in encoding)


_SHORT_NAMES = {
    dtypes.bool_: "bool",
    dtypes.bfloat16: "bf16",
    dtypes.float0: "float0",
    **{d: f"i{d.itemsize * 8}" for d in dtypes.SIGNED},
    **{d: f"u{d.itemsize * 8}" for d in dtypes.UNSIGNED},
    **{d: f"f{d.itemsize * 8}" for d in (dtypes.float16, dtypes.float32, dtypes.float64)},
    **{d: f"c{d.itemsize * 8}" for d in dtypes.COMPLEXES},
    **{d: d.name.replace("int", "i") for d in dtypes.NARROW_SIGNED},
    **{d: d.name.replace("int", "") for d in dtypes.NARROW_UNSIGNED},
    **{d: d.name.replace("float", "f") for d in dtypes.NARROW_FLOATS},
}


def _mlir_name(dtype: Dtype) -> str:
    bits, layout = dtype.name.removeprefix("float").split("_")
    return f"Float{bits}{layout.upper()}Type"


def _element_types() -> dict[Dtype, ir.Type]:
    with bare_context():
        table: dict[Dtype, ir.Type] = {dtypes.bool_: ir.IntegerType.get_signless(1)}
        for dtype in dtypes.SIGNED:
            table[dtype] = ir.IntegerType.get_signless(dtype.itemsize * 8)
        for dtype in dtypes.UNSIGNED:
            table[dtype] = ir.IntegerType.get_unsigned(dtype.itemsize * 8)
        table[dtypes.bfloat16] = ir.BF16Type.get()
        table[dtypes.float16] = ir.F16Type.get()
        table[dtypes.float32] = ir.F32Type.get()
        table[dtypes.float64] = ir.F64Type.get()
        for dtype in dtypes.NARROW_SIGNED:
            table[dtype] = ir.IntegerType.get_signless(ml_dtypes.iinfo(dtype).bits)
        for dtype in dtypes.NARROW_UNSIGNED:
            table[dtype] = ir.IntegerType.get_unsigned(ml_dtypes.iinfo(dtype).bits)
        for dtype in dtypes.NARROW_FLOATS:  # float8_e4m3fn is Float8E4M3FNType
            table[dtype] = getattr(ir, _mlir_name(dtype)).get()
        table[dtypes.complex64] = ir.ComplexType.get(ir.F32Type.get())
        table[dtypes.complex128] = ir.ComplexType.get(ir.F64Type.get())
        return table


_ELEMENT_TYPES = _element_types()
_DTYPES = {str(element): dtype for dtype, element in _ELEMENT_TYPES.items()}
_KEY = re.compile(r'!jaxpr\.key<"(\w+)">')


def element_type(dtype: AnyDtype) -> ir.Type:
    """Returns the MLIR element type of a dtype (`float32` is `f32`, `uint8` is `ui8`)."""
    try:
        return _ELEMENT_TYPES[dtype]
    except KeyError:
        if type(dtype) is KeyDtype:
            with bare_context():
                return ir.OpaqueType.get("jaxpr", f'key<"{dtype.impl.tag}">')
        raise DTypeError(f"dtype {dtype} has no MLIR type.") from None


def numpy_dtype(element: ir.Type) -> Dtype:
    """Returns the dtype of an MLIR element type; for quantized numbers, their integers' dtype."""
    try:
        return _DTYPES[str(element)]
    except KeyError:
        match = _KEY.fullmatch(str(element))
        if match is not None:
            return key_dtype(match[1])  # type: ignore[return-value]
        if is_quantized_text(str(element)):
            return quantization_of_text(str(element)).storage
        raise DTypeError(f"MLIR type {element} is no array element type.") from None


class ShapedArray:
    """The type of an array: shape, dtype, and whether the dtype is weak. Interned: compare by `is`.

    Within `shard_map` it also says along which axes of the mesh devices may hold different values.

    >>> import numpy as np
    >>> ShapedArray((2, 3), np.float32)
    ShapedArray(float32[2,3])
    >>> print(ShapedArray((), np.float32, weak_type=True))
    ~float32[]
    >>> print(ShapedArray((2,), np.float32, varying=frozenset("i")))
    float32[2]{V:i}
    >>> open_type = ShapedArray((SymbolicDim("b") * 2, 3), np.float32)
    >>> print(open_type, open_type.is_open, open_type.mlir)
    float32[2*b,3] True tensor<?x3xf32, {dims = ["2*b"]}>
    """

    __slots__ = ("_mlir", "dtype", "is_open", "ndim", "shape", "varying", "weak_type")
    shape: tuple[int, ...]
    dtype: Dtype
    weak_type: bool
    varying: Axes
    ndim: int
    # Whether `shape` has symbolic dimensions in place of numbers.
    is_open: bool
    _mlir: ir.Type | None

    def __new__(
        cls,
        shape: Iterable[Extent],
        dtype: AnyDtype,
        weak_type: bool = False,
        *,
        sharding: object = None,
        varying: Axes = NOWHERE,
        manual_axis_type: ManualAxisType | None = None,
    ) -> ShapedArray:
        """Returns the only object of this type; makes it at the first request."""
        if sharding is not None:
            check_layout("ShapedArray", sharding)
        if manual_axis_type is not None:
            varying = manual_axis_type.varying
        try:
            return _interned[shape, dtype, weak_type, varying]  # type: ignore[index]
        except (KeyError, TypeError):
            return _intern(cls, shape, dtype, weak_type, varying)

    @property
    def manual_axis_type(self) -> ManualAxisType:
        """How the values of devices relate along axes of a mesh, within `shard_map`."""
        return ManualAxisType(varying=self.varying)

    mat = manual_axis_type

    @property
    def sharding(self) -> None:
        """The sharding: None, because types do not have it."""
        return None

    @property
    def size(self) -> int:
        """Number of elements."""
        size = 1
        for extent in self.shape:
            size *= extent
        return size

    @property
    def mlir(self) -> ir.Type:
        """The type as an MLIR ranked tensor type."""
        if self._mlir is None:
            with bare_context():
                unchecked = ir.Location.unknown()
                self._mlir = ir.RankedTensorType.get(
                    [_DYNAMIC if is_symbolic_dim(extent) else extent for extent in self.shape],
                    element_type(self.dtype),
                    self._encoding(),
                    loc=unchecked,
                )
        return self._mlir

    def _encoding(self) -> ir.Attribute | None:
        varying = as_encoding(self.varying) if self.varying else None
        if not self.is_open:
            return varying
        texts = [write_extent(extent) for extent in self.shape if is_symbolic_dim(extent)]
        entries = {_DIMS: ir.ArrayAttr.get(list(map(ir.StringAttr.get, texts)))}
        return ir.DictAttr.get(entries if varying is None else {**entries, _VARYING: varying})

    @property
    def words(self) -> ShapedArray:
        """The type of the words, if elements are random keys; else the type itself."""
        dtype: AnyDtype = self.dtype
        if type(dtype) is not KeyDtype:
            return self
        return ShapedArray((*self.shape, dtype.words), dtypes.uint32, varying=self.varying)

    def update(self, **changes: Options) -> ShapedArray:
        """Returns the type with some of shape, dtype, weak_type and varying replaced."""
        return ShapedArray(
            changes.get("shape", self.shape),
            changes.get("dtype", self.dtype),
            changes.get("weak_type", self.weak_type),
            varying=changes.get("varying", self.varying),
            manual_axis_type=changes.get("manual_axis_type"),
        )

    def strip_weak_type(self) -> ShapedArray:
        """Returns the same type, not weak."""
        return self.update(weak_type=False) if self.weak_type else self

    def to_tangent_aval(self) -> ShapedArray:
        """Returns the type of tangents: itself for inexact dtypes, float0 otherwise."""
        if dtypes.is_inexact(self.dtype):
            return self
        return ShapedArray(self.shape, dtypes.float0, varying=self.varying)

    at_least_vspace = to_tangent_aval  # its older name

    def str_short(self, short_dtypes: bool = False) -> str:
        """Renders shape and dtype: `float32[2,3]`, or `f32[2,3]` as in jaxprs."""
        if short_dtypes:
            name = _SHORT_NAMES.get(self.dtype) or str(self.dtype)
        else:
            name = "float0" if self.dtype == dtypes.float0 else str(self.dtype)
        return f"{name}[{','.join(map(str, self.shape))}]{self._told_varying()}"

    def _told_varying(self) -> str:
        if not self.varying:
            return ""
        names = ",".join(sorted(map(str, self.varying)))
        return f"{{V:{names if len(self.varying) == 1 else f'({names})'}}}"

    def __str__(self) -> str:
        return f"~{self.str_short()}" if self.weak_type else self.str_short()

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short()}{weak})"

    def __reduce__(self) -> tuple[object, ...]:
        if self.varying:
            return _of_parts, (self.shape, self.dtype, self.weak_type, self.varying)
        return ShapedArray, (self.shape, self.dtype, self.weak_type)


def _of_parts(shape: tuple[int, ...], dtype: Dtype, weak_type: bool, varying: Axes) -> ShapedArray:
    return ShapedArray(shape, dtype, weak_type, varying=varying)


_DYNAMIC = ir.ShapedType.get_dynamic_size()
# The keys in the encoding of a tensor type: the texts of `?`, and the varying axes.
_DIMS, _VARYING = "dims", "varying"

_interned: dict[tuple[tuple[int, ...], Dtype, bool, Axes], ShapedArray] = {}


def _intern(
    cls: type[ShapedArray],
    shape: Iterable[Extent],
    dtype: AnyDtype,
    weak_type: bool,
    varying: Axes,
) -> ShapedArray:
    try:
        normal_shape = tuple([x if is_symbolic_dim(x) else int(x) for x in shape])
    except TypeError:
        raise ShapeError(
            f"{shape!r} is not a shape.", "A shape is a tuple of non-negative integers."
        ) from None
    is_open = SymbolicDim in map(type, normal_shape)
    if any(symbolic_dim_bounds(x)[0] < 0 if is_open else x < 0 for x in normal_shape):
        raise _negative(normal_shape)
    key = (normal_shape, dtypes.as_dtype(dtype), bool(weak_type), frozenset(varying))
    self = _interned.get(key)
    if self is None:
        self = object.__new__(cls)
        self.shape, self.dtype, self.weak_type, self.varying = key
        self.ndim = len(normal_shape)
        self.is_open = is_open
        self._mlir = None
        _interned[key] = self
    return self


def _negative(shape: tuple[Extent, ...]) -> ShapeError:
    for extent in shape:
        low, high = symbolic_dim_bounds(extent)
        if low < 0 <= high:
            return ShapeError(
                f"The extent {extent} of shape {shape} is negative for some sizes.",
                "State how large the dimensions are at least: symbolic_shape(..., "
                "constraints=['b >= 8']).",
            )
    return ShapeError(f"Shape {shape} has a negative extent.")


def type_of_mlir(value_type: ir.Type, weak_type: bool = False) -> ShapedArray:
    """Returns the type that an MLIR ranked tensor type stands for."""
    if not isinstance(value_type, ir.RankedTensorType):
        raise ShapeError(f"MLIR type {value_type} is not a ranked tensor.")
    quantization(value_type)  # it raises if the type is inconsistent
    shape, encoding = tuple(value_type.shape), value_type.encoding
    if not value_type.has_static_shape:
        shape = _open_shape(value_type)
        entries = ir.DictAttr(encoding)
        encoding = entries[_VARYING] if _VARYING in entries else None
    return ShapedArray(
        shape, numpy_dtype(value_type.element_type), weak_type, varying=from_encoding(encoding)
    )


def _open_shape(value_type: ir.RankedTensorType) -> tuple[Extent, ...]:
    """Returns the shape of a type with symbolic dimensions.

    Raises:
        ShapeError: if the type does not give its dynamic extents.
    """
    encoding = value_type.encoding
    texts = []
    if isinstance(encoding, ir.DictAttr) and _DIMS in encoding:
        listed = encoding[_DIMS]
        entries = list(listed) if isinstance(listed, ir.ArrayAttr) else []
        texts = [text.value for text in entries if isinstance(text, ir.StringAttr)]
    shape = tuple(value_type.shape)
    if shape.count(_DYNAMIC) != len(texts):
        raise ShapeError(
            f"MLIR type {value_type} does not say what its dynamic extents are.",
            'Write extents as numbers, or name them: tensor<?x3xf32, {dims = ["b"]}>; where '
            "StableHLO leaves them open, say which they are: --shape x=8x64.",
        )
    named = iter(texts)
    return tuple([read_extent(next(named)) if x == _DYNAMIC else x for x in shape])
