"""Several open dimensions, and expressions of them: texts, sizes in calls, refusals."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir._bundles.archive import Archive, archive_bytes
from axir.dialect.core.errors import BundleError, ParameterError, ShapeError, TreeError
from axir.dialect.core.symbolic.terms import SymbolicDimError
from axir.export import (
    Bundle,
    Exported,
    SymbolicScope,
    deserialize,
    export,
    load,
    symbolic_args_specs,
    symbolic_shape,
    to_cpp,
)
from axir.passes.transforms.instantiate import computes_with_sizes, symbols_of
from axir.runtime import Target


def open_array(text: str, *constraints: str) -> axir.ShapeDtypeStruct:
    return axir.ShapeDtypeStruct(symbolic_shape(text, constraints=constraints), "float32")


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("b", "b"),
        ("3", "3"),
        ("b + b + 1", "2*b + 1"),
        ("2*(b - t) - b", "b - 2*t"),
        ("(b + 1)*(b - 1)", "b^2 - 1"),
        ("b^2 * t", "b^2*t"),
        ("-b + 5", "-b + 5"),
        ("b - b + 4", "4"),
        ("floordiv(b, 2) * 2", "2*floordiv(b, 2)"),
        ("(b + t) // 3 + b % 2", "floordiv(b + t, 3) + mod(b, 2)"),
        ("max(b, 3) - min(b, t)", "max(b, 3) - min(b, t)"),
        ("mod(7, 4)", "3"),
    ],
)
def test_extents_have_one_form(text: str, shown: str) -> None:
    (extent,) = symbolic_shape(text)
    assert str(extent) == shown
    sizes = {"b": 11, "t": 4}
    names = {"floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "max": max, "min": min}
    wanted = eval(text.replace("^", "**"), {**sizes, **names})
    assert (extent if isinstance(extent, int) else extent.value(sizes)) == wanted


def test_shapes_are_lists_of_extents() -> None:
    b, t = symbolic_shape("b, t")
    assert symbolic_shape("(b, _, ...)", like=(1, 2, 3, 4)) == (b, 2, 3, 4)
    assert symbolic_shape("") == ()
    assert symbolic_shape("2*b + t, t") == (b + t + b, t)
    assert (str(3 - b), b * t == t * b, 2 + b == b) == ("-b + 3", True, False)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: symbolic_shape("b, ..."), "leaves extents out, and like is not given"),
        (lambda: symbolic_shape("b, _", like=(1, 2, 3)), "'b, _' has 2 extents"),
        (lambda: symbolic_shape("b +"), "'b +' in 'b +' is no extent"),
        (lambda: symbolic_shape("b, 'x'"), "\"'x'\" in \"b, 'x'\" is no extent"),
        (lambda: symbolic_shape("sin(b, 2)"), "'sin(b, 2)' in 'sin(b, 2)' is no extent"),
        (lambda: symbolic_shape("b, 1.5"), "'1.5' in 'b, 1.5' is no extent"),
        (lambda: SymbolicScope(["b"]), "the constraint 'b' is no comparison of two extents"),
        (lambda: SymbolicScope(["b !="]), "the constraint 'b !=' is no comparison"),
    ],
)
def test_wrong_texts_are_refused(call: Any, message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        call()
    assert message in str(caught.value)


def stacked(x, y):
    return {"both": jnp.concatenate([x @ y, x @ y]), "gram": x.T @ x, "sum": x.sum(), "t": y[1:]}


@pytest.fixture(scope="module")
def exported() -> Exported:
    constraints = ["mod(k, 2) == 0", "a >= 2"]
    given = (ones(4, 6), ones(6, 5))
    return export(stacked)(*symbolic_args_specs(given, ("a, k", "k, _"), constraints))


def test_types_of_arguments_and_results(exported: Exported) -> None:
    assert repr(exported) == (
        "<Exported stacked(x: float32[a,k], y: float32[k,5]) -> float32[2*a,5], float32[k,k], "
        "float32[], float32[k - 1,5]>"
    )
    assert exported.symbols == ("a", "k")
    assert exported.of_sizes(a=2, k=4).out_avals[0].shape == (4, 5)


def test_calls_are_for_the_sizes_that_come(exported: Exported, tmp_path: Path) -> None:
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    y = np.arange(30, dtype=np.float32).reshape(6, 5)
    exported.save(tmp_path / "sizes.axir")
    loaded = load(tmp_path / "sizes.axir")
    assert repr(loaded) == repr(exported)
    assert loaded.open == exported.open
    found, wanted = loaded(x, y), stacked(x, y)
    inside = axir.jit(lambda x: exported.call(x, y))(x)
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value)
        np.testing.assert_array_equal(inside[name], value)


def test_programs_for_some_sizes_are_saved(tmp_path: Path) -> None:
    f = export(lambda x: x - x.mean(0))(open_array("b, t"))
    with pytest.raises(ParameterError, match=r"The dimensions b, t of 'main' are open") as caught:
        Bundle({"main": f}).compile(Target())
    assert "--size b=8,t=8, or exported.with_sizes(b=8, t=8)" in str(caught.value)
    made = Bundle({"main": f}).with_sizes(b=(2, 4), t=3).compile(Target())
    made.save(tmp_path / "f.axir")
    loaded = load(tmp_path / "f.axir")
    assert loaded.open.sizes == ((("b", 2), ("t", 3)), (("b", 4), ("t", 3)))
    chosen = loaded._programs.entries[0].functions["main"]
    assert chosen == {(("b", 2), ("t", 3)): "main_b2_t3", (("b", 4), ("t", 3)): "main_b4_t3"}
    for count in (2, 4, 5):
        x = np.arange(count * 3, dtype=np.float32).reshape(count, 3)
        np.testing.assert_allclose(loaded(x), x - x.mean(0), rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((ones(4, 6), ones(7, 5)), "'y' has shape (7, 5), was exported with (k, 5): with a = 4, k"),
        ((ones(1, 6), ones(6, 5)), "the constraint 'a >= 2' does not hold with a = 1, k = 6."),
        ((ones(4, 5), ones(5, 5)), "the constraint 'mod(k, 2) == 0' does not hold"),
        ((ones(6), ones(6, 5)), "the argument 'x' has shape (6,), must have (a, k)."),
        ((ones(4, 0), ones(0, 5)), "the dimension k is 0."),
    ],
)
def test_sizes_that_do_not_fit_are_refused(
    exported: Exported, arguments: Any, message: str
) -> None:
    with pytest.raises(ShapeError) as caught:
        exported(*arguments)
    assert message in str(caught.value)


def test_other_trees_and_sizes_are_refused(exported: Exported) -> None:
    with pytest.raises(TreeError, match="'stacked' was exported for arguments"):
        exported(ones(4, 6))
    with pytest.raises(ParameterError, match="open dimensions of 'stacked' are a, k, not a"):
        exported.of_sizes(a=4)
    with pytest.raises(ParameterError, match="was exported for arguments of fixed shapes"):
        exported.of_sizes(a=4, k=2).of_sizes(a=4)


def test_sizes_follow_from_what_is_linear() -> None:
    product = open_array("a*b, b, 2*c + 1")
    summed = export(lambda x: x.sum())(product)
    assert float(summed(ones(6, 3, 5))) == 90
    with pytest.raises(ShapeError, match=r"with a = 2, b = 3, c = 1 2\*c \+ 1 is 3, not 4"):
        summed(ones(6, 3, 4))
    with pytest.raises(ShapeError, match="the dimension a does not follow from the shapes"):
        export(lambda x: x)(open_array("a*b, 3"))
    with pytest.raises(ShapeError, match="do not broadcast"):
        export(jnp.add)(open_array("a"), open_array("b"))


def test_constraints_decide_what_names_alone_leave_open() -> None:
    rest = export(lambda x: x[8:] * (2 if x.shape[0] >= 8 else 3))(open_array("b", "b >= 8"))
    assert str(rest.out_avals[0]) == "float32[b - 8]"
    np.testing.assert_array_equal(rest(ones(10)), [2, 2])
    with pytest.raises(SymbolicDimError, match="Whether b >= 8 holds depends on the size of b"):
        export(lambda x: x.sum() * (2 if x.shape[0] >= 8 else 3))(open_array("b"))
    doubled = export(lambda m, n: m + jnp.concatenate([n, n]))(
        *symbolic_args_specs((ones(4), ones(2)), ("m", "n"), ["m == 2*n"])
    )
    np.testing.assert_array_equal(doubled(ones(6), ones(3)), [2] * 6)


def test_where_sizes_decide_is_an_error_with_the_line() -> None:
    def special(x):
        return x[0] if x.shape[0] == 1 else x.mean(0)

    for function, message in [
        (special, "Whether b == 1 holds depends on the size of b."),
        (lambda x: jnp.squeeze(x) + x.mean(), "Whether b == 1 holds depends on the size of b."),
        (lambda x: sum(x[i] for i in range(x.shape[0])), "The extent b is not known"),
        (lambda x: x.mean(0) * math.sqrt(x.shape[0]), "The extent b is not known"),
        (lambda x: x.reshape(2, -1).sum(), "cannot infer the shape"),
        (lambda x: jnp.zeros(x.shape[0] - 5) + x.sum(), "extent b - 5 of shape"),
    ]:
        with pytest.raises((SymbolicDimError, ShapeError)) as caught:
            export(function)(open_array("b, 3"))
        assert message in str(caught.value)
        assert "test_symbolic.py" in str(caught.value)


def test_functions_that_are_exported_together_may_have_several_open_dimensions() -> None:
    both = export({"f": lambda x: x.T @ x, "g": lambda x: x * 2})(
        f=(open_array("a, b"),), g=(open_array("a, 3"),)
    )
    assert both.f.symbols == ("a", "b")
    assert both.g.batch is not None
    np.testing.assert_array_equal(both.f(ones(3, 2)), np.full((2, 2), 3))


def test_what_is_loaded_is_transformed(exported: Exported) -> None:
    f = deserialize(export(lambda x: x - x.mean(0))(open_array("b, t")).serialize())
    x = jnp.arange(6.0).reshape(3, 2)
    gradient = axir.grad(lambda x: (f(x) ** 2).sum())(x)
    np.testing.assert_allclose(gradient, 2 * (x - x.mean(0)), atol=1e-6)
    np.testing.assert_allclose(axir.vmap(f)(jnp.stack([x, x * 2]))[1], f(x) * 2, atol=1e-6)
    pullback = f.vjp()
    assert repr(pullback).startswith("<Exported main_vjp(x: float32[b,t]")
    np.testing.assert_allclose(pullback(x, x), x - x.mean(0), atol=1e-6)
    # A function that calls it is exported for symbolic dimensions as well.
    outer = export(lambda x: f(jnp.concatenate([x, x])).sum(1))(open_array("n, 2"))
    np.testing.assert_allclose(outer(x), f(jnp.concatenate([x, x])).sum(1), atol=1e-6)


@pytest.mark.parametrize("compare", [jnp.array_equal, jnp.array_equiv])
def test_sizes_decide_whether_arrays_are_equal(compare: Any) -> None:
    x, y = axir.export.symbolic_args_specs((jnp.ones(2), jnp.ones(2)), ("a", "b"))
    with pytest.raises(SymbolicDimError, match="Whether a == b holds depends on the size of a, b"):
        export(axir.jit(compare))(x, y)
    same = export(axir.jit(lambda x, y: compare(x, y) & (x[0] > 0)))(x, x)
    assert same(np.ones(3, np.float32), np.ones(3, np.float32))


def test_functions_called_like_others_for_some_sizes_stay_apart(tmp_path: Path) -> None:
    def mean(x):
        return x - x.mean(0)

    rows = export(lambda x: x + 5)(open_array("b, 3")).with_rows(8)
    g, h = export(mean)(open_array("t")), export(lambda x: x * 100)(ones(8))
    g = g.with_sizes(t=8)
    functions = {"g": g, "g_t8": h, "r": rows, "r_rows8": h, "g_b8": g, "g_b8_t8": h}
    Bundle(functions).compile(Target()).save(tmp_path / "g.axir")
    loaded, x = load(tmp_path / "g.axir"), np.arange(8, dtype=np.float32)
    for name in ("g", "g_b8"):
        np.testing.assert_array_equal(loaded[name](x), mean(x))
    for name in ("g_t8", "r_rows8", "g_b8_t8"):
        np.testing.assert_array_equal(loaded[name](x), x * 100)
    np.testing.assert_array_equal(loaded["r"](ones(8, 3)), ones(8, 3) + 5)
    assert loaded.programs[0].functions["g"] == {(("t", 8),): "g_t8_2"}
    with pytest.raises(ParameterError, match=r"'g' for t=8 would be called 'g_t8', as another"):
        to_cpp(Bundle({"g": g, "g_t8": h}), tmp_path / "cpp")
    header = to_cpp(Bundle({"g": g, "f": g}), tmp_path / "cpp")
    text = next(path for path in header if path.name == "model.hpp").read_text()
    assert "g_t8(" in text
    assert "f_t8(" in text


def test_functions_of_rows_take_sizes_by_name() -> None:
    f = export(lambda x: x + 1)(open_array("b, 3"))
    assert f.batch is not None
    named = f.with_sizes(b=(8, 1))
    assert named.batch.sizes == (1, 8)
    assert named.with_sizes().batch.sizes == ()
    assert f.with_combinations([{"b": 4}, {"b": 2}]).batch.sizes == (2, 4)
    for call in (f.with_sizes, f.of_sizes):
        with pytest.raises(ParameterError, match="The open dimensions of 'main' are b, not t"):
            call(t=8)
    with pytest.raises(ParameterError, match="are b, not t"):
        f.with_sizes(t=())
    with pytest.raises(ShapeError, match="the dimension b is 0"):
        f.with_sizes(b=0)
    for given in ({}, {"b": 8}):
        with pytest.raises(ParameterError, match="was exported for arguments of fixed shapes"):
            f.of_rows(2).with_sizes(**given)


def test_functions_of_a_bundle_take_their_own_sizes() -> None:
    f = export(lambda x: x + 1)(open_array("b, 3"))
    g = export(lambda x: x - x.mean(0))(open_array("t"))
    h = export(lambda x: x - x.mean())(open_array("b, t"))
    bundle = Bundle({"f": f, "g": g, "fixed": export(jnp.sin)(1.0)}).with_sizes(t=8)
    assert (bundle.f.batch.sizes, bundle.g.open.sizes) == ((), ((("t", 8),),))
    bundle = bundle.with_sizes(b=(4, 2))
    assert (bundle.f.batch.sizes, bundle.g.open.sizes) == ((2, 4), ((("t", 8),),))
    bundle = bundle.with_sizes()
    assert (bundle.f.batch.sizes, bundle.g.open.sizes) == ((), ())
    with pytest.raises(ParameterError, match=r"No function has an open dimension 'z'") as caught:
        bundle.with_sizes(t=8, z=1)
    assert "The open dimensions are b, t." in str(caught.value)
    with pytest.raises(ParameterError, match="The open dimensions of 'main' are b, t, not t"):
        Bundle({"g": g, "h": h}).with_sizes(t=8)


def test_symbols_and_what_is_computed_of_them_are_found_in_callees_too() -> None:
    def nested(inner):
        def body(carry, x):
            return axir.lax.cond(carry > 0, lambda: carry + inner(x), lambda: carry), x

        return export(lambda x: axir.lax.scan(body, jnp.float32(0), x))(
            open_array("2*b, t")
        ).function

    multiples = nested(lambda x: jnp.concatenate([x, x]).sum())
    others = nested(lambda x: jnp.concatenate([x, x[:1]]).sum())
    for function, is_other in ((multiples, False), (others, True)):
        assert symbols_of(function) == {"b", "t"}
        assert computes_with_sizes(function) is is_other
    assert symbols_of(export(jnp.sin)(1.0).function) == set()


def test_constraints_name_dimensions_that_there_are(tmp_path: Path) -> None:
    scope = SymbolicScope(["b >= 2", "mod(t, 4) == b"])
    spec = axir.ShapeDtypeStruct(symbolic_shape("b, 3", scope=scope), "float32")
    with pytest.raises(
        ShapeError, match=r"constraint 'mod\(t, 4\) == b' names a dimension"
    ) as caught:
        export(lambda x: x - x.mean(0))(spec)
    assert "The dimensions are b: state it for functions" in str(caught.value)
    path = tmp_path / "f.axir"
    export(lambda x: x - x.mean(0))(open_array("b, t", "mod(t, 4) == b")).save(path)
    entries = {name: bytes(data) for name, data in Archive(path, "f").entries.items()}
    manifest = json.loads(entries["manifest.json"])
    manifest["functions"]["main"]["open"]["constraints"] = ["mod(z, 4) == b"]
    entries["manifest.json"] = json.dumps(manifest).encode()
    with pytest.raises(BundleError, match=r"open: 'mod\(z, 4\) == b' has names that are not"):
        deserialize(archive_bytes({name: [data] for name, data in entries.items()}))


def test_constraints_of_what_was_loaded_stay_as_they_are() -> None:
    made = export(lambda x: x - x.mean(0))(open_array("b, t", "b >= 2"))
    loaded = deserialize(made.serialize())
    old = loaded.in_avals[0].shape[0]
    (new,) = symbolic_shape("b", scope=old.scope, constraints=["b >= 100"])
    spec = symbolic_args_specs(ones(3), "b", constraints=["b >= 50"], scope=old.scope)
    assert (new.constraints, spec.shape[0].constraints) == (
        ("b >= 2", "b >= 100"),
        ("b >= 2", "b >= 50"),
    )
    assert (new >= 100, old.constraints) == (True, ("b >= 2",))
    np.testing.assert_array_equal(loaded(ones(3, 2)), np.zeros((3, 2)))
    own = SymbolicScope(["b >= 2"])
    (b,) = symbolic_shape("b", scope=own)
    symbolic_shape("t", scope=own, constraints=["b >= t"])
    assert b.constraints == ("b >= 2", "b >= t")
