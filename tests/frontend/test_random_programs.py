"""Random programs, transformed: evaluator, IREE and machine code agree, as do eager and traced.

Every run draws the same few dozen, half of them of loops; `make test-long` draws thousands,
different ones in each run (RANDOM_SEED=n repeats the programs of a run).
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, note, seed, settings
from hypothesis import strategies as st
from support.native_programs import kernel_of, loaded
from support.op_programs import Programs
from support.random_programs import (
    Spec,
    Step,
    disagreement,
    evaluated,
    loop_specs,
    nearby,
    specs,
)

import axir
from axir.dialect.core.config import config
from axir.dialect.ops.calls.jit_call import set_executor
from axir.dialect.program.function import Function
from axir.passes.transforms.simplify import simplify_function
from axir.runtime.compiler.native_compilation import NotNative
from axir.runtime.errors import RuntimeExecutionError

_PER_MODULE = 12
# The programs that become kernels: none, loops and small programs, or moves of elements, also of
# few.
_KERNELS: dict[str, dict[str, Any]] = {
    "none": {},
    "of programs": {"fuses": True},
    "of moves": {"passes": "fuse-moves{elements=1}"},
}
_PROGRAMS = int(os.environ.get("RANDOM_PROGRAMS", "48"))
_SEED = os.environ.get("RANDOM_SEED")


def _seeded(test: Callable[..., None]) -> Callable[..., None]:
    """The test, with the programs of the seed in the environment, if there is one."""
    return seed(int(_SEED))(test) if _SEED else test


@pytest.fixture(autouse=True)
def evaluated_calls() -> Iterator[None]:
    """Has the evaluator run the bodies of calls, which otherwise are compiled."""
    executor = set_executor(None)
    yield
    set_executor(executor)


def _hosts(function: Function, arguments: list) -> list[np.ndarray]:
    return [x.host() for x in function.evaluate(*arguments)]


@dataclasses.dataclass(frozen=True)
class _Drawn:
    """A program, its arguments, and the evaluator's results for them and for arguments nearby."""

    spec: Spec
    function: Function
    hosts: list[np.ndarray]
    want: list[np.ndarray]
    moved: list[np.ndarray]
    size: float

    def problems(self, results: Sequence[np.ndarray]) -> Iterator[str]:
        for index, values in enumerate(zip(results, self.want, self.moved, strict=True)):
            problem = disagreement(*values, self.size)
            if problem:
                yield f"{self.spec}\n  result {index}: {problem}"


def _evaluated(spec: Spec) -> _Drawn:
    with config(jax_enable_x64=True):
        traced, arguments = spec.function(), spec.arguments()
        want, size = evaluated(traced, arguments)
        moved = _hosts(traced, nearby(spec, arguments))
    # As in `jit`: captured arrays are further arguments.
    function = simplify_function(traced)
    hosts = [x.host() for x in (*arguments, *function.captured)]
    return _Drawn(spec, function, hosts, want, moved, size)


def _problems(drawn: list[Spec], kernels: str) -> Iterator[str]:
    cases = {f"program_{number}": _evaluated(spec) for number, spec in enumerate(drawn)}
    programs = Programs({name: x.function for name, x in cases.items()}, **_KERNELS[kernels])
    for name, message in programs.failures.items():
        yield f"{cases[name].spec}\n  does not compile: {message}"
    for name in cases.keys() - programs.failures.keys():
        try:
            results = programs(name, *cases[name].hosts)
        except RuntimeExecutionError as error:
            yield f"{cases[name].spec}\n  does not run: {error}"
        else:
            yield from cases[name].problems(results)


@_seeded
@settings(
    max_examples=-(-_PROGRAMS // _PER_MODULE),
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate,),  # shrinking would compile for hours; the report names the program
)
@given(
    st.lists(specs, min_size=_PER_MODULE, max_size=_PER_MODULE)
    | st.lists(loop_specs, min_size=_PER_MODULE, max_size=_PER_MODULE),
    st.sampled_from(list(_KERNELS)),
)
def test_iree_agrees_with_the_evaluator(drawn: list[Spec], kernels: str) -> None:
    problems = list(_problems(drawn, kernels))
    note("\n".join(problems))
    assert not problems, f"{problems[0]}\n(RANDOM_SEED={_SEED})"


@_seeded
@settings(max_examples=_PROGRAMS, suppress_health_check=list(HealthCheck), phases=(Phase.generate,))
@given(specs | loop_specs)
def test_machine_code_agrees_with_the_evaluator(spec: Spec) -> None:
    drawn = _evaluated(spec)
    kernel = kernel_of(drawn.function)
    if isinstance(kernel, NotNative):
        assert not re.search("is not compiled|ended", kernel.reason), kernel.reason
        return
    problems = list(drawn.problems(loaded(drawn.function, kernel)(drawn.hosts)))
    assert not problems, f"{problems[0]}\n(RANDOM_SEED={_SEED})"


# IREE ran a kernel of constants once, when the program was loaded, and mixed up its results.
KERNEL_OF_CONSTANTS = Spec(
    shapes=(4, 0),
    steps=(
        Step("mapped_loop", 1, 5, 122),
        Step("differentiable_loop", 5, 4, 1048576),
    ),
    transformations=(),
    is_double=True,
    seed=157,
)


# IREE fused operations with several users, and confused their results.
READ_BY_SEVERAL = Spec(
    shapes=(2, 2),
    steps=(
        Step("inverse", 3, 3, 5),
        Step("window_sum", 6, 2, 0),
        Step("pow", 0, 2, 3),
        Step("outer", 0, 7, 3),
        Step("checkpoint", 7, 3, 3),
        Step("set", 3, 4, 3),
    ),
    transformations=("jvp", "grad", "linearize"),
    is_double=False,
    seed=2,
)

# As with these, one loop took the result of another one, which IREE then refused.
WRITTEN_TWICE = Spec(
    shapes=(2,),
    steps=(
        Step("all_gather", 3, 4, 3),
        Step("cholesky", 7, 4, 0),
        Step("pooling_gradient", 7, 5, 1),
    ),
    transformations=("linearize", "jvp"),
    is_double=False,
    seed=856,
)

# Padded window sums shared their initial array.
PADDED_WINDOWS = Spec(
    shapes=(6,),
    steps=(
        Step("tanh", 5, 4, 2),
        Step("swapped", 4, 1, 4),
        Step("eigenvalues", 3, 5, 0),
        Step("maximum", 6, 5, 1),
        Step("window_sum", 4, 3, 0),
        Step("psum_scatter", 4, 4, 2),
    ),
    transformations=("linearize", "grad", "grad"),
    is_double=False,
    seed=305,
)

# An update behind a barrier also changed the array before it.
UPDATED_BEHIND_A_BARRIER = Spec(
    shapes=(4, 1),
    steps=(
        Step("saving_checkpoint", 4, 7, 3),
        Step("barrier", 0, 4, 1),
        Step("set", 3, 3, 2),
        Step("add", 2, 1, 4),
    ),
    transformations=("jvp", "checkpoint", "named_vmap"),
    is_double=True,
    seed=53,
)

# Two arrays that a loop changes in place began as the same zeros, and lay in the same memory.
TWO_STACKS = Spec(
    shapes=(2,),
    steps=(Step("tangents_of_loop", 1, 3, 1048576),),
    transformations=("jit", "linearize"),
    is_double=True,
    seed=650,
)

# Two pads by zeros became one dispatch, and worked in the same array.
TWO_PADS = Spec(
    shapes=(3, 2),
    steps=(Step("einsum", 0, 2, 4), Step("einsum", 3, 3, 4)),
    transformations=("grad", "jvp"),
    is_double=False,
    seed=277,
)

# Sums of two products, and of what else reads them, were one dispatch.
SUMS_OF_PRODUCTS = Spec(
    shapes=(1,),
    steps=(Step("psum", 3, 2, 4), Step("matmul", 5, 4, 4), Step("cond", 4, 2, 4)),
    transformations=("jit", "jit", "jacfwd"),
    is_double=False,
    seed=785,
)

# As here, though in loops.
SUMS_IN_LOOPS = Spec(
    shapes=(2, 4),
    steps=(Step("mapped_loop", 6, 1, 188), Step("loop", 7, 2, 727818)),
    transformations=(),
    is_double=False,
    seed=482,
)

# A loop of one iteration, unrolled, made a sum of constants, and only one of them was added.
SUM_OF_CONSTANTS = Spec(
    shapes=(5,),
    steps=(Step("differentiable_loop", 3, 4, 101), Step("differentiable_loop", 0, 2, 783)),
    transformations=("jvp", "checkpoint"),
    is_double=False,
    seed=225,
)

# In a kernel, one array that two carries of a loop began with was changed for both.
CARRIED_TWICE = Spec(
    shapes=(2, 2),
    steps=(Step("mapped_loop", 6, 0, 25), Step("loop", 6, 0, 8703)),
    transformations=("checkpoint",),
    is_double=False,
    seed=250,
)


# The update of an array was written before others had read the array, through another shape.
UPDATED_TOO_EARLY = Spec(
    shapes=(4, 5, 1),
    steps=(
        Step("rounded", 2, 0, 1),
        Step("fourier", 4, 7, 4),
        Step("cholesky", 6, 1, 1),
        Step("complex_product", 4, 6, 4),
        Step("dynamic_update", 4, 3, 5),
        Step("atan", 6, 6, 2),
    ),
    transformations=(),
    is_double=True,
    seed=255,
)


# Two loops, as blocks that did nothing but pass arrays on: one got lost.
PASSED_ON = Spec(
    shapes=(2, 6, 5),
    steps=(Step("loop", 7, 7, 7725), Step("tangents_of_loop", 6, 0, 2606)),
    transformations=("jvp", "named_vmap"),
    is_double=True,
    seed=160,
)


# A loop that became a kernel called a function with a table of numbers.
CALLED_TABLE = Spec(
    shapes=(3,),
    steps=(Step("tangents_of_loop", 7, 7, 79131), Step("mapped_loop", 4, 4, 38588)),
    transformations=("checkpoint", "checkpoint"),
    is_double=True,
    seed=216,
)


def test_programs_that_were_wrong_once() -> None:
    assert list(_problems([KERNEL_OF_CONSTANTS, CARRIED_TWICE, CALLED_TABLE], "of programs")) == []
    drawn = [READ_BY_SEVERAL, WRITTEN_TWICE, PADDED_WINDOWS, UPDATED_BEHIND_A_BARRIER]
    drawn += [
        TWO_STACKS,
        TWO_PADS,
        SUMS_OF_PRODUCTS,
        SUMS_IN_LOOPS,
        SUM_OF_CONSTANTS,
        UPDATED_TOO_EARLY,
        PASSED_ON,
    ]
    assert list(_problems(drawn, "none")) == []


@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(specs | loop_specs)
def test_eager_execution_agrees_with_the_traced_program(spec: Spec) -> None:
    with config(jax_enable_x64=True):
        function, arguments = spec.function(), spec.arguments()
        want, size = evaluated(function, arguments)
        moved = _hosts(function, nearby(spec, arguments))
        with axir.disable_jit():
            eager = axir.tree.leaves(spec.callable()(*arguments))
    for got, *others in zip(eager, want, moved, strict=True):
        assert disagreement(got.host(), *others, size) is None
