"""The C++ side in CMake projects: built, tested, installed, found, and with models."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from axir.export import load

ROOT = Path(__file__).parents[3]
CORPUS = ROOT / "tests" / "frontend" / "_bundles" / "corpus"
BESIDE_PYTHON = Path(sys.executable).parent
AXIR = f"-DAXIR_EXECUTABLE={BESIDE_PYTHON / 'axir'}"


def start(tool: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    program = shutil.which(tool, path=f"{BESIDE_PYTHON}{os.pathsep}{os.environ['PATH']}")
    assert program, f"{tool} is missing: pip install cmake"
    return subprocess.run([program, *words], capture_output=True, text=True, check=False)


def run(tool: str, *words: str | Path) -> str:
    done = start(tool, *words)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("build")
    options = ("-DAXIR_BUILD_EXAMPLES=OFF", AXIR)
    run("cmake", "-S", ROOT, "-B", folder, *options)
    run("cmake", "--build", folder)
    return folder


def test_the_tests_in_cpp_and_c_pass(build: Path) -> None:
    told = run("ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error")
    sources = (ROOT / "tests" / "runtime" / "cpp" / "programs").glob("*.c*")
    assert re.search(rf"100% tests passed.* out of {len(list(sources))}\n", told)


def test_a_program_in_c_gets_the_results_of_python(build: Path) -> None:
    program = build / "tests" / "runtime" / "cpp" / "programs" / "test_c_interface"
    found = np.array(run(str(program)).split(), np.float32).reshape(4, 3)
    x = (np.arange(24, dtype=np.float32).reshape(4, 6) % 7 - 3) / 4
    wanted = load(CORPUS / "v1-classifier.axir")["predict"].call(x)
    np.testing.assert_allclose(found, wanted["scores"], rtol=1e-6, atol=1e-6)


def told_by_script(tmp_path: Path, line: str, *options: str) -> str:
    script = tmp_path / "script.cmake"
    script.write_text(f"include({ROOT}/runtime/cpp/cmake/AxirAddModel.cmake)\n{line}\n")
    done = start("cmake", *options, "-P", script)
    assert done.returncode
    return " ".join(done.stderr.split())


def test_an_option_that_does_not_exist_is_named(tmp_path: Path) -> None:
    told = told_by_script(tmp_path, "axir_add_model(m m.axir CPU host)", AXIR)
    assert (
        "axir_add_model(m): cannot understand CPU;host; the options are NAME;TARGET_TRIPLE" in told
    )


def test_without_axir_the_way_out_is_told(tmp_path: Path) -> None:
    missing = "-DAXIR_EXECUTABLE=AXIR_EXECUTABLE-NOTFOUND"
    options = (missing, "-DCMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH=OFF")
    hide = "set(ENV{VIRTUAL_ENV} /nowhere)\nset(CMAKE_PROGRAM_PATH /nowhere)\n"
    told = told_by_script(tmp_path, hide + "axir_add_model(m m.axir)", *options)
    assert "axir_add_model(m): there is no program axir on PATH. Install it (pip install" in told


def test_a_model_that_cannot_be_written_ends_the_build(tmp_path: Path) -> None:
    (tmp_path / "m.axir").write_bytes((CORPUS / "v1-classifier.axir").read_bytes()[:1000])
    script = ROOT / "runtime" / "cpp" / "cmake" / "AxirWriteModel.cmake"
    values = {"AXIR": BESIDE_PYTHON / "axir", "FILE": tmp_path / "m.axir", "DATA": tmp_path}
    values["PATH"] = tmp_path / "m_cpp" / "m"
    done = start("cmake", *(f"-D{name}={value}" for name, value in values.items()), "-P", script)
    assert done.returncode
    assert f"axir cannot write {tmp_path / 'm.axir'} as C++:" in " ".join(done.stderr.split())
    assert not (tmp_path / "m_cpp").exists()
