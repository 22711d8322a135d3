"""Primitives made of Python functions: each rule is a method, on trees of arrays.

All of them are one primitive of the dialect, `call_hi_primitive`. Its parameter is the object with
the methods. Forward mode calls `jvp`, reverse mode calls `vjp_fwd` and `vjp_bwd`, so a class may
define both.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from axir._arguments.arguments import to_values
from axir._transforms.autodiff import jvp
from axir._transforms.vectorize import vmap
from axir._trees import tree
from axir._user_primitives import Primitive
from axir.core import AbstractValue
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Param, PyTree, Tree, UserObject
from axir.dialect.core.errors import AxirError, CustomRuleError
from axir.dialect.core.symbolic_zeros import Zero, chosen
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.family import add_tangents, as_value, instantiate
from axir.dialect.program.rules import Tangent, Value
from axir.interpreters import batching, mlir
from axir.numpy import sum as sum_of

from ._types import HiPrimitiveError, HiType


class MissingHiRuleError(AxirError, NotImplementedError):
    """A transformation needs a method that a primitive does not have."""


class HiArgumentError(AxirError, TypeError):
    """A primitive was called with something else than its types say."""


class GradAccum:
    """The accumulator to which `vjp_bwd` adds the cotangent of an argument.

    Attributes:
        aval: The type of the cotangent.
    """

    def __init__(self, aval: ShapedArray):
        self.aval = aval
        self._total: Tangent = Zero(aval)

    def accum(self, x: object) -> None:
        """Adds to the cotangent; None and `Zero` say nothing."""
        if x is not None and type(x) is not Zero:
            self._total = add_tangents(self._total, as_value(x))


class VJPHiPrimitive:
    """A primitive with its rules as methods; derive a class from it.

    `__init__` of the class sets the attributes below, and then calls this class's `__init__`. All
    rules except `expand` may be omitted if they are never used.

    Attributes:
        in_avals: The type of each argument, or a tree of types.
        out_aval: The type of the result, or a tree of types.
        params: Its parameters, by name: hashable values, which become attributes.
        effects: Accepted for compatibility.

    Raises:
        AttributeError: if one of these is missing, or both backward rules are given.
        HiPrimitiveError: if a type is no array type.

    >>> import axir, axir.numpy as jnp
    >>> class Double(VJPHiPrimitive):
    ...     def __init__(self, aval):
    ...         self.in_avals, self.out_aval, self.params = (aval,), aval, {}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return 2 * x
    ...     def vjp_fwd(self, nzs_in, x):
    ...         return self(x), None
    ...     def vjp_bwd_retval(self, res, g):
    ...         return (10 * g,)
    >>> double = lambda x: Double(axir.typeof(x))(x)
    >>> float(double(3.0)), float(axir.grad(double)(3.0))
    (6.0, 10.0)
    """

    in_avals: tuple[PyTree, ...]
    out_aval: PyTree
    params: dict[str, Hashable]
    effects: frozenset[UserObject] = frozenset()

    def __init__(self) -> None:
        for name in ("in_avals", "out_aval", "params"):
            if not hasattr(self, name):
                raise AttributeError(f"{type(self).__name__}.__init__ must set self.{name} first.")
        if _has(self, "vjp_bwd") and _has(self, "vjp_bwd_retval"):
            raise AttributeError(
                f"{type(self).__name__} has vjp_bwd and vjp_bwd_retval, of which one is enough."
            )
        self.in_avals_flat, self.in_tree = tree.flatten(tuple(self.in_avals))
        self.out_avals_flat, self.out_tree = tree.flatten(self.out_aval)
        for aval in (*self.in_avals_flat, *self.out_avals_flat):
            if isinstance(aval, HiType) or not isinstance(aval, AbstractValue):
                raise HiPrimitiveError(
                    f"{type(self).__name__} has the type {aval!r}, which is not that of arrays: "
                    "programs here hold arrays.",
                    "Take trees of arrays, and axir.typeof of each.",
                )
        self.__dict__.update(self.params)
        self.check(*self.in_avals)

    def __call__(self, *args: object) -> UserObject:
        """Applies the primitive.

        Raises:
            HiArgumentError: if the arguments have other structures, shapes or dtypes.
        """
        leaves, structure = tree.flatten(args)
        if structure != self.in_tree:
            raise HiArgumentError(
                f"{self!r} was called with arguments of structure {structure}, not {self.in_tree}.",
                "Make it from the types of what it is called with.",
            )
        values = to_values(leaves, args, type(self).__name__)
        for value, aval in zip(values, self.in_avals_flat, strict=True):
            if (value.type.shape, value.type.dtype) != (aval.shape, aval.dtype):
                raise HiArgumentError(
                    f"{self!r} was called with a value of type {value.type}, not {aval}.",
                    "Make it from the types of what it is called with.",
                )
        return self.out_tree.unflatten(call_hi_primitive.bind(*values, _prim=self))

    def check(self, *arg_tys: Tree) -> None:
        """Checks the types; a class may override it with its own checks."""

    def _missing(self, method: str, what: str) -> MissingHiRuleError:
        return MissingHiRuleError(
            f"For {what}, {type(self).__name__} must define {method}.",
            "Write it as a method of the class.",
        )

    def expand(self, *args: Tree) -> PyTree:
        """Computes the result."""
        raise self._missing("expand", "anything")

    def vjp_fwd(self, nzs_in: Tree, /, *args: Tree) -> tuple[PyTree, PyTree]:
        """Returns the result and residuals; `nzs_in` marks the differentiated operands."""
        raise self._missing("vjp_fwd", "reverse mode")

    def vjp_bwd_retval(self, res: Tree, outgrad: Tree, /) -> tuple[PyTree, ...]:
        """Returns the cotangents of the arguments, None for zeros."""
        raise self._missing("vjp_bwd_retval or vjp_bwd", "reverse mode")

    def vjp_bwd(self, res: Tree, outgrad: Tree, /, *arg_accums: Tree) -> None:
        """Adds to the cotangents of the arguments."""
        entries = zip(arg_accums, self.vjp_bwd_retval(res, outgrad), strict=True)
        for accumulators, cotangent in entries:
            if cotangent is not None:
                tree.map(
                    lambda x, ct: x.accum(ct), accumulators, cotangent, is_leaf=_is_accumulator
                )

    def jvp(self, primals: Tree, tangents: Tree) -> tuple[PyTree, PyTree]:
        """Returns the result and its tangent."""
        raise self._missing("jvp", "forward mode")

    def lin(self, nzs_in: Tree, *primals: Tree) -> tuple[PyTree, PyTree]:
        """Returns the result, and the residuals for `linearized`."""
        raise self._missing("lin and linearized", "linearize")

    def linearized(self, residuals: Tree, *tangents: Tree) -> PyTree:
        """Returns the tangent of the result, linear in the tangents."""
        raise self._missing("lin and linearized", "linearize")

    def batch(self, axis_data: UserObject, args: PyTree, dims: Tree) -> tuple[PyTree, PyTree]:
        """Returns the results for all elements, and where they have the axis."""
        axes = tuple(tree.leaves(dims, is_leaf=_is_none))
        avals = tree.map(lambda x: as_value(x).aval, tuple(args))
        return _Mapped(self, axis_data.size, axis_data.name, axes, avals)(*args), 0

    def batch_dim_rule(self, axis_data: object, dims: Tree, /) -> PyTree:
        """Tells where results have the batch axis. Never called: axir puts the axis in front."""
        return 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self.params}]"

    def _key(self) -> Hashable:
        avals = (*self.in_avals_flat, *self.out_avals_flat)
        return type(self), tuple(self.params.items()), avals, self.in_tree, self.out_tree

    def __hash__(self) -> int:
        return hash(self._key()[:3])  # type: ignore[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VJPHiPrimitive) and self._key() == other._key()


def _has(primitive: VJPHiPrimitive, method: str) -> bool:
    return getattr(type(primitive), method) is not getattr(VJPHiPrimitive, method)


def _is_accumulator(x: object) -> bool:
    return isinstance(x, GradAccum)


def _is_none(x: object) -> bool:
    return x is None


def _is_zero(x: object) -> bool:
    return type(x) is Zero


class _Mapped(VJPHiPrimitive):
    """A primitive for all elements of an axis, which results have in front."""

    def __init__(
        self,
        primitive: VJPHiPrimitive,
        size: int,
        axis_name: Hashable,
        dims: tuple[int | None, ...],
        in_avals: tuple[Tree, ...],
    ):
        self.in_avals = in_avals
        self.out_aval = tree.map(lambda aval: _in_front(aval, size), primitive.out_aval)
        self.params = {"primitive": primitive, "size": size, "axis_name": axis_name, "dims": dims}
        self._axes = primitive.in_tree.unflatten(dims)
        super().__init__()

    primitive: VJPHiPrimitive
    size: int
    axis_name: Hashable
    dims: tuple[int | None, ...]

    def _each(self, function: UserObject, in_axes: Tree, out_axes: Tree = 0) -> UserObject:
        return vmap(function, in_axes, out_axes, self.axis_name, self.size)

    def expand(self, *args: Tree) -> PyTree:
        """Computes all elements."""
        return self._each(self.primitive.expand, self._axes)(*args)

    def vjp_fwd(self, nzs_in: Tree, /, *args: Tree) -> tuple[Tree, Tree]:
        """Calls the rule for each element."""
        forward = self._each(lambda *each: self.primitive.vjp_fwd(nzs_in, *each), self._axes)
        return forward(*args)

    def vjp_bwd_retval(self, res: Tree, outgrad: Tree, /) -> tuple[Tree, ...]:
        """Calls the rule for each element; sums the cotangents of arguments shared by all."""

        def backward(res: Tree, outgrad: Tree) -> list[Value]:
            found = _pulled(self.primitive, res, outgrad)
            return [instantiate(x) for x in found]

        cotangent = tree.map(instantiate, outgrad, is_leaf=_is_zero)
        out_axes = [0 if axis is None else axis for axis in self.dims]
        results = self._each(backward, (0, 0), out_axes)(res, cotangent)
        summed = [
            sum_of(ct, axis=0) if axis is None and dtypes.is_inexact(ct.dtype) else ct
            for ct, axis in zip(results, self.dims, strict=True)
        ]
        return tuple(self.in_tree.unflatten(summed))

    def jvp(self, primals: PyTree, tangents: Tree) -> tuple[PyTree, PyTree]:
        """Calls the rule for each element."""
        moving = tree.map(instantiate, tangents, is_leaf=_is_zero)
        rule = self._each(lambda p, t: _pushed(self.primitive, p, t), (self._axes, self._axes))
        return rule(tuple(primals), tuple(moving))


def _in_front(aval: ShapedArray, size: int) -> ShapedArray:
    return aval.update(shape=(size, *aval.shape))


# Rules of the primitive that all are -------------------------------------------------------------


def _flat(primitive: VJPHiPrimitive, result: Tree, what: str) -> list[Value]:
    leaves, structure = tree.flatten(result)
    if structure != primitive.out_tree:
        raise CustomRuleError(
            f"{what} of {primitive!r} returned a tree of structure {structure}, but its out_aval "
            f"has {primitive.out_tree}.",
            "Return what out_aval says.",
        )
    return to_values(leaves, result, what)


def _expand(*operands: Value, _prim: VJPHiPrimitive) -> list[Value]:
    args = _prim.in_tree.unflatten(operands)
    return _flat(_prim, _prim.expand(*args), "expand")


def _infer(*types: ShapedArray, _prim: VJPHiPrimitive) -> list[ShapedArray]:
    return _prim.out_avals_flat


def _pushed(primitive: VJPHiPrimitive, primals: PyTree, tangents: PyTree) -> tuple[Tree, Tree]:
    """Returns result and tangent by the rule for forward mode, or by that for `linearize`."""
    if not isinstance(primitive, _Mapped) and not _has(primitive, "jvp") and _has(primitive, "lin"):
        marks = tree.map(lambda x: type(x) is not Zero, tangents, is_leaf=_is_zero)
        out, residuals = primitive.lin(marks, *primals)
        return out, primitive.linearized(residuals, *tangents)
    return primitive.jvp(primals, tangents)


def _value_and_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], *, _prim: VJPHiPrimitive
) -> tuple[list[Value], list[Tangent]]:
    structure = _prim.in_tree
    out, moved = _pushed(_prim, structure.unflatten(primals), structure.unflatten(tangents))
    return _flat(_prim, out, "jvp"), tree.flatten(moved, is_leaf=_is_zero)[0]


def _pulled(primitive: VJPHiPrimitive, residuals: Tree, outgrad: Tree) -> list[Tangent]:
    """Returns a cotangent for each leaf of the arguments."""
    accumulators = [GradAccum(aval.to_tangent_aval()) for aval in primitive.in_avals_flat]
    primitive.vjp_bwd(residuals, outgrad, *primitive.in_tree.unflatten(accumulators))
    return [x._total for x in accumulators]


def _linearize(
    primals: Sequence[Value], tangents: Sequence[Tangent], *, _prim: VJPHiPrimitive
) -> tuple[list[Value], list[Tangent]]:
    if not _has(_root(_prim), "vjp_fwd"):
        return _value_and_jvp(primals, tangents, _prim=_prim)
    moving = [type(t) is not Zero for t in tangents]
    out, kept = _prim.vjp_fwd(_prim.in_tree.unflatten(moving), *_prim.in_tree.unflatten(primals))
    leaves, structure = tree.flatten(kept)
    operands = to_values(leaves, kept, "vjp_fwd")
    count = len(operands)
    operands += primals if _has_forward(_prim) else []
    operands += map(instantiate, chosen(tangents, _inexact(_prim.in_avals_flat)))
    found = iter(hi_linear.bind(*operands, _prim=_prim, structure=structure, num_res=count))
    moved = [
        next(found) if is_inexact else Zero(aval.to_tangent_aval())
        for is_inexact, aval in zip(
            _inexact(_prim.out_avals_flat), _prim.out_avals_flat, strict=True
        )
    ]
    return _flat(_prim, out, "vjp_fwd"), moved


def _inexact(avals: Sequence[ShapedArray]) -> list[bool]:
    return [dtypes.is_inexact(aval.dtype) for aval in avals]


def _root(primitive: VJPHiPrimitive) -> VJPHiPrimitive:
    """Returns the primitive that others are for all elements of axes: it has the rules."""
    while isinstance(primitive, _Mapped):
        primitive = primitive.primitive
    return primitive


def _has_forward(primitive: VJPHiPrimitive) -> bool:
    return _has(_root(primitive), "jvp") or _has(_root(primitive), "lin")


def _batch(
    axis_data: object, operands: Sequence[Value], axes: Sequence[int | None], **params: object
) -> tuple[list[Value], list[int | None]]:
    primitive: UserObject = params["_prim"]
    structure = primitive.in_tree
    out, dims = primitive.batch(axis_data, structure.unflatten(operands), structure.unflatten(axes))
    outs = _flat(primitive, out, "batch")
    return outs, tree.broadcast_prefix(dims, out, "out_dim")


# The derivative, where reverse mode is possible: forward mode asks its own rule ----------


def _derivative(
    *operands: Value, _prim: VJPHiPrimitive, structure: tree.TreeDef, num_res: int
) -> list[Value]:
    if not _has_forward(_prim):
        _root(_prim).jvp((), ())  # names the missing rule
    count = len(_prim.in_avals_flat)
    primals, moving = operands[num_res : num_res + count], iter(operands[num_res + count :])
    tangents = [
        next(moving) if dtypes.is_inexact(aval.dtype) else Zero(aval.to_tangent_aval())
        for aval in _prim.in_avals_flat
    ]
    _, moved = _value_and_jvp(primals, tangents, _prim=_prim)
    return [instantiate(t) for t in chosen(moved, _inexact(_prim.out_avals_flat))]


def _derivative_types(*types: ShapedArray, _prim: VJPHiPrimitive, **params: object) -> object:
    avals = chosen(_prim.out_avals_flat, _inexact(_prim.out_avals_flat))
    return [aval.to_tangent_aval() for aval in avals]


def _transpose(
    cotangents: Sequence[Tangent],
    *operands: object,
    _prim: VJPHiPrimitive,
    structure: tree.TreeDef,
    num_res: int,
) -> list[Tangent | None]:
    remaining = iter(cotangents)
    full = [
        next(remaining) if dtypes.is_inexact(aval.dtype) else Zero(aval.to_tangent_aval())
        for aval in _prim.out_avals_flat
    ]
    residuals = structure.unflatten(operands[:num_res])
    found = _pulled(_prim, residuals, _prim.out_tree.unflatten(full))
    found = chosen(found, _inexact(_prim.in_avals_flat))
    return [*(None for _ in range(len(operands) - len(found))), *found]


def _push_derivative(
    primals: Sequence[Value], tangents: Sequence[Tangent], **params: Param
) -> tuple[object, object]:
    active = [dtypes.is_inexact(x.dtype) for x in primals]

    def of_active(*values: Value) -> list[Value]:
        remaining = iter(values)
        full = [next(remaining) if a else x for a, x in zip(active, primals, strict=True)]
        return _derivative(*full, **params)

    return jvp(of_active, chosen(primals, active), list(map(instantiate, chosen(tangents, active))))


def _batch_derivative(
    axis_data: UserObject,
    operands: Sequence[Value],
    axes: Sequence[int | None],
    *,
    _prim: VJPHiPrimitive,
    **params: object,
) -> tuple[list[Value], list[int | None]]:
    size = axis_data.size
    pairs = zip(operands, axes, strict=True)
    moved = [batching.bdim_at_front(x, axis, size) for x, axis in pairs]
    avals = [_in_front(aval, size) for aval in _prim.in_avals_flat]
    in_avals: UserObject = _prim.in_tree.unflatten(avals)
    dims = (0,) * len(_prim.in_avals_flat)
    mapped = _Mapped(_prim, size, axis_data.name, dims, in_avals)
    outs = hi_linear.bind(*moved, _prim=mapped, **params)
    return outs, [0] * len(outs)


hi_linear = Primitive("hi_linear", multiple_results=True)
hi_linear.def_impl(_derivative)
hi_linear.def_abstract_eval(_derivative_types)
hi_linear.value_and_jvp = _push_derivative
hi_linear.transpose = _transpose
batching.fancy_primitive_batchers[hi_linear] = _batch_derivative
mlir.register_lowering(hi_linear, mlir.lower_fun(_derivative))

call_hi_primitive = Primitive("call_hi_primitive", multiple_results=True)
call_hi_primitive.def_impl(_expand)
call_hi_primitive.def_abstract_eval(_infer)
call_hi_primitive.value_and_jvp = _value_and_jvp
call_hi_primitive.linearize = _linearize
batching.fancy_primitive_batchers[call_hi_primitive] = _batch
mlir.register_lowering(call_hi_primitive, mlir.lower_fun(_expand))
