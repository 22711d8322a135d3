"""Models with state, donated arguments, callbacks, status codes, parameters in files, and C."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support import cpp_models

import axir
import axir.numpy as jnp
from axir.dialect.core.errors import ParameterError
from axir.export import export, to_cpp

RNG = np.random.default_rng(0)
PARAMS = {
    "w": jnp.array(RNG.standard_normal((5, 3)), jnp.float32),
    "b": jnp.zeros(3),
    "c": jnp.array(1 + 2j),
}
X, Y = jnp.ones((8, 5)), jnp.ones((8, 3))
LARGE = jnp.array(RNG.standard_normal((5, 5)), jnp.float32)


def step(params, x, y, rate):
    """Returns the loss, and new parameters: `c` is rotated by 90 degrees."""
    weights = {name: params[name] for name in "wb"}

    def loss(weights):
        return ((x @ weights["w"] + weights["b"] - y) ** 2).mean()

    value, gradient = axir.value_and_grad(loss)(weights)
    new = {name: weights[name] - rate * gradient[name] for name in "wb"}
    return {**new, "c": params["c"] * 1j}, {"loss": value}


def predict(params, x):
    return x @ LARGE @ params["w"] + params["b"]


def exported() -> axir.export.Bundle:
    functions = {f.__name__: functools.partial(f, PARAMS) for f in (step, predict)}
    exporter = export(functions, updates={"step": {"params": "result[0]"}})
    return exporter(step=(X, Y, jnp.float32(0.1)), predict=(X,))


LEARNER = """
#include "learner.hpp"
#include <cstdio>
#include <vector>

int failed(const axir::Status& status) {
  if (!status.ok()) std::printf("%d %s\\n", int(status.code()), status.message().c_str());
  return !status.ok();
}

int main() {
  std::vector<float> x(40, 1.f), y(24, 1.f);
  std::unique_ptr<learner::Model> model, other, copy;
  if (failed(learner::Model::create(model))) return 1;
  learner::StepResult result;
  learner::PredictResult prediction;
  for (int i = 0; i < 20; ++i) {
    if (failed(model->step(x, y, 0.1f, result))) return 1;
  }
  std::printf("%.9g %g\\n", double(result.loss), double(model->params_c()[0].imag()));
  if (failed(model->save("state.safetensors")) || failed(model->share(copy))) return 1;
  if (failed(learner::Model::create(other))) return 1;
  if (failed(other->load("state.safetensors"))) return 1;
  for (learner::Model* m : {model.get(), other.get(), copy.get()}) {
    if (failed(m->predict(x, prediction))) return 1;
    std::printf("%.9g\\n", double(prediction.value(7, 2)));
  }
  if (failed(model->step(x, y, 0.1f, result))) return 1;  // no other instance sees this
  if (failed(copy->predict(x, prediction))) return 1;
  std::printf("%.9g\\n", double(prediction.value(7, 2)));
  failed(model->step(std::vector<float>(3), y, 0.1f, result));
  failed(model->load("learner.hpp"));
  failed(model->load("learner.safetensors.missing"));
  failed(model->save("no/such/folder/state.safetensors"));
  axir::Options options;
  options.parameters = "state.safetensors";  // has the state, but not all
  failed(learner::Model::create(other, options));
  std::printf("%d\\n", other == nullptr);
  return 0;
}
"""

IN_C = """
#include "learner.h"
#include <stdio.h>

int main(void) {
  char message[200];
  learner_options options = {0};
  learner_model* model = NULL;
  learner_model* other = NULL;
  learner_model* none = NULL;
  float x[40], y[24], result[24], loss, rate = 0.1f;
  int i;
  for (i = 0; i < 40; ++i) x[i] = 1;
  for (i = 0; i < 24; ++i) y[i] = 1;
  if (learner_create(&options, &model, NULL, 0)) return 1;
  for (i = 0; i < 20; ++i) {
    if (learner_step(model, x, y, &rate, &loss)) return 1;
  }
  if (learner_share(model, &other, message, sizeof message)) return 1;
  if (learner_predict(other, x, result)) return 1;
  printf("%.9g %g\\n%.9g\\n", loss, learner_params_c(model)[1], result[23]);
  i = learner_predict(other, x, NULL);
  printf("%d %s\\n", i, learner_message(other));
  printf("%d\\n", learner_save(model, "from_c.safetensors"));
  options.parameters = "nothing.safetensors";
  i = learner_create(&options, &none, message, sizeof message);
  printf("%d %d %s\\n", i, none == NULL, message);
  i = learner_create(&options, &none, message, 7);
  printf("%s\\n", message);
  learner_destroy(model);
  learner_destroy(other);
  return 0;
}
"""


@pytest.fixture(scope="module")
def learner(tmp_path_factory: pytest.TempPathFactory) -> cpp_models.EmittedModel:
    """A model with state; it returns status codes and has its parameters in a file."""
    folder = tmp_path_factory.mktemp("learner")
    return cpp_models.emit(exported(), folder, "learner", throws=False, embed_limit=0)


@pytest.fixture(scope="module")
def after_training() -> tuple[float, float, float]:
    """The loss before the last of 20 steps, the rotated number, and a prediction, by Python."""
    params, losses = PARAMS, {}
    compiled = axir.jit(step)
    for _ in range(20):
        params, losses = compiled(params, X, Y, jnp.float32(0.1))
    found = axir.jit(predict)(params, X)
    return float(losses["loss"]), float(params["c"].imag), float(found[7, 2])


def test_state_is_kept_replaced_saved_and_loaded(
    learner: cpp_models.EmittedModel, after_training: tuple[float, float, float]
) -> None:
    flags = ("-O0", "-fno-exceptions")
    program = cpp_models.build(learner.folder, "learn", LEARNER, flags)
    lines = cpp_models.run(program).splitlines()
    loss, turned, prediction = after_training
    assert lines[0] == f"{np.float32(loss):.9g} {turned:g}"
    assert lines[1:5] == [f"{np.float32(prediction):.9g}"] * 4
    assert lines[5:] == [
        "1 step: 'x' has 3 elements, must have 40 (8 x 5)",
        "2 these are no parameters in the safetensors format: it is shorter than it says",
        "2 cannot read the file of parameters learner.safetensors.missing",
        "7 cannot write no/such/folder/state.safetensors.part",
        "2 the parameter 'LARGE' is missing",
        "1",
    ]
    assert not list(learner.folder.glob("*.part"))
    numpy = pytest.importorskip("safetensors.numpy")
    saved = numpy.load_file(learner.folder / "state.safetensors")
    assert {name: x.shape for name, x in saved.items()} == {
        "params['b']": (3,),
        "params['c']": (2,),
        "params['w']": (5, 3),
    }


def test_c_has_it_too(
    learner: cpp_models.EmittedModel, after_training: tuple[float, float, float]
) -> None:
    flags = ("-O0", "-fno-exceptions")
    objects = cpp_models.compile_model(learner.folder, flags)
    source, program = learner.folder / "in_c.c", learner.folder / "in_c"
    source.write_text(IN_C)
    command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", str(source)]
    command += [*objects, "-I", str(learner.folder), "-o", str(program)]
    subprocess.run([*command, "-lstdc++", "-pthread", "-lm"], check=True)
    loss, turned, prediction = after_training
    missing = "cannot read the file of parameters nothing.safetensors"
    assert cpp_models.run(program).splitlines() == [
        f"{np.float32(loss):.9g} {turned:g}",
        f"{np.float32(prediction):.9g}",
        "1 predict: 'value' is a null pointer",
        "0",
        f"2 1 {missing}",
        missing[:6],
    ]


def test_functions_of_any_number_of_rows_need_numbers(tmp_path: Path) -> None:
    spec = axir.export.symbolic_args_specs((jnp.ones((2, 3)),), "b, ...")
    function = export(lambda x: x * 2)(*spec)
    with pytest.raises(ParameterError, match=r"'twice' takes any number of rows"):
        to_cpp({"twice": function}, tmp_path)


def test_names_of_methods_that_models_have_are_taken(tmp_path: Path) -> None:
    function = export(lambda x: x + 1)(jnp.ones(3))
    with pytest.raises(ParameterError, match="models have a method 'save' of their own") as caught:
        to_cpp({"save": function}, tmp_path)
    assert "such as 'save_1'" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"errors": "codes"}, "errors cannot be 'codes'"),
        ({"name": "my model"}, "'my model' is no name in C++"),
        ({"name": "class"}, "'class' is no name in C++"),
    ],
)
def test_options_are_checked(tmp_path: Path, options: dict[str, str], message: str) -> None:
    function = export(lambda x: x + 1)(jnp.ones(3))
    with pytest.raises(ParameterError) as caught:
        to_cpp({"f": function}, tmp_path, **options)
    assert message in str(caught.value)
    assert not list(tmp_path.iterdir())


# Callbacks and donated arguments -----------------------------------------------------------------


def double(x: np.ndarray) -> np.ndarray:
    return np.asarray(x) * 2


def look(x: np.ndarray) -> None:
    """Is called, and returns nothing."""


def called(x):
    y = axir.pure_callback(double, axir.ShapeDtypeStruct((8,), np.float32), x + 1)
    axir.debug.callback(look, y)
    return y.sum()


def called_in_loop(x, n):
    def body(carry):
        i, v = carry
        shape = axir.ShapeDtypeStruct((40, 40), np.float32)
        return i + 1, axir.pure_callback(double, shape, jnp.sort(v @ v, axis=0))

    return axir.lax.while_loop(lambda c: c[0] < n, body, (0, x))


def scatter(table, index, row):
    return table.at[index].set(row), table.sum()


CALLBACKS = """
#include "called.hpp"
#include <cstdio>
#include <stdexcept>
#include <vector>

int main() {
  int looked = 0;
  called::Callbacks callbacks;
  const auto twice = [](auto x, auto result) {
    if (x[0] < -100) throw std::runtime_error("too small");
    for (std::size_t i = 0; i < x.size(); ++i) result[i] = x[i] * 2;
  };
  callbacks.double_ = twice;
  callbacks.double__2 = twice;
  called::Model blind(callbacks);
  callbacks.look = [&](axir::View<const float, 8> x) { looked += int(x[7]); };
  called::Model model(callbacks);
  std::vector<float> x(8, 2.f), matrix(1600);
  for (std::size_t i = 0; i < 1600; ++i) matrix[i] = float(i % 7) * 0.01f;
  const float sum = model.called(x).value;
  std::printf("%g %g %d\\n", double(sum), double(float(blind.called(x).value)), looked);
  const auto loop = model.called_in_loop(matrix, 3);
  std::printf("%d %.9g %.9g\\n", int(loop.value_0), double(loop.value_1[0]),
              double(loop.value_1[1599]));
  try {
    x[0] = -200;
    model.called(x);
  } catch (const std::exception& error) {
    std::printf("%s\\n", error.what());
  }
  try {
    called::Model(called::Callbacks()).called(x);
  } catch (const axir::Error& error) {
    std::printf("%d %s\\n", int(error.code()), error.what());
  }
  std::vector<float> table(41, 1.f);  // from its second element on it is not aligned
  const std::vector<float> row(4, 5.f);
  const axir::View<float, 10, 4> part(table.data() + 1);
  const auto result = model.scatter(part, 9, row);
  std::printf("%d %g %g %g\\n", result.value_0.data() == part.data(), double(float(result.value_1)),
              double(table[36]), double(table[37]));
  return 0;
}
"""


def test_callbacks_and_donated_arguments(tmp_path: Path) -> None:
    matrix = (np.arange(1600) % 7 * np.float32(0.01)).astype(np.float32).reshape(40, 40)
    emitted = cpp_models.emit(
        {
            "called": export(called)(jnp.ones(8)),
            "called_in_loop": export(called_in_loop)(jnp.ones((40, 40)), jnp.int32(3)),
            "scatter": export(axir.jit(scatter, donate_argnums=0))(
                jnp.ones((10, 4)), jnp.int32(9), jnp.ones(4)
            ),
        },
        tmp_path,
        "called",
    )
    assert [c.name for c in emitted.interface.callbacks] == ["double_", "look", "double__2"]
    program = cpp_models.build(tmp_path, "program", CALLBACKS)
    _, wanted = axir.jit(called_in_loop)(jnp.array(matrix), jnp.int32(3))
    assert cpp_models.run(program).splitlines() == [
        "48 48 6",
        f"3 {wanted[0, 0]:.9g} {wanted[39, 39]:.9g}",
        "too small",
        "6 called: a callback is not set",
        "1 40 1 5",
    ]
