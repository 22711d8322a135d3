"""An in-place operation on one name of an array does not change its other name's array."""

from __future__ import annotations

import numpy as np
import pytest
from iree.compiler import ir
from support.stablehlo_runner import Example, build, deviations, run_examples

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes
from axir.runtime import Target, compile_module
from axir.runtime.compiler.binaries import linker_flags
from axir.runtime.compiler.invocation import stream_passes
from axir.runtime.compiler.invocation.invoker import Invoker
from axir.runtime.compiler.invocation.other_names import copy_what_others_name
from axir.runtime.compiler.invocation.stream_passes import WrongMemoryError
from axir.runtime.compiler.target import PROCESS_FLAGS

X = np.arange(9, dtype=np.float64).reshape(3, 3)
PRODUCT = X @ X
CHANGED = PRODUCT.copy()
CHANGED[1] = 0
PLACE = np.int32(1)
# The program computes each product twice; IREE merges the two.
PASSES = "protect-inputs"


def product(x):
    return hlo.dot_general(x, x, ((1,), (0,)))


def doubled(x):
    return hlo.add(x, x)


def changed(x, place):
    zero = hlo.constant(np.int32(0))
    return hlo.dynamic_update_slice(x, hlo.constant(np.zeros((1, 3))), [place, zero])


def chosen(place, given):
    """The result of the second branch, which passes on a value that it does not compute."""
    branches = [lambda: [doubled(given)], lambda: [given], lambda: [hlo.negate(given)]]
    return hlo.case(place, branches, [given.type])[0]


def behind_a_barrier(x, place):
    [hidden] = hlo.optimization_barrier(product(x))
    return [changed(hidden, place), doubled(product(x))]


def before_a_barrier(x, place):
    [hidden] = hlo.optimization_barrier(product(x))
    return [changed(product(x), place), doubled(hidden)]


def given_by_a_branch(x, place):
    given = chosen(place, product(x))
    return [changed(given, place), doubled(product(x))]


def given_by_a_branch_and_changed(x, place):
    given = chosen(place, product(x))
    return [changed(product(x), place), doubled(given)]


def changed_in_a_branch(x, place):
    [hidden] = hlo.optimization_barrier(product(x))
    branches = [lambda: [doubled(x)], lambda: [changed(hidden, place)]]
    [given] = hlo.case(place, branches, [x.type])
    return [given, doubled(product(x))]


EXAMPLES = [
    Example(builder.__name__, (X, PLACE), builder, [CHANGED, PRODUCT + PRODUCT])
    for builder in (
        behind_a_barrier,
        before_a_barrier,
        given_by_a_branch,
        given_by_a_branch_and_changed,
        changed_in_a_branch,
    )
]


def test_the_first_program_is_right(caplog: pytest.LogCaptureFixture) -> None:
    results = run_examples(
        EXAMPLES, PASSES, compiler=lambda module: compile_module(module, Target())
    )
    for example in EXAMPLES:
        assert deviations(results[example.name], example) == []
    assert "is compiled again" not in caplog.text


@pytest.mark.makes_wrong_programs
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_else_it_is_refused(example: Example, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_passes, "has_other_names", lambda module: False)
    module = build({example.name: (example.arguments, example.builder)})
    run_passes(module, PASSES)
    flags = (*Target().flags(), *linker_flags())
    with pytest.raises(WrongMemoryError, match=r" reads .* is meant"):
        Invoker(PROCESS_FLAGS).compile(str(module).encode(), flags, print)


ARRAY = "!stream.resource<*>"


def write(result: str, target: str) -> str:
    """A line that works on `target` in place."""
    return (
        f"{result} = stream.async.fill %byte, {target}[%c0 to %n for %n] : i8 -> "
        f"{target} as {ARRAY}{{%n}}"
    )


def copies(body: str) -> int:
    """How many copies are put into a function."""
    text = f"""
      util.func public @f(%x: {ARRAY}, %n: index, %p: i1, %byte: i8) -> ({ARRAY}, {ARRAY}) {{
        %c0 = arith.constant 0 : index
        {body}
      }}
    """
    with ir.Context():
        module = ir.Module.parse(text)
        count = copy_what_others_name(module.operation)
        assert module.operation.verify()
        there = body.count("stream.async.clone")
        assert str(module).count("stream.async.clone") == there + count
        assert copy_what_others_name(module.operation) == 0
    return count


def barrier(result: str, operand: str) -> str:
    return f"{result} = util.optimization_barrier {operand} : {ARRAY}"


def choice(result: str, first: str, second: str, before: str = "") -> str:
    return f"""
      {result} = scf.if %p -> ({ARRAY}) {{
        {before}
        scf.yield {first} : {ARRAY}
      }} else {{
        scf.yield {second} : {ARRAY}
      }}
    """


def results(*values: str) -> str:
    return f"util.return {', '.join(values)} : {ARRAY}, {ARRAY}"


@pytest.mark.parametrize(
    ("count", "lines"),
    [
        (1, [barrier("%a", "%x"), write("%y", "%a"), results("%y", "%x")]),
        (1, [barrier("%a", "%x"), write("%y", "%x"), results("%y", "%a")]),
        (0, [barrier("%a", "%x"), write("%y", "%a"), results("%y", "%y")]),
        # Uses by the same name are IREE's own concern.
        (0, [barrier("%a", "%x"), write("%y", "%a"), results("%y", "%a")]),
        (1, [choice("%a", "%x", "%x"), write("%y", "%a"), results("%y", "%x")]),
        (1, [choice("%a", "%x", "%x"), write("%y", "%x"), results("%y", "%a")]),
        # Only one of the two happens.
        (0, [choice("%a", "%y", "%x", write("%y", "%x")), results("%a", "%a")]),
        (
            1,
            [choice("%a", "%y", "%x", write("%y", "%x")), barrier("%b", "%x"), results("%a", "%b")],
        ),
    ],
)
def test_what_is_read_later_by_another_name_is_copied(count: int, lines: list[str]) -> None:
    assert copies("\n".join(lines)) == count


def loop(before: str, within: str) -> str:
    return f"""
      {before}
      cf.br ^body
    ^body:
      {within}
      {write("%y", "%a")}
      cf.cond_br %p, ^body, ^end
    ^end:
      {results("%y", "%y")}
    """


def test_a_loop_reads_again_what_is_made_before_it() -> None:
    read = f"%r = stream.async.clone %b : {ARRAY}{{%n}} -> {ARRAY}{{%n}}"
    names = [barrier("%a", "%z"), barrier("%b", "%z")]
    made = [f"%z = stream.async.splat %byte : i8 -> {ARRAY}{{%n}}", *names]
    assert copies(loop("\n".join(made), read)) == 1
    assert copies(loop("", "\n".join([*made, read]))) == 0


def test_a_constant_is_copied_which_is_there_for_the_next_call() -> None:
    constant = f"%z = stream.async.constant : {ARRAY}{{%n}} = dense<0> : tensor<4xi32>"
    lines = [constant, barrier("%a", "%z"), write("%y", "%a"), results("%y", "%y")]
    assert copies("\n".join(lines)) == 1
