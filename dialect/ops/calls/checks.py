"""`check`: an op that states a condition; `experimental.checkify` turns it into an error value.

Elsewhere: automatic checks, and the rewriting of a program with checks into one that returns an
error (`axir.experimental.checkify`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence
from typing import TypeAlias

import numpy as np
from iree.compiler import ir

from axir.dialect.core import dtypes
from axir.dialect.core.errors import AxirError, ParameterError, user_line
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.shape.rearranging import move_batch_axis
from axir.dialect.program.effects import current_frame
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.rules import (
    Cotangent,
    Cotangents,
    Results,
    Tangent,
    TransposeOperand,
    Value,
)


class CheckFailedError(AxirError, ValueError):
    """A check failed: one of the user's, or an automatic one of `experimental.checkify`."""


class UnfunctionalizedCheckError(AxirError, ValueError):
    """A function with checks was compiled directly, but a program cannot raise exceptions."""


Signature: TypeAlias = tuple[ShapedArray, ...]
"""Types of the values that the message of a check shows."""

_numbers = itertools.count(1)


class Check:
    """The check of an op, as a parameter. Checks are equal if identical.

    Attributes:
        category: The kind of error. Checks are enabled by category.
        signature: Types of the values that the message shows.
        where: The user's line.
        number: Identifies the check in the error value of a program; positive and unique.
    """

    def __init__(
        self,
        category: Hashable,
        signature: Signature,
        describe: Callable[[Sequence[np.ndarray]], str],
    ):
        self.category = category
        self.signature = signature
        self.where = user_line()
        self.number = next(_numbers)
        self._describe = describe

    def message(self, payload: Sequence[np.ndarray]) -> str:
        """Returns the message of a failure, given the values to show."""
        return self._describe(payload)

    def error(self, payload: Sequence[np.ndarray]) -> CheckFailedError:
        """Returns the exception of a failure."""
        return CheckFailedError(self.message(payload), where=self.where)

    def __repr__(self) -> str:
        return getattr(self.category, "__name__", str(self.category))


def _infer(pred: ShapedArray, *payload: ShapedArray, check: Check, debug: bool) -> tuple[()]:
    if pred.dtype != dtypes.bool_:
        raise ParameterError(f"check: what must hold is a bool, not {pred}.")
    expected = [(*pred.shape, *t.shape) for t in check.signature]
    if [t.shape for t in payload] != expected:
        raise ParameterError(
            f"check: values of types {', '.join(map(str, payload))} do not fit the check, which "
            f"shows such of shapes {expected}."
        )
    return ()


def _evaluate(
    pred: np.ndarray, *payload: np.ndarray, check: Check, debug: bool
) -> list[np.ndarray]:
    if not debug and not pred.all():
        place = int(np.argmin(pred))
        raise check.error([x.reshape(-1, *x.shape[pred.ndim :])[place, ...] for x in payload])
    return []


def _jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], outs: Results, **params: object
) -> Sequence[Tangent]:
    return []  # the op itself has seen the primals


def _transpose(
    cotangents: Cotangents, *operands: TransposeOperand, **params: object
) -> Sequence[Cotangent | None]:
    return [None] * len(operands)


def _batch(
    operands: Sequence[Value], axes: Sequence[int | None], **params: object
) -> tuple[list[Value], list[int]]:
    size = current_frame().size
    moved = [move_batch_axis(x, axis, size, 0) for x, axis in zip(operands, axes, strict=True)]
    return check_primitive.bind(*moved, **params), []


def _lower(
    context: LoweringContext, *values: ir.Value, check: Check, debug: bool
) -> list[ir.Value]:
    if debug:
        return []
    raise UnfunctionalizedCheckError(
        "Cannot abstractly evaluate a checkify.check which was not functionalized.",
        "Compile the checked function, which returns the error: jit(checkify.checkify(f)); or use "
        "checkify.debug_check for what holds unless somebody looks.",
        where=check.where,
    )


def _samples() -> list[Sample]:
    # A Python object as parameter has no text, but all tests of samples need one.
    return []


check_primitive = declare(
    "check",
    parameters={"check": Check, "debug": bool},
    multiple_results=True,
    is_staged=True,
    is_effectful=True,
    is_observer=True,
    is_memoized=False,
    infer=_infer,
    evaluate=_evaluate,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    lower=_lower,
    samples=_samples,
)
