"""`sparsify`: functions of arrays as functions of sparse ones, by rules for each operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import axir.numpy as jnp
from axir import core, lax
from axir._arguments.arguments import check_callable
from axir._arguments.wrapping import wraps
from axir._devices.shape_dtype_struct import ShapeDtypeStruct
from axir._transforms.staging import make_jaxpr
from axir._trees import tree
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Axes, Dtype, DTypeLike, Param, UserFunction, UserObject
from axir.dialect.core.array import Array
from axir.dialect.program.jaxpr import Jaxpr
from axir.dialect.program.primitive import primitive_of
from axir.dialect.program.rules import Value

from . import _bcoo_products as products
from . import _bcoo_shape as shapes
from ._base import OPERATIONS, JAXSparse, SparseRuleError, dense_shape, is_sparse
from ._bcoo import BCOO, full_batches, to_bcoo, with_data
from ._bcoo_layout import bcoo_sort_indices, bcoo_sum_duplicates, bcoo_update_layout, sum_duplicates
from ._bcoo_shape import getitem

Rule = Callable[..., UserObject]


def sparsify(f: Callable[..., object], use_tracer: bool = False) -> UserFunction:
    """Returns a function that also takes sparse arrays, and computes with their stored elements.

    Args:
        f: Function of arrays. It is traced; its operations on sparse arrays must be among those
            that keep zeros: linear ones, products, sums, slices, changes of shape, and functions
            that are 0 at 0.
        use_tracer: Ignored.

    Returns:
        The function. Its results are sparse where its operations make them so. Sums of sparse and
        dense arrays are dense.

    Raises:
        SparseRuleError: when it is called, if an operation on a sparse array has no rule.

    >>> import axir.numpy as jnp
    >>> from axir.experimental.sparse import BCOO, sparsify
    >>> x = BCOO.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> sparsify(lambda x, v: jnp.sin(x) @ v + 1)(x, jnp.zeros(2))
    Array([1., 1.], dtype=float32)
    >>> sparsify(jnp.transpose)(x)
    BCOO(float32[2, 2], nse=2)
    """
    check_callable(f, "sparsify")

    @wraps(f)
    def sparsified(*args: object, **kwargs: object) -> object:
        leaves, structure = tree.flatten((args, kwargs), is_leaf=is_sparse)
        if not any(map(is_sparse, leaves)):
            return f(*args, **kwargs)
        traced = [is_sparse(leaf) or isinstance(leaf, Array) for leaf in leaves]
        types = [_type_of(leaf) for leaf, used in zip(leaves, traced, strict=True) if used]
        out_structure: UserObject = None

        def flat(*values: Value) -> list[UserObject]:
            nonlocal out_structure
            given = iter(values)
            whole = [next(given) if used else x for x, used in zip(leaves, traced, strict=True)]
            arguments, keywords = tree.unflatten(structure, whole)
            results, out_structure = tree.flatten(f(*arguments, **keywords))
            return results

        closed = make_jaxpr(flat)(*types)
        inputs = [leaf for leaf, used in zip(leaves, traced, strict=True) if used]
        results = _interpret(closed.jaxpr, closed.consts, inputs)
        return tree.unflatten(out_structure, results)

    return sparsified


def _type_of(x: UserObject) -> object:
    return ShapeDtypeStruct(x.shape, x.dtype) if is_sparse(x) else x


def _interpret(jaxpr: Jaxpr, consts: Sequence[object], args: Sequence[object]) -> list[object]:
    """Evaluates a program with values that may be sparse."""
    names = [*jaxpr.constvars, *jaxpr.invars]
    environment = dict(zip(names, [*consts, *args], strict=True))

    def read(variable: UserObject) -> UserObject:
        return variable.val if isinstance(variable, core.Literal) else environment[variable]

    for equation in jaxpr.eqns:
        operands = [read(variable) for variable in equation.invars]
        primitive, params = primitive_of(equation), equation.params
        if any(map(is_sparse, operands)):
            results = _apply(primitive.name, operands, params)
        else:
            results = primitive.bind(*operands, **primitive.get_bind_params(params))
            results = results if primitive.multiple_results else [results]
        environment.update(zip(equation.outvars, results, strict=True))
    return [read(variable) for variable in jaxpr.outvars]


def _apply(name: str, operands: list[object], params: dict[str, Param]) -> list[object]:
    if name in _CALLS:
        return _interpret(params["jaxpr"].jaxpr, [], operands)
    if name in _CONTROL_FLOW:
        return _CONTROL_FLOW[name](operands, params)
    rule = _RULES.get(name)
    if rule is None:
        raise SparseRuleError(
            f"sparsify: the operation {name} has no rule for sparse arrays.",
            "Make the array dense in front of it, with x.todense().",
        )
    operands = [to_bcoo(x) if is_sparse(x) else x for x in operands]
    return [rule(*operands, **params)]


_CALLS = ("jit", "checkpoint")


# Control flow ----------------------------------------------------------------------------------


def _run(body: UserObject, operands: Sequence[object]) -> list[UserObject]:
    """Runs a part of a loop or choice on values that may be sparse."""
    return _interpret(body.jaxpr, body.consts, operands)


def _as_before(results: list[UserObject], before: Sequence[UserObject]) -> list[UserObject]:
    """Returns the carry of a loop iteration, stored in the format of the previous carry."""
    made = []
    for new, old in zip(results, before, strict=True):
        if not is_sparse(old):
            made.append(todense(new))
            continue
        kept = tree.structure(new) == tree.structure(old) if is_sparse(new) else False
        if not kept or new.data.shape != old.data.shape:
            raise SparseRuleError(
                f"sparsify: a loop carries {old!r} into a pass and {new!r} out of it.",
                "Keep the format and the number of stored elements, or carry x.todense().",
            )
        made.append(new)
    return made


def _scan(operands: list[UserObject], params: dict[str, Param]) -> list[UserObject]:
    body, consts = params["jaxpr"], params["num_consts"]
    split = consts + params["num_carry"]
    known, carried, stacked = operands[:consts], operands[consts:split], operands[split:]
    if any(map(is_sparse, stacked)):
        raise SparseRuleError(
            "sparsify: scan goes along a sparse array, whose parts would store different numbers "
            "of elements.",
            "Pass x.todense() as xs.",
        )

    def step(state: list[object], x: list[object]) -> tuple[UserObject, UserObject]:
        results = _run(body, [*known, *state, *x])
        after = _as_before(results[: len(state)], state)
        return after, [todense(y) for y in results[len(state) :]]

    options = {"length": params["length"], "reverse": params["reverse"]}
    final, ys = lax.scan(step, list(carried), list(stacked), **options)
    return [*final, *ys]


def _while(operands: list[object], params: dict[str, Param]) -> list[object]:
    first = params["cond_nconsts"]
    second = first + params["body_nconsts"]
    return lax.while_loop(
        lambda state: todense(_run(params["cond_jaxpr"], [*operands[:first], *state])[0]),
        lambda state: _as_before(
            _run(params["body_jaxpr"], [*operands[first:second], *state]), state
        ),
        list(operands[second:]),
    )


def _cond(operands: list[object], params: dict[str, Param]) -> list[object]:
    def branch(body: object) -> UserFunction:
        return lambda *values: [todense(x) for x in _run(body, values)]

    return lax.switch(todense(operands[0]), list(map(branch, params["branches"])), *operands[1:])


_CONTROL_FLOW = {"scan": _scan, "while": _while, "cond": _cond}


# Rules -----------------------------------------------------------------------------------------


def _on_elements(function: UserFunction) -> Rule:
    """Returns the rule of a linear function of elements."""
    return lambda x, **params: with_data(x, function(x.data, **params))


def _on_sums(function: UserFunction) -> Rule:
    """Returns the rule of a function that is 0 at 0: duplicates are added first."""

    def rule(x: BCOO, **params: Param) -> BCOO:
        x = x if x.unique_indices else bcoo_sum_duplicates(x, x.nse)
        return with_data(x, function(x.data, **params))

    return rule


def _add(x: UserObject, y: UserObject) -> object:
    if not (is_sparse(x) and is_sparse(y)):
        return jnp.add(todense(x), todense(y))
    shape = jnp.broadcast_shapes(x.shape, y.shape)
    x, y = (_stretched(z, shape) for z in (x, y))
    if x.indices is y.indices:
        return with_data(x, x.data + y.data)
    if (x.n_batch, x.n_dense) != (y.n_batch, y.n_dense):
        batch, dense = min(x.n_batch, y.n_batch), min(x.n_dense, y.n_dense)
        x, y = (bcoo_update_layout(z, n_batch=batch, n_dense=dense) for z in (x, y))
    parts = zip(full_batches(x), full_batches(y), strict=True)
    data, indices = (jnp.concatenate(pair, axis=x.n_batch) for pair in parts)
    return BCOO((data, indices), shape=shape)


def _sub(x: object, y: UserObject) -> object:
    return _add(x, with_data(y, -y.data) if is_sparse(y) else jnp.negative(y))


def _stretched(x: BCOO, shape: tuple[int, ...]) -> BCOO:
    if x.shape == shape:
        return x
    places = range(len(shape) - x.ndim, len(shape))
    return shapes.bcoo_broadcast_in_dim(x, shape=shape, broadcast_dimensions=tuple(places))


def _mul(x: UserObject, y: UserObject) -> BCOO:
    if not is_sparse(x):
        return _mul(y, x)
    shape = jnp.broadcast_shapes(x.shape, dense_shape(y))
    x = _stretched(x, shape)
    if is_sparse(y):
        return products.bcoo_multiply_sparse(x, _stretched(y, shape))
    return _with_full_data(x, products.bcoo_multiply_dense(x, y))


def _with_full_data(x: BCOO, data: Value) -> BCOO:
    return BCOO(
        (data, x.indices), shape=x.shape, indices_sorted=x.indices_sorted,
        unique_indices=x.unique_indices,
    )  # fmt: skip


def _div(x: UserObject, y: UserObject) -> BCOO:
    if is_sparse(y):
        raise SparseRuleError(
            "sparsify: a division by a sparse array divides by its zeros.",
            "Make the divisor dense, with x.todense().",
        )
    return (
        _mul(x, jnp.reciprocal(jnp.asarray(y, x.dtype)))
        if dense_shape(y)
        else with_data(x, x.data / y)
    )


def _pow(x: object, y: object) -> BCOO:
    if is_sparse(y) or dense_shape(y):
        raise SparseRuleError(
            "sparsify: a power of or by a sparse array needs a number as its exponent.",
            "Make the array dense, with x.todense().",
        )
    return _on_sums(lambda data: data**y)(x)


def _integer_pow(x: BCOO, y: int) -> BCOO:
    if y <= 0:
        raise SparseRuleError(
            f"sparsify: the power {y} of a sparse array is not 0 where the array is.",
            "Make the array dense, with x.todense().",
        )
    return _on_sums(lambda data: data**y)(x)


def _convert(x: BCOO, new_dtype: Dtype, weak_type: bool) -> BCOO:
    """Converts elements; those that lose something after duplicates are added."""
    is_exact = dtypes.is_inexact(new_dtype) or not dtypes.is_inexact(x.dtype)
    rule = _on_elements if is_exact and new_dtype != dtypes.bool_ else _on_sums
    return rule(lambda data: data.astype(new_dtype))(x)


def _dot_general(x: UserObject, y: UserObject, **params: Param) -> object:
    return products.bcoo_dot_general(x, y, **params)


def _concatenate(*operands: UserObject, dimension: int) -> BCOO:
    mats = [x if is_sparse(x) else BCOO.fromdense(x) for x in operands]
    return shapes.bcoo_concatenate(mats, dimension=dimension)


def _dynamic_slice(x: BCOO, *starts: Value, slice_sizes: Sequence[int]) -> BCOO:
    if any(map(is_sparse, starts)):
        raise SparseRuleError("sparsify: an index of dynamic_slice is sparse.")
    return shapes.bcoo_dynamic_slice(x, starts, slice_sizes)


_LINEAR: dict[str, UserFunction] = {
    "neg": jnp.negative,
    "real": jnp.real,
    "imag": jnp.imag,
    "conj": jnp.conj,
    "copy": jnp.copy,
}
_ZERO_AT_ZERO = (
    "abs asin asinh atan atanh cbrt ceil erf erf_inv expm1 floor log1p round sign sin sinh sqrt "
    "square tan tanh"
)
_RULES: dict[str, Rule] = {
    **{name: _on_elements(function) for name, function in _LINEAR.items()},
    **{name: _on_sums(getattr(lax, name)) for name in _ZERO_AT_ZERO.split()},
    "add": _add,
    "broadcast_in_dim": lambda x, **params: shapes.bcoo_broadcast_in_dim(x, **params),
    "concatenate": _concatenate,
    "convert_element_type": _convert,
    "div": _div,
    "dot_general": _dot_general,
    "dynamic_slice": _dynamic_slice,
    "integer_pow": _integer_pow,
    "mul": _mul,
    "pow": _pow,
    "reduce_sum": lambda x, axes: shapes.bcoo_reduce_sum(x, axes=axes),
    "reshape": lambda x, **params: shapes.bcoo_reshape(x, **params),
    "rev": lambda x, dimensions: shapes.bcoo_rev(x, dimensions),
    "slice": lambda x, **params: shapes.bcoo_slice(x, **params),
    "squeeze": lambda x, dimensions: shapes.bcoo_squeeze(x, dimensions=dimensions),
    "sub": _sub,
    "transpose": lambda x, permutation: shapes.bcoo_transpose(x, permutation=permutation),
}


def todense(arr: object) -> UserObject:
    """Returns a sparse array with all its elements, and another array as it is.

    >>> import axir.numpy as jnp
    >>> from axir.experimental.sparse import BCOO
    >>> todense(BCOO.fromdense(jnp.eye(2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return arr.todense() if isinstance(arr, JAXSparse) else arr


# Operators and methods of sparse arrays -----------------------------------------------------------


def _transposed(x: object, axes: Axes) -> BCOO:
    return sparsify(lambda x: jnp.transpose(x, axes))(x)


def _indexed(x: object, key: object) -> BCOO:
    return getitem(to_bcoo(x), key)


def _converted(x: object, dtype: DTypeLike) -> UserObject:
    return sparsify(lambda x: x.astype(dtype))(x)


def _dense(x: UserObject) -> object:
    """Returns NumPy's arrays as arrays, which are traced; other things as they are."""
    return jnp.asarray(x) if hasattr(x, "__array__") and not isinstance(x, Array) else x


def _binary(function: UserObject) -> UserObject:
    apply = sparsify(function)
    return lambda x, y: apply(_dense(x), _dense(y))


OPERATIONS.update(
    {
        "abs": sparsify(jnp.abs),
        "add": _binary(jnp.add),
        "astype": _converted,
        "div": _binary(jnp.divide),
        "getitem": _indexed,
        "matmul": _binary(jnp.matmul),
        "mul": _binary(jnp.multiply),
        "neg": sparsify(jnp.negative),
        "pow": _binary(jnp.power),
        "reshape": lambda x, shape, order: sparsify(lambda x: jnp.reshape(x, shape, order=order))(
            x
        ),
        "sort_indices": bcoo_sort_indices,
        "sub": _binary(jnp.subtract),
        "sum": lambda x, **options: sparsify(lambda x: jnp.sum(x, **options))(x),
        "sum_duplicates": sum_duplicates,
        "transpose": _transposed,
        "update_layout": bcoo_update_layout,
    }
)
