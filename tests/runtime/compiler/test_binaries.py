"""Damaged files of compiled programs."""

from __future__ import annotations

import pytest

from axir.runtime import LoadError, Target, check_binary, compile_module

ADD = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def test_a_whole_binary_passes_and_a_damaged_one_does_not():
    binary = compile_module(ADD, Target())
    check_binary(binary, "whole")
    check_binary(b"\x10\0\0\0IREE", "a bare table")
    half = len(binary) // 2
    for damaged in (
        binary[:half],
        binary[:half] + binary[half + 3 :],
        binary[:1000] + bytes([binary[1000] ^ 1]) + binary[1001:],
        binary[:-3000] + bytes([binary[-3000] ^ 1]) + binary[-2999:],
    ):
        with pytest.raises(LoadError, match="model.vmfb is damaged") as caught:
            check_binary(damaged, "model.vmfb")
        assert "compile it again" in caught.value.way_out
