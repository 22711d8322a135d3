"""The disk cache: hits, damage, eviction, many writers, and folders that refuse."""

from __future__ import annotations

import os
import threading
import time

import pytest

from axir.dialect.core.config import config
from axir.runtime import Target, compile_module
from axir.runtime.compiler import compilation
from axir.runtime.compiler.cache import ProgramCache, cache_directory, program_cache

IDENTITY = """
func.func @main(%x: tensor<2xf32> {location}) -> tensor<2xf32> {{
  return %x : tensor<2xf32>
}}
"""


@pytest.fixture
def cache(tmp_path):
    return ProgramCache(tmp_path / "programs", max_bytes=1 << 20)


def test_what_was_put_is_got(cache):
    assert cache.get("key") is None
    cache.put("key", b"program")
    cache.put("empty", b"")
    assert cache.get("key") == b"program"
    assert cache.get("empty") == b""


@pytest.mark.parametrize("position", [0, 9, 20, 40, -1])
def test_a_damaged_entry_counts_as_absent(cache, position):
    cache.put("key", b"program" * 10)
    content = bytearray(cache.path("key").read_bytes())
    content[position] ^= 0xFF
    cache.path("key").write_bytes(content)
    assert cache.get("key") is None
    cache.put("key", b"again")
    assert cache.get("key") == b"again"


@pytest.mark.parametrize("length", [0, 1, 30, 60])
def test_a_truncated_entry_counts_as_absent(cache, length):
    cache.put("key", b"program" * 10)
    content = cache.path("key").read_bytes()
    cache.path("key").write_bytes(content[:length])
    assert cache.get("key") is None


def test_entries_used_longest_ago_leave_first(tmp_path):
    cache = ProgramCache(tmp_path, max_bytes=5000)
    for number in range(4):
        cache.put(f"key{number}", bytes(1000))
        age = 100 - number
        os.utime(cache.path(f"key{number}"), (time.time() - age, time.time() - age))
    assert cache.get("key0") is not None  # it is the most recently used now
    cache.put("key4", bytes(1000))
    remaining = [number for number in range(5) if cache.get(f"key{number}") is not None]
    assert remaining == [0, 2, 3, 4]
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 5000


def test_abandoned_temporary_files_are_removed(cache):
    cache.put("key", b"program")
    old, young = (cache.directory / f"{name}.temporary" for name in ("old", "young"))
    for file in (old, young):
        file.write_bytes(b"half")
    os.utime(old, (0, 0))
    cache.put("other", b"program")
    assert not old.exists()
    assert young.exists()


def test_a_cap_of_zero_keeps_nothing(tmp_path):
    ProgramCache(tmp_path / "programs", max_bytes=0).put("key", b"program")
    assert not (tmp_path / "programs").exists()


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    cache = ProgramCache(tmp_path / "file" / "programs", max_bytes=1 << 20)
    cache.put("key", b"program")
    assert cache.get("key") is None


def test_a_full_disk_is_no_error_and_leaves_nothing(cache, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    cache.put("key", b"program")
    assert list(cache.directory.iterdir()) == []


def test_concurrent_writers_and_readers_see_whole_entries(cache):
    payloads = [bytes([number]) * 50_000 for number in range(4)]
    seen = []

    def write(payload):
        for _ in range(20):
            cache.put("key", payload)
            seen.append(cache.get("key"))

    threads = [threading.Thread(target=write, args=(payload,)) for payload in payloads]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 80
    assert set(seen) <= set(payloads)
    assert [file.name for file in cache.directory.iterdir()] == ["key.program"]


def test_the_folder_is_closed_to_others(cache):
    cache.put("key", b"program")
    assert cache.directory.stat().st_mode & 0o777 == 0o700


def test_the_options_choose_the_folder_and_the_cap(tmp_path):
    config.update("axir_cache_dir", str(tmp_path))
    config.update("axir_cache_max_bytes", 123)
    assert cache_directory() == tmp_path
    assert program_cache().max_bytes == 123
    config.update("axir_cache_dir", None)
    assert cache_directory().name == "axir"


class CountedCompiler:
    """Counts the runs of the compiler."""

    def __init__(self, monkeypatch):
        self.runs = 0
        self._run = compilation._run_compiler
        monkeypatch.setattr(compilation, "_run_compiler", self)

    def __call__(self, *arguments):
        self.runs += 1
        return self._run(*arguments)


def test_compile_module_compiles_once_per_content(tmp_path, monkeypatch):
    config.update("axir_cache_dir", str(tmp_path))
    counted = CountedCompiler(monkeypatch)
    here, there = (IDENTITY.format(location=f'loc("model.py":{n}:1)') for n in (3, 4))
    binary = compile_module(here, Target())
    assert compile_module(here, Target()) == binary
    assert compile_module(there, Target()) == binary  # only the source line differs
    assert counted.runs == 1
    compile_module(here, Target(opt_level=0))
    compile_module(here, Target(cpu="generic"))
    assert counted.runs == 3
    for entry in tmp_path.glob("*.program"):
        entry.write_bytes(entry.read_bytes()[:-1])
    assert compile_module(here, Target())[:4] == binary[:4]
    assert counted.runs == 4
    compile_module(here, Target())
    assert counted.runs == 4


def test_compile_module_works_without_a_cache_folder(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    config.update("axir_cache_dir", str(tmp_path / "file"))
    assert len(compile_module(IDENTITY.format(location=""), Target())) > 0
