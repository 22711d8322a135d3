"""`separate-dispatches`: the rows of its table, and the values that get a barrier.

Elsewhere: the values of programs that are wrong without a row (`test_slice_before_gather.py` and
its neighbours with names of rows), and the rows for GPUs on their devices (`tests/gpu`).
"""

from __future__ import annotations

import pytest
from iree.compiler import ir
from support.stablehlo_runner import parse

from axir.passes.framework.errors import OptionValueError
from axir.passes.framework.pipeline import run_passes
from axir.passes.legalize.buffers import separate_dispatches
from axir.passes.legalize.buffers.dispatch_rows import ROWS, Row
from axir.passes.legalize.legalize_for_iree import LegalizeForIree
from axir.passes.legalize.rewriting import operations_in_order
from axir.passes.legalize.stages import GPUS, operation_names
from axir.runtime import CompileError, Target, compile_module

PLATFORMS = ("cpu", "vmvx", *GPUS)
IDS = [row.name for row in ROWS]


def barriers_after(text: str, row: str) -> int:
    """Returns the number of barriers that a row puts into a module."""
    module = parse(text)
    run_passes(module, f"separate-dispatches{{row={row}}}")
    assert module.operation.verify()
    return str(module).count("stablehlo.optimization_barrier")


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_the_smallest_module_needs_one_barrier(row: Row) -> None:
    assert barriers_after(row.smallest, row.name) == 1


@pytest.mark.parametrize("row", ROWS, ids=IDS)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_row_runs_on_its_platforms(row: Row, platform: str) -> None:
    module = parse(row.smallest)
    run_passes(module, f"separate-dispatches{{platform={platform}}}")
    found = operations_in_order(module.operation, ("stablehlo.optimization_barrier",))
    others = [x for x in ROWS if x != row and x.is_on(platform)]
    expected = row.is_on(platform) or any(barriers_after(row.smallest, x.name) for x in others)
    assert bool(found) == expected


@pytest.mark.parametrize("row", ROWS, ids=IDS)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_legalization_looks_for_the_operations_of_a_row(row: Row, platform: str) -> None:
    """A module without any of the operations of a row has no work for it."""
    stage = LegalizeForIree(platform=platform).stages()["separate-dispatches"]
    module = parse(row.smallest)
    if row.is_on(platform):
        assert stage.finds_work(module, operation_names(module))
    wanted = {*stage.operations, *(name for x in stage.also for name in x.operations)}
    assert row.operations <= wanted or not row.is_on(platform)


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_row_does_not_search_without_its_operations(
    row: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    def search(_: object) -> None:
        raise AssertionError("a search without operations")

    fails = [Row(row.name, row.at, search, row.fact, row.smallest)]  # type: ignore[arg-type]
    monkeypatch.setattr(separate_dispatches, "ROWS", fails)
    without = "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"
    assert barriers_after(without, row.name) == 0
    with pytest.raises(AssertionError):
        barriers_after(row.smallest, row.name)


def test_the_module_is_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    walks: list[ir.Operation] = []

    class Counted(separate_dispatches.Operations):
        def __init__(self, root: ir.Operation, names: frozenset[str]) -> None:
            walks.append(root)
            super().__init__(root, names)

    monkeypatch.setattr(separate_dispatches, "Operations", Counted)
    run_passes(parse(ROWS[0].smallest), "separate-dispatches{platform=vulkan}")
    assert len(walks) == 1


def test_rows_have_different_names_and_state_a_fact() -> None:
    assert len(set(IDS)) == len(ROWS)
    assert all(row.fact.endswith(".") and "  " not in row.fact for row in ROWS)


def test_a_row_that_does_not_exist() -> None:
    with pytest.raises(OptionValueError) as caught:
        run_passes(parse(ROWS[0].smallest), "separate-dispatches{row=slices}")
    assert "the pass 'separate-dispatches' has no row 'slices'." in str(caught.value)
    assert "Its rows are: slice-before-scatter, positions-beside-reduction" in str(caught.value)


SUM = """
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [{axis}]
    : (tensor<16x16xf32>, tensor<f32>) -> tensor<16xf32>
  %root = stablehlo.sqrt %sum : tensor<16xf32>
"""
PRODUCT = """
  %sum = stablehlo.dot_general %v, %x, contracting_dims = [0] x [{axis}]
    : (tensor<16xf32>, tensor<16x16xf32>) -> tensor<16xf32>
  %root = stablehlo.sqrt %sum : tensor<16xf32>
"""
CALL = "%root = func.call @g(%v) : (tensor<16xf32>) -> tensor<16xf32>"
ALONE = "%root = stablehlo.sqrt %v : tensor<16xf32>"
BROADCAST = """
func.func @f(%x: tensor<16x16xf32>, %v: tensor<16xf32>) -> tensor<16x16xf32> {{
  {root}
  %spread = stablehlo.broadcast_in_dim %root, dims = [{place}]
    : (tensor<16xf32>) -> tensor<16x16xf32>
  %result = stablehlo.subtract %x, %spread : tensor<16x16xf32>
  return %result : tensor<16x16xf32>
}}
func.func private @g(%v: tensor<16xf32>) -> tensor<16xf32> {{ return %v : tensor<16xf32> }}
"""


def program(root: str, axis: int, place: int) -> str:
    return BROADCAST.format(root=root.format(axis=axis), place=place)


@pytest.mark.parametrize(
    ("root", "axis", "place", "is_stored"),
    [
        (SUM, 0, 1, True),
        (SUM, 1, 0, False),
        (PRODUCT, 0, 1, True),
        (CALL, 0, 1, True),
        (ALONE, 0, 1, False),
    ],
)
def test_reductions_that_are_broadcast_to_rows(
    root: str, axis: int, place: int, is_stored: bool
) -> None:
    text = program(root, axis, place)
    assert barriers_after(text, "reduction-before-broadcast") == is_stored


MASK = """
func.func @f(%x: tensor<8x64xf32>, %v: tensor<8xi32>) -> (tensor<8xf32>, tensor<4xi32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<8x64xf32>
  %places = stablehlo.iota dim = 1 : tensor<8x64xi32>
  %labels = stablehlo.broadcast_in_dim %v, dims = [0] : (tensor<8xi32>) -> tensor<8x64xi32>
  %is_label = stablehlo.compare EQ, %places, %labels
    : (tensor<8x64xi32>, tensor<8x64xi32>) -> tensor<8x64xi1>
  %chosen = stablehlo.select %is_label, %x, %zeros : tensor<8x64xi1>, tensor<8x64xf32>
  %sum = stablehlo.reduce(%chosen init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<8x64xf32>, tensor<f32>) -> tensor<8xf32>
  %others = stablehlo.iota dim = 0 : tensor<4xi32>
  %twice = stablehlo.add %others, %others : tensor<4xi32>
  return %sum, %twice : tensor<8xf32>, tensor<4xi32>
}
"""


def test_positions_beside_a_reduction_are_stored() -> None:
    module = parse(MASK)
    run_passes(module, "separate-dispatches{row=positions-beside-reduction}")
    text = str(module)
    assert text.count("optimization_barrier") == 1
    assert "stablehlo.iota dim = 0 : tensor<64xi32>" in text
    assert "stablehlo.iota dim = 0 : tensor<4xi32>" in text
    assert compile_module(module, Target("vulkan"), "positions")


def test_positions_are_still_to_be_stored() -> None:
    with pytest.raises(CompileError, match="failed to legalize operation 'memref.alloc'"):
        compile_module(parse(MASK), Target("vulkan"), "positions")


WIDENED = """
func.func @f(%x: tensor<8x4xf16>, %w: tensor<8x4xf32>, %m: tensor<8x4xi1>, %b: tensor<4xf16>)
    -> (tensor<8x4xf32>, tensor<4xf32>) {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  {shared}
  %reduced = {reduced}
  %sum = stablehlo.reduce(%reduced init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
  return {returned}, %sum : tensor<8x4xf32>, tensor<4xf32>
}}
"""
WIDE = "%y = stablehlo.convert %x : (tensor<8x4xf16>) -> tensor<8x4xf32>"
SAME = "%y = stablehlo.sqrt %w : tensor<8x4xf32>"
SCALED = """
  %c = stablehlo.convert %x : (tensor<8x4xf16>) -> tensor<8x4xf32>
  %y = stablehlo.add %c, %c : tensor<8x4xf32>
"""
CHOSEN = """
  %all = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
  %y = stablehlo.select %m, %all, %all : tensor<8x4xi1>, tensor<8x4xf32>
"""
BIAS = """
  %c = stablehlo.convert %b : (tensor<4xf16>) -> tensor<4xf32>
  %rows = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<4xf32>) -> tensor<8x4xf32>
  %y = stablehlo.add %w, %rows : tensor<8x4xf32>
"""
DIRECT = "stablehlo.negate %y : tensor<8x4xf32>"
ELSEWHERE = "stablehlo.negate %w : tensor<8x4xf32>"


@pytest.mark.parametrize(
    ("shared", "reduced", "returned", "is_stored"),
    [
        pytest.param(WIDE, DIRECT, "%y", True, id="converted"),
        pytest.param(SCALED, DIRECT, "%y", True, id="computed of what is converted"),
        pytest.param(CHOSEN, DIRECT, "%y", True, id="chosen by truth values"),
        pytest.param(WIDE, DIRECT, "%w", False, id="used once"),
        pytest.param(SCALED, DIRECT, "%w", False, id="used twice by one operation"),
        pytest.param(WIDE, ELSEWHERE, "%y", False, id="not reduced"),
        pytest.param(SAME, DIRECT, "%y", False, id="no wider"),
        pytest.param(BIAS, DIRECT, "%y", False, id="wider than a row only"),
    ],
)
def test_widened_values_that_are_reduced(
    shared: str, reduced: str, returned: str, is_stored: bool
) -> None:
    text = WIDENED.format(shared=shared, reduced=reduced, returned=returned)
    assert barriers_after(text, "widening-before-reduction") == is_stored


SQUARE = """
func.func @f(%x: tensor<4x4xi8>) -> tensor<4x4xi32> {
  %y = stablehlo.convert %x : (tensor<4x4xi8>) -> tensor<4x4xi32>
  %0 = stablehlo.dot_general %y, %y, contracting_dims = [1] x [1]
    : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi32>
  return %0 : tensor<4x4xi32>
}
"""


def test_both_operands_of_a_product_are_stored_once() -> None:
    assert barriers_after(SQUARE, "widening-before-reduction") == 1


TWICE = """
func.func @f(%x: tensor<4x4xi8>) -> (tensor<4x4xi32>, tensor<4x4xi32>) {
  %y = stablehlo.convert %x : (tensor<4x4xi8>) -> tensor<4x4xi32>
  %z = stablehlo.convert %x : (tensor<4x4xi8>) -> tensor<4x4xi32>
  %0 = stablehlo.dot_general %y, %z, contracting_dims = [1] x [1]
    : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi32>
  return %0, %z : tensor<4x4xi32>, tensor<4x4xi32>
}
"""


def test_equal_conversions_are_one() -> None:
    module = parse(TWICE)
    run_passes(module, "separate-dispatches{row=widening-before-reduction}")
    assert str(module).count("stablehlo.convert") == 1
    assert str(module).count("stablehlo.optimization_barrier") == 1


HALF, FULL, PART = "tensor<8x4xf16>", "tensor<8x4xf32>", "tensor<8x2xf32>"
SLICE = f"stablehlo.slice %y [0:8, 0:2] : ({FULL}) -> {PART}"
VIEW = f"""stablehlo.transpose %y, dims = [1, 0] : ({FULL}) -> tensor<4x8xf32>
  %t = stablehlo.reverse %r, dims = [0] : tensor<4x8xf32>"""


@pytest.mark.parametrize(
    ("source", "use", "is_stored"),
    [
        pytest.param(HALF, SLICE, True, id="taken apart"),
        pytest.param(HALF, VIEW, True, id="moved by a view"),
        pytest.param(HALF, f"stablehlo.negate %y : {FULL}", False, id="computed with"),
        pytest.param("tensor<8x4xi8>", SLICE, False, id="integers"),
        pytest.param("tensor<8x4xf64>", SLICE, False, id="narrowed"),
    ],
)
def test_widened_floats_that_are_moved(source: str, use: str, is_stored: bool) -> None:
    text = f"""func.func @f(%x: {source}) -> {FULL} {{
      %y = stablehlo.convert %x : ({source}) -> {FULL}
      %r = {use}
      return %y : {FULL} }}"""
    assert barriers_after(text, "widening-before-move") == is_stored
