"""Checkpoint policies: the choice of values that a checkpointed function keeps.

A policy decides about each op on known values: it gets the primitive, the types of the operands and
the parameters. The policies of this module have a textual form, a tuple of their name and
arguments; ops hold them in that form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from axir.dialect.core.annotations import Param, Params, Returning
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.equation import Equation
from axir.dialect.program.primitive import Primitive

_NAMED = ("save_only_these_names", "save_any_names_but_these", "save_anything_except_these_names")
_PLAIN = (
    "everything_saveable",
    "nothing_saveable",
    "dots_saveable",
    "dots_with_no_batch_dims_saveable",
)
_BOTH = "save_from_both_policies"
_DOTS = ("dot_general", "conv_general_dilated")


@dataclass(frozen=True)
class Answer:
    """An answer of a policy about the results of an op, other than True and False.

    Attributes:
        name: Its name.
        is_kept: Whether the results are kept.
    """

    name: str
    is_kept: bool

    def __bool__(self) -> bool:
        return self.is_kept

    def __repr__(self) -> str:
        return self.name


Recompute = Answer("Recompute", False)
Saveable = Answer("Saveable", True)


class Offloadable(NamedTuple):
    """A policy's answer: keep the results in another memory. Here all kinds of memory are one.

    Attributes:
        src: The memory that holds the results.
        dst: The memory that keeps them.
    """

    src: str
    dst: str


@dataclass(frozen=True)
class Policy:
    """A policy with a textual form.

    Attributes:
        text: Its name, then its arguments: names, or the texts of policies.
    """

    text: tuple[Param, ...]

    def __call__(self, primitive: Primitive, *types: ShapedArray, **params: Param) -> bool:
        """Tells whether the results of an op are kept."""
        kind, *arguments = self.text
        if kind == _BOTH:
            return any(policy_of(p)(primitive, *types, **params) for p in arguments)
        if kind in _NAMED:
            return _keeps_named(kind, arguments, primitive.name, params)
        if kind == "dots_saveable":
            return primitive.name in _DOTS
        if kind == "dots_with_no_batch_dims_saveable":
            return primitive.name == "dot_general" and params["dimension_numbers"][1] == ((), ())
        return bool(kind == "everything_saveable")

    def __repr__(self) -> str:
        kind, *arguments = self.text
        return f"{kind}({', '.join(map(repr, arguments))})" if arguments else str(kind)


def _keeps_named(kind: str, names: list[str], primitive: str, params: Params) -> bool:
    if primitive != "name":
        return kind == "save_anything_except_these_names"
    return (params["name"] in names) == (kind == "save_only_these_names")


def policy_of(parameter: Param) -> Returning[bool]:
    """Returns the policy of an op's parameter: a function of primitive and types.

    Raises:
        ParameterError: for a text that names no policy.
    """
    if callable(parameter):
        return parameter
    if parameter is None:
        return Policy(("nothing_saveable",))
    is_known = (
        isinstance(parameter, tuple)
        and bool(parameter)
        and parameter[0] in (*_NAMED, *_PLAIN, _BOTH)
    )
    if not is_known:
        raise ParameterError(
            f"checkpoint: {parameter!r} is no policy.",
            f"The policies are {', '.join((*_PLAIN, *_NAMED, _BOTH))}.",
        )
    return Policy(parameter)


def parameter_of(policy: object) -> object:
    """Returns a policy as a parameter of an op: as text if it has a text."""
    return policy.text if isinstance(policy, Policy) else policy


def keeps(policy: object, equation: Equation) -> bool:
    """Tells whether a policy keeps the results of an equation."""
    types = [v.type for v in equation.operands]
    return bool(policy_of(policy)(equation.primitive, *types, **equation.params))
