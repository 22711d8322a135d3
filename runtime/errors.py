"""The errors of compiling and of devices: one class per cause, each with the way out.

Elsewhere: errors about operations, shapes and dtypes (`dialect/core/errors.py`).
"""

from __future__ import annotations

from axir.dialect.core.errors import JaxRuntimeError


class CompileError(JaxRuntimeError):
    """IREE could not compile a program.

    `diagnostics` holds the compiler's full messages; the text of the error only their first lines.
    """

    diagnostics: tuple[str, ...] = ()


class CompilerCrashError(CompileError):
    """IREE's compiler crashed over a program, in a separate process."""


class WrongMemoryOrderError(CompileError):
    """IREE's compiler made a program that would read memory after it has been overwritten."""


class CompileFailureWarning(UserWarning):
    """IREE could not compile a program, which is evaluated in NumPy instead."""


class TimelineWarning(UserWarning):
    """A profile lacks something that was requested."""


class DeviceNotFoundError(JaxRuntimeError):
    """The machine has no such device, or its driver is not installed."""


class TooFewDevicesError(DeviceNotFoundError, ValueError):
    """A map over an axis has more elements than there are devices."""


class DeviceUnfitError(DeviceNotFoundError):
    """The machine's devices lack features that programs need."""


class RuntimeExecutionError(JaxRuntimeError):
    """A compiled program failed while it ran."""


class OutOfMemoryError(RuntimeExecutionError, MemoryError):
    """A compiled program needs more memory than its device has."""


class CollectiveError(JaxRuntimeError):
    """Base of the errors of devices that communicate."""


class UnequalProgramsError(CollectiveError):
    """The devices of a mesh do not run the same collectives in the same order."""


class CollectiveTimeoutError(CollectiveError):
    """Devices waited longer for another one than the option `axir_collective_timeout` allows."""


class CollectiveAbortedError(CollectiveError):
    """A device waited for another one that has failed; that error is the cause of this one."""


class MeshExecutionError(RuntimeExecutionError):
    """A program failed on a device of the mesh that ran it."""


class DeviceLostError(RuntimeExecutionError):
    """A device's driver has given it up, with all that lay in its memory."""


class HostCallError(JaxRuntimeError):
    """A Python function that a compiled program calls returned another result than it declared."""


class LoadError(JaxRuntimeError):
    """A compiled program could not be loaded: another target, or damaged."""


class CppEmissionError(JaxRuntimeError):
    """A program has an operation that cannot be written as C++."""


class NotAddressableError(JaxRuntimeError):
    """Elements were requested that lie on devices of other processes."""


class DuplicateDevicesError(JaxRuntimeError, ValueError):
    """A mesh has a device more than once; its parts of a program would wait for each other."""


class DistributedSetupError(JaxRuntimeError, ValueError):
    """Processes that should compute together do not find each other, or do not fit together."""


class ProcessLostError(CollectiveError):
    """Another process of the job was killed, has ended, or cannot be reached any more."""


class ProcessFailedError(CollectiveError):
    """Another process of the job has failed, with a separate error."""


class ProcessTimeoutError(CollectiveTimeoutError, TimeoutError):
    """A process has waited for others longer than `axir_collective_timeout` allows."""
