"""Saving: each process writes its parts; when all have, the first process writes the manifest."""

from __future__ import annotations

import atexit
import json
import logging
import os
import threading
from collections.abc import Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path

from axir._bundles.tensors import write_tensors
from axir.dialect.core.annotations import Tree, UserObject
from axir.dialect.core.errors import ParameterError, user_line
from axir.dialect.core.state import on_behalf_of
from axir.dialect.core.types import ShapedArray
from axir.runtime.processes.group import Group, current

from . import folders
from .errors import CheckpointError, CheckpointWriteError
from .manifest import MANIFEST, Manifest, Number, Piece, SavedArray
from .snapshot import Leaf, Snapshot, snapshot_of

_logger = logging.getLogger("axir.checkpoint")


def save(folder: str | os.PathLike[str], tree: Tree, step: int, *, keep: int | None = None) -> Path:
    """Saves a tree of arrays as a step of a training run, and waits until it is on the disk.

    The step appears in the folder when all of it is written; until then, and if anything fails, the
    folder is as it was. Each process writes the parts that its devices hold; process 0 writes the
    arrays that lie on devices of a single process. All processes must see the same folder.

    Args:
        folder: Of the training run; it is made if it is absent.
        tree: A tree of arrays of any shape and dtype, also of random keys, and of numbers and texts
            of Python.
        step: The number of the step, at least 0.
        keep: How many steps remain, with this one; None for all.

    Returns:
        The folder of the step: a `manifest.json`, and a file of the safetensors format for each
        process.

    Raises:
        CheckpointExistsError: if the step was saved before.
        CheckpointWriteError: if the disk is full, or the system refuses otherwise.
        CheckpointLeafError: if a leaf is of another kind.
        ParameterError: if `step` or `keep` is not such a number.

    >>> import axir.numpy as jnp, tempfile
    >>> from axir import checkpoint
    >>> run = tempfile.mkdtemp()
    >>> path = checkpoint.save(run, {"w": jnp.ones((2, 3)), "epoch": 7}, step=1000)
    >>> path.name, sorted(file.name for file in path.iterdir())
    ('step_00001000', ['manifest.json', 'process_00000.safetensors'])
    >>> checkpoint.restore(run)["epoch"]
    7
    """
    return save_async(folder, tree, step, keep=keep).wait()


def save_async(
    folder: str | os.PathLike[str], tree: Tree, step: int, *, keep: int | None = None
) -> Saving:
    """Begins to save a tree of arrays, and writes it while the program goes on; see `save`.

    The arrays may be donated or deleted in the meantime: their memory is kept. One save is written
    at a time: a second one waits for the first, and raises its error if that has not been reported
    yet.

    Args:
        folder: Folder of the training run.
        tree: A tree of arrays.
        step: The number of the step.
        keep: How many steps remain; None for all.

    Returns:
        An object to wait for the save with.

    Raises:
        CheckpointLeafError: if a leaf cannot be saved.
        ParameterError: if `step` or `keep` is not such a number.

    >>> import axir.numpy as jnp, tempfile
    >>> from axir import checkpoint
    >>> saving = checkpoint.save_async(tempfile.mkdtemp(), jnp.ones(3), 0)
    >>> saving.wait().name
    'step_00000000'
    """
    _check_number("step", step, 0)
    if keep is not None:
        _check_number("keep", keep, 1)
    group = current()
    snapshot = snapshot_of(tree, group.index == 0)
    return _queue.begin(Saving(Path(folder), int(step), keep, snapshot, group))


def _check_number(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not hasattr(value, "__index__") or int(value) < least:
        raise ParameterError(
            f"checkpoint.save: {name} is {value!r}.", f"Pass a whole number from {least} on."
        )


class Saving:
    """A checkpoint that is being written."""

    def __init__(
        self, folder: Path, step: int, keep: int | None, snapshot: Snapshot, group: Group
    ) -> None:
        self.folder, self.step, self.keep = folder, step, keep
        self._snapshot: Snapshot | None = snapshot
        self._group = group
        self._line = user_line()
        self._error: BaseException | None = None
        self._is_told = False
        self._thread = threading.Thread(target=self._run, name=f"axir checkpoint {step}")

    def start(self) -> None:
        """Begins to write."""
        self._thread.start()

    def wait(self) -> Path:
        """Waits until the step is on the disk, and returns its folder; see `save` for errors."""
        self._thread.join()
        if self._error is not None:
            self._is_told = True
            raise self._error
        return folders.path_of(self.folder, self.step)

    def is_done(self) -> bool:
        """Tells whether the step is on the disk, or writing it has failed."""
        return not self._thread.is_alive()

    def unheard_error(self) -> BaseException | None:
        """Waits, and returns the error if it has not been reported."""
        self._thread.join()
        return None if self._is_told else self._error

    def _run(self) -> None:
        snapshot, self._snapshot = self._snapshot, None
        assert snapshot is not None
        try:
            with on_behalf_of(self._line):
                _Writer(self.folder, self.step, self.keep, snapshot, self._group).write()
        except BaseException as error:
            self._error = error


class _Queue:
    """The save that is being written, or None."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: Saving | None = None

    def begin(self, saving: Saving) -> Saving:
        """Begins a save when the previous one is done; raises the previous one's error."""
        with self._lock:
            if self._last is not None:
                last, self._last = self._last, None
                if last.unheard_error() is not None:
                    last.wait()
            self._last = saving
            saving.start()
        return saving

    def tell(self) -> None:
        """Logs the error of the last save if it has not been reported."""
        error = self._last.unheard_error() if self._last else None
        if error is not None:
            _logger.error("A checkpoint was not saved: %s", error)


_queue = _Queue()
atexit.register(_queue.tell)


class _Writer:
    """Writes a step, in agreement with the other processes."""

    def __init__(
        self,
        folder: Path,
        step: int,
        keep: int | None,
        snapshot: Snapshot,
        group: Group,
    ) -> None:
        self._folder, self._step, self._keep = folder, step, keep
        self._snapshot, self._group = snapshot, group

    def write(self) -> None:
        """Writes the step: its folder, all files, the manifest, its name."""
        is_first = self._group.index == 0
        try:
            self._agree("begin", lambda: self._begin() if is_first else None)
            written = self._agree("files", self._write_parts)
            self._agree("end", lambda: self._finish(written) if is_first else None)
        except BaseException as error:
            if is_first and not isinstance(error, folders.CheckpointExistsError):
                folders.give_up(self._folder, self._step)
            raise

    def _begin(self) -> None:
        folders.begin(self._folder, self._step)

    def _agree(self, what: str, act: UserObject) -> list[object]:
        """Runs this process's part of a step, and tells all; raises if one of them failed.

        Returns:
            The processes' results.
        """
        error: BaseException | None = None
        said: dict[str, UserObject] = {}
        try:
            said["done"] = act()
        except (CheckpointError, OSError) as failure:
            error = failure
            said["error"] = getattr(failure, "strerror", None) or str(failure)
        name = f"checkpoint {self._folder} {self._step} {what}"
        heard = [json.loads(x) for x in self._group.all_gather(json.dumps(said).encode(), name)]
        if isinstance(error, CheckpointError):
            raise error
        for number, other in enumerate(heard):
            if "error" in other:
                raise self._refusal(number, other["error"]) from error
        return [other["done"] for other in heard]

    def _refusal(self, number: int, reason: str) -> CheckpointWriteError:
        who = f" by process {number}" if self._group.count > 1 else ""
        return CheckpointWriteError(
            f"Step {self._step} could not be written to {self._folder}{who}: {reason.rstrip('.')}.",
            "Make room or give the right to write there, and save again; the steps that were "
            "saved before are as they were.",
        )

    def _write_parts(self) -> dict[str, object]:
        file = f"process_{self._group.index:05}.safetensors"
        tensors = self._snapshot.tensors()
        pieces = [
            (part.path, asdict(part.piece(file, tensors[part.name])))
            for part in self._snapshot.parts
        ]
        path = folders.writing_path(self._folder, self._step) / file
        size = folders.write_synced(path, list(write_tensors(tensors)))
        return {"file": file, "bytes": size, "pieces": pieces}

    def _finish(self, written: Sequence[UserObject]) -> None:
        pieces: dict[str, list[Piece]] = {path: [] for path in self._snapshot.leaves}
        for each in written:
            for path, piece in each["pieces"]:
                bounds = tuple((begin, end) for begin, end in piece["bounds"])
                pieces[path].append(Piece(piece["file"], piece["name"], bounds, piece["digest"]))
        manifest = Manifest(
            self._step,
            self._snapshot.structure,
            {path: _entry(leaf, pieces[path]) for path, leaf in self._snapshot.leaves.items()},
            {each["file"]: each["bytes"] for each in written},
            {"axir": metadata.version("axir"), "processes": str(self._group.count)},
        )
        manifest.check_complete(f"Step {self._step}")
        path = folders.writing_path(self._folder, self._step) / MANIFEST
        folders.write_synced(path, [manifest.to_bytes()])
        folders.finish(self._folder, self._step, self._keep)


def _entry(leaf: Leaf, pieces: Sequence[Piece]) -> SavedArray | Number:
    if not isinstance(leaf, ShapedArray):
        return leaf
    return SavedArray(leaf.shape, leaf.dtype, leaf.weak_type, tuple(pieces))
