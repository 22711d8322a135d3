"""Skipped passes would have found no work."""

from __future__ import annotations

import io

import pytest
from iree.compiler import ir
from support.op_cases import cases_of, sampled_ops
from support.stablehlo_runner import parse

from axir.dialect.core.config import config
from axir.dialect.core.errors import HostCallNeededError
from axir.passes.framework.pipeline import run_passes
from axir.passes.framework.registry import find_pass
from axir.passes.legalize import legalize_for_iree as for_iree
from axir.passes.legalize.legalize_for_iree import LegalizeForIree
from axir.passes.legalize.rewriting import RewritePass
from axir.passes.legalize.stages import Stage, looks_for, operation_names, run_stages
from axir.passes.transforms.lower_to_stablehlo import lower_functions
from axir.passes.tune import tune_for_cpu as for_cpu

STAGES = {**for_iree.STAGES, **for_cpu.STAGES}


@pytest.mark.parametrize("name", STAGES)
def test_the_operations_of_a_rewrite_are_looked_for(name: str) -> None:
    found = find_pass(name)
    if issubclass(found, RewritePass):
        assert sorted(STAGES[name].operations) == sorted(found.operations)


@pytest.mark.parametrize("name", sampled_ops())
def test_a_skipped_pass_would_change_nothing(name: str) -> None:
    config.update("jax_enable_x64", True)
    # One sample of each kind of numbers: operations depend mostly on these.
    cases = {tuple(x.dtype.kind for x in case.args): case for case in cases_of(name)}
    functions = {f"{name}_{case.index}": case.function() for case in cases.values()}
    try:
        module = lower_functions(functions)
    except HostCallNeededError:
        module = lower_functions(functions, host_functions=[])
    with module.context, ir.Location.unknown():
        for stages in (LegalizeForIree().stages(), for_cpu.STAGES):
            assert _wrongly_skipped(module, stages) == []


def _wrongly_skipped(module: ir.Module, stages: dict[str, Stage]) -> list[str]:
    """Runs all stages; returns the stages that would be skipped, but change the module."""
    wrong: list[str] = []
    skipped: list[str] = []
    present, before = operation_names(module), _content(module)
    for name, stage in [*stages.items(), ("end", looks_for("func.func"))]:
        if not stage.finds_work(module, present):
            skipped.append(name)
            find_pass(name)().run(module)
            continue
        if skipped and _content(module) != before:
            wrong += skipped
        skipped = []
        if name != "end":
            find_pass(name)().run(module)
            present, before = operation_names(module), _content(module)
    return wrong


def _content(module: ir.Module) -> bytes:
    """The module as bytes, which takes a tenth of the time that its text takes."""
    written = io.BytesIO()
    module.operation.write_bytecode(written)
    return written.getvalue()


TEXT = """
    func.func @f(%x: tensor<4xf32>, %z: tensor<4xcomplex<f32>>) -> tensor<4xf32> {
      %0 = stablehlo.FIRST %x : tensor<4xf32>
      %1 = stablehlo.abs %z : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
      %2 = linalg.generic {
          indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
          iterator_types = ["parallel"]
        } ins(%0 : tensor<4xf32>) outs(%1 : tensor<4xf32>) {
        ^bb0(%in: f32, %out: f32):
          %3 = math.sin %in : f32
          linalg.yield %3 : f32
      } -> tensor<4xf32>
      return %2 : tensor<4xf32>
    }
"""


def test_operations_are_found_in_a_module() -> None:
    module = parse(TEXT.replace("FIRST", "sine"))
    present = operation_names(module)
    assert {"func.func", "stablehlo.sine", "linalg.generic", "func.return"} <= present
    assert "math.sin" not in present
    assert looks_for("cosine sine").finds_work(module, present)
    assert not looks_for("cosine chlo.tan").finds_work(module, present)
    assert not looks_for("sine", is_complex=True).finds_work(module, present)
    assert looks_for("sine abs", is_complex=True).finds_work(module, present)


def test_a_pass_sees_what_one_before_it_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    class Renames:
        def __init__(self, name: str):
            self.name = name

        def __call__(self, **options: object) -> Renames:
            return self

        def run(self, module: ir.Module) -> None:
            ran.append(self.name)
            (sine,) = (
                op
                for op in module.body.operations[0].regions[0].blocks[0].operations
                if op.operation.name == "stablehlo.sine"
            )
            operand = sine.operands[0]
            with ir.InsertionPoint(sine), sine.location:
                made = ir.Operation.create("stablehlo.cosine", [operand.type], [operand])
            sine.results[0].replace_all_uses_with(made.result)
            sine.erase()

    module = parse(TEXT.replace("FIRST", "sine"))
    monkeypatch.setattr("axir.passes.legalize.stages.find_pass", Renames)
    run_stages(module, {"a": looks_for("tan"), "b": looks_for("sine"), "c": looks_for("sine")}, {})
    assert ran == ["b"]


def test_small_programs_meet_few_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []

    def find(name: str) -> type:
        found.append(name)
        return find_pass(name)

    monkeypatch.setattr("axir.passes.legalize.stages.find_pass", find)
    run_passes(parse(TEXT.replace("FIRST", "tanh")), "legalize-for-iree,tune-for-cpu")
    assert found == [
        "expand-complex",
        "fuse-small-programs",
        "limit-fusion",
        "limit-scalar-fusion",
        "protect-inputs",
        "copy-returned-inputs",
    ]
