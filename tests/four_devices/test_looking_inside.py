"""Traces, costs and memory of a program on four devices."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np

import axir
import axir.numpy as jnp
from axir import lax, profiler
from axir.sharding import Mesh
from axir.sharding import PartitionSpec as P


def test_a_trace_has_a_track_for_each_device_and_costs_are_those_of_one(tmp_path: Path) -> None:
    def step(w: axir.Array, x: axir.Array) -> tuple[axir.Array, axir.Array]:
        product = x @ w
        moved = lax.ppermute(product, "x", [(0, 1), (1, 0), (2, 3), (3, 2)])
        return lax.psum(product.sum(0), "x"), jnp.exp(moved)

    mesh = Mesh(np.array(axir.devices()), ("x",))
    mapped = axir.shard_map(step, mesh=mesh, in_specs=(P(), P("x")), out_specs=(P(), P("x")))
    w, x = np.ones((4, 8), np.float32), np.ones((16, 4), np.float32)
    compiled = axir.jit(mapped).lower(w, x).compile()
    costs, memory = compiled.cost_analysis(), compiled.memory_analysis()
    assert costs["transcendentals"] == 4 * 8  # of 16 rows each device has 4
    assert 2 * 4 * 4 * 8 <= costs["flops"] < 2 * 4 * 4 * 8 + 100
    assert costs["bytes received"] == 8 * 4 * 2 * 3 / 4 + 4 * 8 * 4
    assert memory.argument_size_in_bytes == 4 * (4 * 8 + 4 * 4)
    assert memory.output_size_in_bytes == 4 * (8 + 4 * 8)
    with profiler.trace(tmp_path):
        total, _ = axir.block_until_ready(compiled(w, x))  # by all devices
        np.testing.assert_array_equal(total, np.full(8, 64.0))
    (file,) = tmp_path.rglob("*.trace.json.gz")
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    rows = {
        event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"
    }
    tracks = {row: [] for row, name in rows.items() if name.startswith("cpu:")}
    for event in events:
        if event["ph"] == "X" and event["tid"] in tracks:
            tracks[event["tid"]].append(event)
    assert sorted(rows[row] for row in tracks) == ["cpu:0", "cpu:1", "cpu:2", "cpu:3"]
    for found in tracks.values():
        kinds = {event["cat"] for event in found}
        assert {"call", "collective", "dispatch"} <= kinds
        told = {e["name"]: e["args"] for e in found if e["cat"] == "collective"}
        assert told["psum"] == {"bytes": 32, "devices": "cpu:0, cpu:1, cpu:2, cpu:3"}
        assert told["ppermute"]["bytes"] == 4 * 8 * 4
