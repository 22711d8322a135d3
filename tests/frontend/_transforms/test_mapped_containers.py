"""Containers that `vmap` maps by rules of their class, beside JAX."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import jax
import numpy as np
import pytest
from jax.interpreters import batching as their_batching

import axir
from axir.interpreters import batching


class Rows:
    """Rows of numbers, a table that all of them share, and a name."""

    def __init__(self, values: Any, table: Any, name: str):
        self.values, self.table, self.name = values, table, name


class Along:
    """Along which axis rows are mapped."""

    def __init__(self, axis: int):
        self.axis = axis


def _element(cont: Any, get_idx: Any, x: Rows, spec: Any) -> Rows:
    axis = spec.axis if isinstance(spec, Along) else spec
    return Rows(cont(x.values, axis), x.table, x.name)


def _container(cont: Any, size: int, x: Rows, spec: Any) -> Rows:
    axis = spec.axis if isinstance(spec, Along) else spec
    return Rows(cont(size, x.values, axis), x.table, x.name)


@pytest.fixture(autouse=True)
def rules() -> Iterator[None]:
    for module in (batching, their_batching):
        module.register_vmappable(Rows, Along, int, _element, _container, None)
    yield
    batching.unregister_vmappable(Rows)
    for table in ("vmappables", "to_elt_handlers", "from_elt_handlers"):
        getattr(jax._src.interpreters.batching, table).pop(Rows)
    jax._src.interpreters.batching.spec_types.discard(Along)


def _programs(module: ModuleType) -> list[Any]:
    jnp = module.numpy
    values, table = jnp.arange(6.0).reshape(2, 3), jnp.array([10.0, 20.0])
    rows = Rows(values, table, "rows")

    def negated(x: Rows) -> Rows:
        return Rows(-x.values.sum() * x.table[1], x.table, x.name)

    def with_others(x: Rows, y: Any, scale: Any = 1.0) -> Any:
        return {"rows": Rows(x.values * y, x.table, "new"), "sum": x.values.sum() * scale}

    by_rows = module.vmap(negated, (Along(0),), Along(0), axis_size=2)(rows)
    by_columns = module.vmap(negated, (Along(1),), Along(0), axis_size=3)(rows)
    goals = {"rows": Along(1), "sum": 0}
    mixed = module.vmap(with_others, (Along(0), 0), goals)(rows, jnp.array([2.0, 3.0]))
    goals = {"rows": Along(0), "sum": 0}
    named = module.vmap(with_others, (Along(0), None), goals)(
        rows, 2.0, scale=jnp.array([1.0, 100.0])
    )
    return [by_rows.values, by_rows.table, by_columns.values, mixed["rows"].values, mixed["sum"],
            mixed["rows"].name, named["rows"].values, named["sum"]]  # fmt: skip


def test_values_are_those_of_jax() -> None:
    for ours, theirs in zip(_programs(axir), _programs(jax), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_elements_know_their_numbers() -> None:
    batching.register_vmappable(
        Rows, int, int,
        lambda cont, get_idx, x, axis: Rows(cont(x.values, axis) + get_idx(), None, x.name),
        _container, None,
    )  # fmt: skip
    rows = Rows(axir.numpy.zeros(3), None, "rows")
    np.testing.assert_array_equal(axir.vmap(lambda x: x)(rows).values, [0, 1, 2])


def test_they_are_compiled_and_differentiated() -> None:
    def total(values: Any) -> Any:
        rows = Rows(values, axir.numpy.array([0.0, 3.0]), "rows")
        doubled = axir.vmap(
            lambda x: Rows(x.values * x.table[1], x.table, x.name),
            in_axes=(Along(0),), out_axes=Along(0),
        )(rows)  # fmt: skip
        return (doubled.values**2).sum()

    slopes = axir.jit(axir.grad(total))(axir.numpy.array([1.0, 2.0]))
    np.testing.assert_allclose(slopes, [18.0, 36.0])
