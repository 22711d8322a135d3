"""Loops and branches of kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from iree.compiler import ir

from axir.dialect.builders.errors import KernelCarryError
from axir.dialect.builders.scalars import Scalar, boolean
from axir.dialect.core.annotations import Foreign

from .building import index_value

Carried: TypeAlias = Foreign  # a number, a tuple of numbers, or nothing: () or None


def loop(
    lower: Scalar | int,
    upper: Scalar | int,
    carried: Carried,
    step: Callable[..., Carried],
    stride: int = 1,
) -> Carried:
    """Runs `step(index, *carried) -> carried` for each index from `lower` to below `upper`.

    Args:
        lower: Start of the index.
        upper: End of the index; if it is not larger, nothing runs.
        carried: A scalar or vector that changes, or a tuple of such: separate arguments.
        step: Returns the next value, or a tuple of values; None if nothing is carried, `()`.
        stride: Increment of the index.

    Returns:
        The last value, or a tuple of them.

    Raises:
        KernelCarryError: if `step` returns other numbers than it gets.
    """
    if stride < 1:
        raise KernelCarryError(
            f"A loop goes on by {stride}, so that it would never end.",
            "Let the stride be positive, and count down in the body.",
        )
    starts = _many(carried)
    types = [x.value.type for x in starts]
    created = ir.Operation.create(
        "scf.for",
        results=types,
        operands=[*map(index_value, (lower, upper, stride)), *(x.value for x in starts)],
        regions=1,
    )
    block = created.regions[0].blocks.append(ir.IndexType.get(), *types)
    with ir.InsertionPoint(block):
        _end("The step of a loop", step(*map(Scalar, block.arguments)), types)
    return _like(carried, created)


def each(
    lower: Scalar | int, upper: Scalar | int, stride: int = 1
) -> Callable[[Callable[[Scalar], None]], None]:
    """Runs the function that it decorates for each index, as `loop` does, with nothing carried.

    ::

        @each(0, n)
        def step(i):
            doubled[i] = x[i] + x[i]
    """

    def run(step: Callable[[Scalar], None]) -> None:
        loop(lower, upper, (), step, stride)

    return run


def repeat_while(
    carried: Carried, condition: Callable[..., Scalar], step: Callable[..., Carried]
) -> Carried:
    """Runs `step(*carried) -> carried` as long as `condition(*carried)` holds.

    Args:
        carried: A scalar or vector that changes, or a tuple of such.
        condition: Returns a truth value.
        step: Returns the next value, or a tuple of values.

    Returns:
        The last value, or a tuple of them.

    Raises:
        KernelCarryError: if `step` returns other numbers than it gets, or `condition` no truth
            value.
    """
    starts = _many(carried)
    types = [x.value.type for x in starts]
    created = ir.Operation.create(
        "scf.while", results=types, operands=[x.value for x in starts], regions=2
    )
    before, after = (region.blocks.append(*types) for region in created.regions)
    with ir.InsertionPoint(before):
        holds = condition(*map(Scalar, before.arguments))
        _check_truth("The condition of a loop", holds)
        ir.Operation.create("scf.condition", operands=[holds.value, *before.arguments])
    with ir.InsertionPoint(after):
        _end("The step of a loop", step(*map(Scalar, after.arguments)), types)
    return _like(carried, created)


def branch(
    condition: Scalar,
    on_true: Callable[[], Carried],
    on_false: Callable[[], Carried],
    types: Sequence[ir.Type] = (),
) -> tuple[Scalar, ...]:
    """Runs one of two functions; each returns a tuple of numbers of these types.

    Raises:
        KernelCarryError: if one returns other numbers, or the condition is no truth value.
    """
    _check_truth("The condition of a branch", condition)
    created = ir.Operation.create(
        "scf.if", results=list(types), operands=[condition.value], regions=2
    )
    for region, function in zip(created.regions, (on_true, on_false), strict=True):
        with ir.InsertionPoint(region.blocks.append()):
            _end("A branch", function(), types)
    return tuple(map(Scalar, created.results))


def when(condition: Scalar) -> Callable[[Callable[[], None]], None]:
    """Runs the function that it decorates if a condition holds, as `branch` does."""

    def run(body: Callable[[], None]) -> None:
        branch(condition, body, lambda: None)

    return run


def _many(carried: Carried) -> tuple[Scalar, ...]:
    if carried is None:
        return ()
    return carried if isinstance(carried, tuple) else (carried,)


def _like(carried: Carried, created: ir.Operation) -> Carried:
    results = tuple(map(Scalar, created.results))
    return results if isinstance(carried, tuple) else (results[0] if results else None)


def _end(what: str, results: Carried, types: Sequence[ir.Type]) -> None:
    """Ends a block with results of these types."""
    many = _many(results)
    if any(not isinstance(x, Scalar) for x in many) or [x.value.type for x in many] != list(types):
        found = ", ".join(str(x.type) if isinstance(x, Scalar) else repr(x) for x in many)
        raise KernelCarryError(
            f"{what} returns ({found}), and must return ({', '.join(map(str, types))}).",
            "Return as many numbers of the same types; `x.constant(1)` makes one of a Python "
            "number.",
        )
    ir.Operation.create("scf.yield", operands=[x.value for x in many])


def _check_truth(what: str, condition: Scalar) -> None:
    if not isinstance(condition, Scalar) or condition.value.type != boolean():
        found = condition.type if isinstance(condition, Scalar) else repr(condition)
        raise KernelCarryError(
            f"{what} is {found} and not a truth value.",
            "Compare numbers; `any_lane` and `all_lanes` make one truth value of a vector.",
        )
