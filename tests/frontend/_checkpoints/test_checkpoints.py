"""Trees that are saved come back, from any number of processes; damage is told."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import resource
import threading
from collections import namedtuple
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import checkpoint, random
from axir._checkpoints import folders, saving, snapshot
from axir._checkpoints.files import Files
from axir._checkpoints.manifest import MANIFEST, read_manifest
from axir.dialect.core.types import ShapedArray
from axir.sharding import NamedSharding, PartitionSpec

Pair = namedtuple("Pair", "x y")
TREE = {
    "w": jnp.arange(6.0).reshape(2, 3),
    "keys": random.split(random.key(0), 3),
    "c": jnp.array([1 + 2j]),
    "small": (
        jnp.ones(2, jnp.bfloat16),
        jnp.ones(3, jnp.float8_e4m3fn),
        jnp.arange(4).astype("int4"),
    ),
    "empty": [jnp.zeros((0, 3)), jnp.float32(3)],
    "numpy": np.arange(3.0),
    "pair": Pair(jnp.array(True), None),
    "numbers": (1, 2.5, True, "é", 1j, float("inf"), -0.0),
}


def same(one: object, other: object) -> bool:
    ours, theirs = axir.tree.leaves(one), axir.tree.leaves(other)
    assert axir.tree.structure(one) == axir.tree.structure(other)
    return all(type(a) is type(b) and host(a) == host(b) for a, b in zip(ours, theirs, strict=True))


def host(leaf: object) -> tuple[object, ...]:
    if isinstance(leaf, axir.Array):
        return leaf.shape, leaf.dtype, leaf.weak_type, leaf.host().tobytes()
    return (leaf.dtype, leaf.tobytes()) if isinstance(leaf, np.ndarray) else (repr(leaf),)


def test_a_tree_comes_back(tmp_path: Path) -> None:
    path = checkpoint.save(tmp_path / "run", TREE, 3)
    assert path == tmp_path / "run" / "step_00000003"
    assert same(checkpoint.restore(tmp_path / "run", TREE), TREE)
    bare = checkpoint.restore(tmp_path / "run")
    assert bare["numbers"] == TREE["numbers"]
    assert type(bare["pair"]).__name__ == "Pair"
    assert bare["numpy"].dtype == np.float64  # also without 64-bit numbers
    assert bare["pair"]._fields == ("x", "y")
    assert host(bare["keys"]) == host(TREE["keys"])


def test_other_programs_read_the_arrays(tmp_path: Path) -> None:
    load_file = pytest.importorskip("safetensors.numpy").load_file
    path = checkpoint.save(tmp_path, {"w": jnp.arange(3.0)}, 0)
    (found,) = load_file(path / "process_00000.safetensors").values()
    assert found.tolist() == [0, 1, 2]


def test_a_whole_tree_may_be_a_leaf(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, jnp.ones(2), 0)
    checkpoint.save(tmp_path, 7, 1)
    assert checkpoint.restore(tmp_path, jnp.zeros(2), step=0).tolist() == [1, 1]
    assert checkpoint.restore(tmp_path) == 7


def test_steps_are_kept_and_removed(tmp_path: Path) -> None:
    assert checkpoint.steps(tmp_path / "none") == []
    assert checkpoint.latest(tmp_path) is None
    for step in (5, 10, 100_000_000):
        checkpoint.save(tmp_path, step, step)
    assert checkpoint.steps(tmp_path) == [5, 10, 100_000_000]
    checkpoint.save(tmp_path, 7, 7, keep=2)
    assert checkpoint.steps(tmp_path) == [7, 100_000_000]
    checkpoint.remove(tmp_path, 100_000_000)
    assert checkpoint.restore(tmp_path) == 7
    checkpoint.save(tmp_path, 8, 8, keep=1)
    assert sorted(os.listdir(tmp_path)) == ["step_00000008"]


def test_restored_arrays_lie_where_they_are_wanted(tmp_path: Path) -> None:
    rows = NamedSharding(axir.make_mesh((1,), ("x",)), PartitionSpec("x"))
    w = axir.device_put(TREE["w"], rows)
    checkpoint.save(tmp_path, {"w": w, "keys": TREE["keys"]}, 0)
    like = {"w": axir.ShapeDtypeStruct((2, 3), "float32", sharding=rows), "keys": TREE["keys"]}
    assert checkpoint.restore(tmp_path, like)["w"].sharding == rows
    assert checkpoint.restore(tmp_path, {**like, "w": w})["w"].sharding == rows
    everywhere = checkpoint.restore(tmp_path, shardings=axir.devices()[0])
    assert everywhere["w"].committed
    assert everywhere["keys"].committed
    assert not checkpoint.restore(tmp_path)["w"].committed
    one = checkpoint.restore(tmp_path, shardings={"w": rows, "keys": None})
    assert one["w"].sharding == rows
    assert not one["keys"].committed


def test_saving_goes_on_while_arrays_are_deleted(tmp_path: Path) -> None:
    x = jnp.arange(1000.0)
    step = axir.jit(lambda x: x.at[0].set(-1.0), donate_argnums=0)
    first = checkpoint.save_async(tmp_path, x, 0)
    y = step(x)
    second = checkpoint.save_async(tmp_path, y, 1)
    y.delete()
    assert second.wait() == tmp_path / "step_00000001"
    assert first.is_done()
    assert second.is_done()
    assert checkpoint.restore(tmp_path, step=0)[0] == 0
    assert checkpoint.restore(tmp_path, step=1)[0] == -1


def test_an_error_of_a_save_that_nobody_waits_for_is_told(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, 1, 1)
    checkpoint.save_async(tmp_path, 1, 1)
    with pytest.raises(checkpoint.CheckpointExistsError):
        checkpoint.save(tmp_path, 2, 2)
    checkpoint.save(tmp_path, 2, 2)  # told once


# Errors ------------------------------------------------------------------------------------


def test_bad_arguments(tmp_path: Path) -> None:
    for step in (-1, 1.5, True):
        with pytest.raises(axir.errors.ParameterError, match="(?s)step is .*whole number from 0"):
            checkpoint.save(tmp_path, 1, step)
    with pytest.raises(
        axir.errors.ParameterError,
        match="(?s)keep is 0.*whole number from 1",
    ):
        checkpoint.save(tmp_path, 1, 1, keep=0)
    for leaf in (object(), np.array(["x"]), np.zeros(1, axir.float0), [lambda: 1]):
        with pytest.raises(
            checkpoint.CheckpointLeafError, match=r"(?s)The leaf \['a'\].* cannot keep"
        ):
            checkpoint.save(tmp_path, {"a": leaf}, 1)
    with pytest.raises(axir.errors.SerializationError, match="dictionary key"):
        checkpoint.save(tmp_path, {object: 1}, 1)
    assert os.listdir(tmp_path) == []


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(
        checkpoint.CheckpointNotFoundError, match="(?s)has no checkpoints.*Save one"
    ):
        checkpoint.restore(tmp_path)
    checkpoint.save(tmp_path, 1, 1)
    for act in (checkpoint.remove, lambda folder, step: checkpoint.restore(folder, step=step)):
        with pytest.raises(FileNotFoundError, match="(?s)no checkpoint of step 2.*that it has: 1"):
            act(tmp_path, 2)


def test_nothing_is_replaced(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, "old", 1)
    with pytest.raises(
        checkpoint.CheckpointExistsError, match="(?s)step 1 already.*remove this one"
    ):
        checkpoint.save(tmp_path, "new", 1)
    assert checkpoint.restore(tmp_path) == "old"


def test_another_tree(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, {"a": jnp.ones(3), "b": 1, "c": 2}, 0)
    like = {"a": jnp.ones(4), "b": jnp.ones(()), "d": 2}
    with pytest.raises(checkpoint.CheckpointTreeError) as caught:
        checkpoint.restore(tmp_path, like)
    for told in (
        "['d'] was not saved",
        "['c'] was saved, but is not in `like`",
        "['a'] was saved as float32[3], but is float32[4] in `like`",
        "['b'] was saved as int, but is float32[] in `like`",
        "leave `like` out",
    ):
        assert told in str(caught.value)


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Lets the system refuse to write more to a file, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint.save(tmp_path, "old", 1)
    big = jnp.zeros(1 << 16)
    with largest_file(1 << 12), pytest.raises(checkpoint.CheckpointWriteError) as caught:
        checkpoint.save(tmp_path, big, 2, keep=1)
    assert "Step 2 could not be written" in str(caught.value)
    assert os.strerror(errno.EFBIG) in str(caught.value)
    assert "as they were" in str(caught.value)
    assert "test_checkpoints.py" in str(caught.value)  # the user's line, though a thread writes

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left on device"):
            checkpoint.save(tmp_path, big, 2)
    assert os.listdir(tmp_path) == ["step_00000001"]
    assert checkpoint.restore(tmp_path) == "old"
    checkpoint.save(tmp_path, big, 2)


def test_what_a_crash_leaves_is_removed(tmp_path: Path) -> None:
    folders.begin(tmp_path, 4)
    (tmp_path / ".removing_step_00000001").mkdir()
    assert checkpoint.steps(tmp_path) == []
    checkpoint.save(tmp_path, 1, 5)
    assert os.listdir(tmp_path) == ["step_00000005"]


def damages() -> Iterator[tuple[str, object, type[Exception], str]]:
    """Yields damages of the file of arrays or the manifest, and the expected errors."""
    name = "process_00000.safetensors"
    yield name, None, checkpoint.MissingShardError, "is missing"
    yield name, lambda b: b[:-1], checkpoint.TruncatedCheckpointError, "has .* bytes, but was"
    yield name, lambda b: b[:-1] + b"x", checkpoint.CheckpointHashError, "checksum is another"
    yield name, lambda b: b"\xff" * len(b), checkpoint.DamagedCheckpointError, "not a file of"
    yield name, lambda b: b.replace(b"F32", b"I32"), checkpoint.DamagedCheckpointError, "not have"
    yield MANIFEST, None, checkpoint.MissingShardError, "has no manifest"
    yield MANIFEST, lambda b: b[:-90], checkpoint.CheckpointHashError, "checksum is another"
    yield MANIFEST, lambda b: b"", checkpoint.CheckpointHashError, "checksum is another"


@pytest.mark.parametrize(("file", "change", "error", "told"), list(damages()))
def test_damage_is_told(
    tmp_path: Path, file: str, change: object, error: type[Exception], told: str
) -> None:
    path = checkpoint.save(tmp_path, {"w": jnp.arange(9.0)}, 0)
    content = (path / file).read_bytes()
    (path / file).unlink()
    if change is not None:
        (path / file).write_bytes(change(content))
    for read in (checkpoint.restore, checkpoint.verify):
        with pytest.raises(error, match=told) as caught:
            read(tmp_path)
        assert isinstance(caught.value, checkpoint.CheckpointError)
        assert "another step" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda m: m.update(version=2), checkpoint.CheckpointVersionError),
        (lambda m: m.update(format="zip"), checkpoint.DamagedCheckpointError),
        (lambda m: m.pop("leaves"), checkpoint.DamagedCheckpointError),
        (lambda m: m["leaves"][0].update(dtype="object"), checkpoint.DamagedCheckpointError),
        (lambda m: m["leaves"][0].update(shape=[1 << 70]), checkpoint.MissingShardError),
        (lambda m: m["leaves"][0]["pieces"].clear(), checkpoint.MissingShardError),
        (
            lambda m: m["leaves"][0]["pieces"][0].update(file="../x"),
            checkpoint.DamagedCheckpointError,
        ),
        (
            lambda m: m["leaves"][0]["pieces"][0].update(bounds=[[-1, 9]]),
            checkpoint.DamagedCheckpointError,
        ),
        (lambda m: m.update(files={"../x": 1}), checkpoint.DamagedCheckpointError),
    ],
)
def test_manifests_from_elsewhere_are_believed_nothing(
    tmp_path: Path, change: object, error: type[Exception]
) -> None:
    path = checkpoint.save(tmp_path, {"w": jnp.arange(9.0)}, 0)
    text = (path / MANIFEST).read_bytes().splitlines()[:-1]
    found = json.loads(b"\n".join(text))
    change(found)
    content = json.dumps(found).encode() + b"\n"
    (path / MANIFEST).write_bytes(content + saving_digest(content))
    with pytest.raises(error):
        checkpoint.restore(tmp_path)


def saving_digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode() + b"\n"


# Several processes, each a thread ----------------------------------------------------------------


class Threads:
    """Processes that are threads of this one."""

    def __init__(self, count: int):
        self.count = count
        self.barrier = threading.Barrier(count)
        self.said: list[bytes] = [b""] * count


class Member:
    def __init__(self, threads: Threads, index: int):
        self.index, self.count, self._threads = index, threads.count, threads

    def all_gather(self, content: bytes, name: str) -> list[bytes]:
        self._threads.said[self.index] = content
        self._threads.barrier.wait(20)
        found = list(self._threads.said)
        self._threads.barrier.wait(20)
        return found


W = np.arange(24, dtype=np.float32).reshape(6, 4)


def save_in_parts(folder: Path, cuts: Sequence[Sequence[slice]], full: int | None = None) -> list:
    """Saves W as processes that have some of it each; returns what each of them raised."""
    threads = Threads(len(cuts))
    errors: list[BaseException | None] = [None] * len(cuts)

    def run(number: int) -> None:
        parts = tuple(
            snapshot.Part("['w']", tuple((s.start, s.stop) for s in cut), W[cut])
            for cut in cuts[number]
        )
        leaves = {"['w']": ShapedArray(W.shape, W.dtype, False)}
        taken = snapshot.Snapshot("{'w': 0}", leaves, parts)
        member = Member(threads, number)
        writer = saving._Writer(folder, 0, None, taken, member)
        if number == full:
            writer._write_parts = failing
        try:
            writer.write()
        except BaseException as error:
            errors[number] = error

    workers = [threading.Thread(target=run, args=(n,)) for n in range(len(cuts))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return errors


def failing() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def quarters() -> list[list[tuple[slice, slice]]]:
    return [[(slice(r, r + 3), slice(c, c + 2))] for r in (0, 3) for c in (0, 2)]


def test_parts_of_several_processes_are_put_together(tmp_path: Path) -> None:
    assert save_in_parts(tmp_path, [*quarters(), []]) == [None] * 5
    assert len(os.listdir(tmp_path / "step_00000000")) == 6
    np.testing.assert_array_equal(checkpoint.restore(tmp_path)["w"], W)
    assert checkpoint.verify(tmp_path) == 0
    manifest = read_manifest(tmp_path / "step_00000000")
    files = Files(tmp_path / "step_00000000", manifest)
    for rows, columns in [((0, 6), (1, 2)), ((2, 4), (0, 4)), ((0, 3), (0, 2)), ((1, 1), (0, 4))]:
        part = files.read("['w']", manifest.leaves["['w']"], (rows, columns))
        np.testing.assert_array_equal(part, W[slice(*rows), slice(*columns)])


def test_parts_that_nobody_has_are_told(tmp_path: Path) -> None:
    errors = save_in_parts(tmp_path, quarters()[:3])
    assert isinstance(errors[0], checkpoint.MissingShardError)
    assert "18 elements together, of 24" in str(errors[0])
    assert all(isinstance(e, checkpoint.CheckpointWriteError) for e in errors[1:])
    assert os.listdir(tmp_path) == []


def test_the_file_of_a_process_is_missing(tmp_path: Path) -> None:
    save_in_parts(tmp_path, quarters())
    (tmp_path / "step_00000000" / "process_00002.safetensors").unlink()
    with pytest.raises(checkpoint.MissingShardError, match="process_00002.safetensors is missing"):
        checkpoint.restore(tmp_path)


def test_a_full_disk_of_one_process_is_told_to_all(tmp_path: Path) -> None:
    for error in save_in_parts(tmp_path, quarters(), full=2):
        assert isinstance(error, checkpoint.CheckpointWriteError)
        assert "by process 2: No space left on device" in str(error)
    assert os.listdir(tmp_path) == []
