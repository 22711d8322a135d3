"""The benchmarks for GPUs run, in a tiny form, and say what they measured."""

from __future__ import annotations

import pytest

from axir.runtime import Device
from benchmarks import gpu as benchmarks


def test_programs_are_measured(gpu: Device, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["copy", "sum_of_columns"]
    arguments = [*names, "--platform", gpu.platform, "--tiny", "--rounds", "2"]
    assert benchmarks.main(arguments) == 0
    printed = capsys.readouterr().out
    assert gpu.device_kind.split()[0] in printed
    for name in names:
        assert name in printed


def test_rooflines_are_those_of_the_fastest_program_of_a_type() -> None:
    rows = [
        benchmarks.Row("copy", 1.0, None, 100, 0.0),
        benchmarks.Row("product_f32", 2.0, None, 30, 1000.0),
        benchmarks.Row("training_step", 4.0, None, 30, 1000.0),
        benchmarks.Row("product_f16", 1.0, None, 15, 1000.0),
    ]
    least = benchmarks.rooflines(rows)
    assert least == {"copy": 1.0, "product_f32": 2.0, "training_step": 2.0, "product_f16": 1.0}


def test_what_cannot_be_measured_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        benchmarks.main(["no-such-program"])
    assert "no program is named no-such-program" in capsys.readouterr().err


def test_without_a_gpu_the_reason_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def none(platform: str) -> list[Device]:
        raise benchmarks.DeviceNotFoundError(f"There is no {platform} device here.")

    monkeypatch.setattr(benchmarks.axir, "devices", none)
    assert benchmarks.main([]) == 1
    printed = capsys.readouterr().err
    assert "no cuda device" in printed
    assert "no vulkan device" in printed
