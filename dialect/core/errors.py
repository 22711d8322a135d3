"""The errors that axir raises: one class per cause, with the fault, the line, and the way out.

Every class derives from `AxirError` and from the built-in exception that a NumPy or JAX user would
catch.

Here: also the refusal of options with a single choice, the sharding of results and the accuracy of
a function.

Elsewhere: errors of the compiler and devices (`runtime/errors.py`) and of pass pipelines
(`passes/framework/errors.py`).
"""

from __future__ import annotations

import linecache
from types import CodeType

from .annotations import UserObject
from .context import describe_location, user_frame
from .state import state


def user_line() -> str | None:
    """Describes the user's line as `file:line in function: source`, if there is one.

    While a pass works on an op, it is the line that the op came from; else it is the innermost line
    outside axir.
    """
    if state.origin is not None:
        place = describe_location(state.origin.location)
        if place is not None and ":" in place:
            filename, _, line = place.rpartition(":")
            return _with_source(place, filename, int(line))
    if state.caller is not None:
        return state.caller
    frame = user_frame()
    if frame is None:
        return None
    return describe_line(frame.f_code, frame.f_lineno)


def describe_line(code: CodeType, line: int) -> str:
    """Describes a line of a function's code as `file:line in function: source`."""
    place = f"{code.co_filename}:{line} in {code.co_name}"
    return _with_source(place, code.co_filename, line)


def _with_source(place: str, filename: str, line: int) -> str:
    source = linecache.getline(filename, line).strip()
    return f"{place}: {source}" if source else place


class AxirError(Exception):
    """Base of all errors that axir raises on its own account.

    Args:
        message: The fault.
        way_out: The remedy, as a sentence.
        where: The user's line; by default the innermost frame outside axir.
    """

    def __init__(self, message: str, way_out: str | None = None, where: str | None = None):
        self.message = message
        self.way_out = way_out
        self.where = where if where is not None else user_line()
        lines = [message]
        if self.where:
            lines.append(f"  at {self.where}")
        if way_out:
            lines.append(f"  {way_out}")
        super().__init__("\n".join(lines))


class ShapeError(AxirError, TypeError, ValueError):
    """Operand shapes do not fit the operation."""


class MatrixShapeError(ShapeError):
    """An operand holds no matrices, or not of the shape that a function of linear algebra needs."""


class DTypeError(AxirError, TypeError):
    """Operand dtypes do not fit the operation."""


class KeyConversionError(DTypeError):
    """Random keys are used as numbers."""


class KeyPromotionError(DTypeError, ValueError):
    """Random keys meet arrays of another dtype."""


class AxisError(AxirError, ValueError, IndexError):
    """An axis lies outside the array, or is named twice."""


class ParameterError(AxirError, ValueError):
    """A parameter of an operation has a value that it cannot have."""


class NonArrayArgumentError(AxirError, TypeError):
    """An argument that must be an array is something else."""


class RefArgumentError(NonArrayArgumentError, ValueError):
    """A ref was passed where an array is needed."""

    def __init__(self, what: str, ref: UserObject):
        super().__init__(
            f"{what} is {ref!r}, a ref, where an array is needed.",
            "Read what it holds: ref[...].",
        )


class ImmutableArrayError(AxirError, TypeError):
    """An array was assigned to."""


class RefScopeError(AxirError, ValueError):
    """A ref is used in a traced function that does not carry it.

    Attributes:
        ref: The ref.
        needs: The refs that the traced functions inside use, by their code.
    """

    def __init__(self, ref: UserObject):
        self.ref = ref
        self.needs: dict[UserObject, dict[UserObject, None]] = {}
        super().__init__(
            f"{ref!r} is used in a traced function that does not carry it.",
            "Functions that jit, grad, vmap, scan, while_loop and cond trace may use refs from "
            "outside, and those of jit may take them as arguments, as those of vmap and vjp may; "
            "elsewhere pass ref[...] and return the new value.",
        )


class DeletedArrayError(AxirError, RuntimeError):
    """An array was used after its buffer had been donated or deleted."""


class JaxRuntimeError(AxirError, RuntimeError):
    """Base of the errors of compiling and running, under the name by which programs catch them."""


class TransferGuardError(JaxRuntimeError):
    """The options `jax_transfer_guard...` do not allow the move of an array."""


class IncompatibleDevicesError(AxirError, ValueError):
    """Arrays that are committed to different devices meet in one computation."""


class OutOfBoundsError(AxirError, IndexError):
    """A static index lies outside the array."""


class IndexTypeError(AxirError, TypeError):
    """An index is of a kind that arrays do not take."""


class JAXTypeError(AxirError, TypeError):
    """Base of the type errors of tracing, under the name by which programs catch them."""


class JAXIndexError(AxirError, IndexError):
    """Base of the index errors of tracing, under the name by which programs catch them."""


class ConcretizationTypeError(JAXTypeError):
    """The value of a tracer was needed while only its type is known."""


class TracerBoolConversionError(ConcretizationTypeError):
    """A tracer was used as a Python bool, as `if`, `while`, `and` and `or` do."""


class TracerIntegerConversionError(ConcretizationTypeError):
    """A tracer was used as a Python integer."""


class TracerArrayConversionError(ConcretizationTypeError):
    """A tracer was handed to NumPy."""


class NonConcreteBooleanIndexError(ConcretizationTypeError, JAXIndexError):
    """A mask without known values was used as an index, but its values decide shapes."""


class UnexpectedTracerError(JAXTypeError, RuntimeError):
    """A tracer was used after the trace that made it had ended (it leaked)."""


class MissingRuleError(AxirError, NotImplementedError):
    """A primitive lacks the rule that a transformation needs."""


class UnsupportedRuleError(AxirError, NotImplementedError):
    """A primitive declares that a rule cannot exist, and names the alternative."""


class CallbackError(AxirError, ValueError, RuntimeError):
    """A callback returned something else than was declared."""


class HostCallNeededError(AxirError, NotImplementedError):
    """A program that must run without this process contains a call of a Python function."""


class UnsupportedByDeviceError(AxirError, NotImplementedError):
    """A program has an operation that its device cannot do, or does wrong."""


class ReverseModeError(UnsupportedRuleError, ValueError):
    """A loop with an unknown number of passes was differentiated in reverse mode."""


class KernelScopeError(AxirError, RuntimeError):
    """An operation of kernels was called outside of a kernel."""


class UndefinedRuleError(AxirError, AttributeError):
    """A function with a custom derivative was called before its rule was defined."""


class CustomRuleError(AxirError, TypeError, ValueError):
    """A custom rule returned something else than it must, or cannot be used as asked."""


class ForwardModeError(AxirError, TypeError):
    """A function that has only a reverse-mode rule was differentiated in forward mode."""


class GradientError(AxirError, TypeError, ValueError):
    """A function cannot be differentiated as asked: its output or input has the wrong type."""


class TreeError(AxirError, TypeError, ValueError):
    """Trees of arguments, results or axes do not fit together."""


class BatchSizeError(AxirError, ValueError):
    """The mapped axes of `vmap` have no size or different sizes."""


class StaticArgumentError(AxirError, ValueError, TypeError):
    """A static argument is unhashable or out of range."""


class DonationError(AxirError, ValueError):
    """A donated argument cannot be donated as asked."""


class TracingForbiddenError(AxirError, RuntimeError):
    """A function would be traced while the option `jax_no_tracing` forbids it."""


class ExecutionForbiddenError(AxirError, RuntimeError):
    """Something would be computed while the option `jax_no_execution` forbids it."""


def execution_forbidden(name: str) -> ExecutionForbiddenError:
    """Returns the error for a function or an operation that would be computed."""
    return ExecutionForbiddenError(
        f"{name!r} would be computed, but the option jax_no_execution forbids it.",
        "Leave the `with axir.no_execution(True):` first; jit(f).lower(x).compile() compiles "
        "inside of it.",
    )


class KeyReuseError(AxirError, RuntimeError):
    """A random key is used twice, under the option `jax_debug_key_reuse`."""


class ProfileError(AxirError, RuntimeError):
    """A profiler trace is already being recorded, or not started; or a file is no such trace."""


class UnboundAxisNameError(AxirError, NameError):
    """A collective names an axis that no surrounding transformation maps."""


class ParseError(AxirError, ValueError):
    """A text is not a module that axir can read."""


class WeightsError(ParseError):
    """The weights of a module from elsewhere are missing, damaged, or of another size."""


class VerificationError(AxirError, ValueError):
    """A module breaks a rule of the dialect."""


class UnknownOpError(VerificationError):
    """A module contains an op that the dialect does not have."""


class SerializationError(AxirError, ValueError):
    """A function holds a parameter that has no textual form."""


class BundleError(AxirError, ValueError):
    """A file is not a bundle, or one that is damaged or was changed."""


class BundleVersionError(BundleError):
    """A bundle was written by a newer version of axir."""


class FloatingPointError_(AxirError, FloatingPointError):
    """A NaN or an infinity came out of an operation while the debugging options forbid it."""


FloatingPointError_.__name__ = FloatingPointError_.__qualname__ = "FloatingPointError"


def axis_error(operation: str, axis: int, ndim: int) -> AxisError:
    """Returns the error for an axis out of range."""
    return AxisError(
        f"{operation}: axis {axis} is out of bounds for an array of dimension {ndim}.",
        f"Axes run from {-ndim} to {ndim - 1}." if ndim else "A scalar has no axes.",
    )


def one_layout(function: str, sharding: object) -> ParameterError:
    """Returns the error of a function with a sharding for its result."""
    return ParameterError(
        f"{function}: {sharding!r} is no layout that {function} can give.",
        "Leave the argument out, or pass None. axir.device_put(x, sharding) lays an array out.",
    )


def check_layout(function: str, sharding: object) -> None:
    """Raises `ParameterError` for a sharding other than None."""
    if sharding is not None:
        raise one_layout(function, sharding)


# Names of the modes of `axir.lax.AccuracyMode`.
_MODES = ("DEFAULT", "HIGHEST")


def check_accuracy(function: str, accuracy: object) -> None:
    """Raises `ParameterError` for an accuracy that is no mode, such as a tolerance."""
    if accuracy is not None and getattr(accuracy, "name", None) not in _MODES:
        raise ParameterError(
            f"{function}: {accuracy!r} is not an accuracy of {function}, which is computed in one "
            "way.",
            "Leave the argument out, or pass None or a lax.AccuracyMode.",
        )


_WAYS_TO_VALUES: dict[type[ConcretizationTypeError], str] = {
    TracerBoolConversionError: "Use jnp.where or lax.cond for a choice by value, or make the "
    "argument static with jit(..., static_argnums=...).",
    TracerIntegerConversionError: "Make the argument that it comes from static with "
    "jit(..., static_argnums=...), or index with arrays.",
    TracerArrayConversionError: "Use axir.numpy instead of numpy inside transformed functions.",
}


def not_concrete(
    error: type[ConcretizationTypeError], tracer: str, function: str, use: str
) -> ConcretizationTypeError:
    """Returns the error for a tracer with a value that is not known, and was needed.

    Args:
        error: The class of the error.
        tracer: The name of the tracer, and where it was made.
        function: The name of the traced function.
        use: How the value was needed.
    """
    return error(
        f"The value of {tracer} was needed {use}, but while {function!r} is being traced only its "
        "type is known.",
        _WAYS_TO_VALUES.get(
            error, "Make the argument that it comes from static with jit(..., static_argnums=...)."
        ),
    )


def leaked(tracer: str, function: str) -> UnexpectedTracerError:
    """Returns the error for a tracer that is used after the tracing of a function has ended."""
    return UnexpectedTracerError(
        f"{tracer} leaked: it was used after the tracing of {function!r} had ended.",
        "Return values from the function instead of storing them in globals, attributes or lists "
        "outside it.",
    )
