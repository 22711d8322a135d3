"""The dialect in IRDL, and IREE's verifier that reads it."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

import numpy as np
import pytest

from axir.dialect.core.config import config
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops import OPS
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.module_writer import write_module
from axir.dialect.text import irdl

IREE_OPT = Path(sysconfig.get_path("scripts")) / "iree-opt"


def iree_opt(text: str) -> subprocess.CompletedProcess[str]:
    command = [str(IREE_OPT), f"--irdl-file={irdl.FILE}", "-"]
    return subprocess.run(
        command, input=text, capture_output=True, text=True, check=False, timeout=120
    )


def has_uniform_groups(function: Function) -> bool:
    """Tells whether variadic groups hold values of one type, as IRDL demands of them."""
    (equation,) = function.equations
    definition = irdl._operation(equation.primitive)
    groups = (equation.operands, "irdl.operands("), (equation.results, "irdl.results(")
    for values, keyword in groups:
        names = definition.partition(keyword)[2].partition("\n")[0].split(", ")
        is_variadic = "variadic" in names[-1]
        if is_variadic and len({v.type for v in values[len(names) - 1 :]}) > 1:
            return False
    return True


def sample_functions(name: str) -> dict[str, Function]:
    """Returns a function with one op for each kind of sample of a primitive."""
    primitive = OPS[name]
    functions: dict[str, Function] = {}
    with np.errstate(all="ignore"):
        samples = primitive.samples() if primitive.samples else []
    for sample in samples[:8]:
        types = [ShapedArray(x.shape, x.dtype) for x in map(np.asarray, sample.args)]

        def call(*values: object, params: dict[str, object] = sample.params) -> list[object]:
            results = primitive.bind(*values, **params)
            return list(results) if primitive.multiple_results else [results]

        function = trace_function(call, types, name=f"{name}_{len(functions)}")
        # Ops without operands are computed while tracing.
        if function.equations and has_uniform_groups(function):
            functions[function.name] = function
    return functions


def test_the_file_is_current() -> None:
    assert irdl.FILE.read_text() == irdl.irdl_text(), "run `make irdl`"


def test_every_op_is_defined() -> None:
    text = irdl.FILE.read_text()
    assert all(f"irdl.operation @{name} {{" in text for name in OPS)


def test_what_the_samples_record_is_accepted() -> None:
    functions: dict[str, Function] = {}
    with config(jax_enable_x64=True):
        for name in OPS:
            functions |= sample_functions(name)
    assert len(functions) > 3 * len(OPS)
    finished = iree_opt(str(write_module(functions)))
    assert finished.returncode == 0, finished.stderr[:2000]


@pytest.mark.parametrize(
    ("op", "message"),
    [
        ('"jaxpr.sinn"(%x) : (tensor<f32>) -> tensor<f32>', "unregistered operation 'jaxpr.sinn'"),
        ('"jaxpr.sin"(%x, %x) : (tensor<f32>, tensor<f32>) -> tensor<f32>', "exactly 1 operands"),
        ('"jaxpr.add"(%x) : (tensor<f32>) -> tensor<f32>', "exactly 2 operands"),
        ('"jaxpr.reduce_sum"(%x) : (tensor<f32>) -> tensor<f32>', '"axes" is expected'),
        (
            '"jaxpr.reduce_sum"(%x) {axes = 1 : i64} : (tensor<f32>) -> tensor<f32>',
            "expected base attribute 'builtin.dense_array'",
        ),
        ('"jaxpr.sin"(%x) : (tensor<f32>) -> f32', "expected base type 'builtin.tensor'"),
    ],
)
def test_what_is_wrong_is_refused(op: str, message: str) -> None:
    finished = iree_opt(f"func.func @main(%x: tensor<f32>) {{\n  %0 = {op}\n  return\n}}\n")
    assert finished.returncode != 0
    assert message in finished.stderr
