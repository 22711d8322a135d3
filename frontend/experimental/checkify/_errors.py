"""The possible failures, and the value that holds an actual failure: `Error`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from axir._trees.registration import register_pytree_node
from axir.dialect.core.annotations import IndexLike, UserObject
from axir.dialect.core.array import from_numpy
from axir.dialect.ops.calls.checks import Check, CheckFailedError, Signature


class CheckFailure(Exception):
    """A kind of failure; the base of all kinds."""


class FailedCheckError(CheckFailure):
    """A condition stated by the user does not hold."""


class OOBError(CheckFailure):
    """An index lies outside its array."""


class NaNError(CheckFailure):
    """An operation gave NaN."""


class DivisionByZeroError(CheckFailure):
    """A divisor is zero."""


class BatchedError(CheckFailure):
    """Failures at several places of a batch.

    Attributes:
        error_mapping: The failures by their index.
    """

    def __init__(self, error_mapping: dict[tuple[int, ...], CheckFailure]):
        self.error_mapping = error_mapping
        places = (
            f"at mapped index {', '.join(map(str, n))}: {e}" for n, e in error_mapping.items()
        )
        super().__init__("\n".join(places))


ErrorCategory = type[CheckFailure]
"""A kind of failure: a class."""

user_checks = frozenset({FailedCheckError})
index_checks = frozenset({OOBError})
nan_checks = frozenset({NaNError})
div_checks = frozenset({DivisionByZeroError})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


class Error:
    """The error of a checked function: the first check that failed, if any. A pytree.

    Attributes:
        code: The number of that check, 0 if none failed; an array of them for a batch.
        payload: For each signature the values that a message shows.
        signatures: Types of these values.
        checks: The checks that may have failed.

    >>> import axir, axir.numpy as jnp
    >>> from axir.experimental import checkify
    >>> def f(x):
    ...     checkify.check(x > 0, "{} must be positive", x)
    ...     return jnp.log(x)
    >>> error, _ = checkify.checkify(f)(-1.0)
    >>> error.get()
    '-1.0 must be positive (`check` failed)'
    """

    def __init__(
        self,
        code: UserObject,
        payload: tuple[tuple[UserObject, ...], ...],
        signatures: tuple[Signature, ...],
        checks: tuple[Check, ...],
    ):
        self.code = code
        self.payload = payload
        self.signatures = signatures
        self.checks = checks

    def get(self) -> str | None:
        """Returns the message of the failure, or None if there was none."""
        failure = self.get_exception()
        return None if failure is None else str(failure)

    def get_exception(self) -> CheckFailure | None:
        """Returns the failure as an object of its kind, or None if there was none."""
        found = {place: _failure(check, shown) for place, check, shown in self._failures()}
        if not found:
            return None
        return BatchedError(found) if np.ndim(self.code) else found[()]

    def throw(self) -> None:
        """Raises the failure, if there was one.

        Raises:
            CheckFailedError: with the user's line; under JAX's name `checkify.JaxRuntimeError`.
        """
        failure = self.get_exception()
        if failure is not None:
            _, check, _ = next(self._failures())
            raise CheckFailedError(str(failure), where=check.where)

    def _failures(self) -> Iterator[tuple[tuple[int, ...], Check, Sequence[np.ndarray]]]:
        """Yields failures: the place in the batch, the check, and the values in its message."""
        by_number = {check.number: check for check in self.checks}
        codes = np.asarray(self.code)
        for place in np.ndindex(*codes.shape):
            check = by_number.get(int(codes[place]))
            if check is not None:
                slot = self.payload[self.signatures.index(check.signature)]
                index: IndexLike = (*place, ...)
                yield place, check, [np.asarray(x)[index] for x in slot]

    def __str__(self) -> str:
        return f"Error({self.get()})"

    __repr__ = __str__


def _failure(check: Check, payload: Sequence[np.ndarray]) -> CheckFailure:
    category: UserObject = check.category
    return category(check.message(payload))


register_pytree_node(
    Error,
    lambda error: ((error.code, error.payload), (error.signatures, error.checks)),
    lambda fixed, children: Error(*children, *fixed),
)

init_error = Error(from_numpy(np.zeros((), np.int32)), (), (), ())
"""The error of a function without checks."""
