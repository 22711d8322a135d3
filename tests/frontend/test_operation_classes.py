"""Classes of StableHLO's operations, as MLIR's bindings have them, in rules of primitives."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import axir
from axir import core
from axir.dialect.builders.stablehlo import StableHLOError
from axir.dialect.builders.stablehlo.operation_classes import class_names, operation_class
from axir.dialect.core.context import context, ir
from axir.errors import MissingRuleError
from axir.interpreters import mlir

hlo: Any = mlir.hlo


def lowered(rule: Any, result: Any, *arguments: Any) -> Any:
    """Returns the results of a compiled program of one primitive with a rule."""
    primitive = core.Primitive("user_rule")
    primitive.def_abstract_eval(lambda *avals: core.ShapedArray(result.shape, result.dtype))
    mlir.register_lowering(primitive, rule)
    return np.asarray(axir.jit(primitive.bind)(*arguments))


@pytest.mark.parametrize("dialect", ["stablehlo", "chlo"])
def test_every_class_is_of_an_operation_that_mlir_knows(dialect: str) -> None:
    names = class_names(dialect)
    assert len(names) == {"stablehlo": 118, "chlo": 50}[dialect]
    context().load_all_available_dialects()
    for name in names:
        kind: Any = operation_class(dialect, name)
        assert issubclass(kind, ir.OpView)
        assert context().is_registered_operation(kind.OPERATION_NAME), name


def test_elementwise_classes_tell_the_types_of_results() -> None:
    x = np.array([0.25, 1.5], np.float32)

    def rule(ctx: Any, x: Any, y: Any) -> Any:
        is_less = hlo.CompareOp(x, y, hlo.ComparisonDirectionAttr.get("LT"))
        chosen = hlo.SelectOp(is_less, hlo.SineOp(x), hlo.MaxOp(hlo.SubtractOp(x, y), y))
        return [hlo.ClampOp(mlir.ir_constant(0.0), chosen, mlir.ir_constant(0.9)).result]

    expected = np.clip(np.where(x < 1, np.sin(x), np.maximum(x - 1, 1)), 0, 0.9)
    found = lowered(rule, x, x, np.ones(2, np.float32))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_classes_with_dimensions_take_numbers() -> None:
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)

    def rule(ctx: Any, x: Any) -> Any:
        (out,) = ctx.avals_out
        turned = hlo.TransposeOp(x, [1, 0])
        part = hlo.SliceOp(turned, [1, 0], [3, 2], [1, 1])
        padded = hlo.PadOp(part, mlir.ir_constant(np.float32(9)), [1, 0], [0, 0], [0, 0])
        wide = hlo.ConcatenateOp([padded, hlo.ReverseOp(padded, [0])], 1)
        picked = hlo.DynamicSliceOp(wide, [mlir.ir_constant(np.int32(1))] * 2, [2, 3])
        rounded = hlo.ReducePrecisionOp(picked, 8, 10)
        return hlo.ReshapeOp(mlir.aval_to_ir_type(ctx, out), rounded).results

    padded = np.pad(x.T[1:], ((1, 0), (0, 0)), constant_values=9)
    wide = np.concatenate([padded, padded[::-1]], 1)
    np.testing.assert_array_equal(lowered(rule, np.empty(6, np.float32), x), wide[1:3, 1:4].ravel())


def test_regions_are_filled_in_by_the_rule() -> None:
    x = np.array([[3.0, -1.0], [2.0, 5.0]], np.float32)

    def rule(ctx: Any, x: Any) -> Any:
        scalar, line = mlir.aval_to_ir_type(core.ShapedArray((), np.float32)), ctx.avals_out[0].mlir
        total = hlo.ReduceOp([line], [x], [mlir.ir_constant(np.float32(0))], [0])
        block = total.regions[0].blocks.append(scalar, scalar)
        with ir.InsertionPoint(block):
            hlo.ReturnOp([hlo.AddOp(*block.arguments)])
        ordered = hlo.SortOp([line], total.results, dimension=0, is_stable=True)
        block = ordered.regions[0].blocks.append(scalar, scalar)
        with ir.InsertionPoint(block):
            less = hlo.ComparisonDirectionAttr.get("LT")
            hlo.ReturnOp([hlo.CompareOp(*block.arguments, comparison_direction=less)])
        return ordered.results

    np.testing.assert_array_equal(lowered(rule, x[0], x), np.sort(x.sum(0)))


def test_attributes_have_classes() -> None:
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)

    def rule(ctx: Any, x: Any, places: Any) -> Any:
        product = hlo.DotGeneralOp(
            mlir.aval_to_ir_type(core.ShapedArray((2, 2), np.float32)),
            x,
            x,
            hlo.DotDimensionNumbers.get([], [], [1], [1]),
            precision_config=[hlo.PrecisionAttr.get("HIGHEST")] * 2,
        )
        numbers = hlo.GatherDimensionNumbers.get([1], [0], [], [], [0], 1)
        return hlo.GatherOp(product, places, numbers, [1, 2], indices_are_sorted=False).result

    places = np.array([[1], [0], [1]], np.int32)
    expected = (x @ x.T)[places[:, 0]]
    np.testing.assert_allclose(lowered(rule, expected, x, places), expected, rtol=1e-6)


def test_empty_lists_and_bools_of_dimensions_are_what_the_operation_asks_for() -> None:
    x = np.arange(3.0, dtype=np.float32)
    texts: list[str] = []

    def rule(ctx: Any, x: Any) -> Any:
        made = hlo.CustomCallOp(
            [x.type], [x], "Sharding", called_computations=[], output_operand_aliases=[]
        )
        for name in ("called_computations", "output_operand_aliases"):
            texts.append(type(made.attributes[name]).__name__)
        made.erase()
        number = x.type.element_type
        image = hlo.ReshapeOp(ir.RankedTensorType.get([1, 3, 1], number), x)
        kernel = hlo.ReshapeOp(ir.RankedTensorType.get([3, 1, 1], number), x)
        numbers = hlo.ConvDimensionNumbers.get(0, 2, [1], 1, 2, [0], 0, 2, [1])
        line = ir.RankedTensorType.get([1, 1, 1], number)
        turned = hlo.ConvolutionOp(line, image, kernel, numbers, 1, 1, window_reversal=[True])
        return hlo.ReshapeOp(mlir.aval_to_ir_type(ctx, ctx.avals_out[0]), turned).results

    assert lowered(rule, x[0], x) == x @ x[::-1]
    assert texts == ["ArrayAttr"] * 2


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("ComparisonTypeAttr", ("FLOAT",), "#stablehlo<comparison_type FLOAT>"),
        ("FftTypeAttr", ("RFFT",), "#stablehlo<fft_type RFFT>"),
        ("TransposeAttr", ("ADJOINT",), "#stablehlo<transpose ADJOINT>"),
        ("RngAlgorithmAttr", ("THREE_FRY",), "#stablehlo<rng_algorithm THREE_FRY>"),
        ("RngDistributionAttr", ("UNIFORM",), "#stablehlo<rng_distribution UNIFORM>"),
        ("ChannelHandle", (3, 1), "#stablehlo.channel_handle<handle = 3, type = 1>"),
        ("TypeExtensions", ([-1, 4],), "#stablehlo.bounds<?, 4>"),
        ("TokenType", (), "!stablehlo.token"),
        (
            "ScatterDimensionNumbers",
            ([1], [0], [], [], [0], 1),
            "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
            "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>",
        ),
        (
            "ConvDimensionNumbers",
            (0, 3, [1, 2], 2, 3, [0, 1], 0, 1, [2, 3]),
            "#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, f, 0, 1]>",
        ),
    ],
)
def test_attributes_have_mlirs_texts(name: str, arguments: tuple[Any, ...], text: str) -> None:
    context().load_all_available_dialects()
    with context():
        assert str(getattr(hlo, name).get(*arguments)) == text


def test_a_wrong_operation_names_its_operands() -> None:
    def rule(ctx: Any, x: Any) -> Any:
        return hlo.AddOp(x, mlir.ir_constant(np.int32(1))).result

    with pytest.raises(StableHLOError, match=r"AddOp\(tensor<2xf32>, tensor<i32>\): "):
        lowered(rule, np.ones(2, np.float32), np.ones(2, np.float32))

    def described(ctx: Any, x: Any) -> Any:
        return hlo.CompareOp(x, x, 3.5).result

    with pytest.raises(StableHLOError, match=r"(?s)comparison_direction is 3.5.*Attribute.parse"):
        lowered(described, np.ones(2, bool), np.ones(2, np.float32))
    with pytest.raises(AttributeError, match="has no attribute 'NoSuchOp'"):
        _ = hlo.NoSuchOp


def test_a_rule_returns_values() -> None:
    with pytest.raises(MissingRuleError, match=r"(?s)'user_rule' gave .*not a value.*ion.res"):
        lowered(lambda ctx, x: [hlo.NegOp(x)], np.ones(2, np.float32), np.ones(2, np.float32))


PROGRAM = """
import axir.as_jax
import numpy as np
import jax, jax.numpy as jnp
import jaxlib.mlir.ir, jaxlib.mlir.dialects.stablehlo
from jax._src.lib.mlir import ir
from jax._src.lib.mlir.dialects import chlo, func, hlo
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

assert ir is jaxlib.mlir.ir and hlo is jaxlib.mlir.dialects.stablehlo
assert func.FuncOp.OPERATION_NAME == "func.func" and "AddOp" in dir(hlo) and "ErfOp" in dir(chlo)

# x * y + z, with all that differentiation, vectorization and compilation ask for.
fused_p = Primitive("fused")
fused = fused_p.bind
fused_p.def_impl(lambda x, y, z: np.add(np.multiply(x, y), z))
fused_p.def_abstract_eval(lambda x, y, z: jax.core.ShapedArray(x.shape, x.dtype))

def lower(ctx, x, y, z):
    return [hlo.AddOp(hlo.MulOp(x, y), z).result]

mlir.register_lowering(fused_p, lower, platform="cpu")

def jvp(primals, tangents):
    (x, y, z), (dx, dy, dz) = primals, [ad.instantiate_zeros(t) for t in tangents]
    return fused(x, y, z), fused(dx, y, fused(x, dy, dz))

ad.primitive_jvps[fused_p] = jvp

def transpose(ct, x, y, z):
    if ad.is_undefined_primal(x):
        return fused(ct, y, jnp.zeros_like(ct)), None, ct if ad.is_undefined_primal(z) else None
    return None, fused(x, ct, jnp.zeros_like(ct)), ct if ad.is_undefined_primal(z) else None

ad.primitive_transposes[fused_p] = transpose

def batch(args, axes):
    size = next(x.shape[axis] for x, axis in zip(args, axes) if axis is not None)
    return fused(*[batching.bdim_at_front(x, axis, size) for x, axis in zip(args, axes)]), 0

batching.primitive_batchers[fused_p] = batch

f = lambda x, y: fused(x, y, y)
x, y = jnp.array([1.0, 2.0, 3.0]), jnp.array([4.0, 5.0, 6.0])
print(f(2.0, 10.0), jax.jit(f)(2.0, 10.0))
print(*jax.jvp(f, (2.0, 10.0), (1.0, 1.0)))
print(jax.grad(f)(2.0, 10.0), jax.grad(jax.jit(f), 1)(2.0, 10.0))
print(jax.vmap(f)(x, y), jax.jit(jax.vmap(jax.grad(f, 1)))(x, y))
print("stablehlo.multiply" in jax.jit(f).lower(2.0, 10.0).as_text())
with mlir.make_ir_context(), ir.Location.unknown():
    print(hlo.multiply.__name__, chlo.ErfOp.OPERATION_NAME)
"""


def test_a_primitive_of_the_users_has_all_rules_under_jax_names() -> None:
    finished = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300, check=False
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.splitlines() == [
        "30.0 30.0",
        "30.0 13.0",
        "10.0 3.0",
        "[ 8. 15. 24.] [2. 3. 4.]",
        "True",
        "multiply chlo.erf",
    ]
