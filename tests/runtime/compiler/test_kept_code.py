"""Code that all programs share is made once for a machine."""

from __future__ import annotations

import importlib.util
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
