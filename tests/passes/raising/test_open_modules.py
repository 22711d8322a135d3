"""StableHLO with open dimensions that axir writes: JAX calls it, and axir reads it again."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.export
import numpy as np
import pytest
from jax._src.interpreters import mlir
from support.exported_to_jax import to_jax
from support.open_functions import CASES, OpenCase, arguments, sizes_of

import axir
import axir.numpy as jnp
from axir._trees import tree
from axir.cli import cli
from axir.dialect.core.errors import ShapeError
from axir.export import Exported, SymbolicScope, export, load, symbolic_shape

PAIRS = ((1, 1), (7, 4))


def written(found: OpenCase) -> Exported:
    scope = SymbolicScope(found.constraints)
    specs = [
        axir.ShapeDtypeStruct(symbolic_shape(text, scope=scope), found.dtype(number))
        for number, text in enumerate(found.shapes)
    ]
    return export(lambda *args: found.function(axir, *args))(*specs)


def open_array(text: str, *constraints: str) -> axir.ShapeDtypeStruct:
    return axir.ShapeDtypeStruct(symbolic_shape(text, constraints=constraints), "float32")


def read_again(exported: Exported, folder: Path) -> Exported:
    (folder / "again.mlir").write_text(exported.stablehlo())
    return load(folder / "again.mlir")


@pytest.mark.parametrize("name", CASES)
def test_jax_calls_what_is_written(name: str, tmp_path: Path) -> None:
    found = CASES[name]
    exported = written(found)
    in_jax, again = to_jax(exported), read_again(exported, tmp_path)
    letters = sorted({x for text in found.shapes for x in text if x.isalpha()})
    for pair in PAIRS:
        values = arguments(found, sizes_of(found, letters, pair))
        wanted = tree.leaves(found.function(axir, *map(jnp.asarray, values)))
        of_jax = in_jax.call(*values)
        of_axir = again.function_of(again.key_of(values)).evaluate(*values)
        for x, y, z in zip(wanted, of_jax, of_axir, strict=True):
            np.testing.assert_allclose(y, x, rtol=1e-3, atol=1e-3)
            np.testing.assert_allclose(z, x, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("function", "text", "constraints"),
    [
        (lambda x: (x - x.mean(0)).reshape(-1)[1:], "2*b, 3", ["b >= 2"]),
        (lambda x: jnp.concatenate([x, x[::2]]) * x.shape[0], "3*k + 1", ["mod(k, 2) == 0"]),
        (lambda x: x.T @ x - x.sum(), "a, max(a, 8)", ["a <= 100"]),
        (lambda x: jnp.pad(x, ((0, x.shape[0]), (1, 0))), "b, t", ["t <= b"]),
    ],
)
def test_a_program_is_read_as_it_was(function, text: str, constraints: list[str], tmp_path: Path):
    exported = export(function)(open_array(text, *constraints))
    again = read_again(exported, tmp_path)
    assert list(map(str, again.in_avals)) == list(map(str, exported.in_avals))
    assert list(map(str, again.out_avals)) == list(map(str, exported.out_avals))
    assert again.open.constraints == exported.open.constraints
    # Reading it once has made all broadcasts explicit.
    third = read_again(again, tmp_path)
    assert third.stablehlo() == again.stablehlo()
    assert str(third.module()) == str(again.module())


def test_rows_are_an_open_dimension(tmp_path: Path) -> None:
    exported = export(lambda x: jnp.tanh(x) @ jnp.ones((3, 2)))(open_array("b, 3"))
    assert exported.batch is not None
    in_jax = to_jax(exported)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(in_jax.call(x)[0], np.tanh(x) @ np.ones((3, 2)), rtol=1e-6)
    (argument,) = read_again(exported, tmp_path).in_avals
    assert str(argument) == "float32[b,3]"


def test_functions_that_are_called_take_the_sizes() -> None:
    @axir.jit
    def part(x):
        return jnp.sort(x, 0)[: x.shape[0] // 2] * x.shape[0]

    exported = export(lambda x, y: part(x) + part(y))(open_array("2*b, 3"), open_array("2*b, 3"))
    text = exported.stablehlo()
    assert text.count("func.func") == 3
    assert text.count('{jax.global_constant = "b"}') == 2
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.testing.assert_array_equal(to_jax(exported).call(x, x)[0], 2 * 4 * x[:2])


@pytest.mark.parametrize("divided", [5, -5])
def test_quotients_round_down(divided: int) -> None:
    def function(x):
        n = x.shape[0]
        quotient, rest = divmod(divided * 3 - 2 * n, n - 4)
        return x.sum() * 0 + jnp.stack([jnp.asarray(quotient), jnp.asarray(rest)])

    in_jax = to_jax(export(function)(open_array("b, 2", "b >= 2")))
    for n in (2, 3, 5, 11):
        wanted = divmod(divided * 3 - 2 * n, n - 4)
        np.testing.assert_array_equal(in_jax.call(np.ones((n, 2), np.float32))[0], wanted)


def test_sizes_that_do_not_fit_are_asserted() -> None:
    text = export(lambda x, y: x @ y)(
        open_array("a, 2*k", "a >= 3"), open_array("2*k, 5", "a >= 3")
    ).stablehlo()
    for message in (
        "the dimension k is {0}.",
        "2*k is {0}, but an argument has extent {1}.",
        "the constraint a >= 3 does not hold.",
    ):
        assert f"The shapes of arguments do not fit: {message}" in text
    of_sizes = """func.func @main(%x: tensor<2x4xf32>, %y: tensor<4x5xf32>) -> tensor<?x5xf32> {
      %0 = stablehlo.convert %x : (tensor<2x4xf32>) -> tensor<?x?xf32>
      %1 = stablehlo.convert %y : (tensor<4x5xf32>) -> tensor<?x5xf32>
      %2 = func.call @open(%0, %1) : (tensor<?x?xf32>, tensor<?x5xf32>) -> tensor<?x5xf32>
      return %2 : tensor<?x5xf32>
    }
    func.func private @open("""
    with mlir.make_ir_context():
        module = mlir.ir.Module.parse(text.replace("func.func @main(", of_sizes))
        with pytest.raises(ValueError, match="Error refining shapes") as caught:
            mlir.refine_polymorphic_shapes(module)
    assert "the constraint a >= 3 does not hold" in str(caught.value.__cause__)


def test_dimensions_that_are_none_of_the_type_are_refused(tmp_path: Path) -> None:
    text = export(lambda x: x - x.mean())(open_array("b, t")).stablehlo()
    path = tmp_path / "wrong.mlir"
    path.write_text(text.replace('axir.dims = ["b", "t"]', 'axir.dims = ["b"]'))
    with pytest.raises(ShapeError, match=r"has other dimensions that are open than its axir.dims"):
        load(path)


def test_the_command_line_writes_it(tmp_path: Path) -> None:
    exported = export(lambda x: x - x.mean(0))(open_array("b, 2"))
    exported.save(tmp_path / "f.mlir")
    path = tmp_path / "f.stablehlo.mlir"
    arguments = ["opt", str(tmp_path / "f.mlir"), "--to", "stablehlo", "-o", str(path)]
    cli(arguments, standalone_mode=False)
    assert "dynamic_broadcast_in_dim" in path.read_text()
    assert "jax.uses_shape_polymorphism = true" in path.read_text()
    x = np.ones((3, 2), np.float32)
    np.testing.assert_array_equal(load(path)(x), 0 * x)


@pytest.mark.parametrize("is_partitionable", [False, True])
def test_numbers_are_drawn_for_all_sizes(is_partitionable: bool, tmp_path: Path) -> None:
    def function(x):
        key, other = axir.random.split(axir.random.key(3))
        keys = axir.random.split(other, x.shape[0])
        return jnp.stack([axir.random.normal(key, x.shape), axir.vmap(axir.random.bits)(keys) * x])

    with axir.config(jax_threefry_partitionable=is_partitionable):
        exported = export(function)(open_array("b"))
        in_jax, again = to_jax(exported), read_again(exported, tmp_path)
        for size in (1, 4, 7):
            x = np.ones(size, np.float32)
            wanted = function(jnp.asarray(x))
            np.testing.assert_allclose(in_jax.call(x)[0], wanted, rtol=1e-5)
            of_axir = again.function_of(again.key_of([x])).evaluate(x)[0]
            np.testing.assert_allclose(of_axir, wanted, rtol=1e-5)


def test_systems_are_solved_for_all_sizes(tmp_path: Path) -> None:
    def function(x, stack):
        matrix = x @ x.T + 3 * jnp.eye(x.shape[0])
        return jnp.linalg.cholesky(matrix), jnp.linalg.solve(matrix, x), jnp.linalg.det(stack)

    exported = export(function)(open_array("b, 2"), open_array("b, 3, 3"))
    in_jax, again = to_jax(exported), read_again(exported, tmp_path)
    rng = np.random.default_rng(0)
    for size in (1, 5, 40):
        x, stack = (rng.normal(size=(size, *s)).astype(np.float32) for s in ((2,), (3, 3)))
        wanted = function(jnp.asarray(x), jnp.asarray(stack))
        of_axir = again.function_of(again.key_of([x, stack])).evaluate(x, stack)
        for a, b, c in zip(wanted, in_jax.call(x, stack), of_axir, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-3, atol=1e-3)
            np.testing.assert_allclose(c, a, rtol=1e-3, atol=1e-3)


def test_loops_over_what_may_be_empty_run_never(tmp_path: Path) -> None:
    def function(x):
        return axir.lax.scan(lambda c, row: (c * row + 1, c), jnp.ones(x.shape[1]), x[1:])

    exported = export(function)(open_array("b, t"))
    again, in_jax = read_again(exported, tmp_path), to_jax(exported)
    assert again.open is not None
    assert again.open.constraints == ()
    for size in (1, 2, 4):
        x = np.arange(2 * size, dtype=np.float32).reshape(size, 2)
        of_axir = again.function_of(again.key_of([x])).evaluate(x)
        wanted = function(jnp.asarray(x))
        of_jax = in_jax.call(x) if size > 1 else wanted  # JAX refuses slices of empty arrays
        for a, b, c in zip(wanted, of_jax, of_axir, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-6)
            np.testing.assert_allclose(c, a, rtol=1e-6)


LOOPS = {
    "forward": lambda lib, x: lib.lax.scan(
        lambda c, row: (c * row + 1, 2 * c), lib.numpy.ones(3), x
    ),
    "backward": lambda lib, x: lib.lax.scan(
        lambda c, row: (c * row + 1, 2 * c), lib.numpy.ones(3), x, reverse=True
    ),
    "rows": lambda lib, x: lib.lax.fori_loop(
        0, x.shape[0], lambda i, c: 0.9 * c * x[i], lib.numpy.ones(3)
    ),
    "later rows": lambda lib, x: lib.lax.fori_loop(
        1, x.shape[0], lambda i, c: lib.numpy.sin(c) * x[i], lib.numpy.ones(3)
    ),
    "counter": lambda lib, x: lib.lax.fori_loop(
        0, x.shape[0], lambda i, c: c * 0.9 + i * x[0], lib.numpy.ones(3)
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_of_jax_over_rows_are_scans_with_gradients(name: str, tmp_path: Path) -> None:
    def total(lib, function):
        def summed(x):
            return sum(part.sum() for part in lib.tree.leaves(function(x)))

        return lib.grad(summed)

    def of_jax(x):
        return LOOPS[name](jax, x)

    spec = jax.ShapeDtypeStruct(jax.export.symbolic_shape("b, 3"), "float32")
    (tmp_path / "loop.mlir").write_text(jax.export.export(jax.jit(of_jax))(spec).mlir_module())
    found = load(tmp_path / "loop.mlir")
    assert "jaxpr.while" not in str(found.module())
    for size in (1, 2, 5):
        x = jax.numpy.linspace(0.5, 1.5, 3 * size).reshape(size, 3)
        fixed = found.of_sizes(b=size).function.evaluate
        y = jnp.asarray(np.asarray(x))
        for a, b in zip(fixed(y), jax.tree.leaves(of_jax(x)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)
        gradient = total(axir, fixed)(y)
        np.testing.assert_allclose(gradient, total(jax, of_jax)(x), rtol=1e-5)


def test_shapes_that_jax_computes_by_rounding_down_are_read(tmp_path: Path) -> None:
    def function(x):
        kernel = jax.numpy.ones((3, 3, 1))
        numbers = ("NWC", "WIO", "NWC")
        windows = jax.lax.conv_general_dilated(
            x[None], kernel, (2,), "SAME", dimension_numbers=numbers
        )
        gram = x.T @ x + 3 * jax.numpy.eye(3)
        rolled = jax.numpy.roll(x, 1, 0), jax.numpy.roll(x, x.shape[0] // 2, 0)
        return *rolled, windows, jax.lax.cummax(x), jax.numpy.linalg.det(x @ x.T + gram[0, 0])

    spec = jax.ShapeDtypeStruct(jax.export.symbolic_shape("b, 3"), "float32")
    (tmp_path / "m.mlir").write_text(jax.export.export(jax.jit(function))(spec).mlir_module())
    found = load(tmp_path / "m.mlir")
    for size in (1, 2, 5):
        x = jax.numpy.linspace(0.5, 1.5, 3 * size).reshape(size, 3)
        results = found.of_sizes(b=size).function.evaluate(jnp.asarray(np.asarray(x)))
        for a, b in zip(results, function(x), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
