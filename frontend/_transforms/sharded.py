"""Placement of the values of programs: constraints, and the shardings of `jit`.

Elsewhere: functions of parts of arrays (`shard_mapping.py`), and how programs are cut into parts
(`passes/partition/`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from axir._arguments.arguments import to_value
from axir._devices.partitions import NamedSharding, as_sharding, place_of
from axir._devices.placement import put
from axir._devices.sharding import Sharding
from axir._trees import tree
from axir.dialect.core.annotations import Options, PyTree, Tree, UserFunction, UserObject
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.errors import ParameterError
from axir.dialect.program.rules import Value
from axir.runtime.calls.compiled_function import CompiledFunction
from axir.runtime.spmd.partitioned import Place
from axir.runtime.spmd.placed_calls import placed
from axir.runtime.spmd.placement import Placement
from axir.runtime.spmd.program import MeshProgram

from .jit_function import JitFunction
from .stages import Lying, described_place


def with_sharding_constraint(x: Tree, shardings: object) -> PyTree:
    """Says where the arrays of a tree are in a program; returns them.

    Args:
        x: A tree of arrays.
        shardings: A sharding, a `PartitionSpec` for the mesh in use, or a tree of them that is a
            prefix of `x`; None says nothing.

    Raises:
        ShapeError: if an array cannot be spread so.
        MissingMeshError: for a specification if no mesh is in use.
        ParameterError: for anything else.

    >>> import axir, axir.numpy as jnp
    >>> from axir.sharding import PartitionSpec
    >>> with axir.set_mesh(axir.make_mesh((1,), ("x",))):
    ...     axir.lax.with_sharding_constraint(jnp.ones(2), PartitionSpec("x"))
    Array([1., 1.], dtype=float32)
    """
    return _placed(x, shardings, "with_sharding_constraint", "shardings")


def reshard(xs: Tree, out_shardings: object) -> PyTree:
    """Moves the arrays of a tree to where shardings say; see `with_sharding_constraint`."""
    return _placed(xs, out_shardings, "reshard", "out_shardings")


def _placed(x: Tree, shardings: object, what: str, argument: str) -> PyTree:
    places = tree.broadcast_prefix(shardings, x, argument)
    leaves, structure = tree.flatten(x)
    values = [to_value(leaf, lambda: f"An argument of {what}") for leaf in leaves]
    return structure.unflatten(
        [
            value if place is None else _put(value, as_sharding(place, what), what)
            for value, place in zip(values, places, strict=True)
        ]
    )


def _put(value: Value, place: Sharding, what: str) -> Value:
    """Moves a value to its placement; returns it unchanged if it is there."""
    is_there = (
        type(value) is ConcreteArray
        and isinstance(place, NamedSharding)
        and place.num_devices > 1
        and value._device == place.placement
    )
    return value if is_there else put(value, place, what)


class ShardingMismatchError(ParameterError):
    """An argument is committed to lie elsewhere than `in_shardings` says."""


class ShardedJitFunction(JitFunction):
    """A compiled function with shardings of arguments and results; made by `jit`."""

    _in_shardings: UserObject = None
    _out_shardings: UserObject = None

    def with_shardings(self, in_shardings: object, out_shardings: object) -> UserObject:
        """Sets the shardings; returns the function."""
        self._in_shardings, self._out_shardings = in_shardings, out_shardings
        # Each choice of shardings has separate caches.
        self._entries = {}
        return self

    def _copy_of(self, function: Callable[..., object]) -> JitFunction:
        made = ShardedJitFunction(function, *self._options)
        return made.with_shardings(self._in_shardings, self._out_shardings)

    def __reduce__(self) -> UserObject:
        found = super().__reduce__()
        if isinstance(found, str):
            return found
        shardings = self._in_shardings, self._out_shardings
        return _rebuilt, (self._function, self._options, *shardings)

    def __call__(self, *args: object, **kwargs: object) -> UserObject:
        """Puts the arguments where they belong, and runs the program that puts the results there.

        Raises:
            ShardingMismatchError: an argument is committed to lie elsewhere.
        """
        if self._in_shardings is not None:
            args = self._arranged(args, kwargs)
        results = super().__call__(*args, **kwargs)
        if self._out_shardings is None:
            return results
        return _placed(results, self._out_shardings, "jit", "out_shardings")

    def _placed(
        self,
        entry: UserObject,
        places: tuple[Place, ...] | None,
        common: Place,
        donated: tuple[int, ...],
    ) -> CompiledFunction | MeshProgram:
        """Returns the compiled form of an entry, which puts results in their places."""
        lying = places or (None,) * len(entry.function.inputs)
        results = self._result_places(entry.out_tree)
        return placed(entry.function, lying, common, donated, self._wait, results)

    def _result_places(self, out_tree: tree.TreeDef) -> tuple[Placement | None, ...]:
        """Returns where the results lie that are to lie on several devices."""
        if self._out_shardings is None:
            return ()
        numbers = tree.unflatten(out_tree, range(out_tree.num_leaves))
        found = tree.broadcast_prefix(self._out_shardings, numbers, "out_shardings")
        return tuple([x if isinstance(x, Placement) else None for x in _places(found)])

    def _lying(
        self, leaves: Sequence[object], in_tree: tree.TreeDef, out_tree: tree.TreeDef
    ) -> Lying:
        """Returns where arguments and results are, as the shardings say."""
        args, _ = in_tree.unflatten(leaves)
        given: tuple[Place, ...] = (None,) * len(leaves)
        if self._in_shardings is not None:
            given = _places(tree.broadcast_prefix(self._in_shardings, args, "in_shardings"))
        places = [p or described_place(x) for p, x in zip(given, leaves, strict=True)]
        return Lying(tuple(places), self._result_places(out_tree))

    def _arranged(
        self, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[UserObject, ...]:
        if kwargs:
            raise ParameterError(
                "jit: does not support keyword arguments when in_shardings is specified, but got "
                f"{', '.join(kwargs)}.",
                "Pass them by position.",
            )
        dynamic = [n for n in range(len(args)) if n not in self._static.numbers]
        found = tuple(args[n] for n in dynamic)
        self._check_committed(found)
        moved = _placed(found, self._in_shardings, "jit", "in_shardings")
        arranged = list(args)
        for n, x in zip(dynamic, moved, strict=True):
            arranged[n] = x
        return tuple(arranged)

    def _check_committed(self, args: tuple[object, ...]) -> None:
        """Raises `ShardingMismatchError` for an argument that is committed to lie elsewhere."""
        places = tree.broadcast_prefix(self._in_shardings, args, "in_shardings")
        for number, (x, place) in enumerate(zip(tree.leaves(args), places, strict=True)):
            if type(x) is not ConcreteArray or x._device is None or place is None:
                continue
            wanted = as_sharding(place, "jit")
            found: Sharding = getattr(x, "sharding")  # noqa: B009
            if not found.is_equivalent_to(wanted, x.ndim):
                raise ShardingMismatchError(
                    f"jit of {self.__name__!r}: argument {tree.paths(args)[number]} has the "
                    f"sharding {found}, but in_shardings says {wanted}.",
                    "Move it with axir.device_put(x, sharding) before the call, or leave its "
                    "sharding out of in_shardings.",
                )


def _places(shardings: Sequence[object]) -> tuple[Place, ...]:
    return tuple([place_of(None if x is None else as_sharding(x, "jit")) for x in shardings])


def _rebuilt(
    function: UserFunction, options: Options, in_shardings: object, out_shardings: object
) -> object:
    return ShardedJitFunction(function, *options).with_shardings(in_shardings, out_shardings)


def sharded_jit(
    function: UserFunction, options: Options, in_shardings: object, out_shardings: object
) -> UserObject:
    """Returns a function compiled with shardings of its arguments and results.

    Args:
        function: What to compile.
        options: The other options of `jit`.
        in_shardings: A sharding, a `PartitionSpec`, or a tree of them that is a prefix of the
            tuple of arguments; None leaves arguments where they are.
        out_shardings: The same for results.

    """
    return ShardedJitFunction(function, *options).with_shardings(in_shardings, out_shardings)
