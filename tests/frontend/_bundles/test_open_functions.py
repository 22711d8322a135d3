"""Functions with open dimensions of all kinds, saved, and run where their source is not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from support.open_functions import CASES, SIZES, OpenCase, arguments, sizes_of

import axir
import axir.lax
import axir.nn
import axir.numpy
import axir.ops
from axir._trees import tree
from axir.export import Bundle, SymbolicScope, export, load, symbolic_shape
from axir.runtime import Target

# The program that runs without the source: functions of `all.axir` for the arguments in
# `given.npz`.
ELSEWHERE = """
import sys, pathlib
import numpy as np
from axir.export import load
folder = pathlib.Path(sys.argv[1])
assert not any("tests" in path for path in sys.path)
bundle, given, results = load(folder / "all.axir"), np.load(folder / "given.npz"), {}
calls = {}
for key in given.files:
    name, number, place = key.split("/")
    calls.setdefault((name, number), {})[int(place)] = given[key]
for (name, number), values in calls.items():
    exported, values = bundle[name], [values[n] for n in sorted(values)]
    fixed = exported.function_of(exported.key_of(values))
    for place, x in enumerate(fixed.evaluate(*values)):
        results[f"{name}/{number}/{place}"] = np.asarray(x)
np.savez(folder / "results.npz", **results)
"""


def specs_of(found: OpenCase) -> tuple[axir.ShapeDtypeStruct, ...]:
    scope = SymbolicScope(found.constraints)
    return tuple(
        axir.ShapeDtypeStruct(symbolic_shape(text, scope=scope), found.dtype(number))
        for number, text in enumerate(found.shapes)
    )


def of_axir(found: OpenCase) -> Callable[..., Any]:
    return lambda *args: found.function(axir, *args)


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    functions = {name: of_axir(found) for name, found in CASES.items()}
    return export(functions)(**{name: specs_of(found) for name, found in CASES.items()})


@pytest.fixture(scope="module")
def elsewhere(
    bundle: Bundle, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, int], list[np.ndarray]]:
    """Results by function, and by the number of the pair of sizes."""
    folder = tmp_path_factory.mktemp("open")
    bundle.save(folder / "all.axir")
    given = {}
    for name, found in CASES.items():
        for number, pair in enumerate(SIZES):
            values = arguments(found, sizes_of(found, bundle[name].symbols, pair), number)
            for place, x in enumerate(values):
                given[f"{name}/{number}/{place}"] = x
    np.savez(folder / "given.npz", **given)
    subprocess.run([sys.executable, "-c", ELSEWHERE, str(folder)], check=True, cwd=folder)
    results: dict[tuple[str, int], list[np.ndarray]] = {}
    with np.load(folder / "results.npz") as stored:
        for key in stored.files:  # in the order in which they were written
            name, pair_number, _ = key.split("/")
            results.setdefault((name, int(pair_number)), []).append(stored[key])
    return results


def check(found: list[Any], wanted: Any, factor: float) -> None:
    leaves = tree.leaves(wanted)
    assert len(found) == len(leaves)
    for x, y in zip(map(np.asarray, found), map(np.asarray, leaves), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        scale = np.abs(y[np.isfinite(y)]).max(initial=1) if y.dtype == np.float32 else 1
        tolerance = factor * np.finfo(np.float32).eps if y.dtype == np.float32 else 0
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("name", CASES)
def test_sizes_from_1_to_1000_are_right_without_the_source(
    name: str, bundle: Bundle, elsewhere: dict[tuple[str, int], list[np.ndarray]]
) -> None:
    found = CASES[name]
    for number, pair in enumerate(SIZES):
        values = arguments(found, sizes_of(found, bundle[name].symbols, pair), number)
        wanted = of_axir(found)(*map(axir.numpy.asarray, values))
        check(elsewhere[name, number], wanted, found.factor)


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_jax(
    name: str, bundle: Bundle, elsewhere: dict[tuple[str, int], list[np.ndarray]]
) -> None:
    found, number = CASES[name], 3
    values = arguments(found, sizes_of(found, bundle[name].symbols, SIZES[number]), number)
    wanted = jax.jit(lambda *args: found.function(jax, *args))(*values)
    check(elsewhere[name, number], wanted, 8 * found.factor)


def test_no_function_is_one_of_rows_that_mixes_them(bundle: Bundle) -> None:
    assert [name for name, each in bundle.items() if each.batch is not None] == ["pooling"]


def test_programs_for_sizes_are_compiled_together(bundle: Bundle, tmp_path: Path) -> None:
    names = ["batch_norm", "reshape_flat", "masked_attention", "gradient_of_loss", "sorting"]
    names += ["scan_over_rows", "gathers", "even_columns", "extent_as_number"]
    some = Bundle({name: bundle[name] for name in names})
    sizes = dict.fromkeys("bthk", 6)
    made = some.with_sizes(**sizes).compile(Target(cpu="host"))
    made.save(tmp_path / "made.axir")
    loaded = load(tmp_path / "made.axir")
    for name in names:
        found = CASES[name]
        values = arguments(found, {n: sizes[n] for n in bundle[name].symbols})
        ran = tree.leaves(loaded[name](*values))
        check(ran, of_axir(found)(*map(axir.numpy.asarray, values)), 4 * found.factor)
