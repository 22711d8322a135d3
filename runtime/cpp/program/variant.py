"""`Variant`: a program for one kind of CPU, and the features that the CPU must have.

Elsewhere: how a running model checks for them (`include/axir/cpu.hpp`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .host_program import HostProgram

# Preprocessor conditions that tell the architecture.
MACROS = {
    "x86_64": "defined(__x86_64__)",
    "aarch64": "defined(__aarch64__)",
    "riscv64": "defined(__riscv) && __riscv_xlen == 64",
}


@dataclass(frozen=True)
class Variant:
    """A program and its kernels, for one kind of CPU.

    Attributes:
        cpu: The CPU's name for users.
        architecture: `x86_64`, `aarch64` or `riscv64`.
        features: The features that it must have, by LLVM's names in `FEATURES`.
        program: The program of the methods.
        kernels: The object file; empty if there are no kernels.
        prefix: The prefix of the object file's symbols.
    """

    cpu: str
    architecture: str
    features: tuple[str, ...]
    program: HostProgram
    kernels: bytes
    prefix: str

    @property
    def label(self) -> str:
        """The CPU in names of files and of C++.

        >>> Variant("x86-64-v3", "x86_64", (), HostProgram({}, (), {}, (), ()), b"", "").label
        'x86_64_v3'
        """
        return re.sub(r"\W", "_", self.cpu)

    @property
    def query(self) -> str | None:
        """The symbol that queries the object file's library, or None."""
        if not self.kernels:
            return None
        linked = f"{self.prefix}_linked_library_query"
        is_linked = f"{linked}\0".encode() in self.kernels
        return linked if is_linked else f"{self.prefix}_library_query"
