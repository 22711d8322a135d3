"""The error state that a checked program carries: the number of the first check that failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from axir import lax
from axir import numpy as jnp
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.dtypes import int32
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.calls.checks import Check, Signature
from axir.dialect.program.rules import Value

from ._errors import Error

_CODE = ShapedArray((), int32)


class ErrorState(NamedTuple):
    """The number of the first check that failed, and the values in its message.

    Attributes:
        code: The number; 0 if none failed.
        payload: For each signature the values of the check that failed last with such.
    """

    code: Value
    payload: tuple[tuple[Value, ...], ...]

    def flat(self) -> list[Value]:
        """Returns the state as values."""
        return [self.code, *(x for slot in self.payload for x in slot)]


def types_of(signatures: Sequence[Signature]) -> list[ShapedArray]:
    """Returns the types of the values of a state."""
    return [_CODE, *(t.strip_weak_type() for signature in signatures for t in signature)]


def state_of(values: Sequence[Value], signatures: Sequence[Signature]) -> ErrorState:
    """Returns the state of given values."""
    remaining = iter(values)
    code = next(remaining)
    return ErrorState(code, tuple(tuple(next(remaining) for _ in s) for s in signatures))


def no_error(signatures: Sequence[Signature]) -> ErrorState:
    """Returns the state in which nothing has failed."""
    return state_of([jnp.zeros(t.shape, t.dtype) for t in types_of(signatures)], signatures)


def after(
    state: ErrorState,
    signatures: Sequence[Signature],
    holds: UserObject,
    check: Check,
    payload: Sequence[UserObject],
) -> ErrorState:
    """Returns the state after a check; it keeps the first failure.

    Args:
        state: The state before.
        signatures: Of its payload.
        holds: Whether all is well: a bool, or an array of bools for a batch.
        check: The check.
        payload: The values in the message, with the axes of the batch in front.
    """
    if holds.ndim:
        first = jnp.argmin(holds.reshape(-1))
        payload = [_element(x, holds.ndim, first) for x in payload]
    is_first = ~jnp.all(holds) & (state.code == 0)
    code = jnp.where(is_first, jnp.int32(check.number), state.code)
    place = tuple(signatures).index(check.signature)
    slots = list(state.payload)
    slots[place] = tuple(
        jnp.where(is_first, jnp.asarray(new, old.dtype), old)
        for new, old in zip(payload, slots[place], strict=True)
    )
    return ErrorState(code, tuple(slots))


def _element(x: UserObject, ndim: int, place: UserObject) -> UserObject:
    flat = jnp.reshape(x, (-1, *x.shape[ndim:]))
    return lax.dynamic_index_in_dim(flat, place, 0, keepdims=False)


def error_of(state: ErrorState, signatures: Sequence[Signature], checks: Sequence[Check]) -> Error:
    """Returns a state as a user's `Error`."""
    return Error(state.code, state.payload, tuple(signatures), tuple(checks))
