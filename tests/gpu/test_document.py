"""The first example of docs/gpus.md runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

import axir
from axir.runtime import Device

PAGE = Path(__file__).parents[2] / "docs" / "gpus.md"


def test_the_example_runs(gpu: Device) -> None:
    example = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]
    names = {"axir": axir, "numpy": np, "step": lambda x: 2 * x, "x": np.ones(3, np.float32)}
    exec(example.replace('"vulkan"', repr(gpu.platform)), names)
    assert names["y"].devices() == names["z"].devices() == {gpu}
    np.testing.assert_array_equal(names["z"], [3, 3, 3])
