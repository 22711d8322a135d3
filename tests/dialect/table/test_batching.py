"""Vectorized, every sample of every op equals a loop over the batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from support.op_cases import Case, cases_of, differences, read_only, values

from axir.dialect.core.array import as_array
from axir.dialect.core.state import BatchFrame
from axir.dialect.ops import OPS
from axir.passes.transforms.vmap import batch, batch_function

_SIZE = 3
# JAX does not batch these ops as a loop: the first state makes the bits of all lanes.
_NO_LOOPS = {"rng_bit_generator"}
Axes = tuple[int | None, ...]


def _patterns(case: Case) -> Iterator[Axes]:
    """Batch axes to try: each operand separately, all at the front, all at the back, and mixed."""
    ranks = [x.ndim for x in case.args]
    yield (0,) * len(ranks)
    if not any(ranks):
        if len(ranks) > 1:
            yield (0, *(None for _ in ranks[1:]))
            yield (*(None for _ in ranks[1:]), 0)
        return
    yield tuple(ranks)
    yield tuple((index + 1) % (rank + 1) for index, rank in enumerate(ranks))
    if len(ranks) > 1:
        for chosen, rank in enumerate(ranks):
            axis = (case.index + chosen) % (rank + 1)
            yield tuple(axis if index == chosen else None for index in range(len(ranks)))


def _variants(case: Case, index: int) -> list[np.ndarray]:
    """An operand and permutations of its values, one for each element of the batch."""
    generator = case.generator()
    array = case.args[index]
    variants = [array]
    while len(variants) < _SIZE:
        variants.append(read_only(_reordered(case, array, generator)))
    return variants


def _reordered(case: Case, array: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    if case.params.get("indices_are_sorted") and array.dtype.kind in "iu":
        return array
    if "mode" in case.params and array.dtype.kind in "iu":
        # Index vectors stay whole: within bounds and unique, where the parameters promise it.
        depth = array.shape[-1] if array.ndim else 1
        rows = array.reshape(-1, depth) if array.size else array
    else:
        rows = array.reshape(-1)
    return rows[generator.permutation(len(rows))].reshape(array.shape)


@pytest.mark.parametrize(
    "name", [n for n in OPS if n not in _NO_LOOPS and any(c.args for c in cases_of(n))]
)
def test_batching_is_a_loop(name: str) -> None:
    problems: list[str] = []
    for case in cases_of(name):
        variants = [_variants(case, index) for index in range(len(case.args))]
        function = case.function()
        looped: dict[tuple[bool, ...], list[list[np.ndarray]]] = {}
        for axes in _patterns(case):
            batched = tuple(axis is not None for axis in axes)
            if batched not in looped:
                looped[batched] = _loop(case, variants, batched)
            operands = [
                v[0] if axis is None else np.stack(v, axis)
                for v, axis in zip(variants, axes, strict=True)
            ]
            results, result_axes = batch(
                function,
                [as_array(x) for x in (*operands, *function.captured)],
                [*axes, *(None for _ in function.captured)],
                BatchFrame(_SIZE),
            )
            expected = [
                np.stack(parts, axis) if axis is not None else parts[0]
                for parts, axis in zip(zip(*looped[batched], strict=True), result_axes, strict=True)
            ]
            problems += differences(
                f"{case} with axes {axes}",
                values(results),
                expected,
                case.tolerance,
                is_elementwise=case.is_elementwise,
            )
    assert not problems, "\n".join(problems)


def _loop(
    case: Case, variants: list[list[np.ndarray]], batched: tuple[bool, ...]
) -> list[list[np.ndarray]]:
    return [
        case.evaluate(*(v[place if b else 0] for v, b in zip(variants, batched, strict=True)))
        for place in range(_SIZE)
    ]


@pytest.mark.parametrize("name", [name for name in OPS if any(c.args for c in cases_of(name))])
def test_traced_batching_puts_the_axis_where_it_is_wanted(name: str) -> None:
    for case in cases_of(name):
        function = case.function()
        axes = (0,) * (len(case.args) + len(function.captures))
        batched = batch_function(function, _SIZE, axes, (0,) * len(function.outputs))
        assert [(t.shape, t.dtype) for t in batched.function.output_types] == [
            ((_SIZE, *t.shape), t.dtype) for t in function.output_types
        ], str(case)
