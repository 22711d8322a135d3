"""Weights of modules: taken out of text and bytecode, found beside them, refused if damaged."""

from __future__ import annotations

import os
import re
import struct
import threading
from pathlib import Path

import numpy as np
import pytest
from iree.compiler import ir

from axir.dialect.core.context import context
from axir.dialect.core.errors import ParseError, WeightsError
from axir.dialect.text import resources
from axir.dialect.text.parsing import parse_module, read_file
from axir.dialect.text.resources import (
    name_constants,
    resource_array,
    resource_name,
    resources_of,
    write_out,
)
from axir.export import load

MODULE = """func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<3xi1>) {{
  %w = stablehlo.constant dense_resource<{weights}> : tensor<2xf32>
  %m = stablehlo.constant dense_resource<mask> : tensor<3xi1>
  %y = stablehlo.add %x, %w : tensor<2xf32>
  return %y, %m : tensor<2xf32>, tensor<3xi1>
}}
"""
SECTION = """
{{-# dialect_resources: {{ builtin: {{
  {weights}: "0x040000000000803F00000040", mask: "0x01000000010001"
}} }} #-}}
"""


def arrays(module: ir.Module) -> dict[str | None, np.ndarray]:
    """Returns the weights of a module by name."""
    found: dict[str | None, np.ndarray] = {}

    def visit(op: ir.Operation) -> ir.WalkResult:
        if "value" in op.attributes:
            array = resource_array(op.attributes["value"])
            if array is not None:
                found[resource_name(op.attributes["value"])] = array
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def check(found: dict[str | None, np.ndarray], name: str) -> None:
    np.testing.assert_array_equal(found[name], np.array([1, 2], np.float32))
    np.testing.assert_array_equal(found["mask"], [True, False, True])
    assert not found[name].flags.writeable


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("w", "w"),
        ('"a name, {with} signs"', "a name, {with} signs"),
        (r'"Gr\C3\B6\C3\9Fe"', "Größe"),  # as MLIR prints characters beyond ASCII
        ('"Größe"', "Größe"),
        (r'"a\22b\5C"', 'a"b' + "\\"),
        (r'"a\"b\\"', 'a"b' + "\\"),
        ('"#0"', "#0"),
        ('"axir.0.0"', "axir.0.0"),
    ],
)
def test_weights_in_text(written: str, name: str, tmp_path: Path) -> None:
    text = (MODULE + SECTION).format(weights=written)
    for _ in range(2):  # MLIR would rename the second module's weights
        check(arrays(parse_module(text)), name)
    (tmp_path / "m.mlir").write_text(text)
    module = read_file(tmp_path / "m.mlir")
    check(arrays(module), name)
    assert 'm.mlir":3:' in str(
        module.body.operations[0].operation.regions[0].blocks[0].operations[1].location
    )
    write_out(module.operation)
    assert "dense<[1.000000e+00, 2.000000e+00]>" in str(module)
    assert not arrays(module)


def test_weights_in_bytecode_are_mapped(tmp_path: Path) -> None:
    written = ir.Module.parse((MODULE + SECTION).format(weights='"in_bytecöde"'), context())
    written.operation.write_bytecode(str(tmp_path / "m.mlirbc"))
    found = arrays(read_file(tmp_path / "m.mlirbc"))
    name = next(each for each in found if str(each).startswith("in_bytecöde"))
    found["mask"] = found[next(each for each in found if str(each).startswith("mask"))]
    check(found, str(name))
    assert not found[name].flags.owndata
    # Damaged anywhere, it is refused or read, and nothing crashes.
    content = (tmp_path / "m.mlirbc").read_bytes()
    for cut in (20, len(content) // 2, len(content) - 3):
        with pytest.raises(ParseError):
            parse_module(content[:cut])


def test_large_constants_stay_in_their_file(tmp_path: Path) -> None:
    x = np.arange(20_000, dtype=np.float32).reshape(100, 200)
    text = (
        "func.func @main() -> (tensor<100x200xf32>, tensor<20000xi1>) {\n"
        f'  %c = stablehlo.constant dense<"0x{x.tobytes().hex().upper()}"> : tensor<100x200xf32>\n'
        f'  %m = stablehlo.constant dense<"0x{"0100" * 10_000}"> : tensor<20000xi1>\n'
        "  return %c, %m : tensor<100x200xf32>, tensor<20000xi1>\n}\n"
    )
    (tmp_path / "m.mlir").write_text(text)
    module = read_file(tmp_path / "m.mlir")
    assert len(str(module)) < len(text) // 2
    np.testing.assert_array_equal(arrays(module)[None], x)
    ir.Module.parse(text, context()).operation.write_bytecode(str(tmp_path / "m.mlirbc"))
    np.testing.assert_array_equal(load(tmp_path / "m.mlirbc")()[0], x)
    mask = np.asarray(load(tmp_path / "m.mlirbc")()[1])
    np.testing.assert_array_equal(mask, [True, False] * 10_000)


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.mlir")
    text = (MODULE + SECTION).format(weights="w")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe.mlir").write_text(text))
    writer.start()
    check(arrays(read_file(tmp_path / "pipe.mlir")), "w")
    writer.join()


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("", "The weights 'w' are not in m.mlir, and no file beside it has them"),
        (SECTION.replace("00000040", ""), "have 4 bytes, but a float32[2] has 8"),
        (SECTION.replace("0x04", "0x4"), "are not written in pairs of hexadecimal digits"),
        (SECTION.replace("040000000000803F00000040", "04"), "are cut off"),
        (SECTION.replace("0x04", "04"), "'w' is not written in hexadecimal digits"),
        (SECTION.replace("mask:", "{weights}:"), "two have the name 'w'"),
        (SECTION[:-12], "they are cut off"),
        (SECTION.replace('0000010001"', "0000010001"), "they are cut off"),
        (SECTION[:60], "they are cut off"),
        (SECTION.replace("}} }} #-}}", "}} }} }} #-}}"), "that was not opened"),
    ],
)
def test_damaged_weights_are_refused(
    section: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.mlir").write_text(MODULE.format(weights="w") + section.format_map({"weights": "w"}))
    with pytest.raises(WeightsError, match=re.escape(message)):
        load("m.mlir")


def test_elided_weights_are_found_beside_the_module(tmp_path: Path) -> None:
    (tmp_path / "m.mlir").write_text(MODULE.format(weights="w"))
    header = (
        b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},'
        b'"mask":{"dtype":"BOOL","shape":[3],"data_offsets":[8,11]}}'
    )
    content = np.array([1, 2], np.float32).tobytes() + b"\1\0\1"
    beside = tmp_path / "m.safetensors"
    beside.write_bytes(struct.pack("<Q", len(header)) + header + content)
    np.testing.assert_array_equal(load(tmp_path / "m.mlir")(np.ones(2, np.float32))[0], [2, 3])
    beside.write_bytes(b"no weights at all")
    with pytest.raises(WeightsError, match=r"m\.safetensors is not a file of safetensors"):
        load(tmp_path / "m.mlir")
    beside.unlink()
    (tmp_path / "m.irpa").write_bytes(b"no weights at all")
    with pytest.raises(WeightsError, match=r"m\.irpa is not an archive of parameters"):
        load(tmp_path / "m.mlir")
    (tmp_path / "m.mlir").write_text(MODULE.format(weights="__elided__"))
    (tmp_path / "m.irpa").unlink()
    with pytest.raises(WeightsError, match="was printed without its weights"):
        load(tmp_path / "m.mlir")


def test_weights_beside_the_module_have_its_types(tmp_path: Path) -> None:
    (tmp_path / "m.mlir").write_text(MODULE.format(weights="w"))
    mask = '"mask":{"dtype":"BOOL","shape":[3],"data_offsets":[8,11]}'
    for dtype, shape, found in (
        ("I32", "[2]", "int32[2]"),
        ("F32", "[1,2]", "float32[1,2]"),
        ("F32", "[2,1]", "float32[2,1]"),
        ("U8", "[8]", "uint8[8]"),
        ("BF16", "[4]", "bfloat16[4]"),
    ):
        w = f'"w":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[0,8]}}'
        header = f"{{{w},{mask}}}".encode()
        content = struct.pack("<Q", len(header)) + header + bytes(11)
        (tmp_path / "m.safetensors").write_bytes(content)
        message = f"'w' of .*m.mlir are {re.escape(found)} where they lie, but float32.2. in the"
        with pytest.raises(WeightsError, match=message):
            load(tmp_path / "m.mlir")


def test_files_that_nobody_reads_are_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "_archives", {})
    module = parse_module(MODULE.format(weights="w"))
    with pytest.raises(WeightsError, match=r"has them\.\n *Export the module again, with its"):
        write_out(module.operation)


def test_one_resource_of_several_types(tmp_path: Path) -> None:
    content = np.arange(1, 5, dtype=np.float32)
    kinds = "tensor<2x2xf32>, tensor<4xf32>, tensor<4xi32>, tensor<4xf32>"
    module = f"""func.func @net() -> ({kinds}) {{
  %0 = stablehlo.constant dense_resource<w> : tensor<2x2xf32>
  %1 = stablehlo.constant dense_resource<w> : tensor<4xf32>
  %2 = stablehlo.constant dense_resource<w> : tensor<4xi32>
  %3 = stablehlo.constant dense_resource<w> : tensor<4xf32>
  return %0, %1, %2, %3 : {kinds}
}}
{{-# dialect_resources: {{ builtin: {{ w: "0x04000000{content.tobytes().hex()}" }} }} #-}}
"""
    (tmp_path / "m.mlir").write_text(module)
    net = load(tmp_path / "m.mlir")
    assert list(net.parameters) == ["w", "w_1", "w_2"]
    found = net()
    np.testing.assert_array_equal(found[0], content.reshape(2, 2))
    np.testing.assert_array_equal(found[1], content)
    np.testing.assert_array_equal(found[2], content.view(np.int32))
    np.testing.assert_array_equal(found[3], content)


def test_weights_within_attributes_are_written_out() -> None:
    uses = "foo = [dense_resource<w> : tensor<2xf32>, {inner = dense_resource<w> : tensor<2xf32>}]"
    text = (
        (MODULE + SECTION)
        .format(weights="w")
        .replace("stablehlo.add %x, %w", "stablehlo.add %x, %w {" + uses + "}")
    )
    module = parse_module(text)
    write_out(module.operation)
    shown = str(module)
    ir.Module.parse(shown, context())
    assert "dense_resource" not in shown
    assert shown.count("dense<[1.000000e+00, 2.000000e+00]>") == 3


def test_weights_become_parameters(tmp_path: Path) -> None:
    words = np.arange(300, dtype=np.float32).tobytes().hex()
    module = f"""func.func @net(%x: tensor<300xf32>) -> tensor<300xf32> {{
  %w = stablehlo.constant dense_resource<w> : tensor<300xf32>
  %again = stablehlo.constant dense_resource<w> : tensor<300xf32>
  %equal = stablehlo.constant dense_resource<v> : tensor<300xf32>
  %one = stablehlo.constant dense<"0x{words}"> : tensor<300xf32>
  %two = stablehlo.constant dense<"0x{words}"> : tensor<300xf32>
  %splat = stablehlo.constant dense<1.0> : tensor<300xf32>
  %0 = stablehlo.multiply %x, %w : tensor<300xf32>
  %1 = stablehlo.add %0, %again : tensor<300xf32>
  %2 = stablehlo.add %1, %equal : tensor<300xf32>
  %3 = stablehlo.add %2, %one : tensor<300xf32>
  %4 = stablehlo.add %3, %two : tensor<300xf32>
  %5 = stablehlo.add %4, %splat : tensor<300xf32>
  return %5 : tensor<300xf32>
}}
{{-# dialect_resources: {{ builtin: {{ w: "0x04000000{words}", v: "0x04000000{words}" }} }} #-}}
"""
    (tmp_path / "m.mlir").write_text(module)
    net = load(tmp_path / "m.mlir")
    # Weights of two names stay separate although they are equal: training changes them.
    assert (net.fun_name, list(net.parameters)) == ("net", ["w", "v", "constant"])
    net.save(tmp_path / "m.axir")
    changed = load(tmp_path / "m.axir").with_parameters({"v": np.zeros(300, np.float32)})
    x = np.ones(300, np.float32)
    np.testing.assert_array_equal(changed(x), 4 * np.arange(300, dtype=np.float32) + 1)


def test_weights_belong_to_one_module() -> None:
    text = (MODULE + SECTION).format(weights="w")
    first, second = parse_module(text), parse_module(text)
    # MLIR has one hash for both, and another one after an attribute is added.
    assert hash(first) == hash(second)
    kept = resources_of(first)
    assert kept is not None
    assert resources_of(second) is not kept
    assert resources_of(first.operation.clone()) is None
    with context():
        first.operation.attributes["new"] = ir.UnitAttr.get()
    assert resources_of(first) is kept


class CountedName(str):
    """A name that counts how often it is compared with others."""

    count = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        CountedName.count += 1
        return str.__eq__(self, other)


def test_many_constants_get_names_in_a_few_steps_each() -> None:
    number = 300
    lines = [
        f"  %{n} = stablehlo.constant dense<{n // 2}.0> : tensor<2xf32>" for n in range(number)
    ]
    kinds = ", ".join(["tensor<2xf32>"] * number)
    results = ", ".join(f"%{n}" for n in range(number))
    text = "\n".join(lines)
    module = parse_module(
        f"func.func @f() -> ({kinds}) {{\n{text}\n  return {results} : {kinds}\n}}"
    )
    weights = {
        CountedName(f"w{n}"): np.full(2, n // 2, np.float32) for n in reversed(range(number))
    }
    CountedName.count = 0
    name_constants(module, weights, (name for name in [f"w{number - 1}", f"w{number - 2}"]))
    assert CountedName.count < 20 * number
    ops = list(module.body.operations[0].operation.regions[0].blocks[0].operations)[:number]
    names = [resource_name(op.operation.attributes["value"]) for op in ops]
    # Two are equal: each has its own constant. The last ones have no names.
    assert sorted(map(str, names[:-2])) == sorted(f"w{n}" for n in range(number - 2))
    assert [int(str(name)[1:]) // 2 for name in names[:-2]] == [n // 2 for n in range(number - 2)]
    assert names[-2:] == [None, None]
