"""The StableHLO builder: every function makes verified operations of the right type."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import ml_dtypes
import numpy as np
import pytest
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.context import context
from axir.dialect.core.types import numpy_dtype


class Case:
    """A module with one function; values of any type are its arguments."""

    def __init__(self) -> None:
        self.module = ir.Module.create()
        with ir.InsertionPoint(self.module.body):
            self.function = ir.Operation.create(
                "func.func",
                attributes={
                    "sym_name": ir.StringAttr.get("f"),
                    "function_type": ir.TypeAttr.get(ir.FunctionType.get([], [])),
                },
                regions=1,
            )
        self.block = self.function.regions[0].blocks.append()

    def value(self, text: str) -> ir.Value:
        return self.block.add_argument(ir.Type.parse(f"tensor<{text}>"), ir.Location.unknown())

    def finish(self) -> None:
        types = [argument.type for argument in self.block.arguments]
        self.function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, []))
        with ir.InsertionPoint(self.block):
            ir.Operation.create("func.return")
        assert self.module.operation.verify()


@pytest.fixture
def case() -> Iterator[Case]:
    with context(), ir.Location.unknown():
        case = Case()
        with ir.InsertionPoint(case.block):
            yield case
        case.finish()


def types(values: ir.Value | list[ir.Value]) -> list[str]:
    values = [values] if isinstance(values, ir.Value) else values
    return [str(value.type)[len("tensor<") : -1] for value in values]


FLOAT_UNARY = (
    "abs negate sign floor ceil round_nearest_even round_nearest_afz exponential "
    "exponential_minus_one log log_plus_one sqrt rsqrt cbrt sine cosine tan tanh logistic asin "
    "acos atan sinh cosh asinh acosh atanh erf erfc erf_inv lgamma digamma bessel_i1e square"
).split()
FLOAT_BINARY = (
    "add subtract multiply divide remainder maximum minimum power atan2 next_after zeta polygamma"
).split()
INTEGER_BINARY = (
    "and_ or_ xor shift_left shift_right_arithmetic shift_right_logical add remainder mulhi"
).split()


def test_unary(case: Case) -> None:
    x, i, z = case.value("2x3xf32"), case.value("4xui8"), case.value("5xcomplex<f64>")
    for name in FLOAT_UNARY:
        assert types(getattr(hlo, name)(x)) == ["2x3xf32"], name
    for name in ("not_", "popcnt", "count_leading_zeros"):
        assert types(getattr(hlo, name)(i)) == ["4xui8"], name
    assert types(hlo.is_finite(x)) == types(hlo.is_inf(x)) == ["2x3xi1"]
    assert types(hlo.abs(z)) == types(hlo.real(z)) == types(hlo.imag(z)) == ["5xf64"]
    assert types(hlo.conj(z)) == ["5xcomplex<f64>"]
    assert types(hlo.reduce_precision(x, 5, 10)) == ["2x3xf32"]


def test_binary(case: Case) -> None:
    x, y, i, j = (case.value(text) for text in ("2xbf16", "2xbf16", "3xi32", "3xi32"))
    for name in FLOAT_BINARY:
        assert types(getattr(hlo, name)(x, y)) == ["2xbf16"], name
    for name in INTEGER_BINARY:
        assert types(getattr(hlo, name)(i, j)) == ["3xi32"], name
    real = case.value("2xf64")
    assert types(hlo.complex(real, real)) == ["2xcomplex<f64>"]


@pytest.mark.parametrize(
    ("text", "is_total_order", "kind"),
    [
        ("3xf16", False, "FLOAT"),
        ("3xf16", True, "TOTALORDER"),
        ("3xcomplex<f32>", False, "FLOAT"),
        ("3xui32", False, "UNSIGNED"),
        ("3xi1", False, "UNSIGNED"),
        ("3xi8", False, "SIGNED"),
    ],
)
def test_compare_kind(case: Case, text: str, is_total_order: bool, kind: str) -> None:
    x = case.value(text)
    result = hlo.compare(x, x, "NE", is_total_order=is_total_order)
    assert types(result) == ["3xi1"]
    assert kind in str(result.owner)


def test_select_clamp_convert(case: Case) -> None:
    x, p, s = case.value("2x3xf32"), case.value("2x3xi1"), case.value("f32")
    assert types(hlo.select(p, x, x)) == types(hlo.select(case.value("i1"), x, x)) == ["2x3xf32"]
    assert types(hlo.clamp(s, x, s)) == ["2x3xf32"]
    assert types(hlo.convert(x, np.uint8)) == ["2x3xui8"]
    assert types(hlo.convert(x, ir.BF16Type.get())) == ["2x3xbf16"]
    assert hlo.convert(x, np.float32) is x
    assert types(hlo.bitcast_convert(x, np.int32)) == ["2x3xi32"]
    assert types(hlo.bitcast_convert(x, np.uint16, (2, 3, 2))) == ["2x3x2xui16"]


CONSTANTS = [
    np.array([True, False, True]),
    np.array([1, -2, 3], np.int8),
    np.array([1, 2**64 - 1], np.uint64),
    np.array([1.5, np.nan], np.float16),
    np.array([1.5, -0.0], ml_dtypes.bfloat16),
    np.arange(6, dtype=np.float32).reshape(2, 3).T,
    np.array(2.5),
    np.array([1 + 2j, 3], np.complex64),
    np.array([[1j]], np.complex128),
    np.zeros((0, 3), np.float32),
    np.zeros((2, 0), bool),
    np.full((1000, 1000), 7, np.uint8),
    np.zeros((3,), bool),
]


def read_back(value: ir.Value) -> np.ndarray:
    """The array that a `stablehlo.constant` holds."""
    attribute = value.owner.attributes["value"]
    return np.array(attribute, numpy_dtype(value.type.element_type)).reshape(value.type.shape)


@pytest.mark.parametrize("array", CONSTANTS, ids=lambda a: f"{a.dtype}{list(a.shape)}")
def test_constant(case: Case, array: np.ndarray) -> None:
    value = hlo.constant(array)
    assert hlo.shape_of(value) == array.shape
    assert numpy_dtype(hlo.element_type_of(value)) == array.dtype
    assert hlo.size_of(value) == array.size
    assert hlo.bytes_of(value) == array.nbytes
    if array.dtype.kind in "biuf" and array.ndim:  # NumPy reads no other attributes
        np.testing.assert_array_equal(read_back(value), array)


def test_constant_text(case: Case) -> None:
    def text(value: ir.Value) -> str:
        return re.search(r"dense<.*> : tensor<[^>]*>+", str(value.owner)).group()

    assert text(hlo.constant(np.array([1 + 2j, 3], np.complex64))) == (
        "dense<[(1.000000e+00,2.000000e+00), (3.000000e+00,0.000000e+00)]> : tensor<2xcomplex<f32>>"
    )
    assert text(hlo.constant(np.array([1.5, -0.0], ml_dtypes.bfloat16))) == (
        "dense<[1.500000e+00, -0.000000e+00]> : tensor<2xbf16>"
    )
    assert text(hlo.constant(np.zeros((500, 500)))) == "dense<0.000000e+00> : tensor<500x500xf64>"
    assert text(hlo.constant(np.array([0.0, -0.0]))).startswith("dense<[0.000000e+00, -0.0")
    assert text(hlo.constant(3, np.float32)) == "dense<3.000000e+00> : tensor<f32>"
    assert text(hlo.constant(True)) == "dense<true> : tensor<i1>"
    assert text(hlo.full(1 + 1j, (2, 2), np.complex128)) == (
        "dense<(1.000000e+00,1.000000e+00)> : tensor<2x2xcomplex<f64>>"
    )
    assert text(hlo.full(255, (3,), np.uint8)) == "dense<255> : tensor<3xui8>"
    assert text(hlo.full(0, (3, 0), np.int32)) == "dense<> : tensor<3x0xi32>"
    x = case.value("4xbf16")
    assert text(hlo.scalar_like(x, 0.5)) == "dense<5.000000e-01> : tensor<4xbf16>"
    assert text(hlo.full_like(x, -np.inf)) == "dense<0xFF80> : tensor<4xbf16>"


def test_shape(case: Case) -> None:
    x, scalar, start = case.value("2x3x4xi8"), case.value("i8"), case.value("i64")
    assert types(hlo.iota((2, 5), 1, np.uint32)) == ["2x5xui32"]
    assert types(hlo.broadcast_in_dim(scalar, (2, 3), ())) == ["2x3xi8"]
    assert types(hlo.broadcast_scalar(scalar, (7,))) == ["7xi8"]
    assert hlo.broadcast_scalar(scalar, ()) is scalar
    assert types(hlo.reshape(x, (6, 4))) == ["6x4xi8"]
    assert hlo.reshape(x, (2, 3, 4)) is x
    assert types(hlo.transpose(x, (2, 0, 1))) == ["4x2x3xi8"]
    assert types(hlo.concatenate([x, x], 1)) == ["2x6x4xi8"]
    assert types(hlo.pad(x, scalar, (1, 0, -1), (0, 2, 0), (1, 0, 0))) == ["4x5x3xi8"]
    assert types(hlo.slice(x, (0, 1, 0), (2, 3, 4), (1, 1, 3))) == ["2x2x2xi8"]
    assert types(hlo.dynamic_slice(x, [start] * 3, (1, 2, 3))) == ["1x2x3xi8"]
    update = case.value("1x1x4xi8")
    assert types(hlo.dynamic_update_slice(x, update, [start] * 3)) == ["2x3x4xi8"]
    assert types(hlo.reverse(x, (0, 2))) == ["2x3x4xi8"]
    gathered = hlo.gather(
        x,
        case.value("5x1xi32"),
        offset_dims=(1, 2),
        collapsed_slice_dims=(0,),
        start_index_map=(0,),
        index_vector_dim=1,
        slice_sizes=(1, 3, 2),
    )
    assert types(gathered) == ["5x3x2xi8"]
    batched = hlo.gather(
        x,
        case.value("2x6x1xi32"),
        offset_dims=(2,),
        collapsed_slice_dims=(1,),
        start_index_map=(1,),
        index_vector_dim=2,
        slice_sizes=(1, 1, 4),
        operand_batching_dims=(0,),
        start_indices_batching_dims=(0,),
    )
    assert types(batched) == ["2x6x4xi8"]


def test_structured(case: Case) -> None:
    x, i = case.value("4x6xf32"), case.value("4x6xi32")
    zero, none = hlo.constant(np.float32(0)), hlo.constant(np.int32(0))
    assert types(hlo.reduce([x], [zero], (1,), hlo.add)) == ["4xf32"]

    def largest(*pairs: ir.Value) -> list[ir.Value]:
        x0, i0, x1, i1 = pairs
        is_first = hlo.compare(x0, x1, "GE")
        return [hlo.select(is_first, x0, x1), hlo.select(is_first, i0, i1)]

    assert types(hlo.reduce([x, i], [zero, none], (0, 1), largest)) == ["f32", "i32"]
    pooled = hlo.reduce_window(
        [x, i], [zero, none], (2, 3), largest, window_strides=(2, 1), padding=((0, 1), (1, 1))
    )
    assert types(pooled) == ["2x6xf32", "2x6xi32"]
    spread = hlo.reduce_window(
        [x], [zero], (2, 2), hlo.add, base_dilations=(2, 1), window_dilations=(1, 3)
    )
    assert types(spread) == ["6x3xf32"]
    scattered = hlo.scatter(
        [x],
        case.value("3x1xi32"),
        [case.value("3x6xf32")],
        hlo.add,
        update_window_dims=(1,),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        index_vector_dim=1,
    )
    assert types(scattered) == ["4x6xf32"]
    unpooled = hlo.select_and_scatter(
        x,
        case.value("2x3xf32"),
        zero,
        lambda a, b: hlo.compare(a, b, "GE"),
        hlo.add,
        window_dimensions=(2, 2),
        window_strides=(2, 2),
        padding=((0, 0), (0, 0)),
    )
    assert types(unpooled) == ["4x6xf32"]
    ordered = hlo.sort([x, i], 1, lambda a, b, c, d: hlo.compare(a, b, "LT", is_total_order=True))
    assert types(ordered) == ["4x6xf32", "4x6xi32"]
    assert types(hlo.top_k(x, 2)) == ["4x2xf32", "4x2xi32"]
    bits = hlo.rng_bit_generator(case.value("2xui64"), (5,), np.uint32, "THREE_FRY")
    assert types(bits) == ["2xui64", "5xui32"]


def test_linalg(case: Case) -> None:
    a, b = case.value("7x2x3xf32"), case.value("7x5x3xf32")
    product = hlo.dot_general(a, b, ((2,), (2,)), ((0,), (0,)), precision="HIGHEST")
    assert types(product) == ["7x2x5xf32"]
    small = case.value("3x4xi8")
    wide = hlo.dot_general(small, small, ((0,), (0,)), element=np.int32)
    assert types(wide) == ["4x4xi32"]
    image, kernel = case.value("2x9x8x4xf32"), case.value("3x2x2x6xf32")
    convolved = hlo.convolution(
        image,
        kernel,
        dimension_numbers=((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2)),
        window_strides=(2, 1),
        padding=((1, 1), (-1, 0)),
        lhs_dilation=(1, 2),
        rhs_dilation=(2, 1),
        feature_group_count=2,
        precision=("HIGH", "DEFAULT"),
    )
    assert types(convolved) == ["2x4x13x6xf32"]
    z = case.value("3x8xcomplex<f32>")
    assert types(hlo.fft(z, "FFT", (8,))) == ["3x8xcomplex<f32>"]
    assert types(hlo.fft(case.value("3x8xf32"), "RFFT", (8,))) == ["3x5xcomplex<f32>"]
    assert types(hlo.fft(case.value("3x5xcomplex<f32>"), "IRFFT", (8,))) == ["3x8xf32"]
    matrix = case.value("2x4x4xf64")
    assert types(hlo.cholesky(matrix, is_lower=False)) == ["2x4x4xf64"]
    right = case.value("2x4x3xf64")
    assert types(hlo.triangular_solve(matrix, right, transposition="ADJOINT")) == ["2x4x3xf64"]


def test_control(case: Case) -> None:
    count, x = case.value("i32"), case.value("3xf32")

    def is_running(i: ir.Value, _: ir.Value) -> ir.Value:
        return hlo.compare(i, hlo.scalar_like(i, 10), "LT")

    def step(i: ir.Value, carry: ir.Value) -> list[ir.Value]:
        return [hlo.add(i, hlo.scalar_like(i, 1)), hlo.sine(carry)]

    assert types(hlo.while_([count, x], is_running, step)) == ["i32", "3xf32"]
    branches = [lambda: x, lambda: hlo.cosine(x), lambda: hlo.sine(x)]
    assert types(hlo.case(count, branches, [x.type])) == ["3xf32"]
    assert types(hlo.if_(case.value("i1"), branches[0], branches[1], [x.type])) == ["3xf32"]
    assert types(hlo.optimization_barrier([x, count])) == ["3xf32", "i32"]
    assert types(hlo.call("f", [], [])) == []
    case.block.operations[len(case.block.operations) - 1].erase()  # the arguments of f grow
    assert types(hlo.custom_call("host.lu", [x], [x.type])) == ["3xf32"]


def test_bodies_end_by_return(case: Case) -> None:
    flag = case.value("i1")

    def region_with_return() -> list[ir.Value]:
        return [hlo.not_(flag)]

    results = hlo.if_(flag, region_with_return, lambda: [flag], [flag.type])
    assert str(results[0].owner).count("stablehlo.return") == 2


BAD: dict[str, Callable[[Case], object]] = {
    "add": lambda c: hlo.add(c.value("3xf32"), c.value("4xf32")),
    "multiply": lambda c: hlo.multiply(c.value("3xf32"), c.value("3xf64")),
    "sine": lambda c: hlo.sine(c.value("3xi32")),
    "and": lambda c: hlo.and_(c.value("3xf32"), c.value("3xf32")),
    "concatenate": lambda c: hlo.concatenate([c.value("2x3xf32"), c.value("3x2xf32")], 0),
    "broadcast_in_dim": lambda c: hlo.broadcast_in_dim(c.value("3xf32"), (4,), (0,)),
    "reshape": lambda c: hlo.reshape(c.value("3xf32"), (4,)),
    "dot_general": lambda c: hlo.dot_general(c.value("3xf32"), c.value("4xf32"), ((0,), (0,))),
    "reduce": lambda c: hlo.reduce(
        [c.value("3xf32")], [c.value("f64")], (0,), lambda a, b: hlo.convert(b, np.float32)
    ),
    "while_": lambda c: hlo.while_([c.value("i32")], lambda i: i, lambda i: i),
    "add_in_body": lambda c: hlo.reduce(
        [c.value("3xf32")], [c.value("f32")], (0,), lambda a, b: hlo.add(a, c.value("i32"))
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_rejected_operations_name_the_builder(case: Case, name: str) -> None:
    before = str(case.module).count("stablehlo.")
    expected = f"stablehlo.{name.removesuffix('_in_body')}("
    with pytest.raises(hlo.StableHLOError) as raised:
        BAD[name](case)
    assert str(raised.value).startswith(expected)
    assert str(case.module).count("stablehlo.") == before  # nothing invalid stays behind


def test_every_builder_is_exported() -> None:
    assert sorted(hlo.__all__) == hlo.__all__
    assert all(callable(getattr(hlo, name)) for name in hlo.__all__)


def test_location_is_the_ambient_one(case: Case) -> None:
    x = case.value("2xf32")
    with ir.Location.file("model.py", 12, 3):
        assert 'loc("model.py":12:3)' in str(hlo.sine(x).owner.location)
