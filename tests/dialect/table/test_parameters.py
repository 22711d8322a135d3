"""Declared parameters of ops agree with rules, samples and text."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import numpy as np
import pytest
from iree.compiler import ir
from support.op_cases import cases_of, sampled_ops

from axir.dialect.core.attributes import encode
from axir.dialect.core.context import context
from axir.dialect.core.errors import VerificationError
from axir.dialect.ops import OPS
from axir.dialect.ops.windows.sliding_windows import WINDOW_PARAMETERS, Window
from axir.dialect.program.function import Function
from axir.dialect.program.module_writer import embed_captures, write_module
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Rules
from axir.dialect.program.parameters import Unprinted, describe, fits, leaves
from axir.dialect.program.primitive import Primitive
from axir.dialect.text.module_reader import parse_module, read_module

# Rules that get the parameters of the op as keyword arguments.
_TAKING = sorted(set(vars(Primitive("none"))) - {"samples", "reduced"})
# One value of each type that text can hold, and a tuple of another type.
_VALUES = ("text", 0.5, 2, True, None, np.dtype(np.float32), (0,), (("text", 0.5),))


def _rules(primitive: Primitive) -> Iterator[Callable[..., Any]]:
    for name in _TAKING:
        rule = getattr(primitive, name)
        if callable(rule) and not isinstance(rule, np.ufunc):
            yield rule


def _keywords(rule: Callable[..., Any]) -> dict[str, Any]:
    try:
        signature = inspect.signature(rule, eval_str=True)
    except ValueError:  # a function of a library without a signature, which takes no parameters
        return {}
    given = rule.keywords if isinstance(rule, functools.partial) else {}
    return {
        p.name: p.annotation
        for p in signature.parameters.values()
        if p.kind is p.KEYWORD_ONLY and p.name not in given
    }


def _bare(kind: Any) -> Any:
    return kind.__origin__ if typing.get_origin(kind) is Annotated else kind


@pytest.mark.parametrize("name", OPS)
def test_rules_take_what_is_declared(name: str) -> None:
    declared = OPS[name].parameters
    assert declared is not None
    for rule in _rules(OPS[name]):
        for parameter, kind in _keywords(rule).items():
            assert parameter in declared, rule
            if kind is not inspect.Parameter.empty and Any not in leaves(kind):
                assert kind == _bare(declared[parameter]), (rule, parameter)


@pytest.mark.parametrize("name", OPS)
def test_types_are_those_that_can_be_checked(name: str) -> None:
    for kind in (OPS[name].parameters or {}).values():
        assert Any not in leaves(kind)
        assert describe(kind)


@pytest.mark.parametrize("name", OPS)
def test_samples_fit_what_is_declared(name: str) -> None:
    declared = OPS[name].parameters or {}
    for case in cases_of(name):
        assert case.params.keys() == declared.keys(), str(case)
        misfits = [key for key, value in case.params.items() if not fits(declared[key])(value)]
        assert misfits == [], str(case)


def _module_of(name: str) -> tuple[ir.Module, ir.Operation]:
    """Returns a module with the op as its first sample applies it, and the op."""
    function = embed_captures(cases_of(name)[0].function())
    module = parse_module(str(write_module({"main": function})))
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == f"jaxpr.{name}":
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return module, found[0]


# The reader takes a constant for a literal.
_WITH_TEXT = [name for name in sampled_ops() if name != "constant"]


@pytest.mark.parametrize("name", _WITH_TEXT)
def test_text_of_another_type_is_refused(name: str) -> None:
    module, op = _module_of(name)
    for parameter, kind in (OPS[name].parameters or {}).items():
        right = op.attributes[parameter]
        for value in (value for value in _VALUES if not fits(kind)(value)):
            op.attributes[parameter] = encode(value)
            text = f"jaxpr.{name}: the attribute '{parameter}' must be .+, not "
            with pytest.raises(VerificationError, match=text):
                read_module(module)
        op.attributes[parameter] = right
    read_module(module)


@pytest.mark.parametrize("name", _WITH_TEXT)
def test_text_with_other_names_is_refused(name: str) -> None:
    module, op = _module_of(name)
    with context():
        op.attributes["speed"] = ir.UnitAttr.get()
    with pytest.raises(VerificationError, match=f"jaxpr.{name}: there is no attribute 'speed'"):
        read_module(module)
    del op.attributes["speed"]
    for parameter in OPS[name].parameters or {}:
        right = op.attributes[parameter]
        del op.attributes[parameter]
        with pytest.raises(VerificationError, match=f"the attribute '{parameter}' is missing"):
            read_module(module)
        op.attributes[parameter] = right


def test_windows_declare_their_fields() -> None:
    assert tuple(WINDOW_PARAMETERS) == Window._fields


def test_declaring_twice_or_what_is_no_rule_is_refused() -> None:
    with pytest.raises(ValueError, match="declared twice"):
        declare("sin")
    with pytest.raises(TypeError, match="evalute"):
        declare("some_op", evalute=lambda x: x)
    with pytest.raises(TypeError, match="multiple values for keyword argument 'jvp'"):
        declare("some_op", jvp=lambda x: x, unsupported={"jvp": "it is there"})
    assert "some_op" not in OPS


def test_rules_start_absent() -> None:
    assert vars(Primitive("some_op")).items() >= dict.fromkeys(Rules.__annotations__).items()
    assert Primitive("some_op").parameters is None


def test_types_are_described() -> None:
    assert describe(Unprinted[tuple[bool, ...]]) == "tuple[bool, ...]"
    assert describe(tuple[tuple[int, int], ...] | None) == "tuple[tuple[int, int], ...] | None"
    assert describe(np.dtype) == "dtype"
    assert describe(Window) == "Window"
    assert describe(Function) == "Function"
    assert describe(Callable[..., bool] | None) == "Callable | None"


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        (int, [0, -1], [True, 0.5, None]),
        (float, [0, 0.5], [True, "0.5"]),
        (bool, [True], [0, None]),
        (int | None, [1, None], [False, (1,)]),
        (tuple[int, ...], [(), (1, 2)], [[1], (1, True), 1]),
        (tuple[tuple[int, int], ...], [(), ((1, 2),)], [((1,),), (1, 2)]),
        (tuple[str, str], [("a", "b")], [(), ("a",), ("a", 1)]),
        (np.dtype, [np.dtype("float32")], ["float32", np.float32]),
        (Unprinted[tuple[bool, ...]], [(), (True,)], [(1,)]),
    ],
)
def test_values_fit_types(kind: Any, right: list[Any], wrong: list[Any]) -> None:
    assert all(map(fits(kind), right))
    assert not any(map(fits(kind), wrong))
