"""Rounds products before they are added, so that a result is one number wherever it is computed.

IREE computes elementwise results again in each kernel that reads them, and gives LLVM leave to
round a product and the sum that it is part of once (`contract`). LLVM does so where nothing else in
the kernel reads the product: so `s = x * y + z` had other last bits in one kernel than in another,
and `s.max() - s` was negative. Without that leave all kernels round as NumPy does. Polynomials of
functions keep it: `erf` took a fifth longer without; and what is summed up in a loop, which is done
once: a matrix product took twice as long. What does not live here: when the compiler stops for this
(`invoker.py`).
"""

from __future__ import annotations

import re

from iree.compiler import ir

from .called_functions import FUNCTION_MARK

_PRODUCT = "llvm.fmul"
_SUMS = frozenset(("llvm.fadd", "llvm.fsub"))
_NEGATION = "llvm.fneg"
_FLAGS = "fastmathFlags"
_CONTRACT = "contract"
# How many terms of a sum are looked at: loops are unrolled by less.
_LONGEST_SUM = 64
# Kernels of products and of whole programs and loops keep theirs: what they compute is computed
# once, and multiplying and adding is most of what they do.
_COMPUTES_ONCE = re.compile(r"(matrix_product|vector_product|convolution|program|loop)_\d+")


def round_products(module: ir.Operation) -> None:
    """Has LLVM round all products of a module in the phase `executable-targets`, in place."""
    products: list[ir.Operation] = []

    def collect(operation: ir.Operation) -> ir.WalkResult:
        name = operation.name
        if name in ("hal.executable", "llvm.func"):
            if _computes_once(ir.StringAttr(operation.attributes["sym_name"]).value):
                return ir.WalkResult.SKIP
        elif name == _PRODUCT:
            products.append(operation)
        return ir.WalkResult.ADVANCE

    module.walk(collect, ir.WalkOrder.PRE_ORDER)
    without: dict[ir.Attribute, ir.Attribute] = {}
    for product in products:
        if _is_of_polynomial(product) or _is_summed_up(product):
            continue
        for operation in (product, *_sums_of_negated(product)):
            flags = operation.attributes[_FLAGS]
            if flags not in without:
                without[flags] = _without_leave(flags)
            operation.attributes[_FLAGS] = without[flags]


def _computes_once(symbol: str) -> bool:
    """Tells whether code of this name, a kernel or a function of it, may round a sum once."""
    return _COMPUTES_ONCE.fullmatch(symbol.partition(FUNCTION_MARK)[0]) is not None


def _sums_of_negated(product: ir.Operation) -> list[ir.Operation]:
    """Returns the sums with a product of which one factor, or which itself, is negated.

    Where the sum has the leave, LLVM writes x - (-y) * z as x + y * z, and gives it to the product.
    """
    users = [use.owner.operation for use in product.results[0].uses]
    negations = [x for x in users if x.name == _NEGATION]
    factors = [_definition(x) for x in product.operands]
    if not any(x is not None and x.name == _NEGATION for x in factors):
        users = []
    users += [use.owner.operation for x in negations for use in x.results[0].uses]
    return [x for x in users if x.name in _SUMS]


def _is_of_polynomial(product: ir.Operation) -> bool:
    """Tells whether a product is a step of a polynomial, p(x) * x to which a number is added.

    The numbers are what functions such as `erf` are made of; their products are nobody else's.
    """
    uses = list(product.results[0].uses)
    return (
        len(uses) == 1
        and _other_than_number(uses[0].owner.operation) is not None
        and any(map(_is_polynomial, product.operands))
    )


def _is_summed_up(product: ir.Operation) -> bool:
    """Tells whether a product is added to what a loop carries, which then carries the sum."""
    total = product.results[0]
    for _ in range(_LONGEST_SUM):
        users = [use.owner.operation for use in total.uses]
        if len(users) != 1 or users[0].name not in _SUMS:
            break
        total = users[0].results[0]
    carrying = _blocks_of_terms(total)
    return any(block in carrying for use in total.uses for block in use.owner.operation.successors)


def _blocks_of_terms(total: ir.Value) -> set[ir.Block]:
    """Returns the blocks that have terms of a sum as arguments."""
    found: set[ir.Block] = set()
    waiting = [total]
    for _ in range(2 * _LONGEST_SUM):  # the sums and what they add
        if not waiting:
            break
        value = waiting.pop()
        definition = _definition(value)
        if definition is None:
            found.add(value.owner)
        elif definition.name in _SUMS:
            waiting += definition.operands
    return found


def _is_polynomial(value: ir.Value) -> bool:
    """Tells whether a value is a sum of a number and of a product of such a sum or a number."""
    product = _other_than_number(_definition(value))
    definition = None if product is None else _definition(product)
    if definition is None or definition.name != _PRODUCT:
        return False
    factors = [_definition(x) for x in definition.operands]
    return any(_is_number(x) or _other_than_number(x) is not None for x in factors)


def _definition(value: ir.Value) -> ir.Operation | None:
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def _is_number(operation: ir.Operation | None) -> bool:
    return operation is not None and operation.name == "llvm.mlir.constant"


def _other_than_number(operation: ir.Operation | None) -> ir.Value | None:
    """Returns the summand of a sum that is no number, if the other one is."""
    if operation is None or operation.name not in _SUMS:
        return None
    first, second = operation.operands
    if _is_number(_definition(second)):
        return first
    return second if _is_number(_definition(first)) else None


def _without_leave(flags: ir.Attribute) -> ir.Attribute:
    """Returns the flags of an operation but for `contract`."""
    text = str(flags)
    names = [name.strip() for name in text[text.index("<") + 1 : -1].split(",")]
    kept = ", ".join(name for name in names if name != _CONTRACT)
    return ir.Attribute.parse(f"#llvm.fastmath<{kept or 'none'}>", flags.context)
