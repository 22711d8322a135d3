"""Functions that count or number rows are refused, even if only many rows show it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.rows import export_rows

import axir
import axir.numpy as jnp
from axir import lax, nn
from axir._bundles.batching import DependentRowsError
from axir.export import export, symbolic_args_specs


def _is_early(r: Any) -> Any:
    return r < 1000


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "jitmask": lambda x: x * axir.jit(_is_early)(jnp.arange(x.shape[0]))[:, None],
    "jitmask2": lambda x: (
        x * axir.jit(lambda r: (r < 1000).astype(float))(jnp.arange(x.shape[0]))[:, None]
    ),
    "vmapmask": lambda x: x * axir.vmap(_is_early)(jnp.arange(x.shape[0]))[:, None],
    "whilemask": lambda x: (
        x * lax.fori_loop(0, 3, lambda i, v: v, (jnp.arange(x.shape[0]) < 1000))[:, None]
    ),
    "scanmask": lambda x: x * lax.map(_is_early, jnp.arange(x.shape[0]))[:, None],
    "condmask": lambda x: x * lax.cond(True, _is_early, _is_early, jnp.arange(x.shape[0]))[:, None],
    "clipidx": lambda x: x * jnp.clip(jnp.arange(x.shape[0]), 0, 1000)[:, None] * 0 + x,
    "min": lambda x: x * jnp.minimum(x.shape[0], 100),
    "minjnp": lambda x: x * jnp.minimum(jnp.int32(x.shape[0]), 3),
    "sumones": lambda x: x * (jnp.ones(x.shape[0]).sum() > 200),
    "size": lambda x: x * (jnp.asarray(x.shape[0]) > 200),
    "float0": lambda x: x * jnp.sign(jnp.float32(x.shape[0]) - 2000),
    "argm": lambda x: x[jnp.argmax(jnp.arange(x.shape[0]) < 1000)],
    "sort": lambda x: jnp.where((jnp.sort(jnp.arange(x.shape[0])) < 1000)[:, None], x, 0),
    "cumsum": lambda x: jnp.where((jnp.cumsum(jnp.ones(x.shape[0])) < 1000)[:, None], x, 0),
    "tri": lambda x: jnp.where(jnp.tril(jnp.ones((x.shape[0], 6)), k=2000) > 0, x, 0),
    "linspace": lambda x: jnp.where((jnp.linspace(0, 1, x.shape[0]) < 2)[:, None], x, 0),
    "floor": lambda x: x + jnp.floor(jnp.arange(x.shape[0]) / 1000)[:, None],
    "div": lambda x: x + (jnp.arange(x.shape[0]) // 1000)[:, None],
    "rsh": lambda x: x + (jnp.arange(x.shape[0]) >> 10)[:, None],
    "astype": lambda x: x + jnp.arange(x.shape[0]).astype(jnp.int8)[:, None] * 0,
    "where0": lambda x: jnp.where(jnp.arange(x.shape[0])[:, None] == 5000, 0, x),
    "isin": lambda x: jnp.where(jnp.isin(jnp.arange(x.shape[0]), jnp.array([4000]))[:, None], 0, x),
    "onehot": lambda x: x - nn.one_hot(jnp.arange(x.shape[0]) // 1000, 6) * 0,
    "random": lambda x: x * (axir.random.uniform(axir.random.key(0), (x.shape[0], 1)) < 2),
    "bern": lambda x: x * axir.random.bernoulli(axir.random.key(0), 1.0, (x.shape[0], 1)),
    "at": lambda x: x * jnp.ones(x.shape[0]).at[2000].set(0)[:, None],
    "atdrop": lambda x: x.at[2000].set(0.0),
    "atdrop2": lambda x: x.at[jnp.array([2000])].add(1.0),
    "get": lambda x: x + x.at[5000].get(mode="fill", fill_value=0.0),
    "roll": lambda x: x * jnp.roll(jnp.ones(x.shape[0]), 1)[:, None],
    "dyn_upd": lambda x: lax.dynamic_update_slice(x, jnp.zeros((1, 6)), (2000, 0)),
    "nonzero": lambda x: x + jnp.nonzero(jnp.ones(x.shape[0]), size=1)[0],
    "digit": lambda x: x + jnp.digitize(jnp.arange(x.shape[0]), jnp.array([2000]))[:, None],
    "searchs": lambda x: x + jnp.searchsorted(jnp.array([2000]), jnp.arange(x.shape[0]))[:, None],
    "take": lambda x: x + jnp.take(jnp.zeros(10), jnp.arange(x.shape[0]), mode="clip")[:, None],
    "interp": lambda x: (
        x
        + jnp.interp(jnp.arange(x.shape[0]), jnp.array([2000.0, 3000.0]), jnp.array([0.0, 1.0]))[
            :, None
        ]
    ),
    "poly": lambda x: x + jnp.heaviside(jnp.arange(x.shape[0]) - 2000.0, 0.0)[:, None],
    "relu": lambda x: x + nn.relu(jnp.arange(x.shape[0]) - 2000.0)[:, None],
    "gelu": lambda x: x + nn.relu6(jnp.arange(x.shape[0]) - 2000.0)[:, None],
    "softmax": lambda x: x + jnp.maximum(jnp.arange(x.shape[0]), 2000)[:, None],
    "unique": lambda x: x + jnp.unique(jnp.arange(x.shape[0]) // 2000, size=1)[0],
    "any": lambda x: x * jnp.any(jnp.arange(x.shape[0]) < 1),
    "allt": lambda x: x * jnp.all(jnp.arange(x.shape[0]) < 1000),
    "count": lambda x: x * (jnp.count_nonzero(jnp.ones(x.shape[0])) > 1000),
    "expand": lambda x: x * jnp.where(jnp.expand_dims(jnp.arange(x.shape[0]), 1) < 1000, 1, 0),
    "stackm": lambda x: x * jnp.stack([jnp.arange(x.shape[0]) < 1000] * 6, 1),
    "mesh": lambda x: (
        x * (jnp.meshgrid(jnp.arange(x.shape[0]), jnp.arange(6), indexing="ij")[0] < 1000)
    ),
    "indices": lambda x: x * (jnp.indices(x.shape)[0] < 1000),
    "fromf": lambda x: x * jnp.fromfunction(lambda i, j: i < 1000, x.shape),
    "mgrid": lambda x: x * (jnp.mgrid[0 : x.shape[0], 0:6][0] < 1000),
    "bcast": lambda x: x * (lax.broadcasted_iota(jnp.int32, x.shape, 0) < 1000),
}


# What NumPy or Python computes of the number of rows.
NUMBERS_OF_PYTHON = ()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_depends_on_the_number_of_rows_is_refused(name: str) -> None:
    x = np.ones((3, 6), np.float32)
    function = FUNCTIONS[name]
    specs = symbolic_args_specs((x,), "b, ...")
    with pytest.raises(DependentRowsError, match="rows"):
        export_rows(function)(*specs)
    # It is a program for all sizes instead, and right for each.
    if name in NUMBERS_OF_PYTHON:
        return
    exported = export(function)(*specs)
    assert exported.batch is None
    for count in (1, 3, 150, 1500):
        x = np.arange(6 * count, dtype=np.float32).reshape(count, 6)
        wanted = function(jnp.asarray(x))
        (found,) = exported.of_sizes(b=count).function.evaluate(x)
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
