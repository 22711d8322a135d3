"""Functions of symbolic dimensions: the same values as for fixed sizes, or an error."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from support.open_functions import CASES

import axir
import axir.numpy as jnp
from axir import lax
from axir._trees import tree
from axir.cli import cli
from axir.dialect.core.errors import ReverseModeError
from axir.dialect.core.symbolic.terms import SymbolicDimError, SymbolicLookupError
from axir.export import SymbolicScope, export, load, symbolic_args_specs, symbolic_shape
from axir.scipy.linalg import toeplitz


def open_array(text: str, *constraints: str) -> axir.ShapeDtypeStruct:
    return axir.ShapeDtypeStruct(symbolic_shape(text, constraints=constraints), "float32")


def convolved(x: Any) -> Any:
    numbers = ("NWC", "WIO", "NWC")
    kernel = jnp.ones((3, 1, 1))
    return lax.conv_general_dilated(x[None], kernel, (2,), "SAME", dimension_numbers=numbers)


def factors(x: Any) -> Any:
    x = jnp.concatenate([x, x**2, jnp.sin(3 * x)], 1)
    values = jnp.linalg.svd(x, full_matrices=False)[1]
    solved = jnp.linalg.lstsq(x, x[:, 0])[0]
    factored = axir.scipy.linalg.lu(x), jnp.abs(jnp.linalg.qr(x)[1])
    diagonals = jnp.diagonal(x), jnp.trace(x.T), jnp.diagonal(x, 1) + x[0, 0]
    return factored, values, solved, diagonals, jnp.linalg.pinv(x), jnp.linalg.matrix_rank(x)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "scan of a length": lambda x: lax.scan(
        lambda c, _: (c * 2, c.sum()), x, None, length=x.shape[0]
    ),
    "scan of a length and arrays": lambda x: lax.scan(
        lambda c, row: (c + row, c), x[0], x, length=x.shape[0], unroll=True
    ),
    "gradient of a scan of a length": axir.grad(
        lambda x: lax.scan(lambda c, _: (jnp.sin(c), c), x, None, length=x.shape[0])[1].sum()
    ),
    "factors of tall and of wide matrices": factors,
    "a filled diagonal": lambda x: jnp.fill_diagonal(x @ x.T, x[:, 0], inplace=False),
    "associative scan": lambda x: lax.associative_scan(jnp.multiply, x + 0.5, reverse=True),
    "gradients of running products": axir.grad(
        lambda x: (jnp.cumprod(x, 0) + lax.cummax(x, 0) + lax.cumlogsumexp(x, 0)).sum()
    ),
    "gradient of a roll": axir.grad(lambda x: (jnp.roll(x, 1, 0) * x).sum()),
    "convolution with strides": convolved,
    "gradient of it": axir.grad(lambda x: convolved(x).sum()),
    "batches of a map": lambda x: lax.map(lambda row: row.sum(), x, batch_size=2),
    "toeplitz": lambda x: toeplitz(x.ravel()),
    "every second row": lambda x: x.at[::2].add(1),
    "bounds of random numbers": lambda x: axir.random.randint(
        axir.random.key(0), (5,), 0, x.shape[0]
    ),
    "a size in a key": lambda x: axir.random.uniform(
        axir.random.fold_in(axir.random.key(0), x.shape[0])
    ),
    "repeat and tile": lambda x: (jnp.repeat(x, x.shape[0], 0), jnp.tile(x, x.shape[0])),
    "triangles": lambda x: (jnp.tri(x.shape[0], 3), jnp.tri(2, x.shape[0])),
    "diagonals": lambda x: (x @ x.T)[jnp.diag_indices(x.shape[0])],
    "a chain of products": lambda x: jnp.linalg.multi_dot([x.T, x, x.T]),
    "jacobians": lambda x: (
        axir.jacfwd(lambda y: jnp.cumsum(y, 0))(x),
        axir.jacrev(lambda y: y.sum(0))(x),
    ),
    "hessian": lambda x: axir.hessian(lambda y: (y[:, 0] ** 3).sum())(x),
    "standard error": lambda x: axir.scipy.stats.sem(x),
    "a function of axir's own": jnp.ravel,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_those_of_fixed_sizes(name: str) -> None:
    function = FUNCTIONS[name]
    exported = export(lambda x: (function(x), x.mean()))(open_array("b, 1"))
    assert exported.open is not None
    for count in (1, 2, 5):
        x = np.random.default_rng(count).normal(size=(count, 1)).astype(np.float32)
        found = exported.function_of(exported.key_of([x])).evaluate(x)
        wanted = tree.leaves((function(jnp.asarray(x)), x.mean()))
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (jnp.cov, "Whether b == 1 holds"),
        (lambda x: jnp.corrcoef(x, rowvar=False), "Whether b == 1 holds"),
        (lambda x: x[1:].max(0), "Whether b - 1 == 0 holds"),
        (lambda x: x[1:].argmin(0), "Whether b - 1 == 0 holds"),
        (lambda x: jnp.ptp(x[1:], 0), "Whether b - 1 == 0 holds"),
        (lambda x: jnp.nanmin(x[1:]), "Whether 3*b - 3 == 0 holds"),
        (lambda x: jnp.gradient(x, axis=0), "Whether b < 2 holds"),
    ],
)
def test_what_some_sizes_have_no_result_for_wants_a_constraint(function, message: str) -> None:
    with pytest.raises(SymbolicDimError, match="depends on the size of b") as caught:
        export(function)(open_array("b, 3"))
    assert message in str(caught.value)
    exported = export(lambda x: function(x))(open_array("b, 3", "b >= 2"))
    x = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    (found,) = exported.function_of(exported.key_of([x])).evaluate(x)
    np.testing.assert_allclose(found, function(jnp.asarray(x)), rtol=1e-5)


@pytest.mark.parametrize(
    "look_up",
    [
        lambda n: {1: 2}.get(n, 5),
        lambda n: 2 if n in {1, 2} else 5,
        lambda n: 2 if (n, 3) in {(1, 3)} else 5,
        lambda n: len({n, 1}),
        lambda n: Counter([n])[n],
    ],
)
def test_looking_up_a_dimension_is_never_a_guess(look_up: Callable[[Any], int]) -> None:
    with pytest.raises(SymbolicLookupError) as caught:
        export(lambda x: x.mean() * look_up(x.shape[0]))(open_array("b, 3"))
    assert isinstance(caught.value, TypeError)
    assert "Whether b is found in a set or a dictionary depends on its size." in str(caught.value)
    assert "look up the text: sizes[str(x.shape[0])]" in str(caught.value)


@pytest.mark.parametrize("name", [n for n in CASES if "loop" not in n])
def test_transformations_ask_no_sizes(name: str) -> None:
    found = CASES[name]
    scope = SymbolicScope(found.constraints)
    shapes = [symbolic_shape(text, scope=scope) for text in found.shapes]
    kinds = [found.dtype(number) for number in range(len(shapes))]
    exported = export(lambda *args: found.function(axir, *args))(
        *map(axir.ShapeDtypeStruct, shapes, kinds)
    )
    stacked = [axir.ShapeDtypeStruct((4, *s), k) for s, k in zip(shapes, kinds, strict=True)]
    mapped = export(lambda *args: axir.vmap(exported.call)(*args))(*stacked)
    assert [a.shape[0] for a in mapped.out_avals] == [4] * len(exported.out_avals)
    if exported.open is not None:
        assert len(exported.vjp().out_avals) == sum(kind == "float32" for kind in kinds)


def test_loops_of_a_number_of_passes_that_runs_only_are_not_differentiated() -> None:
    exported = export(lambda x: lax.fori_loop(0, x.shape[0], lambda i, s: s + x[i], x[0]))(
        open_array("b, 3")
    )
    with pytest.raises(ReverseModeError, match="the number of passes is unknown"):
        exported.vjp()


def test_the_command_line_differentiates_a_sum_of_any_size(tmp_path: Path) -> None:
    export(lambda x: (x**2).sum())(open_array("b, 3")).save(tmp_path / "f.axir")
    arguments = ["grad", str(tmp_path / "f.axir"), "-o", str(tmp_path / "g.axir")]
    result = CliRunner().invoke(cli, arguments, prog_name="axir")
    assert result.exit_code == 0, result.output
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(load(tmp_path / "g.axir")["main_grad"](x), 2 * x)


def test_functions_of_rows_are_called_for_symbolic_dimensions() -> None:
    rows = export(lambda x: jnp.tanh(x) * 2)(open_array("b, 3"))
    assert rows.batch is not None
    outer = export(lambda x: rows(x) - rows(x).mean(0))(open_array("n, 3"))
    assert outer.symbols == ("n",)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(outer(x), rows(x) - rows(x).mean(0), rtol=1e-6)


def test_parameters_can_be_replaced_and_differentiated(tmp_path: Path) -> None:
    # They are used in another order than they have.
    def predict(params, x):
        return x.mean(0) * params["c"] - params["a"] + params["b"] * x.shape[0]

    def step(params, x):
        gradient = axir.grad(lambda p: predict(p, x).sum())(params)
        return axir.tree.map(lambda p, g: p - 0.1 * g, params, gradient)

    params = {"a": jnp.array(2.0), "b": jnp.array(10.0), "c": jnp.array(100.0)}
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    specs = symbolic_args_specs((x,), "b, ...")
    functions = {name: functools.partial(f, params) for name, f in
                 (("predict", predict), ("step", step))}  # fmt: skip
    bundle = export(functions, updates={"step": {"params": "result"}})(predict=specs, step=specs)
    bundle.save(tmp_path / "all.axir")
    for found in (bundle, load(tmp_path / "all.axir")):
        own = found["predict"]
        assert own.open is not None
        changed = {name: value + 1 for name, value in own.parameters.items()}
        others = {name: value + 1 for name, value in params.items()}
        wanted = predict(others, jnp.asarray(x))
        np.testing.assert_allclose(own.with_parameters(changed)(x), wanted, rtol=1e-6)
        np.testing.assert_allclose(axir.jit(own)(x), predict(params, x), rtol=1e-6)
        slopes = axir.grad(lambda p, own=own: own.with_parameters(p)(x).sum())(own.parameters)
        assert [float(slope) for slope in slopes.values()] == [-3, 12, 16.5]
        advanced = found.advance("step", x)[1]
        np.testing.assert_allclose(
            advanced.predict(x), predict(step(params, jnp.asarray(x)), x), rtol=1e-6
        )
