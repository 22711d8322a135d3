"""Updates of parts of arrays in place: a kernel for each."""

from __future__ import annotations

from iree.compiler import ir

from axir.dialect.builders.kernels import Memory, dispatch

from .code import Code
from .elementwise import is_uniform
from .emitter import Emitter, uniform
from .region_kernel import RULES, value_of
from .updates import places_of


def update_in_place(created: ir.Operation, code: Code) -> ir.Value:
    """Puts a kernel in front of a `dynamic_update_slice`; the kernel writes only the part.

    The runtime copies the array first if the old array has later readers.

    Args:
        created: The operation; neither its array nor the written part may be empty.
        code: The symbols of the module.

    Returns:
        The array.
    """
    x, update, *starts = created.operands
    given = [x, update, *(start for start in starts if not is_uniform(start))]

    def kernel(target: Memory, *memories: Memory) -> None:
        emitter = Emitter(RULES, code)
        part, *numbers = map(value_of, memories)
        known = iter(numbers)
        values = [uniform(y.owner.operation) if is_uniform(y) else next(known) for y in starts]
        emitter.fill(target, part, places_of(created, values))

    [made] = dispatch(kernel, given, [x.type], in_place={0: 0}, name="part")
    return made
