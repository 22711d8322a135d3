"""The folder of a training run, with a folder for each step that was saved.

A step is written to a hidden folder, which gets its name when all of it is on the disk: a step is
complete or absent. Removing a step hides it first. Elsewhere: the content of the files (`files.py`,
`manifest.py`).
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from .errors import CheckpointExistsError, CheckpointNotFoundError

_NAME = re.compile(r"step_(\d{8,})")
_WRITING, _REMOVING = ".writing_", ".removing_"


def path_of(folder: Path, step: int) -> Path:
    """Returns the folder of a step."""
    return folder / f"step_{step:08}"


def writing_path(folder: Path, step: int) -> Path:
    """Returns the folder where a step is written, before it gets its name."""
    return folder / f"{_WRITING}{path_of(folder, step).name}"


def steps(folder: str | os.PathLike[str]) -> list[int]:
    """Returns the steps that were saved in a folder, ascending; empty without a folder.

    Args:
        folder: Folder of a training run; see `save`.

    >>> import axir.numpy as jnp, tempfile
    >>> from axir import checkpoint
    >>> run = tempfile.mkdtemp()
    >>> for step in (10, 20):
    ...     _ = checkpoint.save(run, {"w": jnp.zeros(3)}, step)
    >>> checkpoint.steps(run), checkpoint.latest(run)
    ([10, 20], 20)
    """
    path = Path(folder)
    if not path.is_dir():
        return []
    found = (_NAME.fullmatch(entry.name) for entry in path.iterdir() if entry.is_dir())
    return sorted(int(match[1]) for match in found if match)


def latest(folder: str | os.PathLike[str]) -> int | None:
    """Returns the last step that was saved in a folder, None without a step.

    Args:
        folder: Folder of a training run; see `save`.
    """
    found = steps(folder)
    return found[-1] if found else None


def remove(folder: str | os.PathLike[str], step: int) -> None:
    """Removes a step, which is either there as a whole or not at all.

    Args:
        folder: Folder of a training run; see `save`.
        step: The step.

    Raises:
        CheckpointNotFoundError: if it was not saved.
    """
    hidden = Path(folder) / f"{_REMOVING}{path_of(Path(folder), step).name}"
    shutil.rmtree(hidden, ignore_errors=True)
    try:
        existing(Path(folder), step).rename(hidden)
    except FileNotFoundError:
        raise missing(Path(folder), step) from None
    shutil.rmtree(hidden, ignore_errors=True)  # leftovers are removed with the next save


def existing(folder: Path, step: int | None) -> Path:
    """Returns the folder of a step, or of the last one.

    Raises:
        CheckpointNotFoundError: if the step is absent.
    """
    chosen = latest(folder) if step is None else step
    if chosen is None or not path_of(folder, chosen).is_dir():
        raise missing(folder, step)
    return path_of(folder, chosen)


def missing(folder: Path, step: int | None) -> CheckpointNotFoundError:
    """Returns the error for a step that is not there."""
    there = steps(folder)
    if not there:
        return CheckpointNotFoundError(
            f"{folder} has no checkpoints.",
            "Save one first: axir.checkpoint.save(folder, tree, 0).",
        )
    shown = ", ".join(map(str, there[-8:]))
    return CheckpointNotFoundError(
        f"{folder} has no checkpoint of step {step}.", f"The last steps that it has: {shown}."
    )


def begin(folder: Path, step: int) -> Path:
    """Makes the empty folder for a step, and removes the leftovers of a crash.

    Raises:
        CheckpointExistsError: if the step was saved before.
        OSError: if the system refuses.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if path_of(folder, step).exists():
        raise CheckpointExistsError(
            f"{folder} has a checkpoint of step {step} already.",
            "Save another step, or remove this one first: axir.checkpoint.remove(folder, step).",
        )
    for entry in folder.iterdir():
        if entry.name.startswith((_WRITING, _REMOVING)):
            shutil.rmtree(entry, ignore_errors=True)
    writing = writing_path(folder, step)
    writing.mkdir()
    return writing


def finish(folder: Path, step: int, keep: int | None) -> Path:
    """Gives a step its name, when all its files are on the disk, and removes the oldest steps.

    Args:
        folder: Folder of the training run.
        step: The step.
        keep: How many steps remain; None for all.
    """
    sync_folder(writing_path(folder, step))
    writing_path(folder, step).rename(path_of(folder, step))
    sync_folder(folder)
    others = [other for other in steps(folder) if other != step]
    for old in others[: max(0, len(others) - keep + 1) if keep else 0]:
        remove(folder, old)
    return path_of(folder, step)


def give_up(folder: Path, step: int) -> None:
    """Removes the files of a step that cannot be finished."""
    shutil.rmtree(writing_path(folder, step), ignore_errors=True)


def sync_folder(folder: Path) -> None:
    """Waits until the names in a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_synced(path: Path, pieces: list[bytes | memoryview]) -> int:
    """Writes a file, waits until it is on the disk, and returns its size in bytes."""
    with open(path, "wb") as file:
        for piece in pieces:
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
        return file.tell()
