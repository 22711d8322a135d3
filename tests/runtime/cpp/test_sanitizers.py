"""A whole model under the sanitizers: control flow, callbacks, state, rows, threads, failures."""

from __future__ import annotations

import functools
import platform
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support import cpp_models

import axir
import axir.numpy as jnp
from axir import lax
from axir.export import export, symbolic_args_specs

RNG = np.random.default_rng(0)


def classify(w, x):
    return jnp.tanh(x @ w)


def step(table, i, row):
    """Changes the table in place; returns its old row."""
    return table.at[i].set(row), table[i]


def forget(table, rate):
    return table * rate, {}


def twice(x):
    return np.asarray(x) * 2


def loop(x, n):
    def body(carry):
        i, v = carry
        v = lax.cond(i % 2 == 0, lambda v: jnp.sort(v @ v, axis=0), lambda v: v + 1, v)
        return i + 1, axir.pure_callback(twice, axir.ShapeDtypeStruct(v.shape, v.dtype), v)

    return lax.while_loop(lambda c: c[0] < n, body, (0, x))


PROGRAM = """
#include "whole.hpp"
#include <atomic>
#include <cstdio>
#include <stdexcept>
#include <thread>
#include <vector>

int main() {
  whole::Callbacks callbacks;
  std::atomic<int> calls{0};
  callbacks.twice = [&](auto x, auto result) {
    if (x[0] < -1e6f) throw std::runtime_error("too small");
    for (std::size_t n = 0; n < x.size(); ++n) result[n] = x[n] * 2;
    ++calls;
  };
  axir::Options options;
  options.pool = std::make_shared<axir::ThreadPool>(3);
  whole::Model first(callbacks, options);
  std::vector<std::thread> threads;
  std::vector<float> sums(3);
  for (unsigned number = 0; number < 3; ++number) {
    threads.emplace_back([&, number] {
      whole::Model model(first);  // shares threads and parameters
      std::vector<float> x(37 * 300 + 1, 0.01f), square(48 * 48 + 1, 0.01f), row(8, 3.f);
      float sum = 0;
      for (int pass = 0; pass < 6; ++pass) {
        for (std::size_t rows : {0, 1, 5, 37}) {
          const axir::View<const float, axir::dynamic_extent, 300> some(x.data() + 1, rows);
          for (const float value : model.classify(some).value) sum += value;
        }
        const axir::View<const float, 48, 48> matrix(square.data() + 1);
        sum += model.loop(matrix, 3).value_1(47, 0);
        sum += model.step(pass, row).value[0];
        model.forget(0.5f);
        sum += model.product(x).value[17];
      }
      sums[number] = sum + model.table()[3];
      square[1] = -1e9f;
      try {
        model.loop(axir::View<const float, 48, 48>(square.data() + 1), 3);
      } catch (const std::runtime_error&) {
        ++calls;
      }
      try {
        model.step(0, std::vector<float>(7));
      } catch (const axir::Error& error) {
        if (error.code() == axir::Code::wrong_argument) ++calls;
      }
      const std::string path = "state" + std::to_string(number);
      model.save(path);
      whole::Model(first).load(path);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("%d %d\\n", sums[0] == sums[1] && sums[1] == sums[2] && sums[0] != 0, int(calls));
  return 0;
}
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> cpp_models.EmittedModel:
    table = jnp.array(RNG.standard_normal((2000, 8)), jnp.float32)
    weights = jnp.array(RNG.standard_normal((300, 400)), jnp.float32)
    rows = symbolic_args_specs((jnp.ones((1, 300)),), "b, ...")
    functions = {
        "classify": functools.partial(classify, weights),
        "step": functools.partial(step, table),
        "forget": functools.partial(forget, table),
        "loop": loop,
        "product": lambda x: jnp.sort(x[1:].reshape(37, 300) @ weights, axis=0).reshape(-1),
    }
    bundle = export(
        functions, updates={"step": {"table": "result[0]"}, "forget": {"table": "result[0]"}}
    )(
        classify=rows,
        step=(jnp.int32(0), jnp.ones(8)),
        forget=(jnp.float32(1),),
        loop=(jnp.ones((48, 48)), jnp.int32(0)),
        product=(jnp.ones(11101),),
    )
    folder = tmp_path_factory.mktemp("whole")
    emitted = cpp_models.emit(dict(bundle.with_rows(1, 8)), folder, "whole")
    (folder / "whole_c.cpp").unlink()
    return emitted


def can_run(flags: tuple[str, ...], folder: Path) -> str | None:
    """Returns why a program of this sanitizer cannot run here, or None."""
    (folder / "empty.cc").write_text("int main() {}\n")
    program = folder / f"empty{flags[0].replace('=', '_')}"
    command = ["g++", *flags, str(folder / "empty.cc"), "-o", str(program)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        return "GCC has no such sanitizer here"
    done = subprocess.run(
        [*fixed_addresses(), str(program)], capture_output=True, text=True, check=False
    )
    return None if done.returncode == 0 else f"it does not run here: {done.stderr[:200]}"


def fixed_addresses() -> list[str]:
    """Returns the command that runs programs at fixed addresses: TSan needs these."""
    tool = shutil.which("setarch")
    return [tool, platform.machine(), "-R"] if tool else []


@pytest.mark.parametrize(
    "flags",
    [
        ("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
        ("-fsanitize=thread",),
    ],
    ids=["addresses", "threads"],
)
def test_nothing_is_found(model: cpp_models.EmittedModel, flags: tuple[str, ...]) -> None:
    reason = can_run(flags, model.folder)
    if reason:
        pytest.skip(f"{flags[0]}: {reason}")
    name = flags[0].replace("=", "_").replace(",", "_").strip("-")
    program = cpp_models.build(model.folder, name, PROGRAM, ("-O0", "-g1", *flags))
    words = [*fixed_addresses(), str(program)]
    done = subprocess.run(words, capture_output=True, text=True, cwd=model.folder, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"[:4000]
    # 3 threads: 6 loops of 3 passes each, and two failures.
    assert done.stdout == f"1 {3 * (6 * 3 + 2)}\n"
