"""Models for several CPUs, which choose one at run time, and for other architectures."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support import cpp_models
from support.cross_programs import TRIPLES, cross_compiler, emulator

import axir
import axir.numpy as jnp
from axir.dialect.core.errors import ParameterError
from axir.export import export, to_cpp
from axir.runtime import Target
from axir.runtime.compiler.architectures import host_architecture, lacking_features

RNG = np.random.default_rng(0)
W = jnp.array(RNG.standard_normal((40, 24)), jnp.float32)
X = RNG.standard_normal((7, 40)).astype(np.float32)
CPUS = ("x86-64", "x86-64-v3", "x86-64-v4")
# The features of each that the one before lacks; and CPUs of the emulator, with the best variant
# for each.
FEATURES = {"x86-64-v3": "+avx2,+fma", "x86-64-v4": "+avx512f"}
EMULATED = {"Nehalem": "x86-64", "Haswell": "x86-64-v3"}

WHICH = """
#include "model.hpp"
#include <cstdio>
#include <vector>
int main(int count, char** words) {
  try {
    axir::Options options;
    if (count > 1) options.target_cpu = words[1];
    model::Model model(options);
    model::Model copy(model);
    const std::vector<float> x(280, 0.125f);
    const auto result = copy.predict(x);
    const double score = result.scores(6, 2);
    std::printf("%s %s %.5f\\n", model.target_cpu(), copy.target_cpu(), score);
  } catch (const axir::Error& error) {
    std::printf("%d %s\\n", static_cast<int>(error.code()), error.what());
  }
}
"""


def predict(x: axir.Array) -> dict[str, axir.Array]:
    """Returns a product, and a sum of functions of single numbers."""
    return {"scores": jnp.tanh(x @ W), "total": jnp.sin(x * 100).sum()}


@pytest.fixture(scope="module")
def exported() -> axir.export.Exported:
    return export(predict)(X)


@pytest.fixture(scope="module")
def several(
    exported: axir.export.Exported, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    if host_architecture() != "x86_64":
        pytest.skip("the kernels are for levels of x86-64, and this machine is of another kind")
    folder = tmp_path_factory.mktemp("several")
    to_cpp(exported, folder)  # that is the default
    return folder, cpp_models.build(folder, "which", WHICH)


def words(program: Path, *arguments: str, emulated: str = "") -> str:
    command = [str(program), *arguments]
    if emulated:
        command = [str(shutil.which("qemu-x86_64")), "-cpu", emulated, *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def can_run(cpu: str) -> bool:
    return not lacking_features(FEATURES.get(cpu, ""))


def test_a_model_takes_the_best_kernels_that_the_cpu_can_run(several: tuple[Path, Path]) -> None:
    best = [cpu for cpu in CPUS if can_run(cpu)][-1]
    value = np.asarray(predict(jnp.full((7, 40), 0.125, jnp.float32))["scores"])[6, 2]
    assert words(several[1]) == f"{best} {best} {value:.5f}"


def test_each_kind_of_kernels_runs_by_its_name_or_says_what_it_needs(
    several: tuple[Path, Path],
) -> None:
    for cpu in CPUS:
        told = words(several[1], cpu)
        if can_run(cpu):
            assert told.startswith(f"{cpu} {cpu} "), told
        else:
            assert told.startswith(
                f"3 this CPU cannot run the model's kernels: those for {cpu} need "
            )
            assert told.endswith(", which it lacks. Compile the model for this CPU, too")
    assert words(several[1], "z80") == (
        "1 the model has no kernels for the CPU 'z80'; it has some for x86-64-v4, x86-64-v3, x86-64"
    )


@pytest.mark.skipif(
    not shutil.which("qemu-x86_64"), reason="qemu-x86_64 is missing (apt: qemu-user)"
)
def test_other_cpus_get_other_kernels(several: tuple[Path, Path]) -> None:
    taken = {cpu: words(several[1], emulated=cpu).split()[0] for cpu in EMULATED}
    assert taken == EMULATED
    assert words(several[1], "x86-64-v3", emulated="Nehalem") == (
        "3 this CPU cannot run the model's kernels: those for x86-64-v3 need avx avx2 fma f16c bmi "
        "bmi2 lzcnt movbe, which it lacks. Compile the model for this CPU, too"
    )


def test_a_folder_holds_the_files_of_its_cpus_alone(
    several: tuple[Path, Path], exported: axir.export.Exported, tmp_path: Path
) -> None:
    to_cpp(exported, tmp_path, target_cpu=("x86-64", "x86-64-v3"))
    assert len(list(tmp_path.glob("*_for_*"))) == 4
    to_cpp(exported, tmp_path, target_cpu="x86-64")
    names = sorted(path.name for path in tmp_path.glob("model*"))
    assert names == "model.cpp model.h model.hpp model_c.cpp model_data.cpp model_kernels.o".split()
    with pytest.raises(ParameterError, match="names no CPU"):
        to_cpp(exported, tmp_path, target_cpu=())


@pytest.mark.parametrize("architecture", ["aarch64", "riscv64"])
def test_a_model_for_another_architecture_gets_the_results_of_python(
    architecture: str, exported: axir.export.Exported, tmp_path: Path
) -> None:
    compiler, run = cross_compiler(architecture), emulator(architecture)
    if compiler is None:
        pytest.skip(f"there is no g++ for {architecture} (apt: g++-{architecture}-linux-gnu)")
    target = Target(cpu="generic", triple=TRIPLES[architecture])
    model = cpp_models.emit({"predict": exported}, tmp_path, "model", targets=[target])
    program = cpp_models.build(
        tmp_path, "driver", cpp_models.driver(model.interface), compiler=compiler
    )
    cpp_models.write_inputs(tmp_path, model.interface, {"predict": [X]})
    if run is None:
        pytest.skip(f"linked, not run: qemu-{architecture} is missing (apt: qemu-user)")
    subprocess.run([*run, str(program)], cwd=tmp_path, check=True)
    found = cpp_models.read_outputs(tmp_path, model.interface, "predict")
    wanted = axir.tree.leaves(predict(jnp.asarray(X)))
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, np.asarray(want), rtol=2e-6, atol=2e-6)
