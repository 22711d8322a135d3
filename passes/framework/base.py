"""The form of every pass: a frozen dataclass with the pass's options as fields, if it has any.

Elsewhere: running a sequence of passes, and reading it from text (`pipeline.py`).
"""

from __future__ import annotations

import abc
import dataclasses
import re
import types
import typing
from collections.abc import Mapping
from typing import ClassVar, TypeVar

from iree.compiler import ir

from axir.dialect.core.annotations import Foreign, OptionValue

from .errors import OptionValueError, UnknownPassOptionError

WORD = re.compile(r"[A-Za-z_][\w.\-]*", re.ASCII)
NUMBER = re.compile(r"[+-]?(?:inf|nan|(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])")
LITERALS = {"true": True, "false": False, "none": None, "True": True, "False": False, "None": None}
"""How words, numbers and constants look in the text of a pipeline."""

Self = TypeVar("Self", bound="Pass")


@dataclasses.dataclass(frozen=True)
class Pass(abc.ABC):
    """A transformation of a module in place.

    Subclasses with options are frozen dataclasses; their fields are the options, which have the
    same names in Python, in pipelines written as text, and on the command line. The decorator takes
    longer than the rest of an import, so subclasses without options do without it.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Unroll(Pass):
    ...     "Unrolls loops."
    ...     name: ClassVar[str] = "unroll"
    ...     factor: int = 4
    ...     def run(self, module: ir.Module) -> None: ...
    >>> str(Unroll.from_options({"factor": 8}))
    'unroll{factor=8}'
    """

    name: ClassVar[str]

    @abc.abstractmethod
    def run(self, module: ir.Module) -> None:
        """Transforms `module` in place; the module's context and a location are ambient."""

    @classmethod
    def from_options(cls: type[Self], options: Mapping[str, OptionValue]) -> Self:
        """Makes the pass from options by name.

        Raises:
            UnknownPassOptionError: The pass has no such option.
            OptionValueError: A value has the wrong type, or a required option is missing.
        """
        fields = {field.name: field for field in dataclasses.fields(cls)}
        hints = typing.get_type_hints(cls)
        for option, value in options.items():
            if option not in fields:
                raise UnknownPassOptionError(cls.name, option, fields)
            if not _is_instance(value, hints[option]):
                raise OptionValueError(
                    f"the option {option!r} of the pass {cls.name!r} cannot be {value!r}.",
                    f"It takes {_describe(hints[option])}.",
                )
        missing = [
            name for name, field in fields.items() if name not in options and _is_required(field)
        ]
        if missing:
            raise OptionValueError(
                f"the pass {cls.name!r} needs the option {missing[0]!r}.",
                f"Write {cls.name}{{{', '.join(f'{name}=…' for name in missing)}}}.",
            )
        return cls(**options)

    @classmethod
    def summary(cls) -> str:
        """Returns the first line of the pass's documentation."""
        return (cls.__doc__ or "").strip().split("\n")[0]

    def __str__(self) -> str:
        """Returns the pass in the syntax of pipelines, with the options that differ from the
        defaults.
        """
        options = [
            f"{field.name}={_format(getattr(self, field.name))}"
            for field in dataclasses.fields(self)
            if _is_required(field) or getattr(self, field.name) != _default(field)
        ]
        return f"{self.name}{{{','.join(options)}}}" if options else self.name


def _is_required(field: dataclasses.Field) -> bool:
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing


def _default(field: dataclasses.Field) -> OptionValue:
    factory = field.default_factory
    return field.default if factory is dataclasses.MISSING else factory()


def _is_instance(value: OptionValue, hint: Foreign) -> bool:
    """Tells whether a value read from text fits an annotation (the contents of tuples do too)."""
    origin: Foreign = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if hint is typing.Any:
        return True
    if hint is None or hint is type(None):
        return value is None
    if origin in (typing.Union, types.UnionType):
        return any(_is_instance(value, argument) for argument in arguments)
    if origin is typing.Literal:
        return value in arguments
    if origin is tuple and isinstance(value, tuple):
        if not arguments or arguments[-1] is not Ellipsis:
            return len(value) == len(arguments) and all(map(_is_instance, value, arguments))
        return all(_is_instance(entry, arguments[0]) for entry in value)
    expected = origin or hint
    if isinstance(value, bool) and expected in (int, float):
        return False  # bool is a subclass of int in Python, but not for options
    if expected is float:
        return isinstance(value, int | float)
    return not isinstance(expected, type) or isinstance(value, expected)


def _describe(hint: Foreign) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint)


def _format(value: OptionValue) -> str:
    """Returns a value in the syntax of pipelines."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"({','.join(map(_format, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{key}={_format(entry)}' for key, entry in value.items())}}}"
    if isinstance(value, str):
        is_plain = WORD.fullmatch(value) and value not in LITERALS and not NUMBER.match(value)
        return value if is_plain else '"' + re.sub(r'(["\\])', r"\\\1", value) + '"'
    return repr(value)
