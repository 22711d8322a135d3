"""StableHLO control flow, calls, and the operations that end a region."""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from .core import Body, as_values, build


def return_(values: Sequence[ir.Value] | ir.Value) -> None:
    """Ends the current region of a StableHLO operation."""
    build("return_", "stablehlo.return", as_values(values), ())


def while_(inits: Sequence[ir.Value], condition: Body, body: Body) -> list[ir.Value]:
    """Repeats `body(*carry) -> carry` as long as `condition(*carry)`, a rank-0 `i1`, holds."""
    carry = as_values(inits)
    types = [value.type for value in carry]
    bodies = [(types, condition), (types, body)]
    return list(build("while_", "stablehlo.while", carry, types, bodies=bodies).results)


def case(
    index: ir.Value, branches: Sequence[Body], result_types: Sequence[ir.Type]
) -> list[ir.Value]:
    """Returns the results of branch `index` (rank-0 `i32`); an index out of range takes the last
    branch.

    Branches take no arguments: they use the surrounding values.
    """
    bodies = [((), branch) for branch in branches]
    return list(build("case", "stablehlo.case", (index,), result_types, bodies=bodies).results)


def if_(
    predicate: ir.Value, on_true: Body, on_false: Body, result_types: Sequence[ir.Type]
) -> list[ir.Value]:
    """Returns the results of `on_true()` when the rank-0 `predicate` holds, else of
    `on_false()`.
    """
    bodies = [((), on_true), ((), on_false)]
    return list(build("if_", "stablehlo.if", (predicate,), result_types, bodies=bodies).results)


def optimization_barrier(values: Sequence[ir.Value] | ir.Value) -> list[ir.Value]:
    """Returns the same values; none of them is computed after, or fused into, its uses."""
    operands = as_values(values)
    types = [value.type for value in operands]
    name = "optimization_barrier"
    return list(build(name, f"stablehlo.{name}", operands, types).results)


def call(
    symbol: str, operands: Sequence[ir.Value], result_types: Sequence[ir.Type]
) -> list[ir.Value]:
    """Calls the function `@symbol` of the module.

    The verification of the whole module checks whether the function exists and takes the operands.
    """
    attributes = {"callee": ir.FlatSymbolRefAttr.get(symbol)}
    created = ir.Operation.create(
        "func.call", results=list(result_types), operands=list(operands), attributes=attributes
    )
    return list(created.results)


def custom_call(
    target: str,
    operands: Sequence[ir.Value],
    result_types: Sequence[ir.Type],
    *,
    has_side_effect: bool = False,
) -> list[ir.Value]:
    """Calls the function with the name `target` in the executing system."""
    attributes = {
        "call_target_name": ir.StringAttr.get(target),
        "has_side_effect": ir.BoolAttr.get(has_side_effect),
    }
    name = "custom_call"
    return list(build(name, f"stablehlo.{name}", operands, result_types, attributes).results)
