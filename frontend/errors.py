"""The errors that axir raises: classes of its own, and the names by which JAX programs catch them.

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
    FloatingPointError_,
    ForwardModeError,
    GradientError,
    HostCallNeededError,
    ImmutableArrayError,
    IndexTypeError,
    JAXIndexError,
    JAXTypeError,
    KernelScopeError,
    MatrixShapeError,
    MissingRuleError,
    NonArrayArgumentError,
    NonConcreteBooleanIndexError,
    OutOfBoundsError,
    ParameterError,
    ParseError,
    RefScopeError,
    ReverseModeError,
    SerializationError,
    ShapeError,
    StaticArgumentError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    TreeError,
    UnboundAxisNameError,
    UndefinedRuleError,
    UnexpectedTracerError,
    UnknownOpError,
    UnsupportedRuleError,
    VerificationError,
)
from axir.runtime.errors import (
    CompileError,
    CompileFailureWarning,
    CompilerCrashError,
    DeviceNotFoundError,
    HostCallError,
    JaxRuntimeError,
    LoadError,
    OutOfMemoryError,
    RuntimeExecutionError,
)

# A jaxpr whose ops do not fit together.
JaxprTypeError = VerificationError

__all__ = [
    "AxirError",
    "AxisError",
    "BatchSizeError",
    "BundleError",
    "BundleVersionError",
    "CallbackError",
    "CompileError",
    "CompileFailureWarning",
    "CompilerCrashError",
    "ConcretizationTypeError",
    "CustomRuleError",
    "DTypeError",
    "DeletedArrayError",
    "DeviceNotFoundError",
    "DonationError",
    "FloatingPointError_",
    "ForwardModeError",
    "GradientError",
    "HostCallError",
    "HostCallNeededError",
    "ImmutableArrayError",
    "IndexTypeError",
    "JAXIndexError",
    "JAXTypeError",
    "JaxRuntimeError",
    "JaxprTypeError",
    "KernelScopeError",
    "LoadError",
    "MatrixShapeError",
    "MissingRuleError",
    "NonArrayArgumentError",
    "NonConcreteBooleanIndexError",
    "OutOfBoundsError",
    "OutOfMemoryError",
    "ParameterError",
    "ParseError",
    "RefScopeError",
    "ReverseModeError",
    "RuntimeExecutionError",
    "SerializationError",
    "ShapeError",
    "StaticArgumentError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "TreeError",
    "UnboundAxisNameError",
    "UndefinedRuleError",
    "UnexpectedTracerError",
    "UnknownOpError",
    "UnsupportedRuleError",
    "VerificationError",
]
