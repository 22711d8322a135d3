"""Pipelines as text, and how they run."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import pytest
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.context import context
from axir.dialect.core.errors import AxirError
from axir.passes.framework import registry
from axir.passes.framework.base import Pass
from axir.passes.framework.errors import (
    OptionValueError,
    PassFailedError,
    PipelineError,
    PipelineSyntaxError,
    UnknownPassError,
    UnknownPassOptionError,
)
from axir.passes.framework.pipeline import Pipeline, run_passes
from axir.passes.framework.registry import find_pass

TEXT = "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"


@dataclasses.dataclass(frozen=True)
class Record(Pass):
    """Keeps what it was called with.

    More.
    """

    name: ClassVar[str] = "record"
    seen: ClassVar[list[Any]] = []
    anything: Any = None
    count: int = 1
    ratio: float = 0.5
    is_loud: bool = False
    word: str = "quiet"
    axes: tuple[int | None, ...] = ()

    def run(self, module: ir.Module) -> None:
        self.seen.append((self, ir.Context.current, module))


@dataclasses.dataclass(frozen=True)
class Demand(Pass):
    """Has an option without a default."""

    name: ClassVar[str] = "demand"
    size: int

    def run(self, module: ir.Module) -> None:
        raise KeyError(self.size)


@dataclasses.dataclass(frozen=True)
class Corrupt(Pass):
    """Leaves an invalid module behind."""

    name: ClassVar[str] = "corrupt"

    def run(self, module: ir.Module) -> None:
        with ir.InsertionPoint(module.body):
            ir.Operation.create("func.return")


@pytest.fixture(autouse=True)
def passes(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"record": Record, "demand": Demand, "corrupt": Corrupt}
    monkeypatch.setattr(Record, "seen", [])
    for name in table:
        monkeypatch.setitem(registry.PASSES, name, f"{name}:")
    original = registry.find_pass
    monkeypatch.setattr(
        "axir.passes.framework.pipeline.find_pass", lambda name: table.get(name) or original(name)
    )


@pytest.fixture
def module() -> ir.Module:
    return ir.Module.parse(TEXT, context())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-5", -5),
        ("1_000", 1000),
        ("2.5", 2.5),
        ("1e3", 1000.0),
        ("-.5", -0.5),
        ("inf", float("inf")),
        ("true", True),
        ("False", False),
        ("none", None),
        ("word", "word"),
        ("kebab-case", "kebab-case"),
        ('"a, {b}"', "a, {b}"),
        (r'"say \"hi\""', 'say "hi"'),
        ("()", ()),
        ("(0)", (0,)),
        ("(0,none)", (0, None)),
        ("( 0 , (1,2), )", (0, (1, 2))),
        ("{a=0,b={c=none}}", {"a": 0, "b": {"c": None}}),
    ],
)
def test_values(text: str, value: Any) -> None:
    (parsed,) = Pipeline.parse(f"record{{anything={text}}}").passes
    assert isinstance(parsed, Record)
    assert parsed.anything == value
    assert type(parsed.anything) is type(value)


def test_text_of_a_pipeline_reads_back() -> None:
    text = 'record{count=3,is_loud=true,axes=(0,none)},record,demand{size=-2},record{word="a b"}'
    pipeline = Pipeline.parse(f" {text.replace(',', ' , ')} ")
    assert str(pipeline) == text
    assert Pipeline.parse(str(pipeline)) == pipeline


@pytest.mark.parametrize(
    "text", ["true", "None", "1", "1e5", "inf", "nan", "", "-", "1a", "é", "a\nb", "_x", "a.b"]
)
def test_words_that_look_like_something_else_are_quoted(text: str) -> None:
    pipeline = Pipeline((Record(word=text),))
    assert Pipeline.parse(str(pipeline)) == pipeline


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("", 0, "the name of a pass"),
        ("record,", 7, "the name of a pass"),
        ("record{count=}", 13, "a value"),
        ("record{count 5}", 13, "'='"),
        ("record{count=5", 14, "','"),
        ("record{axes=(1 2)}", 15, "','"),
        ("record}", 6, "','"),
        ("record{5=3}", 7, "the name of an option"),
        ("record{count=1,count=2}", 15, "one value for 'count', not two,"),
        ('record{word="open}', 12, "a value"),
    ],
)
def test_malformed_text_is_pointed_at(text: str, position: int, expected: str) -> None:
    with pytest.raises(PipelineSyntaxError) as raised:
        Pipeline.parse(text)
    lines = str(raised.value).splitlines()
    assert lines[0] == f"malformed pipeline: expected {expected} at column {position + 1}"
    assert lines[1] == f"  {text}"
    assert lines[2] == f"  {' ' * position}^"


def test_unknown_passes_offer_the_nearest_names() -> None:
    with pytest.raises(UnknownPassError, match=r"no pass named 'recrod'[\s\S]*mean 'record'"):
        Pipeline.parse("recrod")
    with pytest.raises(UnknownPassError, match=r"There are \d+; `axir passes` lists them"):
        Pipeline.parse("zzzzzz")


def test_unknown_options_offer_the_nearest_names() -> None:
    with pytest.raises(UnknownPassOptionError, match=r"no option 'cuont'[\s\S]*mean 'count'"):
        Pipeline.parse("record{cuont=3}")
    with pytest.raises(UnknownPassOptionError, match="It has no options"):
        Pipeline.parse("corrupt{x=3}")


@pytest.mark.parametrize(
    "option",
    ["count=word", "count=1.5", "count=true", "is_loud=1", "ratio=none", "axes=(a)", "axes=3"],
)
def test_values_of_the_wrong_type_are_refused(option: str) -> None:
    with pytest.raises(OptionValueError, match=f"the option '{option.split('=')[0]}'"):
        Pipeline.parse(f"record{{{option}}}")


def test_missing_options_are_named() -> None:
    with pytest.raises(OptionValueError, match="needs the option 'size'"):
        Pipeline.parse("demand")


def test_errors_are_axir_errors() -> None:
    for error in (PipelineSyntaxError, UnknownPassError, UnknownPassOptionError, OptionValueError):
        assert issubclass(error, PipelineError)
        assert issubclass(error, AxirError)
        assert issubclass(error, ValueError)


def test_passes_run_in_order_in_the_modules_context(module: ir.Module) -> None:
    run_passes(module, "record{count=1},record{count=2}")
    assert [entry[0].count for entry in Record.seen] == [1, 2]
    assert all(entry[1] == module.context for entry in Record.seen)
    assert all(entry[2] is module for entry in Record.seen)


def test_passes_can_be_given_as_objects(module: ir.Module) -> None:
    run_passes(module, Record(count=7))
    run_passes(module, [Record(count=8), Record(count=9)])
    assert [entry[0].count for entry in Record.seen] == [7, 8, 9]


def test_an_exception_of_a_pass_is_the_exception_of_the_run(module: ir.Module) -> None:
    with pytest.raises(KeyError) as raised:
        run_passes(module, "record,demand{size=3},record{count=2}")
    assert raised.value.args == (3,)
    assert raised.traceback[-1].name == "run"
    assert [entry[0].count for entry in Record.seen] == [1]


def test_invalid_modules_are_rejected(module: ir.Module) -> None:
    with pytest.raises(PassFailedError, match="pipeline 'corrupt' failed"):
        run_passes(module, "corrupt")


def test_mlir_prints_and_times(module: ir.Module, capfd: pytest.CaptureFixture[str]) -> None:
    run_passes(module, "record,record", print_ir_after_all=True, timing=True, statistics=True)
    output = capfd.readouterr()
    assert output.out == ""
    assert output.err.count("IR Dump After record") == 2
    assert "func.func @f" in output.err
    assert "Execution time report" in output.err
    assert "Pass statistics report" in output.err


def test_the_summary_is_the_first_line() -> None:
    assert Record.summary() == "Keeps what it was called with."


def test_every_pass_of_the_registry_exists() -> None:
    for name in registry.pass_names():
        if name not in ("record", "demand", "corrupt"):
            found = registry.find_pass(name)
            assert found.name == name
            assert found.summary().endswith(".")
            assert dataclasses.is_dataclass(found)


def test_legalization_names_only_existing_passes() -> None:
    from axir.passes.legalize.legalize_for_iree import STAGES

    assert set(STAGES) <= set(registry.PASSES)
    assert len(set(STAGES)) == len(STAGES)


def test_builders_errors_pass_through(module: ir.Module) -> None:
    @dataclasses.dataclass(frozen=True)
    class Misbuild(Pass):
        """Adds values of different types, which is invalid."""

        name: ClassVar[str] = "misbuild"

        def run(self, module: ir.Module) -> None:
            with ir.InsertionPoint(module.body):
                hlo.add(hlo.constant(1.0), hlo.constant(1))

    with pytest.raises(hlo.StableHLOError, match="stablehlo.add"):
        run_passes(module, Misbuild())


def test_passes_without_options_have_no_decorator() -> None:
    """It takes longer than the rest of the import of a short pass."""
    own = [name for name, module in registry.PASSES.items() if module.startswith("axir.passes.")]
    passes = list(map(find_pass, own))
    decorated = [x.name for x in passes if not dataclasses.fields(x) and "__init__" in vars(x)]
    assert not decorated
