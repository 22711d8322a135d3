"""Code that all programs share is made once for a machine."""

from __future__ import annotations

import concurrent.futures
import contextlib
import importlib.util
import os
import time
from pathlib import Path

import pytest

from axir.runtime.compiler.invocation import kept_code
from axir.runtime.compiler.invocation.native import NativeCompiler


class Maker:
    """Makes code, and counts how often."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> bytes:
        self.count += 1
        return b"code"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "__pycache__"
    monkeypatch.setattr(importlib.util, "cache_from_source", lambda path: f"{place}/x.pyc")
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    return place


def test_code_is_made_once_for_each_source(folder: Path) -> None:
    make = Maker()
    for source in (b"one", b"one", b"two", b"one"):
        assert kept_code.kept_code("name", source, make) == b"code"
    assert make.count == 2
    assert len(list(folder.glob("name-*.code"))) == 2
    assert len(list(folder.iterdir())) == 2


def test_damaged_code_is_made_again(folder: Path) -> None:
    make = Maker()
    kept_code.kept_code("name", b"one", make)
    [file] = folder.iterdir()
    for content in (b"", b"code", file.read_bytes()[:-1], file.read_bytes() + b"x"):
        file.write_bytes(content)
        assert kept_code.kept_code("name", b"one", make) == b"code"
    assert make.count == 5


def test_code_that_nobody_has_read_for_weeks_is_deleted(folder: Path) -> None:
    make = Maker()
    for source in (b"old", b"read", b"young"):
        kept_code.kept_code("name", source, make)
    old, read, young = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    other = folder / "module.pyc"
    other.write_bytes(b"byte code")
    now, days = time.time(), 24 * 3600
    for path, age in ((old, 40), (read, 27), (young, 20), (other, 400)):
        os.utime(path, (now - age * days,) * 2)
    assert kept_code.kept_code("name", b"read", make) == b"code"
    assert read.stat().st_mtime == pytest.approx(now, abs=600)
    assert {*folder.iterdir()} == {old, read, young, other}  # until a file is added
    kept_code.kept_code("other", b"new", make)
    [added] = folder.glob("other-*.code")
    assert {*folder.iterdir()} == {read, young, other, added}
    assert make.count == 4


def test_processes_may_delete_and_read_at_once(folder: Path) -> None:
    """Each of several threads finds code that others delete, and makes it again."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:

        def use(number: int) -> bytes:
            for path in folder.glob("*.code"):
                with contextlib.suppress(FileNotFoundError):
                    os.utime(path, (0, 0))
            return kept_code.kept_code("name", b"%d" % (number % 3), Maker())

        assert set(pool.map(use, range(300))) == {b"code"}
    assert all(path.name.count("-") == 1 for path in folder.iterdir())  # no half-written file


def test_who_keeps_no_byte_code_keeps_no_code(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    assert kept_code.kept_code("name", b"one", Maker()) == b"code"
    assert not folder.exists()


def test_a_folder_that_is_none_costs_a_compilation(folder: Path) -> None:
    folder.write_text("a file")
    assert kept_code.kept_code("name", b"one", Maker()) == b"code"


def test_the_compiler_keeps_what_it_prepares(folder: Path) -> None:
    NativeCompiler().prepare(lambda: True)
    names = sorted(path.name.partition("-")[0] for path in folder.iterdir())
    assert names == ["entry", "f32", "f64"]
    compiler = NativeCompiler()
    compiler._object = Maker()  # type: ignore[method-assign, assignment]
    compiler.prepare(lambda: True)
    assert compiler._object.count == 0  # type: ignore[attr-defined]
