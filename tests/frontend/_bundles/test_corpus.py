"""Bundles written by older versions stay readable, and compute the same results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.bundle_cases import CORPUS, cases, leaves

from axir._bundles.bundle import open_bundle
from axir._bundles.exported import Exported
from axir.dialect.core.array import ConcreteArray
from axir.runtime.spmd.placed_calls import device_of

FILES = sorted(CORPUS.glob("*.axir"))
TOLERANCES = {"f": 1e-4, "c": 1e-4}


def arguments_of(exported: Exported, name: str, saved: Any) -> list[ConcreteArray]:
    """Returns the arguments that were saved, of the dtypes that the function takes."""
    hosts = [saved[f"{name}/in{n}"] for n in range(len(exported.in_avals))]
    found = []
    for value, host, rows in zip(
        exported.signature.arguments,
        hosts,
        exported.batch.arguments if exported.batch else [False] * len(hosts),
        strict=True,
    ):
        shape = (len(host), *value.type.shape) if rows else value.type.shape
        found.append(ConcreteArray(value.type.update(shape=shape), host.astype(value.type.dtype)))
    return found


def check(results: list[Any], name: str, saved: Any) -> None:
    for number, found in enumerate(leaves(results)):
        expected = saved[f"{name}/out{number}"]
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        tolerance = TOLERANCES.get(found.dtype.kind, 0)
        if found.dtype == np.float16:
            tolerance = 2e-3
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_old_bundles_are_read_and_evaluated(path: Path) -> None:
    bundle = open_bundle(path)
    bundle.verify()
    with np.load(path.with_suffix(".npz"), allow_pickle=False) as saved:
        for name, exported in bundle.items():
            values = arguments_of(exported, name, saved)
            fixed = exported.of_rows(values[0].shape[0]) if exported.batch else exported
            check(fixed.function.evaluate(*values), name, saved)


def test_old_bundles_are_compiled_and_run() -> None:
    path = CORPUS / "v1-classifier.axir"
    with np.load(path.with_suffix(".npz"), allow_pickle=False) as saved:
        for name, exported in open_bundle(path).items():
            check(exported.run_flat(list(arguments_of(exported, name, saved))), name, saved)


def test_programs_of_another_compiler_are_made_again(monkeypatch: Any) -> None:
    path = CORPUS / "v1-classifier.axir"
    monkeypatch.setattr("axir._bundles.programs.metadata.version", lambda name: "0.0.1")
    exported = open_bundle(path)["predict"]
    with np.load(path.with_suffix(".npz"), allow_pickle=False) as saved:
        values = arguments_of(exported, "predict", saved)
        assert exported._programs is not None
        assert exported._programs.run("predict", 4, device_of(values), values) is None
        check(exported.run_flat(list(values)), "predict", saved)


def test_the_corpus_has_each_kind_of_bundle() -> None:
    names = {path.stem.partition("-")[2] for path in FILES}
    made = {case.name: case for case in cases()}
    assert names == set(made)
    for name, case in made.items():
        saved = open_bundle(CORPUS / f"v1-{name}.axir")
        assert saved.keys() == case.bundle.keys()
        assert [x.signature for x in saved.values()] == [x.signature for x in case.bundle.values()]
