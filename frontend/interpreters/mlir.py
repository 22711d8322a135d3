"""Lowering rules of primitives to StableHLO.

`register_lowering(p, rule)` with `rule(context, *values, **params)`, which writes StableHLO with
the typed builder `hlo` and returns the result value(s); `context.avals_in` and `context.avals_out`
are the types. `hlo` has functions, which find out types of results and check operands, and the
classes of MLIR's bindings for all operations: `hlo.AddOp(x, y).result`.

>>> from axir import core
>>> from axir.interpreters import mlir
>>> fused = core.Primitive("fused_multiply_add")
>>> mlir.register_lowering(
...     fused, lambda context, x, y, z: mlir.hlo.add(mlir.hlo.multiply(x, y), z))
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.annotations import (
    DTypeLike,
    Param,
    UserFunction,
    UserObject,
)
from axir.dialect.core.array import ArrayLike, ConcreteArray, as_array
from axir.dialect.core.context import context, ir
from axir.dialect.core.errors import MissingRuleError, ParameterError
from axir.dialect.core.types import ShapedArray, element_type
from axir.dialect.ops.calls.callbacks import Callback, call_back
from axir.dialect.program.function_rules import LoweringContext, LowerRule
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.primitive import Primitive

__all__ = [
    "LoweringContext", "LoweringRule", "LoweringRuleContext", "Value", "aval_to_ir_type",
    "aval_to_ir_types", "dense_int_array", "dense_int_elements", "dtype_to_ir_type",
    "emit_python_callback", "flatten_ir_values", "hlo", "i32_attr", "i64_attr", "ir_attribute",
    "ir_constant", "ir_constants", "lower_fun", "make_ir_context", "module_to_bytecode",
    "module_to_string", "register_lowering",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


Rule = UserFunction
LoweringRule = UserFunction
# The context passed to rules; its `avals_in` and `avals_out` are types.
LoweringRuleContext = LoweringContext
Value = ir.Value


def register_lowering(
    prim: Primitive,
    rule: Rule,
    platform: str | None = None,
    inline: bool = True,
    cacheable: bool = True,
) -> None:
    """Defines how a primitive becomes StableHLO.

    Args:
        prim: Whose rule to define.
        rule: `(context, *values, **params) -> value(s)`.
        platform: `cpu`, `vulkan` or `cuda`: the rule then serves that platform only, before one
            for all platforms.
        inline, cacheable: Accepted for compatibility: a rule writes where the primitive stands,
            and each time.
    """
    if platform is None and not isinstance(prim.lower, _PlatformRules):
        prim.lower = rule
        return
    known = prim.lower
    rules = known if isinstance(known, _PlatformRules) else _PlatformRules(known)
    prim.lower = rules
    rules.table[platform] = rule


class _PlatformRules:
    """Chooses among lowering rules by platform."""

    def __init__(self, default: LowerRule | None):
        self.table: dict[str | None, LowerRule] = {} if default is None else {None: default}

    def __call__(self, context: LoweringContext, *values: object, **params: object) -> UserObject:
        rule = self.table.get(context.platform) or self.table.get(None)
        if rule is None:
            raise MissingRuleError(
                f"MLIR translation rule for primitive '{context.primitive.name}' not found for "
                f"platform {context.platform}",
                "Define it with mlir.register_lowering(primitive, rule).",
            )
        return rule(context, *values, **params)


def lower_fun(fun: UserFunction, multiple_results: bool = True) -> Rule:
    """Returns a lowering rule that traces a function of values and lowers its ops."""

    def rule(context: LoweringContext, *values: UserObject, **params: Param) -> list[UserObject]:
        def flat(*operands: UserObject) -> list[UserObject]:
            result = fun(*operands, **params)
            return list(result) if multiple_results else [result]

        function = trace_function(flat, context.types_in, name=context.primitive.name)
        constants = [hlo.constant(as_array(x).host()) for x in function.captured]
        return context.inline(function, *values, *constants)

    return rule


def emit_python_callback(
    ctx: LoweringContext,
    callback: UserFunction,
    token: object,
    operands: Sequence[object],
    operand_avals: Sequence[ShapedArray],
    result_avals: Sequence[ShapedArray],
    *,
    has_side_effect: bool,
    returns_token: bool = True,
    partitioned: bool = False,
    sharding: object = None,
) -> tuple[list[UserObject], UserObject, None]:
    """Calls a function of NumPy arrays when the compiled code runs, from a lowering rule.

    Args:
        ctx: The context passed to the rule.
        callback: Takes read-only NumPy arrays, and returns a sequence of array-like values.
        token: Is handed back; calls stay in their order without one.
        operands: MLIR values, as the rule got them.
        operand_avals: Their types.
        result_avals: Types of the function's results.
        has_side_effect, returns_token, partitioned, sharding: Ignored.

    Returns:
        MLIR values of the results, the token, and None, because a program holds references to its
        callbacks.

    Raises:
        HostCallNeededError: if the code will not run in this process.
    """

    def of_arrays(*arrays: ConcreteArray) -> Sequence[UserObject]:
        return callback(*[x.host() for x in arrays])

    named = Callback(of_arrays, getattr(callback, "__name__", "callback"))
    results = call_back(ctx, flatten_ir_values(operands), named, result_avals)
    return results, token, None


def aval_to_ir_type(ctx: UserObject, aval: ShapedArray | None = None) -> UserObject:
    """Returns the MLIR tensor type of a type.

    Args:
        ctx: The context passed to a rule. Programs for JAX up to 0.11 leave it out.
        aval: The type.
    """
    return (ctx if aval is None else aval).mlir


def aval_to_ir_types(ctx: object, aval: ShapedArray | None = None) -> tuple[UserObject, ...]:
    """Returns the MLIR types of the values that stand for one of a type: one; see above."""
    return (aval_to_ir_type(ctx, aval),)


def dtype_to_ir_type(dtype: DTypeLike) -> ir.Type:
    """Returns the MLIR type of elements.

    >>> str(dtype_to_ir_type("float32"))
    'f32'
    """
    return element_type(np.dtype(dtype))


def ir_constant(
    val: ArrayLike, *, const_lowering: object = None, aval: ShapedArray | None = None
) -> UserObject:
    """Returns a constant of StableHLO, written where a lowering rule writes.

    Args:
        val: The numbers.
        const_lowering: Ignored: constants stand where they are used.
        aval: Their type; they are converted to its dtype.
    """
    dtype = None if aval is None else aval.dtype
    return hlo.constant(np.asarray(as_array(val).host(), dtype))


def ir_constants(
    val: ArrayLike, *, const_lowering: object = None, aval: ShapedArray | None = None
) -> tuple[UserObject, ...]:
    """Returns the constants of StableHLO that stand for an array: one; see `ir_constant`."""
    return (ir_constant(val, aval=aval),)


def flatten_ir_values(xs: Iterable[object]) -> list[UserObject]:
    """Returns values, and those in sequences of values, in one list."""
    flat: list[UserObject] = []
    for x in xs:
        flat.extend(x if isinstance(x, (list, tuple)) else [x])
    return flat


def make_ir_context() -> ir.Context:
    """Returns the context of MLIR that all modules of this process share."""
    return context()


def i32_attr(i: int) -> ir.IntegerAttr:
    """Returns an integer of 32 bits as an attribute.

    >>> str(i32_attr(3))
    '3 : i32'
    """
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32, context()), i)


def i64_attr(i: int) -> ir.IntegerAttr:
    """Returns an integer of 64 bits as an attribute."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64, context()), i)


def dense_int_array(xs: Sequence[int]) -> ir.DenseI64ArrayAttr:
    """Returns integers of 64 bits as an array attribute.

    >>> str(dense_int_array([1, 2]))
    'array<i64: 1, 2>'
    """
    return ir.DenseI64ArrayAttr.get(list(xs), context())


def dense_int_elements(xs: Sequence[int]) -> ir.DenseIntElementsAttr:
    """Returns integers of 64 bits as the elements of a tensor."""
    return ir.DenseIntElementsAttr.get(np.asarray(xs, np.int64), context=context())


def ir_attribute(val: object) -> ir.Attribute:
    """Returns a number, text, array or sequence as an attribute.

    >>> str(ir_attribute({"steps": 3, "name": "a"}))
    '{name = "a", steps = 3 : i64}'
    """
    if isinstance(val, ir.Attribute):
        return val
    if isinstance(val, bool):
        return ir.BoolAttr.get(val, context())
    if isinstance(val, int):
        return i64_attr(val)
    if isinstance(val, float):
        return ir.FloatAttr.get(ir.F64Type.get(context()), val, loc=ir.Location.unknown(context()))
    if isinstance(val, str):
        return ir.StringAttr.get(val, context())
    if isinstance(val, np.ndarray):
        return ir.DenseElementsAttr.get(val, context=context())
    if isinstance(val, Mapping):
        return ir.DictAttr.get({k: ir_attribute(v) for k, v in val.items()}, context())
    if isinstance(val, (list, tuple)):
        return ir.ArrayAttr.get([ir_attribute(v) for v in val], context())
    raise ParameterError(
        f"ir_attribute: there is no attribute for {val!r} of type {type(val).__name__}.",
        "Pass numbers, text, arrays, or sequences and dictionaries of these.",
    )


def module_to_string(module: ir.Module, enable_debug_info: bool = False) -> str:
    """Returns the text of a module."""
    return module.operation.get_asm(enable_debug_info=enable_debug_info)


def module_to_bytecode(module: ir.Module) -> bytes:
    """Returns the bytecode of a module."""
    output = io.BytesIO()
    module.operation.write_bytecode(output)
    return output.getvalue()
