r"""Pipelines: sequences of passes, read from text and run by MLIR's own pass manager.

The text is the argument of `axir opt -p`::

    pipeline := pass ("," pass)*
    pass     := name [ "{" [ option ("," option)* ] "}" ]
    option   := name "=" value
    value    := number | "true" | "false" | "none" | word | '"' text '"'
              | "(" [ value ("," value)* [","] ] ")" | "{" [ option ("," option)* ] "}"

Elsewhere: the list of passes (`registry.py`) and the form of a pass (`base.py`).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext

from iree.compiler import ir, passmanager

from axir.dialect.core.annotations import Foreign, OptionValue, Returning
from axir.dialect.core.config import config
from axir.dialect.core.state import Change
from axir.dialect.core.timeline import span
from axir.dialect.text.resources import resources_of, write_out

from .base import LITERALS, NUMBER, WORD, Pass
from .errors import PassFailedError, PipelineSyntaxError
from .registry import find_pass, takes_jaxpr

_OPTION = re.compile(r"[A-Za-z_]\w*")
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
_SPACE = re.compile(r"\s*")


@dataclasses.dataclass(frozen=True)
class Pipeline:
    """Passes that run one after the other on a module.

    >>> str(Pipeline.parse("clamp-gather, expand-power"))
    'clamp-gather,expand-power'
    """

    passes: tuple[Pass, ...]

    @classmethod
    def parse(cls, text: str) -> Pipeline:
        """Reads a pipeline.

        Raises:
            PipelineSyntaxError: The text is malformed; the message points at the place.
            UnknownPassError, UnknownPassOptionError: A named pass or option does not exist.
            OptionValueError: An option is missing, or has an invalid value.
        """
        reader = _Reader(text)
        return cls(
            tuple(find_pass(name).from_options(options) for name, options in reader.pipeline())
        )

    def __str__(self) -> str:
        """Returns the text that `parse` reads."""
        return ",".join(map(str, self.passes))

    def run(
        self,
        module: ir.Module,
        *,
        print_ir_after_all: bool = False,
        timing: bool = False,
        statistics: bool = False,
        verify: bool = True,
    ) -> None:
        """Runs the passes on `module` in place; MLIR prints to stderr.

        `verify` has MLIR verify the module after each pass.

        Raises the error of a pass, and `PassFailedError` if MLIR's verifier rejects the module
        after a pass.
        """
        failures: list[BaseException] = []
        if resources_of(module) is not None:
            write_out(module.operation)
        with module.context, ir.Location.unknown(), _types_of_module(self.passes):
            manager = passmanager.PassManager("builtin.module")
            manager.enable_verifier(verify)
            for stage in self.passes:
                manager.add(
                    _callback(stage, module, failures), name=stage.name, argument=stage.name
                )
            if print_ir_after_all:
                manager.enable_ir_printing(print_before_all=False, print_after_all=True)
            if timing:
                manager.enable_timing()
            if statistics:
                manager.enable_statistics()
            try:
                manager.run(module.operation)
            except ir.MLIRError as error:
                if not failures:
                    raise PassFailedError(f"the pipeline '{self}' failed: {error}") from None
        if failures:
            raise failures[0]


def _types_of_module(passes: Iterable[Pass]) -> AbstractContextManager[None]:
    """Lets rules keep 64 bits: the types of a module hold, independent of the process's setting."""
    applies_rules = any(takes_jaxpr(stage.name) for stage in passes)
    return config(jax_enable_x64=True) if applies_rules else nullcontext()


def _callback(stage: Pass, module: ir.Module, failures: list[BaseException]) -> Returning[None]:
    """Returns the callback that MLIR calls for one pass.

    An exception must not unwind through MLIR's frames, which are compiled without them: it is kept,
    MLIR is told of a failure, and `Pipeline.run` raises it again.
    """

    def run(_: ir.Operation, handle: Foreign) -> None:
        try:
            with (
                module.context,
                ir.Location.unknown(),
                Change(kernel_codes={}),
                span(stage.name, "compiler"),
            ):
                stage.run(module)
        except BaseException as error:
            failures.append(error)
            handle.signal_pass_failure()

    return run


def run_passes(module: ir.Module, passes: str | Pass | Iterable[Pass], **settings: bool) -> None:
    """Runs a pipeline, given as text or as passes, on `module`; see `Pipeline.run` for settings."""
    if isinstance(passes, str):
        pipeline = Pipeline.parse(passes)
    else:
        pipeline = Pipeline((passes,) if isinstance(passes, Pass) else tuple(passes))
    pipeline.run(module, **settings)


class _Reader:
    """A recursive-descent parser of the grammar above."""

    def __init__(self, text: str):
        self.text = text
        self.position = 0

    def pipeline(self) -> list[tuple[str, dict[str, OptionValue]]]:
        """Reads all passes to the end of the text."""
        stages = []
        while True:
            name = self.match(WORD, "the name of a pass")
            options = self.options() if self.peek("{") else {}
            stages.append((name, options))
            if self.is_at_end():
                return stages
            self.expect(",")

    def options(self) -> dict[str, OptionValue]:
        """Reads `{name=value,…}`."""
        options: dict[str, OptionValue] = {}
        self.expect("{")
        while not self.peek("}"):
            start = self.position
            name = self.match(_OPTION, "the name of an option")
            if name in options:
                raise PipelineSyntaxError(self.text, start, f"one value for {name!r}, not two,")
            self.expect("=")
            options[name] = self.value()
            if not self.peek("}"):
                self.expect(",")
        self.expect("}")
        return options

    def value(self) -> OptionValue:
        """Reads one value."""
        if self.peek("("):
            return self.sequence()
        if self.peek("{"):
            return self.options()
        if found := self.take(_TEXT):
            return re.sub(r"\\(.)", r"\1", found.group(1))
        if found := self.take(NUMBER):
            word = found.group().replace("_", "")
            return int(word) if re.fullmatch(r"[+-]?\d+", word) else float(word)
        word = self.match(WORD, "a value")
        return LITERALS.get(word, word)

    def sequence(self) -> tuple[OptionValue, ...]:
        """Reads `(value,…)`."""
        entries = []
        self.expect("(")
        while not self.peek(")"):
            entries.append(self.value())
            if not self.peek(")"):
                self.expect(",")
        self.expect(")")
        return tuple(entries)

    def skip_space(self) -> None:
        found = _SPACE.match(self.text, self.position)
        self.position = found.end() if found else self.position

    def is_at_end(self) -> bool:
        self.skip_space()
        return self.position == len(self.text)

    def peek(self, symbol: str) -> bool:
        self.skip_space()
        return self.text.startswith(symbol, self.position)

    def expect(self, symbol: str) -> None:
        if not self.peek(symbol):
            raise PipelineSyntaxError(self.text, self.position, repr(symbol))
        self.position += len(symbol)

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        self.skip_space()
        found = pattern.match(self.text, self.position)
        if found:
            self.position = found.end()
        return found

    def match(self, pattern: re.Pattern[str], expected: str) -> str:
        found = self.take(pattern)
        if not found:
            raise PipelineSyntaxError(self.text, self.position, expected)
        return found.group()
