"""The state of a thread: temporary changes are undone, however their block ends."""

from __future__ import annotations

import threading

import pytest

import axir
import axir.numpy as jnp
from axir.dialect.core.state import (
    BatchFrame,
    Change,
    attributed,
    outside_traces,
    state,
    within_scope,
)
from axir.dialect.program.effects import batching_over, named_axis


def fields() -> dict[str, object]:
    return dict(vars(state))


def test_a_change_ends_with_its_block():
    before = fields()
    with Change(origin="op", level=3):
        assert (state.origin, state.level) == ("op", 3)
        with within_scope("outer"), within_scope("inner"):
            assert state.scope == "outer/inner"
        with outside_traces():
            assert state.origin is None
        assert state.origin == "op"
    assert fields() == before


def test_a_change_ends_with_an_exception():
    before = fields()
    seen = []

    def fail():
        with batching_over(BatchFrame(3, "i")), named_axis("j", 2):
            seen.append(state.axis_sizes)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert seen == [{"i": 3, "j": 2}]
    assert fields() == before


def test_no_name_is_no_axis():
    with named_axis("i", 3), named_axis(None, 2):
        assert state.axis_sizes == {"i": 3}


def visit_all() -> list[object]:
    return [state.origin for _ in attributed(["a", "b"])]


def leave_early() -> list[object]:
    for _ in attributed(["a", "b"]):
        return [state.origin]
    return []


def fail() -> list[object]:
    try:
        for _ in attributed(["a", "b"]):
            raise ZeroDivisionError
    except ZeroDivisionError:
        return [state.origin]
    return []


@pytest.mark.parametrize(
    ("walk", "origins"),
    [(visit_all, ["a", "b"]), (leave_early, ["a"]), (fail, ["outer"])],
)
def test_ops_are_the_origin_while_they_are_visited(walk, origins):
    with Change(origin="outer"):
        assert walk() == origins
        assert state.origin == "outer"
    assert state.origin is None


def test_walks_within_walks_come_back_to_the_outer_op():
    seen = []
    for outer in attributed("ab"):
        seen += [state.origin for _ in attributed("xy")]
        seen.append(state.origin)
        assert state.origin == outer
    assert seen == ["x", "y", "a", "x", "y", "b"]


def test_other_threads_are_not_concerned():
    found = []
    with Change(scope="here", origin="op"):
        thread = threading.Thread(target=lambda: found.append((state.scope, state.origin)))
        thread.start()
        thread.join()
    assert found == [("", None)]


@pytest.mark.parametrize(
    "transformed",
    [
        axir.grad(lambda x: jnp.sin(x) / bad(x)),
        axir.jit(lambda x: bad(jnp.sin(x))),
        lambda x: axir.vmap(lambda y: bad(y), axis_name="i")(jnp.ones(3) * x),
        lambda x: axir.lax.scan(lambda c, _: (bad(c), c), x, None, length=3),
        lambda x: axir.lax.cond(x > 0, bad, bad, x),
    ],
)
def test_an_error_while_tracing_leaves_nothing_behind(transformed):
    before = fields()
    with pytest.raises(ZeroDivisionError):
        transformed(1.0)
    assert fields() == before


def bad(x):
    raise ZeroDivisionError
