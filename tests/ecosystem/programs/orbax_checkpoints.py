"""orbax: trees of arrays that are saved and restored."""

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import orbax.checkpoint as ocp
from reporting import report

tree = {
    "layers": [jnp.arange(6.0).reshape(2, 3), jnp.ones(2, jnp.int32)],
    "step": 3,
    "half": jnp.array([1.5, 2.5], jnp.bfloat16),
}


def kept():
    """Returns the tree as restored without, and with, the shapes of its arrays."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder).resolve() / "saved"
        with ocp.StandardCheckpointer() as checkpointer:
            checkpointer.save(path, tree)
            checkpointer.wait_until_finished()
            shapes = jax.tree.map(ocp.utils.to_shape_dtype_struct, tree)
            return checkpointer.restore(path), checkpointer.restore(path, shapes)


restored, typed = kept()
report(
    restored=restored["layers"][0],
    integers=typed["layers"][1],
    half=typed["half"].astype(jnp.float32),
    is_array=isinstance(typed["layers"][0], jax.Array),
    step=restored["step"],
    timed=kept,
)
