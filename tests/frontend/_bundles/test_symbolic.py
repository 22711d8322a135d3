"""Several open dimensions, and what is computed of them: texts, sizes in calls, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir.dialect.core.errors import ParameterError, ShapeError, TreeError
from axir.export import (
    SymbolicExported,
    SymbolicScope,
    export,
    load,
    symbolic_args_specs,
    symbolic_shape,
)


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
    assert (3 - b, b * t == t * b, 2 + b == b) == (symbolic_shape("3 - b")[0], True, False)


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
def exported() -> SymbolicExported:
    constraints = ["mod(k, 2) == 0", "a >= 2"]
    given = (ones(4, 6), ones(6, 5))
    return export(stacked)(*symbolic_args_specs(given, ("a, k", "k, _"), constraints))


def test_types_of_arguments_and_results(exported: SymbolicExported) -> None:
    assert repr(exported) == "<Exported stacked(x: float32[a, k], y: float32[k, 5]), open: a, k>"
    assert [str(kind.shape) for kind in exported.in_avals] == ["(a, k)", "(k, 5)"]
    assert [str(kind.shape) for kind in exported.out_avals] == [
        "(2*a, 5)",
        "(k, k)",
        "()",
        "(k - 1, 5)",
    ]
    assert exported.symbols == ("a", "k")


def test_calls_are_for_the_sizes_that_come(exported: SymbolicExported, tmp_path: Path) -> None:
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    y = np.arange(30, dtype=np.float32).reshape(6, 5)
    found, wanted = exported(x, y), stacked(x, y)
    inside = axir.jit(lambda x: exported.call(x, y))(x)
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value)
        np.testing.assert_array_equal(inside[name], value)
    exported.with_sizes(a=(2, 4), k=6).save(tmp_path / "sizes.axir")
    bundle = load(tmp_path / "sizes.axir")
    assert list(bundle) == ["stacked_a2_k6", "stacked_a4_k6"]
    np.testing.assert_array_equal(bundle.stacked_a2_k6(x, y)["both"], wanted["both"])


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
    exported: SymbolicExported, arguments: Any, message: str
) -> None:
    with pytest.raises(ShapeError) as caught:
        exported(*arguments)
    assert message in str(caught.value)


def test_other_trees_and_sizes_are_refused(exported: SymbolicExported) -> None:
    with pytest.raises(TreeError, match="'stacked' was exported for arguments"):
        exported(ones(4, 6))
    with pytest.raises(ParameterError, match="The open dimensions are a, k, not a"):
        exported.of_sizes(a=4)
    with pytest.raises(ParameterError, match=r"exported.with_sizes\(a=\(1, 8\), k=\(1, 8\)\).save"):
        exported.save("any.axir")
    with pytest.raises(ParameterError, match="What is saved has fixed sizes"):
        exported.serialize()


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
    with pytest.raises(ParameterError, match="no small sizes fulfil the constraints 'a > 1000'"):
        export(lambda x: x)(open_array("a, b", "a > 1000"))


def test_a_constraint_lets_rows_be_mixed() -> None:
    centred = export(lambda x: x - x.mean(0))(open_array("b, 2", "b >= 1"))
    assert isinstance(centred, SymbolicExported)
    np.testing.assert_array_equal(centred(ones(3, 2)), np.zeros((3, 2)))


def test_results_that_no_polynomial_tells() -> None:
    halves = export(lambda x: x[::2])(open_array("a, b"))
    assert halves(ones(5, 2)).shape == (3, 2)
    with pytest.raises(ShapeError, match="neither that of an argument nor a polynomial"):
        _ = halves.out_avals


def test_functions_that_are_exported_together_have_one_leading_dimension() -> None:
    with pytest.raises(ShapeError, match="exported together, a, b, are not a single leading one"):
        export({"f": lambda x: x})(f=(open_array("a, b"),))
