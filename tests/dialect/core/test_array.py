"""Arrays, and the declaration of their interface."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy
import axir.numpy as jnp
from axir import lax
from axir.dialect.core import array
from axir.dialect.core.array import Array, ConcreteArray
from axir.dialect.core.config import config
from axir.dialect.program.tracer import Tracer
from axir.numpy._methods import array_placement

ROOT = Path(__file__).parents[2]

TRANSFORMATIONS: dict[str, Callable[[Callable[..., Any]], Any]] = {
    "make_jaxpr": lambda f: axir.make_jaxpr(f)(jnp.ones(3)),
    "grad": lambda f: axir.grad(f)(jnp.ones(3)),
    "jvp": lambda f: axir.jvp(f, (jnp.ones(3),), (jnp.ones(3),)),
    "linearize": lambda f: axir.linearize(f, jnp.ones(3)),
    "vmap": lambda f: axir.vmap(f)(jnp.ones((2, 3))),
    "scan": lambda f: lax.scan(lambda carry, x: (carry + f(x), x), 0.0, jnp.ones((2, 3))),
    "cond": lambda f: lax.cond(True, f, f, jnp.ones(3)),
    "checkpoint": lambda f: axir.checkpoint(f)(jnp.ones(3)),
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_tracers_are_arrays(name: str) -> None:
    seen: list[tuple[bool, bool, bool]] = []

    def f(x: Any) -> Any:
        is_array, is_ndarray = isinstance(x, axir.Array), isinstance(x, jnp.ndarray)
        seen.append((is_array, is_ndarray, isinstance(x, axir.core.Tracer)))
        return jnp.sum(x)

    TRANSFORMATIONS[name](f)
    assert set(seen) == {(True, True, True)}


def test_concrete_arrays_are_arrays_and_nothing_else_is() -> None:
    assert jnp.ndarray is axir.Array
    x = jnp.ones(3)
    assert isinstance(x, axir.Array)
    assert not isinstance(x, axir.core.Tracer)
    assert issubclass(type(x), axir.Array)
    others = (1.0, np.ones(3), np.float32(1), axir.ShapeDtypeStruct((3,), jnp.float32), x.aval)
    assert not any(isinstance(other, axir.Array) for other in others)


def test_dispatch_by_class_finds_both_kinds() -> None:
    @functools.singledispatch
    def kind(x: Any) -> str:
        return "other"

    @kind.register(axir.Array)
    def _(x: Any) -> str:
        return "array"

    seen = []
    axir.eval_shape(lambda x: seen.append(kind(x)), 1.0)
    assert [kind(jnp.ones(2)), kind(np.ones(2)), *seen] == ["array", "other", "array"]


def test_the_class_serves_in_annotations() -> None:
    assert str(axir.Array | None) == "axir.Array | None"
    assert repr(axir.Array) == "<class 'axir.Array'>"


def test_the_class_has_no_constructor() -> None:
    with pytest.raises(TypeError, match=r"axir\.Array has no constructor.*axir\.numpy\.array"):
        axir.Array((3,), jnp.float32)


def test_pickles_have_the_dtypes_of_whoever_reads_them() -> None:
    with config(jax_enable_x64=True):
        assert config.x64_enabled
        text = pickle.dumps([jnp.array([1.5, 2.5]), jnp.asarray(3.0)])
        assert [x.dtype for x in pickle.loads(text)] == ["float64", "float64"]
    assert not config.x64_enabled
    wide, weak = pickle.loads(text)
    assert (wide.dtype, wide.tolist(), weak.dtype) == ("float32", [1.5, 2.5], "float32")
    assert weak.weak_type


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_and_pickles_are_arrays_of_the_same_type(duplicate: Callable[[Any], Any]) -> None:
    for x in (jnp.arange(3), jnp.ones((0, 2), jnp.bfloat16), jnp.asarray(1.0)):
        again = duplicate(x)
        assert type(again) is type(x)
        assert again.aval is x.aval
        np.testing.assert_array_equal(again, x)


def misuses(path: Path) -> Iterator[str]:
    """Yields where the class itself is called or compared with the class of a value."""
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[ast.expr] = []
        if isinstance(node, ast.Call):
            names = [node.func]
        elif isinstance(node, ast.Compare):
            names = [node.left, *node.comparators]
        if any(isinstance(name, ast.Name) and name.id == "Array" for name in names):
            yield f"{path.relative_to(ROOT)}:{node.lineno}"


def test_nothing_is_taken_for_an_instance_of_the_very_class() -> None:
    # Comparisons of type(x) mean ConcreteArray; with Array the comparison would never hold.
    rooms = ("dialect", "passes", "runtime", "frontend")
    paths = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    assert [place for path in paths for place in misuses(path)] == []


DECLARATIONS = Path(array.__file__).with_name("array_interface.pyi")
CLASS = next(
    node
    for node in ast.parse(DECLARATIONS.read_text()).body
    if isinstance(node, ast.ClassDef) and node.name == "ArrayInterface"
)
DECLARED = {node.name: node for node in CLASS.body if isinstance(node, ast.FunctionDef)}
# Tracers lack these, because programs test for them with `hasattr`.
UNTRACED = {*array_placement.UNTRACED_METHODS, *array_placement.UNTRACED_PROPERTIES}
# Members that the class itself declares, so that type checkers see them there.
OWN = {
    node.name
    for node in ast.walk(ast.parse(inspect.getsource(array)))
    if isinstance(node, ast.FunctionDef)
}


def test_what_is_installed_is_declared() -> None:
    installed = {name for name, member in vars(Array).items() if callable(member)}
    installed |= {name for name, member in vars(Array).items() if isinstance(member, property)}
    # Python removes the hash of a class with an equality.
    assert installed - OWN - set(DECLARED) == set()


@pytest.mark.parametrize("name", sorted(DECLARED))
@pytest.mark.parametrize("kind", [ConcreteArray, Tracer])
def test_what_is_declared_is_there(kind: type, name: str) -> None:
    if kind is Tracer and name in UNTRACED:
        assert not hasattr(kind, name)
        return
    member = getattr(kind, name)
    declared = DECLARED[name]
    is_property = any(
        isinstance(d, ast.Name) and d.id == "property" for d in declared.decorator_list
    )
    assert isinstance(member, property) == is_property


@pytest.mark.parametrize("name", sorted(n for n in DECLARED if not n.startswith("__")))
def test_parameters_are_those_of_the_function(name: str) -> None:
    member = getattr(ConcreteArray, name)
    if isinstance(member, property) or name == "clip":  # NumPy's older names stand beside
        return
    declared = DECLARED[name].args
    names = [a.arg for a in (*declared.args, *declared.kwonlyargs)][1:]
    parameters = inspect.signature(member).parameters.values()
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    assert names == [p.name for p in parameters if p.kind not in variadic][1:]
