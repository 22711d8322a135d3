"""Elementwise operations in a kernel and in regions, and loops over elements.

Here: the formulas of operations in kernels, and the functions and kernels of a module that kernels
made from its parts may use.
Elsewhere: the formulas of operations on scalars and vectors (`passes/legalize/lanes.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from iree.compiler import ir, passmanager

from axir.dialect.builders.scalars import Scalar, broadcast, element_of, integer, operation
from axir.passes.legalize.elementwise_loops import FORMULA, holder_of_formula
from axir.passes.legalize.lanes import Lanes, has_lanes, lanes_of
from axir.passes.legalize.regions import operations_of
from axir.passes.legalize.rewriting import ELEMENTWISE, operations_in_order
from axir.passes.legalize.stages import operation_names

CHEAP = 1
DEAR = 12
_DEAR = frozenset(
    "tanh logistic exponential exponential_minus_one log log_plus_one divide remainder sqrt rsqrt "
    "erf power sine cosine tan atan atan2 asin acos".split()
)


def cost_of(name: str) -> int:
    """Returns the cost of one element of an operation, in additions."""
    return DEAR if name.rpartition(".")[2] in _DEAR or name == "linalg.generic" else CHEAP


def formula_of(created: ir.Operation) -> Lanes | None:
    """Returns an operation's formula for elements; None if it is not elementwise or unknown."""
    if created.name == "linalg.generic":
        return _formula_of_loop(created) if _is_elementwise_loop(created) else None
    return lanes_of(created)


def can_compute(created: ir.Operation) -> bool:
    """Tells whether an operation is elementwise, with a formula for its types."""
    if created.name == "linalg.generic":
        return _is_elementwise_loop(created)
    return has_lanes(created)


def formula_name(created: ir.Operation) -> str | None:
    """Returns a name that identifies the formula of an operation; None if it is cheap.

    Operations with the same name have the same formula for the same element types.
    """
    if created.name == "linalg.generic":
        attributes = created.attributes
        return ir.StringAttr(attributes[FORMULA]).value if FORMULA in attributes else None
    if cost_of(created.name) == CHEAP:
        return None
    elements = [x.type.element_type for x in created.operands]
    return " ".join([created.name, *map(str, elements)])


def length_of_formula(created: ir.Operation) -> int:
    """Returns the number of operations of a formula; functions that LLVM provides count as one."""
    if created.name != "linalg.generic":
        return 1
    return len(operations_of(holder_of_formula(created))[0])


# Loops over elements ----------------------------------------------------------------------------


def _is_elementwise_loop(loop: ir.Operation) -> bool:
    if FORMULA in loop.attributes:  # a formula of axir; many have a hundred operations
        return len(loop.results) == 1
    kinds = str(loop.attributes["iterator_types"])
    maps = loop.attributes["indexing_maps"]
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(loop.results[0].type.rank))
    is_plain = all(x == identity for x in maps)
    plain = all(not len(inner.regions) for inner in operations_of(loop)[0])
    return is_plain and plain and len(loop.results) == 1 and "reduction" not in kinds


def _formula_of_loop(loop: ir.Operation) -> Lanes:
    """Returns the body of a loop over all elements, with vectors for its scalars."""
    holder = holder_of_formula(loop)
    block = holder.regions[0].blocks[0]
    body = [(inner, inner.name) for inner in operations_of(holder)[0]]

    def formula(*xs: Scalar) -> Scalar:
        values = dict(zip(block.arguments, xs, strict=False))
        like = xs[0].like
        for inner, name in body:
            operands = [values[x] for x in inner.operands]
            if name in ("linalg.yield", "func.return"):
                return operands[0]
            attributes = {key: inner.attributes[key] for key in inner.attributes}
            kinds = [like(result.type) for result in inner.results]
            if name == "arith.constant" and isinstance(kinds[0], ir.VectorType):
                attributes["value"] = ir.DenseElementsAttr.get_splat(kinds[0], attributes["value"])
            made = ir.Operation.create(name, kinds, [x.value for x in operands], attributes)
            values.update(zip(inner.results, map(Scalar, made.results), strict=True))
        raise AssertionError("a loop without a yield")

    return formula


def reducer_of(parent: ir.Operation) -> str | None:
    """Returns the name of the one operation that a region applies to its two arguments."""
    block = parent.regions[0].blocks[0]
    [operations] = operations_of(parent)
    if len(operations) != 2 or len(block.arguments) != 2:
        return None
    first, last = operations
    is_plain = set(first.operands) == set(block.arguments) and len(first.operands) == 2
    yields = len(last.operands) == 1 and last.operands[0] == first.results[0]
    return first.name if is_plain and yields else None


def combine(parent: ir.Operation, xs: Sequence[Scalar]) -> list[Scalar]:
    """Runs the elementwise operations of a region on tensors of rank 0, on numbers or vectors."""
    [operations] = operations_of(parent)
    lanes = next((x.lanes for x in xs if x.lanes is not None), None)
    arguments = parent.regions[0].blocks[0].arguments
    values: dict[ir.Value, Scalar] = dict(zip(arguments, xs, strict=True))
    for created in operations:
        if created.name == "stablehlo.return":
            return [values[x] for x in created.operands]
        if created.name == "stablehlo.constant":
            values[created.results[0]] = broadcast(splat(created), lanes)
            continue
        formula = formula_of(created)
        assert formula is not None
        values[created.results[0]] = formula(*(values[x] for x in created.operands))
    raise AssertionError("a region without a return")


def is_uniform(x: ir.Value) -> bool:
    """Tells whether a value is a constant of equal elements."""
    if isinstance(x, ir.BlockArgument):
        return False
    owner = x.owner.operation
    if owner.name != "stablehlo.constant":
        return False
    return bool(ir.DenseElementsAttr(owner.attributes["value"]).is_splat)


def splat(created: ir.Operation) -> Scalar:
    """Returns the number that all elements of a constant are."""
    dense = ir.DenseElementsAttr(created.attributes["value"])
    attribute = dense.get_splat_value()
    element = element_of(created.results[0].type.element_type)
    kind = integer(element.width) if isinstance(element, ir.IntegerType) else element
    if isinstance(kind, ir.FloatType):
        return operation("arith.constant", (), kind, {"value": attribute})
    value = ir.IntegerAttr.get(kind, _signed_value(attribute, kind.width))
    return operation("arith.constant", (), kind, {"value": value})


def _signed_value(attribute: ir.Attribute, width: int) -> int:
    number = int(attribute.value)
    if width == 1:
        return number & 1
    half = 1 << (width - 1)
    return (number + half) % (2 * half) - half


# How many times a formula may be written out, and how many operations of repeated long formulas:
# compiling each takes as long as a million calls of a function.
_WRITTEN_OUT = 12
_WRITTEN_AGAIN = 150
_NOT_CHEAP = frozenset(name for name in ELEMENTWISE if cost_of(name) != CHEAP)


class Code:
    """The symbols of a module.

    Attributes:
        functions: Functions, by name.
        executables: Kernels, by name.
        repeated: The names of formulas that many operations have.
    """

    def __init__(self, module: ir.Module):
        self.repeated = _repeated(module)
        self.functions = _by_name(module, "func.func")
        self.executables = _by_name(module, "stream.executable")


def _by_name(module: ir.Module, kind: str) -> dict[str, ir.Operation]:
    found = operations_in_order(module.operation, (kind,))
    return {
        ir.StringAttr(x.attributes["sym_name"]).value: x
        for x in found
        if x.parent == module.operation
    }


def _repeated(module: ir.Module) -> frozenset[str]:
    dear = defaultdict(list)
    for x in operations_in_order(module.operation, _NOT_CHEAP):
        dear[formula_name(x)].append(x)
    return frozenset(name for name, found in dear.items() if name and _is_often(found))


def _is_often(operations: Sequence[ir.Operation]) -> bool:
    """Tells whether so many operations have one formula that it should be a function."""
    first, *others = operations
    length = length_of_formula(first) if others else 0
    return len(operations) > _WRITTEN_OUT or len(others) * length > _WRITTEN_AGAIN


def write_out_functions(module: ir.Module) -> None:
    """Replaces the functions of CHLO by formulas, as IREE would later."""
    if any(name.startswith("chlo.") for name in operation_names(module)):
        pipeline = "builtin.module(func.func(chlo-legalize-to-stablehlo))"
        passmanager.PassManager.parse(pipeline).run(module.operation)
