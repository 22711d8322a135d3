"""`while_loop` and `fori_loop`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from axir._arguments.arguments import to_value
from axir._arguments.wrapping import boundary
from axir._transforms.carried_refs import repeated
from axir._trees import tree
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import T, UserFunction, UserObject
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.config import config
from axir.dialect.core.errors import ConcretizationTypeError, DTypeError, ParameterError, ShapeError
from axir.dialect.core.types import NOWHERE, ShapedArray
from axir.dialect.ops.control_flow.while_loop import bind_while
from axir.dialect.ops.elementwise.arithmetic import add
from axir.dialect.ops.elementwise.comparison import lt
from axir.dialect.ops.elementwise.conversion import convert_element_type

from ._body_tracing import (
    Adapted,
    check_body,
    check_carry,
    flatten_values,
    promoted_carry,
    trace_user_body,
)
from ._scans import scan, unroll_count


@boundary
def while_loop(cond_fun: Callable[..., object], body_fun: Callable[..., object], init_val: T) -> T:
    """Computes `value = body_fun(value)` as long as `cond_fun(value)` holds.

    Can be differentiated in forward mode only, because the number of passes is unknown: use `scan`,
    or `fori_loop` with Python integers as bounds, for reverse mode.

    Args:
        cond_fun: From the value to a bool scalar.
        body_fun: From the value to a value of the same structure and types.
        init_val: The first value, a tree of arrays.

    Returns:
        The first value for which the condition does not hold.

    Raises:
        TreeError, DTypeError: if `body_fun` returns another structure or other types than it takes,
            or `cond_fun` no bool scalar.

    >>> from axir import lax
    >>> lax.while_loop(lambda x: x < 100, lambda x: x * 2, 3)
    Array(192, dtype=int32, weak_type=True)
    """
    check_body(cond_fun, "while_loop: cond_fun")
    check_body(body_fun, "while_loop: body_fun")
    return repeated(_repeated, cond_fun, body_fun, init_val)


def _repeated(
    cond_fun: Callable[..., object], body_fun: UserFunction, init_val: object
) -> UserObject:
    if config.jax_disable_jit:
        try:
            # Arrays of NumPy's would change where the body writes `x += 1`.
            leaves, structure = flatten_values(init_val, "while_loop")
            value = structure.unflatten(leaves)
            while cond_fun(value):
                value = body_fun(value)
            return value
        except ConcretizationTypeError:
            pass  # only types are known: the loop is traced
    init, structure = flatten_values(init_val, "while_loop")
    in_tree = tree.structure(((init_val,), {}))
    ends = NOWHERE
    while True:
        body, out_tree = trace_user_body(body_fun, in_tree, [x.type for x in init])
        outputs = body.function.output_types
        promoted = promoted_carry(init, outputs, ends)
        if promoted is not None:
            init = promoted
            continue
        types = [x.type for x in init]
        check_carry("while_loop: body_fun", "init_val", (structure, types), (out_tree, outputs))
        condition, cond_tree = trace_user_body(cond_fun, in_tree, types)
        found = condition.function.output_types
        _check_predicate(cond_tree, found)
        if found[0].varying <= ends:
            return structure.unflatten(bind_while(condition, body, init))
        ends = found[0].varying


def _check_predicate(cond_tree: tree.TreeDef, found: Sequence[ShapedArray]) -> None:
    if not cond_tree.is_leaf() or found[0].shape or found[0].dtype != dtypes.bool_:
        raise DTypeError(
            "while_loop: cond_fun must return a bool scalar, but returns "
            f"{', '.join(map(str, found)) or 'nothing'}.",
            "Compare with something; reduce an array with .all() or .any().",
        )


@boundary
def fori_loop(
    lower: object,
    upper: object,
    body_fun: Callable[[UserObject, UserObject], UserObject],
    init_val: T,
    *,
    unroll: int | bool | None = None,
) -> T:
    """Computes `value = body_fun(i, value)` for i from `lower` to `upper`, which is excluded.

    Integers that are known while tracing make it a `scan`, which can be differentiated in reverse
    mode; others make it a `while_loop`.

    Args:
        lower, upper: Scalars of one dtype, usually integers; floats are counted up by 1, too.
        body_fun: From the index and the value to a value of the same structure and types. The
            index has the dtype of the bounds, or, if both are known integers, a Python integer's
            dtype, which is weak.
        init_val: The first value, a tree of arrays.
        unroll: Number of passes that are written out in one pass of the loop; True for all of
            them. Only for bounds that are known.

    Raises:
        DTypeError: if the bounds are not of one dtype, or no real numbers.
        ParameterError: if `unroll` is given for traced bounds.

    >>> from axir import lax
    >>> lax.fori_loop(0, 5, lambda i, total: total + i, 0)
    Array(10, dtype=int32, weak_type=True)
    """
    check_body(body_fun, "fori_loop: body_fun")
    first, last = _bounds(lower, upper)
    is_known = type(first) is ConcreteArray and type(last) is ConcreteArray
    if is_known and dtypes.is_integer(first.dtype):
        # Of bounds that are known only the numbers count: the index is a Python integer's.
        start = int(first)
        length = max(int(last) - start, 0)
        if not length and config.jax_disable_jit:
            return init_val  # no pass tells the types of a scan's results

        def advance(carry: tuple[object, object], _: object) -> tuple[UserObject, None]:
            index, value = carry
            return (add(index, 1), body_fun(index, value)), None

        (_, result), _ = scan(
            Adapted(body_fun, "fori scan", advance),
            (start, init_val),
            None,
            length,
            unroll=1 if unroll is None else unroll,
        )
        return result
    if unroll is not None and unroll_count(unroll, 1) != 1:
        raise ParameterError(
            f"fori_loop: unroll={unroll!r} needs bounds that are known while tracing.",
            "Pass Python integers as lower and upper.",
        )

    def pass_of(
        carry: tuple[object, object, object],
    ) -> tuple[UserObject, UserObject, UserObject]:
        index, end, value = carry
        return add(index, 1), end, body_fun(index, value)

    body = Adapted(body_fun, "fori while", pass_of)
    return while_loop(_is_before, body, (first, last, init_val))[2]


def _is_before(carry: tuple[object, object, object]) -> UserObject:
    return lt(carry[0], carry[1])


def _bounds(lower: object, upper: object) -> tuple[UserObject, UserObject]:
    """Returns the bounds as scalars of one dtype."""
    bounds = []
    for name, bound in (("lower", lower), ("upper", upper)):
        value = to_value(bound, partial(str, f"fori_loop: {name}"))
        if not (dtypes.is_integer(value.dtype) or dtypes.is_float(value.dtype)):
            raise DTypeError(
                f"fori_loop: {name} must be an integer, but is of type {value.type}.",
                "Convert it with x.astype(int).",
            )
        if value.shape:
            raise ShapeError(
                f"fori_loop: {name} must be a scalar, but is of type {value.type}.",
                "Map over it with vmap.",
            )
        bounds.append(value)
    first, last = bounds
    if first.dtype == last.dtype:
        return first, last
    # A Python number takes the dtype of the other bound.
    kinds_differ = dtypes.is_integer(first.dtype) != dtypes.is_integer(last.dtype)
    if kinds_differ or not (first.weak_type or last.weak_type):
        raise DTypeError(
            f"fori_loop: lower and upper must be of one dtype, but are of types {first.type} and "
            f"{last.type}.",
            "Convert one of them with x.astype(...).",
        )
    dtype, is_weak = dtypes.promote([(x.dtype, x.weak_type) for x in bounds])
    first, last = (
        x if x.dtype == dtype else convert_element_type(x, dtype, is_weak) for x in (first, last)
    )
    return first, last
