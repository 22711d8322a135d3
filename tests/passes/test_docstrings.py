"""Runs the IR before and after that the passes' docstrings show."""

from __future__ import annotations

import inspect
import re

import pytest

from axir.dialect.text.module_reader import parse_module
from axir.passes.framework.base import Pass
from axir.passes.framework.pipeline import run_passes
from axir.passes.framework.registry import find_pass, pass_names

EXAMPLE = re.compile(
    r"^Before:\n    ```mlir\n(?P<before>.*?)    ```\n"
    r"After(?: `(?P<pipeline>[^`]*)`)?:\n    ```mlir\n(?P<after>.*?)    ```$",
    re.MULTILINE | re.DOTALL,
)
# Passes over the jaxpr dialect show whole functions; those over StableHLO may abbreviate.
MUST_SHOW_AN_EXAMPLE = {
    "grad",
    "jvp",
    "linearize",
    "lower-to-stablehlo",
    "raise-stablehlo",
    "simplify",
    "transpose",
    "vmap",
}


def example_of(found: type[Pass]) -> re.Match[str] | None:
    return EXAMPLE.search(inspect.getdoc(found) or "")


def module_text(code: str, arguments: str, results: str) -> str:
    """Returns a module: the code itself, or its ops as the body of a function."""
    if "func.func" in code:
        return code
    last = re.findall(r"^\s*(%\w+) =", code, re.MULTILINE)[-1]
    return f"func.func @main({arguments}) -> {results} {{\n{code}\n  return {last} : {results}\n}}"


def types_of_first_op(code: str) -> tuple[str, str]:
    """Returns the operands with their types, and the result type, of `%0 = "op"(%x) : ...`."""
    match = re.search(r'"\((?P<operands>[^)]*)\).*?: \((?P<types>.*?)\) -> (?P<result>\S+)', code)
    if match is None:
        return "", ""
    operands = match["operands"].split(", ")
    kinds = match["types"].split(", ")
    pairs = zip(operands, kinds, strict=True)
    return ", ".join(f"{name}: {kind}" for name, kind in pairs), match["result"]


def normalized(text: str) -> str:
    """Returns a module as MLIR prints it, with its own names of values."""
    return str(parse_module(text))


@pytest.mark.parametrize("name", pass_names())
def test_example_of_docstring(name: str) -> None:
    found = find_pass(name)
    example = example_of(found)
    if example is None:
        assert name not in MUST_SHOW_AN_EXAMPLE
        assert "efore" in (inspect.getdoc(found) or ""), f"{name} shows no IR before and after"
        return
    signature = types_of_first_op(example["before"])
    module = parse_module(module_text(example["before"], *signature))
    run_passes(module, example["pipeline"] or name)
    assert normalized(str(module)) == normalized(module_text(example["after"], *signature))
