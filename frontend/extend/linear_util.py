"""Functions that are wrapped layer by layer, under the names of `jax.extend.linear_util`.

A `WrappedFun` is a function with a stack of transformations: each changes the arguments on the way
in and the results on the way out, and may leave something in a store on the side, such as the
structure of the results, which only a call tells.

>>> @transformation
... def doubled(*args):
...     results = yield args, {}
...     yield [2 * x for x in results]
>>> doubled(wrap_init(lambda x: [x + 1])).call_wrapped(3)
[8]
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Hashable
from typing import Concatenate, Generic, ParamSpec, TypeVar

from axir.dialect.core.annotations import Options, UserFunction, UserObject
from axir.dialect.core.errors import AxirError

__all__ = [
    "StoreException", "WrappedFun", "cache", "merge_linear_aux", "transformation",
    "transformation2", "transformation_with_aux", "transformation_with_aux2", "wrap_init",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


Static = ParamSpec("Static")
Stored = TypeVar("Stored")
Layer = Callable[..., Generator[UserObject, UserObject, None]]


class StoreException(AxirError):
    """The side output of a layer was requested before a call, or stored twice."""


class Store(Generic[Stored]):
    """A place for one value, which a call fills.

    >>> store = Store()
    >>> store.store(1)
    >>> bool(store), store.val
    (True, 1)
    """

    def __init__(self) -> None:
        self._values: list[Stored] = []

    def store(self, value: Stored) -> None:
        """Fills the place.

        Raises:
            StoreException: if it is full.
        """
        if self._values:
            raise StoreException(
                "Store occupied: a wrapped function leaves what it tells on the side once.",
                "Wrap the function anew for each call.",
            )
        self._values.append(value)

    def reset(self) -> None:
        """Empties the place."""
        self._values.clear()

    @property
    def val(self) -> Stored:
        """The value.

        Raises:
            StoreException: if no call has filled the place.
        """
        if not self._values:
            raise StoreException(
                "Store empty: only a call of the wrapped function tells what is asked for.",
                "Call or trace the function first.",
            )
        return self._values[0]

    def __bool__(self) -> bool:
        return bool(self._values)


class EqualityStore(Store[Stored]):
    """A place that calls may fill again, with an equal value."""

    def store(self, value: Stored) -> None:
        """Fills the place.

        Raises:
            StoreException: if it holds another value.
        """
        if not self._values:
            self._values.append(value)
        elif self._values[0] != value:
            raise StoreException(
                f"Store occupied by {self._values[0]!r}: another call told {value!r}.",
                "Wrap the function anew for each call.",
            )


class WrappedFun:
    """A function and the layers around it.

    Attributes:
        f: The function, with its layers.
        f_transformed: The same.
        transforms: Each layer with its static arguments, the outermost first.
        stores: For each layer its place on the side, or None.
        params: Parameters of the call that are passed on.
        in_type: The types of the arguments, if known.
        debug_info: The function's names, as far as they are known.
    """

    __slots__ = ("debug_info", "f", "f_transformed", "in_type", "params", "stores", "transforms")

    def __init__(
        self,
        f: UserFunction,
        f_transformed: UserFunction,
        transforms: tuple[tuple[UserFunction, tuple[UserObject, ...]], ...],
        stores: tuple[Store[UserObject] | None, ...],
        params: tuple[tuple[str, Options], ...] = (),
        in_type: UserObject = None,
        debug_info: UserObject = None,
    ):
        self.f = f
        self.f_transformed = f_transformed
        self.transforms = transforms
        self.stores = stores
        self.params = params
        self.in_type = in_type
        self.debug_info = debug_info

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed wrapped function>")

    def wrap(
        self,
        layer: Callable[..., object],
        static: tuple[object, ...],
        store: Store[object] | None,
        around: Callable[[UserFunction], UserFunction],
    ) -> WrappedFun:
        """Returns the function with one more layer."""
        return WrappedFun(
            self.f,
            around(self.f_transformed),
            ((layer, static), *self.transforms),
            (store, *self.stores),
            self.params,
            None,
            self.debug_info,
        )

    def call_wrapped(self, *args: object, **kwargs: object) -> UserObject:
        """Calls the function through all its layers."""
        return self.f_transformed(*args, **kwargs)

    def with_unknown_names(self) -> WrappedFun:
        """Returns the function without its names."""
        return WrappedFun(
            self.f, self.f_transformed, self.transforms, self.stores, self.params, self.in_type
        )

    def populate_stores(self, stores: tuple[Store[object] | None, ...]) -> None:
        """Fills the stores of the layers with the side outputs of another call."""
        for own, other in zip(self.stores, stores, strict=True):
            if own is not None and other is not None:
                own.store(other.val)

    def _key(self) -> tuple[Hashable, ...]:
        return (self.f, self.transforms, self.params, self.in_type)

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrappedFun) and self._key() == other._key()

    def __repr__(self) -> str:
        layers = [f"{place}   : {layer}" for place, layer in enumerate(self.transforms)]
        return "\n".join(["Wrapped function:", *layers, f"Core: {self.__name__}"])


def wrap_init(
    f: Callable[..., object], params: dict[str, Options] | None = None, *, debug_info: object = None
) -> WrappedFun:
    """Returns a function without layers.

    Args:
        f: The function.
        params: Parameters, which are called with as keyword arguments.
        debug_info: Its names, as far as they are known (`axir.api_util.debug_info`).
    """
    given = params or {}
    called = functools.partial(f, **given) if given else f
    return WrappedFun(f, called, (), (), tuple(sorted(given.items())), None, debug_info)


def _through(
    layer: Layer, inner: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
) -> tuple[UserObject, Generator[UserObject, UserObject, None]]:
    """Runs a layer until it yields its final results."""
    running = layer(*args, **kwargs)
    inner_args, inner_kwargs = next(running)
    return running.send(inner(*inner_args, **inner_kwargs)), running


def transformation(
    gen: Layer,
) -> Callable[..., WrappedFun]:
    """Makes a generator a layer: it yields `(args, kwargs)`, gets the results, and yields others.

    Returns:
        From a `WrappedFun`, and static arguments that precede the call's arguments, to one with the
        layer.
    """

    @functools.wraps(gen)
    def wrapped(fun: WrappedFun, *static: object) -> WrappedFun:
        def around(inner: Callable[..., object]) -> UserFunction:
            def call(*args: object, **kwargs: object) -> UserObject:
                return _through(gen, inner, (*static, *args), kwargs)[0]

            return call

        return fun.wrap(gen, static, None, around)

    return wrapped


def transformation_with_aux(
    gen: Layer,
) -> Callable[..., tuple[WrappedFun, Callable[[], UserObject]]]:
    """Makes a generator a layer that yields a pair: the results, and a side output.

    Returns:
        From a `WrappedFun` and static arguments to one with the layer, and a function that returns
        the side output of a call.
    """

    @functools.wraps(gen)
    def wrapped(
        fun: WrappedFun, *static: object, use_eq_store: bool = False
    ) -> tuple[WrappedFun, Callable[[], UserObject]]:
        store: Store[UserObject] = EqualityStore() if use_eq_store else Store()

        def around(inner: Callable[..., object]) -> UserFunction:
            def call(*args: object, **kwargs: object) -> UserObject:
                (results, aside), _ = _through(gen, inner, (*static, *args), kwargs)
                store.store(aside)
                return results

            return call

        return fun.wrap(gen, static, store, around), lambda: store.val

    return wrapped


def transformation2(
    gen: Callable[Concatenate[Callable[..., object], Static], object],
) -> Callable[..., WrappedFun]:
    """Makes a function a layer: it is called with the inner function and the arguments.

    >>> @transformation2
    ... def doubled(f, *args):
    ...     return [2 * x for x in f(*args)]
    >>> doubled(wrap_init(lambda x: [x + 1])).call_wrapped(3)
    [8]
    """

    @functools.wraps(gen)
    def wrapped(fun: WrappedFun, *static: UserObject) -> WrappedFun:
        return fun.wrap(gen, static, None, lambda inner: functools.partial(gen, inner, *static))

    return wrapped


def transformation_with_aux2(
    gen: Callable[..., object],
) -> Callable[..., tuple[WrappedFun, Callable[[], UserObject]]]:
    """Makes a function a layer: it is called with the inner function, a store, and the arguments.

    Returns:
        From a `WrappedFun` and static arguments to one with the layer, and a function that returns
        the stored side output of a call.
    """

    @functools.wraps(gen)
    def wrapped(
        fun: WrappedFun, *static: object, use_eq_store: bool = False
    ) -> tuple[WrappedFun, Callable[[], UserObject]]:
        store: Store[UserObject] = EqualityStore() if use_eq_store else Store()
        layered = fun.wrap(
            gen, static, store, lambda inner: functools.partial(gen, inner, store, *static)
        )
        return layered, lambda: store.val

    return wrapped


def merge_linear_aux(
    aux1: Callable[[], UserObject], aux2: Callable[[], UserObject]
) -> tuple[bool, UserObject]:
    """Returns the side output of one of two calls, and whether it was the first one.

    Raises:
        StoreException: if both have, or none.
    """
    try:
        first = aux1()
    except StoreException:
        return False, aux2()
    try:
        aux2()
    except StoreException:
        return True, first
    raise StoreException("Both functions were called, and left something on the side.")


def cache(call: Callable[..., object], **options: object) -> UserFunction:
    """Caches results of `call(fun: WrappedFun, *args)` by the function's layers and arguments.

    A cached call also restores the layers' side outputs.

    Args:
        call: The function to remember results of.
        **options: Hints of JAX's on how to keep them, without meaning here.
    """
    known: dict[Hashable, tuple[UserObject, tuple[Store[UserObject] | None, ...]]] = {}

    @functools.wraps(call)
    def remembered(fun: WrappedFun, *args: Hashable) -> object:
        key = (fun, *args)
        if key in known:
            result, stores = known[key]
            fun.populate_stores(stores)
            return result
        result = call(fun, *args)
        known[key] = result, fun.stores
        return result

    remembered.cache_clear = known.clear  # type: ignore[attr-defined]
    return remembered
