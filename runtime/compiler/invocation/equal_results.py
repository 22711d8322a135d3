"""Keeps IREE from mistaking one result of a dispatch for another.

IREE computes independent scalars in one dispatch, and finds there that some are equal, such as a
number and the same number converted to a wider type and back. It drops the duplicate results, but
makes the users of each of them read the dispatch's first result
(`dropUnusedAndRedundantDispatchRegionResults`). So axir makes such dispatches here, before the
phase that would make them, with all the rewrites that merge equal results, except the one wrong
pattern. Each duplicate result is replaced by its equal; then no result is left to be dropped. Other
dispatches have one result, or results of different operations. Elsewhere: when the compiler stops
for this (`invoker.py`).
"""

from __future__ import annotations

import math

from iree.compiler import ir
from iree.compiler.passmanager import PassManager

from .compiler_library import operations_named

NUMBERS_PHASE = "global-optimization"
_FUNCTIONS = ("util.func", "util.initializer")
_REGION = "flow.dispatch.region"
_GENERIC = "linalg.generic"
# A result that is not the first, an equal one, and two operations between which they became equal.
_FEWEST = 4
_TIDY = "iree-flow-canonicalize,cse"
_FUSE = (
    "iree-dispatch-creation-elementwise-op-fusion{fuse-broadcast-ops=false "
    "fuse-multi-reduction=true fuse-truncate-ops=false intra-dispatch=false}"
)
_FUSE_PRODUCERS = """iree-dispatch-creation-fuse-multi-use-elementwise-producer{
    intra-dispatch=true num-iterations=32}"""
# Equal computations in a region that was merged from several become one value.
_TIDY_DISPATCHES = """cse, canonicalize{
    disable-patterns=mlir::iree_compiler::IREE::Flow::DispatchRegionDropUnusedResults}, cse"""
# The passes of the next phase up to the one that forms dispatches of scalars, which then finds no
# scalars left, and the one that fuses operations within a dispatch.
_PASSES = f"""
    {_TIDY},
    iree-dispatch-creation-fusion-preprocessing, {_TIDY},
    {_FUSE}, {_TIDY},
    iree-dispatch-creation-fold-reshapes-into-tensor-barriers,
    iree-dispatch-creation-bubble-up-expand-shapes, {_TIDY},
    {_FUSE}, {_TIDY},
    iree-dispatch-creation-sink-reshapes, {_TIDY},
    iree-dispatch-creation-split-reduction-ops,
    iree-dispatch-creation-transpose-generic-ops, {_TIDY},
    iree-dispatch-creation-form-scalar-dispatches,
    {_FUSE_PRODUCERS}, {_TIDY_DISPATCHES}
"""
_PIPELINE = f"""builtin.module(
    iree-dispatch-creation-tensor-pad-to-tensor-insert-slice,
    {", ".join(f"{name}({_PASSES})" for name in _FUNCTIONS)})
"""


def part_equal_results(module: ir.Operation) -> int:
    """Merges equal results of dispatches of scalars, in the phase `global-optimization`.

    Returns:
        The number of results that were replaced by their equals.
    """
    if not _has_numbers(module):
        return 0
    with module.context:
        manager = PassManager.parse(_PIPELINE)
        manager.enable_verifier(False)  # IREE's own passes are not verified, as elsewhere
        manager.run(module)
    return sum(map(_give_up_equals, operations_named(module, (_REGION,))))


def _has_numbers(module: ir.Operation) -> bool:
    """Tells whether a function computes with enough single numbers for two to be equal."""
    for function in module.regions[0].blocks[0].operations:
        if function.operation.name not in _FUNCTIONS:
            continue
        for block in function.operation.regions[0].blocks:
            count = 0
            for operation in block.operations:
                count += _is_of_numbers(operation.operation)
                if count == _FEWEST:
                    return True
    return False


def _is_of_numbers(operation: ir.Operation) -> bool:
    if not operation.name.startswith(("linalg.", "tensor.")):
        return False
    kinds = [result.type for result in operation.results]
    return any(
        isinstance(kind, ir.RankedTensorType)
        and kind.has_static_shape
        and math.prod(kind.shape) == 1
        for kind in kinds
    )


def _give_up_equals(region: ir.Operation) -> int:
    """Makes the users of a value that a dispatch returns twice read its first result."""
    *_, returned = region.regions[0].blocks[0].operations
    first: dict[object, ir.Value] = {}
    count = 0
    for value, result in zip(returned.operation.operands, region.results, strict=True):
        equal = first.setdefault(_computed(value), result)
        if equal != result:
            result.replace_all_uses_with(equal)
            count += 1
    return count


def _computed(value: ir.Value) -> object:
    """Returns a key that is the same for two equal values.

    Two results of one operation are equal if it yields one value for both, with the same indexing
    map and type.
    """
    if isinstance(value, ir.BlockArgument) or value.owner.name != _GENERIC:
        return value
    operation = value.owner.operation
    number = list(operation.results).index(value)
    *_, yielded = operation.regions[0].blocks[0].operations
    ways = list(operation.attributes["indexing_maps"])
    way = ways[len(ways) - len(operation.results) + number]
    return operation, yielded.operation.operands[number], way, value.type
