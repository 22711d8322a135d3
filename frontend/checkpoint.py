"""Checkpoints of training runs: trees of arrays as folders, for any number of devices.

A step is a folder with a manifest and a file for each process. It appears as a whole or not at all,
and is checked when it is read.

>>> import axir.numpy as jnp, tempfile
>>> from axir import checkpoint
>>> run = tempfile.mkdtemp()
>>> for step in range(4):
...     _ = checkpoint.save(run, {"w": jnp.arange(step)}, step, keep=2)
>>> checkpoint.steps(run), checkpoint.restore(run)["w"]
([2, 3], Array([0, 1, 2], dtype=int32))

The module is also the function `axir.checkpoint`, another name of `axir.remat`, which computes
values again for the derivative instead of keeping them:

>>> import axir
>>> axir.grad(axir.checkpoint(jnp.sin))(0.0)
Array(1., dtype=float32, weak_type=True)
"""

from __future__ import annotations

import inspect
import sys
import types

from axir._checkpoints.errors import (
    CheckpointError,
    CheckpointExistsError,
    CheckpointHashError,
    CheckpointLeafError,
    CheckpointNotFoundError,
    CheckpointTreeError,
    CheckpointVersionError,
    CheckpointWriteError,
    DamagedCheckpointError,
    MissingShardError,
    TruncatedCheckpointError,
)
from axir._checkpoints.folders import latest, remove, steps
from axir._checkpoints.restoring import restore, verify
from axir._checkpoints.saving import Saving, save, save_async
from axir._transforms.checkpointing import remat
from axir.dialect.core.annotations import Options, UserFunction

__all__ = [
    "CheckpointError", "CheckpointExistsError", "CheckpointHashError", "CheckpointLeafError",
    "CheckpointNotFoundError", "CheckpointTreeError", "CheckpointVersionError",
    "CheckpointWriteError", "DamagedCheckpointError", "MissingShardError", "Saving",
    "TruncatedCheckpointError", "latest", "remove", "restore", "save", "save_async", "steps",
    "verify",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


class _Module(types.ModuleType):
    """A module that can be called: JAX gives the name to the function."""

    __signature__ = inspect.signature(remat)

    def __call__(self, *args: Options, **options: Options) -> UserFunction:
        return remat(*args, **options)


sys.modules[__name__].__class__ = _Module
