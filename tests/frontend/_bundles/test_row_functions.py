"""Functions of NumPy, SciPy, layers and solvers that treat rows independently are proved.

The first argument is a parameter, the second has rows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax, nn
from axir.export import export, symbolic_args_specs

W = jnp.eye(6) + 0.1

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "broadcast": lambda w, x: x + jnp.broadcast_to(w, x.shape),
    "tile": lambda w, x: x + jnp.tile(w, (x.shape[0], 1)),
    "repeat": lambda w, x: x + jnp.repeat(w[None], x.shape[0], 0),
    "stack": lambda w, x: jnp.concatenate([jnp.broadcast_to(w, (len(x), 1, 6)), x[:, None]], 1),
    "zeros_like": lambda w, x: jnp.zeros_like(x) + jnp.ones_like(x) * w,
    "npzeros": lambda w, x: np.zeros(x.shape, np.float32) + x * w,
    "npindex": lambda w, x: x[np.arange(len(x)), jnp.argmax(x * w, -1)],
    "full": lambda w, x: jnp.full((len(x), 6), w[0]) + x,
    "lstm": lambda w, x: (
        lax.scan(
            lambda c, t: ((nn.sigmoid(c[0] + t), jnp.tanh(c[1] * t)), c[0]),
            (jnp.zeros((len(x),)), jnp.zeros((len(x),))),
            x.T,
        )[1].T
        * w
    ),
    "ctc": lambda w, x: jnp.logaddexp(x, w) + jnp.logaddexp.reduce(x, axis=-1)[:, None],
    "vmap_pad": lambda w, x: axir.vmap(jnp.convolve, in_axes=(0, None))(x, w),
    "conv1d": lambda w, x: lax.conv_general_dilated(x[:, None], w.reshape(1, 1, 6), (1,), "SAME"),
    "groupnorm": lambda w, x: (
        (x.reshape(-1, 2, 3) - x.reshape(-1, 2, 3).mean(-1, keepdims=True)).reshape(x.shape) * w
    ),
    "cosine": lambda w, x: (x @ w) / (jnp.linalg.norm(x, axis=1) * jnp.linalg.norm(w)),
    "kmeans": lambda w, x: jnp.argmin(((x[:, None] - W[None]) ** 2).sum(-1), 1),
    "searchsorted": lambda w, x: jnp.searchsorted(w, x),
    "digitize": lambda w, x: jnp.digitize(x, w),
    "knn": lambda w, x: lax.top_k(-((x[:, None] - W[None]) ** 2).sum(-1), 2)[1],
    "poly": lambda w, x: jnp.polyval(w, x),
    "logdet": lambda w, x: jnp.linalg.slogdet(x[:, :, None] * x[:, None] + jnp.eye(6))[1],
    "eigh": lambda w, x: jnp.linalg.eigh(x[:, :, None] * x[:, None])[0],
    "svd": lambda w, x: jnp.linalg.svd(x[:, :, None] * x[:, None])[1],
    "expm": lambda w, x: axir.vmap(axir.scipy.linalg.expm)(x[:, :, None] * x[:, None]),
    "newton": lambda w, x: axir.vmap(
        lambda r: lax.while_loop(
            lambda s: jnp.abs(s**2 - 2).max() > 1e-3, lambda s: (s + 2 / s) / 2, r
        )
    )(x),
    "bisect_fori": lambda w, x: lax.fori_loop(
        0, 10, lambda i, lh: (jnp.where(lh[0] > x, lh[0], x), lh[1] * 0.5), (x, x)
    )[0],
    "rope": lambda w, x: jnp.concatenate(
        [x[:, :3] * jnp.cos(w[:3]) - x[:, 3:] * jnp.sin(w[:3]), x[:, 3:]], -1
    ),
    "dropout_eval": lambda w, x: jnp.where(True, x, 0) * w,
    "segment": lambda w, x: axir.vmap(
        lambda r: axir.ops.segment_sum(r, jnp.array([0, 0, 1, 1, 2, 2]), 3)
    )(x),
    "erf_igamma": lambda w, x: axir.scipy.special.gammainc(jnp.abs(x) + 1, jnp.abs(w) + 1),
    "betainc": lambda w, x: axir.scipy.special.betainc(jnp.abs(x) + 1, jnp.abs(w) + 1, 0.3),
    "normlogpdf": lambda w, x: axir.scipy.stats.norm.logpdf(x, w, 1.0).sum(-1),
    "percentile": lambda w, x: jnp.percentile(x, 30.0, axis=1),
    "quantile": lambda w, x: jnp.quantile(x, jnp.array([0.1, 0.9]), axis=1).T,
    "cumlogsumexp": lambda w, x: lax.cumlogsumexp(x, axis=1),
    "assoc": lambda w, x: lax.associative_scan(jnp.add, x, axis=1),
    "wherearg": lambda w, x: jnp.where(jnp.arange(6) < 3, x, w),
    "select": lambda w, x: jnp.select([x > 0, x > 1], [x, w], 0.0),
    "piecewise": lambda w, x: jnp.piecewise(x, [x < 0, x >= 0], [-1, 1]),
    "switch_vmap": lambda w, x: axir.vmap(
        lambda r: lax.switch(jnp.argmax(r) % 2, [jnp.sin, jnp.cos], r)
    )(x),
    "ode": lambda w, x: lax.scan(lambda y, _: (y + 0.1 * jnp.sin(y), None), x, None, length=5)[0],
    "odeint": lambda w, x: axir.vmap(
        lambda r: axir.experimental.ode.odeint(lambda y, t: -y, r, jnp.linspace(0.0, 1.0, 3))
    )(x),
    "beam": lambda w, x: jnp.take_along_axis(x[:, :, None] * w, jnp.argsort(x, 1)[:, :2, None], 1),
    "onehot_mm": lambda w, x: nn.one_hot(jnp.argmax(x, -1), 6) @ W,
    "nanmean": lambda w, x: jnp.nanmean(x, 1),
    "var": lambda w, x: jnp.var(x, axis=1) + jnp.std(x, -1),
    "maxpool": lambda w, x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2), (1, 2), "VALID"),
    "flip": lambda w, x: jnp.flip(x, 1) + jnp.fliplr(x),
    "meshgrid": lambda w, x: x[:, None] * jnp.meshgrid(w, w)[0],
    "vander": lambda w, x: axir.vmap(jnp.vander)(x),
    "trapz": lambda w, x: jnp.trapezoid(x, axis=1),
    "grad_in": lambda w, x: x - 0.1 * axir.grad(lambda x: ((x @ W) ** 2).sum())(x),
    "hvp": lambda w, x: axir.jvp(axir.grad(lambda x: (jnp.sin(x) ** 2).sum()), (x,), (x,))[1],
    "hess": lambda w, x: axir.vmap(axir.hessian(lambda r: (r**3).sum()))(x),
    "swapaxes": lambda w, x: jnp.moveaxis(x[None], 0, -1),
    "squeeze": lambda w, x: jnp.squeeze(x[:, None], 1),
    "expand2": lambda w, x: jnp.atleast_3d(x),
    "hstack": lambda w, x: jnp.hstack([x, x]) + jnp.tile(w, 2),
    "dstack": lambda w, x: jnp.dstack([x, x]),
    "split": lambda w, x: jnp.split(x, 3, -1),
    "astype": lambda w, x: (x.astype(jnp.int32) % 3).astype(jnp.bfloat16),
    "bits": lambda w, x: lax.bitcast_convert_type(x, jnp.int32),
    "complex": lambda w, x: jnp.abs(jnp.exp(1j * x)),
    "sum_all_axes_but": lambda w, x: x.reshape(-1, 2, 3).sum((1, 2)),
    "keys": lambda w, x: (
        axir.vmap(lambda s: axir.random.normal(axir.random.key(s), (2,)))(jnp.arange(6)).sum() + x
    ),
    "checkify": lambda w, x: lax.stop_gradient(x) * w,
    "named": axir.named_call(lambda w, x: x * w, name="foo"),
    "remat": axir.checkpoint(lambda w, x: jnp.sin(x * w)),
    "optbar": lambda w, x: lax.optimization_barrier((x, x * w))[1],
    "if_ndim": lambda w, x: x[..., None] @ w[None] if x.ndim == 2 else x,
    "cumsum_t": lambda w, x: jnp.cumsum(x.T, 0).T,
    "lexsort": lambda w, x: jnp.sort(x, axis=1, descending=True),
    "argpart": lambda w, x: jnp.argpartition(x, 2, axis=1),
    "inner": lambda w, x: jnp.inner(x, W),
    "outer": lambda w, x: jnp.einsum("bi,j->bij", x, w),
    "kron": lambda w, x: axir.vmap(jnp.kron, in_axes=(0, None))(x, w),
    "triu": lambda w, x: jnp.triu(x[:, :, None] * x[:, None]),
    "diag": lambda w, x: jnp.diagonal(x[:, :, None] * x[:, None], axis1=1, axis2=2),
    "trace": lambda w, x: jnp.trace(x[:, :, None] * x[:, None], axis1=1, axis2=2),
    "vmapdiag": lambda w, x: axir.vmap(jnp.diag)(x),
    "inv": lambda w, x: jnp.linalg.inv(x[:, :, None] * x[:, None] + jnp.eye(6)),
    "pinv": lambda w, x: jnp.linalg.pinv(x[:, :, None] * x[:, None] + jnp.eye(6)),
    "det": lambda w, x: jnp.linalg.det(x[:, :, None] * x[:, None] + jnp.eye(6)),
    "lstsq": lambda w, x: axir.vmap(lambda r: jnp.linalg.lstsq(W, r)[0])(x),
    "cho": lambda w, x: axir.scipy.linalg.cho_solve((jnp.eye(6), True), x.T).T,
    "cg": lambda w, x: axir.vmap(lambda r: axir.scipy.sparse.linalg.cg(lambda v: 2 * v, r)[0])(x),
    "bincount": lambda w, x: axir.vmap(lambda r: jnp.bincount(jnp.abs(r).astype(int), length=4))(x),
    "unique": lambda w, x: axir.vmap(lambda r: jnp.unique(r, size=4))(x),
    "ifft2": lambda w, x: jnp.fft.ifft2(x.reshape(-1, 2, 3)).real,
    "sequence_mask": lambda w, x: jnp.where(jnp.arange(6)[None] < jnp.argmax(x, 1)[:, None], x, 0),
    "lastvalid": lambda w, x: x[jnp.arange(x.shape[0]), jnp.sum(x > 0, 1) - 1],
    "scatter_rows": lambda w, x: axir.vmap(lambda r: jnp.zeros(6).at[jnp.argsort(r)].set(r))(x),
    "dus": lambda w, x: lax.dynamic_update_slice(x, x[:, :1] * 0, (0, 2)),
    "ds": lambda w, x: lax.dynamic_slice(x, (0, 1), (x.shape[0], 2)),
    "ds_in_dim": lambda w, x: lax.dynamic_slice_in_dim(x, jnp.argmax(w), 2, 1),
    "kvcache": lambda w, x: lax.dynamic_update_slice(
        jnp.zeros((len(x), 8, 6)), x[:, None], (0, 3, 0)
    ),
    "resize": lambda w, x: axir.image.resize(x.reshape(-1, 2, 3), (x.shape[0], 4, 6), "bilinear"),
    "ffill": lambda w, x: lax.cummax(jnp.where(x > 0, jnp.arange(6), 0), axis=1),
    "pow": lambda w, x: x**2 + x**w + 2**x,
    "mod": lambda w, x: jnp.mod(x, 3) + x // 2,
    "glu": lambda w, x: nn.glu(x) + nn.silu(x[:, :3]),
    "hardtanh": lambda w, x: (
        nn.hard_tanh(x) + nn.elu(x) + nn.selu(x) + nn.softplus(x) + nn.leaky_relu(x) + nn.celu(x)
    ),
    "dpa": lambda w, x: nn.dot_product_attention(*[x.reshape(-1, 3, 1, 2)] * 3),
    "avgpool": lambda w, x: lax.reduce_window(x, 0.0, lax.add, (1, 3), (1, 1), "SAME") / 3,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_are_proved_to_be_on_their_own(name: str) -> None:
    function = functools.partial(FUNCTIONS[name], jnp.arange(6.0))
    x = np.random.default_rng(2).normal(size=(4, 6)).astype(np.float32)
    exported = export(function)(*symbolic_args_specs((x,), "b, ..."))
    values = list(exported.parameters.values())
    with axir.disable_jit():
        several = exported.of_rows(4)
        found = several.function.evaluate(
            jnp.asarray(x), *values[: len(several.function.inputs) - 1]
        )
        expected = axir.tree.leaves(function(jnp.asarray(x)))
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(
            np.asarray(got, np.complex64), np.asarray(wanted, np.complex64), rtol=2e-3, atol=2e-3
        )
