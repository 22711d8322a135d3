"""Modules edited by hand: errors with the line of the text and the way out."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import axir
import axir.numpy as jnp
from axir import lax
from axir.cli import cli
from axir.dialect.text.text_positions import without_locations
from axir.export import export

X = np.ones((4, 3), np.float32)


def program(xs: Any, carry: Any) -> Any:
    def body(c: Any, row: Any) -> Any:
        c = jnp.tanh(c * row)
        return c, c.sum()

    return lax.scan(body, carry, xs)


def custom(rows: Any, x: Any) -> Any:
    tangent = axir.custom_jvp(lambda x: jnp.sin(x) * 2)
    tangent.defjvp(lambda p, t: (tangent(*p), 2 * tangent(*p) * t[0]))
    cotangent = axir.custom_vjp(jnp.sin)
    cotangent.defvjp(lambda x: (cotangent(x), x), lambda r, ct: (3 * r * ct,))
    indexed = rows[jnp.array([0, 2])].sum(0)
    chosen = lax.cond(x[0] > 0, lambda: cotangent(x), lambda: x.at[0].set(1.0))
    return axir.checkpoint(tangent)(x), chosen + indexed, jnp.sort(x)


@pytest.fixture(scope="module")
def text() -> str:
    return export(axir.jit(program))(X, X[0]).mlir_module()


def message_of(path: Path, text: str) -> str:
    """Returns the command's error for an edited module, which it must refuse."""
    path.write_text(text)
    result = CliRunner().invoke(cli, ["opt", str(path)], prog_name="axir")
    assert result.exit_code == 1, result.output
    assert "This is a fault of axir itself" not in result.stderr
    return result.stderr


def line_with(text: str, part: str) -> int:
    return next(n for n, line in enumerate(text.splitlines(), 1) if part in line)


def without_line(text: str, part: str) -> str:
    lines = text.splitlines()
    del lines[line_with(text, part) - 1]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("pattern", "replacement", "expected", "way_out"),
    [
        (r"jaxpr\.tanh", "jaxpr.tahn", "Op 'jaxpr.tahn' is not one", "Did you mean jaxpr.tan"),
        (r"length = 4", "length = 9", "must all have a first axis of extent length=9", ""),
        (r"length = 4 : i64", 'length = "4"', "'length' must be an integer such as 2 : i64", ""),
        (r"reverse = false", 'reverse = "no"', "'reverse' must be true or false", "Correct it"),
        (r"reverse = false, ", "", "the attribute 'reverse' is missing", "It has jaxpr, length"),
        (r"unroll = 1 : i64", "unrol = 1 : i64", "there is no attribute 'unrol'",
         "Did you mean 'unroll'?"),
        (r"jaxpr = @\w+", "jaxpr = @nowhere", "The module has no function @nowhere",
         "Correct the name, or add the function"),
        (r"jaxpr = @\w+", 'jaxpr = "body"', "must be the name of a function such as @body", ""),
        (r"array<i64: 0>", "array<i32: 0>", "array<i32: 0> is not the form of any parameter",
         "array<i64: 0, 1>"),
    ],
)  # fmt: skip
def test_wrong_ops_name_the_line_of_the_text_and_that_of_the_source(
    text: str, tmp_path: Path, pattern: str, replacement: str, expected: str, way_out: str
) -> None:
    edited = re.sub(pattern, replacement, text, count=1)
    line = line_with(edited, re.sub(r"\\.", ".", replacement) or '"jaxpr.scan"')
    message = message_of(tmp_path / "edited.mlir", edited)
    assert expected in message
    assert way_out in message
    assert re.search(
        rf"  at \S*edited\.mlir:{line}, which comes from \S*{Path(__file__).name}:\d+", message
    )


@pytest.mark.parametrize(
    ("change", "expected", "way_out"),
    [
        (lambda t: without_line(t, '"jaxpr.tanh"'), "use of undeclared SSA value",
         "Define the value above its use"),
        (lambda t: re.sub(r'("jaxpr\.tanh".*-> tensor<)3', r"\g<1>4", t),
         "expects different type than prior uses", "Write one type wherever the value occurs"),
        (lambda t: t.replace("}", "", 1), "expected '}'", "a bracket, a comma or a quote"),
        (lambda t: t[: len(t) // 2], "is not valid MLIR", ""),
    ],
)  # fmt: skip
def test_what_is_no_mlir_names_its_line(
    text: str, tmp_path: Path, change: Any, expected: str, way_out: str
) -> None:
    message = message_of(tmp_path / "edited.mlir", change(text))
    assert expected in message
    assert way_out in message
    assert re.search(r": line (\d+): .*\n.*\n +\^\n  at \S*edited\.mlir:\1:\d+\n", message)


def test_a_function_without_its_return(text: str, tmp_path: Path) -> None:
    lines = text.splitlines()
    del lines[line_with(text, "    return ") - 1]
    message = message_of(tmp_path / "edited.mlir", "\n".join(lines))
    assert "@main does not end in a return" in message
    assert f"edited.mlir:{line_with(text, '@main(')}, which" in message
    assert "return %0 : tensor<f32>" in message


def with_main(body: str, attributes: str = "", argument: str = "") -> str:
    return (
        f"func.func @main(%x: tensor<3xf32>{argument}) -> tensor<3xf32>{attributes} {{\n"
        f"  {body}\n  return %r : tensor<3xf32>\n}}\n"
    )


SINE = '%r = "jaxpr.sin"(%x) : (tensor<3xf32>) -> tensor<3xf32>'
CONSTANT = '%r = "jaxpr.constant"() {{value = {}}} : () -> tensor<3xf32>'


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (with_main('%r = "jaxpr.integer_pow"(%x) {y = 2.5} : (tensor<3xf32>) -> tensor<3xf32>'),
         "the attribute 'y' must be an integer"),
        (with_main('%r = "jaxpr.sin"(%x) {fast} : (tensor<3xf32>) -> tensor<3xf32>'),
         "there is no attribute 'fast'.\n  at hand.mlir:2\n  It has none."),
        (with_main('%r = "jaxpr.sin"(%x) ({ "jaxpr.cos"() : () -> () }) : (tensor<3xf32>) -> '
                   "tensor<3xf32>"), "ops of the dialect have none"),
        (with_main('%r = "jaxpr.round"(%x) {rounding_method = "up"} : (tensor<3xf32>) -> '
                   "tensor<3xf32>"), "rounding_method"),
        (with_main(CONSTANT.format('"a"')),
         '"a" is no array of numbers.\n  at hand.mlir:2\n  Write value'),
        (with_main(CONSTANT.format("dense<[1.0, 2.0]> : tensor<3xf32>")),
         "at hand.mlir:2:36\n  Write as many elements as the type has"),
        (with_main(CONSTANT.format("dense<1.0> : tensor<2xf32>")),
         "holds float32[2].\n  at hand.mlir:2\n  Write one type"),
        (with_main(CONSTANT.format("dense<1> : tensor<3xf32>")), "Write 1.0, not 1."),
        (with_main('"jaxpr.sin"(%x) : (tensor<3xf32>) -> ()').replace("%r :", "%x :"),
         "gives float32[3], not no result"),
        (with_main(SINE, argument=" {jaxpr.name = 3}"),
         "the attribute jaxpr.name must be a text in quotes, not 3 : i64.\n  at hand.mlir:1"),
        (with_main(SINE, ' attributes {jaxpr.in_tree = "((0, 1), {})"}'),
         "@main: the function has 1 values, which are not the leaves of ((0, 1), {})"),
        (with_main(SINE, " attributes {jaxpr.in_tree = 3}"), "jaxpr.in_tree must be a text"),
    ],
)  # fmt: skip
def test_written_by_hand(tmp_path: Path, module: str, expected: str) -> None:
    path = tmp_path / "hand.mlir"
    assert expected in message_of(path, module).replace(str(path), "hand.mlir")


def mutations(text: str, count: int) -> Iterator[str]:
    """Yields texts with one or two accidents: lines lost, words exchanged, attributes changed."""
    generator = random.Random(0)
    values = ['"x"', "3 : i64", "-1 : i64", "true", "unit", "[1]", "array<i64: 0, 1>", "f32", "1.5"]
    values += ["@main", "{a = 1 : i64}", "dense<1> : tensor<2xi32>", "array<i64>"]
    types = ["tensor<f32>", "tensor<2x2xi32>", "tensor<?xf32>", "f32", "tensor<0xf32>"]

    def choose(pattern: str, text: str) -> tuple[str, str, str]:
        found = generator.choice(list(re.finditer(pattern, text)) or [re.compile("").match(text)])
        return text[: found.start()], found[0], text[found.end() :]

    def mutate(text: str) -> str:
        kind = generator.randrange(6)
        if kind == 0:
            before, _, after = choose(r"(?m)^.*\n", text)
            return before + after
        if kind == 1:
            before, line, after = choose(r"(?m)^.*\n", text)
            return before + line + line + after
        if kind == 2:
            before, _, after = choose(r"[A-Za-z_@][\w.]*", text)
            return before + choose(r"[A-Za-z_@][\w.]*", text)[1] + after
        if kind == 3:
            before, attribute, after = choose(r"\b\w+ = [^,{}\[\]]+(?=[,}])", text)
            return f"{before}{attribute.split(' = ')[0]} = {generator.choice(values)}{after}"
        if kind == 4:
            before, _, after = choose(r"tensor<[^>]*>", text)
            return before + generator.choice(types) + after
        before, _, after = choose(r"(?<=: )-?\d+|\b\d+\b", text)
        return before + generator.choice(["0", "7", "-1", "99999999999"]) + after

    for _ in range(count):
        mutated = mutate(text)
        yield mutate(mutated) if generator.random() < 0.3 else mutated


@pytest.mark.parametrize("program", [program, custom])
def test_whatever_is_done_to_a_text_is_no_fault_of_axir(program: Any, tmp_path: Path) -> None:
    text = export(axir.jit(program))(X, X[0]).mlir_module()
    path = tmp_path / "mutated.mlir"
    for mutated in mutations(text, 120):
        path.write_text(mutated)
        result = CliRunner().invoke(cli, ["opt", str(path), "-p", "simplify"], prog_name="axir")
        assert "This is a fault of axir itself" not in result.stderr, f"{result.stderr}\n{mutated}"
        assert result.exit_code in (0, 1)


def test_modules_from_stdin_have_lines(text: str) -> None:
    edited = text.replace("length = 4", "length = 9", 1)
    result = CliRunner().invoke(cli, ["opt", "-"], input=edited, prog_name="axir")
    assert f"at <stdin>:{line_with(edited, 'length = 9')}, which comes from" in result.stderr


def test_locations_are_taken_out_of_text() -> None:
    text = (
        '#loc1 = loc("a (b".py":1:0)\n'
        'func.func @f(%x: f32 loc("x")) { // loc(here)\n'
        '  "t.op"(%x) {name = "loc(kept)"} : (f32) -> () loc(callsite("f"("a.py":1:2) at #loc1))\n'
        "} loc(#loc1)\n"
    ).replace('(b"', "(b")
    assert without_locations(text) == (
        "\n"
        "func.func @f(%x: f32 ) { // loc(here)\n"
        '  "t.op"(%x) {name = "loc(kept)"} : (f32) -> () \n'
        "} \n"
    )
