"""Models describe themselves and report to a profiler; models of two versions in one program."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import subprocess
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from support import cpp_models

import axir
import axir.numpy as jnp
from axir._cpp.writing import CppOptions, write_cpp
from axir.export import export, symbolic_args_specs, to_cpp
from axir.runtime.compiler.architectures import host_architecture
from axir.runtime.cpp.emitting.names import RUNTIME_VERSION

# The digest of the headers without comments. Programs may contain models of several versions of
# axir, so equal names must have equal code. If a change follows a release, raise RUNTIME_VERSION
# and rename the folder and the namespace; otherwise write the new digest here.
FINGERPRINT = "67acd5a84c9e5b2c"
HEADERS = Path(axir.runtime.__file__).parent / "cpp" / "include" / "axir"
OTHER = f"v{RUNTIME_VERSION + 96}"
W = np.random.default_rng(0).standard_normal((6, 6)).astype(np.float32)
X = np.linspace(-1, 1, 18, dtype=np.float32).reshape(3, 6)


def twice(x):
    return np.asarray(x) * 2


def predict(params, x):
    return {"scores": jnp.tanh(x @ params["w"]), "total": x.sum(-1)}


def attend(x):
    return jnp.exp(x @ x.T) @ x


def ask(moment, y):
    kind = axir.ShapeDtypeStruct(moment.shape, moment.dtype)
    return axir.pure_callback(twice, kind, moment @ moment) + 1, y


def step(held, rate):
    return held * rate.astype(held.dtype), {}


PROGRAM = """
#include "first.hpp"
#include "first.h"
#include "second.hpp"
#include <axir/axir.hpp>
#include <cstdio>
#include <vector>

static void print(const char* title, axir::OWN::List<axir::OWN::ArrayDescription> arrays) {
  for (const auto& x : arrays) {
    std::printf("%s %s|%s|%s|%zu|", title, x.name, x.label, x.dtype, x.item_size);
    for (const std::size_t extent : x.shape) {
      std::printf(extent == axir::OWN::dynamic_extent ? "?," : "%zu,", extent);
    }
    std::printf("%s\\n", x.is_overwritten ? "overwritten" : "");
  }
}

static std::vector<std::string> told;
static void tell(void*, int part, bool is_end, const char* name, const char*, std::int64_t) {
  told.push_back(std::to_string(part) + (is_end ? "]" : "[") + name);
}

int main() {
  const axir::OWN::ModelDescription& found = first::description();
  std::printf("model %s %s %s %d\\n", found.name, found.axir_version, found.iree_version,
              found.runtime_version);
  for (const auto& method : found.methods) {
    std::printf("method %s %s '%s'", method.name, method.label, method.rows);
    for (const std::size_t count : method.row_counts) std::printf(" %zu", count);
    for (const auto& size : method.sizes) std::printf(" %s=%zu", size.name, size.size);
    std::printf("\\n");
    print("argument", method.arguments);
    print("result", method.results);
  }
  print("parameter", found.parameters);
  print("state", found.state);
  for (const auto& cpu : found.cpus) std::printf("cpu %s|%s\\n", cpu.name, cpu.features);
  std::printf("found %d %d\\n", found.find("ask") == &found.methods[2], found.find("?") == nullptr);
  std::printf("json %s\\n", first_description());

  first::Callbacks callbacks;
  callbacks.twice = [](auto x, auto y) {
    for (std::size_t n = 0; n < x.size(); ++n) y[n] = 2 * x[n];
  };
  axir::OWN::Options options;
  long depth = 0, events = 0;
  options.profiler = [&](const axir::OWN::Event& event) {
    depth += event.is_end ? -1 : 1;
    ++events;
    std::printf("event %ld %d %d %s|%s|%d\\n", depth, static_cast<int>(event.part), event.is_end,
                event.name, event.where, event.nanoseconds >= 0);
  };
  first::Model model(callbacks, options);
  std::vector<float> x(18), square(36, 0.5f);
  for (std::size_t n = 0; n < 18; ++n) x[n] = -1 + 2 * static_cast<float>(n) / 17;
  const auto scores = model.predict(x).scores;
  for (const float score : scores) std::printf("score %.9g\\n", static_cast<double>(score));
  first::Model copy(model);
  float seed = 0;
  copy.ask(square, axir::OWN::View<float>(&seed));
  std::printf("depth %ld\\n", depth);
  copy.set_profiler({});
  const long before = events;
  copy.ask(square, axir::OWN::View<float>(&seed));
  std::printf("silent %d\\n", events == before);

  second::Model other;  // of another version of the headers
  const bool is_larger = sizeof(axir::OTHER::Options) > sizeof(axir::OWN::Options);
  std::printf("other %d %d", second::description().runtime_version, is_larger);
  for (const float value : other.attend(x).value) std::printf(" %.9g", static_cast<double>(value));
  std::printf("\\n");
  try {
    other.attend(std::vector<float>(3));
  } catch (const axir::OTHER::Error& error) {
    std::printf("error %s\\n", error.what());
  }

  first_model* c = nullptr;
  first_options choices{};
  choices.twice = [](void*, const float*, float*) {};
  char message[200];
  if (first_create(&choices, &c, message, sizeof message) != 0) return 1;
  first_set_profiler(c, tell, nullptr);
  float total[3], results[18];
  if (first_predict(c, 3, x.data(), results, total) != 0) return 2;
  first_set_profiler(c, nullptr, nullptr);
  if (first_predict(c, 3, x.data(), results, total) != 0) return 3;
  first_destroy(c);
  for (const std::string& text : told) std::printf("told %s\\n", text.c_str());
}
"""


def renamed(folder: Path) -> None:
    """Makes a model one of another version of the headers, with a larger `Options`."""
    own = f"v{RUNTIME_VERSION}"
    (folder / "include" / "axir" / own).rename(folder / "include" / "axir" / OTHER)
    for path in [*folder.rglob("*.hpp"), *folder.glob("*.cpp")]:
        text = re.sub(rf"\b{own}\b", OTHER, path.read_text())
        text = text.replace(f"VERSION {RUNTIME_VERSION}", f"VERSION {RUNTIME_VERSION + 96}")
        text = re.sub(rf'(3\.\d+\.\d+\w*", ){RUNTIME_VERSION},', rf"\g<1>{OTHER[1:]},", text)
        text = text.replace("struct Options {", "struct Options {\n  double newest[9] = {};")
        path.write_text(text)
        os.utime(path, (0, 0))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    first, second = tmp_path_factory.mktemp("first"), tmp_path_factory.mktemp("second")
    predicting = functools.partial(predict, {"w": jnp.asarray(W)})
    stepping = functools.partial(step, jnp.ones(2, jnp.bfloat16))
    write_cpp(
        {
            "predict": export(predicting)(*symbolic_args_specs((X,), "b, ...")).with_rows(1, 4),
            "attend_t3": export(attend)(X),
            "ask": export(axir.jit(ask, donate_argnums=1))(np.ones((6, 6), np.float32), X[0, 0]),
            "attend": export(attend)(*symbolic_args_specs((X,), "t, ...")).with_sizes(t=2),
            "step": export(stepping, updates={"held": "result[0]"})(np.float32(2)),
        },
        first,
        CppOptions(name="first", target_cpu="x86-64" if host_architecture() == "x86_64" else None),
    )
    to_cpp(export(attend)(X), second, name="second", target_cpu="host")
    for path in (first / "include").rglob("*.hpp"):
        os.utime(path, (0, 0))  # as in an archive: compilers then merge equal files
    renamed(second)
    return first, second


@pytest.fixture(scope="module")
def objects(folders: tuple[Path, Path]) -> list[list[str]]:
    return [cpp_models.compile_model(folder) for folder in folders]


@pytest.fixture(scope="module")
def lines(folders: tuple[Path, Path], objects: list[list[str]], tmp_path_factory) -> list[str]:
    own = tmp_path_factory.mktemp("program")
    text = PROGRAM.replace("OWN", f"v{RUNTIME_VERSION}").replace("OTHER", OTHER)
    (own / "program.cpp").write_text(text)
    includes = [f"-I{path}" for folder in folders for path in (folder, folder / "include")]
    command = ["g++", "-std=c++17", *cpp_models.WARNINGS, *includes, str(own / "program.cpp")]
    command += [*objects[0], *objects[1], "-pthread", "-lm", "-o", str(own / "program")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    return cpp_models.run(own / "program").splitlines()


def told(lines: list[str], title: str) -> list[str]:
    return [line.removeprefix(f"{title} ") for line in lines if line.startswith(f"{title} ")]


def test_a_model_says_what_it_is(lines: list[str]) -> None:
    versions = metadata.version("axir"), metadata.version("iree-base-compiler")
    assert told(lines, "model") == [f"first {' '.join(versions)} {RUNTIME_VERSION}"]
    assert told(lines, "method") == [
        "predict predict 'b' 1 4",
        "attend_t3 attend ''",
        "ask ask ''",
        "attend_t2 attend '' t=2",
        "step step ''",
    ]
    assert told(lines, "argument") == [
        "x|x|float32|4|?,6,",
        "x|x|float32|4|3,6,",
        "moment|moment|float32|4|6,6,",
        "y|y|float32|4|overwritten",
        "x|x|float32|4|2,6,",
        "rate|rate|float32|4|",
    ]
    assert told(lines, "result")[:2] == [
        "scores|result['scores']|float32|4|?,6,",
        "total|result['total']|float32|4|?,",
    ]
    assert told(lines, "parameter") == ["params_w|params['w']|float32|4|6,6,"]
    assert told(lines, "state") == ["held|held|bfloat16|2|2,"]
    assert told(lines, "found") == ["1 1"]
    assert told(lines, "cpu")


def test_c_has_the_description_as_json(lines: list[str]) -> None:
    found = json.loads(told(lines, "json")[0])
    assert (found["name"], found["axir"], found["runtime"]) == (
        "first",
        metadata.version("axir"),
        RUNTIME_VERSION,
    )
    predict = found["methods"][0]
    assert predict["rows"] == {"b": [1, 4]}
    assert predict["arguments"][0] == {
        "name": "x",
        "label": "x",
        "dtype": "float32",
        "shape": ["b", 6],
    }
    assert found["methods"][2]["arguments"][1]["overwritten"]
    assert found["methods"][3]["sizes"] == {"t": 2}
    assert found["parameters"][0]["label"] == "params['w']"


def test_a_profiler_is_told_of_each_part_with_its_place(lines: list[str]) -> None:
    np.testing.assert_allclose(
        np.array(told(lines, "score"), np.float32).reshape(3, 6), np.tanh(X @ W), rtol=1e-5
    )
    events = [re.split(r"[ |]", text) for text in told(lines, "event")]
    kinds = [(depth, part, end) for depth, part, end, *_ in events]
    assert kinds[0] == ("1", "0", "0")
    assert all(is_counted == "1" for *_, is_counted in events)
    begun = [(part, name) for _, part, end, name, *_ in events if end == "0"]
    ended = [(part, name) for _, part, end, name, *_ in events if end == "1"]
    assert sorted(begun) == sorted(ended)
    assert begun[:2] == [("0", "predict"), ("1", "predict_of_4")]
    assert begun.count(("0", "ask")) == begun.count(("3", "twice")) == 1
    kernels = [text for text in events if text[1] == "2"]
    assert len(kernels) >= 4
    assert any(where.startswith(f"{Path(__file__).name}:") for _, _, _, _, where, _ in kernels)
    assert told(lines, "depth") == ["0"]
    assert told(lines, "silent") == ["1"]


def test_c_has_a_profiler_that_can_be_taken_away(lines: list[str]) -> None:
    found = told(lines, "told")
    assert [*found[:2], found[-1]] == ["0[predict", "1[predict_of_4", "0]predict"]
    assert len(found) == 2 * len([text for text in found if "[" in text])


def test_models_of_two_versions_live_in_one_program(lines: list[str]) -> None:
    version, is_larger, *values = told(lines, "other")[0].split()
    assert (version, is_larger) == (OTHER[1:], "1")
    wanted = np.exp(X @ X.T) @ X
    np.testing.assert_allclose(np.array(values, np.float32).reshape(3, 6), wanted, rtol=1e-5)
    assert told(lines, "error") == ["attend: 'x' has 3 elements, must have 18 (3 x 6)"]


def test_their_objects_have_no_symbol_in_common(objects: list[list[str]]) -> None:
    """So code compiled for one version never calls a function of the other."""
    found = []
    for files in objects:
        command = ["nm", "-C", "--defined-only", *files]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        names = [line.split(maxsplit=2)[-1] for line in done.stdout.splitlines() if " " in line]
        found.append({name for name in names if "axir::" in name})
    assert min(map(len, found)) > 50
    assert not found[0] & found[1]


def test_headers_are_in_the_namespace_of_their_version() -> None:
    text = b""
    for path in sorted((HEADERS / f"v{RUNTIME_VERSION}").glob("*.hpp")):
        content = re.sub(r"\s*//.*", "", path.read_text())
        assert f"inline namespace v{RUNTIME_VERSION} {{" in content, path.name
        text += content.encode()
    assert f"AXIR_RUNTIME_VERSION {RUNTIME_VERSION}\n" in (HEADERS / "axir.hpp").read_text()
    assert [path.name for path in HEADERS.glob("v*")] == [f"v{RUNTIME_VERSION}"]
    found = hashlib.sha256(text).hexdigest()[:16]
    assert found == FINGERPRINT, "the headers have changed: see above"
