"""MuJoCo MJX: a body that falls and comes to rest, step by step, and many of them at once."""

import jax
import jax.numpy as jnp
import mujoco
from mujoco import mjx
from reporting import report

MODEL = """
<mujoco>
  <option timestep="0.005" iterations="4"/>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body pos="0 0 .12">
      <joint type="free"/>
      <geom type="sphere" size=".1" mass="1"/>
    </body>
  </worldbody>
</mujoco>
"""
host = mujoco.MjModel.from_xml_string(MODEL)
model, data = mjx.put_model(host), mjx.make_data(host)
step = jax.jit(mjx.step)
heights = []
for _ in range(30):
    data = step(model, data)
    heights.append(data.qpos[2])
pushed = jax.vmap(lambda speed: data.replace(qvel=data.qvel.at[0].set(speed)))(jnp.arange(4.0))
moved = jax.jit(jax.vmap(mjx.step, in_axes=(None, 0)))(model, pushed)
# In one loop, which carries all of the state.
fallen = jax.jit(
    lambda data: jax.lax.scan(lambda d, _: (mjx.step(model, d), d.qpos[2]), data, length=50)
)
_, path = fallen(mjx.make_data(host))
# The place of the matrix depends on the version.
parts = vars(data) | vars(getattr(data, "_impl", data))
inertia = parts["qM"] if "qM" in parts else parts["M"]
report(
    heights=jnp.stack(heights),
    places=moved.qpos[:, 0],
    path=path,
    speeds=moved.qvel[:, 0],
    inertia=inertia,
    timed=lambda: step(model, data).qpos,
)
