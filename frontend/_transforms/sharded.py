"""What programs say of where their values are: constraints, and the shardings of `jit`.

Values of a program are on the one device that it runs on, so a constraint is checked, and has no
work to do. What does not live here: functions of parts of arrays (`shard_mapping.py`).
"""

from __future__ import annotations

from axir._arguments.arguments import to_value
from axir._devices.partitions import as_sharding, only_device
from axir._devices.placement import put
from axir._devices.sharding import Sharding
from axir._trees import tree
from axir.dialect.core.annotations import Options, PyTree, UserFunction, UserObject
from axir.dialect.core.errors import ParameterError

from .jit import JitFunction


def with_sharding_constraint(x: PyTree, shardings: UserObject) -> PyTree:
    """Says where the arrays of a tree are in a program; returns them.

    Args:
        x: A tree of arrays.
        shardings: A sharding, a `PartitionSpec` for the mesh in use, or a tree of them that is a
            prefix of `x`; None says nothing.

    Raises:
        ShapeError: if an array cannot be spread so.
        MissingMeshError: for a specification if no mesh is in use.
        ParameterError: for anything else, or a sharding over several devices.

    >>> import axir, axir.numpy as jnp
    >>> from axir.sharding import PartitionSpec
    >>> with axir.set_mesh(axir.make_mesh((1,), ("x",))):
    ...     axir.lax.with_sharding_constraint(jnp.ones(2), PartitionSpec("x"))
    Array([1., 1.], dtype=float32)
    """
    return _placed(x, shardings, "with_sharding_constraint", "shardings")


def reshard(xs: PyTree, out_shardings: UserObject) -> PyTree:
    """Moves the arrays of a tree to where shardings say; see `with_sharding_constraint`."""
    return _placed(xs, out_shardings, "reshard", "out_shardings")


def _placed(x: PyTree, shardings: UserObject, what: str, argument: str) -> PyTree:
    places = tree.broadcast_prefix(shardings, x, argument)
    leaves, structure = tree.flatten(x)
    values = [to_value(leaf, lambda: f"An argument of {what}") for leaf in leaves]
    return structure.unflatten(
        [
            value if place is None else put(value, as_sharding(place, what), what)
            for value, place in zip(values, places, strict=True)
        ]
    )


class ShardedJitFunction(JitFunction):
    """A compiled function whose arguments and results have shardings; made by `jit`."""

    _in_shardings: UserObject = None
    _out_shardings: UserObject = None

    def with_shardings(self, in_shardings: UserObject, out_shardings: UserObject) -> UserObject:
        """Sets the shardings; returns the function."""
        self._in_shardings, self._out_shardings = in_shardings, out_shardings
        return self

    def _copy_of(self, function: UserFunction) -> JitFunction:
        made = ShardedJitFunction(function, *self._options)
        return made.with_shardings(self._in_shardings, self._out_shardings)

    def __reduce__(self) -> UserObject:
        found = super().__reduce__()
        if isinstance(found, str):
            return found
        shardings = self._in_shardings, self._out_shardings
        return _rebuilt, (self._function, self._options, *shardings)

    def __call__(self, *args: Options, **kwargs: Options) -> UserObject:
        """Puts the arguments where they belong, runs the program, and says where results are."""
        if self._in_shardings is not None:
            args = self._arranged(args, kwargs)
        results = super().__call__(*args, **kwargs)
        if self._out_shardings is None:
            return results
        return _placed(results, self._out_shardings, "jit", "out_shardings")

    def _arranged(
        self, args: tuple[UserObject, ...], kwargs: dict[str, Options]
    ) -> tuple[UserObject, ...]:
        if kwargs:
            raise ParameterError(
                "jit: does not support keyword arguments when in_shardings is specified, but got "
                f"{', '.join(kwargs)}.",
                "Pass them by position.",
            )
        dynamic = [n for n in range(len(args)) if n not in self._static_argnums]
        found = tuple(args[n] for n in dynamic)
        placed = _placed(found, self._in_shardings, "jit", "in_shardings")
        arranged = list(args)
        for n, x in zip(dynamic, placed, strict=True):
            arranged[n] = x
        return tuple(arranged)


def _rebuilt(
    function: UserFunction, options: Options, in_shardings: UserObject, out_shardings: UserObject
) -> UserObject:
    return ShardedJitFunction(function, *options).with_shardings(in_shardings, out_shardings)


def sharded_jit(
    function: UserFunction, options: Options, in_shardings: UserObject, out_shardings: UserObject
) -> UserObject:
    """Returns a function compiled with shardings of its arguments and results.

    Args:
        function: What to compile.
        options: The other options of `jit`.
        in_shardings: A sharding, a `PartitionSpec`, or a tree of them that is a prefix of the
            tuple of arguments; None leaves arguments where they are.
        out_shardings: The same for results.

    Raises:
        ParameterError: if a sharding has several devices.
    """
    for shardings in (in_shardings, out_shardings):
        for place in tree.leaves(shardings):
            if isinstance(place, Sharding):
                only_device(place, "jit")
    return ShardedJitFunction(function, *options).with_shardings(in_shardings, out_shardings)
