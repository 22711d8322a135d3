"""`with_sharding_constraint`: where values lie inside a program."""

from __future__ import annotations

from axir._trees import tree
from axir.dialect.core.annotations import PyTree, UserObject
from axir.dialect.core.fixed_options import one_layout
from axir.dialect.ops.elementwise.family import as_value


def with_sharding_constraint(x: PyTree, shardings: UserObject) -> UserObject:
    """Returns values as they are, having checked that they are to lie on one device.

    Args:
        x: Array or tree of arrays.
        shardings: A sharding over one device, None, or a tree of such.

    Raises:
        ParameterError: for a sharding over several devices.

    >>> import axir, axir.numpy as jnp
    >>> here = axir.sharding.SingleDeviceSharding(axir.devices()[0])
    >>> axir.jit(lambda x: with_sharding_constraint(x, here) + 1)(jnp.arange(2))
    Array([1, 2], dtype=int32)
    """
    for sharding in tree.leaves(shardings):
        if getattr(sharding, "num_devices", None) != 1:
            raise one_layout("with_sharding_constraint", sharding)
    return tree.map(as_value, x)
