"""A user's primitive, rule by rule: missing rules are named, defined rules work."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import core, lax
from axir.dialect.program.op_table import USER_OPS
from axir.interpreters import ad, batching, mlir, xla


def _evaluate(x, y, z):
    return np.add(np.multiply(x, y), z)


def _abstract(x, y, z):
    return core.ShapedArray(x.shape, x.dtype)


def _lower(context, x, y, z):
    return [mlir.hlo.add(mlir.hlo.multiply(x, y), z)]


class MultiplyAdd:
    """The fused multiply-add x * y + z, with rules that are defined one after the other."""

    def __init__(self) -> None:
        self.primitive = core.Primitive("multiply_add")

    def __call__(self, x, y, z):
        return self.primitive.bind(x, y, z)

    def square_add(self, a, b):
        return self(a, a, b)

    def define_jvp(self) -> None:
        def value_and_jvp(primals, tangents):
            x, y, z = primals
            dx, dy, dz = tangents

            def made(tangent):
                return lax.zeros_like_array(x) if type(tangent) is ad.Zero else tangent

            return self(x, y, z), self(made(dx), y, self(x, made(dy), made(dz)))

        ad.primitive_jvps[self.primitive] = value_and_jvp

    def define_transpose(self) -> None:
        def transpose(ct, x, y, z):
            if ad.is_undefined_primal(x):
                return self(ct, y, lax.zeros_like_array(y)), None, ct
            return None, self(x, ct, lax.zeros_like_array(x)), ct

        ad.primitive_transposes[self.primitive] = transpose

    def define_batch(self) -> None:
        def batch(operands, axes):
            assert isinstance(operands, tuple)
            assert isinstance(axes, tuple)
            size = next(x.shape[a] for x, a in zip(operands, axes, strict=True) if a is not None)
            moved = [
                batching.bdim_at_front(x, a, size) for x, a in zip(operands, axes, strict=True)
            ]
            return self(*moved), 0

        batching.primitive_batchers[self.primitive] = batch


@pytest.fixture
def multiply_add() -> Iterator[MultiplyAdd]:
    yield MultiplyAdd()
    USER_OPS.pop("multiply_add", None)


def test_missing_rules_are_named_in_turn(multiply_add: MultiplyAdd) -> None:
    f, primitive = multiply_add.square_add, multiply_add.primitive

    def missing(call) -> str:
        with pytest.raises(NotImplementedError) as caught:
            call()
        return str(caught.value).splitlines()[0]

    assert missing(lambda: f(2.0, 10.0)) == "Evaluation rule for 'multiply_add' not implemented"
    primitive.def_impl(_evaluate)
    assert f(2.0, 10.0) == 14.0
    assert (
        missing(lambda: axir.jit(f)(2.0, 10.0))
        == "Abstract evaluation for 'multiply_add' not implemented"
    )
    primitive.def_abstract_eval(_abstract)
    assert missing(lambda: axir.jit(f)(2.0, 10.0)) == (
        "MLIR translation rule for primitive 'multiply_add' not found for platform cpu"
    )
    mlir.register_lowering(primitive, _lower, platform="cpu")
    assert float(axir.jit(f)(2.0, 10.0)) == 14.0
    assert (
        missing(lambda: axir.jvp(f, (2.0, 10.0), (1.0, 1.0)))
        == "Differentiation rule for 'multiply_add' not implemented"
    )
    multiply_add.define_jvp()
    assert [float(x) for x in axir.jvp(f, (2.0, 10.0), (1.0, 1.0))] == [14.0, 5.0]
    assert missing(lambda: axir.grad(f)(2.0, 10.0)) == (
        "Transpose rule (for reverse-mode differentiation) for 'multiply_add' not implemented"
    )
    multiply_add.define_transpose()
    assert float(axir.grad(f)(2.0, 10.0)) == 4.0
    vectors = np.array([2.0, 3.0], np.float32), np.array([10.0, 20.0], np.float32)
    assert (
        missing(lambda: axir.vmap(f)(*vectors))
        == "Batching rule for 'multiply_add' not implemented"
    )
    multiply_add.define_batch()
    np.testing.assert_array_equal(axir.vmap(f)(*vectors), [14.0, 29.0])
    np.testing.assert_array_equal(
        axir.jit(axir.vmap(axir.grad(f)))(*vectors), np.array([4.0, 6.0], np.float32)
    )


def test_eager_forward_mode_needs_no_abstract_evaluation(multiply_add: MultiplyAdd) -> None:
    multiply_add.primitive.def_impl(_evaluate)
    multiply_add.define_jvp()
    assert [float(x) for x in axir.jvp(multiply_add.square_add, (2.0, 10.0), (1.0, 0.0))] == [
        14.0,
        4.0,
    ]


def test_eager_reverse_mode_takes_numbers_without_abstract_evaluation() -> None:
    product = core.Primitive("product_of_values")
    product.def_impl(lambda x, y: x * y)
    ad.primitive_jvps[product] = lambda primals, tangents: (
        primals[0] * primals[1],
        tangents[0] * primals[1],
    )
    assert axir.grad(lambda x: product.bind(x, 2.0))(3.0) == 2.0


def test_rules_map_over_primals_and_tangents_by_axes(multiply_add: MultiplyAdd) -> None:
    """As libraries do: their axes are tuples because JAX's primals and tangents are."""
    primitive = multiply_add.primitive
    primitive.def_impl(_evaluate)
    primitive.def_abstract_eval(_abstract)

    def of_numbers(primals, tangents):
        (x, y, z), (dx, *_) = primals, tangents
        return x * y + z, dx * y

    axes = (0, None, None), (0, None, None)
    ad.primitive_jvps[primitive] = axir.vmap(of_numbers, in_axes=axes)
    x = np.arange(3, dtype=np.float32)
    for transformed in (axir.jvp, axir.jit(axir.jvp, static_argnums=0)):
        value, tangent = transformed(lambda x: primitive.bind(x, 2.0, 1.0), (x,), (x + 1,))
        np.testing.assert_array_equal(value, 2 * x + 1)
        np.testing.assert_array_equal(tangent, 2 * (x + 1))


def test_it_prints_and_survives_in_a_module(multiply_add: MultiplyAdd) -> None:
    from axir.dialect.text.module_reader import parse_module, read_module

    primitive = multiply_add.primitive
    primitive.def_impl(_evaluate)
    primitive.def_abstract_eval(_abstract)
    jaxpr = axir.make_jaxpr(multiply_add)(1.0, 2.0, 3.0)
    assert str(jaxpr) == (
        "{ lambda ; a:f32[] b:f32[] c:f32[]. let d:f32[] = multiply_add a b c in (d,) }"
    )
    function = read_module(parse_module(str(jaxpr.module())))["main"]
    assert [float(x) for x in function.evaluate(2.0, 3.0, 4.0)] == [10.0]


def test_all_primitives_are_instances() -> None:
    assert isinstance(lax.sin_p, core.Primitive)
    assert isinstance(core.Primitive("of_one_s_own"), core.Primitive)
    assert not isinstance("sin", core.Primitive)
    USER_OPS.pop("of_one_s_own")


def test_it_takes_any_parameters() -> None:
    from axir.dialect.text.module_reader import parse_module, read_module

    scale = core.Primitive("scale")
    scale.def_abstract_eval(lambda x, **params: x)
    params = {"factors": (1, "a", (0.5, None)), "linear": (True,)}
    try:
        jaxpr = axir.make_jaxpr(lambda x: scale.bind(x, **params))(1.0)
        # A parameter of `scan` has the same name, and is not printed.
        assert "scale[factors=(1, 'a', (0.5, None)) linear=(True,)] a" in str(jaxpr)
        function = read_module(parse_module(str(jaxpr.module())))["main"]
        assert function.equations[0].params == params
    finally:
        USER_OPS.pop("scale")
    summing = axir.make_jaxpr(lambda xs: lax.scan(lambda c, x: (c + x, None), 0.0, xs))(np.ones(3))
    assert summing.eqns[0].params["linear"] == (False, False)
    assert "reverse=False" in str(summing)
    assert "linear" not in str(summing)


def test_linear_and_several_results() -> None:
    pair = core.Primitive("sum_and_difference", multiple_results=True)
    pair.def_impl(lambda x, y: [x + y, x - y])
    pair.def_abstract_eval(lambda x, y: [x, x])

    def value_and_jvp(primals, tangents):
        moving = [ad.instantiate_zeros(t) for t in tangents]
        return pair.bind(*primals), pair.bind(*moving)

    def transpose(cts, x, y):
        a, b = (ad.instantiate_zeros(ct) for ct in cts)
        return [lax.add(a, b), lax.sub(a, b)]

    ad.primitive_jvps[pair] = value_and_jvp
    ad.primitive_transposes[pair] = transpose
    try:
        gradients = axir.grad(lambda x, y: pair.bind(x, y)[1] * 3.0, argnums=(0, 1))(2.0, 5.0)
        assert [float(g) for g in gradients] == [3.0, -3.0]
        assert ad.primitive_jvps[pair] is value_and_jvp
        assert pair in ad.primitive_transposes
        assert pair not in batching.primitive_batchers
    finally:
        USER_OPS.pop("sum_and_difference")


def test_lowering_rules_that_disagree_with_the_types_are_refused(multiply_add) -> None:
    multiply_add.primitive.def_abstract_eval(_abstract)
    mlir.register_lowering(
        multiply_add.primitive,
        lambda context, x, y, z: mlir.hlo.compare(x, y, "LT"),
    )
    with pytest.raises(NotImplementedError, match="gave tensor<i1>.*abstract evaluation says"):
        axir.jit(multiply_add)(1.0, 2.0, 3.0)


def test_lower_fun_and_defjvp() -> None:
    cube = core.Primitive("cube")
    cube.def_impl(lambda x: x * x * x)
    cube.def_abstract_eval(lambda x: x)
    mlir.register_lowering(
        cube, mlir.lower_fun(lambda x: lax.mul(x, lax.mul(x, x)), multiple_results=False)
    )
    ad.defjvp(cube, lambda dx, x: lax.mul(dx, lax.mul(3.0, lax.mul(x, x))))
    batching.defvectorized(cube)
    try:
        assert float(axir.grad(cube.bind)(2.0)) == 12.0
        x = np.array([1.0, 2.0], np.float32)
        np.testing.assert_array_equal(axir.jit(axir.vmap(axir.grad(cube.bind)))(x), [3.0, 12.0])
    finally:
        USER_OPS.pop("cube")


def test_lowering_rules_call_back_into_python() -> None:
    seen: list[bool] = []

    def shifted(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
        seen.append(type(x) is np.ndarray and not x.flags.writeable)
        return [x + y, x[::-1]]

    def lower(context, *values):
        assert len(context.avals_in) == 2
        results, token, kept = mlir.emit_python_callback(
            context,
            shifted,
            "the token",
            values,
            context.avals_in,
            context.avals_out,
            has_side_effect=False,
        )
        context.module_context.add_keepalive(kept)
        assert token == "the token"
        return results

    shift = core.Primitive("shift", multiple_results=True)
    shift.def_abstract_eval(lambda x, y: (x, x))
    mlir.register_lowering(shift, lower)
    try:
        x = np.array([1.0, 2.0], np.float32)
        sums, reversed_ = axir.jit(lambda x: shift.bind(x, 2 * x))(x)
        np.testing.assert_array_equal(sums, [3.0, 6.0])
        np.testing.assert_array_equal(reversed_, [2.0, 1.0])
        assert seen == [True]
    finally:
        USER_OPS.pop("shift")


class Tagged(core.Primitive):
    """A primitive with its rules as methods, as libraries have that mark values."""

    multiple_results = True

    def impl(self, *values, name):
        return values

    def abstract_eval(self, *avals, name):
        return avals, {"tags"} if name == "acts" else core.no_effects


def test_rules_are_methods_of_a_class_of_ones_own() -> None:
    tagged = Tagged("tagged")
    assert isinstance(tagged, Tagged)
    assert isinstance(lax.sin_p, core.Primitive)
    assert not isinstance(lax.sin_p, Tagged)
    mlir.register_lowering(tagged, lambda context, *values, name: values)
    assert tagged.bind(1.0, 2.0, name="loss") == (1.0, 2.0)

    def marked(x):
        x, y = tagged.bind(jnp.sin(x), 2.0, name="loss")
        return x + y

    assert "tagged[name=loss]" in str(axir.make_jaxpr(marked)(1.0))
    np.testing.assert_allclose(axir.jit(marked)(1.0), np.sin(1.0) + 2, rtol=1e-6)
    assert tagged.impl(3.0, name="loss") == (3.0,)
    aval = core.ShapedArray((), np.dtype("float32"))
    assert tagged.abstract_eval(aval, name="loss") == ((aval,), core.no_effects)


def test_primitives_with_effects_are_kept() -> None:
    acting = Tagged("tagged_acting")
    acting.def_effectful_abstract_eval(lambda *avals, name: (avals, {"tags"}))

    def unused(x):
        acting.bind(x, name="acts")
        return x

    assert acting in axir.make_jaxpr(unused)(1.0).effects
    assert lax.sin_p.abstract_eval(core.ShapedArray((), np.dtype("float32")))[1] == frozenset()
    assert not lax.sin_p.call_primitive
    assert float(lax.neg_p.impl(2.0)) == -2.0


def test_the_rule_of_a_primitive_is_replaced_and_put_back() -> None:
    """As tests do to count computations."""
    counted = []
    own = lax.cos_p.impl

    def counting(*operands, **params):
        counted.append(operands)
        return own(*operands, **params)

    lax.cos_p.def_impl(counting)
    try:
        assert float(lax.cos(0.0)) == 1.0
    finally:
        lax.cos_p.def_impl(own)
    assert len(counted) == 1
    assert lax.cos_p.implementation is None
    assert float(lax.cos(0.0)) == 1.0
    assert len(counted) == 1


@pytest.mark.parametrize("is_disabled", [False, True])
def test_a_primitive_that_only_its_lowering_computes(is_disabled: bool) -> None:
    added = core.Primitive("added_number")
    added.def_impl(functools.partial(xla.apply_primitive, added))
    added.def_abstract_eval(lambda x, *, n: core.ShapedArray(x.shape, x.dtype))
    mlir.register_lowering(added, mlir.lower_fun(lambda x, n: x + n[0], multiple_results=False))
    x = jnp.ones(2)

    def looped(x: Any) -> Any:
        return lax.fori_loop(0, 2, lambda i, y: added.bind(y, n=(2.0,)), x)

    with axir.disable_jit(is_disabled):
        np.testing.assert_array_equal(added.bind(x, n=(3.0,)), [4, 4])
        np.testing.assert_array_equal(added.bind(x, n=[5.0]), [6, 6])
        np.testing.assert_array_equal(axir.jit(looped)(x), [5, 5])
        np.testing.assert_array_equal(looped(x), [5, 5])
