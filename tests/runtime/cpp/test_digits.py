"""The digits of `make demo` in C++: the demo's functions, with an untrained model."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import axir

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("digits_demo", ROOT / "examples" / "digits.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def images_and_labels() -> tuple[np.ndarray, np.ndarray]:
    images = np.random.default_rng(0).standard_normal((200, 64)).astype(np.float32)
    return images, np.zeros(200, int)


def test_predictions_are_those_of_python(demo: ModuleType, tmp_path: Path) -> None:
    test_set = images_and_labels()
    params = demo.init(axir.random.key(3))
    found = demo.ship_cpp(tmp_path, params, test_set)
    predict = axir.vmap(demo.predict, in_axes=(None, 0))
    wanted = np.asarray(predict(params, test_set[0])).argmax(1)
    assert len(set(wanted)) > 3
    np.testing.assert_array_equal(found, wanted)


def test_without_a_compiler_the_demo_says_so(
    demo: ModuleType, tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert demo.ship_cpp(tmp_path, demo.init(axir.random.key(3)), images_and_labels()) is None
    assert capsys.readouterr().out.splitlines()[-2:] == [
        f"No C++ compiler (no-such-compiler): {tmp_path / 'digits_cpp'} is written, not run.",
        "On Debian and Ubuntu: sudo apt install g++",
    ]
    assert (tmp_path / "digits_cpp" / "digits.hpp").exists()


def test_the_readme_shows_the_program() -> None:
    program = (ROOT / "examples" / "cpp" / "digits.cpp").read_text()
    assert f"```cpp\n{program}```\n" in (ROOT / "README.md").read_text()
