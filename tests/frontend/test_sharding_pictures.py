"""How arrays and values of programs lie, as shardings and as pictures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import axir
import axir.numpy as jnp
from axir import P
from axir.cli import cli
from axir.dialect.core.errors import ParameterError, ShapeError
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.function_tracing import trace_function
from axir.passes.partition.partition import partition_function
from axir.sharding import AbstractMesh, NamedSharding, SingleDeviceSharding

MESH = AbstractMesh((2, 2), ("x", "y"))
MODULE = Path(__file__).parent.parent / "filecheck" / "partition.mlir"


def test_boxes(capsys: pytest.CaptureFixture[str]) -> None:
    axir.debug.visualize_sharding((4, 4), NamedSharding(MESH, P("y", "x")))
    assert capsys.readouterr().out.split("\n")[1:4] == ["│ 0 │ 2 │", "├───┼───┤", "│ 1 │ 3 │"]
    axir.debug.visualize_array_sharding(jnp.ones(3))
    assert "│ CPU 0 │" in capsys.readouterr().out
    with pytest.raises(ParameterError, match="one or two dimensions, not of shape"):
        axir.debug.visualize_sharding((1, 1, 1), NamedSharding(MESH, P()))
    with pytest.raises(ShapeError, match="cuts dimension 0 into 2 parts"):
        axir.debug.visualize_sharding((3,), NamedSharding(MESH, P("x")))


def test_values_of_programs(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        axir.debug.inspect_array_sharding(x + 1, callback=seen.append)
        axir.debug.visualize_array_sharding(x)
        return x * 2

    np.testing.assert_array_equal(axir.jit(f)(np.ones((2, 2))), 2)
    assert seen == [SingleDeviceSharding(axir.devices()[0])]
    assert "│ CPU 0 │" in capsys.readouterr().out
    seen.clear()
    function = trace_function(lambda x: [f(x)], [ShapedArray((4, 4), np.float32)])
    partition_function(function, (("x", 2), ("y", 2)), [((), ("y",))])
    assert seen == [NamedSharding(MESH, P(None, "y"))]
    assert capsys.readouterr().out.split("\n")[1] == "│ 0,2 │ 1,3 │"
    np.testing.assert_array_equal(axir.grad(lambda x: f(x).sum())(np.ones((2, 2))), 2)


def test_inspect_tells_what_is_cut_and_what_moves() -> None:
    options = ["inspect", str(MODULE), "--mesh", "data=2,model=2", "--inputs"]
    layouts = "data, -; -, model; model, -"
    printed = CliRunner().invoke(cli, [*options, layouts]).output
    assert "  inputs    data, -; -, model; model, -\n  outputs   data, -\n" in printed
    assert "psum            model: float32[4,3], 48 bytes  " in printed
    described = json.loads(CliRunner().invoke(cli, [*options, layouts, "--json"]).output)
    (moved,) = described["functions"]["main"]["partition"]["communications"]
    assert (moved["op"], moved["axes"], moved["times"]) == ("psum", ["model"], 1)
    failed = CliRunner().invoke(cli, [*options, "data, -"])
    assert failed.exit_code != 0
    assert "there are 1 layouts for 3 arguments" in failed.output
