"""Each program is proven to read the meant values; a wrong one is compiled with copies, and logged.

`test_proof.py` has the programs that the proof refuses and accepts.
"""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from iree.compiler import ir

import axir
from axir.dialect.core.config import config
from axir.runtime import Target, compile_module
from axir.runtime.compiler.binaries import linker_flags
from axir.runtime.compiler.invocation import invoker, stream_passes
from axir.runtime.compiler.invocation.compiler_library import set_phases
from axir.runtime.compiler.invocation.invoker import KEEP_COPIES, Invoker
from axir.runtime.compiler.invocation.own_copies import give_copies
from axir.runtime.compiler.invocation.proof import UnprovableError, Violation
from axir.runtime.compiler.invocation.stream_passes import allocate, finish, schedule
from axir.runtime.compiler.target import PROCESS_FLAGS
from axir.runtime.errors import WrongMemoryOrderError

from .test_program_order import UPDATES

_LOGGER = "axir.runtime.compiler.compilation"


@pytest.fixture(autouse=True)
def in_this_process(tmp_path: Path) -> None:
    config.update("axir_cache_dir", str(tmp_path))
    config.update("axir_isolate_compiler", "never")


@pytest.fixture
def in_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves the order of the host's reads to IREE, which then gets it wrong."""
    monkeypatch.setattr(invoker, "keep_order", lambda module: None)


def compiled(*flags: str) -> bytes | None:
    reported: list[str] = []
    made = Invoker(PROCESS_FLAGS).compile(
        UPDATES.encode(), (*Target().flags(), *linker_flags(), *flags), reported.append
    )
    assert reported == []
    return made


def test_what_is_in_order_is_proven() -> None:
    assert compiled() is not None


@pytest.mark.makes_wrong_programs
def test_what_is_read_after_it_was_overwritten_is_refused(in_no_order: None) -> None:
    with pytest.raises(
        stream_passes.WrongMemoryError,
        match=r"slow_memcpy \(.*\) reads the result of .* where the result of .* is meant",
    ):
        compiled()
    assert compiled(KEEP_COPIES) is not None  # and is proven


@pytest.mark.makes_wrong_programs
def test_it_is_compiled_with_copies_and_said(
    in_no_order: None, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, _LOGGER):
        assert compile_module(UPDATES, Target(), "updates")
    (record,) = [x for x in caplog.records if x.name == _LOGGER]
    text = record.getMessage()
    assert "is compiled again with a copy of each array that is updated in place" in text
    assert "where the result of" in text


@pytest.mark.makes_wrong_programs
def test_what_is_wrong_with_copies_too_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Violation("value", "reads something else", "a_kernel")
    monkeypatch.setattr(stream_passes, "violations", lambda meant, made: [wrong])
    with pytest.raises(
        WrongMemoryOrderError, match="with copies and without: a_kernel reads something else"
    ) as raised:
        compile_module(UPDATES, Target(), "updates")
    assert "disable_jit" in str(raised.value)
    assert "the module, which is saved as" in str(raised.value)


def test_what_cannot_be_proven_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(meant: list[str], made: list[str]) -> list[Violation]:
        raise UnprovableError("a thing of the future")

    monkeypatch.setattr(stream_passes, "violations", refuse)
    with caplog.at_level(logging.INFO, _LOGGER):
        assert compile_module(UPDATES, Target(), "updates")
    assert "not proven: a thing of the future" in caplog.text


def test_the_passes_are_those_of_the_compiler() -> None:
    flags = Target(opt_level=0).flags()
    texts = []
    for stops in (False, True):
        maker = Invoker(PROCESS_FLAGS)
        with (
            maker._session(flags) as session,
            invoker._invocation(session, UPDATES.encode(), print, True) as invocation,
        ):
            assert invocation is not None
            set_phases(invocation, to="flow")
            assert invocation.execute()
            module = invocation.export_module()
            if stops:
                schedule(module, verifies=True)
                allocate(module, verifies=True)
                finish(module, verifies=True)
            else:
                invocation.import_module(module)
                set_phases(invocation, start="flow", to="stream")
                assert invocation.execute()
                module = invocation.export_module()
            texts.append(str(module))
    assert texts[0] == texts[1]


def test_whatever_works_in_place_gets_a_copy() -> None:
    array = "!stream.resource<*>"
    text = f"""
      util.func public @main(%x: {array}, %y: {array}, %n: index) -> {array} {{
        %c0 = arith.constant 0 : index
        %0 = stream.async.dispatch @k::@f(%x[%c0 to %n for %n], %x[%c0 to %n for %n])
          : ({array}{{%n}}, {array}{{%n}}) -> %x{{%n}}
        %1 = stream.async.update %y, %0[%c0 to %n] : {array}{{%n}} -> %0 as {array}{{%n}}
        util.return %1 : {array}
      }}
    """
    with ir.Context():
        module = ir.Module.parse(text)
        assert give_copies(module.operation) == 2
        assert module.operation.verify()
        lines = [line.strip() for line in str(module).splitlines() if "stream.async" in line]
    assert [line.split(" ")[2] for line in lines] == [
        "stream.async.clone",
        "stream.async.dispatch",
        "stream.async.clone",
        "stream.async.update",
    ]
    assert "-> %0{%arg2}" in lines[1]


def test_a_helper_proves_as_this_process_does() -> None:
    config.update("axir_isolate_compiler", "always")
    assert compile_module(UPDATES, Target(), "updates")
    assert float(axir.jit(lambda x: x + 1)(1.0)) == 2.0
