"""The errors that axir raises: its classes, and the names by which JAX programs catch them.

Every class derives from `AxirError`, and from the built-in exception that stands for its kind;
`CompileFailureWarning` is a warning.

>>> import axir, axir.numpy as jnp
>>> try:
...     axir.jit(lambda x: 1 if x > 0 else 2)(1.0)
... except axir.errors.JAXTypeError as error:
...     print(type(error).__name__)
TracerBoolConversionError
"""

from __future__ import annotations

from axir.dialect.core.errors import (
    AxirError,
    AxisError,
    BatchSizeError,
    BundleError,
    BundleVersionError,
    CallbackError,
    ConcretizationTypeError,
    CustomRuleError,
    DeletedArrayError,
    DonationError,
    DTypeError,
    ExecutionForbiddenError,
    FloatingPointError_,
    ForwardModeError,
    GradientError,
    HostCallNeededError,
    ImmutableArrayError,
    IncompatibleDevicesError,
    IndexTypeError,
    JAXIndexError,
    JaxRuntimeError,
    JAXTypeError,
    KernelScopeError,
    KeyReuseError,
    MatrixShapeError,
    MissingRuleError,
    NonArrayArgumentError,
    NonConcreteBooleanIndexError,
    OutOfBoundsError,
    ParameterError,
    ParseError,
    ProfileError,
    RefArgumentError,
    RefScopeError,
    ReverseModeError,
    SerializationError,
    ShapeError,
    StaticArgumentError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    TracingForbiddenError,
    TransferGuardError,
    TreeError,
    UnboundAxisNameError,
    UndefinedRuleError,
    UnexpectedTracerError,
    UnknownOpError,
    UnsupportedRuleError,
    VerificationError,
)
from axir.dialect.core.symbolic.terms import SymbolicDimError as InconclusiveDimensionOperation
from axir.runtime.errors import (
    CollectiveAbortedError,
    CollectiveError,
    CollectiveTimeoutError,
    CompileError,
    CompileFailureWarning,
    CompilerCrashError,
    DeviceNotFoundError,
    DistributedSetupError,
    DuplicateDevicesError,
    HostCallError,
    LoadError,
    MeshExecutionError,
    NotAddressableError,
    OutOfMemoryError,
    ProcessFailedError,
    ProcessLostError,
    ProcessTimeoutError,
    RuntimeExecutionError,
    TimelineWarning,
    TooFewDevicesError,
    UnequalProgramsError,
    WrongMemoryOrderError,
)

# A jaxpr with ops that do not match.
JaxprTypeError = VerificationError

__all__ = [
    "AxirError", "AxisError", "BatchSizeError", "BundleError", "BundleVersionError",
    "CallbackError", "CollectiveAbortedError", "CollectiveError", "CollectiveTimeoutError",
    "CompileError", "CompileFailureWarning", "CompilerCrashError", "ConcretizationTypeError",
    "CustomRuleError", "DTypeError", "DeletedArrayError", "DeviceNotFoundError",
    "DistributedSetupError", "DonationError", "DuplicateDevicesError", "ExecutionForbiddenError",
    "FloatingPointError_", "ForwardModeError", "GradientError", "HostCallError",
    "HostCallNeededError", "ImmutableArrayError", "IncompatibleDevicesError",
    "InconclusiveDimensionOperation", "IndexTypeError", "JAXIndexError", "JAXTypeError",
    "JaxRuntimeError", "JaxprTypeError", "KernelScopeError", "KeyReuseError", "LoadError",
    "MatrixShapeError", "MeshExecutionError", "MissingRuleError", "NonArrayArgumentError",
    "NonConcreteBooleanIndexError", "NotAddressableError", "OutOfBoundsError", "OutOfMemoryError",
    "ParameterError", "ParseError", "ProcessFailedError", "ProcessLostError", "ProcessTimeoutError",
    "ProfileError", "RefArgumentError", "RefScopeError", "ReverseModeError",
    "RuntimeExecutionError", "SerializationError", "ShapeError", "StaticArgumentError",
    "TimelineWarning", "TooFewDevicesError", "TracerArrayConversionError",
    "TracerBoolConversionError", "TracerIntegerConversionError", "TracingForbiddenError",
    "TransferGuardError", "TreeError", "UnboundAxisNameError", "UndefinedRuleError",
    "UnequalProgramsError", "UnexpectedTracerError", "UnknownOpError", "UnsupportedRuleError",
    "VerificationError", "WrongMemoryOrderError",
]  # fmt: skip
