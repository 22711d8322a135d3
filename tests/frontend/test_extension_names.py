"""The modules for extensions, and for types and errors, under JAX's names."""

from __future__ import annotations

import jax
import jax.extend.core
import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import core, dtypes, errors
from axir.dialect.core.errors import AxisError
from axir.extend import core as extend

# Names that say nothing here: typed keys, symbolic shapes, internals of another engine.
_ABSENT = {
    "errors": set(),
    "dtypes": set(),
    "core": set(),
    "custom_batching": set(),
    "flatten_util": set(),
    "stages": set(),
    "tree": set(),
    "tree_util": set(),
    "typing": set(),
}


@pytest.mark.parametrize("module", _ABSENT)
def test_public_names_are_there(module: str) -> None:
    import importlib

    theirs = importlib.import_module(f"jax.{module}")
    ours = importlib.import_module(f"axir.{module}")
    public = {name for name in dir(theirs) if not name.startswith("_")}
    assert {name for name in public if not hasattr(ours, name)} == _ABSENT[module]


def test_programs_catch_errors_by_their_names() -> None:
    def truth(x):
        return 1 if x > 0 else 2

    with pytest.raises(errors.JAXTypeError):
        axir.jit(truth)(1.0)
    with pytest.raises(errors.JAXIndexError):
        axir.jit(lambda x: x[x > 0])(jnp.ones(3))
    leaked = []
    axir.jit(lambda x: leaked.append(x))(1.0)
    with pytest.raises(TypeError) as caught:
        leaked[0] + 1
    assert isinstance(caught.value, (errors.UnexpectedTracerError, errors.JAXTypeError))
    assert issubclass(errors.CompileError, errors.JaxRuntimeError)
    assert issubclass(errors.JaxRuntimeError, RuntimeError)
    bases = (errors.AxirError, Warning)
    assert all(issubclass(getattr(errors, name), bases) for name in errors.__all__)


@pytest.mark.parametrize(
    "name", ["bool", "int8", "uint32", "bfloat16", "float16", "float32", "complex64"]
)
def test_questions_about_dtypes(name: str) -> None:
    ours, theirs = jnp.zeros((), name), jax.numpy.zeros((), name)
    assert dtypes.itemsize_bits(name) == jax.dtypes.itemsize_bits(name)
    assert dtypes.scalar_type_of(ours) is jax.dtypes.scalar_type_of(theirs)
    for category in (np.integer, np.floating, np.inexact, np.number, np.generic):
        assert dtypes.issubdtype(name, category) == jax.dtypes.issubdtype(name, category)
    assert dtypes.result_type(ours, 1.0, return_weak_type_flag=True) == (
        jax.dtypes.result_type(theirs, 1.0, return_weak_type_flag=True)
    )
    assert not dtypes.issubdtype(name, dtypes.prng_key)


def test_categories_and_canonical_dtypes() -> None:
    assert dtypes.issubdtype(dtypes.prng_key, dtypes.extended)
    assert not dtypes.issubdtype(dtypes.extended, dtypes.prng_key)
    assert dtypes.issubdtype(dtypes.prng_key, np.generic)
    assert dtypes.canonicalize_dtype("int64", allow_extended_dtype=True) == np.int32
    with pytest.raises(dtypes.TypePromotionError), axir.numpy_dtype_promotion("strict"):
        dtypes.result_type(jnp.int32(1), jnp.float32(1))


def test_jaxprs_are_walked_and_checked() -> None:
    closed = axir.make_jaxpr(axir.jit(lambda x: axir.lax.cond(x > 0, jnp.sin, jnp.cos, x)))(1.0)
    extend.check_jaxpr(closed)
    (inner,) = extend.subjaxprs(closed.jaxpr)
    names = [e.primitive.name for e in inner.eqns]
    assert names[-1] == "cond"
    branches = list(extend.jaxprs_in_params(inner.eqns[-1].params))
    assert [b.eqns[0].primitive for b in branches] == [
        extend.primitives.cos_p,
        extend.primitives.sin_p,
    ]
    (result,) = extend.jaxpr_as_fun(closed)(2.0)
    np.testing.assert_allclose(result, np.sin(2.0), rtol=1e-6)
    assert isinstance(closed.jaxpr.invars[0], core.Atom)
    assert isinstance(closed.in_avals[0], core.AbstractValue)


def test_types_of_mapped_axes() -> None:
    aval = core.ShapedArray((2, 3), np.dtype(np.float32))
    assert extend.mapped_aval(3, 1, aval).shape == (2,)
    assert extend.unmapped_aval(5, 1, aval).shape == (2, 5, 3)
    assert extend.mapped_aval(7, None, aval) is extend.unmapped_aval(7, None, aval) is aval
    with pytest.raises(AxisError, match="has no axis 1 of extent 4"):
        extend.mapped_aval(4, 1, aval)
    assert extend.primal_dtype_to_tangent_dtype(np.int32) == dtypes.float0
    assert (core.max_dim(2, 3), core.min_dim(2, 3)) == (3, 2)


def test_values_that_must_be_known() -> None:
    assert extend.concrete_or_error(int, jnp.int32(3)) == 3
    assert extend.concrete_or_error(None, jnp.ones(2)).tolist() == [1, 1]
    with pytest.raises(errors.ConcretizationTypeError, match="the length of the loop: "):
        axir.jit(lambda n: extend.concrete_or_error(int, n, "the length of the loop"))(3)
    assert [extend.valid_jaxtype(x) for x in (1, jnp.ones(2), np.ones(2), "a", object())] == [
        True, True, True, False, False,
    ]  # fmt: skip
    with core.eval_context():
        assert float(jnp.sin(0.0)) == 0.0


def test_primitives_by_their_names() -> None:
    ours = extend.primitives
    assert ours.remat_p.name == "checkpoint"
    assert axir.lax.linear_solve_p is ours.linear_solve_p
    assert "dot_general_p" in dir(ours)
    with pytest.raises(AttributeError, match="no attribute 'nothing_p'"):
        ours.nothing_p  # noqa: B018
    shared = [n for n in dir(jax.extend.core.primitives) if n.endswith("_p") and hasattr(ours, n)]
    assert len(shared) > 140


def test_the_class_of_arrays_has_the_names_of_theirs() -> None:
    names = {name for name in dir(jax.Array) if not name.startswith("_")} | {"__getitem__"}
    assert {name for name in names if not hasattr(axir.Array, name)} == {"flat"}
