"""IREE's archives of parameters, `.irpa`: the arrays in them, and their offsets."""

from __future__ import annotations

from pathlib import Path

import iree.runtime
import numpy as np

from axir.dialect.core.annotations import HostArray
from axir.dialect.core.errors import WeightsError
from axir.dialect.text.resources import UNTYPED


def read_parameter_archive(path: Path) -> dict[str, HostArray]:
    """Returns the content of an archive by name, as bytes: it knows no other types.

    Raises:
        WeightsError: if the file is not such an archive.
    """
    index = iree.runtime.ParameterIndex()
    try:
        index.load(str(path), format="irpa")
        entries = dict(index.items())
    except (ValueError, RuntimeError, IndexError, OSError) as error:
        reason = (str(error).splitlines() or ["it is damaged"])[0]
        raise WeightsError(
            f"{path} is not an archive of parameters: {reason}.",
            "Write it with iree-create-parameters or iree-convert-parameters.",
            where="",
        ) from None
    return {
        name: np.frombuffer(entry.file_view, UNTYPED)
        if entry.is_file
        else np.frombuffer(_repeated(entry.splat_pattern, entry.length), UNTYPED)
        for name, entry in entries.items()
    }


def _repeated(pattern: bytes, length: int) -> bytes:
    return pattern * (length // max(1, len(pattern)))
