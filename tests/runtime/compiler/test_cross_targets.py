"""Programs for other machines: those for ARM run in an emulator, others are compiled."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.cross_programs import TRIPLES, emulator, run_program, runtime
from support.op_cases import Case, cases_of, differences, joined
from support.op_programs import _calling

from axir.dialect.core.config import config
from axir.dialect.core.errors import ParameterError
from axir.dialect.ops.calls.jit_call import set_executor
from axir.passes.transforms.lower_to_stablehlo import lower_functions
from axir.runtime import LoadError, Program, Target, check_machine, compile_module, default_device
from axir.runtime.compiler.architectures import host_architecture
from axir.runtime.compiler.function_compilation import prepare_for_target

# Functions of the C library, functions that axir expands, and each kind of kernel.
OPS = (
    "sin cos tan tanh atan2 asin acos rem exp log pow cbrt erf_inv logistic "
    "dot_general conv_general_dilated reduce_sum cumsum sort gather scatter_add scan cond while "
    "fft argmax convert_element_type"
).split()
LARGEST = 1  # samples of an op
TEXT = """
func.func @main(%x: tensor<40x40xf32>) -> tensor<40x40xf32> {
  %0 = stablehlo.tanh %x : tensor<40x40xf32>
  %1 = stablehlo.dot_general %0, %x, contracting_dims = [1] x [0]
    : (tensor<40x40xf32>, tensor<40x40xf32>) -> tensor<40x40xf32>
  return %1 : tensor<40x40xf32>
}
"""


def sample(name: str) -> list[Case]:
    """Samples of an op in the widest types; most samples combine several shapes."""
    cases = [case for case in joined(cases_of(name)) if case.args]
    cases.sort(key=lambda case: (case.args[0].dtype.kind in "fc", case.args[0].dtype.itemsize))
    return cases[-LARGEST:]


@pytest.fixture
def evaluated_calls():
    """Makes the evaluator run the bodies of calls, and keeps 64-bit dtypes."""
    config.update("jax_enable_x64", True)
    executor = set_executor(None)
    yield
    set_executor(executor)


@pytest.mark.usefixtures("evaluated_calls")
def test_ops_on_arm_agree_with_the_evaluator() -> None:
    if emulator("aarch64") is None:
        pytest.skip(
            "qemu-aarch64 or libc6-arm64-cross is missing (apt: qemu-user libc6-arm64-cross)"
        )
    if runtime("aarch64") is None:
        pytest.skip("the wheel of iree-base-runtime for aarch64 cannot be downloaded")
    cases = [case for name in OPS for case in sample(name)]
    functions = [case.function() for case in cases]
    target = Target(cpu="generic", triple=TRIPLES["aarch64"])
    whole = _calling(functions, "main")
    module = lower_functions({"main": whole})
    prepare_for_target(module, target)
    binary = compile_module(module, target, "ops")
    arguments = [x for case in cases for x in case.args]
    arguments += [x.host() for x in whole.captured]
    types = [variable.type for function in functions for variable in function.outputs]
    results = iter(run_program(binary, "aarch64", arguments, types))
    problems: list[str] = []
    for case, function in zip(cases, functions, strict=True):
        found = [next(results) for _ in function.outputs]
        problems += differences(
            str(case),
            found,
            case.evaluate(),
            case.tolerance,
            is_elementwise=case.is_elementwise,
            or_else=case.evaluate_flushed(),
            zero_signs=False,
        )
    assert not problems, "\n".join(problems)


@pytest.mark.usefixtures("evaluated_calls")
def test_loops_with_functions_of_doubles_become_kernels() -> None:
    """The sine of doubles has an operation with two results, which kernels copy, too."""
    case = next(c for c in cases_of("scan") if "sin" in str(c) and "float64" in str(c))
    module = lower_functions({"main": case.function()})
    prepare_for_target(module, Target(cpu="generic", triple=TRIPLES["aarch64"]))
    text = str(module)
    assert "stablehlo.while" not in text
    assert "arith.mului_extended" in text
    assert "math.sin" not in text


def test_the_virtual_machine_of_iree_runs_programs_on_any_cpu() -> None:
    x = np.random.default_rng(0).standard_normal((40, 40)).astype(np.float32)
    device = default_device()
    binary = compile_module(TEXT, Target(backend="vmvx"), "vm")
    check_machine(binary, "vm.vmfb")
    (found,) = Program(binary, device).function()([device.put(x)])
    np.testing.assert_allclose(found.to_numpy(), np.tanh(x) @ x, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("backend", ["rocm", "metal"])
def test_programs_for_gpus_without_a_driver_here_are_compiled(backend: str) -> None:
    assert compile_module(TEXT, Target(backend=backend), backend).startswith(b"PK")


def test_programs_for_other_cpus_are_refused_before_they_run() -> None:
    other = next(name for name in TRIPLES if name != host_architecture())
    binary = compile_module(TEXT, Target(cpu="generic", triple=TRIPLES[other]), "other")
    told = f"model.vmfb is for CPUs of another kind: {other}. This machine's is"
    with pytest.raises(LoadError, match=re.escape(told)):
        check_machine(binary, "model.vmfb")


@pytest.mark.skipif(host_architecture() != "x86_64", reason="the program is for CPUs of x86-64")
def test_programs_that_need_more_than_the_cpu_has_are_refused(monkeypatch) -> None:
    from axir.runtime.compiler import architectures  # late: only the architecture is read

    binary = compile_module(TEXT, Target(cpu="x86-64-v3"), "third level")
    monkeypatch.setattr(
        architectures, "host_cpu_flags", lambda: frozenset("pni ssse3 cx16".split())
    )
    with pytest.raises(
        LoadError, match="needs sse4.1 sse4.2 popcnt sahf avx avx2 fma f16c bmi bmi2"
    ):
        check_machine(binary, "model.vmfb")
    monkeypatch.setattr(architectures, "host_cpu_flags", frozenset)  # a system without such a list
    check_machine(binary, "model.vmfb")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"triple": "sparc-sun-solaris"}, "not made for machines such as 'sparc-sun-solaris'"),
        ({"backend": "cuda", "triple": "aarch64-linux-gnu"}, "does not go with the backend 'cuda'"),
        ({"linkage": "static"}, "no linkage 'static'"),
        ({"triple": "riscv64-linux-gnu"}, "riscv64-linux-gnu is another kind"),
    ],
)
def test_targets_that_contradict_themselves(options: dict[str, str], text: str) -> None:
    with pytest.raises(ParameterError, match=text):
        Target(**options)
