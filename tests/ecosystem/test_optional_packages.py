"""Uses of optional packages: absl's flags, tensorstore's files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PYTHON = os.environ.get("ECOSYSTEM_PYTHON", sys.executable)
FLAGS = """
import axir
from absl import app
axir.config.{how}()
def main(argv):
    options = axir.config
    print(argv[1:], options.jax_enable_x64, options.axir_opt_level, options.jax_dump_ir_to)
app.run(main)
"""
CHECKPOINTS = """
import sys, axir, axir.numpy as jnp
from axir.experimental.array_serialization.serialization import GlobalAsyncCheckpointManager
manager, written = GlobalAsyncCheckpointManager(), []
arrays = [jnp.arange(4.0), jnp.ones((2, 2), jnp.bfloat16)]
paths = [sys.argv[1] + "/a", sys.argv[1] + "/b"]
manager.serialize_with_paths(arrays, paths, on_commit_callback=lambda: written.append(1))
manager.wait_until_finished()
places = axir.devices()[:1] * 2
same = manager.deserialize_with_paths(places, paths)
assert [x.dtype for x in same] == [x.dtype for x in arrays] and written == [1]
layout = {"global_shapes": [(5,), (1, 3)], "dtypes": ["int32", "float32"]}
other = manager.deserialize_with_paths(places, paths, **layout)
print([x.tolist() for x in same], [x.tolist() for x in other])
manager.serialize_with_paths(arrays, ["/dev/null/a", "/dev/null/b"])
try:
    manager.wait_until_finished()
except ValueError as error:
    print("refused")
"""


def run(code: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [PYTHON, "-W", "ignore", "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if "ModuleNotFoundError" in done.stderr or "is not installed" in done.stderr:
        pytest.skip("absl or tensorstore is not installed here; make test-ecosystem installs them")
    return done


@pytest.mark.parametrize("how", ["config_with_absl", "parse_flags_with_absl"])
def test_options_are_flags_of_a_program_of_absl(how: str) -> None:
    words = ("--jax_enable_x64", "--axir_opt_level=1", "--jax_dump_ir_to=/tmp", "rest")
    done = run(FLAGS.replace("{how}", how), *words)
    assert done.stdout.strip() == "['rest'] True 1 /tmp", done.stderr
    wrong = run(FLAGS.replace("{how}", how), "--axir_opt_level=9")
    assert "--axir_opt_level=9 is not a legal value" in wrong.stderr.replace("'9'", "9")


def test_arrays_are_written_by_tensorstore_and_read_again(tmp_path: Path) -> None:
    done = run(CHECKPOINTS, tmp_path)
    values = "[[0.0, 1.0, 2.0, 3.0], [[1.0, 1.0], [1.0, 1.0]]]"
    fitted = "[[0, 1, 2, 3, 0], [[1.0, 1.0, 0.0]]]"
    assert done.stdout.splitlines() == [f"{values} {fitted}", "refused"], done.stderr
