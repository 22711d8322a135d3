"""Linearized functions, the results of `linearize`, `vjp` and `fwd_and_bwd`, as trees of residuals.

All but the residuals of a linearized function is known once it is traced: a `Linearization`. The
residuals are the leaves of a `LinearFunction` or `Pullback`, so that these may be results of
compiled functions, carries of loops, and residuals of rules.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from axir._arguments.arguments import to_values
from axir._arguments.wrapping import boundary
from axir._trees import tree
from axir._trees.registration import register_pytree_node
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import PyTree, Tree, UserFunction, UserObject
from axir.dialect.core.array import ConcreteArray, as_array
from axir.dialect.core.errors import GradientError, TreeError
from axir.dialect.core.symbolic_zeros import UndefinedPrimal, Zero
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.collectives.axis_reductions import pvary
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.family import full, instantiate
from axir.dialect.program.derived_functions import derive
from axir.dialect.program.equation import Equation, Literal
from axir.dialect.program.function import Function
from axir.dialect.program.rules import Cotangent, Results, Tangent, TransposeOperand, Value
from axir.dialect.program.tracer import state
from axir.dialect.program.walk import Bind
from axir.passes.transforms.transpose import transpose as pull_back

from .gradient_refs import DontWant, checked_entries, settle

# Tangents and cotangents -------------------------------------------------------------------------


def check_tangents(
    primals: Sequence[ShapedArray], tangents: Sequence[Value], what: str
) -> list[Tangent]:
    """Checks tangents (or cotangents) against the types they must have; float0 becomes `Zero`."""
    checked: list[Tangent] = []
    for primal, tangent in zip(primals, tangents, strict=True):
        expected = primal.to_tangent_aval()
        if expected.dtype == dtypes.float0:
            if not _counts_as_float0(primal, tangent, what):
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
        if what == "Cotangent" and tangent.type.varying - expected.varying:
            raise GradientError(
                f"Cotangent of type {tangent.type} for a value of type {primal}, which is the same "
                "along axes of the mesh along which the cotangent varies.",
                "Sum it with axir.lax.psum, or make the value vary: axir.lax.pcast(..., "
                "to='varying').",
            )
        checked.append(pvary(tangent, expected.varying) if expected.varying else tangent)
    return checked


def _counts_as_float0(primal: ShapedArray, tangent: Value, what: str) -> bool:
    """Tells whether a tangent counts as float0, the tangent dtype of integers and bools.

    A cotangent may also have the primal's type.
    """
    if tangent.dtype in (dtypes.float0, dtypes.bool_) or _is_plain_zero(tangent):
        return True
    is_like_it = (tangent.shape, tangent.dtype) == (primal.shape, primal.dtype)
    return what == "Cotangent" and is_like_it


def _is_plain_zero(tangent: Value) -> bool:
    if type(tangent) is not ConcreteArray or dtypes.is_key(tangent.dtype):
        return False
    return not tangent.host().any()


def materialize(tangent: Tangent) -> Value | np.ndarray:
    """Returns a tangent or cotangent as users see it: zeros in full, of dtype float0 as NumPy's."""
    if type(tangent) is Zero and tangent.aval.dtype == dtypes.float0:
        return np.zeros(tangent.aval.shape, dtypes.float0)
    return instantiate(tangent)


def without_float0(leaves: Sequence[UserObject]) -> list[UserObject]:
    """Replaces float0 arrays, which are no array values, by false, which `jvp` takes for them."""
    return [
        full(np.shape(x), False, dtypes.bool_) if getattr(x, "dtype", None) == dtypes.float0 else x
        for x in leaves
    ]


# Pushing and pulling -----------------------------------------------------------------------------


def push_through(
    linear: Function,
    residuals: Sequence[Value],
    tangents: Sequence[UserObject],
    active: Sequence[bool],
    active_outputs: Sequence[bool],
    types: Sequence[ShapedArray],
) -> list[Value | np.ndarray]:
    """Maps tangents of arguments to tangents of outputs.

    Args:
        linear: From tangents of the active arguments to tangents of the active outputs.
        residuals: Values of its captures.
        tangents: A tangent for each argument.
        active: Which arguments it takes.
        active_outputs: Which outputs it gives.
        types: Types of all outputs.
    """
    moving = [instantiate(t) for t, is_active in zip(tangents, active, strict=True) if is_active]
    remaining = iter(linear.interpret([*moving, *residuals], constants_kept()))
    return [
        next(remaining) if is_active else materialize(Zero(t.to_tangent_aval()))
        for t, is_active in zip(types, active_outputs, strict=True)
    ]


def pull_through(
    linear: Function,
    residuals: Sequence[Value],
    cotangents: Sequence[UserObject],
    active_outputs: Sequence[bool],
    active: Sequence[bool],
    types: Sequence[ShapedArray],
    wanted: Sequence[bool] | None = None,
) -> list[Cotangent]:
    """Maps cotangents of outputs to cotangents of arguments (perhaps `Zero`).

    Args:
        linear: From tangents of the active arguments to tangents of the active outputs.
        residuals: Values of its captures.
        cotangents: A cotangent for each output.
        active_outputs: Which of them the linear function gives.
        active: Which arguments it takes.
        types: Types of all arguments.
        wanted: Whose cotangents to compute; by default all.
    """
    chosen = [ct for ct, is_active in zip(cotangents, active_outputs, strict=True) if is_active]
    # Auxiliary results have no cotangents.
    chosen += [Zero(v.type) for v in linear.outputs[len(chosen) :]]
    arguments: list[TransposeOperand] = [
        *(UndefinedPrimal(v.type) for v in linear.inputs),
        *residuals,
    ]
    found: Sequence[Cotangent | None]
    if wanted is None or all(wanted):
        found = pull_back(linear, arguments, chosen)
    else:
        kept = [keep for keep, is_active in zip(wanted, active, strict=True) if is_active]
        found = _pull_part(linear, residuals, chosen, kept)
    results = iter(found)
    return [
        _of_type(next(results), t) if is_active else Zero(t.to_tangent_aval())
        for t, is_active in zip(types, active, strict=True)
    ]


def _pull_part(
    linear: Function,
    residuals: Sequence[Value],
    cotangents: Sequence[Cotangent],
    kept: Sequence[bool],
) -> list[Cotangent]:
    """Returns the cotangents of some inputs of a linear function, and zeros for the others."""
    marks = (*(True for _ in linear.inputs), *(False for _ in residuals))
    transposed = derive(linear, "transpose", marks, tuple(type(x) is not Zero for x in cotangents))
    whole, remaining = transposed.function, iter(transposed.function.outputs)
    found = [next(remaining) if active else None for active in transposed.active_arguments]
    found = [v if keep else None for v, keep in zip(found, kept, strict=True)]
    part = Function(
        whole.name, whole.op, whole.inputs, whole.captures, whole.captured,
        [v for v in found if v is not None], whole.equations,
    )  # fmt: skip
    moving = [instantiate(x) for x in cotangents if type(x) is not Zero]
    part = derive(part, "prune")
    results = iter(part.interpret([*residuals, *moving, *part.captured]))
    return [
        Zero(v.type.to_tangent_aval()) if output is None else next(results)
        for v, output in zip(linear.inputs, found, strict=True)
    ]


def checked_cotangents(
    cotangent: Tree, out_tree: tree.TreeDef, types: Sequence[ShapedArray], name: str
) -> list[UserObject]:
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
    values = to_values(without_float0(leaves), cotangent, name)
    return check_tangents(types, values, "Cotangent")


def _of_type(cotangent: PyTree, primal: ShapedArray) -> UserObject:
    """Returns a cotangent with the weakness of its primal's dtype, so that updates keep types."""
    if type(cotangent) is Zero:
        return cotangent
    if isinstance(cotangent, (np.ndarray, np.generic)):  # computed by a user's rule
        cotangent = as_array(cotangent)
    if cotangent.aval is primal:
        return cotangent
    return convert_element_type(cotangent, primal.dtype, primal.weak_type)


# Linear functions that users hold ----------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Linearization:
    """The data of a linearized function after tracing, without the residuals.

    Attributes:
        name: The function's name.
        linear: From tangents of the active arguments to tangents of the active outputs; its
            captures stand for the residuals.
        in_tree: Structure of the arguments, as a tuple and a dict.
        out_tree: Structure of the result.
        argument_types: Types of the arguments.
        result_types: Types of the outputs.
        active: Which arguments `linear` takes.
        active_outputs: Which outputs it gives.
    """

    name: str
    linear: Function
    in_tree: tree.TreeDef
    out_tree: tree.TreeDef
    argument_types: Sequence[ShapedArray]
    result_types: Sequence[ShapedArray]
    active: Sequence[bool]
    active_outputs: Sequence[bool]

    def __repr__(self) -> str:
        return f"<Linearization of {self.name!r}>"


def residuals_of(values: Sequence[Value]) -> list[Value]:
    """Returns residuals as the code that runs should use them: see `Trace.keeps_residuals`."""
    trace = state.ambient
    if trace is None or not trace.keeps_residuals:
        return list(values)
    return [
        trace.capture(x) if type(x) is ConcreteArray and not x.type.shape else x  # type: ignore[misc]
        for x in values
    ]


def constants_kept() -> Bind | None:
    """Returns a bind function that turns residuals from literals into captures, or None.

    It is needed where `residuals_of` changes something: the jaxpr must not depend on whether the
    value of a residual was known at linearization. None elsewhere.
    """
    trace = state.ambient
    if trace is None or not trace.keeps_residuals:
        return None

    def bind(equation: Equation, operands: list[Value]) -> Results:
        kept: list[UserObject] = [
            trace.capture(x) if type(v) is Literal else x
            for v, x in zip(equation.operands, operands, strict=True)
        ]
        return equation.primitive.bind(*kept, **equation.params)

    return bind


class _LinearMap:
    """A linear function that users hold; as a tree, its leaves are the residuals."""

    def __init__(self, linearization: Linearization, residuals: Sequence[Value]):
        self._linearization = linearization
        self._residuals = tuple(residuals)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._linearization.name!r}>"


class LinearFunction(_LinearMap):
    """The derivative of a function at a point, as `linearize` returns it: maps tangents."""

    @boundary
    def __call__(self, *tangents: object) -> UserObject:
        """Maps tangents of the arguments to the tangent of the result."""
        at = self._linearization
        leaves, tangent_tree = tree.flatten((tangents, {}))
        if tangent_tree != at.in_tree:
            raise TreeError(
                f"The linear function of {at.name!r} was called with tangents of structure "
                f"{tangent_tree}, expected {at.in_tree}.",
                "Give a tangent for each argument of linearize.",
            )
        values = to_values(without_float0(leaves), tangents, at.name)
        moving = check_tangents(at.argument_types, values, "Tangent")
        outputs = push_through(
            at.linear,
            residuals_of(self._residuals),
            moving,
            at.active,
            at.active_outputs,
            at.result_types,
        )
        return at.out_tree.unflatten(outputs)


class Pullback(_LinearMap):
    """The transposed derivative of a function at a point, as `vjp` returns it: maps cotangents."""

    @boundary
    def __call__(self, cotangent: Tree) -> tuple[UserObject, ...]:
        """Maps a cotangent of the result to a tuple of cotangents of the arguments."""
        at = self._linearization
        results = self._pulled(cotangent)
        arguments: UserObject = at.in_tree.unflatten([materialize(ct) for ct in results])
        return tuple(arguments[0])

    def _pulled(self, cotangent: Tree, wanted: Sequence[bool] | None = None) -> list[Cotangent]:
        at = self._linearization
        cotangents = checked_cotangents(cotangent, at.out_tree, at.result_types, at.name)
        return pull_through(
            at.linear,
            residuals_of(self._residuals),
            cotangents,
            at.active_outputs,
            at.active,
            at.argument_types,
            wanted,
        )

    def with_refs(self, *entries: object) -> UserFunction:
        """Returns the pullback with a destination for the cotangent of each argument.

        Args:
            *entries: For each argument, in its structure: a ref, to which the cotangent is added;
                `axir.ad.GradValue()`, to return it; or `axir.ad.DontWant()`, not to compute it.

        Raises:
            TreeError: if the entries have another structure than the arguments.

        >>> import axir
        >>> total = axir.new_ref(10.0)
        >>> _, pullback = axir.vjp(lambda x, y: x * y, 2.0, 3.0)
        >>> pullback.with_refs(total, axir.ad.DontWant())(1.0)
        (GradRef(), DidntWant())
        >>> total
        Ref(13., dtype=float32)
        """
        at = self._linearization
        leaves = checked_entries(entries, at.in_tree, at.name)
        wanted = [not isinstance(x, DontWant) for x in leaves]

        def pull(cotangent: Tree) -> tuple[UserObject, ...]:
            results = self._pulled(cotangent, wanted)
            seen = [
                settle(entry, functools.partial(materialize, ct))
                for entry, ct in zip(leaves, results, strict=True)
            ]
            arguments: UserObject = at.in_tree.unflatten(seen)
            return tuple(arguments[0])

        return pull


for _class in (LinearFunction, Pullback):
    register_pytree_node(_class, lambda f: (f._residuals, f._linearization), _class)
