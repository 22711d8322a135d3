"""Writing arrays to files: base classes for checkpoint libraries.

The classes are names of the module `serialization` in this one.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np

from axir._devices.placement import device_put
from axir._made_modules import MadeModule
from axir.dialect.core.annotations import UserObject

__all__ = ["serialization"]


# Of modules that are made here.
__path__: list[str] = []


def __dir__() -> list[str]:
    return __all__


Specification = dict[str, UserObject]


class GlobalAsyncCheckpointManagerBase(abc.ABC):
    """A manager that writes and reads arrays while the program continues.

    Libraries derive their managers from it.
    """

    @abc.abstractmethod
    def check_for_errors(self) -> None:
        """Raises the error of the background thread."""

    @abc.abstractmethod
    def wait_until_finished(self) -> None:
        """Waits until everything is written."""

    @abc.abstractmethod
    def serialize(
        self,
        arrays: Sequence[object],
        tensorstore_specs: Sequence[Specification],
        *,
        on_commit_callback: Callable[[], None],
    ) -> None:
        """Begins to write arrays, and calls back when they are written."""

    @abc.abstractmethod
    def deserialize(
        self,
        shardings: Sequence[object],
        tensorstore_specs: Sequence[Specification],
        global_shapes: Sequence[tuple[int, ...]] | None = None,
        dtypes: Sequence[object] | None = None,
    ) -> Sequence[UserObject]:
        """Reads arrays."""


class GlobalAsyncCheckpointManager(GlobalAsyncCheckpointManagerBase):
    """Writes arrays with tensorstore (which must be installed), in a separate thread.

    Args:
        timeout_secs: Seconds to wait for pending writes; None waits forever.

    Raises:
        ImportError: by `serialize` and `deserialize`, if tensorstore is not installed.
        TimeoutError: if writing takes longer than `timeout_secs`.
    """

    def __init__(self, timeout_secs: float | None = 300):
        self._timeout = timeout_secs
        self._writing: Future[None] | None = None

    def check_for_errors(self) -> None:
        """Raises the error of the background thread, once."""
        if self._writing is not None and self._writing.done():
            self.wait_until_finished()

    def wait_until_finished(self) -> None:
        """Waits until everything is written; raises an error of writing."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result(self._timeout)

    def serialize(
        self,
        arrays: Sequence[object],
        tensorstore_specs: Sequence[Specification],
        *,
        on_commit_callback: Callable[[], None] | None = None,
        transaction: object = None,
    ) -> None:
        """Begins to write arrays, once those before are written.

        Args:
            arrays: The arrays; they may change or be donated as soon as this returns.
            tensorstore_specs: Where to write each of them.
            on_commit_callback: What to call when they are written.
            transaction: A transaction of tensorstore to write them in.
        """
        self.wait_until_finished()
        copies = [np.array(x) for x in arrays]

        def write() -> None:
            stores = [
                _open(spec, transaction, create=True, dtype=x.dtype, shape=x.shape)
                for x, spec in zip(copies, tensorstore_specs, strict=True)
            ]
            for begun in [s.write(x) for s, x in zip(stores, copies, strict=True)]:
                begun.result()
            if on_commit_callback is not None:
                on_commit_callback()

        thread = ThreadPoolExecutor(1, "axir writes a checkpoint")
        self._writing = thread.submit(write)
        thread.shutdown(wait=False)

    def serialize_with_paths(
        self, arrays: Sequence[object], paths: Sequence[str], **options: UserObject
    ) -> None:
        """Begins to write arrays into folders; options as of `serialize`."""
        self.serialize(arrays, [get_tensorstore_spec(path) for path in paths], **options)

    def deserialize(
        self,
        shardings: Sequence[object],
        tensorstore_specs: Sequence[Specification],
        global_shapes: Sequence[tuple[int, ...]] | None = None,
        dtypes: Sequence[UserObject] | None = None,
        concurrent_gb: int = 32,
    ) -> Sequence[UserObject]:
        """Reads arrays after pending writes.

        Args:
            shardings: Where to place each of them; a device will do.
            tensorstore_specs: Where to read each of them.
            global_shapes: Their shapes; they are cut or filled with zeros to these. None reads
                them as they are.
            dtypes: What to convert them to; None leaves them.
            concurrent_gb: Accepted for compatibility.
        """
        self.wait_until_finished()
        begun = [_open(spec, None, create=False).read() for spec in tensorstore_specs]
        found = [np.asarray(reading.result()) for reading in begun]
        if global_shapes is not None:
            found = [_fitted(x, tuple(s)) for x, s in zip(found, global_shapes, strict=True)]
        if dtypes is not None:
            found = [x.astype(np.dtype(d)) for x, d in zip(found, dtypes, strict=True)]
        return [device_put(x, s) for x, s in zip(found, shardings, strict=True)]

    def deserialize_with_paths(
        self, shardings: Sequence[object], paths: Sequence[str], **options: UserObject
    ) -> Sequence[UserObject]:
        """Reads arrays from folders; options as of `deserialize`."""
        return self.deserialize(shardings, [get_tensorstore_spec(p) for p in paths], **options)


def _open(
    specification: Specification, transaction: object, create: bool, **layout: object
) -> UserObject:
    import tensorstore  # late: not a dependency

    return tensorstore.open(
        specification, transaction=transaction, open=True, create=create, **layout
    ).result()


def _fitted(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Cuts an array to a shape, or fills it up with zeros."""
    kept = tuple(slice(0, min(a, b)) for a, b in zip(x.shape, shape, strict=True))
    fitted = np.zeros(shape, x.dtype)
    fitted[kept] = x[kept]
    return fitted


def get_tensorstore_spec(ckpt_path: str, ocdbt: bool = False) -> Specification:
    """Returns tensorstore's specification of the array in a folder.

    Args:
        ckpt_path: The folder, an absolute path.
        ocdbt: Whether the folder around it is one database of all arrays.

    >>> get_tensorstore_spec("/tmp/model/weights")
    {'driver': 'zarr', 'kvstore': {'driver': 'file', 'path': '/tmp/model/weights'}}
    """
    path = Path(ckpt_path)
    if not ocdbt:
        return {"driver": "zarr", "kvstore": {"driver": "file", "path": str(path)}}
    base = f"file://{path.parent}"
    return {"driver": "zarr", "kvstore": {"driver": "ocdbt", "base": base, "path": path.name}}


serialization = MadeModule(
    f"{__name__}.serialization",
    __doc__,
    {
        "GlobalAsyncCheckpointManager": GlobalAsyncCheckpointManager,
        "GlobalAsyncCheckpointManagerBase": GlobalAsyncCheckpointManagerBase,
        "get_tensorstore_spec": get_tensorstore_spec,
    },
)
