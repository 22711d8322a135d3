"""Layouts: the steps between them, choices and notes, and layouts that do not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.partitions import collectives_of, on_one_device

import axir
import axir.numpy as jnp
from axir import lax
from axir.dialect.core.array import as_array
from axir.dialect.core.errors import ParameterError, ShapeError
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.sharding.shard_map import apply_to_parts
from axir.dialect.ops.sharding.sharding_constraint import sharding_constraint
from axir.dialect.program.dimensions import regrouped
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.meshes.layouts import Layout, LayoutError, MeshAxes, MeshMismatchError
from axir.passes.framework.errors import OptionValueError
from axir.passes.partition.layout_text import communications, read_layouts, read_mesh
from axir.passes.partition.moves import bytes_moved, steps
from axir.passes.partition.partition import partition_function

AXES: MeshAxes = (("x", 2), ("y", 2))
X = np.arange(48, dtype=np.float32).reshape(8, 6)


def traced(f: Callable[..., Any], *args: Any) -> Any:
    types = [ShapedArray(np.shape(x), np.asarray(x).dtype) for x in args]
    return trace_function(lambda *xs: axir.tree.leaves(f(*xs)), types)


def test_steps_between_layouts() -> None:
    random = np.random.default_rng(0)
    layouts: list[Layout] = [
        ((), ()), (("x",), ()), (("y", "x"), ()), (("x", "y"), ()), (("x",), ("y",)),
        ((), ("x",)), (("y",), ("x",)), ((), ("y",)),
    ]  # fmt: skip
    x = random.standard_normal((8, 4)).astype(np.float32)
    identity = traced(lambda v: v, x)
    for before in layouts:
        for after in layouts:
            parts = partition_function(identity, AXES, [before], [after])
            np.testing.assert_array_equal(on_one_device(parts, AXES, [as_array(x)])[0], x)
    exchange = steps((("x",), ()), ((), ("x",)))
    gather = steps((("x",), ()), ((), ()))
    assert [bytes_moved(s, (("x",), ()), (8, 4), 4, AXES) for s in (exchange, gather)] == [32, 64]


def test_reshapes_know_what_dimensions_are_made_of() -> None:
    assert regrouped((4, 6), (2, 2, 6)) == ([(0, 1), (2,)], [(0,), (1,), (2,)], {0: 2, 1: 2, 2: 6})
    parts = partition_function(traced(lambda x: x.reshape(2, 4, 6), X), AXES, [(("x", "y"), ())])
    assert parts.out_layouts == ((("x",), ("y",), ()),)
    back = partition_function(
        traced(lambda x: x.reshape(8, 6), X.reshape(2, 4, 6)), AXES, [((), ("y",), ())]
    )
    assert collectives_of(back.local) == {"all_gather": 1}


def test_where_operands_disagree_the_smaller_one_moves() -> None:
    def product(x: Any, w: Any) -> Any:
        return x @ w

    large, small = np.ones((64, 8), np.float32), np.ones((8, 4), np.float32)
    parts = partition_function(traced(product, large, small), AXES, [(("x",), ()), (("x",), ())])
    (moved,) = communications(parts.local, AXES)
    assert (moved.op, moved.operand, moved.received) == ("all_gather", "float32[4,4]", 64)
    assert parts.out_layouts == ((("x",), ()),)


def test_what_needs_all_is_gathered_and_noted() -> None:
    parts = partition_function(traced(lambda x: jnp.sort(x, 0), X), AXES, [(("x",), ("y",))])
    (note,) = parts.notes
    assert note.op == "sort"
    assert note.text == (
        "needs dimension 0 of operand 0 of shape (8, 6) whole: it is gathered along 'x'"
    )
    assert "test_partition.py" in (note.line or "")
    assert parts.out_layouts == (((), ("y",)),)
    summed = partition_function(
        traced(
            lambda x: axir.pure_callback(np.cumsum, axir.ShapeDtypeStruct((48,), x.dtype), x), X
        ),
        AXES,
        [(("x",), ())],
    )
    assert any("needs whole operands" in note.text for note in summed.notes)


def test_constraints() -> None:
    def constrained(x: Any) -> Any:
        y = sharding_constraint(2 * x, AXES, (("x",), None))
        return y, sharding_constraint(jnp.sum(y, 0), AXES, (("y",),))

    parts = partition_function(traced(constrained, X), AXES, [((), ("y",))])
    assert parts.out_layouts == ((("x",), ("y",)), (("y",),))
    odd = traced(lambda x: sharding_constraint(x[:7], AXES, (("x",), ())), X)
    found = partition_function(odd, AXES, [None])
    assert found.out_layouts == (((), ()),)
    assert "which do not divide it: it stays whole" in found.notes[0].text


def test_maps_become_their_bodies() -> None:
    def total(x: Any) -> Any:
        return lax.psum(x, "x")

    def mapped(x: Any) -> Any:
        return axir.shard_map(
            total, mesh=axir.sharding.AbstractMesh((2, 2), ("x", "y")),
            in_specs=axir.P("x"), out_specs=axir.P(), axis_names={"x"},
        )(x)  # fmt: skip

    parts = partition_function(traced(mapped, X), AXES, [(("x",), ("y",))])
    assert collectives_of(parts.local) == {"psum": 1}
    assert parts.out_layouts == (((), ("y",)),)
    (found,) = on_one_device(parts, AXES, [as_array(X)])
    np.testing.assert_array_equal(found, X[:4] + X[4:])


def test_effects_happen_on_the_first_device() -> None:
    def told(x: Any) -> Any:
        return axir.experimental.io_callback(lambda v: v.sum(), jnp.sum(x), x) + x

    parts = partition_function(traced(told, X), AXES, [(("x",), ())])
    (choice,) = [e for e in parts.local.equations if e.primitive.name == "cond"]
    otherwise, act = choice.params["branches"]
    assert (len(otherwise.effects), len(act.effects)) == (0, 1)
    assert collectives_of(parts.local) == {"all_gather": 1, "psum": 2}


@pytest.mark.parametrize(
    ("layouts", "error", "message"),
    [
        ([(("z",), ())], LayoutError, "names 'z', but the mesh has the axes 'x' of 2, 'y' of 2"),
        ([(("x",), ("x",))], LayoutError, "names an axis twice"),
        ([(("x",),)], LayoutError, "is for 1 dimensions, but there are 2"),
        ([((), ("x", "y"))], ShapeError, r"Argument 0: .* cuts dimension 1 into 4 parts"),
        ([], LayoutError, "there are 0 layouts for 1 arguments"),
    ],
)
def test_layouts_that_do_not_fit(layouts: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        partition_function(traced(lambda x: x, X), AXES, layouts)


def test_meshes_that_do_not_fit() -> None:
    constrained = traced(lambda x: sharding_constraint(x, (("z", 4),), (("z",), ())), X)
    with pytest.raises(MeshMismatchError, match="for a mesh with the axes 'z' of 4, but the prog"):
        partition_function(constrained, AXES)
    with pytest.raises(ParameterError, match="the mesh has the axes 'x' of 2, 'x' of 2"):
        partition_function(constrained, (("x", 2), ("x", 2)))
    with pytest.raises(ParameterError, match="a mesh of 4 places has 3 devices"):
        sharding_constraint(X, AXES, (None, None), (0, 1, 2))
    body = traced(lambda x: x, X)
    with pytest.raises(ParameterError, match="in_layouts has 0 entries for 1 operands"):
        apply_to_parts(body, [as_array(X)], AXES, [], [((), ())])
    with pytest.raises(ParameterError, match=r"takes \(float32\[8,6\]\), but was called with"):
        apply_to_parts(body, [as_array(X)], AXES, [(("x",), ())], [((), ())])


def test_text_of_layouts() -> None:
    assert read_mesh("a=2,b=3") == (("a", 2), ("b", 3))
    assert read_layouts("a*b, -; ?") == [(("a", "b"), ()), None]
    with pytest.raises(OptionValueError, match="is no list of axes"):
        read_mesh("a:2")


@pytest.mark.parametrize("width", [8, 32, 64])
def test_devices_make_their_parts_of_random_bits(width: int) -> None:
    dtype, like = np.dtype(f"uint{width}"), np.arange(64, dtype=np.float32).reshape(16, 4)
    threefry, philox = lax.RandomAlgorithm.RNG_THREE_FRY, lax.RandomAlgorithm.RNG_PHILOX

    def draw(state: Any, x: Any) -> Any:
        found = [lax.rng_bit_generator(state, x.shape, dtype, a) for a in (threefry, philox)]
        return [(bits.astype(np.float32) * x, moved) for moved, bits in found]

    state = np.array([1, 2, 3, 2**32 - 5], np.uint32)
    with axir.enable_x64():
        parts = partition_function(traced(draw, state, like), AXES, [((),), (("x", "y"), ())])
        assert parts.out_layouts == ((("x", "y"), ()), ((),)) * 2
        assert not collectives_of(parts.local)
        found = on_one_device(parts, AXES, [as_array(state), as_array(like)])
        for ours, expected in zip(found, axir.tree.leaves(draw(state, like)), strict=True):
            np.testing.assert_array_equal(ours, expected)
