"""Errors of checkpoints: one class for each fault."""

from __future__ import annotations

from axir.dialect.core.errors import AxirError


class CheckpointError(AxirError):
    """A checkpoint cannot be written or read; base of the classes that say why."""


class CheckpointNotFoundError(CheckpointError, FileNotFoundError):
    """A folder has no checkpoint, or no checkpoint of the requested step."""


class CheckpointExistsError(CheckpointError, FileExistsError):
    """A step was saved before, which saving never replaces."""


class CheckpointWriteError(CheckpointError, OSError):
    """A checkpoint could not be written; earlier checkpoints are unchanged."""


class CheckpointLeafError(CheckpointError, TypeError):
    """A tree holds something that checkpoints cannot keep."""


class CheckpointTreeError(CheckpointError, ValueError):
    """A checkpoint holds another tree than the requested one."""


class CheckpointVersionError(CheckpointError, ValueError):
    """A checkpoint was written by a newer version of axir."""


class DamagedCheckpointError(CheckpointError, ValueError):
    """The files of a checkpoint differ from the written ones; base class of specific errors."""


class TruncatedCheckpointError(DamagedCheckpointError):
    """A file of a checkpoint has another size than it was written with."""


class CheckpointHashError(DamagedCheckpointError):
    """A file of a checkpoint has another content than was written."""


class MissingShardError(DamagedCheckpointError, FileNotFoundError):
    """A part of an array is missing: its file is missing, or no process has written it."""
