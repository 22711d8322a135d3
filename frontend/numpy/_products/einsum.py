"""`einsum`: sums of products in Einstein's notation, with paths by opt_einsum.

Each step of a path contracts a few operands: repeated indices become diagonals, indices that occur
nowhere else are summed, and pairs are multiplied by one `dot_general`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from axir._devices.placement import lies_where_told
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import (
    DTypeLike,
    PrecisionLike,
    UserFunction,
    UserObject,
)
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.late_modules import opt_einsum
from axir.dialect.ops.contraction.dot_general import dot_general
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.reductions.reduce import reduce_or, reduce_sum
from axir.dialect.ops.shape.rearranging import reshape, transpose
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import reject_out
from axir.numpy._arguments.promotion import array_argument, promote_arguments
from axir.numpy._shape.diagonals import diagonal_of

__all__ = ["einsum", "einsum_path"]

Shape = tuple[int, ...]
# A step of a path: positions of the operands it takes, and the indices of its result.
Step = tuple[tuple[int, ...], str]
# Values of `optimize` that name a search method rather than a path.
_CHOICES = (True, False, "auto", "optimal", "greedy")


@lies_where_told
def einsum(
    subscripts: object,
    /,
    *operands: ArrayLike,
    out: None = None,
    optimize: object = "auto",
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
    out_sharding: object = None,
    _dot_general: Callable[..., object] = dot_general,
) -> Value:
    """Sums products of arrays, as Einstein's notation says.

    Args:
        subscripts: Indices of each operand and of the result, as in 'ij,jk->ik'. A repeated index
            of one operand takes a diagonal, an ellipsis stands for axes that broadcast. Without
            '->', the result has the indices that occur once, in alphabetical order. Or: an operand,
            followed by its axes as integers, then the next one, and perhaps the result's axes.
        *operands: The arrays.
        out: Not supported.
        optimize: How opt_einsum chooses the order of contractions: 'auto', 'optimal', 'greedy',
            True, False (the first two each time), or a path.
        precision, preferred_element_type: As in `matmul`.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.
        _dot_general: The function that multiplies pairs of operands, with the signature of
            `axir.lax.dot_general`. Libraries replace it.

    Raises:
        ParameterError: if the subscripts cannot be read, or do not fit the operands.

    >>> import axir.numpy as jnp
    >>> x = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    >>> jnp.einsum("ij,jk->ik", x, x)
    Array([[ 7., 10.],
           [15., 22.]], dtype=float32)
    >>> jnp.einsum("ii", x)
    Array(5., dtype=float32)
    """
    reject_out("einsum", out)
    subscripts, arrays = _arguments(subscripts, operands)
    values = promote_arguments("einsum", *arrays)
    dtype, is_weak = values[0].dtype, all(x.type.weak_type for x in values)
    if preferred_element_type is not None:
        dtype, is_weak = dtypes.canonicalize_dtype(preferred_element_type), False
    # A replacement by a library gets the dtype of the result, and may multiply in another dtype.
    accumulated = preferred_element_type if _dot_general is dot_general else dtype
    multiply = functools.partial(
        _dot_general, precision=precision, preferred_element_type=accumulated
    )
    path = tuple(map(tuple, optimize)) if isinstance(optimize, list) else optimize
    shapes = tuple([x.shape for x in values])
    names, steps = _plan(subscripts, shapes, path)
    terms = [
        (_without_ones(x, given, used), used)
        for x, (given, used) in zip(values, names, strict=True)
    ]
    for positions, result in steps:
        chosen = [terms.pop(i) for i in sorted(positions, reverse=True)]
        terms.append(_contract(chosen, result, multiply))
    return convert_element_type(terms[0][0], dtype, weak_type=is_weak)


def einsum_path(
    subscripts: object, /, *operands: ArrayLike, optimize: object = "auto"
) -> tuple[list[tuple[int, ...]], UserObject]:
    """Returns the order of contractions that `einsum` would take, and a description of it.

    >>> import axir.numpy as jnp
    >>> x = jnp.ones((2, 2))
    >>> jnp.einsum_path("ij,jk,kl->il", x, x, x)[0]
    [(0, 1), (0, 1)]
    """
    subscripts, arrays = _arguments(subscripts, operands)
    values = [array_argument("einsum_path", x, i) for i, x in enumerate(arrays)]
    shapes = tuple([x.shape for x in values])
    explicit, _ = _explicit(subscripts, shapes)
    path, description = opt_einsum.contract_path(
        explicit,
        *_broadcastable(explicit, shapes),
        shapes=True,
        optimize=_strategy(optimize, len(shapes)),
    )
    return path, description


def _arguments(subscripts: object, operands: Sequence[object]) -> tuple[str, list[object]]:
    """Returns the string form of either form of the arguments."""
    if isinstance(subscripts, str):
        if not operands:
            raise ParameterError("jnp.einsum: there are no operands.", "Pass an array per term.")
        return subscripts, list(operands)
    interleaved = [subscripts, *operands]
    try:
        text, arrays = opt_einsum.parser.convert_interleaved_input(interleaved)
    except (TypeError, ValueError, KeyError) as error:
        raise ParameterError(
            f"jnp.einsum: the arguments cannot be read: {error}.",
            "Pass subscripts and operands, or each operand followed by its axes.",
        ) from None
    return text, list(arrays)


# Reading subscripts ----------------------------------------------------------------------------


def _explicit(subscripts: str, shapes: Sequence[Shape]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Spells out ellipses and the result.

    Returns:
        The subscripts, and for each operand its indices, and those along which it does not stretch.
    """
    terms, output = _read(subscripts, shapes)
    extents: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        _note_extents(subscripts, term, shape, extents)
    used = [
        "".join([c for c, n in zip(term, shape, strict=True) if n != 1 or extents[c] == 1])
        for term, shape in zip(terms, shapes, strict=True)
    ]
    return f"{','.join(used)}->{output}", tuple(zip(terms, used, strict=True))


def _read(subscripts: str, shapes: Sequence[Shape]) -> tuple[list[str], str]:
    """Returns the indices of each operand and of the result."""
    inputs, arrow, output = subscripts.partition("->")
    terms = inputs.split(",")
    # Explicit subscripts are parsed without opt_einsum, because its import takes longer than
    # everything else.
    is_spelled_out = arrow and "".join((*terms, output)).isalpha()
    if is_spelled_out and len(terms) == len(shapes) and set(output) <= set(inputs) - {","}:
        if len(set(output)) == len(output):
            return terms, output
    try:
        inputs, output, _ = opt_einsum.parser.parse_einsum_input((subscripts, *shapes), shapes=True)
    except (ValueError, IndexError) as error:
        raise ParameterError(
            f"jnp.einsum: the subscripts {subscripts!r} cannot be read: {error}",
            "Write them like 'ij,jk->ik', with a term for each operand.",
        ) from None
    return inputs.split(","), output


def _note_extents(subscripts: str, term: str, shape: Shape, extents: dict[str, int]) -> None:
    if len(term) != len(shape):
        raise ParameterError(
            f"jnp.einsum: the term {term!r} of {subscripts!r} has {len(term)} indices, but its "
            f"operand has shape {shape}.",
            "Give an index per axis, or an ellipsis.",
        )
    for index, extent in zip(term, shape, strict=True):
        known = extents.setdefault(index, extent)
        if known == 1:
            extents[index] = extent
        elif extent not in (1, known):
            raise ParameterError(
                f"jnp.einsum: index {index!r} of {subscripts!r} has extent {known} and {extent}.",
                "Transpose or reshape an operand so that they match.",
            )


def _broadcastable(explicit: str, shapes: Sequence[Shape]) -> list[Shape]:
    """Returns the shapes without the extents of 1 that stretch."""
    counts = [len(term) for term in explicit.split("->")[0].split(",")]
    return [
        shape if len(shape) == count else tuple(n for n in shape if n != 1)
        for shape, count in zip(shapes, counts, strict=True)
    ]


@functools.lru_cache(maxsize=1024)
def _plan(
    subscripts: str, shapes: tuple[Shape, ...], optimize: object
) -> tuple[tuple[tuple[str, str], ...], tuple[Step, ...]]:
    explicit, names = _explicit(subscripts, shapes)
    if len(shapes) <= 2 and optimize in _CHOICES:  # there is nothing to choose
        places = tuple(reversed(range(len(shapes))))
        return names, ((places, explicit.partition("->")[2]),)
    kept_shapes = [
        tuple([n for n, c in zip(shape, given, strict=True) if c in used])
        for shape, (given, used) in zip(shapes, names, strict=True)
    ]
    _, contractions = opt_einsum.contract_path(
        explicit,
        *kept_shapes,
        shapes=True,
        einsum_call=True,
        optimize=_strategy(optimize, len(shapes)),
    )
    steps = [(tuple(taken), text.partition("->")[2]) for taken, _, text, *_ in contractions]
    return names, tuple(steps)


def _strategy(optimize: object, count: int) -> object:
    """Returns the search method in the form that opt_einsum takes.

    False takes the first two arrays each time; a product becomes the last.
    """
    if optimize is True:
        return "optimal"
    if optimize is not False:
        return optimize
    return [(0, 1)] * (count - 1) or [(0,)]


def _without_ones(x: Value, given: str, used: str) -> Value:
    """Drops axes of extent 1 that stretch."""
    if given == used:
        return x
    return reshape(x, tuple([n for n, c in zip(x.shape, given, strict=True) if c in used]))


# Contracting -----------------------------------------------------------------------------------


def _contract(
    terms: Sequence[tuple[Value, str]], result: str, multiply: Callable[..., object]
) -> tuple[Value, str]:
    """Contracts operands, the last of them first, to the given indices."""
    terms = list(terms)
    while len(terms) > 1:
        second, first = terms.pop(), terms.pop()
        needed = set(result).union(*[names for _, names in terms])
        terms.append(_contract_pair(second, first, needed, multiply))
    x, names = _sum_out(*_with_distinct(*terms[0]), set(result))
    order = tuple([names.index(c) for c in result])
    return (x if order == tuple(range(x.ndim)) else transpose(x, order)), result


def _with_distinct(x: Value, names: str) -> tuple[Value, str]:
    """Takes diagonals until no index repeats."""
    for name in dict.fromkeys(names):
        while names.count(name) > 1:
            first = names.index(name)
            second = names.index(name, first + 1)
            x = diagonal_of(x, (first, second))
            names = names[:first] + names[first + 1 : second] + names[second + 1 :] + name
    return x, names


def _sum_out(x: Value, names: str, needed: set[str]) -> tuple[Value, str]:
    """Sums over indices that are not needed."""
    axes = tuple([i for i, name in enumerate(names) if name not in needed])
    if not axes:
        return x, names
    add_up = reduce_or if x.dtype == dtypes.bool_ else reduce_sum
    return add_up(x, axes), "".join([name for name in names if name in needed])


def _contract_pair(
    lhs: tuple[Value, str],
    rhs: tuple[Value, str],
    needed: set[str],
    multiply: UserFunction,
) -> tuple[Value, str]:
    x, x_names = _with_distinct(*lhs)
    y, y_names = _with_distinct(*rhs)
    x, x_names = _sum_out(x, x_names, needed | set(y_names))
    y, y_names = _sum_out(y, y_names, needed | set(x_names))
    shared = [c for c in x_names if c in y_names]
    batch = [c for c in shared if c in needed]
    contract = [c for c in shared if c not in needed]
    numbers = tuple(
        (tuple([x_names.index(c) for c in group]), tuple([y_names.index(c) for c in group]))
        for group in (contract, batch)
    )
    product = multiply(x, y, numbers)
    free = [c for names in (x_names, y_names) for c in names if c not in shared]
    return product, "".join([*batch, *free])
