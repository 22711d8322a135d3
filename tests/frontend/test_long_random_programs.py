"""Long random programs that keep using old values of arrays: compiled against evaluated.

`make test` runs a fixed batch. `make test-long` draws LONG_PROGRAMS of them, of all kinds and of
the lengths RANDOM_LENGTHS, from RANDOM_SEED on; RANDOM_LOG names a file that gets a line for each,
RANDOM_FAILURES a folder for reduced forms of wrong programs, and RANDOM_COMPILER the compiler
("auto", "native" or "iree": the option `axir_compiler`).
"""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from support.random_pool_checks import Expected, problems
from support.random_pools import KINDS, draw
from support.reduction import Reduction, reduce_and_save
from support.small_pools import EARLY_UPDATES

import axir
from axir.dialect.core.array import Array
from axir.dialect.core.config import config
from axir.dialect.ops.calls.jit_call import set_executor
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function

_PROGRAMS = int(os.environ.get("LONG_PROGRAMS", "0"))
_SEED = int(os.environ.get("RANDOM_SEED", "0"))
_LENGTHS = [int(n) for n in os.environ.get("RANDOM_LENGTHS", "60,60,80,120,300").split(",")]
_LOG = os.environ.get("RANDOM_LOG")
_FAILURES = os.environ.get("RANDOM_FAILURES")
_COMPILER = os.environ.get("RANDOM_COMPILER", "auto")
_SLOW = ".compiler.waiting"
_AGAIN = "is compiled again with a copy"
# Seed, length and kind. The first three were wrong once, and the last two did not compile.
FIXED = [
    (2, 60, "double"),
    (2, 60, "real"),
    (3, 60, "control"),
    (1, 60, "single"),
    (1, 60, "narrow"),
    (3, 60, "any"),
    (2, 60, "grad"),
    (8606000037, 80, "jvp"),
    (8716000049, 80, "grad"),
]


def _drawn() -> Iterator[tuple[int, int, str]]:
    """Seeds, lengths and kinds in turns, so that all of these meet."""
    for number in range(_PROGRAMS):
        length = _LENGTHS[number // len(KINDS) % len(_LENGTHS)]
        yield 1_000_000 * _SEED + number, length, list(KINDS)[number % len(KINDS)]


def _warnings(records: Sequence[logging.LogRecord]) -> list[str]:
    """Silent failures: another compiler was used, or the provisional program stayed in use."""
    return [
        record.getMessage()
        for record in records
        if record.levelno >= logging.WARNING
        and not (record.name.endswith(_SLOW) or _AGAIN in record.getMessage())
    ]


@pytest.fixture(autouse=True)
def evaluated_calls() -> Iterator[None]:
    """Has the evaluator run the bodies of calls, which otherwise are compiled."""
    executor = set_executor(None)
    yield
    set_executor(executor)


@pytest.fixture(autouse=True, scope="module")
def lasting_objects() -> Iterator[None]:
    """Limits garbage collection to objects of programs: it took a sixth of each one's time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize(("seed", "length", "kind"), list(_drawn()) if _PROGRAMS else FIXED)
def test_a_long_program_agrees_with_the_evaluator(
    seed: int, length: int, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    program = draw(seed, length, kind)
    with config(axir_compiler=_COMPILER):
        found = problems(program) + _warnings(caplog.records)
    again = ", with copies of all that is updated in place" * (_AGAIN in caplog.text)
    if _LOG:
        by = f", {_COMPILER}" * (_COMPILER != "auto")
        with Path(_LOG).open("a") as log:
            log.write(f"{seed} {length} {kind}: {found or 'agrees'}{again}{by}\n")
    if _FAILURES and (found or again):
        with config(axir_compiler=_COMPILER):
            reduce_and_save(program, Path(_FAILURES))
    assert not found, "\n".join([*found, str(program)])


@pytest.mark.parametrize("name", EARLY_UPDATES)
def test_what_is_read_late_is_not_overwritten_early(name: str) -> None:
    function, *arguments = EARLY_UPDATES[name]
    with config(jax_enable_x64=True):
        arrays = [axir.numpy.asarray(x) for x in arguments]
        results = axir.tree.leaves(axir.jit(function)(*arrays))
        with axir.disable_jit():
            wanted = axir.tree.leaves(function(*arrays))
    tolerance = 1e-5 if name.endswith("32") else 1e-14
    for result, want in zip(results, wanted, strict=True):
        np.testing.assert_allclose(result.host(), want.host(), rtol=0, atol=tolerance)


def test_no_order_of_additions_is_a_wrong_number() -> None:
    """Rows of the same numbers in other orders: which sum is the largest hangs on roundings."""
    row = np.random.default_rng(0).uniform(1, 2, 7)
    x = axir.numpy.asarray(np.stack([row, row[::-1]]).astype(np.float32))

    def largest_sum(x: Array) -> Array:
        return axir.numpy.max(x.sum(1))

    gradient_of = axir.grad(largest_sum)
    function = trace_function(lambda x: [gradient_of(x)], [x.type], name="gradient")
    expected = Expected(function, [x], seed=0)
    for decided in ([1, 0], [0, 1], [0.5, 0.5]):
        gradient = np.repeat(np.array(decided, np.float32), 7).reshape(2, 7)
        assert list(expected.problems([gradient])) == []
    assert expected.undecided() == 1
    clear = axir.numpy.asarray(np.stack([row, row[::-1] + 1]).astype(np.float32))
    expected = Expected(function, [clear], seed=0)
    assert expected.undecided() == 0
    assert list(expected.problems([gradient])) != []


def test_a_sum_that_is_off_by_more_than_roundings_is_a_wrong_number() -> None:
    x = axir.numpy.ones(7)
    function = trace_function(lambda x: [(0 * x + 1).sum()], [x.type], name="ones")
    expected = Expected(function, [x], seed=0)
    for relative, is_wrong in ((0, False), (1e-5, False), (5e-5, True)):
        found = np.float32(7 * (1 + relative))
        assert bool(list(expected.problems([found]))) == is_wrong


def test_what_is_wrong_with_a_program_remains_of_it() -> None:
    with config(jax_enable_x64=True):
        program = draw(3, 60, "real")
        function, arguments = program.function(), program.arguments()

        def is_wrong(part: Function, values: Sequence[Array], wanted: Sequence[np.ndarray]) -> bool:
            results = part.evaluate(*values)
            for result, want in zip(results, wanted, strict=True):
                np.testing.assert_array_equal(result.host(), want)
            return any(x.primitive.name == "sort" for x in part.equations)

        reduction = Reduction(function, arguments, is_wrong)
        assert len(reduction.equations) > 500
        reduction.run()
        small, values, wanted = reduction.program()
    assert [x.primitive.name for x in small.equations] == ["sort"]
    assert (len(values), len(wanted)) == (len(small.inputs), 1)


def test_a_program_is_drawn_again_from_its_seed_length_and_kind() -> None:
    for kind in KINDS:
        program = draw(7, 60, kind)
        assert program == draw(7, 60, kind)
        assert program != draw(8, 60, kind)
        for x, y in zip(program.arguments(), draw(7, 60, kind).arguments(), strict=True):
            np.testing.assert_array_equal(x.host(), y.host())
        assert len(str(program).splitlines()) == 62 + len(program.argument_types)
