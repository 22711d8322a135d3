"""Weight files in the safetensors format, which may accompany a module.

Elsewhere: which weights a module names (`axir.dialect.text.resources`).
"""

from __future__ import annotations

import mmap
from pathlib import Path

from axir.dialect.core.annotations import HostArray
from axir.dialect.core.errors import WeightsError

from .tensors import DAMAGES, views_of_tensors


def read_safetensors(path: Path) -> dict[str, HostArray]:
    """Returns the arrays of a file by name, where it is mapped.

    Raises:
        WeightsError: if it does not have the format.
    """
    try:
        with path.open("rb") as file:
            return views_of_tensors(memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)))
    except DAMAGES as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise WeightsError(
            f"{path} is not a file of safetensors: {reason[:100]}.",
            "Write the weights again, as safetensors or as .irpa.",
            where="",
        ) from None
