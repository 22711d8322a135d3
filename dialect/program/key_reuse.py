"""Detection of random keys that are used twice: among arrays at once, in programs by a walk.

An operation *uses* a key if it draws from it or splits it; `fold_in` and `clone` make new keys and
use none. Only typed keys are followed: words of keys are ordinary numbers. In a program two values
are the same key if they are made by the same moves, such as a slice, from the same key. If the body
of a loop draws with a key from outside, the draw is recorded in front of the loop, so it uses the
key once.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Sequence

from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.context import describe_location
from axir.dialect.core.dtypes import is_key
from axir.dialect.core.errors import KeyReuseError

from .equation import Equation, Literal, Var
from .function import Function, functions_of

USING = ("random_bits", "random_split")
_WAY_OUT = (
    "Split the key, and use each of the parts once; axir.random.clone says that using it again is "
    "meant. The option jax_debug_key_reuse looks for this."
)
_LOOPS = ("scan", "while")

# The arrays of keys that have been used, by address while they live.
_used: dict[int, weakref.ref[ConcreteArray]] = {}


def use(keys: object) -> None:
    """Notes that an array of keys is used.

    Raises:
        KeyReuseError: it has been used before.
    """
    if type(keys) is not ConcreteArray or not is_key(keys.type.dtype):
        return
    known = _used.get(id(keys))
    if known is not None and known() is keys:
        raise KeyReuseError(f"Previously-consumed key of type {keys.type} is used again.", _WAY_OUT)
    address = id(keys)
    _used[address] = weakref.ref(keys, lambda _: _used.pop(address, None))


def used_inputs(function: Function) -> list[int]:
    """Returns the numbers of the arguments, captures included, that a function uses as keys.

    Raises:
        KeyReuseError: it uses a key twice, or one in each pass of a loop.
    """
    walk = _Walk(function)
    arguments = (*function.inputs, *function.captures)
    return [number for number, v in enumerate(arguments) if walk.is_used(v)]


class _Walk:
    """The uses of keys in a function, equation by equation."""

    def __init__(self, function: Function):
        # The origin of a key: a variable, followed by the moves that made the key from it.
        self._origin: dict[Var, tuple[Hashable, ...]] = {}
        self._used_origins: set[tuple[Hashable, ...]] = set()
        for equation in function.equations:
            if equation.primitive.name in USING:
                self._use(equation.operands[0], equation)
            elif bodies := list(functions_of(equation.params)):
                self._call(equation, bodies)
            elif equation.primitive.moves_elements and len(equation.results) == 1:
                self._move(equation)

    def _chain(self, v: Var) -> tuple[Hashable, ...]:
        return self._origin.get(v, (id(v),))

    def is_used(self, v: Var) -> bool:
        """Tells whether a key, or a part of it, has been used."""
        chain = self._chain(v)
        return is_key(v.type.dtype) and any(
            used[: len(chain)] == chain or chain[: len(used)] == used for used in self._used_origins
        )

    def _use(self, v: Var, equation: Equation) -> None:
        if isinstance(v, Literal) or not is_key(v.type.dtype):
            return
        if self.is_used(v):
            where = describe_location(equation.location)
            raise KeyReuseError(
                f"In {equation.primitive.name}, argument of type {v.type} is already consumed.",
                _WAY_OUT,
                where or "",
            )
        self._used_origins.add(self._chain(v))

    def _move(self, equation: Equation) -> None:
        first, *others = equation.operands
        if not isinstance(first, Literal) and is_key(first.type.dtype):
            how = (equation.primitive.name, str(dict(equation.params)), *map(_identity, others))
            self._origin[equation.results[0]] = (*self._chain(first), how)

    def _call(self, equation: Equation, bodies: Sequence[Function]) -> None:
        name, params, operands = equation.primitive.name, equation.params, equation.operands
        if name == "cond":
            used = {number + 1 for body in bodies for number in used_inputs(body)}
            for number in sorted(used):
                self._use(operands[number], equation)
            return
        for body in bodies:
            offset = len(operands) - len(body.inputs) - len(body.captures)
            if name == "while":
                offset = 0 if body is params["cond_jaxpr"] else params["cond_nconsts"]
            for number in used_inputs(body):
                if name in _LOOPS and _is_constant(name, number, body, params):
                    raise KeyReuseError(
                        f"{name} body function leads to key reuse when repeatedly executed: "
                        f"argument {number} is used in each pass.",
                        _WAY_OUT,
                        describe_location(equation.location) or "",
                    )
                if 0 <= number + offset < len(operands):
                    self._use(operands[number + offset], equation)


def _is_constant(name: str, number: int, body: Function, params: dict[str, object]) -> bool:
    """Tells whether a loop hands the same key to each pass: as a constant, or carried unchanged."""
    if name == "scan" and params["length"] in (0, 1):
        return False
    constants = {"scan": "num_consts", "while": "body_nconsts"}[name]
    count = params[constants]
    if name == "while" and body is params["cond_jaxpr"]:
        count = params["cond_nconsts"]
    assert isinstance(count, int)
    if number < count:
        return True
    carried = number - count
    return carried < len(body.outputs) and body.outputs[carried] is body.inputs[number]


def _identity(v: Var) -> Hashable:
    return repr(v.val) if isinstance(v, Literal) else id(v)
