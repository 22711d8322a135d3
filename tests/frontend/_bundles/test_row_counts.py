"""What counts rows, or numbers them, is refused, though it matters for many rows only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax, nn
from axir._bundles.batching import DependentRowsError
from axir.export import export, symbolic_args_specs


def _is_early(r: Any) -> Any:
    return r < 1000


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "jitmask": lambda x: x * axir.jit(_is_early)(jnp.arange(len(x)))[:, None],
    "jitmask2": lambda x: (
        x * axir.jit(lambda r: (r < 1000).astype(float))(jnp.arange(len(x)))[:, None]
    ),
    "vmapmask": lambda x: x * axir.vmap(_is_early)(jnp.arange(len(x)))[:, None],
    "whilemask": lambda x: (
        x * lax.fori_loop(0, 3, lambda i, v: v, (jnp.arange(len(x)) < 1000))[:, None]
    ),
    "scanmask": lambda x: x * lax.map(_is_early, jnp.arange(len(x)))[:, None],
    "condmask": lambda x: x * lax.cond(True, _is_early, _is_early, jnp.arange(len(x)))[:, None],
    "clipidx": lambda x: x * jnp.clip(jnp.arange(len(x)), 0, 1000)[:, None] * 0 + x,
    "min": lambda x: x * jnp.minimum(len(x), 100),
    "minjnp": lambda x: x * jnp.minimum(jnp.int32(len(x)), 3),
    "sumones": lambda x: x * (jnp.ones(len(x)).sum() > 200),
    "size": lambda x: x * (jnp.asarray(len(x)) > 200),
    "float0": lambda x: x * jnp.sign(jnp.float32(len(x)) - 2000),
    "argm": lambda x: x[jnp.argmax(jnp.arange(len(x)) < 1000)],
    "sort": lambda x: jnp.where((jnp.sort(jnp.arange(len(x))) < 1000)[:, None], x, 0),
    "cumsum": lambda x: jnp.where((jnp.cumsum(jnp.ones(len(x))) < 1000)[:, None], x, 0),
    "tri": lambda x: jnp.where(jnp.tril(jnp.ones((len(x), 6)), k=2000) > 0, x, 0),
    "linspace": lambda x: jnp.where((jnp.linspace(0, 1, len(x)) < 2)[:, None], x, 0),
    "floor": lambda x: x + jnp.floor(jnp.arange(len(x)) / 1000)[:, None],
    "div": lambda x: x + (jnp.arange(len(x)) // 1000)[:, None],
    "rsh": lambda x: x + (jnp.arange(len(x)) >> 10)[:, None],
    "astype": lambda x: x + jnp.arange(len(x)).astype(jnp.int8)[:, None] * 0,
    "where0": lambda x: jnp.where(jnp.arange(len(x))[:, None] == 5000, 0, x),
    "isin": lambda x: jnp.where(jnp.isin(jnp.arange(len(x)), jnp.array([4000]))[:, None], 0, x),
    "onehot": lambda x: x - nn.one_hot(jnp.arange(len(x)) // 1000, 6) * 0,
    "random": lambda x: x * (axir.random.uniform(axir.random.key(0), (len(x), 1)) < 2),
    "bern": lambda x: x * axir.random.bernoulli(axir.random.key(0), 1.0, (len(x), 1)),
    "at": lambda x: x * jnp.ones(len(x)).at[2000].set(0)[:, None],
    "atdrop": lambda x: x.at[2000].set(0.0),
    "atdrop2": lambda x: x.at[jnp.array([2000])].add(1.0),
    "get": lambda x: x + x.at[5000].get(mode="fill", fill_value=0.0),
    "roll": lambda x: x * jnp.roll(jnp.ones(len(x)), 1)[:, None],
    "dyn_upd": lambda x: lax.dynamic_update_slice(x, jnp.zeros((1, 6)), (2000, 0)),
    "nonzero": lambda x: x + jnp.nonzero(jnp.ones(len(x)), size=1)[0],
    "digit": lambda x: x + jnp.digitize(jnp.arange(len(x)), jnp.array([2000]))[:, None],
    "searchs": lambda x: x + jnp.searchsorted(jnp.array([2000]), jnp.arange(len(x)))[:, None],
    "take": lambda x: x + jnp.take(jnp.zeros(10), jnp.arange(len(x)), mode="clip")[:, None],
    "interp": lambda x: (
        x
        + jnp.interp(jnp.arange(len(x)), jnp.array([2000.0, 3000.0]), jnp.array([0.0, 1.0]))[
            :, None
        ]
    ),
    "poly": lambda x: x + jnp.heaviside(jnp.arange(len(x)) - 2000.0, 0.0)[:, None],
    "relu": lambda x: x + nn.relu(jnp.arange(len(x)) - 2000.0)[:, None],
    "gelu": lambda x: x + nn.relu6(jnp.arange(len(x)) - 2000.0)[:, None],
    "softmax": lambda x: x + jnp.maximum(jnp.arange(len(x)), 2000)[:, None],
    "unique": lambda x: x + jnp.unique(jnp.arange(len(x)) // 2000, size=1)[0],
    "any": lambda x: x * jnp.any(jnp.arange(len(x)) < 1),
    "allt": lambda x: x * jnp.all(jnp.arange(len(x)) < 1000),
    "count": lambda x: x * (jnp.count_nonzero(jnp.ones(len(x))) > 1000),
    "expand": lambda x: x * jnp.where(jnp.expand_dims(jnp.arange(len(x)), 1) < 1000, 1, 0),
    "stackm": lambda x: x * jnp.stack([jnp.arange(len(x)) < 1000] * 6, 1),
    "mesh": lambda x: (
        x * (jnp.meshgrid(jnp.arange(len(x)), jnp.arange(6), indexing="ij")[0] < 1000)
    ),
    "indices": lambda x: x * (jnp.indices(x.shape)[0] < 1000),
    "fromf": lambda x: x * jnp.fromfunction(lambda i, j: i < 1000, x.shape),
    "mgrid": lambda x: x * (jnp.mgrid[0 : len(x), 0:6][0] < 1000),
    "bcast": lambda x: x * (lax.broadcasted_iota(jnp.int32, x.shape, 0) < 1000),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_depends_on_the_number_of_rows_is_refused(name: str) -> None:
    x = np.ones((3, 6), np.float32)
    with pytest.raises(DependentRowsError, match="rows"):
        export(FUNCTIONS[name])(*symbolic_args_specs((x,), "b, ..."))
