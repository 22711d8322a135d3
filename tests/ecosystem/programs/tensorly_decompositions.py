"""TensorLy: tensors decomposed into factors, with JAX's arrays."""

import jax
import jax.numpy as jnp
import tensorly as tl
from reporting import report
from tensorly.decomposition import non_negative_parafac, parafac, tucker

tl.set_backend("jax")
keys = jax.random.split(jax.random.key(0), 3)
factors = [jax.random.uniform(key, (size, 3)) for key, size in zip(keys, (6, 7, 8), strict=True)]
tensor = tl.cp_to_tensor((jnp.ones(3), factors))
found = parafac(tensor, 3, init="svd", n_iter_max=30, random_state=0)
positive = non_negative_parafac(tensor, 3, init="svd", n_iter_max=30, random_state=0)
small = tucker(tensor, (2, 2, 2), n_iter_max=10)
multiply = jax.jit(lambda tensor, matrix: tl.tenalg.mode_dot(tensor, matrix, 1))
matrix = jnp.ones((4, 7))
report(
    rebuilt=tl.cp_to_tensor(found)[::2, ::3, ::4],
    positive_error=tl.norm(tensor - tl.cp_to_tensor(positive)) < 0.1 * tl.norm(tensor),
    tucker=tl.tucker_to_tensor(small)[::2, ::3, ::4],
    unfolded=tl.unfold(tensor, 1)[::3, ::9],
    product=tl.tenalg.khatri_rao(factors[:2])[::9],
    timed=lambda: multiply(tensor, matrix),
)
