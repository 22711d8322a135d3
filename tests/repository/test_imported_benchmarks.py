"""The benchmark of models of PyTorch and ONNX: figures, their page, and each model's values."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import axir
from benchmarks.imported import __main__ as benchmark
from benchmarks.imported.page import write_page
from benchmarks.imported.rows import Row, Timing, mean_ratio, read, write

ROOT = Path(__file__).parents[2]
needs_torch = pytest.mark.skipif(bool(benchmark._missing()), reason="needs torch, onnxruntime")


def timing(median: float, processor: float = 1.0) -> Timing:
    return Timing(median, median / 2, 2 * median, processor, 0.0, 0.5, 1e-7)


def row(model: str, batch: int, **medians: float) -> Row:
    made = {"imported": 2.0, "bytes of C++": 90_000}
    return Row(model, batch, 1, {way: timing(t) for way, t in medians.items()}, {}, made, 0.25)


def test_ratios_are_to_the_fastest_of_the_others() -> None:
    found = row("mlp", 1, eager=4.0, compiled=3.0, onnxruntime=2.0, axir=1.0)
    assert found.ratio("axir") == 0.5
    assert found.ratio("cpp") is None
    assert row("mlp", 1, axir=1.0).ratio("axir") is None
    rows = [found, row("mlp", 8, onnxruntime=1.0, axir=2.0), row("mlp", 64, axir=1.0)]
    assert mean_ratio(rows, "axir") == pytest.approx(1.0)
    assert mean_ratio(rows, "cpp") is None


def test_figures_are_read_as_written_and_shown(tmp_path: Path) -> None:
    rows = [row("mlp", 1, eager=0.004, axir=0.001), row("mlp", 8, eager=0.004, axir=0.008)]
    rows[0].failures["cpp"] = "differs by 1 of the largest value"
    machine = {"cores": 2, "cpu": "CPU", "date": "2026-01-01", "commit": "c", "python": "3"}
    write(tmp_path / "figures.json", machine, rows)
    assert read(tmp_path / "figures.json") == (machine, rows)
    write_page(tmp_path / "page.md", machine, rows)
    lines = (tmp_path / "page.md").read_text().splitlines()
    assert "| mlp | 4 (8) |  |  | 1 (2) | failed | 0.25 | 0.25 | 1.00 |  |  |  | 1e-07 |" in lines
    assert "| 8 | 1 | 1 | 2.00 | 2.00 | 1.00 |  |  |  |" in lines


def test_the_page_shows_the_figures_that_are_kept(tmp_path: Path) -> None:
    write_page(tmp_path / "page.md", *read(benchmark.FILE))
    assert (tmp_path / "page.md").read_text() == benchmark.PAGE.read_text()


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(benchmark, "_NEEDED", ("no_such_package",))
    monkeypatch.setattr(sys, "argv", ["benchmark"])
    benchmark.main()
    assert "not run: no_such_package not found." in capsys.readouterr().err


def test_unknown_models_are_refused() -> None:
    command = [sys.executable, "-m", "benchmarks.imported", "no-such-model"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if benchmark._missing():
        assert "not run" in done.stderr
    else:
        assert done.returncode == 2
        assert "no model is named no-such-model" in done.stderr


@needs_torch
@pytest.mark.filterwarnings("ignore:The tensor attributes:UserWarning")  # an LSTM's, of PyTorch's
@pytest.mark.parametrize("name", benchmark.TORCH_MODELS)
def test_models_of_pytorch_have_its_values(name: str) -> None:
    import torch

    from benchmarks.imported.torch_models import MODELS

    module, tensors = MODELS[name].seeded(), MODELS[name].arguments(2)
    with torch.no_grad():
        results = module(*tensors)
    imported = axir.export.from_torch(torch.export.export(module, tensors))
    with axir.enable_x64(True):
        got = imported(*(tensor.numpy() for tensor in tensors))
    for ours, theirs in zip(
        axir.tree.leaves(got), axir.tree.leaves(results, is_leaf=torch.is_tensor), strict=True
    ):
        largest = theirs.abs().max().item()
        np.testing.assert_allclose(np.asarray(ours), theirs.numpy(), rtol=0, atol=1e-4 * largest)


@needs_torch
@pytest.mark.parametrize("name", benchmark.ONNX_MODELS)
def test_models_of_onnx_have_the_values_of_its_runtime(name: str, tmp_path: Path) -> None:
    import onnxruntime

    from benchmarks.imported import onnx_models

    path = tmp_path / "model.onnx"
    x = onnx_models.write(name, 2, path)
    [theirs] = onnxruntime.InferenceSession(path).run(None, {"x": x})
    ours = np.asarray(axir.export.from_onnx(path)(x))
    largest = float(np.abs(theirs).max())
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-4 * largest)
