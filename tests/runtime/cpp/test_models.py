"""Functions as C++: one model of many functions, with the same bits as Python's results."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from support import cpp_models
from support.cpp_models import driver, read_outputs, write_inputs

import axir
import axir.numpy as jnp
from axir import lax
from axir.export import export

RNG = np.random.default_rng(0)
WEIGHTS = jnp.array(RNG.standard_normal((8, 64)), jnp.float32)
TABLE = jnp.arange(50, dtype=jnp.float32)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def network(x):
    return {"y": jnp.tanh(x @ WEIGHTS) @ WEIGHTS.T, "total": x.sum()}


def three_results(x, y):
    return {"s": x + y[0], "p": (x * 2).sum(), "m": x @ y}


def until_large(x, n):
    def body(carry):
        i, v = carry
        return i + 1, jnp.tanh(v @ v)

    return lax.while_loop(lambda c: (c[0] < n) & (jnp.sum(c[1]) < 1e3), body, (0, x))


def large_loop(x, n):
    """Runs kernels in each pass, and loads a number to decide whether there is another pass."""

    def body(carry):
        i, v = carry
        return i + 1, jnp.sort(v @ v / jnp.linalg.norm(v), axis=0)

    return lax.while_loop(lambda c: c[0] < n, body, (0, x))


def choice(x, is_sorted):
    return lax.cond(is_sorted, jnp.sort, lambda v: jnp.cumsum(v)[::-1], x)


def running(x, h):
    def step(h, t):
        h = jnp.tanh(h @ h.T + t)
        return h, h.sum()

    return lax.scan(step, h, x)


def convolution(x, k):
    return lax.conv_general_dilated(
        x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def dtypes(a, b, c, d, e):
    return a * 2, b + 1, jnp.logical_not(c), d * (1 + 2j), a.astype(jnp.bfloat16), e ^ 3


def constants(x):
    """Has constants that the compiler makes, and that initializers prepare."""
    return jnp.fft.fft(x), lax.fori_loop(0, 5, lambda i, c: jnp.sort(c @ c) * TABLE[:20], x[:, :20])


def transforms(x, z):
    """Has kernels that read and write complex numbers directly."""
    return jnp.fft.ifft(jnp.fft.irfft(jnp.fft.rfft(x) * 2)), jnp.fft.fft(z)


CASES = {
    "network": (network, floats(4, 8)),
    "three_results": (three_results, floats(8, 8), floats(8, 8)),
    "until_large": (until_large, floats(20, 20) * 0.1, np.int32(5)),
    "large_loop": (large_loop, floats(150, 150), np.int32(3)),
    "sorted": (choice, floats(500), np.bool_(True)),
    "summed": (choice, floats(500), np.bool_(False)),
    "running": (running, floats(10), floats(20, 20) * 0.1),
    "transforms": (transforms, floats(3, 600), floats(700) + np.complex64(1j) * floats(700)),
    "convolution": (convolution, floats(1, 12, 12, 4), floats(3, 3, 4, 8)),
    "update": (
        lambda x, i, v: (x.at[i].set(v), x),
        *(floats(50, 10), np.int32(7), floats(10)),
    ),
    "same": (lambda x: (x, x.reshape(-1)), floats(4, 4)),
    "nothing_given": (lambda: jnp.arange(5.0) * 2,),
    "keyed": (
        lambda key: (axir.random.normal(key, (10,)), axir.random.split(key)),
        np.array([1, 2], np.uint32),
    ),
    "dtypes": (
        dtypes,
        floats(5).astype(np.float16),
        np.arange(5, dtype=np.int32),
        np.array([1, 0, 1, 1, 0], bool),
        (floats(5) + 1j * floats(5)).astype(np.complex64),
        np.arange(7, dtype=np.uint8),
    ),
    "constants": (constants, floats(20, 60)),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> cpp_models.EmittedModel:
    """The model, built and run: arguments at any address, results from the model's memory."""
    folder = tmp_path_factory.mktemp("model")
    exported = {
        name: export(function)(*map(jnp.array, arguments))
        for name, (function, *arguments) in CASES.items()
    }
    emitted = cpp_models.emit(exported, folder, "many")
    program = cpp_models.build(folder, "driver", driver(emitted.interface))
    arguments = {name: case[1:] for name, case in CASES.items()}
    write_inputs(folder, emitted.interface, arguments)
    cpp_models.run(program)
    return emitted


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_python(model: cpp_models.EmittedModel, name: str) -> None:
    function, *arguments = CASES[name]
    wanted = axir.tree.leaves(axir.jit(function)(*map(jnp.array, arguments)))
    found = read_outputs(model.folder, model.interface, name)
    for x, y in zip(wanted, found, strict=True):
        host = np.asarray(x)
        assert (host.dtype, host.shape) == (y.dtype, y.shape)
        assert host.tobytes() == y.tobytes()


def test_names_are_those_of_python(model: cpp_models.EmittedModel) -> None:
    header = (model.folder / "many.hpp").read_text()
    assert "  axir::v3::View<const float, 4, 8> y;  ///< result['y']: float32[4,8]\n" in header
    assert "  ThreeResultsResult three_results(axir::v3::View<const float, 8, 8> x,\n" in header
    assert "  KeyedResult keyed(axir::v3::View<const std::uint32_t, 2> key);\n" in header


def test_headers_are_self_contained(model: cpp_models.EmittedModel, tmp_path: Path) -> None:
    headers = sorted((model.folder / "include").rglob("*.hpp"))
    assert len(headers) >= 12
    for header in headers:
        source = tmp_path / "all.cpp"
        source.write_text(f"#include <{header.relative_to(model.folder / 'include')}>\n")
        cpp_models.check_syntax(source, model.folder)


def test_clang_takes_it_without_warnings(model: cpp_models.EmittedModel) -> None:
    if not shutil.which("clang++"):
        pytest.skip("there is no clang++: apt install clang")
    cpp_models.check_syntax(model.folder / "many.cpp", model.folder, "clang++")


PROBE = """
#include "many.hpp"
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
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

int main() {
  axir::Options options;
  options.threads = 2;
  many::Model model(options);
  many::Model other(model);
  std::vector<float> x(32, 0.5f), square(64, 0.5f), matrix(22500, 0.5f);
  float y[32], total = 0;
  many::Model moved(std::move(other));
  long before = 0;
  for (int call = 0; call < 4; ++call) {
    if (call == 2) before = allocations;  // the first calls take memory for unaligned arrays
    model.network(x, {axir::View<float>(&total), axir::View<float, 4, 8>(y)});
    moved.network(x);
    model.three_results(square, square);
    model.large_loop(matrix, 3);
  }
  std::printf("%ld allocations\\n", allocations - before);
  const auto result = moved.network(x);
  bool is_same = float(result.total) == total && result.y.size() == 32;
  for (std::size_t i = 0; i < 32; ++i) is_same &= result.y[i] == y[i];
  is_same &= result.y(3, 7) == y[31] && result.y.end() - result.y.begin() == 32;
  std::printf("same %d\\n", is_same);
  const auto fails = [&](auto call) {
    try { call(); } catch (const axir::Error& error) {
      std::printf("%d %s\\n", int(error.code()), error.what());
    }
  };
  static_assert(!std::is_convertible_v<axir::View<float, 3>, axir::View<float, 4>>);
  static_assert(std::is_convertible_v<axir::View<float, 2, 2>, axir::View<const float, 4>>);
  static_assert(!std::is_convertible_v<std::vector<double>, axir::View<const float, 4>>);
  static_assert(!std::is_convertible_v<std::vector<float>&, axir::View<const double, 4>>);
  static_assert(!std::is_convertible_v<const std::vector<float>&, axir::View<float, 4>>);
  std::vector<float> shared(64);
  fails([&] { model.network(std::vector<float>(31)); });
  fails([&] { model.network(axir::View<const float, 4, 8>(nullptr)); });
  fails([&] { model.network(axir::View<const float, 4, 8>()); });
  fails([&] {
    model.network(axir::View<const float, 4, 8>(shared.data()),
                  {axir::View<float>(&total), axir::View<float, 4, 8>(shared.data() + 31)});
  });
  const auto opens = [&](const std::string& content) {
    fails([&] {
      axir::Options wrong;
      wrong.parameter_data = content.data();
      wrong.parameter_size = content.size();
      many::Model broken(wrong);
    });
  };
  const auto file = [](const std::string& table, std::size_t size, int more = 0) {
    const std::uint64_t length = table.size() + static_cast<std::uint64_t>(more);
    return std::string(reinterpret_cast<const char*>(&length), 8) + table + std::string(size, 'x');
  };
  const std::string array = R"({"WEIGHTS":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  opens("12345");
  opens(file("{}", 0));
  opens(file("{]", 0));
  opens(file("{}", 0, 1));
  opens(file(array, 4));
  opens(file(array, 3));
  fails([&] {
    axir::Options elsewhere;
    elsewhere.parameters = "/nowhere/at/all";
    many::Model broken(elsewhere);
  });
  return 0;
}
"""


def test_memory_and_failures(model: cpp_models.EmittedModel) -> None:
    program = cpp_models.build(model.folder, "probe", PROBE)
    assert cpp_models.run(program).splitlines() == [
        "0 allocations",
        "same 1",
        "1 network: 'x' has 31 elements, must have 32 (4 x 8)",
        "1 network: 'x' is a null pointer",
        "1 network: 'x' has 0 elements, must have 32 (4 x 8)",
        "1 network: the result 'y' lies in the memory of the argument 'x'",
        "2 these are no parameters in the safetensors format: it is shorter than it says",
        "2 the parameter 'WEIGHTS' is missing",
        "2 these are no parameters in the safetensors format: its table cannot be read",
        "2 these are no parameters in the safetensors format: it is shorter than it says",
        "2 the parameter 'WEIGHTS' is F32[1], not F32[8,64]",
        "2 these are no parameters in the safetensors format: its table cannot be read",
        "2 cannot read the file of parameters /nowhere/at/all",
    ]


def test_a_kernel_runs_as_often_as_each_dispatch_says(tmp_path: Path) -> None:
    """Arrays of two sizes are filled with 64-bit numbers that are known when the program runs."""

    def padded(x, z):
        y = jnp.sort(x, axis=1)
        return jnp.pad(y, 3, constant_values=y[0, 0]), jnp.pad(y, 9, constant_values=y[1, 1]), 2 * z

    arguments = RNG.standard_normal((2, 17)), np.ones(3, complex)
    with axir.enable_x64(True):
        emitted = cpp_models.emit({"padded": export(padded)(*arguments)}, tmp_path, "fills")
        wanted = axir.jit(padded)(*arguments)
    program = cpp_models.build(tmp_path, "driver", driver(emitted.interface))
    write_inputs(tmp_path, emitted.interface, {"padded": arguments})
    cpp_models.run(program)
    found = read_outputs(tmp_path, emitted.interface, "padded")
    for x, y in zip(wanted, found, strict=True):
        np.testing.assert_array_equal(x, y)
