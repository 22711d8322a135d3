"""Functions of any number of rows as single methods: results, padding, splitting, refusals."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from support import cpp_models

import axir.numpy as jnp
from axir.export import export, symbolic_args_specs

RNG = np.random.default_rng(0)
WEIGHTS = RNG.standard_normal((6, 3)).astype(np.float32)
COUNTS = (0, 1, 3, 16, 37)


def predict(w, x, scale, output):
    """The argument `output` has the name of a local variable in the model's code."""
    scores = jnp.tanh(x @ w) * scale + output[:, None]
    return {"scores": scores, "label": scores.argmax(-1), "twice": scale * 2}


def count_calls(calls, w, x):
    return calls + 1, x @ w


PROGRAM = """
#include "rows.hpp"
#include "rows.h"
#include <cstdio>
#include <cstdlib>
#include <new>
#include <vector>

static long allocations = 0;
void* operator new(std::size_t size) { ++allocations; return std::malloc(size); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void* operator new(std::size_t size, std::align_val_t a, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::aligned_alloc(static_cast<std::size_t>(a), (size + 63) / 64 * 64);
}
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }

using Bias = axir::View<const float, axir::dynamic_extent>;
using Images = axir::View<const float, axir::dynamic_extent, 6>;

template <class View> void append(std::FILE* file, const View& view) {
  std::fwrite(view.data(), sizeof(*view.data()), view.size(), file);
}

int main() {
  rows::Model model;
  rows_model* c_model = nullptr;
  if (rows_create(nullptr, &c_model, nullptr, 0)) return 1;
  std::vector<float> data(7 * 37);
  std::FILE* input = std::fopen("input", "rb");
  if (std::fread(data.data(), 4, data.size(), input) != data.size()) return 1;
  std::fclose(input);
  const float* const bias = data.data() + 6 * 37;
  std::FILE* output = std::fopen("output", "wb");
  std::vector<float> scores(3 * 37);
  std::vector<std::int32_t> labels(37);
  float twice = 0;
  const rows::PredictOutput mine{{labels.data(), 37}, {scores.data(), 37},
                                 axir::View<float>(&twice)};
  long steady = 0;
  for (int pass = 0; pass < 3; ++pass) {
    const long before = allocations;
    for (std::size_t count : {0, 1, 3, 16, 37}) {
      const Images x(data.data(), count);
      const auto result = model.predict(x, 3.0f, Bias(bias, count));
      if (result.scores.rows() != count || result.label.size() != count) return 2;
      if (rows_predict(c_model, count, x.data(), &result.twice[0], bias, labels.data(),
                       scores.data(), &twice)) return 3;
      for (std::size_t row = 0; row < count; ++row) {
        if (result.label[row] != labels[row]) return 4;
        if (result.scores(row, 2) == scores[3 * row + 2]) return 5;  // of another scale
      }
      if (pass == 0) {
        append(output, result.label);
        append(output, result.scores);
        append(output, result.twice);
      }
    }
    model.predict(Images(data.data(), 37), 3.0f, Bias(bias, 37), mine);
    steady = allocations - before;
  }
  append(output, mine.scores);
  std::fclose(output);
  std::printf("%ld allocations\\n", steady);
  const auto fails = [&](auto call) {
    try { call(); } catch (const axir::Error& error) {
      std::printf("%d %s\\n", int(error.code()), error.what());
    }
  };
  fails([&] { model.predict(std::vector<float>(13), 1.0f, Bias(bias, 2)); });
  fails([&] { model.predict(std::vector<float>(12), 1.0f, Bias(bias, 3)); });
  fails([&] { model.predict(Images(nullptr, 2), 1.0f, Bias(bias, 2)); });
  fails([&] { model.predict(Images(data.data(), 2), 1.0f, Bias(bias, 2), mine); });
  fails([&] {
    model.predict(Images(data.data(), 37), 1.0f, Bias(bias, 37),
                  {mine.label, {data.data() + 5, 37}, mine.twice});
  });
  const int code = rows_predict(c_model, 1, nullptr, &twice, bias, labels.data(), scores.data(),
                                &twice);
  std::printf("%d %s\\n", code, rows_message(c_model));
  rows_destroy(c_model);
  model.count(Images(data.data(), 37));
  model.count(std::array<float, 12>{});
  std::printf("%d\\n", int(model.calls()[0]));
  return 0;
}
"""


@pytest.fixture(scope="module")
def bundle():
    like = (jnp.ones((1, 6)), jnp.float32(1), jnp.ones(1))
    arguments = symbolic_args_specs(like, ("b, ...", None, "b"))
    count = functools.partial(count_calls, jnp.int32(0), WEIGHTS)
    functions = {"predict": functools.partial(predict, WEIGHTS), "count": count}
    exporter = export(functions, updates={"count": {"calls": "result[0]"}})
    made = exporter(predict=arguments, count=arguments[:1])
    return {name: each.with_rows(1, 4, 16) for name, each in made.items()}


def test_one_method_takes_any_number_of_rows(bundle, tmp_path: Path) -> None:
    emitted = cpp_models.emit(bundle, tmp_path, "rows")
    x = RNG.standard_normal((37, 6)).astype(np.float32)
    bias = RNG.standard_normal(37).astype(np.float32)
    (tmp_path / "input").write_bytes(x.tobytes() + bias.tobytes())
    program = cpp_models.build(emitted.folder, "program", PROGRAM)
    assert cpp_models.run(program).splitlines() == [
        "0 allocations",
        "1 predict: 'x' has 13 elements, must have a multiple of 6",
        "1 predict: the dimension b differs: 'x' has 2, 'output_' has 3",
        "1 predict: 'x' is a null pointer",
        "1 predict: the dimension b differs: 'x' has 2, 'label' has 37",
        "1 predict: the result 'scores' lies in the memory of the argument 'x'",
        "1 predict: 'x' is a null pointer",
        "2",  # one call counts once, also if it is split
    ]
    wanted = b""
    for count in COUNTS:
        found = bundle["predict"](x[:count], np.float32(3), bias[:count])
        wanted += b"".join(np.asarray(found[key]).tobytes() for key in ("label", "scores", "twice"))
    wanted += np.asarray(found["scores"]).tobytes()
    assert (tmp_path / "output").read_bytes() == wanted


def test_the_example_and_the_header_say_it(bundle, tmp_path: Path) -> None:
    emitted = cpp_models.emit(bundle, tmp_path, "rows", throws=False)
    header = (emitted.folder / "rows.hpp").read_text()
    assert "  /// Takes any number b of rows; there are programs for 1, 4, 16.\n" in header
    assert "  axir::v3::View<const float, axir::v3::dynamic_extent, 3> scores;  ///< " in header
    assert "int rows_predict(rows_model* model,\n" in (emitted.folder / "rows.h").read_text()
    cpp_models.check_syntax(emitted.folder / "example.cpp", emitted.folder)
