"""lineax: linear solves by several methods, least squares, derivatives through them."""

import jax
import jax.numpy as jnp
import lineax as lx
from reporting import report

matrix = jax.random.normal(jax.random.key(0), (5, 5)) + 5 * jnp.eye(5)
vector = jnp.arange(5.0)
spd = matrix @ matrix.T
results = {}
for name, array, solver, tags in (
    ("lu", matrix, lx.LU(), ()),
    ("qr", matrix[:, :3], lx.QR(), ()),
    ("svd", matrix[:, :3], lx.SVD(), ()),
    ("cholesky", spd, lx.Cholesky(), lx.positive_semidefinite_tag),
    ("cg", spd, lx.CG(rtol=1e-5, atol=1e-5), lx.positive_semidefinite_tag),
    ("gmres", matrix, lx.GMRES(rtol=1e-3, atol=1e-3, restart=5), ()),
):
    operator = lx.MatrixLinearOperator(array, tags)
    solve = jax.jit(lambda v, o=operator, s=solver: lx.linear_solve(o, v, s).value)
    results[name] = solve(vector)


def energy(matrix, vector):
    return jnp.sum(lx.linear_solve(lx.MatrixLinearOperator(matrix), vector).value ** 2)


function = lx.FunctionLinearOperator(lambda x: 2 * x, jax.ShapeDtypeStruct((5,), jnp.float32))
results["gradient"] = jax.grad(energy)(matrix, vector)
results["hessian"] = jax.hessian(energy, argnums=1)(matrix, vector)
results["batched"] = jax.vmap(lambda s: energy(s * matrix, vector))(jnp.array([1.0, 2.0]))
results["function"] = lx.linear_solve(
    function + lx.IdentityLinearOperator(jax.ShapeDtypeStruct((5,), jnp.float32)), vector
).value
report(**results, timed=lambda: solve(vector))
