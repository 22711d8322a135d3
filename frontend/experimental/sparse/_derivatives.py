"""Derivatives with respect to sparse arrays, that is to their stored elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from axir._arguments.wrapping import wraps
from axir._transforms import autodiff
from axir._transforms import jacobian as jacobians
from axir._trees import tree
from axir.dialect.core.annotations import Options, UserFunction, UserObject
from axir.dialect.core.array import Array

from ._base import is_sparse
from ._bcoo import BCOO


def _elements(x: object) -> UserObject:
    """Returns the differentiated leaves of a tree: the elements of its sparse arrays."""
    return tree.map(lambda leaf: leaf.data if is_sparse(leaf) else leaf, x, is_leaf=is_sparse)


def _with_elements(x: object, elements: object) -> UserObject:
    """Returns a tree with other elements in its sparse arrays."""

    def placed(leaf: object, new: object) -> UserObject:
        if not is_sparse(leaf):
            return new
        (_, *places), structure = tree.flatten(leaf)
        return structure.unflatten([new, *places])

    return tree.map(placed, x, elements, is_leaf=is_sparse)


def _by_elements(
    transform: UserFunction, fun: UserFunction, argnums: UserObject, options: Options
) -> UserFunction:
    """Applies a transformation to a function of the elements of its arguments."""
    chosen = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def prepare(args: Sequence[UserObject], kwargs: Options) -> tuple[UserObject, UserObject]:
        numbers = [n % len(args) for n in chosen]

        @wraps(fun)
        def of_elements(*elements: object) -> UserObject:
            full = list(args)
            for number, new in zip(numbers, elements, strict=True):
                full[number] = _with_elements(args[number], new)
            return fun(*full, **kwargs)

        given = [args[number] for number in numbers]
        derivative = transform(of_elements, argnums=tuple(range(len(given))), **options)
        return derivative(*map(_elements, given)), given

    return prepare


def value_and_grad(
    fun: Callable[..., object],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    **kwargs: object,
) -> UserFunction:
    """Returns a function for value and gradient of a function of sparse arrays.

    Args:
        fun: Function with a scalar result.
        argnums: With regard to which arguments.
        has_aux: Whether it returns a pair of the result and something else.
        **kwargs: As in `axir.value_and_grad`.

    Returns:
        A function; gradients with regard to sparse arrays store elements at the same places.

    >>> import axir.numpy as jnp
    >>> from axir.experimental import sparse
    >>> x = sparse.BCOO.fromdense(jnp.array([0.0, 3.0]))
    >>> value, gradient = sparse.value_and_grad(lambda x: (x @ jnp.array([1.0, 2.0])) ** 2)(x)
    >>> float(value), gradient.todense()
    (36.0, Array([ 0., 24.], dtype=float32))
    """
    options = {"has_aux": has_aux, **kwargs}
    prepare = _by_elements(autodiff.value_and_grad, fun, argnums, options)

    @wraps(fun)
    def evaluated(*args: object, **keywords: object) -> UserObject:
        (value, gradients), given = prepare(args, keywords)
        pairs = zip(given, gradients, strict=True)
        placed = tuple(_with_elements(x, gradient) for x, gradient in pairs)
        return value, placed[0] if isinstance(argnums, int) else placed

    return evaluated


def grad(
    fun: Callable[..., object],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    **kwargs: object,
) -> UserFunction:
    """Returns a function for the gradient of a function of sparse arrays: see `value_and_grad`."""
    both = value_and_grad(fun, argnums, has_aux, **kwargs)

    @wraps(fun)
    def differentiated(*args: object, **keywords: object) -> UserObject:
        value, gradient = both(*args, **keywords)
        return (gradient, value[1]) if has_aux else gradient

    return differentiated


def _jacobian(transform: Callable[..., object], name: str) -> UserFunction:
    def make(
        fun: Callable[..., object],
        argnums: int | Sequence[int] = 0,
        has_aux: bool = False,
        **kwargs: object,
    ) -> UserFunction:
        prepare = _by_elements(transform, fun, argnums, {"has_aux": has_aux, **kwargs})

        @wraps(fun)
        def differentiated(*args: object, **keywords: object) -> UserObject:
            result, given = prepare(args, keywords)
            rows, aux = result if has_aux else (result, None)

            def placed(of_result: UserObject) -> UserObject:
                pairs = zip(given, of_result, strict=True)
                blocks = tuple(_jacobian_of(x, block) for x, block in pairs)
                return blocks[0] if isinstance(argnums, int) else blocks

            # For each leaf of the result there is a tuple, with an entry for each argument.
            found = tree.map(placed, rows, is_leaf=lambda x: isinstance(x, tuple) and _is_row(x))
            return (found, aux) if has_aux else found

        return differentiated

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"""Returns a function for the Jacobian of a function of sparse arrays.

    Args:
        fun: Function of sparse or other arrays.
        argnums: With regard to which arguments.
        has_aux: Whether it returns a pair of the result and something else.
        **kwargs: As in `axir.{name}`.

    Returns:
        A function; Jacobians with regard to a `BCOO` are such, with the shape of the result in
        front, as batches that share their places.
    """
    return make


def _is_row(x: tuple[object, ...]) -> bool:
    return all(isinstance(leaf, Array) for leaf in tree.leaves(x))


def _jacobian_of(x: object, block: UserObject) -> UserObject:
    """Returns a block of a Jacobian as a sparse array if the argument is one."""
    if not isinstance(x, BCOO):
        return block
    front = block.shape[: block.ndim - x.data.ndim]
    indices = x.indices.reshape(*(1,) * len(front), *x.indices.shape)
    return BCOO(
        (block, indices), shape=(*front, *x.shape), indices_sorted=x.indices_sorted,
        unique_indices=x.unique_indices,
    )  # fmt: skip


jacfwd = _jacobian(jacobians.jacfwd, "jacfwd")
jacrev = _jacobian(jacobians.jacrev, "jacrev")
jacobian = jacrev
