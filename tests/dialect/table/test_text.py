"""Text and bytecode keep programs, and `simplify` keeps their values."""

from __future__ import annotations

import io

import numpy as np
import pytest
from support.op_cases import Case, cases_of, differences, sampled_ops, values

from axir.dialect.core.array import as_array
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.module_writer import embed_captures, write_module
from axir.dialect.program.tracer import Trace
from axir.dialect.text.module_reader import parse_module, read_module
from axir.passes.framework.pipeline import run_passes
from axir.passes.transforms.simplify import simplify_function


def _functions(name: str) -> tuple[dict[str, Case], dict[str, Function]]:
    cases = {f"sample_{case.index}" if case.index else "main": case for case in cases_of(name)}
    return cases, {symbol: embed_captures(case.function()) for symbol, case in cases.items()}


def _problems(cases: dict[str, Case], functions: dict[str, Function]) -> list[str]:
    found: list[str] = []
    for symbol, case in cases.items():
        results = values(functions[symbol].evaluate(*map(as_array, case.args)))
        found += differences(str(case), results, case.evaluate(), 0)
    return found


@pytest.mark.parametrize("name", sampled_ops())
def test_text_keeps_functions(name: str) -> None:
    cases, functions = _functions(name)
    text = str(write_module(functions))
    module = parse_module(text)
    assert str(module) == text
    read = read_module(module)
    assert str(write_module({symbol: read[symbol] for symbol in functions})) == text
    assert _problems(cases, read) == []


@pytest.mark.parametrize("name", sampled_ops())
def test_bytecode_keeps_functions(name: str) -> None:
    cases, functions = _functions(name)
    module = write_module(functions)
    file = io.BytesIO()
    module.operation.write_bytecode(file)
    parsed = parse_module(file.getvalue())
    assert str(parsed) == str(module)
    assert _problems(cases, read_module(parsed)) == []


@pytest.mark.parametrize("name", sampled_ops())
def test_simplify_keeps_values(name: str) -> None:
    cases, functions = _functions(name)
    assert _problems(cases, {s: simplify_function(f) for s, f in functions.items()}) == []
    module = write_module(functions)
    run_passes(module, "simplify")
    assert _problems(cases, read_module(module)) == []


@pytest.mark.parametrize("name", sampled_ops())
def test_constants_fold_to_the_values_of_the_op(name: str) -> None:
    for case in cases_of(name):
        folded = embed_captures(simplify_function(_with_constants(case)))
        is_foldable = not (case.primitive.is_staged or case.primitive.is_effectful)
        if is_foldable and all(v.type.size <= 64 for v in folded.outputs):
            assert not folded.equations, str(case)
        read = read_module(parse_module(str(write_module({"main": folded}))))["main"]
        expected = values(case.bind(*map(as_array, case.args)))
        problems = differences(str(case), values(read.evaluate()), expected, 0)
        assert list(problems) == []


def _with_constants(case: Case) -> Function:
    """The primitive applied to its sample's arguments as constants in the text."""
    arrays = [as_array(x) for x in case.args]
    with Trace(case.primitive.name) as trace:
        for array in arrays:
            trace.embed(array)
        result = trace.record(case.primitive, arrays, case.params)
        return trace.finish(result if case.primitive.multiple_results else [result])


@pytest.mark.parametrize("is_weak", [False, True])
def test_weak_types_survive_as_marks(is_weak: bool) -> None:
    from axir.dialect.core.types import ShapedArray
    from axir.dialect.ops.elementwise.arithmetic import add

    vector = ShapedArray((2,), np.float32, is_weak)
    function = trace_function(lambda x: [add(x, x)], [vector])
    text = str(write_module({"main": function}))
    assert ("jaxpr.weak_type" in text) is is_weak
    read = read_module(parse_module(text))["main"]
    assert [v.type for v in (*read.inputs, *read.outputs)] == [vector, vector]
