"""Rewrites of kernels in LLVM's dialect, before they become machine code.

* Functions that kernels call are not inlined. A kernel that needs a formula of a hundred operations
  hundreds of times calls a function instead (`dialect/builders/kernels/functions.py`). LLVM's
  inliner considers such a function small, and the code of hundreds of inlined calls keeps the later
  passes busy for seconds.
* Conversions of floats to integers get a value for every number, so that nan stays nan. LLVM leaves
  the result of converting nan, or a number that no integer holds, undefined: it is poison, and so
  is every value computed from it. IREE's exponential converts its exponent to an integer, and
  multiplies by that power of two. Where LLVM knew the operand, as in `exp(x * nan)`, the whole
  function was poison, and the result was the content of some register, usually 0. A frozen result
  is some integer, and the product with nan is nan again. Processors give some integer anyway, so
  freezing costs no instruction.
* Vectors of integers are divided in floating point, for which processors have vector instructions:
  they divide single integers only, and LLVM splits a vector into its elements for that: 1.9 ns an
  element, and 0.5 ns in this way (AMD EPYC with AVX-512). A quotient that is not an integer differs
  from the next integer by one part of the divisor or more, which is 2**-32 of its size where the
  dividend has 32 bits. Rounding to f64 changes it by 2**-53 of its size, so it does not reach that
  integer. IREE's LLVM does the same; llvmlite's LLVM is older.
* Addresses of arrays are loaded at their first use, in kernels of many arrays. A kernel begins with
  the loads of the addresses of all arrays. With hundreds of arrays, LLVM spills most of the
  addresses to the stack and reloads them, and spends half of its time on that.

Elsewhere: StableHLO's rules for conversions (`axir.passes.legalize.numbers`), division by zero and
overflow, which kernels exclude (`axir.passes.fuse.elementwise`), products that are rounded once
(`roundings.py`), and when the compiler stops for this (`invoker.py`, `native.py`).
"""

from __future__ import annotations

from iree.compiler import ir

from .compiler_library import operations_named

# As in `dialect/builders/kernels/functions.py`, which a helper process does not load.
FUNCTION_MARK = "_function_"


def keep_functions(module: ir.Operation) -> int:
    """Forbids LLVM to inline the functions of kernels, in the phase `executable-targets`.

    Returns:
        The number of functions marked.
    """
    functions = [
        x
        for x in _functions(module)
        if FUNCTION_MARK in ir.StringAttr(x.attributes["sym_name"]).value
    ]
    for function in functions:
        context = function.context
        function.attributes["passthrough"] = ir.Attribute.parse('["noinline"]', context)
        function.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<internal>", context)
    return len(functions)


_CONVERSIONS = frozenset(("llvm.fptosi", "llvm.fptoui"))


def freeze_conversions(module: ir.Operation) -> None:
    """Freezes conversions to integers in a module of the phase `executable-targets`."""
    for conversion in operations_named(module, _CONVERSIONS):
        _freeze(conversion)


def _freeze(conversion: ir.Operation) -> None:
    (result,) = conversion.results
    with ir.InsertionPoint.after(conversion), conversion.location:
        frozen = ir.Operation.create("llvm.freeze", [result.type], [result])
    result.replace_all_uses_except(frozen.results[0], frozen)


_DIVISIONS = {f"llvm.{sign}{kind}": sign for sign in "su" for kind in ("div", "rem")}
_MOST_BITS = 32


def divide_vectors(module: ir.Operation) -> None:
    """Rewrites divisions and remainders in a module of the dialect `llvm`, in place."""
    found = operations_named(module, _DIVISIONS)
    for division in [x for x in found if _is_narrow_vector(x.results[0].type)]:
        with ir.InsertionPoint(division), division.location:
            result = _divided(division)
        division.results[0].replace_all_uses_with(result)
        division.erase()


def _is_narrow_vector(kind: ir.Type) -> bool:
    if not isinstance(kind, ir.VectorType):
        return False
    return isinstance(kind.element_type, ir.IntegerType) and kind.element_type.width <= _MOST_BITS


def _divided(division: ir.Operation) -> ir.Value:
    kind = division.results[0].type
    sign = _DIVISIONS[division.name]
    dividend, divisor = division.operands
    wide = ir.VectorType.get(kind.shape, ir.F64Type.get())
    doubles = [_made(f"llvm.{sign}itofp", wide, x) for x in (dividend, divisor)]
    quotient = _made(f"llvm.fpto{sign}i", kind, _made("llvm.fdiv", wide, *doubles))
    if division.name.endswith("div"):
        return quotient
    return _made("llvm.sub", kind, dividend, _made("llvm.mul", kind, quotient, divisor))


def _made(name: str, kind: ir.Type, *operands: ir.Value) -> ir.Value:
    return ir.Operation.create(name, results=[kind], operands=list(operands)).results[0]


# As many addresses as registers hold.
_FEW = 16
_LOAD, _PLACE = "llvm.load", "llvm.getelementptr"


def load_addresses_late(module: ir.Operation) -> None:
    """Moves loads of addresses in the first blocks of functions to their first uses there."""
    for function in _functions(module):
        if len(function.regions[0].blocks):
            _move(function)


def _move(function: ir.Operation) -> None:
    order: dict[ir.Operation, int] = {}
    end = _end_of_first_block(function)

    def number(operation: ir.Operation) -> ir.WalkResult:
        if operation == function:
            return ir.WalkResult.ADVANCE
        order[operation] = len(order)
        return ir.WalkResult.INTERRUPT if operation == end else ir.WalkResult.SKIP

    function.walk(number, ir.WalkOrder.PRE_ORDER)
    pointer = ir.Type.parse("!llvm.ptr", function.context)
    loads = [x for x in order if x.name == _LOAD and x.results[0].type == pointer]
    if len(loads) <= _FEW:
        return
    for load in loads:
        users = [use.owner.operation for use in load.results[0].uses]
        here = [x for x in users if x in order]
        if here:
            place = load.operands[0].owner
            load.move_before(min(here, key=order.__getitem__))
            is_place = not isinstance(place, ir.Block) and place.operation.name == _PLACE
            if is_place and len(list(place.operation.results[0].uses)) == 1:
                place.operation.move_before(load)


def _end_of_first_block(function: ir.Operation) -> ir.Operation:
    block = function.regions[0].blocks[0]
    return block.operations[len(block.operations) - 1].operation


def _functions(module: ir.Operation) -> list[ir.Operation]:
    """Returns the functions of LLVM's dialect in a module, which are not looked into."""
    functions: list[ir.Operation] = []

    def collect(operation: ir.Operation) -> ir.WalkResult:
        if operation.name != "llvm.func":
            return ir.WalkResult.ADVANCE
        functions.append(operation)
        return ir.WalkResult.SKIP

    module.walk(collect, ir.WalkOrder.PRE_ORDER)
    return functions
