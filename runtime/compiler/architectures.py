"""CPUs: their architectures, the features that distinguish them, and their vector widths.

Elsewhere: the compilation targets (`target.py`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import platform
import re
from functools import cache
from pathlib import Path

from axir.dialect.core.errors import ParameterError


@dataclasses.dataclass(frozen=True)
class _Architecture:
    """A kind of CPU.

    Attributes:
        names: The architecture's names in triples and in `platform.machine()`, as a regular
            expression.
        generic: LLVM's name of a CPU that has only the features common to all CPUs of this kind.
        features: The features common to all, if LLVM does not know them.
        abi: The calling convention, if there are several.
        levels: The CPUs for which LLVM generates different code, from the least capable on; code
            for any other CPU is hardly faster than code for one of these.
    """

    names: str
    generic: str = "generic"
    features: str = ""
    abi: str = ""
    levels: tuple[str, ...] = ()


# RISC-V means the CPUs of general-purpose systems, RV64GC.
_ARCHITECTURES = {
    "x86_64": _Architecture("x86_64|amd64|AMD64", levels=("x86-64", "x86-64-v3", "x86-64-v4")),
    "aarch64": _Architecture("aarch64|arm64"),
    "riscv64": _Architecture("riscv64", "generic-rv64", "+m,+a,+f,+d,+c", "lp64d"),
}

# CPUs, by LLVM's names, with vectors wider than 128 bits.
_VECTORS = (
    (
        512,
        "x86-64-v4|skylake-avx512|cascadelake|cooperlake|cannonlake|icelake-.*|tigerlake|"
        "rocketlake|sapphirerapids|emeraldrapids|graniterapids.*|diamondrapids|znver[4-9]",
    ),
    (
        256,
        "x86-64-v3|haswell|core-avx2|broadwell|skylake|alderlake|raptorlake|meteorlake|"
        "arrowlake.*|lunarlake|pantherlake|sierraforest|grandridge|gracemont|clearwaterforest|"
        "znver[1-3]",
    ),
)

# CPUs, by LLVM's names, with AVX-512 VNNI.
_VNNI = re.compile(
    "cascadelake|cooperlake|icelake-.*|tigerlake|rocketlake|sapphirerapids|emeraldrapids|"
    "graniterapids.*|diamondrapids|znver[4-9]"
)

# LLVM's names of the CPU features that compiled code may use. A feature that is missing here is
# common to all CPUs of its architecture, or is never used by code without intrinsics. `cpu.hpp` of
# C++ models has the same list.
FEATURES: dict[str, list[str]] = {
    "x86_64": (
        "sse3 ssse3 sse4.1 sse4.2 popcnt cx16 sahf avx avx2 fma f16c bmi bmi2 lzcnt movbe fma4 xop "
        "tbm adx gfni avxvnni avx512f avx512bw avx512cd avx512dq avx512vl avx512ifma avx512vbmi "
        "avx512vbmi2 avx512vnni avx512bitalg avx512vpopcntdq avx512bf16 avx512fp16"
    ).split(),
    "aarch64": "aes crc lse fullfp16 rdm jsconv complxnum rcpc dotprod sve sve2 bf16 i8mm".split(),
    "riscv64": [],
}
# Linux's names of features, where they differ.
_NAMES_OF_LINUX = {
    "sse3": "pni",
    "sse4.1": "sse4_1",
    "sse4.2": "sse4_2",
    "sahf": "lahf_lm",
    "bmi": "bmi1",
    "lzcnt": "abm",
    "avxvnni": "avx_vnni",
    "avx512vbmi2": "avx512_vbmi2",
    "avx512vnni": "avx512_vnni",
    "avx512bitalg": "avx512_bitalg",
    "avx512vpopcntdq": "avx512_vpopcntdq",
    "avx512bf16": "avx512_bf16",
    "avx512fp16": "avx512_fp16",
    "crc": "crc32",
    "lse": "atomics",
    "fullfp16": "asimdhp",
    "rdm": "asimdrdm",
    "jsconv": "jscvt",
    "complxnum": "fcma",
    "rcpc": "lrcpc",
    "dotprod": "asimddp",
}


def architecture_of(triple: str) -> str:
    """Returns the architecture that a triple or an operating system's name stands for.

    Raises:
        ParameterError: axir does not compile for this architecture.

    >>> architecture_of("arm64-apple-darwin"), architecture_of("riscv64-linux-gnu")
    ('aarch64', 'riscv64')
    """
    first = triple.partition("-")[0]
    for name, architecture in _ARCHITECTURES.items():
        if re.fullmatch(architecture.names, first):
            return name
    raise ParameterError(
        f"Programs are not made for machines such as {triple!r}.",
        f"Choose a triple of {', '.join(_ARCHITECTURES)}: aarch64-linux-gnu, say.",
        where="",
    )


def host_architecture() -> str:
    """Returns this machine's architecture, or the system's name of an unknown one."""
    try:
        return architecture_of(platform.machine())
    except ParameterError:
        return platform.machine()


def cpu_levels(triple: str | None) -> tuple[str, ...]:
    """Returns the CPUs to compile for, so that programs run everywhere and use newer CPUs well.

    Args:
        triple: The kind of machine; None for this machine's.

    >>> cpu_levels("x86_64-linux-gnu"), cpu_levels("aarch64-linux-gnu")
    (('x86-64', 'x86-64-v3', 'x86-64-v4'), ('generic',))
    """
    name = host_architecture() if triple is None else architecture_of(triple)
    known = _ARCHITECTURES.get(name)
    return (known.levels if known else ()) or ("generic",)


def machine_flags(cpu: str, triple: str | None) -> tuple[str, ...]:
    """Returns the flags of `iree-compile` that name a CPU."""
    if triple is None:
        return (f"--iree-llvmcpu-target-cpu={cpu}",)
    architecture = _ARCHITECTURES[architecture_of(triple)]
    flags = [f"--iree-llvmcpu-target-triple={triple}"]
    if architecture.abi:
        flags.append(f"--iree-llvmcpu-target-abi={architecture.abi}")
    if cpu != "generic":
        return (*flags, f"--iree-llvmcpu-target-cpu={cpu}")
    flags.append(f"--iree-llvmcpu-target-cpu={architecture.generic}")
    if architecture.features:
        flags.append(f"--iree-llvmcpu-target-cpu-features={architecture.features}")
    return tuple(flags)


def vector_bits(cpu: str, architecture: str) -> int:
    """Returns the width of a CPU's vectors, as kernels use them: 128, 256 or 512 bits.

    >>> vector_bits("x86-64-v3", "x86_64"), vector_bits("neoverse-v1", "aarch64")
    (256, 128)
    """
    if architecture != "x86_64":
        return 128  # on ARM the Neon registers, which all CPUs have
    if cpu != "host":
        return next((bits for bits, names in _VECTORS if re.fullmatch(names, cpu)), 128)
    features = host_cpu_flags()
    if {"avx512f", "avx512vl", "avx512dq", "avx512bw"} <= features:
        return 512
    return 256 if {"avx2", "fma"} <= features else 128


def multiplies_bytes(cpu: str, architecture: str) -> bool:
    """Tells whether a CPU has an instruction for the products of four pairs of bytes.

    >>> multiplies_bytes("sapphirerapids", "x86_64"), multiplies_bytes("x86-64-v4", "x86_64")
    (True, False)
    """
    if architecture != "x86_64":
        return False
    if cpu != "host":
        return _VNNI.fullmatch(cpu) is not None
    return vector_bits(cpu, architecture) == 512 and "avx512_vnni" in host_cpu_flags()


def used_features(architecture: str, features: str) -> tuple[str, ...]:
    """Returns the features, out of LLVM's list for a CPU, that generated code may use.

    >>> used_features("x86_64", "+cmov,+sse4.1,+avx2,+avx,-avx2")
    ('sse4.1', 'avx')
    """
    signs = {word[1:]: word[0] for word in features.split(",") if word}  # the last one holds
    return tuple(name for name in FEATURES[architecture] if signs.get(name) == "+")


def lacking_features(features: str) -> list[str]:
    """Returns the features, of LLVM's names, that this machine's CPU lacks."""
    flags = host_cpu_flags()
    if not flags:
        return []
    used = used_features(host_architecture(), features)
    return [name for name in used if _NAMES_OF_LINUX.get(name, name) not in flags]


@cache
def host_cpu_flags() -> frozenset[str]:
    """Returns the CPU's features by Linux's names; empty on other systems."""
    lines = _cpu_lines("flags", "Features")
    return frozenset(lines[0].partition(":")[2].split()) if lines else frozenset()


@cache
def host_cpu_features() -> str:
    """Returns a digest that distinguishes this machine's CPU: model and features."""
    names = ("model name", "flags", "Features", "CPU implementer", "CPU part")
    lines = _cpu_lines(*names)
    if not lines:
        return platform.processor()
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def _cpu_lines(*names: str) -> list[str]:
    """Returns the different lines of these names in Linux's description of its CPUs, in order."""
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return []
    return sorted({line for line in text.splitlines() if line.split("\t")[0].strip(": ") in names})
