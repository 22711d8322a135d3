"""`axir.as_jax`: the names of JAX's of 2020, as documents of that time use them.

Everything runs in one process, which prints its results.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

PROGRAM = """
import axir.as_jax
import io, json
import numpy as np
import jax, jax.numpy as jnp
from jax import abstract_arrays, ad, api, batching, core, lax, xla
from jax.abstract_arrays import ShapedArray
from jax.config import config
from jax.experimental import host_callback
from jax.interpreters import partial_eval as pe
from jax.lib import xla_bridge, xla_client
from jax.util import safe_map

multiply_add = core.Primitive("multiply_add")
multiply_add.def_impl(lambda x, y, z: np.add(np.multiply(x, y), z))

def refused(call):
    try:
        call()
    except Exception as error:
        return [type(error).__name__, str(error)]

def apply(x, y):
    return multiply_add.bind(x, x, y)

found = {}
found["no type"] = refused(lambda: api.jit(apply)(2.0, 10.0))
multiply_add.def_abstract_eval(lambda x, y, z: abstract_arrays.ShapedArray(x.shape, x.dtype))
found["no translation"] = refused(lambda: api.jit(apply)(2.0, 10.0))
xla.backend_specific_translations["cpu"][multiply_add] = (
    lambda c, x, y, z: xla_client.ops.Add(xla_client.ops.Mul(x, y), z))
found["compiled"] = float(api.jit(apply)(2.0, 10.0))

scaled = core.Primitive("scaled")
scaled.def_abstract_eval(lambda x: ShapedArray(x.shape, x.dtype))
xla.translations[scaled] = lambda c, x: c.Select(
    c.Gt(x, c.Constant(np.float32(1))), c.Mul(c.Constant(np.float32(3)), x), c.Neg(x))
found["with scalars"] = jax.jit(scaled.bind)(jnp.array([1.0, 2.0])).tolist()
found["unknown operation"] = refused(lambda: xla_client.ops.Conv)

def rule(primals, tangents):
    x, y, z = primals
    dx, dy, dz = (lax.zeros_like_array(x) if t is ad.zero else t for t in tangents)
    return multiply_add.bind(*primals), multiply_add.bind(dx, y, multiply_add.bind(x, dy, dz))
ad.primitive_jvps[multiply_add] = rule
found["tangent"] = float(api.jvp(lambda x: multiply_add.bind(x, x, 1.0), (2.0,), (1.0,))[1])
batching.primitive_batchers[multiply_add] = lambda args, axes: (multiply_add.bind(*args), axes[0])
found["batched"] = jax.vmap(apply)(np.array([2.0, 3.0]), np.array([10.0, 20.0])).tolist()

pval = pe.PartialVal((ShapedArray((), np.dtype("float32")), core.unit))
fun = jax.linear_util.wrap_init(lambda x: [jnp.sin(x)])
jaxpr, _, consts = pe.trace_to_jaxpr(fun, [pval])
found["traced"] = [str(e.primitive) for e in jaxpr.eqns]

f = jax.custom_transforms(lambda x, y: x * y)
jax.defjvp(f, lambda dx, out, x, y: 5 * dx, None)
found["defjvp"] = [float(g) for g in jax.grad(f, (0, 1))(2.0, 3.0)]
jax.defvjp(f, None, lambda ct, out, x, y: ct * 7)
found["defvjp"] = [float(g) for g in jax.grad(f, (0, 1))(2.0, 3.0)]
jax.defvjp_all(f, lambda x, y: (x * y, lambda ct: (ct, 2 * ct)))
found["defvjp_all"] = [float(g) for g in jax.grad(f, (0, 1))(2.0, 3.0)]
jax.defjvp_all(f, lambda xs, ts: (xs[0] * xs[1], 9 * ts[0]))
found["defjvp_all"] = float(jax.grad(f)(2.0, 3.0))

stream = io.StringIO()
with host_callback.outfeed_receiver():
    jax.jit(lambda x: host_callback.id_print(x + 1, what="x", output_stream=stream) * 2)(1.0)
found["printed"] = stream.getvalue()
found["called"] = float(jax.jit(lambda x: host_callback.call(np.exp, x, result_shape=x))(0.0))
host_callback.barrier_wait()
config.update("jax_debug_nans", False)
found["config"] = type(jax.config).__name__ != "module" and jax.config is config
found["names"] = [
    jnp.ones(2).device_buffer.device() == jax.devices()[0],
    isinstance(jnp.ones(2), jax.DeviceArray), jax.host_count(), jax.host_ids(),
    core.TypedJaxpr is core.ClosedJaxpr, xla_bridge.device_count() == jax.device_count(),
    "stablehlo.sine" in jax.xla_computation(jnp.sin)(1.0).as_hlo_text(),
    jax.dlpack.from_dlpack(jax.dlpack.to_dlpack(jnp.arange(2))).tolist()]
found["rows"] = jnp.vstack([(jnp.ones(2),), (jnp.zeros(2),)]).tolist()
print(json.dumps(found))
"""
EXPECTED: dict[str, Any] = {
    "compiled": 14.0,
    "with scalars": [-1.0, 6.0],
    "tangent": 4.0,
    "batched": [14.0, 29.0],
    "traced": ["sin"],
    "defjvp": [5.0, 0.0],
    "defvjp": [0.0, 7.0],
    "defvjp_all": [1.0, 2.0],
    "defjvp_all": 9.0,
    "called": 1.0,
    "printed": "what: x\n2.\n",
    "config": True,
    "names": [True, True, 1, [0], True, True, True, [0, 1]],
    "rows": [[1.0, 1.0], [0.0, 0.0]],
}
REFUSED = {
    "no type": ["NotImplementedError", "Abstract evaluation for 'multiply_add'", "Define it with"],
    "no translation": ["NotImplementedError", "'multiply_add' not found for platform cpu"],
    "unknown operation": ["UnknownXlaOperationError", "no operation 'Conv'", "register_lowering"],
}


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """Returns the results of the program."""
    finished = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=True, text=True, stdout=subprocess.PIPE, timeout=120
    )
    return json.loads(finished.stdout)


@pytest.mark.parametrize("name", list(EXPECTED))
def test_what_was_computed(name: str, found: dict[str, Any]) -> None:
    assert found[name] == EXPECTED[name]


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_was_refused(name: str, found: dict[str, Any]) -> None:
    kind, text = found[name]
    assert kind == REFUSED[name][0]
    for part in REFUSED[name][1:]:
        assert part in text
