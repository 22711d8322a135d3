"""`axir.nn`: functions and initializers of neural networks, with JAX's names.

>>> import axir, axir.numpy as jnp
>>> axir.nn.relu(jnp.array([-1.0, 2.0]))
Array([0., 2.], dtype=float32)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from axir.dialect.core.annotations import UserObject
from axir.numpy._elementwise.exponential import tanh
from axir.numpy._reductions.logsumexp import logsumexp

from ._activations import (
    celu,
    elu,
    gelu,
    glu,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    identity,
    leaky_relu,
    log1mexp,
    log_sigmoid,
    mish,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_sign,
    softplus,
    sparse_plus,
    sparse_sigmoid,
    squareplus,
    swish,
)
from ._attention import dot_product_attention
from ._normalization import log_softmax, logmeanexp, normalize, one_hot, softmax, standardize
from ._scaled import get_scaled_dot_general_config, scaled_dot_general, scaled_matmul

if TYPE_CHECKING:
    from . import initializers

__all__ = [
    "celu", "dot_product_attention", "elu", "gelu", "get_scaled_dot_general_config", "glu",
    "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity", "initializers",
    "leaky_relu", "log1mexp", "log_sigmoid", "log_softmax", "logmeanexp", "logsumexp", "mish",
    "normalize", "one_hot", "relu", "relu6", "scaled_dot_general", "scaled_matmul", "selu",
    "sigmoid", "silu", "soft_sign", "softmax", "softplus", "sparse_plus", "sparse_sigmoid",
    "squareplus", "standardize", "swish", "tanh",
]  # fmt: skip


def __getattr__(name: str) -> UserObject:
    if name == "initializers":  # random numbers take 20 ms to load
        return importlib.import_module("axir.nn.initializers")
    raise AttributeError(f"module 'axir.nn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
