"""Parameters of primitives as MLIR attributes, and back.

| parameter | attribute | parameter | attribute |
| --- | --- | --- | --- |
| bool | `true` | tuple of ints | `array<i64: 0, 1>` |
| int | `3 : i64` | other tuple | `[...]` |
| float | `1.5 : f64` | `None` | `unit` |
| str | `"x"` | `numpy.dtype` | `f32` (a type) |
| `numpy.ndarray` | `dense<...>` | `Function` | `@name` |
| named tuple | `{field = ...}` | symbolic dimension | `{dim = "2*b"}` |
| | | anything else | `{opaque = "repr"}` (prints only) |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from iree.compiler import ir

from axir.dialect.core.symbolic.texts import read_extent, write_extent

from . import dtypes
from .annotations import Dtype, Foreign, HostArray, Param
from .context import bare_context
from .errors import SerializationError
from .symbolic_dims import SymbolicDim
from .types import element_type, numpy_dtype

OPAQUE = "opaque"
DIMENSION = "dim"


class Symbols(Protocol):
    """Functions by symbol name."""

    def __getitem__(self, name: str, /) -> object:
        """Returns a function; raises KeyError."""
        ...


def encode(value: object) -> ir.Attribute:
    """Returns the MLIR attribute of a parameter value."""
    encoder = _ENCODERS.get(type(value))
    if encoder is None:
        encoder = _encoder_for(value)
    with bare_context(), ir.Location.unknown():
        return encoder(value)


def _encode_tuple(value: tuple[object, ...]) -> ir.Attribute:
    if all(type(item) is int for item in value):
        return ir.DenseI64ArrayAttr.get(list(value))
    return ir.ArrayAttr.get([encode(item) for item in value])


def dense(value: HostArray) -> ir.Attribute:
    """Returns a dense elements attribute that holds an array.

    A uniform array becomes a splat, so that a large constant of zeros stays one number.
    """
    data = np.ascontiguousarray(value)
    if data.size > 1:
        # Compared as bytes: -0.0 is not 0.0 here, and nan is nan.
        words = data.reshape(-1).view(np.uint8).reshape(data.size, -1)
        data = data.reshape(-1)[:1] if (words == words[0]).all() else data
    with bare_context(), ir.Location.unknown():
        shaped = ir.RankedTensorType.get(value.shape, element_type(value.dtype))
        return ir.DenseElementsAttr.get(data, type=shaped)


def _encoder_for(value: object) -> Callable[[Param], ir.Attribute]:
    if hasattr(value, "_fields") and isinstance(value, tuple):
        return lambda v: ir.DictAttr.get({f: encode(getattr(v, f)) for f in v._fields})
    for python_type, encoder in _ENCODERS.items():
        if isinstance(value, python_type):
            return encoder
    if isinstance(value, np.integer):
        return lambda v: encode(int(v))
    if isinstance(value, np.floating):
        return lambda v: encode(float(v))
    if hasattr(value, "symbol_name"):  # a Function; its room imports this one
        return lambda v: ir.FlatSymbolRefAttr.get(v.symbol_name)
    return _encode_opaque


def _encode_opaque(value: object) -> ir.Attribute:
    return ir.DictAttr.get({OPAQUE: ir.StringAttr.get(repr(value))})


def is_opaque(value: object) -> bool:
    """Tells whether a parameter is, or holds, a Python object that cannot be read back from text.

    >>> is_opaque((1, "x")), is_opaque((1, print))
    (False, True)
    """
    if isinstance(value, tuple):
        return any(map(is_opaque, value))
    return type(value) not in _ENCODERS and _encoder_for(value) is _encode_opaque


_ENCODERS: dict[type, Callable[[Param], ir.Attribute]] = {
    bool: lambda v: ir.BoolAttr.get(v),
    int: lambda v: ir.IntegerAttr.get(ir.IntegerType.get_signless(64), v),
    float: lambda v: ir.FloatAttr.get(ir.F64Type.get(), v),
    str: lambda v: ir.StringAttr.get(v),
    type(None): lambda v: ir.UnitAttr.get(),
    tuple: _encode_tuple,
    np.ndarray: lambda v: dense(v),
    np.dtype: lambda v: ir.TypeAttr.get(element_type(v)),
    SymbolicDim: lambda v: ir.DictAttr.get({DIMENSION: ir.StringAttr.get(write_extent(v))}),
}
# Each concrete dtype has its own class (numpy.dtypes.Float32DType ...).
_ENCODERS |= {type(d): _ENCODERS[np.dtype] for d in (*dtypes.ALL, *dtypes.NARROW)}


def decode(attribute: ir.Attribute, functions: Symbols, fields: type | None = None) -> Param:
    """Returns the parameter that an attribute encodes.

    Args:
        attribute: A result of `encode`, or a parsed attribute.
        functions: The functions of the module by symbol name.
        fields: The named tuple class, if the parameter is a named tuple.

    Raises:
        SerializationError: for opaque parameters and attributes that encode nothing.
    """
    decoder = _DECODERS.get(type(attribute))
    if decoder is not None:
        return decoder(attribute)
    if isinstance(attribute, ir.ArrayAttr):
        return tuple(decode(item, functions) for item in attribute)
    if isinstance(attribute, ir.FlatSymbolRefAttr):
        return _decode_symbol(attribute.value, functions)
    if isinstance(attribute, ir.DenseElementsAttr):
        return dense_to_numpy(attribute)
    if isinstance(attribute, ir.DictAttr):
        return _decode_dictionary(attribute, functions, fields)
    raise _formless(attribute)


def _formless(attribute: ir.Attribute) -> SerializationError:
    return SerializationError(
        f"Attribute {attribute} is not the form of any parameter.",
        'Parameters are written true, 3 : i64, 0.5 : f64, "text", unit, f32, array<i64: 0, 1>, '
        "[...], {field = ...}, dense<...> : tensor<...> and @function.",
    )


_DECODERS: dict[type, Callable[[ir.Attribute], Param]] = {
    ir.BoolAttr: lambda a: a.value,
    ir.IntegerAttr: lambda a: a.value,
    ir.FloatAttr: lambda a: a.value,
    ir.StringAttr: lambda a: a.value,
    ir.UnitAttr: lambda a: None,
    ir.DenseI64ArrayAttr: lambda a: tuple(a),
    ir.TypeAttr: lambda a: numpy_dtype(a.value),
}


def _decode_symbol(name: str, functions: Symbols) -> object:
    try:
        return functions[name]
    except KeyError:
        raise SerializationError(
            f"The module has no function @{name}.",
            "Correct the name, or add the function to the module.",
        ) from None


def _decode_dictionary(attribute: ir.DictAttr, functions: Symbols, fields: Param) -> object:
    items = {attribute[i].name: attribute[i].attr for i in range(len(attribute))}
    if OPAQUE in items:
        raise SerializationError(
            f"Parameter {items[OPAQUE]} is a Python object without a textual form.",
            "A saved module holds numbers, strings, tuples, dtypes, arrays and functions only.",
        )
    if DIMENSION in items and isinstance(items[DIMENSION], ir.StringAttr):
        return read_extent(items[DIMENSION].value)
    if fields is None:
        raise _formless(attribute)
    return fields(**{name: decode(value, functions) for name, value in items.items()})


def dense_to_numpy(attribute: ir.DenseElementsAttr) -> HostArray:
    """Returns the array that a dense elements attribute holds."""
    shaped = ir.RankedTensorType(attribute.type)
    dtype = numpy_dtype(shaped.element_type)
    shape = tuple(shaped.shape)
    by_text = dtype == dtypes.bfloat16 or dtypes.is_complex(dtype) or dtypes.is_narrow(dtype)
    if by_text or attribute.is_splat:
        return _dense_by_text(attribute, dtype, shape)
    return np.array(attribute, dtype=dtype).reshape(shape)


def _dense_by_text(attribute: ir.Attribute, dtype: Dtype, shape: tuple[int, ...]) -> HostArray:
    text = str(attribute)
    body = text[text.index("<") + 1 : text.rindex("> :")]
    if body.startswith('"0x'):
        flat = np.frombuffer(bytes.fromhex(body[3:-1]), dtype=dtype)
    else:
        flat = np.array([_number(item, dtype) for item in _leaves(body, dtype)], dtype=dtype)
    if flat.size == 1:
        return np.full(shape, flat[0], dtype=dtype)
    return flat.reshape(shape).copy()


def _leaves(body: str, dtype: Dtype) -> list[str]:
    if dtypes.is_complex(dtype):
        return [part.split(")")[0] for part in body.split("(")[1:]]
    return [item for item in body.replace("[", " ").replace("]", " ").split(",") if item.strip()]


def _number(item: str, dtype: Dtype) -> Foreign:
    item = item.strip()
    if dtypes.is_complex(dtype):
        real, imaginary = item.split(",")
        part = dtypes.real_dtype(dtype)
        return complex(_number(real, part), _number(imaginary, part))
    if dtype == dtypes.bool_:
        return item == "true"
    if item.startswith("0x"):
        width = np.dtype(f"uint{dtype.itemsize * 8}")
        return np.array(int(item, 16), dtype=width).view(dtype)[()]
    return float(item) if dtypes.is_float(dtype) else int(item)
