"""Large parts of the state are changed in place if only some elements change."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
from support import cpp_models
from support.cpp_models import driver, read_outputs, write_inputs

import axir
import axir.numpy as jnp
from axir.export import export

RNG = np.random.default_rng(0)
# Eighths, because their sums are exact: the two programs copy the table at other places, and add in
# another order.
TABLE = (RNG.integers(-20, 20, (3000, 8)) / 8).astype(np.float32)


def put(table, i, row):
    return table.at[i].set(row), table[i]


def add(table, i, rows):
    return table.at[i].add(rows), {}


def shift(table, x):
    """Replaces the whole table."""
    return table + x, {}


def put_again(table, i, row):
    """Reads all of the old table, perhaps after the new one was begun."""
    return table.at[i].set(row).at[i + 1, 2:4].mul(2.0), table.sum()


def looped(table, n):
    """Might run out of memory half way."""
    return axir.lax.fori_loop(0, n, lambda i, t: t.at[i].set(jnp.sort(t[i] * t[i + 1])), table), {}


def read(table, i):
    return table[i]


CALLS = {
    "put": (put, np.int32(7), RNG.standard_normal(8).astype(np.float32)),
    "add": (add, np.array([7, 2999, 7], np.int32), RNG.standard_normal((3, 8)).astype(np.float32)),
    "shift": (shift, np.float32(0.5)),
    "put_again": (put_again, np.int32(-3), RNG.standard_normal(8).astype(np.float32)),
    "looped": (looped, np.int32(4)),
    "read": (read, np.array([0, 1, 2, 3, 7, 2997, 2998, 2999], np.int32)),
}


def test_rows_are_changed_where_they_lie(tmp_path: Path) -> None:
    functions = {name: functools.partial(f, jnp.array(TABLE)) for name, (f, *_) in CALLS.items()}
    updates = {name: {"table": "result[0]"} for name in CALLS if name != "read"}
    arguments = {name: tuple(given) for name, (_, *given) in CALLS.items()}
    bundle = export(functions, updates=updates)(**arguments)
    emitted = cpp_models.emit(dict(bundle), tmp_path, "tables")
    source = (tmp_path / "tables.cpp").read_text()
    bodies = {name: source.split(f"::call_{name}(")[1].split("\n}\n")[0] for name in CALLS}
    is_beside = {name: "next_table" in body for name, body in bodies.items()}
    assert is_beside == {name: name in ("shift", "looped") for name in CALLS}
    copies = f"{TABLE.nbytes});"
    is_copied = {name: copies in bodies[name] for name in ("put", "add", "put_again")}
    assert is_copied == {"put": False, "add": False, "put_again": True}
    write_inputs(tmp_path, emitted.interface, arguments)
    cpp_models.run(cpp_models.build(tmp_path, "driver", driver(emitted.interface)))
    for name, given in arguments.items():
        if name == "read":
            results = bundle[name](*given)
        else:
            results, bundle = bundle.advance(name, *given)
            results = results[1]
        wanted = [np.asarray(x) for x in axir.tree.leaves(results)]
        for x, y in zip(wanted, read_outputs(tmp_path, emitted.interface, name), strict=True):
            assert x.tobytes() == y.tobytes()
