"""Assembling modules: the symbols of functions and of those that they call."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from axir.dialect.core.array import as_array
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.calls.jit_call import call, set_executor
from axir.dialect.ops.elementwise.arithmetic import add, mul, neg
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.module_writer import embed_captures, write_module
from axir.dialect.text.module_reader import parse_module, read_module
from axir.passes.framework.pipeline import run_passes

VECTOR = ShapedArray((2,), np.float32)
X = np.array([3, -5], np.float32)


@pytest.fixture(autouse=True)
def evaluated_calls() -> Iterator[None]:
    """Has the evaluator run the bodies of calls, which otherwise are compiled."""
    executor = set_executor(None)
    yield
    set_executor(executor)


def traced(function, name: str) -> Function:
    return trace_function(function, [VECTOR], name=name)


def value(function: Function) -> list[float]:
    return function.evaluate(as_array(X))[0].host().tolist()


def test_one_function_under_two_symbols() -> None:
    double = traced(lambda x: [add(x, x)], "double")
    read = read_module(write_module({"main": double, "other": double}))
    assert [value(read[name]) for name in ("main", "other")] == [[6, -10], [6, -10]]


def test_callees_of_equal_names_are_numbered() -> None:
    inner = traced(lambda x: [add(x, x)], "body")
    other = traced(lambda x: [neg(x)], "body")
    outer = traced(lambda x: [mul(call(inner, x)[0], call(other, x)[0])], "outer")
    module = write_module({"main": outer})
    assert {"main", "body", "body_1"} == set(read_module(module))
    assert value(read_module(module)["main"]) == [-18, -50]


def test_functions_that_were_read_keep_their_callees_when_those_are_renamed() -> None:
    inner = traced(lambda x: [add(x, x)], "inner")
    outer = traced(lambda x: [neg(call(inner, x)[0])], "outer")
    read = read_module(parse_module(str(write_module({"main": outer}))))
    taken = traced(lambda x: [mul(x, x)], "square")
    module = write_module({"main": read["main"], "inner": taken})
    again = read_module(parse_module(str(module)))
    assert value(again["main"]) == [-6, 10]
    assert value(again["inner"]) == [9, 25]


def test_embedded_captures_are_constants() -> None:
    weights = as_array(np.array([2, 7], np.float32))
    function = traced(lambda x: [mul(x, weights), weights], "scaled")
    assert len(function.captures) == 1
    embedded = embed_captures(function)
    assert not embedded.captures
    read = read_module(parse_module(str(write_module({"main": embedded}))))["main"]
    results = [x.host().tolist() for x in read.evaluate(as_array(X))]
    assert results == [[6, -35], [2, 7]]


def test_passes_add_no_arguments_for_the_arrays_that_they_make() -> None:
    function = embed_captures(traced(lambda x: [add(x, np.ones(2, np.float32))], "shifted"))
    constant = traced(lambda x: [as_array(np.zeros(2, np.float32))], "constant")
    for pipeline in ("simplify", "jvp", "vmap{axis_size=3}", "vmap{axis_size=3},jvp,simplify"):
        for kept in (function, embed_captures(constant)):
            module = write_module({"main": kept})
            run_passes(module, pipeline)
            count = 2 if "jvp" in pipeline else 1
            assert len(read_module(module)["main"].inputs) == count, pipeline


def test_callees_survive_the_passes_that_leave_them_alone() -> None:
    callees = [
        traced(lambda x, k=k: [mul(x, as_array(np.float32(k)))], f"by_{k}") for k in range(6)
    ]
    main = traced(lambda x: [call(callee, x)[0] for callee in callees], "main")
    module = write_module({"main": main})
    run_passes(module, 'simplify{inline="none"},simplify{inline="none"}')
    results = read_module(parse_module(str(module)))["main"].evaluate(as_array(X))
    assert [x.host().tolist() for x in results] == [[3 * k, -5 * k] for k in range(6)]
