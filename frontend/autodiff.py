"""Differentiation: `jvp`, `linearize`, `vjp`, `value_and_grad`, `grad`.

Each traces the function to a jaxpr function of its own and runs a pass on it (`axir.passes`). On
concrete arguments the trace knows the values, so Python control flow works, and what it had to
compute is not computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from axir import tree
from axir.argnums import check_differentiable, normalize_argnums, select_arguments
from axir.arguments import (
    FlatFunction,
    Value,
    check_callable,
    to_values,
    trace_known,
)
from axir.dialect import dtypes
from axir.dialect.array import Array
from axir.dialect.errors import GradientError, ParameterError, TreeError
from axir.dialect.function import Function
from axir.dialect.ops.conversion import convert_element_type
from axir.dialect.ops.family import as_value, full, instantiate
from axir.dialect.symbolic import UndefinedPrimal, Zero
from axir.dialect.types import ShapedArray
from axir.passes.jvp import jvp as push_forward
from axir.passes.linearize import linearize as linearize_traced
from axir.passes.transpose import transpose as pull_back


def _is_active(value: Value) -> bool:
    return dtypes.is_inexact(value.dtype)


def _captured_zeros(function: Function) -> list[Zero]:
    return [Zero(v.type.to_tangent_aval()) for v in function.captures]


def _check_tangents(primals: Sequence[Value], tangents: Sequence[Value], what: str) -> list[Any]:
    """Checks tangents (or cotangents) against the types they must have; float0 becomes `Zero`."""
    checked = []
    for primal, tangent in zip(primals, tangents, strict=True):
        expected = primal.to_tangent_aval()
        if expected.dtype == dtypes.float0:
            if tangent.dtype not in (dtypes.float0, dtypes.bool_) and not _is_plain_zero(tangent):
                raise GradientError(
                    f"{what} of type {tangent.type} for a value of type {primal}.",
                    f"A value of an integer or bool dtype has {what.lower()}s of dtype float0: "
                    "numpy.zeros(shape, axir.dtypes.float0).",
                )
            checked.append(Zero(expected))
            continue
        if tangent.dtype != expected.dtype or tangent.shape != expected.shape:
            raise GradientError(
                f"{what} of type {tangent.type} for a value of type {primal}.",
                f"A {what.lower()} has the shape and dtype of its value: {expected}.",
            )
        checked.append(tangent)
    return checked


def _is_plain_zero(tangent: Value) -> bool:
    is_number = type(tangent) is Array and not dtypes.is_key(tangent.dtype)
    return is_number and not tangent.host().any()


def _materialize(tangent: Any) -> Value:
    if type(tangent) is Zero and tangent.aval.dtype == dtypes.float0:
        return np.zeros(tangent.aval.shape, dtypes.float0)
    return instantiate(tangent)


def jvp(
    fun: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool = False
) -> tuple[Any, ...]:
    """Computes a function and its directional derivative (forward mode).

    Args:
        fun: Function of arrays or trees of arrays.
        primals: Tuple or list of arguments, the point.
        tangents: Tuple or list of the same structure, shapes and dtypes: the direction. For
            integer arguments, of dtype float0.
        has_aux: Whether `fun` returns a pair of which only the first is differentiated.

    Returns:
        `(outputs, tangents of the outputs)`, and with `has_aux` the auxiliary result third.

    Raises:
        GradientError: if a tangent has another shape or dtype than its primal.
        TreeError: if the structures differ.

    >>> import axir, axir.numpy as jnp
    >>> y, dy = axir.jvp(jnp.sin, (0.0,), (2.0,))
    >>> float(y), float(dy)
    (0.0, 2.0)
    """
    check_callable(fun, "jvp")
    for name, value in (("primals", primals), ("tangents", tangents)):
        if not isinstance(value, (tuple, list)):
            raise TreeError(
                f"jvp: {name} must be a tuple or list of arguments, not {type(value).__name__}.",
                "Write jvp(f, (x,), (dx,)).",
            )
    leaves, in_tree = tree.flatten((tuple(primals), {}))
    tangent_leaves, tangent_tree = tree.flatten((tuple(tangents), {}))
    if in_tree != tangent_tree:
        raise TreeError(
            f"jvp: primals and tangents differ in structure: {in_tree} and {tangent_tree}.",
            "Give a tangent for each primal.",
        )
    flat = FlatFunction(fun, in_tree, has_aux)
    values = to_values(leaves, tuple(primals), flat.name)
    moving = _check_tangents(
        [x.type for x in values],
        to_values(_without_float0(tangent_leaves), tuple(tangents), flat.name),
        "Tangent",
    )
    function, known = trace_known(flat, values, "Jvp")
    outs, out_tangents = push_forward(
        function, [*values, *function.captured], [*moving, *_captured_zeros(function)], known
    )
    count = flat.out_tree.num_leaves
    outs = [as_value(x) for x in outs]
    result = (
        flat.out_tree.unflatten(outs[:count]),
        flat.out_tree.unflatten([_materialize(t) for t in out_tangents[:count]]),
    )
    if has_aux:
        assert flat.auxiliary_tree is not None
        return (*result, flat.auxiliary_tree.unflatten(outs[count:]))
    return result


def _without_float0(leaves: Sequence[Any]) -> list[Any]:
    """Replaces float0 arrays, which are no array values, by false, which `jvp` takes for them."""
    return [
        full(np.shape(x), False, dtypes.bool_) if getattr(x, "dtype", None) == dtypes.float0 else x
        for x in leaves
    ]


class Derivative:
    """A function linearized at a point: what `linearize` and `vjp` share."""

    def __init__(self, fun: Callable[..., Any], args: tuple[Any, ...], has_aux: bool, kind: str):
        leaves, in_tree = tree.flatten((args, {}))
        self.flat = flat = FlatFunction(fun, in_tree, has_aux)
        self.in_tree = in_tree
        self.values = to_values(leaves, args, flat.name)
        function, known = trace_known(flat, self.values, kind)
        self.active = [_is_active(x) for x in self.values]
        active = [*self.active, *(False for _ in function.captures)]
        count = flat.out_tree.num_leaves
        result = linearize_traced(function, [*self.values, *function.captured], active, known)
        self.outs = [as_value(x) for x in result.outs[:count]]
        self.auxiliary = result.outs[count:]
        self.result = result
        self.active_outputs = result.active_outputs[:count]

    def auxiliary_result(self) -> Any:
        """Returns the auxiliary result, a tree."""
        assert self.flat.auxiliary_tree is not None
        return self.flat.auxiliary_tree.unflatten(self.auxiliary)

    def push(self, tangents: Sequence[Any]) -> list[Value]:
        """Maps tangents of the arguments to tangents of the outputs."""
        linear = self.result.linear
        moving = [
            instantiate(t) for t, active in zip(tangents, self.active, strict=True) if active
        ]
        remaining = iter(linear.evaluate(*moving))
        return [
            next(remaining) if active else _materialize(Zero(out.type.to_tangent_aval()))
            for out, active in zip(self.outs, self.active_outputs, strict=True)
        ]

    def pull(self, cotangents: Sequence[Any]) -> list[Any]:
        """Maps cotangents of the outputs to cotangents of the arguments (perhaps `Zero`)."""
        linear = self.result.linear
        types = [x.type for x in self.values]
        return pull_through(
            linear, linear.captured, cotangents, self.active_outputs, self.active, types
        )


def pull_through(
    linear: Function,
    residuals: Sequence[Value],
    cotangents: Sequence[Any],
    active_outputs: Sequence[bool],
    active: Sequence[bool],
    types: Sequence[ShapedArray],
) -> list[Any]:
    """Maps cotangents of outputs to cotangents of arguments (perhaps `Zero`).

    Args:
        linear: From tangents of the active arguments to those of the active outputs.
        residuals: Values of its captures.
        cotangents: A cotangent for each output.
        active_outputs: Which of them the linear function gives.
        active: Which arguments it takes.
        types: Types of all arguments.
    """
    chosen = [ct for ct, is_active in zip(cotangents, active_outputs, strict=True) if is_active]
    # Auxiliary results have no cotangents.
    chosen += [Zero(v.type) for v in linear.outputs[len(chosen) :]]
    arguments = [*(UndefinedPrimal(v.type) for v in linear.inputs), *residuals]
    results = iter(pull_back(linear, arguments, chosen))
    return [
        _of_type(next(results), t) if is_active else Zero(t.to_tangent_aval())
        for t, is_active in zip(types, active, strict=True)
    ]


def checked_cotangents(
    cotangent: Any, out_tree: tree.TreeDef, types: Sequence[ShapedArray], name: str
) -> list[Any]:
    """Flattens a cotangent, and checks it against the outputs that it belongs to.

    Raises:
        TreeError: for another structure.
        GradientError: for another shape or dtype.
    """
    leaves, cotangent_tree = tree.flatten(cotangent)
    if cotangent_tree != out_tree:
        raise TreeError(
            f"The pullback of {name!r} was called with a cotangent of structure {cotangent_tree}, "
            f"expected {out_tree}.",
            "A cotangent has the structure of the function's result.",
        )
    values = to_values(_without_float0(leaves), cotangent, name)
    return _check_tangents(types, values, "Cotangent")


def _of_type(cotangent: Any, primal: ShapedArray) -> Any:
    """Returns a cotangent with the weakness of its primal's dtype, so that updates keep types."""
    if type(cotangent) is Zero or cotangent.aval is primal:
        return cotangent
    return convert_element_type(cotangent, primal.dtype, primal.weak_type)


def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Computes a function, and its derivative at that point as a linear function.

    The linear function can be applied many times without computing `fun` again.

    Args:
        fun: Function of arrays or trees of arrays.
        *primals: Arguments, the point.
        has_aux: Whether `fun` returns a pair of which only the first is differentiated.

    Returns:
        `(outputs, function of tangents)`, and with `has_aux` the auxiliary result third.

    >>> import axir, axir.numpy as jnp
    >>> y, derivative = axir.linearize(lambda x: x * x, 3.0)
    >>> float(y), float(derivative(1.0))
    (9.0, 6.0)
    """
    check_callable(fun, "linearize")
    derivative = Derivative(fun, primals, has_aux, "Linearize")
    out_tree = derivative.flat.out_tree

    def linear(*tangents: Any) -> Any:
        leaves, tangent_tree = tree.flatten((tangents, {}))
        if tangent_tree != derivative.in_tree:
            raise TreeError(
                f"The linear function of {derivative.flat.name!r} was called with tangents of "
                f"structure {tangent_tree}, expected {derivative.in_tree}.",
                "Give a tangent for each argument of linearize.",
            )
        moving = _check_tangents(
            [x.type for x in derivative.values],
            to_values(_without_float0(leaves), tangents, derivative.flat.name),
            "Tangent",
        )
        return out_tree.unflatten(derivative.push(moving))

    outputs = out_tree.unflatten(derivative.outs)
    if has_aux:
        return outputs, linear, derivative.auxiliary_result()
    return outputs, linear


def _check_reduce_axes(name: str, reduce_axes: Sequence[Hashable]) -> None:
    if reduce_axes:
        raise ParameterError(
            f"{name}: reduce_axes must be empty, but is {tuple(reduce_axes)}.",
            "Sum over named axes with axir.lax.psum.",
        )


def vjp(
    fun: Callable[..., Any],
    *primals: Any,
    has_aux: bool = False,
    reduce_axes: Sequence[Hashable] = (),
) -> tuple[Any, ...]:
    """Computes a function, and a function that pulls cotangents back (reverse mode).

    Args:
        fun: Function of arrays or trees of arrays.
        *primals: Arguments, the point.
        has_aux: Whether `fun` returns a pair of which only the first is differentiated.
        reduce_axes: Only empty: sums over named axes are written with `axir.lax.psum`.

    Returns:
        `(outputs, pullback)`, and with `has_aux` the auxiliary result third. The pullback takes a
        cotangent of the structure, shapes and dtypes of the outputs, and returns a tuple with a
        cotangent for each argument.

    Raises:
        GradientError: by the pullback, if a cotangent has another shape or dtype than its output.

    >>> import axir, axir.numpy as jnp
    >>> y, pullback = axir.vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> [float(ct) for ct in pullback(1.0)]
    [3.0, 2.0]
    """
    check_callable(fun, "vjp")
    _check_reduce_axes("vjp", reduce_axes)
    derivative = Derivative(fun, primals, has_aux, "Vjp")
    out_tree = derivative.flat.out_tree

    def pullback(cotangent: Any) -> tuple[Any, ...]:
        types = [x.type for x in derivative.outs]
        cotangents = checked_cotangents(cotangent, out_tree, types, derivative.flat.name)
        results = [_materialize(ct) for ct in derivative.pull(cotangents)]
        return tree.unflatten(derivative.in_tree, results)[0]

    outputs = out_tree.unflatten(derivative.outs)
    if has_aux:
        return outputs, pullback, derivative.auxiliary_result()
    return outputs, pullback


def _check_scalar(out: Sequence[Value], spec: Any, holomorphic: bool, name: str) -> Value:
    if spec.num_leaves != 1 or not spec.is_leaf():
        raise GradientError(
            f"Gradient only defined for scalar-output functions: {name!r} returned a tree {spec}.",
            "Return one scalar, use has_aux=True for further results, or axir.jacrev.",
        )
    (value,) = out
    if value.shape:
        raise GradientError(
            f"Gradient only defined for scalar-output functions: {name!r} returned {value.type}.",
            "Reduce it to a scalar (jnp.sum), or use axir.jacrev for the full Jacobian.",
        )
    if holomorphic != dtypes.is_complex(value.dtype):
        needed = "complex" if holomorphic else "real"
        raise GradientError(
            f"grad with holomorphic={holomorphic} requires a {needed} output, but {name!r} "
            f"returned {value.type}.",
            "Set holomorphic=True for holomorphic functions, else take the real part or jnp.abs.",
        )
    if not dtypes.is_inexact(value.dtype):
        raise GradientError(
            f"grad requires a real- or complex-valued output, but {name!r} returned {value.type}.",
            "Make the result a float.",
        )
    return value


def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Hashable] = (),
) -> Callable[..., Any]:
    """Returns a function that computes `fun` and its gradient.

    Args:
        fun: Function of arrays or trees of arrays that returns a scalar.
        argnums: Which positional arguments to differentiate in.
        has_aux: Whether `fun` returns a pair, of which only the first is differentiated.
        holomorphic: Whether `fun` is holomorphic; inputs and output must then be complex.
        allow_int: Whether integer arguments are allowed; their gradients have dtype float0.
        reduce_axes: Only empty: sums over named axes are written with `axir.lax.psum`.

    Returns:
        A function that returns `(value, gradient)`, or `((value, auxiliary), gradient)`. The
        gradient has the structure of the argument, or is a tuple if `argnums` is a sequence. For
        complex arguments x + iy it is du/dx - i du/dy.

    Raises:
        GradientError: if the output is no scalar, or inputs have the wrong dtype.

    >>> import axir
    >>> value, gradient = axir.value_and_grad(lambda x: x ** 3)(2.0)
    >>> float(value), float(gradient)
    (8.0, 12.0)
    """
    check_callable(fun, "grad")
    _check_reduce_axes("grad", reduce_axes)

    @wraps(fun)
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        chosen, is_single = normalize_argnums(argnums, len(args), "grad")
        selected = tuple(args[number] for number in chosen)
        partial = select_arguments(fun, args, kwargs, chosen)
        leaves = tree.leaves(selected)
        name = getattr(fun, "__name__", "function")
        check_differentiable(
            to_values(leaves, selected, name), holomorphic, "grad", allow_int
        )
        derivative = Derivative(partial, selected, has_aux, "Grad")
        value = _check_scalar(derivative.outs, derivative.flat.out_tree, holomorphic, name)
        one = Array(value.type, np.ones((), value.dtype))
        gradients = [_materialize(ct) for ct in derivative.pull([one])]
        gradient = derivative.in_tree.unflatten(gradients)[0]
        if is_single:
            gradient = gradient[0]
        if has_aux:
            return (value, derivative.auxiliary_result()), gradient
        return value, gradient

    return value_and_gradient


def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Hashable] = (),
) -> Callable[..., Any]:
    """Returns a function that computes the gradient of `fun`.

    Arguments and errors are those of `value_and_grad`.

    Returns:
        A function that returns the gradient, or `(gradient, auxiliary)` with `has_aux`.

    >>> import axir
    >>> float(axir.grad(lambda x: x ** 3)(2.0)), float(axir.grad(axir.grad(lambda x: x ** 3))(2.0))
    (12.0, 12.0)
    """
    compute = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    @wraps(fun)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, result = compute(*args, **kwargs)
        return (result, value[1]) if has_aux else result

    return gradient
