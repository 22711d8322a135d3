"""Refs that live while a function runs, checks in kernels, cost estimates of kernels."""

from __future__ import annotations

import math
from collections.abc import Callable

from axir import lax
from axir._as_jax.programs import State
from axir._devices.placement import lies_where_told
from axir._transforms.jit import jit
from axir._transforms.refs import Ref, freeze, new_ref
from axir._trees import tree
from axir.dialect.core.annotations import (
    DTypeLike,
    PyTree,
    ShapeLike,
    Tree,
    UserFunction,
)
from axir.dialect.core.config import config
from axir.dialect.program.rules import Value
from axir.experimental import checkify
from axir.numpy import broadcast_to as numpy_broadcast_to

from ._memory import available, wanted_type
from ._specs import CostEstimate

enable_debug_checks = State("jax_pallas_enable_debug_checks")


def debug_checks_enabled() -> bool:
    """Tells whether `debug_check` checks anything."""
    return bool(config.jax_pallas_enable_debug_checks)


def debug_check(condition: Value, message: str) -> None:
    """States a condition in a kernel; `checkify` checks it if `enable_debug_checks` is on.

    >>> import axir, axir.numpy as jnp
    >>> from axir.experimental import checkify, pallas as pl
    >>> def kernel(x_ref, o_ref):
    ...     pl.debug_check(x_ref[0] > 0.0, "the first number must be positive")
    ...     o_ref[...] = x_ref[...]
    >>> call = checkify.checkify(lambda x: pl.pallas_call(kernel, x)(x))
    >>> with pl.enable_debug_checks(True):
    ...     error, _ = call(jnp.array([-1.0]))
    >>> "the first number must be positive" in error.get()
    True
    """
    if debug_checks_enabled():
        checkify.check(condition, message, debug=True)


def run_state(f: Callable[..., object]) -> UserFunction:
    """Returns a function of a tree of arrays: `f` gets refs of them, and their last values return.

    >>> import axir.numpy as jnp
    >>> from axir.experimental import pallas as pl
    >>> def double(refs):
    ...     refs["x"][...] = 2 * refs["x"][...]
    >>> pl.run_state(double)({"x": jnp.arange(3)})["x"]
    Array([0, 2, 4], dtype=int32)
    """

    def run(args: Tree) -> PyTree:
        refs = tree.map(lambda x: x if isinstance(x, Ref) else new_ref(x), args)
        f(refs)
        return tree.map(freeze, refs)

    return run


@lies_where_told
def empty(shape: ShapeLike, dtype: DTypeLike, *, out_sharding: object = None) -> Value:
    """Returns an array with unspecified elements; axir fills it with zeros."""
    return lax.empty(shape, dtype)


def empty_like(x: Tree) -> PyTree:
    """Returns arrays of the shapes and dtypes in a tree, with unspecified elements."""
    return tree.map(lambda leaf: empty(leaf.shape, leaf.dtype), x)


def empty_ref_like(x: object) -> Ref:
    """Returns a ref of some shape and dtype, with unspecified elements."""
    wanted = available(wanted_type(x, "empty_ref_like"))
    return new_ref(empty(wanted.shape, wanted.dtype))


def broadcast_to(a: Value, shape: tuple[int, ...]) -> Value:
    """Returns an array, repeated to a shape."""
    return numpy_broadcast_to(a, shape)


def estimate_cost(fun: Callable[..., object], *args: object, **kwargs: object) -> CostEstimate:
    """Returns the estimated cost of a function of arrays, from its operations.

    Args:
        fun: The function.
        *args: Its arguments, or objects with their shapes and dtypes.
        **kwargs: More of them, fixed.
    """
    lowered = jit(lambda *given: fun(*given, **kwargs)).lower(*args)
    costs = lowered.cost_analysis()
    results = tree.leaves(lowered.out_info)
    moved = sum(math.prod(x.shape) * x.dtype.itemsize for x in (*tree.leaves(args), *results))
    return CostEstimate(int(costs.get("flops", 0)), int(costs.get("transcendentals", 0)), moved)
