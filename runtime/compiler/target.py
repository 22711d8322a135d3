"""What to compile for: the `Target` and the IREE flags that follow from it and from the module.

Measured on two cores of an AMD Zen 5 (microseconds on local-task, compile seconds in brackets):

| program                  | no flag      | O2 + data tiling | O2         | level 2 here |
| ------------------------ | ------------ | ---------------- | ---------- | ------------ |
| selu, 1e6                | 685 (0.2)    | 700              | 685        | 685 (0.2)    |
| MLP step 784-512-512-10  | 2,380 (1.9)  | 2,250 (2.4)      | 4,650      | 2,300 (1.9)  |
| matrix-vector 4096²      | 1,780 (0.2)  | 24,400 (0.4)     | 1,790      | 1,780 (0.2)  |
| matrix product 1024³     | 14,600 (0.3) | 9,900 (0.4)      | 14,700     | 9,900 (0.4)  |
| attention 4x8x256x64     | 5,100 (0.6)  | 4,150 (0.8)      | 3,900      | 3,800 (0.6)  |
| softmax 1024x1024        | 830 (0.4)    | 480              | 480        | 480 (0.3)    |
| sum of 4096x1024         | 3,460 (0.2)  | 250              | 250        | 250 (0.2)    |
| layer norm 1024x1024     | 450 (0.6)    | 230              | 230        | 230 (0.5)    |
| threefry normal 1000²    | 5,200 (0.6)  | 3,400            | 3,370      | 3,370 (0.5)  |

The result is level 2: `O2` for its reassociated reductions (these were measured with its fusion,
which is off since it was found to be wrong), but global optimization at `O0` (at `O2` it moves
transposes into matrix products, which halves the speed of an MLP), and data tiling only where a
large matrix product gains from it and no large matrix-vector product loses.
`--iree-llvmcpu-enable-ukernels=all` gained nothing on these; constant evaluation in the compiler
costs 0.3 s of an MLP's 1.9 s and constants travel as arguments anyway.

Extents that are no multiple of a vector ask for `PROCESS_FLAGS`; processor time relative to JAX,
with IREE's default (masked vectors) and with the rests peeled off, on an AMD Zen 4:

| program                  | masked | peeled | program                  | masked | peeled |
| ------------------------ | ------ | ------ | ------------------------ | ------ | ------ |
| softmax 1000x1000        | 62     | 2.2    | matrix product 999³      | 7.6    | 1.0    |
| attention 4x8x250x64     | 4.8    | 1.7    | the same in f64, 300³    | 3.5    | 0.9    |
| 32 products 65x64x65     | 2.4    | 1.4    | matrix-vector 4096²      | 1.1    | 2.1    |
| layer norm 1000x1001     | 0.92   | 0.87   | softmax 1024x1024        | 0.78   | 0.78   |

The matrix-vector product, which becomes slower, is made faster by `spread-matvecs`. Programs of odd
matrix products take up to twice as long to compile, others the same. Elsewhere: the properties of
CPUs (`architectures.py`), reading the module and running the compiler (`compiler/`), rewriting it
for speed (`axir.passes`).
"""

from __future__ import annotations

import dataclasses
import hashlib

from axir.dialect.core.errors import ParameterError
from axir.runtime.device.devices import Device
from axir.runtime.device.gpu_features import GpuFeatures, named_cuda_flags

from .architectures import (
    architecture_of,
    host_architecture,
    host_cpu_features,
    machine_flags,
    multiplies_bytes,
    vector_bits,
)
from .invocation.invoker import UNVERIFIED

# Programs for the first three run here, if the machine has such a device; vmvx is IREE's virtual
# machine, which runs on any CPU, slowly.
BACKENDS = ("cpu", "vulkan", "cuda", "rocm", "metal", "vmvx")
# The form of a CPU's code: a library that the system's loader links with the C library of the
# process, a self-contained library that IREE loads on any system, or an object file.
LINKAGES = ("system", "embedded", "object")

# IREE's fusion of operations with several users, and its aggressive fusion, make programs that are
# wrong, or that IREE then refuses ("operand does not dominate this use").
_SINGLE_USE_FUSION = "--iree-dispatch-creation-fuse-multi-use=false"

# The reassociation is implied by O2, but not after flags were set for the process (below).
_FUSION_FLAGS = (
    "--iree-global-optimization-opt-level=O0",
    "--iree-llvmcpu-reassociate-fp-reductions",
    "--iree-dispatch-creation-enable-aggressive-fusion=false",
    _SINGLE_USE_FUSION,
)
# Verifying all operations after each pass takes a seventh to a quarter of the compiler's time. A
# module that fails is compiled again without optimizations, and verified.
#
# The search for subexpressions of constants takes exponential time where values are read twice, and
# axir's modules have no such subexpressions: tracing computes them.
_UNHOISTED = "--iree-opt-const-expr-hoisting=false"
_OPTIMIZATION_FLAGS: dict[int, tuple[str, ...]] = {
    0: ("--iree-opt-const-eval=false", _UNHOISTED, _SINGLE_USE_FUSION),
    1: (
        UNVERIFIED,
        "--iree-opt-const-eval=false",
        _UNHOISTED,
        "--iree-llvmcpu-reassociate-fp-reductions",
        _SINGLE_USE_FUSION,
    ),
    2: (
        UNVERIFIED,
        "--iree-opt-const-eval=false",
        _UNHOISTED,
        "--iree-opt-level=O2",
        *_FUSION_FLAGS,
    ),
    3: (UNVERIFIED, "--iree-opt-level=O3", *_FUSION_FLAGS),
}


# Flags that the compiler takes once for the whole process. If the extents of an array are not
# multiples of a vector, IREE masks vectors by default, and if it has to mask both rows and columns,
# it computes element by element: a softmax of 1000x1000 takes 60 times as long as JAX's, a matrix
# product of 999x999 8 times. With the remainders peeled off, these factors are 2.2 and 1.0. The
# tiles of float64 products from 32x32 on, 32 KB, then exceed IREE's limit, though they are fast.
#
# Dispatches that do not depend on each other may run at the same time by default. If one dispatch
# reads an array that another one changes in place, IREE knows the order, but ignores it when it
# forms such groups: the read ran after the change.
#
# IREE finds the users of arrays in rounds, about as many as operations follow one another. By
# default it gives up after a hundred ("failed to solve for affinity analysis"), which a long
# program exceeds.
#
# Plugins that axir never uses are switched off: passes look through the operations of all active
# plugins, which takes some 5% of the compilation of a small program.
_UNUSED_PLUGINS = ("input_torch", "input_tosa")
PROCESS_FLAGS = (
    "--iree-llvmcpu-vector-pproc-strategy=peel",
    "--iree-llvmcpu-fail-on-large-vector=false",
    "--iree-stream-partitioning-favor=debug",
    "--iree-stream-affinity-solver-max-iterations=100000",
    *(f"--iree-plugin=-{name}" for name in _UNUSED_PLUGINS),
)

# Parts of the compiler that a program for the CPU does not need: passes look through the operations
# of GPUs, too, and make rewrite patterns for them, another 6%. Constant evaluation chooses among
# all targets.
_OTHER_TARGETS = ("cuda", "rocm", "metal_spirv", "vulkan_spirv", "vmvx")
_FOR_CPU_ALONE = {
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-opt-const-eval=false",
}

# By default, IREE records a command buffer once, and runs it again with other arrays. Its driver of
# Vulkan does not keep those arrays alive while the device works on them: the results of loops had
# numbers of other arrays.
_RECORDS_ANEW = "--iree-hal-memoization=false"


def process_flags(flags: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the flags of a process that compiles with a session's flags.

    >>> len(process_flags(Target().flags())) - len(process_flags(Target("vmvx").flags()))
    5
    """
    if any(flag.startswith("--iree-hal-target-device=") and "vulkan" in flag for flag in flags):
        return (*PROCESS_FLAGS, _RECORDS_ANEW)
    if not _FOR_CPU_ALONE.issubset(flags):
        return PROCESS_FLAGS
    return PROCESS_FLAGS + tuple(f"--iree-plugin=-hal_target_{name}" for name in _OTHER_TARGETS)


def needs_own_process(flags: tuple[str, ...]) -> bool:
    """Tells whether a session's flags need other process-wide flags than this process can have.

    >>> needs_own_process(Target("vulkan").flags()), needs_own_process(Target().flags())
    (True, False)
    """
    return _RECORDS_ANEW in process_flags(flags)


# IREE's name of each target, the flag that names the machine, and a value that most machines can
# run.
_GPUS = {
    "vulkan": ("vulkan", "--iree-vulkan-target", "ampere"),
    "rocm": ("hip", "--iree-rocm-target", "gfx942"),
}
_USUAL_CUDA = "sm_80"


@dataclasses.dataclass(frozen=True)
class Target:
    """A machine to compile for, and how hard to try.

    Args:
        backend: "cpu", "vulkan", "cuda", "rocm", "metal" or "vmvx".
        cpu: "host" for this machine's CPU, "generic" for any of its architecture, or a CPU that
            LLVM knows, such as "x86-64-v3".
        opt_level: 0 keeps the order of floating-point reductions and compiles fastest; 1 may
            reorder them; 2 also fuses; 3 also evaluates constant expressions while compiling.
        data_tiling: whether matrix products pack their operands; None decides by the module.
        gpu_architecture: IREE's name of the GPU: "sm_80", "ampere", "rdna3"; None for one that most
            machines can run.
        gpu_features: the properties that a GPU of this machine reports; they go before
            `gpu_architecture`.
        checks_arguments: whether programs check their arguments; one that does not ends the process
            if an argument is of another type than declared.
        triple: LLVM's name of another kind of machine: "aarch64-linux-gnu", "riscv64-linux-gnu",
            "x86_64-linux-gnu"; None for this machine's.
        linkage: "system", "embedded" or "object", for CPUs; None for the default: "system" on this
            kind of machine, "embedded" for another one.
        marks_dispatches: whether programs mark the begin and the end of each dispatch, for
            profilers; that takes some time.

    >>> Target(opt_level=2).flags()[0]
    '--iree-input-type=stablehlo'
    >>> Target(cpu="generic", triple="aarch64-linux-gnu").architecture
    'aarch64'
    """

    backend: str = "cpu"
    cpu: str = "host"
    opt_level: int = 2
    data_tiling: bool | None = None
    gpu_architecture: str | None = None
    gpu_features: GpuFeatures | None = None
    checks_arguments: bool = True
    triple: str | None = None
    linkage: str | None = None
    marks_dispatches: bool = False

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise ParameterError(
                f"There is no backend {self.backend!r}.", f"Choose one of {', '.join(BACKENDS)}."
            )
        if self.opt_level not in _OPTIMIZATION_FLAGS:
            raise ParameterError(
                f"There is no optimization level {self.opt_level!r}.", "Choose 0, 1, 2 or 3."
            )
        if self.linkage is not None and self.linkage not in LINKAGES:
            raise ParameterError(
                f"There is no linkage {self.linkage!r}.", f"Choose one of {', '.join(LINKAGES)}."
            )
        if self.triple is not None:
            self._check_triple(architecture_of(self.triple))

    def _check_triple(self, architecture: str) -> None:
        if self.backend != "cpu":
            raise ParameterError(
                f"A triple of CPUs ({self.triple}) does not go with the backend {self.backend!r}.",
                "Leave the triple out, or choose the backend cpu.",
                where="",
            )
        if self.cpu == "host" and architecture != host_architecture():
            raise ParameterError(
                f"The host's CPU is {host_architecture()}, and {self.triple} is another kind.",
                "Choose generic, or a CPU that LLVM knows, such as cortex-a72.",
                where="",
            )

    @property
    def architecture(self) -> str:
        """The architecture of the target CPU: "x86_64", "aarch64", "riscv64"."""
        return architecture_of(self.triple) if self.triple else host_architecture()

    @property
    def has_c_library(self) -> bool:
        """Whether code may call functions of the C library, such as `sin` of doubles."""
        if self.backend in ("vulkan", "metal"):
            return False
        return self.backend != "cpu" or self._linkage != "embedded"

    @property
    def uses_linker(self) -> bool:
        """Whether the compiler calls the system's linker."""
        return self.backend == "cpu" and self._linkage == "system"

    @property
    def _linkage(self) -> str:
        return self.linkage or ("embedded" if self.triple else "system")

    def flags(self, wants_data_tiling: bool = False) -> tuple[str, ...]:
        """Returns the flags of `iree-compile`, save for the path of the linker.

        Args:
            wants_data_tiling: the choice if `data_tiling` leaves it open.
        """
        # 64-bit types are never silently narrowed: f64 in the module is f64 on the device.
        common = ("--iree-input-type=stablehlo", "--iree-input-demote-f64-to-f32=false")
        if self.gpu_features is not None:
            return common + self.gpu_features.flags()
        if self.backend == "cuda":
            return common + named_cuda_flags(self.gpu_architecture or _USUAL_CUDA)
        if self.backend in _GPUS:
            device, flag, usual = _GPUS[self.backend]
            architecture = self.gpu_architecture or usual
            return (*common, f"--iree-hal-target-device={device}", f"{flag}={architecture}")
        if self.backend == "metal":
            # The tool that makes libraries of Metal source code runs on a Mac only.
            metal = ("--iree-hal-target-device=metal", "--iree-metal-compile-to-metallib=false")
            return common + metal
        local = ("--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=")
        if self.backend == "vmvx":
            return (*common, local[0], f"{local[1]}vmvx")
        is_tiled = wants_data_tiling if self.data_tiling is None else self.data_tiling
        # Only data tiling calls IREE's microkernels; to read them takes 3% of a small compilation.
        has_microkernels = is_tiled or self.opt_level == 3
        return (
            *common,
            local[0],
            f"{local[1]}llvm-cpu",
            *machine_flags(self.cpu, self.triple),
            f"--iree-llvmcpu-link-embedded={str(self._linkage == 'embedded').lower()}",
            *(("--iree-llvmcpu-link-static",) if self._linkage == "object" else ()),
            *_OPTIMIZATION_FLAGS[self.opt_level],
            *(("--iree-opt-data-tiling",) if is_tiled else ()),
            *(() if has_microkernels else ("--iree-llvmcpu-link-ukernel-bitcode=false",)),
        )

    @staticmethod
    def of_device(device: Device, opt_level: int = 2, checks_arguments: bool = True) -> Target:
        """Returns the target of programs for a device of this machine."""
        return Target(
            device.platform,
            opt_level=opt_level,
            gpu_features=device.features,
            checks_arguments=checks_arguments,
        )

    @property
    def plain(self) -> Target:
        """The same machine without optimizations, which cause most failures of the compiler."""
        return dataclasses.replace(self, opt_level=0, data_tiling=False)

    @property
    def vector_bits(self) -> int:
        """The width of the CPU's vectors, as kernels use them: 128, 256 or 512 bits.

        >>> Target(cpu="x86-64-v3").vector_bits
        256
        """
        return vector_bits(self.cpu, self.architecture)

    @property
    def multiplies_bytes(self) -> bool:
        """Whether the CPU has an instruction for the products of four pairs of bytes."""
        return multiplies_bytes(self.cpu, self.architecture)

    @property
    def machine(self) -> str:
        """The machine's part of the binary's key: this machine's CPU or GPU if it is the target."""
        if self.gpu_features is not None:
            return hashlib.sha256(" ".join(self.gpu_features.flags()).encode()).hexdigest()[:16]
        if self.backend != "cpu":
            return ""
        return f"{self.architecture}:{host_cpu_features() if self.cpu == 'host' else ''}"
