"""Programs that need no legalization, because the cache has the program of an equal module."""

from __future__ import annotations

import logging
import sys

import pytest
from iree.compiler import ir

from axir.dialect.core.config import config
from axir.dialect.core.context import context
from axir.runtime import Target
from axir.runtime.compiler import compilation, compile_legalized
from axir.runtime.compiler.cache import program_cache

TEXT = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = stablehlo.{op} %x : tensor<4xf32> loc("{file}":1:1)
  return %0 : tensor<4xf32>
}}
"""


class Legalization:
    """Counts how often it is asked for; turns a module's negation into the absolute value."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, module: ir.Module) -> None:
        self.count += 1
        negation = module.body.operations[0].regions[0].blocks[0].operations[0]
        with ir.InsertionPoint(negation), ir.Location.unknown(module.context):
            operand = negation.operands[0]
            new = ir.Operation.create("stablehlo.abs", [operand.type], [operand])
        negation.results[0].replace_all_uses_with(new.result)
        negation.operation.erase()


@pytest.fixture
def legalize(tmp_path):
    config.update("axir_cache_dir", str(tmp_path))
    return Legalization()


def compiled(legalize: Legalization, file: str = "a.py", **options: bool) -> bytes:
    module = ir.Module.parse(TEXT.format(op="negate", file=file), context())
    return compile_legalized(module, Target(**options), "main", legalize)


def test_an_equal_module_is_legalized_once(legalize, monkeypatch):
    binary = compiled(legalize)
    monkeypatch.setattr(compilation, "_compile", None)  # the cache must suffice
    assert compiled(legalize) == binary
    assert compiled(legalize, file="b.py") == binary
    assert legalize.count == 1
    # Another version of axir may compile it to another program: here it is the same.
    monkeypatch.setattr(compilation, "code_fingerprint", lambda: "other")
    assert compiled(legalize) == binary
    assert legalize.count == 2
    # The first module's program is gone, and so is its entry by the module's text.
    for entry in program_cache().directory.iterdir():
        if len(entry.read_bytes()) > 1000:
            entry.unlink()
    with pytest.raises(TypeError):
        compiled(legalize)
    assert legalize.count == 3


def test_who_wants_to_see_passes_gets_them(legalize, tmp_path, caplog):
    binary = compiled(legalize)
    with caplog.at_level(logging.INFO, "axir.passes"):
        assert compiled(legalize) == binary
    config.update("axir_dump_dir", str(tmp_path / "dump"))
    assert compiled(legalize) == binary
    assert legalize.count == 3
    assert "stablehlo.abs" in next((tmp_path / "dump").glob("*.mlir")).read_text()


def test_the_code_is_told_by_its_files(tmp_path):
    fingerprints = sys.modules["axir.runtime.compiler.cache"]
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "a.py").write_text("1")
    (tmp_path / "notes.txt").write_text("1")
    before = list(fingerprints._sources(str(tmp_path)))
    assert len(before) == 1
    (tmp_path / "room" / "a.py").write_text("12")
    assert list(fingerprints._sources(str(tmp_path))) != before
