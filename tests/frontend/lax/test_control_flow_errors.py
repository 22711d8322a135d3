"""Errors of control flow for wrong arguments: the fault, the line, and the way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax
from axir.dialect.core.errors import AxirError, ReverseModeError


def _same(c: Any, x: Any) -> Any:
    return c, x


def _carry_of_another_dtype() -> Any:
    init = {"n": jnp.int32(0), "h": jnp.ones(3)}
    return lax.scan(lambda c, _: ({"n": c["n"] + 1.5, "h": c["h"]}, None), init, None, length=2)


def _while_carry_of_another_shape() -> Any:
    return lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, (c[1][0], jnp.ones(2))), (0, (1.0, jnp.ones(3)))
    )


CASES: dict[str, tuple[Callable[[], Any], type, str, str]] = {
    "scan carry dtype": (
        _carry_of_another_dtype, TypeError,
        "scan: f: the carry that it returns differs in type from init:\n"
        "    init['n']: int32[] comes in, ~float32[] goes out\n",
        "cast with x.astype(dtype)",
    ),
    "scan carry structure": (
        lambda: lax.scan(lambda c, _: ((c[0],), None), (0, 1), None, length=2), TypeError,
        "another structure than init: PyTreeSpec((*,)), not PyTreeSpec((*, *))",
        "Return the carry with the nesting",
    ),
    "scan result": (
        lambda: lax.scan(lambda c, x: (c, x, c), 0, jnp.ones(2)), TypeError,
        "scan: f must return a pair (carry, y)", "Return None as y",
    ),
    "scan function": (
        lambda: lax.scan(3, 0, jnp.ones(2)), TypeError,
        "scan: f must be a function, not 3 of type 'int'", "lambda",
    ),
    "scan without length": (
        lambda: lax.scan(_same, 0, None), ValueError,
        "scan: xs has no arrays and length is not given", "Pass length=n",
    ),
    "scan of different lengths": (
        lambda: lax.scan(_same, 0, {"a": jnp.ones(2), "b": (jnp.ones(3),)}), ValueError,
        "xs['a'] has 2, xs['b'][0] has 3", "arrays of one length",
    ),
    "scan length that does not fit": (
        lambda: lax.scan(_same, 0, jnp.ones(2), length=3), ValueError,
        "scan: length=3 does not fit xs, whose first axis has 2", "Leave length out",
    ),
    "scan negative length": (
        lambda: lax.scan(_same, 0, None, length=-1), ValueError,
        "scan: length=-1 does not fit.", "Leave length out",
    ),
    "scan fractional length": (
        lambda: lax.scan(_same, 0, None, length=2.5), ValueError,
        "scan: length=2.5 is not an integer", "Pass a Python integer",
    ),
    "scan traced length": (
        lambda: axir.jit(lambda n: lax.scan(_same, 0, None, length=n))(3), TypeError,
        "was needed as a Python integer", "static_argnums",
    ),
    "scan of a scalar": (
        lambda: lax.scan(_same, 0, (jnp.ones(3), 1.0)), TypeError,
        "scan: xs[1] is a scalar of type ~float32[]", "Close over values",
    ),
    "scan unroll": (
        lambda: lax.scan(_same, 0, jnp.ones(2), unroll=-1), ValueError,
        "scan: unroll=-1 must be a bool or a non-negative integer", "write out",
    ),
    "while carry shape": (
        _while_carry_of_another_shape, TypeError,
        "while_loop: body_fun: the carry that it returns differs in type from init_val:\n"
        "    init_val[1][1]: float32[3] comes in, float32[2] goes out\n",
        "broadcast the initial value",
    ),
    "while condition dtype": (
        lambda: lax.while_loop(lambda c: c, lambda c: c + 1, 0), TypeError,
        "while_loop: cond_fun must return a bool scalar, but returns ~int32[]", "Compare",
    ),
    "while condition shape": (
        lambda: lax.while_loop(lambda c: c < 3, lambda c: c + 1, jnp.zeros(2)), TypeError,
        "while_loop: cond_fun must return a bool scalar, but returns bool[2]", ".any()",
    ),
    "while condition function": (
        lambda: lax.while_loop(True, lambda c: c, 0), TypeError,
        "while_loop: cond_fun must be a function", "lambda",
    ),
    "fori bound dtype": (
        lambda: lax.fori_loop(0, 2j, lambda i, c: c, 0), TypeError,
        "fori_loop: upper must be an integer, but is of type ~complex64[]", "astype(int)",
    ),
    "fori bound kinds": (
        lambda: lax.fori_loop(0, 2.5, lambda i, c: c, 0), TypeError,
        "fori_loop: lower and upper must be of one dtype, but are of types ~int32[] and ~float32[]",
        "astype(...)",
    ),
    "fori bound dtypes": (
        lambda: lax.fori_loop(np.int16(0), np.int32(2), lambda i, c: c, 0), TypeError,
        "fori_loop: lower and upper must be of one dtype, but are of types int16[] and int32[]",
        "astype(...)",
    ),
    "fori bound shape": (
        lambda: lax.fori_loop(jnp.zeros(2, int), 3, lambda i, c: c, 0), TypeError,
        "fori_loop: lower must be a scalar, but is of type int32[2]", "vmap",
    ),
    "fori unroll": (
        lambda: axir.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c, 0, unroll=2))(3),
        ValueError, "fori_loop: unroll=2 needs bounds that are known", "Python integers",
    ),
    "cond result dtype": (
        lambda: lax.cond(True, lambda x: (x, 1), lambda x: (x, 2.0), 0), TypeError,
        "cond: the branches must return values of equal types, but differ:\n"
        "    result[1]: ~int32[] from true_fun, ~float32[] from false_fun\n", "Cast",
    ),
    "cond result structure": (
        lambda: lax.cond(True, lambda x: {"a": x}, lambda x: x, 0), TypeError,
        "true_fun returns PyTreeSpec({'a': *}) and false_fun returns PyTreeSpec(*)",
        "the same nesting",
    ),
    "cond predicate shape": (
        lambda: lax.cond(jnp.ones(2) > 0, abs, abs, 1), TypeError,
        "cond: pred must be a scalar, but is of type bool[2]", "jnp.where",
    ),
    "cond predicate dtype": (
        lambda: lax.cond(1j, abs, abs, 1), TypeError,
        "cond: pred must be a bool or a real number, but is of type ~complex64[]", "Compare",
    ),
    "cond predicate": (
        lambda: lax.cond("yes", abs, abs, 1), TypeError,
        "cond: pred is 'yes' of type 'str', which is not an array", "Pass arrays",
    ),
    "cond function": (
        lambda: lax.cond(True, 1, lambda: 2), TypeError,
        "cond: true_fun must be a function, not 1", "lambda",
    ),
    "switch index dtype": (
        lambda: lax.switch(1.5, [abs, abs], 1), TypeError,
        "switch: index must be an integer, but is of type ~float32[]", "astype(int)",
    ),
    "switch index shape": (
        lambda: lax.switch(jnp.zeros(2, int), [abs, abs], 1), TypeError,
        "switch: index must be a scalar, but is of type int32[2]", "vmap",
    ),
    "switch without branches": (
        lambda: lax.switch(0, [], 1), ValueError, "switch: branches is empty", "at least one",
    ),
    "switch results": (
        lambda: lax.switch(0, [lambda x: x, lambda x: x, lambda x: x > 0], 1), TypeError,
        "    result: ~int32[] from branches[0], bool[] from branches[2]\n", "Cast",
    ),
    "map batch size": (
        lambda: lax.map(abs, jnp.ones(3), batch_size=-1), ValueError,
        "map: batch_size=-1 must be positive", "Leave it out",
    ),
    "associative_scan axis": (
        lambda: lax.associative_scan(jnp.add, jnp.ones(3), axis=1), ValueError,
        "associative_scan: axis 1 is out of bounds", "Axes run from -1 to 0",
    ),
    "associative_scan extents": (
        lambda: lax.associative_scan(jnp.add, (jnp.ones(3), jnp.ones(2))), TypeError,
        "differ in extent along axis 0: [2, 3]", "arrays of one length",
    ),
    "associative_scan structure": (
        lambda: lax.associative_scan(lambda a, b: (a, b), jnp.ones(3)), TypeError,
        "associative_scan: fn returns PyTreeSpec((*, *)), but takes PyTreeSpec(*)", "nesting",
    ),
    "associative_scan of nothing": (
        lambda: lax.associative_scan(jnp.add, ()), ValueError,
        "associative_scan: elems holds no arrays", "at least one array",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_error_says_what_is_wrong_and_what_helps(name: str) -> None:
    run, kind, message, way_out = CASES[name]
    with pytest.raises(kind) as caught:
        run()
    assert isinstance(caught.value, AxirError)
    text = str(caught.value)
    assert message in text
    assert way_out in text
    assert "test_control_flow_errors.py" in text


@pytest.mark.parametrize(
    "loop",
    [
        lambda x: lax.while_loop(lambda c: c < 5, lambda c: c * 2, x),
        lambda x: lax.fori_loop(0, jnp.int32(3) + (x > 9), lambda i, c: c * 2, x),
    ],
)
def test_reverse_mode_names_the_loops_and_the_ways_out(loop: Any) -> None:
    with pytest.raises(ReverseModeError) as caught:
        axir.jit(axir.grad(loop))(1.0)
    text = str(caught.value)
    for part in ("lax.while_loop", "lax.fori_loop with traced bounds", "lax.scan", "axir.jvp"):
        assert part in text
    assert "test_control_flow_errors.py" in text
    assert isinstance(caught.value, ValueError)


def test_forward_mode_of_while_works_inside_linearize() -> None:
    value, push = axir.linearize(
        lambda x: lax.while_loop(lambda c: c < 5, lambda c: c * c, x), jnp.float32(1.5)
    )
    assert float(value) == pytest.approx(5.0625)
    assert float(push(1.0)) == pytest.approx(4 * 1.5**3)


def test_reverse_mode_passes_through_what_no_pass_changes() -> None:
    def squared(x: Any, count: Any) -> Any:
        return lax.fori_loop(0, count, lambda i, c: (c[0], c[1] + 1), (x * x, 0))[0]

    assert float(axir.jit(axir.grad(squared))(3.0, 4)) == 6.0
    rows = axir.jit(axir.vmap(axir.grad(squared)))(jnp.arange(3.0), jnp.arange(3))
    assert rows.tolist() == [0.0, 2.0, 4.0]
