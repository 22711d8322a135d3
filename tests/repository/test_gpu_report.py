"""The report of a GPU is written even if its parts fail, and names the failures."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks.gpu_report import __main__ as report
from benchmarks.gpu_report import bundle, parts, run, text
from benchmarks.gpu_report.rows import Row
from benchmarks.gpu_report.running import run_part
from benchmarks.gpu_report.text import write_report
from benchmarks.gpu_report.timed import programs

# A part of stub items, as `worker.py` runs one: it goes on after those that were begun.
STUB = """
import pathlib, sys, time
from benchmarks.gpu_report.rows import Row, add_begun, add_end, add_rows, read_rows
path = pathlib.Path(sys.argv[1])
done = read_rows(path)[1]
def fail():
    print("a message of the driver", flush=True)
    import os, signal
    os.kill(os.getpid(), signal.SIGSEGV)
items = {
    "sin": lambda: [Row("sin", "right", "3 programs")],
    "cos": lambda: [Row("cos", "wrong", "1 of 4 differ; at (0,) 2.0, not 1.0")],
    "sort": lambda: time.sleep(60),
    "exp": fail,
    "log": lambda: [Row("log", "error", "CompileError: no")],
    "product f32 64": lambda: [Row("product f32 64", "measured", "", 1.0, {
        "in a row": 1e-6, "waited": 2e-6, "first": 1.0, "bytes": 49152.0, "operations": 524288.0})],
}
for name, run in items.items():
    if name not in done:
        add_begun(path, name)
        add_rows(path, run())
        add_end(path, name)
"""


def test_wrong_values_errors_crashes_and_hangs_are_listed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STUB, str(tmp_path / "times.rows")]
    rows = run_part(command, tmp_path / "times.rows", limit=30, patience=2)
    assert [(row.name, row.verdict) for row in rows] == [
        ("sin", "right"),
        ("cos", "wrong"),
        ("sort", "hang"),
        ("exp", "crash"),
        ("log", "error"),
        ("product f32 64", "measured"),
    ]
    write_report(tmp_path, {"times": rows}, list(parts.PARTS.values()))
    text = (tmp_path / "report.md").read_text()
    assert "## To mend: 4" in text
    assert "**wrong** cos (times): 1 of 4 differ; at (0,) 2.0, not 1.0" in text
    assert "**hang** sort (times): no answer within 2 s" in text
    assert "**crash** exp (times): SIGSEGV \\| a message of the driver" in text
    assert "| product f32 64 | 1.0 (2.0) |" in text
    assert text.index("**wrong**") < text.index("**crash**") < text.index("**error**")
    kept = json.loads((tmp_path / "report.json").read_text())
    assert kept["times"][1]["verdict"] == "wrong"


@pytest.mark.parametrize(
    "given", [["--out", "there"], ["--out=there"], ["ops-1", "--seconds", "9", "--out=there"]]
)
def test_the_folder_of_the_report_is_the_one_that_is_told(given: list[str]) -> None:
    made = run._arguments(given)
    assert made[-2:] == ["--out", str(Path("there").resolve())]
    assert made[:-2] == [word for word in given if word not in ("--out", "there", "--out=there")]
    assert run._arguments(["ops-1"])[1:] == ["--out", str(Path("gpu-report").resolve())]


def test_peaks_are_those_of_the_card_that_rows_name() -> None:
    other = Row("libraries", "told", "a wheel for the H100")
    for message, bandwidth in (("NVIDIA A100-SXM4-40GB", 2.0), ("cuda:0: NVIDIA H200; sm_90", 4.8)):
        found = {"machine": [other, Row("nvidia-smi", "told", message)]}
        assert (text._peak(found) or ())[-1:] == (bandwidth,)
        found = {"device": [other, Row("what it is", "told", message)]}
        assert (text._peak(found) or ())[-1:] == (bandwidth,)
    assert text._peak({"machine": [other]}) is None


def test_a_part_ends_with_its_time(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STUB, str(tmp_path / "rows")]
    rows = run_part(command, tmp_path / "rows", limit=1.5, patience=60)
    assert rows[-1].name == "sort"
    assert rows[-1].verdict == "not reached"
    assert rows[-1].message == "the part's 2 s are over"


def test_a_part_that_cannot_begin_is_tried_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "raise SystemExit('no driver')"]
    rows = run_part(command, tmp_path / "rows", limit=20, patience=10)
    assert [(row.name, row.verdict) for row in rows] == [("start", "crash")]
    assert rows[0].message == "exit code 1 | no driver"


def test_a_report_of_the_cpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["device", "--platform", "cpu", "--tiny", "--out", str(tmp_path)]
    assert report.main(arguments) == 0
    assert "The device: " in capsys.readouterr().out
    assert "cpu:0" in (tmp_path / "report.md").read_text()


def test_items_have_names_of_their_own() -> None:
    for part in parts.PARTS.values():
        names = [item.name for item in part.items(True)]
        assert len(names) == len(set(names)), part.name
    for is_tiny in (False, True):
        names = [program.name for program in programs(is_tiny)]
        assert len(names) == len(set(names))


def test_what_travels_is_the_source_as_it_is_installed() -> None:
    names = [name for _, name in bundle._sources()]
    assert {"axir/__init__.py", "axir/runtime/device/gpu_drivers.py"} <= set(names)
    assert {"benchmarks/gpu_report/worker.py", "tests/support/gpu_ops.py"} <= set(names)
    assert "benchmarks/ratios.png" not in names
    assert not [name for name in names if name.endswith(".pyc")]
