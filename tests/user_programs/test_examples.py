"""The examples of `examples/`, each in a short form: a few steps, and a picture.

Functions run op by op, as compiling all of them takes longer than the rest; the two whose loops are
longest are compiled, and so is `private.py`, whose program once was one that IREE refuses.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType

import pytest

import axir

EXAMPLES = Path(__file__).parents[2] / "examples"
COMPILED = {"hmc", "private", "slingshot"}
# What `main` takes, where two steps are not short enough.
SHORT = {"transformer": {"steps": 1, "letters": 2}, "cartpole": {"steps": 1}}
# What a few steps make of each.
GOOD = {
    "cartpole": lambda length: 5 < length < 200,
    "convnet": lambda accuracy: 0 <= accuracy <= 1,
    "gaussian_process": lambda loss: loss < 100,
    "hmc": lambda rate: rate > 0.5,
    "maml": lambda error: error < 5,
    "neural_ode": lambda error: error < 10,
    "private": lambda accuracy: 0 <= accuracy <= 1,
    "slingshot": lambda distance: distance < 6,
    "transformer": lambda loss: loss < math.log(200) + 1,
    "vae": lambda loss: loss < 50,
}


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def _drawing_to_files() -> Iterator[None]:
    plt = pytest.importorskip("matplotlib.pyplot", reason="the extra `demo` is not installed")
    plt.switch_backend("Agg")
    plt.close("all")  # what other tests have left
    pytest.importorskip("sklearn", reason="the extra `demo` is not installed")
    yield
    assert not plt.get_fignums(), "an example left a figure open"


def test_every_example_has_a_test_and_a_place_on_the_page() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.py")} - {"digits", "distributed"}
    assert names == set(GOOD)
    page = (EXAMPLES.parent / "docs/examples.md").read_text()
    for name in names:
        assert f"](../examples/{name}.py)" in page
        assert f"](images/{name}.png)" in page
        assert (EXAMPLES.parent / f"docs/images/{name}.png").stat().st_size < 60_000


@pytest.mark.parametrize("name", sorted(GOOD))
def test_example(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "picture.png"
    with nullcontext() if name in COMPILED else axir.disable_jit():
        result = load(name).main(**{"steps": 2, **SHORT.get(name, {})}, out=picture)
    assert GOOD[name](result), result
    assert picture.stat().st_size > 5_000
    assert "100%" in capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(GOOD))
def test_example_says_what_one_learns(name: str) -> None:
    head, _, rest = (EXAMPLES / f"{name}.py").read_text().partition('"""\n\n')
    assert "You learn:" in head
    assert f"python examples/{name}.py" in head
    assert len(rest.splitlines()) < 125
