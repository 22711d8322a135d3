"""Classes as containers of trees."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Callable, Iterable, Sequence

import optree

from axir.dialect.core.annotations import PyTree, Tree, UserObject
from axir.dialect.core.errors import TreeError

from .paths import KEYED, NAMESPACE, GetAttrKey, is_named_tuple
from .plain import LEAF_KINDS

Flatten = Callable[[UserObject], tuple[Iterable[PyTree], UserObject]]
Unflatten = Callable[[UserObject, Sequence[PyTree]], UserObject]


def register_pytree_node(
    nodetype: type,
    flatten_func: Flatten,
    unflatten_func: Unflatten,
    flatten_with_keys_func: Flatten | None = None,
) -> None:
    """Makes a class a container of trees.

    Args:
        nodetype: The class.
        flatten_func: From an instance to its children and hashable auxiliary data.
        unflatten_func: From auxiliary data and children to an instance.
        flatten_with_keys_func: As `flatten_func`, with a pair of key and child for each child.

    Raises:
        ValueError: if the class is registered already.
    """
    with warnings.catch_warnings():
        # Who registers a named tuple means to: its fields are not all children.
        warnings.filterwarnings("ignore", "PyTree type .* is a subclass of", UserWarning)
        optree.register_pytree_node(
            nodetype,
            flatten_func,
            unflatten_func,  # type: ignore[arg-type]
            namespace=NAMESPACE,
        )
    is_named_tuple.cache_clear()
    LEAF_KINDS.discard(nodetype)
    if flatten_with_keys_func is not None:
        KEYED[nodetype] = flatten_with_keys_func


def register_pytree_node_class(cls: type) -> type:
    """Makes a class with `tree_flatten` and `tree_unflatten` a container of trees (a decorator)."""
    register_pytree_node(cls, lambda x: x.tree_flatten(), cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Flatten,
    unflatten_func: Unflatten,
    flatten_func: Flatten | None = None,
) -> None:
    """Makes a class a container of trees with keys for its children.

    Args:
        nodetype: The class.
        flatten_with_keys: From an instance to pairs of key and child, and hashable auxiliary data.
        unflatten_func: From auxiliary data and children to an instance.
        flatten_func: As `flatten_with_keys`, with only the children: faster if no path is asked
            for.

    >>> from axir import tree_util
    >>> class Pair:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> tree_util.register_pytree_with_keys(
    ...     Pair,
    ...     lambda p: (((tree_util.GetAttrKey("x"), p.x), (tree_util.GetAttrKey("y"), p.y)), None),
    ...     lambda _, children: Pair(*children),
    ... )
    >>> [str(key) for (key,), leaf in tree_util.tree_leaves_with_path(Pair(1, 2))]
    ['.x', '.y']
    """

    def without_keys(instance: object) -> tuple[Iterable[object], object]:
        pairs, auxiliary = flatten_with_keys(instance)
        return [child for _, child in pairs], auxiliary

    register_pytree_node(nodetype, flatten_func or without_keys, unflatten_func, flatten_with_keys)


def register_pytree_with_keys_class(cls: UserObject) -> PyTree:
    """Makes a class with `tree_flatten_with_keys` and `tree_unflatten` a container of trees.

    A decorator. A method `tree_flatten`, if it exists, is used if no path is asked for.
    """
    flatten = (lambda x: x.tree_flatten()) if hasattr(cls, "tree_flatten") else None
    register_pytree_with_keys(
        cls, lambda x: x.tree_flatten_with_keys(), cls.tree_unflatten, flatten
    )
    return cls


def register_dataclass(
    nodetype: UserObject,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> PyTree:
    """Makes a dataclass a container of trees (also usable as a decorator).

    Args:
        nodetype: The dataclass, or another class with a constructor that takes the fields by name.
        data_fields: Fields that are children; by default all that are not named otherwise and not
            marked `field(metadata={"static": True})`.
        meta_fields: Fields that are hashable auxiliary data; by default those that are so marked.
        drop_fields: Fields that are neither; unflattening gives them their defaults.

    Raises:
        TreeError: if fields are missing, unknown, or named twice, or if `nodetype` is not a
            dataclass and its fields are not given.
    """
    data, meta = _fields_of(nodetype, data_fields, meta_fields, tuple(drop_fields))

    static = _static_fields(nodetype.__name__, meta)

    def flatten_func(instance: object) -> tuple[tuple[object, ...], tuple[object, ...]]:
        children = tuple([getattr(instance, name) for name in data])
        return children, static([getattr(instance, name) for name in meta])

    def flatten_with_keys(
        instance: object,
    ) -> tuple[Iterable[object], tuple[object, ...]]:
        children, auxiliary = flatten_func(instance)
        return zip(map(GetAttrKey, data), children, strict=True), auxiliary

    def unflatten_func(auxiliary: UserObject, children: Sequence[UserObject]) -> Tree:
        return nodetype(
            **dict(zip(data, children, strict=True)), **dict(zip(meta, auxiliary, strict=True))
        )

    register_pytree_node(nodetype, flatten_func, unflatten_func, flatten_with_keys)
    return nodetype


class StaticFieldError(TreeError, ValueError):
    """Auxiliary data of containers cannot be compared: arrays are not equal as a whole."""


def compared(what: str, compare: Callable[[], bool]) -> bool:
    """Compares structures; names them in the error if auxiliary data cannot be compared.

    Raises:
        StaticFieldError: if auxiliary data cannot be compared, such as arrays.
    """
    try:
        return compare()
    except StaticFieldError:
        raise
    except ValueError as error:
        raise StaticFieldError(
            f"{what}: auxiliary data of a container, which `register_pytree_node` declares, cannot "
            f"be compared with that of another one: {error}",
            "Auxiliary data decide what is traced anew, so they need == and hash: make arrays "
            "children, or keep tuples of numbers in them.",
        ) from error


class _StaticFields(tuple[UserObject, ...]):
    """The auxiliary data of a dataclass; an error names the field that cannot be compared."""

    __slots__ = ()
    owner: str
    names: tuple[str, ...]

    def __eq__(self, other: object) -> bool:
        try:
            return tuple.__eq__(self, other)
        except Exception as error:
            raise self._incomparable(other, error) from error

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __reduce__(self) -> tuple[object, ...]:
        return tuple, (tuple(self),)

    def _incomparable(self, other: UserObject, error: Exception) -> StaticFieldError:
        for name, mine, theirs in zip(self.names, self, other, strict=True):
            try:
                bool(mine == theirs)
            except Exception:
                return StaticFieldError(
                    f"The static field {name!r} of {self.owner!r}, of type "
                    f"{type(mine).__name__!r}, cannot be compared with that of another instance: "
                    f"{error}",
                    "Static fields decide what is traced anew, so they need == and hash: make a "
                    "field that holds arrays a data field, or keep tuples of numbers in it.",
                )
        raise error


def _static_fields(owner: str, names: Sequence[str]) -> type[tuple[object, ...]]:
    """Returns the type of the auxiliary data of a dataclass."""
    if not names:
        return tuple
    attributes = {"__slots__": (), "owner": owner, "names": tuple(names)}
    return type("StaticFields", (_StaticFields,), attributes)


def _fields_of(
    nodetype: type,
    data: Sequence[str] | None,
    meta: Sequence[str] | None,
    dropped: tuple[str, ...],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the names of the children and of the auxiliary data of a dataclass."""
    name = nodetype.__name__
    if not dataclasses.is_dataclass(nodetype):
        if data is None or meta is None:
            raise TreeError(
                f"register_dataclass: {name!r} is not a dataclass, so its fields are unknown.",
                "Pass data_fields and meta_fields, or apply dataclasses.dataclass first.",
            )
        return tuple(data), tuple(meta)
    fields = {
        f.name: f.metadata.get("static", False) for f in dataclasses.fields(nodetype) if f.init
    }
    if meta is None:
        taken = {*(data or ()), *dropped}
        is_meta = (lambda n: True) if data is not None else fields.__getitem__
        meta = [n for n in fields if n not in taken and is_meta(n)]
    if data is None:
        data = [n for n in fields if n not in meta and n not in dropped]
    named = [*data, *meta, *dropped]
    unknown = sorted({*named} - {*fields} - {*dropped})
    missing = sorted({*fields} - {*named})
    if unknown or missing or len({*named}) < len(named):
        raise TreeError(
            f"register_dataclass: data_fields {tuple(data)}, meta_fields {tuple(meta)} and "
            f"drop_fields {dropped} do not name each of the fields {tuple(fields)} of {name!r} "
            f"once: {unknown} are no fields of its constructor, {missing} are not named.",
            "Name each field once.",
        )
    return tuple(data), tuple(meta)


def register_static(cls: type) -> type:
    """Makes a hashable class a container without children (a decorator)."""
    register_pytree_node(cls, lambda x: ((), x), lambda x, children: x)
    return cls


class _Whole:
    """A `functools.partial` wrapped as a function, which another `partial` does not unpack."""

    def __init__(self, function: functools.partial):
        self.function = function
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: object, **kwargs: object) -> UserObject:
        return self.function(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return self.function == (other.function if isinstance(other, _Whole) else other)

    def __hash__(self) -> int:
        return hash(self.function)


class Partial(functools.partial):
    """A `functools.partial` that is a container of trees: its arguments are children.

    The arguments of a given `functools.partial` are not children: it becomes the function as a
    whole.

    >>> import axir
    >>> add = Partial(lambda x, y: x + y, 1.0)
    >>> float(axir.jit(lambda f: f(2.0))(add))
    3.0
    """

    def __new__(cls, func: Callable[..., object], /, *args: object, **kwargs: object) -> Partial:
        # `functools.partial` would merge the other one's arguments into its own.
        whole = _Whole(func) if isinstance(func, functools.partial) else func
        return super().__new__(cls, whole, *args, **kwargs)


register_pytree_node(
    Partial,
    lambda p: ((p.args, p.keywords), p.func),
    lambda function, children: Partial(function, *children[0], **children[1]),
)
