"""Every program of the benchmark runs, and the harness reports wrong and slower ones."""

from __future__ import annotations

import doctest
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import jax
import numpy as np
import pytest

import axir
from benchmarks.harness import history
from benchmarks.harness import program as program_module
from benchmarks.harness import report as report_module
from benchmarks.harness.chart import draw
from benchmarks.harness.measure import Row, WrongValue, compare
from benchmarks.harness.program import Group, Program
from benchmarks.harness.report import Run, describe_machine, in_words
from benchmarks.harness.workers import Worker, WorkerError
from benchmarks.programs import PROGRAMS

ROOT = Path(__file__).parents[2]
FILES_COMPARED_BY_VALUE = (
    "algorithms",
    "elementwise",
    "indexing",
    "linear_algebra",
    "loops",
    "products",
    "reductions",
    "sorting",
)
UNOPTIMIZED = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
}


def programs() -> list[Program]:
    """Returns one size of each program, except the import, which is a process."""
    return list({p.make: p for p in PROGRAMS.values() if p.name != "import-library"}.values())


@pytest.fixture(autouse=True)
def one_stream_of_random_bits() -> Iterator[None]:
    with axir.threefry_partitionable(True), jax.threefry_partitionable(True):
        yield


def arguments(library: ModuleType, args: list[object]) -> list[object]:
    def put(leaf: object) -> object:
        return library.numpy.asarray(leaf) if isinstance(leaf, (np.ndarray, np.generic)) else leaf

    return library.tree_util.tree_map(put, args)


def arrays(library: ModuleType, result: object) -> list[np.ndarray]:
    leaves = library.tree_util.tree_leaves(result)
    return [np.asarray(leaf) for leaf in leaves if hasattr(leaf, "dtype")]


def is_compared_by_shape(program: Program) -> bool:
    """Tells whether XLA compiles for long: values are then compared only in measurements."""
    file = program.make.__module__.rpartition(".")[2]
    return file not in FILES_COMPARED_BY_VALUE or program.name.endswith("gradient")


def evaluated(program: Program) -> list[np.ndarray]:
    with axir.enable_x64(program.x64):
        function, args = program.build(axir, program.tiny)
        return arrays(axir, function(*arguments(axir, args)))


def values_by_numpy(program: Program) -> list[np.ndarray]:
    assert program.numpy is not None
    result = program.numpy(*program.build(axir, program.tiny)[1])
    return [np.asarray(part) for part in (result if isinstance(result, tuple) else (result,))]


def values_by_jax(program: Program) -> list[np.ndarray]:
    with jax.enable_x64(program.x64):
        function, args = program.build(jax, program.tiny)
        compiled = jax.jit(function).lower(*args).compile(compiler_options=UNOPTIMIZED)
        return arrays(jax, compiled(*arguments(jax, args)))


def shapes_by_jax(program: Program) -> list[jax.ShapeDtypeStruct]:
    with jax.enable_x64(program.x64):
        function, args = program.build(jax, program.tiny)
        return jax.tree_util.tree_leaves(jax.eval_shape(function, *args))


@pytest.mark.parametrize("program", programs(), ids=lambda program: program.name)
def test_a_program_runs_and_its_values_are_right(program: Program) -> None:
    ours = evaluated(program)
    if program.numpy:
        compare(replace(program, jax=False), ours, values_by_numpy(program))
    elif not is_compared_by_shape(program):
        compare(program, ours, values_by_jax(program))
    elif program.compiled:
        theirs = [(x.shape, x.dtype) for x in shapes_by_jax(program)]
        assert [(x.shape, x.dtype) for x in ours] == theirs
        assert all(np.isfinite(x).all() for x in ours)


def test_there_are_programs_of_every_group_and_every_shape() -> None:
    counts = {name: sum(p.group == name for p in PROGRAMS.values()) for name in ("loops", "models")}
    assert counts["loops"] >= 60
    assert counts["models"] >= 35
    sizes = {"empty", "one", "odd"}
    assert all(any(name.endswith(f"-{size}") for name in PROGRAMS) for size in sizes)


@pytest.mark.parametrize("module", [program_module, report_module])
def test_the_examples_of_the_harness_run(module: ModuleType) -> None:
    assert doctest.testmod(module).attempted >= 1
    assert doctest.testmod(module).failed == 0


def program_of(make: object, **options: object) -> Program:
    group = Group("g", goal=1.0)
    group.add("p", make, 3, 2, **options)
    return group.programs["p"]


@pytest.mark.parametrize(
    ("ours", "message"),
    [
        (np.float32([1, 2.1]), "result 0 differs by 0.05 of the largest value"),
        (np.float32([1, np.nan]), "result 0 differs by nan of the largest value"),
        (np.float64([1, 2]), r"result 0 is float64\[2\] instead of float32\[2\]"),
        (np.float32([1]), r"result 0 is float32\[1\] instead of float32\[2\]"),
    ],
)
def test_a_wrong_value_fails_the_row(ours: np.ndarray, message: str) -> None:
    program = program_of(lambda library, n: None)
    with pytest.raises(WrongValue, match=message):
        compare(program, [ours], [np.float32([1, 2])])


def test_values_within_the_tolerance_of_the_dtype_are_right() -> None:
    program = program_of(lambda library, n: None)
    close = np.float32([1, np.nan, np.inf, 2 + 1e-6])
    assert 0 < compare(program, [close], [np.float32([1, np.nan, np.inf, 2])]) < 1e-6
    with pytest.raises(WrongValue, match="2 results instead of 1"):
        compare(program, [close, close], [close])
    with pytest.raises(WrongValue, match="differs"):
        compare(program, [np.int32([5])], [np.int32([6])])


def test_a_name_is_given_once() -> None:
    group = Group("g", goal=1.0)
    group.add("p", lambda library, n: None, {"a": 1, "b": 2}, 1, cold=True)
    assert [(p.name, p.cold) for p in group.programs.values()] == [("p-a", True), ("p-b", False)]
    with pytest.raises(ValueError, match="two programs are named p-a"):
        group.add("p", lambda library, n: None, {"a": 1}, 1)


def test_a_worker_tells_errors_and_begins_again_after_its_end() -> None:
    worker = Worker("axir", timeout=60)
    try:
        with pytest.raises(WorkerError, match="KeyError: 'no such program'"):
            worker.ask("prepare", "no such program")
        told = worker.ask("prepare", "eager-add")
        assert told.repeats >= 1
        np.testing.assert_array_equal(told.values[0], np.linspace(0.1, 1, 8, dtype="f4") * 2)
        worker._process.kill()
        with pytest.raises(WorkerError, match=r"the process of axir ended with code -9"):
            worker.ask("time", 1)
        assert worker.ask("drop") > 0
    finally:
        worker.close()


def run_of(**ratios: float | None) -> Run:
    rows = [
        Row(name, "kernels", 1.2, "jax", {"axir": 1e-3, "jax": 1e-3}, ratio, failure=None)
        for name, ratio in ratios.items()
    ]
    return Run(describe_machine(), rows)


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    run = run_of(a=0.5, b=2.0, c=None)
    run.write(tmp_path / "run.json")
    read = Run.read(tmp_path / "run.json")
    assert read == run
    assert [row.is_over for row in read.rows] == [False, True, False]


def test_changes_are_told_from_the_worst_to_the_best() -> None:
    before, after = run_of(a=1.0, b=1.0, c=1.0, old=1.0), run_of(a=0.5, b=3.0, c=None, new=1.0)
    found = [(change.name, change.factor) for change in history.changes(before, after)]
    assert found == [("c", float("inf")), ("b", 3.0), ("a", 0.5)]


def test_kept_runs_stand_in_the_order_of_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "HISTORY", tmp_path)
    for date, commit in (("2031-02-01", "aaa"), ("2031-01-01", "bbb-changed")):
        run = run_of(a=1.0)
        run.machine.update(date=f"{date}T10:00:00+00:00", commit=commit)
        run.write(history.file_of(run))
    version = axir.__version__
    assert [path.name for path in history.kept_runs()] == [
        f"{version}_2031-01-01_bbb-changed.json",
        f"{version}_2031-02-01_aaa.json",
    ]


def test_the_command_compares_two_runs(tmp_path: Path) -> None:
    files = [tmp_path / "old.json", tmp_path / "new.json"]
    for file, run in zip(files, (run_of(a=1.0, b=1.0), run_of(a=1.1, b=2.0)), strict=True):
        run.write(file)
    command = [sys.executable, ROOT / "benchmarks", "--compare", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert "1 of 2 programs became slower" in done.stdout
    assert "0 of 2 programs became faster" in done.stdout


def test_the_picture_is_drawn(tmp_path: Path) -> None:
    draw(run_of(a=0.5, b=2.0, c=None), tmp_path / "ratios.png")
    assert (tmp_path / "ratios.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("seconds", "words"), [(2.5, "2.5 s"), (1.234e-3, "1.23 ms"), (4e-9, "4 ns"), (None, "-")]
)
def test_times_have_units(seconds: float | None, words: str) -> None:
    assert in_words(seconds) == words
