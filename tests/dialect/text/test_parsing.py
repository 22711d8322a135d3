"""Texts and bytecode that would crash the parser."""

from __future__ import annotations

import pytest

from axir.dialect.core.errors import ParseError
from axir.dialect.text.parsing import parse_module, read_file

FUNCTION = "func.func private @f() attributes {{a = {}}}"


@pytest.mark.parametrize(
    "text",
    [
        FUNCTION.format("[" * 100_000 + "]" * 100_000),
        FUNCTION.format("[" * 100_000),
        FUNCTION.format(")" * 100_000 + "[" * 100_000),
        FUNCTION.format(f"affine_map<(d0) -> ({'- ' * 100_000}d0)>"),
        "func.func private @f(" + "tuple<" * 50_000 + "f32" + ">" * 50_000 + ")",
        '"a.b"() ({' * 50_000 + "}) : () -> ()\n" * 50_000,
    ],
)
def test_text_nested_too_deeply_is_an_error(text, tmp_path):
    message = "nests brackets or signs more than 1,000 deep"
    with pytest.raises(ParseError, match=f"model {message}") as caught:
        parse_module(text, "model")
    assert "Close brackets" in caught.value.way_out
    file = tmp_path / "model.mlir"
    file.write_text(text)
    with pytest.raises(ParseError, match=f"model.mlir {message}"):
        read_file(file)


def test_what_only_looks_nested_is_read():
    deep = "[" * 400 + "]" * 400
    quoted = '"' + "(" * 2000 + '"'
    for attribute in (deep, quoted, "[" + "[], " * 5000 + "[]]", "() -> ()"):
        parse_module(f"// {'-' * 2000} {'{' * 2000}\n" + FUNCTION.format(attribute))


def test_bytecode_with_a_name_that_is_no_text_is_an_error(tmp_path):
    file = tmp_path / "model.mlirbc"
    with file.open("wb") as stream:
        parse_module('"abc.first"() : () -> ()').operation.write_bytecode(stream)
    damaged = file.read_bytes().replace(b"abc", b"a\xffc")
    with pytest.raises(ParseError):
        parse_module(damaged, "model")
