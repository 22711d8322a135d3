"""The declared operators and methods of arrays are the installed ones."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import axir.numpy  # noqa: F401 (installs the compared methods)
from axir.dialect.core import array
from axir.dialect.core.array import Array, ConcreteArray
from axir.dialect.program.tracer import Tracer
from axir.numpy._methods import array_placement

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
