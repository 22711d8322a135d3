"""Weights that are taken out of text and bytecode: the parts that are taken."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from iree.compiler import ir

from axir.dialect.core.context import context
from axir.dialect.core.errors import ParseError, WeightsError
from axir.dialect.text.bytecode import Section, written
from axir.dialect.text.bytecode_weights import _Weights, weights_in_bytecode
from axir.dialect.text.parsing import parse_module
from axir.dialect.text.text_weights import weights_in_text
from axir.export import load

FIRST = """func.func @f() -> tensor<2xi8> {
  %0 = stablehlo.constant dense_resource<a> : tensor<2xi8>
  return %0 : tensor<2xi8>
}
{-# dialect_resources: { builtin: { a: "0x040000000102" } } #-}
"""


def test_text_between_sections_stays() -> None:
    second = FIRST.replace("@f", "@g").replace("<a>", "<b>").replace("a:", "b:")
    found = weights_in_text((FIRST + second).encode(), "x.", "m")
    assert found is not None
    text, names, digits = found
    assert b"@f" in text
    assert b"@g" in text
    assert b"{-#" not in text
    assert names == ["a", "b"]
    assert [bytes(digits[n]) for n in (0, 1)] == [b"040000000102"] * 2
    assert [view.operation.name for view in parse_module(FIRST + second).body.operations] == [
        "func.func",
        "func.func",
    ]


@pytest.mark.parametrize("end", ["", '"', "{-#"])
def test_sections_that_do_not_end_are_refused(end: str) -> None:
    text = FIRST.replace("#-}", end)
    with pytest.raises(WeightsError, match="The weights of m cannot be read: they are cut off"):
        weights_in_text(text.encode(), "x.", "m")


def test_ends_of_sections_in_strings() -> None:
    text = FIRST.replace("a:", '"a #-} b":').replace("<a>", '<"a #-} b">')
    found = weights_in_text(text.encode(), "x.", "m")
    assert found is not None
    assert found[1] == ["a #-} b"]
    assert found[0].strip().endswith(b"}")


def test_resources_of_other_dialects_are_skipped() -> None:
    # A blob states its alignment and its length; blobs of programs state nothing else.
    blob = written(1) + written(3) + b"abc"
    groups = {7: [(0, 5)], 3: [(1, len(blob)), (2, 0)], 8: [(0, 2)]}
    listed = written(0)
    for dialect, entries in groups.items():
        listed += written(dialect) + written(len(entries))
        listed += b"".join(written(name) + written(size) + b"\0" for name, size in entries)
    weights = _Weights([b"other", b"w", b"elided"], "x.")
    data = b"01234" + blob + b"56"
    weights.take_resources(Section(0, listed), Section(0, data), 3, data)
    assert weights.names == ["w", "elided"]
    assert {number: bytes(x) for number, x in weights.blobs.items()} == {0: b"abc"}
    # A constant is a resource that comes after the resources of all dialects.
    entry = written(18) + written(4) + written(2) + b"de"
    assert weights.replacement(memoryview(entry), False) == written(16) + written(4) + written(4)
    assert bytes(weights.blobs[2]) == b"de"
    assert weights.names == ["w", "elided", None]
    texts = [b"other", b"w", b"elided", b"x.0", b"x.1", b"x.2"]
    assert weights.texts == texts
    nothing = written(0) + b"\0"
    assert weights.offsets(3) == written(0) + b"".join(
        written(dialect) + written(len(names)) + b"".join(written(n) + nothing for n in names)
        for dialect, names in ((7, [0]), (3, [3, 4]), (8, [0]), (3, [5]))
    )


def test_resources_and_constants_in_bytecode(tmp_path: Path) -> None:
    x = np.arange(20_000, dtype=np.float32)
    text = f"""func.func @f() -> (tensor<2xi8>, tensor<20000xf32>) {{
  %0 = stablehlo.constant dense_resource<both_kinds> : tensor<2xi8>
  %1 = stablehlo.constant dense<"0x{x.tobytes().hex().upper()}"> : tensor<20000xf32>
  return %0, %1 : tensor<2xi8>, tensor<20000xf32>
}}
{{-# dialect_resources: {{ builtin: {{ both_kinds: "0x040000000102" }} }} #-}}
"""
    path = tmp_path / "m.mlirbc"
    ir.Module.parse(text, context()).operation.write_bytecode(str(path))
    found = weights_in_bytecode(path.read_bytes(), "x.")
    assert found is not None
    assert found[1][1] is None
    assert str(found[1][0]).startswith("both_kinds")
    small, large = load(path)()
    np.testing.assert_array_equal(small, np.array([1, 2], np.int8))
    np.testing.assert_array_equal(large, x)


@pytest.mark.parametrize("name", ["#x", "#", "#7", "#-1", "#01", "#0x", "#" + "9" * 5000])
@pytest.mark.parametrize("has_constant", [False, True])
def test_what_is_no_name_of_weights_is_refused(name: str, has_constant: bool) -> None:
    constant = f'%c = stablehlo.constant dense<"0x{"01" * 20_000}"> : tensor<20000xi8>\n'
    text = f"""func.func @f() -> tensor<2xi8> {{
  {constant if has_constant else ""}%0 = stablehlo.constant dense_resource<{name}> : tensor<2xi8>
  return %0 : tensor<2xi8>
}}
"""
    with pytest.raises(ParseError, match="is not valid MLIR"):
        parse_module(text)
