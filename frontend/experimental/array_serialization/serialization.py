"""How arrays are written to files: what libraries that write checkpoints derive their own from."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from pathlib import Path

from axir.dialect.core.annotations import UserObject

__all__ = ["GlobalAsyncCheckpointManagerBase", "get_tensorstore_spec"]

Specification = dict[str, UserObject]


class GlobalAsyncCheckpointManagerBase(abc.ABC):
    """What writes and reads arrays while a program goes on.

    Libraries derive managers of their own from it; there is none here.
    """

    @abc.abstractmethod
    def check_for_errors(self) -> None:
        """Raises what went wrong in the background."""

    @abc.abstractmethod
    def wait_until_finished(self) -> None:
        """Waits until everything is written."""

    @abc.abstractmethod
    def serialize(
        self,
        arrays: Sequence[UserObject],
        tensorstore_specs: Sequence[Specification],
        *,
        on_commit_callback: Callable[[], None],
    ) -> None:
        """Begins to write arrays, and calls back when they are written."""

    @abc.abstractmethod
    def deserialize(
        self,
        shardings: Sequence[UserObject],
        tensorstore_specs: Sequence[Specification],
        global_shapes: Sequence[tuple[int, ...]] | None = None,
        dtypes: Sequence[UserObject] | None = None,
    ) -> Sequence[UserObject]:
        """Reads arrays."""


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
