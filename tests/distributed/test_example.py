"""The example at scale and the script of the page: the same losses wherever they are computed."""

from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from support.jobs import ENVIRONMENT, ROOT, job, needs_mpi

EXAMPLE = ROOT / "examples" / "distributed.py"
PAGE = ROOT / "docs" / "distributed.md"


def losses(said: str) -> np.ndarray:
    found = re.search(r"^losses (.+)$", said, re.MULTILINE)
    assert found is not None, said
    return np.array([float(word) for word in found[1].split()])


def run(devices: int) -> str:
    """Runs the example in one process."""
    return subprocess.run(
        [sys.executable, EXAMPLE, "--steps", "6"],
        cwd=ROOT,
        env={**ENVIRONMENT, "JAX_NUM_CPU_DEVICES": str(devices), "AXIR_OPT_LEVEL": "0"},
        capture_output=True,
        text=True,
        timeout=280,
    ).stdout


@needs_mpi
def test_losses_are_those_of_one_device() -> None:
    with ThreadPoolExecutor(3) as pool:
        processes = pool.submit(
            job, "mpi", EXAMPLE, "--steps", "6", variables={"AXIR_OPT_LEVEL": "0"}
        )
        alone, four = pool.map(run, (1, 4))
        codes, two = processes.result()
    assert codes == [0], two
    assert "4 devices in 1 processes, as {'data': 2, 'model': 2}" in four
    assert "2 devices in 2 processes, as {'data': 2, 'model': 1}" in two
    assert losses(alone)[-1] < losses(alone)[0]
    for other in (four, two):
        np.testing.assert_allclose(losses(other), losses(alone), rtol=1e-4)
        first = float(re.search(r"shard_map (\S+)", other)[1])
        np.testing.assert_allclose(first, losses(alone)[0], rtol=1e-5)


@needs_mpi
def test_the_script_of_the_page_runs(tmp_path: Path) -> None:
    text = PAGE.read_text()
    script = re.search(r"```python\n# train.py\n(.*?)```", text, re.DOTALL)
    shown = re.search(r"\$ mpirun -n 2 python train.py\n(.*?)\n```", text, re.DOTALL)
    assert script is not None
    assert shown is not None
    (tmp_path / "train.py").write_text(script[1])
    codes, said = job("mpi", tmp_path / "train.py")
    assert codes == [0], said
    assert shown[1] in said
