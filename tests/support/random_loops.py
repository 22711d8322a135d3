"""Random loops: any condition, any flow of values between the passes, nested, in branches.

A loop is drawn as a plan, which is data, and then traced, perhaps several times. It carries arrays
like `x`, arrays of bytes, floats, counters and flags. Every loop ends: one of its guards, with
separate carried values, ensures it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import axir
import axir.numpy as jnp
from axir import lax

from .random_steps import alike, indices

Value = Any
Rule = tuple[Any, ...]

_KINDS = ("array", "bytes", "float", "count", "flag")
# The rules for the next value of a carried value of any kind.
_FLOWS = ("same", "swap", "constant", "captured", "copy", "chosen", "nested", "branch")
_RULES = {
    "array": ("turned", "mixed", "scaled", "counted", "stored", "indexed", "mirrored", "rolled"),
    "bytes": ("turned", "mixed", "indexed", "mirrored", "rolled"),
    "float": ("halved", "mean", "difference", "indexed"),
    "count": ("up", "up", "down", "doubled", "position", "from_flag", "indexed"),
    "flag": ("inverted", "less", "odd", "any"),
}
_FORMS = ("while", "while", "while", "fori", "traced_fori", "scan")
_DEEPEST = 2
# The share of loops that carry more arrays than IREE binds to a kernel, with inner loops.
_MANY = 0.1


@dataclasses.dataclass(frozen=True)
class Plan:
    """A loop.

    Attributes:
      form: "while", "fori", "traced_fori" or "scan".
      kinds: The kinds of its carried values, except the guards' values. starts: The initial value
      of each, as a choice. rules: The rule for the next value of each, with indices of others.
      guards: The terms of the condition of a `while`, and how they are joined. passes: The number
      of passes of the other forms. nested: The loops and branches of the rules "nested" and
      "branch". is_jitted: Whether the body is a nested call.
    """

    form: str
    kinds: tuple[str, ...]
    starts: tuple[int, ...]
    rules: tuple[Rule, ...]
    guards: tuple[Rule, ...]
    passes: int
    nested: tuple[Plan, ...]
    is_jitted: bool


def draw(random: np.random.Generator, depth: int = 0, forms: Sequence[str] = _FORMS) -> Plan:
    """Draws a loop, with loops in it."""
    count = int(random.integers(1, 5 - depth))
    if depth == 0 and random.random() < _MANY:
        count = int(random.integers(12, 28))
    kinds = tuple(str(random.choice(_KINDS, p=[0.3, 0.1, 0.25, 0.2, 0.15])) for _ in range(count))
    names = [*_FLOWS] if depth < _DEEPEST else list(_FLOWS[:-2])
    rules, nested = [], []
    for kind in kinds:
        own = _RULES[kind]
        name = str(random.choice(names if random.random() < 0.55 else own))
        if name in ("nested", "branch"):
            nested.append(draw(random, depth + 1, forms))
        rules.append((name, *(int(n) for n in random.integers(0, 8, 3)), len(nested) - 1))
    form = str(random.choice(forms))
    guards = [_draw_guard(random) for _ in range(int(random.choice([1, 1, 1, 2])))]
    return Plan(
        form,
        kinds,
        tuple(int(n) for n in random.integers(0, 4, count)),
        tuple(rules),
        tuple(guards),
        int(random.integers(0, 4)),
        tuple(nested),
        random.random() < 0.15,
    )


def _draw_guard(random: np.random.Generator) -> Rule:
    name = str(random.choice(list(_GUARDS)))
    return name, int(random.integers(0, 4)), bool(random.integers(0, 2))


# Guards: their carried values, conditions, and steps ---------------------------------------------

Guard = tuple[
    Callable[[Value, Value, int], list[Value]],
    Callable[[list[Value], Value, int], Value],
    Callable[[list[Value], Value], list[Value]],
]


def _float(x: Value, number: float) -> Value:
    return jnp.asarray(number, x.dtype)


def _int(number: int) -> Value:
    return jnp.asarray(number, np.int32)


_GUARDS: dict[str, Guard] = {
    "counter": (
        lambda x, y, n: [_int(0)],
        lambda s, y, n: s[0] < n,
        lambda s, y: [s[0] + 1],
    ),
    "unequal_counter": (
        lambda x, y, n: [_int(n)],
        lambda s, y, n: s[0] != 0,
        # Another guard may go on.
        lambda s, y: [jnp.maximum(s[0] - 1, 0)],
    ),
    "byte_counter": (
        lambda x, y, n: [jnp.asarray(n, np.uint8)],
        lambda s, y, n: s[0] > 0,
        lambda s, y: [s[0] - (s[0] > 0).astype(np.uint8)],
    ),
    "carried_bound": (
        lambda x, y, n: [_int(0), jnp.max(indices(y)) % 2 + n],
        lambda s, y, n: s[0] < s[1],
        lambda s, y: [s[0] + 1, s[1]],
    ),
    "captured_bound": (
        lambda x, y, n: [_int(0)],
        lambda s, y, n: s[0] < jnp.max(indices(y)) % 2 + n,
        lambda s, y: [s[0] + 1],
    ),
    "device_counter": (
        lambda x, y, n: [_int(0)],
        lambda s, y, n: s[0] < n,
        lambda s, y: [s[0] + 1 + jnp.max(indices(y)) // 1000],
    ),
    "error": (
        lambda x, y, n: [_float(x, 2.0 ** (n - 2))],
        lambda s, y, n: s[0] > 0.3,
        lambda s, y: [s[0] * 0.5],
    ),
    "infinite_error": (
        lambda x, y, n: [_float(x, np.inf)],
        lambda s, y, n: jnp.abs(s[0]) > 2.0 ** -(n + 1) * 1.5,
        lambda s, y: [jnp.where(jnp.isinf(s[0]), 1.0, s[0] * 0.5).astype(s[0].dtype)],
    ),
    # Only the condition reads the error.
    "difference": (
        lambda x, y, n: [_float(x, 2.0**n), _float(x, 1e9)],
        lambda s, y, n: s[1] > 0.3,
        lambda s, y: [s[0] * 0.5, jnp.abs(s[0] * 0.5 - s[0])],
    ),
    "array_difference": (
        lambda x, y, n: [jnp.ones_like(x) * 2.0**n, jnp.ones_like(x)],
        lambda s, y, n: jnp.any(jnp.abs(s[1]) > 0.3),
        lambda s, y: [s[0] * 0.5, s[0] * 0.5 - s[0]],
    ),
    "flag": (
        lambda x, y, n: [jnp.asarray(n > 0), _float(x, 2.0 ** (n - 2))],
        lambda s, y, n: s[0],
        lambda s, y: [s[1] * 0.5 > 0.3, s[1] * 0.5],
    ),
    "done": (
        lambda x, y, n: [jnp.asarray(n == 0), _int(n)],
        lambda s, y, n: ~s[0],
        lambda s, y: [s[1] <= 1, s[1] - 1],
    ),
    "array": (
        lambda x, y, n: [jnp.ones_like(x) * n],
        lambda s, y, n: jnp.max(s[0]) > 0.7,
        lambda s, y: [s[0] * 0.5],
    ),
    "never": (
        lambda x, y, n: [jnp.asarray(False)],
        lambda s, y, n: s[0],
        lambda s, y: [s[0]],
    ),
    "constant_never": (
        lambda x, y, n: [_int(n)],
        lambda s, y, n: jnp.asarray(False),
        lambda s, y: [s[0] + 1],
    ),
}


# Running a plan ----------------------------------------------------------------------------------


class _Surroundings:
    """The captures of a loop, one value of each kind."""

    def __init__(self, x: Value, y: Value):
        self.x, self.y = x, y
        self.values = {
            "array": y,
            "bytes": (indices(y) % 5).astype(np.uint8),
            "float": jnp.mean(y),
            "count": jnp.max(indices(y)) % 3,
            "flag": jnp.max(indices(x)) % 2 == 0,
        }

    def start(self, kind: str, choice: int) -> Value:
        """An initial value: a constant, another constant, a captured value, or one made of it."""
        captured = self.values[kind]
        if choice == 2:
            return captured
        if choice == 3:
            return ~captured if kind == "flag" else captured + captured
        return jnp.full_like(captured, choice)


def run(plan: Plan, x: Value, y: Value) -> list[Value]:
    """Runs a loop on arrays of one shape and dtype; returns all carried values."""
    around = _Surroundings(x, y)
    init = [around.start(*kind) for kind in zip(plan.kinds, plan.starts, strict=True)]

    def advance(state: Sequence[Value], index: Value = 1) -> list[Value]:
        return _advance(plan, list(state), around, index)

    body = axir.jit(advance) if plan.is_jitted else advance
    if plan.form == "fori":
        return list(lax.fori_loop(0, plan.passes, lambda i, state: body(state, i), init))
    if plan.form == "traced_fori":
        bound = jnp.max(indices(y)) % 2 + plan.passes
        return list(lax.fori_loop(plan.passes % 2, bound, lambda i, state: body(state, i), init))
    if plan.form == "scan":
        rows = jnp.arange(plan.passes + 1, dtype=x.dtype) * 0.25

        def scanned(state: list[Value], row: Value) -> tuple[list[Value], Value]:
            new = body(state)
            return new, sum(jnp.mean(v).astype(x.dtype) * 0.5 for v in state) + row

        end, collected = lax.scan(scanned, init, rows)
        return [*end, jnp.sum(collected)]
    return _run_while(plan, init, body, around)


def _run_while(
    plan: Plan, init: list[Value], body: Callable[..., Any], around: _Surroundings
) -> list[Value]:
    guards = [(_GUARDS[name], number, is_or) for name, number, is_or in plan.guards]
    guarded = [make(around.x, around.y, number) for (make, _, _), number, _ in guards]

    def holds(state: tuple[Value, Value]) -> Value:
        result = None
        for ((_, check, _), number, is_or), values in zip(guards, state[1], strict=True):
            term = check(values, around.y, number)
            result = term if result is None else (result | term if is_or else result & term)
        return result

    def step(state: tuple[Value, Value]) -> tuple[Value, Value]:
        moved = [
            move(values, around.y)
            for ((_, _, move), _, _), values in zip(guards, state[1], strict=True)
        ]
        return list(body(state[0])), moved

    ends, guard_ends = lax.while_loop(holds, step, (init, guarded))
    return [*ends, *(v for values in guard_ends for v in values)]


def _advance(plan: Plan, state: list[Value], around: _Surroundings, passes: Value) -> list[Value]:
    new: list[Value] = []
    for index, (kind, rule) in enumerate(zip(plan.kinds, plan.rules, strict=True)):
        own = state[index]
        if rule[0] == "indexed":
            new.append(own + jnp.asarray(passes).astype(own.dtype))
        else:
            new.append(_follow(plan, index, kind, rule, state, new, around).astype(own.dtype))
    return new


def _of_kind(kind: str, plan: Plan, state: list[Value], choice: int, default: Value) -> Value:
    found = [v for k, v in zip(plan.kinds, state, strict=False) if k == kind]
    return found[choice % len(found)] if found else default


def _follow(
    plan: Plan,
    index: int,
    kind: str,
    rule: Rule,
    state: list[Value],
    new: list[Value],
    around: _Surroundings,
) -> Value:
    name, first, second, third, nested = rule
    own = state[index]

    def other(kind: str, choice: int) -> Value:
        return _of_kind(kind, plan, state, choice, around.values[kind])

    if name == "same":
        return own
    if name == "swap":
        return other(kind, first)
    if name == "constant":
        return jnp.full_like(own, second % 2)
    if name == "captured":
        return around.values[kind]
    if name == "copy":
        return _of_kind(kind, plan, new, first, own)
    if name == "chosen":
        return jnp.where(other("flag", first), own, other(kind, second))
    if name in ("nested", "branch"):
        return _inner(plan.nested[nested], name == "branch", other, first, around, own)
    if kind in ("array", "bytes"):
        return _next_array(name, own, other, (first, second, third))
    return _next_scalar(name, own, other, (first, second))


def _inner(
    plan: Plan,
    is_branch: bool,
    other: Callable[[str, int], Value],
    choice: int,
    around: _Surroundings,
    own: Value,
) -> Value:
    """A loop within the loop, or in one of the branches of a choice."""
    y = other("array", choice)

    def looped(y: Value) -> Value:
        return _combined(run(plan, around.x, y), own, choice)

    if not is_branch:
        return looped(y)
    if choice % 2:
        return lax.cond(other("flag", choice), looped, lambda y: own, y)
    branches = [lambda y: own, looped, lambda y: jnp.full_like(own, 1)]
    return lax.switch(other("count", choice), branches, y)


def _combined(values: Sequence[Value], like: Value, choice: int) -> Value:
    """Some of the values, in the shape and dtype of another; no rounding decides about integers."""
    is_exact = not jnp.issubdtype(like.dtype, np.inexact)
    total = jnp.zeros(like.shape, np.int32 if is_exact else like.dtype)
    for index, value in enumerate(values):
        if (index + choice) % 3 == 0:
            continue  # the results of a loop need not all be used
        if is_exact:
            if not jnp.issubdtype(value.dtype, np.inexact):
                total = total + jnp.max(value.astype(np.int32)) % 4
            continue
        value = jnp.nan_to_num(value.astype(like.dtype), posinf=4, neginf=-4)
        total = total + (value if value.shape == like.shape else jnp.mean(value))
    if like.dtype == bool:
        return total > 1
    return total.astype(like.dtype) if is_exact else jnp.sin(total)


def _next_array(
    name: str, own: Value, other: Callable[[str, int], Value], choices: Sequence[int]
) -> Value:
    first, second, third = choices
    if name in ("mirrored", "rolled"):
        # The next value of an element depends on others, in both arrays.
        moved = jnp.flip if name == "mirrored" else lambda v: jnp.roll(v, second - 3)
        if own.dtype == np.uint8:
            return moved(own) ^ moved(other("bytes", first))
        return moved(own) * 0.5 + moved(other("array", first)) * 0.25
    if own.dtype == np.uint8:
        return own + own if name == "turned" else own ^ other("bytes", first)
    if name == "turned":
        return jnp.sin(own) * 0.9 + 0.1
    if name == "mixed":
        return own * 0.5 + other("array", first) * 0.25
    if name == "scaled":
        return own * jnp.tanh(other("float", second))
    count = other("count", third)
    if name == "counted" or own.ndim == 0:
        return own + (count % 4).astype(own.dtype) * 0.125
    return own.at[count % own.shape[0]].set(other("float", second).astype(own.dtype))


def _next_scalar(
    name: str, own: Value, other: Callable[[str, int], Value], choices: Sequence[int]
) -> Value:
    first, second = choices
    rules: dict[str, Callable[[], Value]] = {
        "halved": lambda: own * 0.5,
        "mean": lambda: jnp.mean(other("array", first)),
        "difference": lambda: jnp.abs(own - other("float", first)) * 0.5,
        "up": lambda: own + 1,
        "down": lambda: own - 1,
        "doubled": lambda: own * 2 % 64,
        "position": lambda: jnp.argmax(other("bytes", first)) % 3,
        "from_flag": lambda: other("flag", first).astype(np.int32),
        "inverted": lambda: ~own,
        "less": lambda: other("count", first) < other("count", second),
        "odd": lambda: other("count", first) % 2 == 1,
        "any": lambda: jnp.any(other("bytes", first) > 2),
    }
    return rules[name]()


# Steps of random programs ------------------------------------------------------------------------


def loop_of_any_form(x: Value, y: Value, choice: int) -> Value:
    """A random loop, which no derivative passes through."""
    x, y = (lax.stop_gradient(v) for v in alike(x, y))
    return _combined(run(draw(np.random.default_rng(choice)), x, y), x, choice)


def differentiable_loop(x: Value, y: Value, choice: int) -> Value:
    """A random loop with a known number of passes, for derivatives of every kind."""
    plan = draw(np.random.default_rng(choice), forms=("fori", "scan"))
    return _combined(run(plan, *alike(x, y)), x, choice)


def tangents_of_loop(x: Value, y: Value, choice: int) -> Value:
    """The derivative of a random loop of any form in one direction."""
    x, y = (lax.stop_gradient(v) for v in alike(x, y))
    plan = draw(np.random.default_rng(choice))
    return axir.jvp(lambda x, y: _combined(run(plan, x, y), x, choice), (x, y), (y, x))[1]


def mapped_loop(x: Value, y: Value, choice: int) -> Value:
    """A random loop of any form over lanes that end at different times."""
    x, y = (lax.stop_gradient(v) for v in alike(x, y))
    plan = draw(np.random.default_rng(choice))
    stacked = jnp.stack([y, y * 0.5, -y])
    ends = axir.vmap(lambda y: _combined(run(plan, x, y), x, choice))(stacked)
    return jnp.sum(ends, 0)


LOOPS: dict[str, Callable[[Value, Value, int], Value]] = {
    "loop": loop_of_any_form,
    "differentiable_loop": differentiable_loop,
    "tangents_of_loop": tangents_of_loop,
    "mapped_loop": mapped_loop,
}
