"""Functions with an open leading dimension: traced for a row, called with any number of rows."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from support.rows import export_rows

import axir
import axir.numpy as jnp
from axir import random
from axir._bundles.batching import DependentRowsError, pieces_of
from axir.dialect.core.errors import ParameterError, ShapeError
from axir.dialect.core.symbolic.terms import SymbolicDimError
from axir.export import (
    Bundle,
    DisabledSafetyCheck,
    deserialize,
    export,
    is_symbolic_dim,
    symbolic_args_specs,
    symbolic_shape,
)
from axir.runtime import Target

RNG = np.random.default_rng(1)
W = jnp.asarray(RNG.normal(size=(6, 4)).astype(np.float32))
(B,) = symbolic_shape("b")
ROWS = axir.ShapeDtypeStruct((B, 6), "float32")


def model(w: Any, x: Any) -> Any:
    hidden = jnp.tanh(x @ w)
    return {"label": jnp.argmax(hidden, -1), "scores": axir.nn.softmax(hidden), "w": w}


@pytest.fixture(scope="module")
def exported() -> Any:
    return export(functools.partial(model, W))(ROWS)


def test_shapes_show_the_open_dimension(exported: Any) -> None:
    assert [x.shape for x in exported.in_avals] == [(B, 6)]
    assert [x.shape for x in exported.out_avals] == [(B,), (B, 4), (6, 4)]
    assert repr(exported).startswith("<Exported model(x: float32[b,6]) -> int32[b], ")


@pytest.mark.parametrize("count", [0, 1, 3, 4, 11])
def test_any_number_of_rows(exported: Any, count: int) -> None:
    x = RNG.normal(size=(count, 6)).astype(np.float32)
    found = deserialize(exported.with_rows(2, 4).serialize())(x)
    expected = model(W, x)
    np.testing.assert_array_equal(found["label"], expected["label"])
    np.testing.assert_allclose(found["scores"], expected["scores"], rtol=1e-5)
    np.testing.assert_array_equal(found["w"], W)


def test_open_functions_are_transformed(exported: Any) -> None:
    x = RNG.normal(size=(3, 6)).astype(np.float32)
    found = axir.grad(lambda x: exported(x)["scores"][:, 0].sum())(jnp.asarray(x))
    expected = axir.grad(lambda x: model(W, x)["scores"][:, 0].sum())(jnp.asarray(x))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    assert axir.eval_shape(axir.vmap(exported), jnp.ones((2, 5, 6)))["label"].shape == (2, 5)


def test_keys_labels_and_conditions_have_rows_too() -> None:
    def sample(key: Any, x: Any, label: Any) -> Any:
        noise = axir.vmap(lambda k: random.normal(k, (6,)))(key)
        kept = axir.lax.cond(True, lambda x: x + noise, lambda x: x, x)
        return kept[jnp.arange(len(x)), label]

    keys = random.split(random.key(0), 3)
    x = RNG.normal(size=(3, 6)).astype(np.float32)
    label = np.array([0, 5, 2], np.int32)
    specs = symbolic_args_specs((keys, x, label), ("n,", "n, ...", "n"))
    found = export(sample)(*specs)(keys, x, label)
    np.testing.assert_allclose(found, sample(keys, jnp.asarray(x), label), rtol=1e-5)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: x - x.mean(0), "result 0 of a row depends on the other rows.* 'reduce_sum' mix"),
        (lambda x: x / x.shape[0], "how many there are. A value of .* how many rows there are"),
        (lambda x: jnp.cumsum(jnp.sin(x), 0), "result 0 of a row depends on .* 'cumsum' mixes"),
        (lambda x: x.mean(), "result 0 depends on all rows.* 'reduce_sum' mixes"),
        (lambda x: x[-1], "result 0 depends on all rows.* 'slice' mixes"),
        (lambda x: x @ x.T, r"shapes \(1, 1\), \(3, 3\) and .*'dot_general' mixes"),
    ],
)
def test_functions_that_mix_rows_are_refused(function: Any, reason: str) -> None:
    with pytest.raises(DependentRowsError, match=reason) as caught:
        export_rows(function)(ROWS)
    assert f"at {__file__}:{function.__code__.co_firstlineno}" in str(caught.value)


def test_results_with_rows_elsewhere_are_refused() -> None:
    with pytest.raises(
        DependentRowsError, match=r"shapes \(6, 1\), \(6, 3\) and \(6, 4099\) for 1"
    ):
        export_rows(lambda x: x.T)(ROWS)
    with pytest.raises(DependentRowsError, match=r"it has 1, 3 and 4099 results for 1, 3 and 4099"):
        export_rows(lambda x: list(x))(ROWS)


def test_the_check_of_rows_can_be_left_out() -> None:
    unchecked = export(lambda x: x - x.mean(0), disabled_checks=[DisabledSafetyCheck.rows()])
    found = unchecked(ROWS)(np.ones((2, 6), np.float32))
    np.testing.assert_array_equal(found, np.zeros((2, 6)))


def test_wrong_rows_are_refused() -> None:
    both = export(lambda x, y: x + y)(ROWS, ROWS)
    with pytest.raises(ShapeError, match="b differs between arguments: x has 2, y has 3"):
        both(np.ones((2, 6), np.float32), np.ones((3, 6), np.float32))
    with pytest.raises(ShapeError, match="'x' is a scalar, but has a leading dimension b"):
        both(np.float32(1), np.ones((3, 6), np.float32))
    with pytest.raises(ShapeError, match=r"'y' must have shape \(2, 6\), not \(2, 5\)"):
        both(np.ones((2, 6), np.float32), np.ones((2, 5), np.float32))


def test_fixed_shapes_have_no_rows() -> None:
    with pytest.raises(ParameterError, match="was exported for arguments of fixed shapes"):
        export(jnp.sin)(1.0).of_rows(2)


def test_symbolic_dimensions_are_no_numbers() -> None:
    assert [is_symbolic_dim(x) for x in (B, 3)] == [True, False]
    with pytest.raises(SymbolicDimError, match="The extent b is not known"):
        int(B)
    with pytest.raises(SymbolicDimError, match=r"float32\[b,6\] has dimensions that are open"):
        axir.jit(jnp.sin).lower(ROWS).compile()
    with pytest.raises(SymbolicDimError, match="The extent b is not known: it is no number"):
        jnp.zeros(3) + B


def test_pieces_take_the_next_larger_size() -> None:
    assert list(pieces_of(0, (2, 4))) == [(0, 0, 2)]
    assert list(pieces_of(9, (2, 4))) == [(0, 4, 4), (4, 8, 4), (8, 9, 2)]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[:512] * 2,
        lambda x: x[-512:],
        lambda x: x.at[150:].set(0.0),
        lambda x: x.at[:512].multiply(2.0),
        lambda x: x * (x.shape[0] // 200),
    ],
)
def test_what_changes_at_a_number_of_rows_is_no_function_of_rows(function: Any) -> None:
    [b] = axir.export.symbolic_shape("b")
    exported = axir.export.export(axir.jit(function))(axir.ShapeDtypeStruct((b, 3), np.float32))
    assert exported.dependent_rows is not None
    for count in (600, 700):
        x = np.random.default_rng(count).normal(size=(count, 3)).astype(np.float32)
        np.testing.assert_allclose(exported(x), function(jnp.asarray(x)), rtol=1e-6)


def test_why_a_dimension_is_not_one_of_rows_stays_known() -> None:
    exported = export(lambda x: x - x.mean(0))(ROWS)
    reason = exported.dependent_rows
    assert reason is not None
    assert exported.with_sizes(b=8).with_parameters({}).dependent_rows is reason
    bundle = Bundle({"main": exported}).with_sizes(b=2).compile(Target())
    assert bundle.main.dependent_rows is reason


def test_what_has_no_symbolic_program_is_compared_for_many_rows() -> None:
    [b] = axir.export.symbolic_shape("b")
    with pytest.raises(SymbolicDimError):
        axir.export.export(axir.jit(lambda x: jnp.split(x, [256, 512])[0]))(
            axir.ShapeDtypeStruct((b, 3), np.float32)
        )
