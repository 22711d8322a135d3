"""Says which products are rounded before they are added, so that a result is one number wherever
it is computed.

IREE computes elementwise results again in each kernel that reads them, and allows LLVM to fuse a
product with the sum that it is part of, so that both are rounded once (`contract`). LLVM does so
where nothing else in the kernel reads the product, and both are in one block. So `s = x * y + z`
had different last bits in two kernels, and `s.max() - s` was negative. Without that flag all
kernels round as NumPy does. Some products keep the flag: the polynomials of functions, since `erf`
took a fifth longer without; sums in a loop, which is run once, since a matrix product took twice as
long; and all products of kernels with results that no other kernel computes again. There, where the
processor has a fused operation, the product and the sum become that operation here. Otherwise LLVM
in IREE and llvmlite's LLVM, which optimize differently, could choose differently among two products
that are added. Elsewhere: when the compiler stops for this (`invoker.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass

from iree.compiler import ir

from .kernel_code import FUNCTION_MARK

_PRODUCT = "llvm.fmul"
# The operations that name the processor, and the attribute that holds it.
_TARGETS = {"builtin.module": "hal.executable.target", "hal.executable.variant": "target"}
_SUMS = frozenset(("llvm.fadd", "llvm.fsub"))
_NEGATION = "llvm.fneg"
_FLAGS = "fastmathFlags"
_CONTRACT = "contract"
# How many terms of a sum are looked at: loops are unrolled by less.
_LONGEST_SUM = 64
# Kernels of products, of transforms, and of whole programs and loops keep the flag: no other kernel
# computes their results again, and multiplying and adding is most of their work.
_COMPUTES_ONCE = re.compile(
    r"(matrix_product|vector_product|convolution|program|loop)_\d+|fft_k?[0-9a-f]+"
)


def round_products(module: ir.Operation) -> None:
    """Settles how the products of a module in the phase `executable-targets` are rounded."""
    scope = _Scope()

    def collect(operation: ir.Operation) -> ir.WalkResult:
        scope.visit(operation)
        return ir.WalkResult.ADVANCE

    module.walk(collect, ir.WalkOrder.PRE_ORDER)
    free = [x for x in scope.products if x.computes_once or _may_fuse(x.operation)]
    fused = _fused({x.operation for x in free if x.has_fused}, scope.sums)
    kept = {x.operation for x in free if not x.has_fused}
    without: dict[ir.Attribute, ir.Attribute] = {}
    for product in (x.operation for x in scope.products):
        if product in fused or product in kept:
            continue
        for operation in (product, *_sums_of_negated(product)):
            flags = operation.attributes[_FLAGS]
            if flags not in without:
                without[flags] = _without_leave(flags)
            operation.attributes[_FLAGS] = without[flags]
    for product, total in fused.items():
        _fuse(product, total)


@dataclass(frozen=True)
class _Product:
    """A product: whether its kernel computes it once, and its processor has fused operations."""

    operation: ir.Operation
    computes_once: bool
    has_fused: bool


class _Scope:
    """Collects products and sums, and their kernels' properties."""

    def __init__(self) -> None:
        self.products: list[_Product] = []
        self.sums: list[ir.Operation] = []
        self._executable = self._function = self._has_fused = False

    def visit(self, operation: ir.Operation) -> None:
        """Visits the next operation, after the operations around it."""
        name = operation.name
        if name == "hal.executable":
            self._executable = _computes_once(_symbol(operation))
        elif name == "llvm.func":
            self._function = _computes_once(_symbol(operation))
        elif name in _TARGETS and _TARGETS[name] in operation.attributes:
            self._has_fused = _has_fused(str(operation.attributes[_TARGETS[name]]))
        elif name == _PRODUCT:
            is_once = self._executable or self._function
            self.products.append(_Product(operation, is_once, self._has_fused))
        elif name in _SUMS:
            self.sums.append(operation)


def _symbol(operation: ir.Operation) -> str:
    return ir.StringAttr(operation.attributes["sym_name"]).value


def _has_fused(target: str) -> bool:
    """Tells whether a processor multiplies and adds in one operation."""
    return "+fma," in target or '+fma"' in target or "aarch64" in target


def _sums_of_negated(product: ir.Operation) -> list[ir.Operation]:
    """Returns the sums of a product that is negated, or has a negated factor.

    Where the sum has the flag, LLVM writes x - (-y) * z as x + y * z, and gives the flag to the
    product.
    """
    users = [use.owner.operation for use in product.results[0].uses]
    negations = [x for x in users if x.name == _NEGATION]
    factors = [_definition(x) for x in product.operands]
    if not any(x is not None and x.name == _NEGATION for x in factors):
        users = []
    users += [use.owner.operation for x in negations for use in x.results[0].uses]
    return [x for x in users if x.name in _SUMS]


def _may_fuse(product: ir.Operation) -> bool:
    return _is_of_polynomial(product) or _is_summed_up(product)


def _fused(
    products: Set[ir.Operation], sums: Sequence[ir.Operation]
) -> dict[ir.Operation, ir.Operation]:
    """Returns the products that are rounded with a sum, and that: of two products the first."""
    found: dict[ir.Operation, ir.Operation] = {}
    leaves: dict[ir.Attribute, bool] = {}
    results = {x.results[0]: x for x in products if _may_contract(x, leaves)}
    if not results:
        return found
    for total in sums:
        if not (_may_contract(total, leaves) and _is_wide(total)):
            continue
        for x in total.operands:
            if x in results and len(list(x.uses)) == 1:
                found[results[x]] = total
                break
    return found


def _may_contract(operation: ir.Operation, known: dict[ir.Attribute, bool]) -> bool:
    flags = operation.attributes[_FLAGS]
    if flags not in known:
        known[flags] = _CONTRACT in str(flags)
    return known[flags]


def _is_wide(total: ir.Operation) -> bool:
    kind = total.results[0].type
    element = kind.element_type if isinstance(kind, ir.VectorType) else kind
    return isinstance(element, (ir.F32Type, ir.F64Type))


def _fuse(product: ir.Operation, total: ir.Operation) -> None:
    """Puts one operation in the place of a product and the sum that it is part of."""
    x, y = product.operands
    first, second = total.operands
    is_first = first == product.results[0]
    other = second if is_first else first
    kind = total.results[0].type
    with ir.InsertionPoint(total), total.location:
        if total.name == "llvm.fsub":
            if is_first:
                other = ir.Operation.create(_NEGATION, [kind], [other]).result
            else:
                x = ir.Operation.create(_NEGATION, [kind], [x]).result
        made = ir.Operation.create("llvm.intr.fma", [kind], [x, y, other]).result
    total.results[0].replace_all_uses_with(made)
    total.erase()
    product.erase()


def _computes_once(symbol: str) -> bool:
    """Tells whether code of this name, a kernel or a function of it, may round a sum once."""
    return _COMPUTES_ONCE.fullmatch(symbol.partition(FUNCTION_MARK)[0]) is not None


def _is_of_polynomial(product: ir.Operation) -> bool:
    """Tells whether a product is a step of a polynomial, p(x) * x to which a number is added.

    The numbers are coefficients of functions such as `erf`; no other operation uses their products.
    """
    uses = list(product.results[0].uses)
    return (
        len(uses) == 1
        and _other_than_number(uses[0].owner.operation) is not None
        and any(map(_is_polynomial, product.operands))
    )


def _is_summed_up(product: ir.Operation) -> bool:
    """Tells whether a product is added to a loop's carry, and the loop then carries the sum."""
    total = product.results[0]
    for _ in range(_LONGEST_SUM):
        users = [use.owner.operation for use in total.uses]
        if len(users) != 1 or users[0].name not in _SUMS:
            break
        total = users[0].results[0]
    carrying = _blocks_of_terms(total)
    return any(block in carrying for use in total.uses for block in use.owner.operation.successors)


def _blocks_of_terms(total: ir.Value) -> set[ir.Block]:
    """Returns the blocks with terms of a sum among their arguments."""
    found: set[ir.Block] = set()
    waiting = [total]
    for _ in range(2 * _LONGEST_SUM):  # the sums and their terms
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
    """Tells whether a value is a polynomial: a number, plus a product of such a sum or a number."""
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
    """Returns the summand that is not a number, if the other one is."""
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
