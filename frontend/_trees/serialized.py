"""Classes of containers that saved functions name, so that loading makes instances of them.

Elsewhere: the notation of trees (`text.py`), containers in general (`registration.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import optree

from axir.dialect.core.annotations import PyTree, Tree, UserObject
from axir.dialect.core.errors import ParameterError

from .paths import NAMESPACE, is_named_tuple


@dataclass(frozen=True)
class SavedClass:
    """Serialization of the instances of a class.

    Attributes:
        kind: The class.
        name: Its name in saved functions.
        write: From the auxiliary data of an instance to bytes; None for named tuples.
        read: Back again.
        make: From auxiliary data and children to an instance.
    """

    kind: type
    name: str
    write: Callable[[UserObject], bytes] | None = None
    read: Callable[[bytes], UserObject] | None = None
    make: Callable[[UserObject, Sequence[PyTree]], UserObject] | None = None

    def parts(self, node: UserObject) -> tuple[bytes, list[PyTree]]:
        """Returns the auxiliary data of an instance as bytes, and its children."""
        children, auxiliary, *_ = optree.tree_flatten_one_level(node, namespace=NAMESPACE)
        assert self.write is not None
        return bytes(self.write(auxiliary)), list(children)

    def instance(self, written: bytes, children: Sequence[Tree]) -> UserObject:
        """Returns an instance of auxiliary data and children."""
        assert self.read is not None
        assert self.make is not None
        return self.make(self.read(written), children)


_by_class: dict[type, SavedClass] = {}
_by_name: dict[str, SavedClass] = {}


def saved_class(kind: type) -> SavedClass | None:
    """Returns how instances of a class are saved, None if it is not registered."""
    return _by_class.get(kind)


def class_named(name: str) -> SavedClass | None:
    """Returns the class with a registered name, None if it is not registered."""
    return _by_name.get(name)


def register_namedtuple_serialization(nodetype: type, *, serialized_name: str) -> type:
    """Lets saved functions name a class of named tuples; without, they give one like it.

    Args:
        nodetype: The class.
        serialized_name: Its name, the same wherever the function is loaded.

    Returns:
        The class.

    Raises:
        ParameterError: if it is not a class of named tuples, or the name or class is taken.

    >>> from collections import namedtuple
    >>> from axir.export import export, deserialize
    >>> Pair = namedtuple("Pair", "x y")
    >>> _ = register_namedtuple_serialization(Pair, serialized_name="demo.Pair")
    >>> type(deserialize(export(lambda x: Pair(x, -x))(1.0).serialize())(2.0)) is Pair
    True
    """
    if not (isinstance(nodetype, type) and is_named_tuple(nodetype)):
        raise ParameterError(
            f"register_namedtuple_serialization: {nodetype!r} is no class of named tuples.",
            "Use register_pytree_node_serialization for other containers.",
        )
    _add(SavedClass(nodetype, serialized_name))
    return nodetype


def register_pytree_node_serialization(
    nodetype: type,
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[UserObject], bytes],
    deserialize_auxdata: Callable[[bytes], UserObject],
    from_children: Callable[[UserObject, Sequence[PyTree]], UserObject] | None = None,
) -> type:
    """Lets saved functions name a class of containers; without, they give dictionaries.

    Args:
        nodetype: The class, which is registered as a container (`axir.tree_util`).
        serialized_name: Its name, the same wherever the function is loaded.
        serialize_auxdata: From the auxiliary data of an instance to bytes.
        deserialize_auxdata: Back again.
        from_children: From auxiliary data and children to an instance; by default as registered.

    Returns:
        The class.

    Raises:
        ParameterError: if it is not registered as a container, or the name or class is taken.

    >>> from axir import tree_util
    >>> from axir.export import export, deserialize
    >>> @tree_util.register_pytree_node_class
    ... class Box:
    ...     def __init__(self, x, unit):
    ...         self.x, self.unit = x, unit
    ...     def tree_flatten(self):
    ...         return (self.x,), self.unit
    ...     @classmethod
    ...     def tree_unflatten(cls, unit, children):
    ...         return cls(*children, unit)
    >>> unit = {"serialize_auxdata": str.encode, "deserialize_auxdata": bytes.decode}
    >>> Box = register_pytree_node_serialization(Box, serialized_name="demo.Box", **unit)
    >>> found = deserialize(export(lambda b: Box(b.x * 2, b.unit))(Box(1.0, "m")).serialize())
    >>> doubled = found(Box(3.0, "m"))
    >>> float(doubled.x), doubled.unit
    (6.0, 'm')
    """
    registered = optree.register_pytree_node.get(nodetype, namespace=NAMESPACE)
    if registered is None:
        raise ParameterError(
            f"register_pytree_node_serialization: {nodetype!r} is no container of trees.",
            "Register it first: axir.tree_util.register_pytree_node.",
        )
    make = from_children or registered.unflatten_func
    _add(SavedClass(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, make))
    return nodetype


def _add(saved: SavedClass) -> None:
    if saved.kind in _by_class or saved.name in _by_name:
        raise ParameterError(
            f"The class {saved.kind.__name__!r} cannot be saved as {saved.name!r}: the class or "
            "the name is registered already.",
            "Register each class once, under a name of its own.",
        )
    _by_class[saved.kind] = _by_name[saved.name] = saved
