"""Reading modules: an error names its line in the text, and never crashes."""

from __future__ import annotations

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir.dialect.core.errors import ParseError, UnknownOpError, VerificationError
from axir.dialect.program.module_writer import embed_captures, write_module
from axir.dialect.text.module_reader import parse_module, read_file, read_module

FUNCTION = """\
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {{
  {op}
  return %0 : tensor<3xf32>
}}
"""


def _read(op: str):
    return read_module(parse_module(FUNCTION.format(op=op), "test.mlir"))["main"]


def test_a_module_reads_edits_and_runs() -> None:
    def f(x, y):
        return axir.jit(lambda v: jnp.sin(v) * y)(x) + jnp.cumsum(x), x.sum()

    arguments = np.float32([1, 2, 3]), np.float32(2)
    text = str(axir.make_jaxpr(f)(*arguments).module())
    function = read_module(parse_module(text))["main"]
    for ours, expected in zip(function.evaluate(*arguments), f(*arguments), strict=True):
        np.testing.assert_array_equal(ours, expected)
    edited = read_module(parse_module(text.replace("jaxpr.sin", "jaxpr.cos")))["main"]
    np.testing.assert_allclose(
        edited.evaluate(*arguments)[0],
        np.cos(arguments[0]) * 2 + np.cumsum(arguments[0]),
        rtol=1e-6,
    )


def test_captured_arrays_are_embedded_when_asked() -> None:
    table = jnp.arange(200.0) / 7
    function = axir.make_jaxpr(lambda x: x + table)(1.0).function
    text = str(write_module({"main": embed_captures(function)}))
    again = read_module(parse_module(text))["main"]
    assert not again.captures
    assert len(again.inputs) == 1
    np.testing.assert_array_equal(again.evaluate(np.float32(1))[0], 1 + np.asarray(table))


def test_weak_types_survive() -> None:
    function = axir.make_jaxpr(lambda x: x * 2)(1.0).function
    again = read_module(parse_module(str(write_module({"main": function}))))["main"]
    assert again.input_types[0].weak_type
    assert again.output_types[0].weak_type


def test_locations_survive() -> None:
    module = axir.make_jaxpr(jnp.sin)(1.0).module()
    text = module.operation.get_asm(enable_debug_info=True)
    function = read_module(parse_module(text))["main"]
    assert "test_module_reader.py" in str(function.equations[0].location)


@pytest.mark.parametrize(
    ("op", "error", "text"),
    [
        ('%0 = "jaxpr.sinn"(%x) : (tensor<3xf32>) -> tensor<3xf32>', UnknownOpError,
         "Op 'jaxpr.sinn' is not one of the jaxpr dialect."),
        ('%0 = "jaxpr.add"(%x) : (tensor<3xf32>) -> tensor<3xf32>',
         VerificationError, "jaxpr.add: "),
        ('%0 = "jaxpr.sin"(%x) : (tensor<3xf32>) -> tensor<4xf32>\n'
         '  "jaxpr.sin"(%x) : (tensor<3xf32>) -> tensor<3xf32>',
         ParseError, "test.mlir is not valid MLIR"),
        ('%0 = "jaxpr.reduce_sum"(%x) {axes = array<i64: 5>} : (tensor<3xf32>) -> tensor<3xf32>',
         VerificationError, "jaxpr.reduce_sum: "),
        ('%0 = "jaxpr.neg"(%x) {axes = 1 : i64} : (tensor<3xf32>) -> tensor<3xf32>',
         VerificationError, "jaxpr.neg"),
        ('%0 = "jaxpr.is_finite"(%x) : (tensor<3xf32>) -> tensor<3xf32>',
         VerificationError, "jaxpr.is_finite gives bool[3], not float32[3]."),
        ('%0 = stablehlo.sine %x : tensor<3xf32>', UnknownOpError,
         "Only modules of the jaxpr dialect can be transformed"),
        ('%0 = "jaxpr.constant"() : () -> tensor<3xf32>', VerificationError,
         "jaxpr.constant lacks its attribute 'value'."),
        ('%0 = "jaxpr.jit"(%x) {jaxpr = @nowhere, name = "f"} : (tensor<3xf32>) -> tensor<3xf32>',
         VerificationError, "The module has no function @nowhere."),
        ('%0 = "jaxpr.jit"(%x) {jaxpr = @main, name = "f"} : (tensor<3xf32>) -> tensor<3xf32>',
         VerificationError, "Function @main calls itself."),
    ],
)  # fmt: skip
def test_wrong_ops(op, error, text) -> None:
    with pytest.raises(error) as caught:
        _read(op)
    assert text in str(caught.value)
    assert "test.mlir" in str(caught.value) or "at line " in str(caught.value)


def test_every_truncation_of_a_module_is_refused() -> None:
    text = str(axir.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.0).module())
    assert "main" not in read_module(parse_module(""))
    for length in range(7, len(text) - 3, 7):
        with pytest.raises(ParseError, match=r"cut\.mlir is not valid MLIR"):
            parse_module(text[:length], "cut.mlir")


def test_files(tmp_path) -> None:
    binary = tmp_path / "x.mlir"
    binary.write_bytes(bytes(range(256)))
    with pytest.raises(ParseError, match="neither MLIR text nor bytecode"):
        read_file(binary)
    empty = tmp_path / "empty.mlir"
    empty.write_text("")
    with pytest.raises(ParseError, match="is empty"):
        read_file(empty)
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "none.mlir")
