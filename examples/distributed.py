"""Trains a small transformer on text of Python's documentation, on any number of devices.

    python examples/distributed.py                             # one device
    JAX_NUM_CPU_DEVICES=4 python examples/distributed.py       # four, in one process
    mpirun -n 2 python examples/distributed.py                 # two processes

The batch is cut along the axis `data` of the mesh, and matrix products along the axis `model`:
heads of attention and the hidden features of layers. The program specifies only the placement of
arrays; the computation of each device, and the communication, follow from it. The losses are the
same as on one device up to rounding. In the middle the model is saved and restored, and the
training continues.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np

import axir as jax
import axir.numpy as jnp
from axir import checkpoint, lax
from axir.experimental import multihost_utils
from axir.sharding import AxisType, Mesh, NamedSharding
from axir.sharding import PartitionSpec as P

FEATURES, HIDDEN, HEADS, LAYERS, LENGTH, BATCH = 32, 64, 4, 1, 32, 8
RATE, MOMENTUM = 0.1, 0.9

# Where parameters lie: those that make heads or hidden features are cut by them.
LAYOUT = {
    "query": P(None, "model", None),
    "key": P(None, "model", None),
    "value": P(None, "model", None),
    "merge": P("model", None, None),
    "widen": P(None, "model"),
    "narrow": P("model", None),
    "first_scale": P(),
    "second_scale": P(),
}


def text() -> tuple[np.ndarray, int]:
    """Returns the characters of Python's help topics as numbers, and how many kinds there are."""
    content = "\n".join(topics[name] for name in sorted(topics))[:100_000]
    kinds = {kind: number for number, kind in enumerate(sorted(set(content)))}
    return np.array([kinds[character] for character in content], np.int32), len(kinds)


def batches(content: np.ndarray, steps: int) -> np.ndarray:
    """Returns pieces of the text, `(steps, BATCH, LENGTH + 1)`: the same in all processes."""
    starts = np.random.default_rng(0).integers(0, len(content) - LENGTH - 1, (steps, BATCH))
    return content[starts[..., None] + np.arange(LENGTH + 1)]


def parameters(kinds: int) -> dict[str, object]:
    """Returns the parameters of the first step."""
    random = np.random.default_rng(1)

    def normal(*shape: int, fan_in: int) -> np.ndarray:
        return (random.standard_normal(shape) / math.sqrt(fan_in)).astype(np.float32)

    def layer() -> dict[str, np.ndarray]:
        size = FEATURES // HEADS
        heads = {
            name: normal(FEATURES, HEADS, size, fan_in=FEATURES)
            for name in ("query", "key", "value")
        }
        return {
            **heads,
            "merge": normal(HEADS, size, FEATURES, fan_in=FEATURES),
            "widen": normal(FEATURES, HIDDEN, fan_in=FEATURES),
            "narrow": normal(HIDDEN, FEATURES, fan_in=HIDDEN),
            "first_scale": np.ones(FEATURES, np.float32),
            "second_scale": np.ones(FEATURES, np.float32),
        }

    return {
        "embedding": normal(kinds, FEATURES, fan_in=FEATURES),
        "places": normal(LENGTH, FEATURES, fan_in=FEATURES),
        "layers": [layer() for _ in range(LAYERS)],
        "output": normal(FEATURES, kinds, fan_in=FEATURES),
    }


def layout() -> dict[str, object]:
    """Returns along which axes of the mesh each parameter is cut."""
    return {"embedding": P(), "places": P(), "layers": [LAYOUT] * LAYERS, "output": P()}


def normalized(x: jax.Array, scale: jax.Array) -> jax.Array:
    """Divides by the root of the mean square, and scales."""
    return scale * x * lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def attended(x: jax.Array, layer: dict[str, jax.Array]) -> jax.Array:
    """Attends to earlier positions, with each of the heads."""
    query, key, value = (
        jnp.einsum("btf,fhs->bhts", x, layer[name]) for name in ("query", "key", "value")
    )
    scores = jnp.einsum("bhts,bhus->bhtu", query, key) / math.sqrt(FEATURES // HEADS)
    is_before = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
    weights = jax.nn.softmax(jnp.where(is_before, scores, -1e9), axis=-1)
    return jnp.einsum(
        "bhts,hsf->btf", jnp.einsum("bhtu,bhus->bhts", weights, value), layer["merge"]
    )


def loss(params: dict[str, object], batch: jax.Array) -> jax.Array:
    """Returns the mean of minus the logarithm of the probability of the next character."""
    given, next_ones = batch[:, :-1], batch[:, 1:]
    x = params["embedding"][given] + params["places"]
    for layer in params["layers"]:
        x = x + attended(normalized(x, layer["first_scale"]), layer)
        hidden = jax.nn.gelu(normalized(x, layer["second_scale"]) @ layer["widen"])
        x = x + hidden @ layer["narrow"]
    logits = jax.nn.log_softmax(x @ params["output"])
    kinds = logits.shape[-1]
    return -jnp.mean(jnp.sum(logits * jax.nn.one_hot(next_ones, kinds), axis=-1))


def step(state: dict[str, object], batch: jax.Array) -> tuple[dict[str, object], jax.Array]:
    """Takes one step of gradient descent with momentum."""
    value, slopes = jax.value_and_grad(loss)(state["params"], batch)
    speed = jax.tree.map(lambda v, g: MOMENTUM * v + g, state["speed"], slopes)
    params = jax.tree.map(lambda p, v: p - RATE * v, state["params"], speed)
    return {"params": params, "speed": speed}, value


def mesh_of(devices: list[jax.Device]) -> Mesh:
    """Returns a mesh of the devices: two along `model` if there are four or more."""
    model = 2 if len(devices) % 2 == 0 and len(devices) >= 4 else 1
    shape = (len(devices) // model, model)
    return jax.make_mesh(shape, ("data", "model"), (AxisType.Auto,) * 2, devices=devices)


def spread(mesh: Mesh, tree: object, specs: object) -> object:
    """Puts arrays that all processes have on the devices of a mesh."""

    def put(x: np.ndarray, spec: P) -> jax.Array:
        sharding = NamedSharding(mesh, spec)
        return jax.make_array_from_callback(x.shape, sharding, lambda index: x[index])

    return jax.tree.map(put, tree, specs)


def train(devices: list[jax.Device], steps: int, folder: Path | None = None) -> list[float]:
    """Trains on some devices; returns the loss of each step.

    Args:
        devices: The devices.
        steps: How many steps.
        folder: Where to save the model in the middle, and to read it again; None does not.
    """
    content, kinds = text()
    mesh = mesh_of(devices)
    params = parameters(kinds)
    start = {"params": params, "speed": jax.tree.map(np.zeros_like, params)}
    state = spread(mesh, start, {"params": layout(), "speed": layout()})
    places = jax.tree.map(lambda x: x.sharding, state)
    compiled = jax.jit(step, out_shardings=(places, NamedSharding(mesh, P())))
    losses = []
    for number, batch in enumerate(batches(content, steps)):
        if folder is not None and number == steps // 2:
            checkpoint.save(folder, state, number)
            state = checkpoint.restore(folder, state)
        state, value = compiled(state, spread(mesh, batch, P("data")))
        losses.append(float(value))
    return losses


def evaluate(devices: list[jax.Device]) -> float:
    """Returns the loss of the first parameters, by a program of parts (`shard_map`)."""
    content, kinds = text()
    mesh = jax.make_mesh((len(devices),), ("data",), (AxisType.Auto,), devices=devices)
    batch = spread(mesh, batches(content, 1)[0], P("data"))

    @jax.jit
    @jax.shard_map(mesh=mesh, in_specs=(P(), P("data")), out_specs=P())
    def mean_loss(params: dict[str, object], part: jax.Array) -> jax.Array:
        return lax.pmean(loss(params, part), "data")

    return float(mean_loss(parameters(kinds), batch))


def main() -> None:
    """Trains, and tells the losses."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--folder", type=Path, help="where the model is saved; all processes' own")
    options = parser.parse_args()
    jax.distributed.initialize()
    if options.folder is None:
        name = tempfile.mkdtemp() if jax.process_index() == 0 else ""
        told = multihost_utils.broadcast_one_to_all(np.frombuffer(name.ljust(200).encode(), "u1"))
        options.folder = Path(told.tobytes().decode().strip())
    losses = train(jax.devices(), options.steps, options.folder)
    first = evaluate(jax.devices())
    if jax.process_index() == 0:
        shape = dict(mesh_of(jax.devices()).shape)
        print(f"{jax.device_count()} devices in {jax.process_count()} processes, as {shape}")
        print(f"first loss by shard_map {first:.6f}")
        print("losses", " ".join(f"{value:.6f}" for value in losses))


if __name__ == "__main__":
    main()
