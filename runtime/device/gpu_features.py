"""The properties of a GPU that compilation depends on: `VulkanFeatures`, `CudaFeatures`.

Both give the compiler's flags (`flags`) and the types that programs on such a GPU cannot use
(`missing_types`). Elsewhere: asking a machine's drivers (`gpu_drivers.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

# IREE tunes some of its kernels by vendor; the names that it knows vendors by.
_VENDORS = {0x1002: "rdna2", 0x10DE: "sm_80", 0x13B5: "valhall4", 0x5143: "adreno"}
_SPIRV_VERSIONS = {(1, 1): "v1.3", (1, 2): "v1.5"}
_NEWEST_SPIRV = "v1.6"


@dataclass(frozen=True)
class VulkanFeatures:
    """The properties that a Vulkan device reports.

    Attributes:
        name: The driver's name of it.
        version: The version of Vulkan, major and minor.
        vendor: The vendor's number.
        subgroup_size: The number of threads that step together.
        floats: Widths in bits of the floating-point numbers that it computes with.
        integers: The same for integers.
        storage: Widths of the elements that it reads and writes in memory.
        subgroup_operations: The operations among threads of a subgroup, of `shuffle` and
            `arithmetic`.
        has_integer_dot: Whether it multiplies and adds vectors of bytes.
        max_workgroup_size: Largest extents of a workgroup.
        max_threads: Most threads of a workgroup.
        max_workgroup_memory: Bytes that the threads of a workgroup can share.
        max_workgroup_counts: Most workgroups of a dispatch along each axis.

    >>> gpu = VulkanFeatures("a", (1, 3), 0, 8, (32,), (32,), (32,), ("shuffle",), False,
    ...                      (64, 64, 64), 64, 1 << 14, (65535, 65535, 65535))
    >>> gpu.missing_types()
    ('f16', 'f64')
    """

    name: str
    version: tuple[int, int]
    vendor: int
    subgroup_size: int
    floats: tuple[int, ...]
    integers: tuple[int, ...]
    storage: tuple[int, ...]
    subgroup_operations: tuple[str, ...]
    has_integer_dot: bool
    max_workgroup_size: tuple[int, int, int]
    max_threads: int
    max_workgroup_memory: int
    max_workgroup_counts: tuple[int, int, int]

    def flags(self) -> tuple[str, ...]:
        """Returns the compiler's flags: a target of just this device.

        IREE knows targets by the names of products, with the product's subgroup size, memory and
        types. A reduction compiled for other subgroups than the device's is wrong.
        """
        types = [f"fp{bits}" for bits in sorted(self.floats, reverse=True)]
        types += [f"int{bits}" for bits in sorted(self.integers, reverse=True)]
        storage = [f"b{bits}" for bits in sorted(self.storage, reverse=True)]
        dot = "dp4xi8toi32" if self.has_integer_dot else "none"
        spirv = _SPIRV_VERSIONS.get(self.version, _NEWEST_SPIRV)
        workgroups = ", ".join(
            (
                f"compute = {'|'.join(types)}",
                f"storage = {'|'.join(storage)}",
                f"subgroup = {'|'.join(self.subgroup_operations) or 'none'}",
                f"dot = {dot}",
                f"subgroup_size_choices = [{self.subgroup_size}]",
                f"max_workgroup_sizes = {list(self.max_workgroup_size)}",
                f"max_thread_count_per_workgroup = {self.max_threads}",
                f"max_workgroup_memory_bytes = {self.max_workgroup_memory}",
                f"max_workgroup_counts = {list(self.max_workgroup_counts)}",
            )
        )
        target = (
            f'#iree_gpu.target<arch = "{_VENDORS.get(self.vendor, "generic")}", '
            f'features = "spirv:{spirv},cap:Shader", wgp = <{workgroups}>>'
        )
        executable = (
            '#hal.executable.target<"vulkan-spirv", "vulkan-spirv-fb", '
            f"{{iree_codegen.target_info = {target}}}>"
        )
        device = f'#hal.device.target<"vulkan", [{executable}]>'
        return (f"--iree-hal-target-device=__device_0={device}",)

    def missing_types(self) -> tuple[str, ...]:
        """Returns MLIR's number types that programs for the device must not use.

        IREE replaces integers of widths that the device lacks by wider or narrower ones.
        """
        return tuple(f"f{bits}" for bits in (16, 64) if bits not in self.floats)

    def unmet_need(self) -> str | None:
        """Returns the feature that axir's programs need and the device lacks, or None."""
        if self.version < (1, 1):
            return f"it has Vulkan {self.version[0]}.{self.version[1]}, and 1.1 is needed"
        if 32 not in self.floats or 32 not in self.integers:
            return "it does not compute with 32 bits"
        return None


# Compute capabilities that LLVM writes PTX for, with the version of PTX that each needs at least.
_CUDA_TARGETS = (
    ((6, 0), 50),
    ((7, 0), 60),
    ((7, 5), 63),
    ((8, 0), 70),
    ((8, 6), 71),
    ((8, 9), 78),
    ((9, 0), 78),
    ((10, 0), 86),
    ((10, 3), 88),
    ((12, 0), 87),
    ((12, 1), 88),
)
# The matrix operations of tensor cores, and the least capability for each, by IREE's names. IREE's
# own table lists the operations of the second line for 7.0 and 7.5 as well, where PTX does not have
# them.
_TENSOR_CORES = (
    ((7, 0), ("NV_WMMA_F32_16x16x16_F16", "NV_WMMA_F16_16x16x16_F16")),
    ((8, 0), ("NV_MMA_SYNC_F32_16x8x16_F16", "NV_MMA_SYNC_F16_16x8x16_F16")),
    ((8, 0), ("NV_MMA_SYNC_F32_16x8x16_BF16",)),
    ((8, 9), ("NV_MMA_SYNC_F32_16x8x32_F8E4M3FN", "NV_MMA_SYNC_F32_16x8x32_F8E5M2")),
)
_BYTE_PRODUCTS = (6, 1)
# The shared memory of a workgroup that every GPU has.
_LEAST_SHARED_MEMORY = 48 << 10
# The driver's version, as CUDA counts it, and the newest PTX that it translates.
_PTX_OF_DRIVERS = (
    ((13, 0), 90),
    ((12, 9), 88),
    ((12, 8), 87),
    ((12, 7), 86),
    ((12, 5), 85),
    ((12, 4), 84),
    ((12, 3), 83),
    ((12, 2), 82),
    ((12, 1), 81),
    ((12, 0), 80),
    ((11, 8), 78),
    ((11, 7), 77),
    ((11, 6), 76),
    ((11, 5), 75),
    ((11, 4), 74),
    ((11, 3), 73),
    ((11, 2), 72),
    ((11, 1), 71),
    ((11, 0), 70),
)


@dataclass(frozen=True)
class CudaFeatures:
    """The properties that an NVIDIA GPU and its driver report.

    Attributes:
        name: The driver's name of the GPU.
        capability: Its compute capability.
        driver: The newest version of CUDA that the driver knows.
        shared_memory: Bytes that the threads of a workgroup can share.

    >>> gpu = CudaFeatures("NVIDIA H200", (9, 0), (12, 4), 232448)
    >>> gpu.architecture, gpu.ptx
    ('sm_90', 84)
    """

    name: str
    capability: tuple[int, int]
    driver: tuple[int, int]
    shared_memory: int = _LEAST_SHARED_MEMORY

    @property
    def ptx(self) -> int:
        """The newest PTX that both the driver and the compiler know."""
        return next((ptx for driver, ptx in _PTX_OF_DRIVERS if self.driver >= driver), 0)

    @property
    def architecture(self) -> str | None:
        """The newest target of the compiler that the GPU and its driver take, or None.

        PTX for an older GPU is translated by the driver of a newer one.
        """
        capability = self._target
        return None if capability is None else f"sm_{capability[0]}{capability[1]}"

    @property
    def _target(self) -> tuple[int, int] | None:
        fitting = (c for c, ptx in _CUDA_TARGETS if c <= self.capability and ptx <= self.ptx)
        return max(fitting, default=None)

    def flags(self) -> tuple[str, ...]:
        """Returns the compiler's flags: a target of just this GPU.

        IREE knows few GPUs by name, none of capability 9.0 or 10.0, and assumes too much memory for
        some of them.
        """
        assert self._target is not None  # or else programs are not compiled for it
        return cuda_flags(self._target, self.ptx, self.shared_memory)

    def missing_types(self) -> tuple[str, ...]:
        """Returns none: these GPUs compute with all types of numbers."""
        return ()

    def unmet_need(self) -> str | None:
        """Returns the feature that programs need and the GPU or its driver lacks, or None."""
        if self.capability < _CUDA_TARGETS[0][0]:
            major, minor = self.capability
            return f"its compute capability is {major}.{minor}, and 6.0 is needed"
        if self.ptx == 0:
            return f"its driver knows CUDA {self.driver[0]}.{self.driver[1]}, and 11.0 is needed"
        return None


def named_cuda_flags(architecture: str) -> tuple[str, ...]:
    """Returns the compiler's flags for a GPU by its name, such as sm_90 or ampere.

    >>> named_cuda_flags("ampere")
    ('--iree-hal-target-device=cuda', '--iree-cuda-target=ampere')
    """
    for capability, ptx in _CUDA_TARGETS:
        if architecture == f"sm_{capability[0]}{capability[1]}":
            return cuda_flags(capability, max(ptx, _PTX_OF_DRIVERS[-1][1]), _LEAST_SHARED_MEMORY)
    return ("--iree-hal-target-device=cuda", f"--iree-cuda-target={architecture}")


def cuda_flags(capability: tuple[int, int], ptx: int, shared_memory: int) -> tuple[str, ...]:
    """Returns the compiler's flags for a GPU that is described.

    Args:
        capability: Its compute capability.
        ptx: The version of PTX to write.
        shared_memory: Bytes that the threads of a workgroup can share.
    """
    products = [f"<{p}>" for least, some in _TENSOR_CORES if capability >= least for p in some]
    workgroups = ", ".join(
        (
            "compute = fp64|fp32|fp16|int64|int32|int16|int8",
            "storage = b64|b32|b16|b8",
            "subgroup = shuffle|arithmetic",
            f"dot = {'dp4xi8toi32' if capability >= _BYTE_PRODUCTS else 'none'}",
            f"mma = [{', '.join(products)}]",
            "subgroup_size_choices = [32]",
            "max_workgroup_sizes = [1024, 1024, 64]",
            "max_thread_count_per_workgroup = 1024",
            f"max_workgroup_memory_bytes = {shared_memory}",
            "max_workgroup_counts = [2147483647, 65535, 65535]",
        )
    )
    target = (
        f'#iree_gpu.target<arch = "sm_{capability[0]}{capability[1]}", features = "+ptx{ptx}", '
        f"wgp = <{workgroups}>>"
    )
    executable = (
        f'#hal.executable.target<"cuda", "cuda-nvptx-fb", {{iree_codegen.target_info = {target}}}>'
    )
    return (f'--iree-hal-target-device=__device_0=#hal.device.target<"cuda", [{executable}]>',)


GpuFeatures = VulkanFeatures | CudaFeatures
