"""Differentiation: `jvp`, `linearize`, `vjp`, `value_and_grad`, `grad`, `fwd_and_bwd`.

Each traces the function to a separate jaxpr function and runs a pass on it (`axir.passes`). On
concrete arguments the trace knows the values: Python control flow works, and values computed during
the trace are not computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from axir._arguments.argnums import check_differentiable, normalize_argnums, select_arguments
from axir._arguments.arguments import (
    FlatArguments,
    FlatFunction,
    check_callable,
    flat_arguments,
    to_values,
    trace_known,
)
from axir._arguments.wrapping import boundary, wraps_as
from axir._trees import tree
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Options, P, PyTree, R, Tree, UserFunction, UserObject
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.errors import GradientError, ParameterError, TreeError
from axir.dialect.core.symbolic_zeros import Zero
from axir.dialect.core.types import NOWHERE
from axir.dialect.ops.collectives.axis_reductions import pvary
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import function_name
from axir.dialect.program.rules import Tangent, Value
from axir.passes.transforms.jvp import jvp as push_forward
from axir.passes.transforms.linearize import linearize as linearize_traced

from .carried_refs import differentiated
from .gradient_refs import is_ref, vjp_in_refs
from .jit import jit
from .linearization import (
    LinearFunction,
    Linearization,
    Pullback,
    check_tangents,
    materialize,
    pull_through,
    push_through,
    without_float0,
)


def _is_active(value: Value) -> bool:
    return dtypes.is_inexact(value.dtype)


def _captured_zeros(function: Function) -> list[Zero]:
    return [Zero(v.type.to_tangent_aval()) for v in function.captures]


@boundary
def jvp(
    fun: Callable[..., object], primals: PyTree, tangents: PyTree, has_aux: bool = False
) -> tuple[UserObject, ...]:
    """Computes a function and its directional derivative (forward mode).

    Args:
        fun: Function of arrays or trees of arrays.
        primals: Tuple or list of arguments, the point.
        tangents: Tuple or list of the same structure, shapes and dtypes: the direction. For
            integer arguments, of dtype float0.
        has_aux: Whether `fun` returns a pair; only its first element is differentiated.

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
    name = function_name(fun)
    values = to_values(leaves, tuple(primals), name)
    moving = check_tangents(
        [x.type for x in values],
        to_values(without_float0(tangent_leaves), tuple(tangents), name),
        "Tangent",
    )

    def run(function: Callable[..., object], has_aux: bool) -> tuple[UserObject, ...]:
        return _pushed(FlatFunction(function, in_tree, has_aux), values, moving)

    return differentiated(run, fun, has_aux)


def _pushed(
    flat: FlatFunction, values: Sequence[Value], moving: Sequence[Tangent]
) -> tuple[object, ...]:
    function, known = trace_known(flat, values, "Jvp")
    outs, out_tangents = push_forward(
        function, [*values, *function.captured], [*moving, *_captured_zeros(function)], known
    )
    count = flat.out_tree.num_leaves
    outs = [as_value(x) for x in outs]
    result = (
        flat.out_tree.unflatten(outs[:count]),
        flat.out_tree.unflatten([materialize(t) for t in out_tangents[:count]]),
    )
    if flat.has_aux:
        assert flat.auxiliary_tree is not None
        return (*result, flat.auxiliary_tree.unflatten(outs[count:]))
    return result


class Derivative:
    """A function linearized at a point, shared by `linearize` and `vjp`.

    Args:
        fun: The function.
        point: Its arguments, from `flat_arguments`.
        has_aux: Whether it returns a pair; only its first element is differentiated.
        kind: Name of the trace in errors.
    """

    def __init__(self, fun: UserFunction, point: FlatArguments, has_aux: bool, kind: str):
        self.values, self.in_tree = point
        self.flat = flat = FlatFunction(fun, self.in_tree, has_aux)
        function, known = trace_known(flat, self.values, kind)
        self.active = [_is_active(x) for x in self.values]
        active = [*self.active, *(False for _ in function.captures)]
        count = flat.out_tree.num_leaves
        result = linearize_traced(function, [*self.values, *function.captured], active, known)
        self.outs = [as_value(x) for x in result.outs[:count]]
        self.auxiliary = result.outs[count:]
        self.result = result
        self.active_outputs = result.active_outputs[:count]

    def auxiliary_result(self) -> UserObject:
        """Returns the auxiliary result, a tree."""
        assert self.flat.auxiliary_tree is not None
        return self.flat.auxiliary_tree.unflatten(self.auxiliary)

    def linearization(self) -> Linearization:
        """Returns the data of the linear function without its residuals."""
        linear = self.result.linear
        without_residuals = Function(
            linear.name, linear.op, linear.inputs, linear.captures, (), linear.outputs,
            linear.equations,
        )  # fmt: skip
        return Linearization(
            self.flat.name,
            without_residuals,
            self.in_tree,
            self.flat.out_tree,
            [x.type for x in self.values],
            [x.type for x in self.outs],
            self.active,
            self.active_outputs,
        )

    @property
    def residuals(self) -> Sequence[Value]:
        """The residuals: the values that the linear function keeps from the point."""
        return self.result.linear.captured

    def push(self, tangents: Sequence[object]) -> list[Value | np.ndarray]:
        """Maps tangents of the arguments to tangents of the outputs."""
        types = [x.type for x in self.outs]
        return push_through(
            self.result.linear, self.residuals, tangents, self.active, self.active_outputs, types
        )

    def pull(self, cotangents: Sequence[object]) -> list[UserObject]:
        """Maps cotangents of the outputs to cotangents of the arguments (perhaps `Zero`)."""
        types = [x.type for x in self.values]
        return pull_through(
            self.result.linear, self.residuals, cotangents, self.active_outputs, self.active, types
        )


@boundary
def linearize(
    fun: Callable[..., object], *primals: object, has_aux: bool = False
) -> tuple[UserObject, ...]:
    """Computes a function, and its derivative at that point as a linear function.

    The linear function can be applied many times without computing `fun` again.

    Args:
        fun: Function of arrays or trees of arrays.
        *primals: Arguments, the point.
        has_aux: Whether `fun` returns a pair; only its first element is differentiated.

    Returns:
        `(outputs, function of tangents)`, and with `has_aux` the auxiliary result third. The
        function is a tree, too; its leaves are the residuals.

    >>> import axir, axir.numpy as jnp
    >>> y, derivative = axir.linearize(lambda x: x * x, 3.0)
    >>> float(y), float(derivative(1.0))
    (9.0, 6.0)
    """
    check_callable(fun, "linearize")
    point = flat_arguments(primals, function_name(fun))

    def run(function: Callable[..., object], has_aux: bool) -> tuple[UserObject, ...]:
        derivative = Derivative(function, point, has_aux, "Linearize")
        linear = LinearFunction(derivative.linearization(), derivative.residuals)
        outputs = derivative.flat.out_tree.unflatten(derivative.outs)
        if has_aux:
            return outputs, linear, derivative.auxiliary_result()
        return outputs, linear

    return differentiated(run, fun, has_aux)


def _check_reduce_axes(name: str, reduce_axes: Sequence[Hashable]) -> None:
    if reduce_axes:
        raise ParameterError(
            f"{name}: reduce_axes must be empty, but is {tuple(reduce_axes)}.",
            "Sum over named axes with axir.lax.psum.",
        )


@boundary
def vjp(
    fun: Callable[..., object],
    *primals: object,
    has_aux: bool = False,
    reduce_axes: Sequence[Hashable] = (),
) -> tuple[UserObject, ...]:
    """Computes a function, and a function that pulls cotangents back (reverse mode).

    Args:
        fun: Function of arrays or trees of arrays.
        *primals: Arguments, the point.
        has_aux: Whether `fun` returns a pair; only its first element is differentiated.
        reduce_axes: Only empty: sums over named axes are written with `axir.lax.psum`.

    Returns:
        `(outputs, pullback)`, and with `has_aux` the auxiliary result third. The pullback takes a
        cotangent of the structure, shapes and dtypes of the outputs, and returns a tuple with a
        cotangent for each argument. It is a tree, too; its leaves are the residuals, so it may be
        returned from `jit`, carried by `scan`, or stored by a custom rule. Its method `with_refs`
        takes a destination for each cotangent; arguments that are refs need it.

    Raises:
        GradientError: by the pullback, if a cotangent has another shape or dtype than its output.

    >>> import axir, axir.numpy as jnp
    >>> y, pullback = axir.vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> [float(ct) for ct in pullback(1.0)]
    [3.0, 2.0]
    """
    check_callable(fun, "vjp")
    _check_reduce_axes("vjp", reduce_axes)
    if any(map(is_ref, tree.leaves(primals))):
        return vjp_in_refs(vjp, fun, primals, has_aux)
    point = flat_arguments(primals, function_name(fun))

    def run(function: Callable[..., object], has_aux: bool) -> tuple[UserObject, ...]:
        derivative = Derivative(function, point, has_aux, "Vjp")
        pullback = Pullback(derivative.linearization(), derivative.residuals)
        outputs = derivative.flat.out_tree.unflatten(derivative.outs)
        if has_aux:
            return outputs, pullback, derivative.auxiliary_result()
        return outputs, pullback

    return differentiated(run, fun, has_aux)


def _check_scalar(out: Sequence[Value], spec: UserObject, holomorphic: bool, name: str) -> Value:
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
    fun: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Hashable] = (),
) -> Callable[P, tuple[R, UserObject]]:
    """Returns a function that computes `fun` and its gradient.

    Args:
        fun: Function of arrays or trees of arrays that returns a scalar.
        argnums: Which positional arguments to differentiate in.
        has_aux: Whether `fun` returns a pair; only its first element is differentiated.
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

    @wraps_as(
        fun,
        f"Value and gradient of {{fun}} by the arguments {argnums}, a pair; it takes the "
        "arguments of {fun}.",
    )
    def value_and_gradient(*args: object, **kwargs: object) -> object:
        chosen, is_single = normalize_argnums(argnums, len(args), "grad")
        selected = tuple(args[number] for number in chosen)
        partial = select_arguments(fun, args, kwargs, chosen)
        name = getattr(fun, "__name__", "function")
        point = flat_arguments(selected, name)
        check_differentiable(point.values, holomorphic, "grad", allow_int)

        def run(function: Callable[..., object], has_aux: bool) -> tuple[UserObject, ...]:
            derivative = Derivative(function, point, has_aux, "Grad")
            value = _check_scalar(derivative.outs, derivative.flat.out_tree, holomorphic, name)
            varying = value.type.varying
            one = ConcreteArray(value.type.update(varying=NOWHERE), np.ones((), value.dtype))
            gradients = [materialize(ct) for ct in derivative.pull([pvary(one, varying)])]
            gradient = derivative.in_tree.unflatten(gradients)[0]
            if is_single:
                gradient = gradient[0]
            return (
                (value, gradient, derivative.auxiliary_result()) if has_aux else (value, gradient)
            )

        value, gradient, *auxiliary = differentiated(run, partial, has_aux)
        return ((value, *auxiliary) if has_aux else value), gradient

    return value_and_gradient


def grad(
    fun: Callable[P, UserObject],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Hashable] = (),
) -> Callable[P, UserObject]:
    """Returns a function that computes the gradient of `fun`.

    Takes the arguments and raises the errors of `value_and_grad`.

    Returns:
        A function that returns the gradient, or `(gradient, auxiliary)` with `has_aux`.

    >>> import axir
    >>> float(axir.grad(lambda x: x ** 3)(2.0)), float(axir.grad(axir.grad(lambda x: x ** 3))(2.0))
    (12.0, 12.0)
    """
    compute = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    @wraps_as(
        fun,
        f"Gradient of {{fun}} by the arguments {argnums}, of their shape; it takes the "
        "arguments of {fun}.",
    )
    def gradient(*args: Options, **kwargs: Options) -> UserObject:
        value, result = compute(*args, **kwargs)
        return (result, value[1]) if has_aux else result

    return gradient


# Forward and backward pass ------------------------------------------------------------------------


def fwd_and_bwd(
    fun: Callable[..., object],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    jitted: bool = True,
) -> tuple[UserFunction, UserFunction]:
    """Returns the forward and the backward pass of a function.

    `vjp` returns a new function for each call; these two functions compile once. The forward pass
    returns its residuals as a tree of arrays: a pullback of `vjp`. The backward pass takes this
    tree.

    Args:
        fun: Function of arrays or trees of arrays.
        argnums: Which positional arguments to differentiate in.
        has_aux: Whether `fun` returns a pair; only its first element is differentiated.
        jitted: Whether to compile both. A backward pass that is compiled apart from its forward
            pass compiles anew for each call of that.

    Returns:
        `forward(*args)`, which returns `(outputs, residuals)`, and with `has_aux` the auxiliary
        result third; and `backward(residuals, cotangent)`, which returns the cotangent of the
        argument `argnums`, or a tuple of them if that is a sequence.

    Raises:
        GradientError: by `backward`, if a cotangent has another shape or dtype than its output.
        TreeError: by `backward`, if the cotangent has another structure than the outputs.

    >>> import axir
    >>> forward, backward = axir.fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
    >>> out, residuals = forward(2.0, 3.0)
    >>> float(out), [float(ct) for ct in backward(residuals, 1.0)]
    (6.0, [3.0, 2.0])
    """
    check_callable(fun, "fwd_and_bwd")

    def forward(*args: object, **kwargs: object) -> UserObject:
        chosen, _ = normalize_argnums(argnums, len(args), "fwd_and_bwd")
        partial = select_arguments(fun, args, kwargs, chosen)
        selected = tuple(args[number] for number in chosen)
        point = flat_arguments(selected, function_name(partial))
        derivative = Derivative(partial, point, has_aux, "Vjp")
        residuals = Pullback(derivative.linearization(), derivative.residuals)
        outputs = derivative.flat.out_tree.unflatten(derivative.outs)
        if has_aux:
            return outputs, residuals, derivative.auxiliary_result()
        return outputs, residuals

    def backward(residuals: Pullback, cotangent: Tree) -> UserObject:
        results = residuals(cotangent)
        return results[0] if isinstance(argnums, int) else results

    return (jit(forward), jit(backward)) if jitted else (forward, backward)
