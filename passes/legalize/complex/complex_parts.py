"""Operations on complex tensors, written on real and imaginary parts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TypeAlias

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.scalars import Scalar, operation
from axir.dialect.core.attributes import dense_to_numpy
from axir.passes.legalize.elementwise_loops import elementwise
from axir.passes.legalize.regions import operations_of

from .pairs_in_memory import REINTERPRETATION, halves, joined

Pair: TypeAlias = tuple[ir.Value, ir.Value]
Rule: TypeAlias = Callable[[ir.Operation, "Parts"], Sequence[ir.Value | Pair]]

CONTROL_FLOW = ("stablehlo.while", "stablehlo.if", "stablehlo.case")
_LOOP = "linalg.generic"
_YIELD = "linalg.yield"
_PLACE = "tensor.empty"
# The operations that these may apply to two numbers; none means the second number.
_COMBINING: dict[str, list[list[str]]] = {
    "stablehlo.reduce": [["stablehlo.add"]],
    "stablehlo.scatter": [[], ["stablehlo.add"]],
}
_PART_WISE = frozenset(
    f"stablehlo.{name}"
    for name in (
        "add subtract negate select reshape transpose broadcast_in_dim slice dynamic_slice "
        "dynamic_update_slice concatenate reverse pad gather optimization_barrier"
    ).split()
) | {"flow.tensor.transfer"}


class Parts:
    """The parts of complex values in a region.

    Args:
        root: The operation before which the parts of outside values are made.
    """

    def __init__(self, root: ir.Operation):
        self._root = root
        self._pairs: dict[ir.Value, Pair] = {}
        # Erased only at the end: a later operation could get the address of an erased one.
        self._to_erase: list[ir.Operation] = []
        self._old_arguments: list[tuple[ir.Block, int]] = []

    def of(self, x: ir.Value) -> Pair:
        """Returns the parts of a value."""
        if x not in self._pairs:
            with ir.InsertionPoint(self._root):
                self._pairs[x] = (hlo.real(x), hlo.imag(x))
        return self._pairs[x]

    def expand(self, xs: Sequence[ir.Value]) -> list[ir.Value]:
        """Returns the values, with two parts for each complex one."""
        return [part for x in xs for part in (self.of(x) if hlo.is_complex(x) else (x,))]

    def replace(self, created: ir.Operation, made: Sequence[ir.Value | Pair]) -> None:
        """Replaces the results of an operation by other values, or by parts."""
        for result, value in zip(created.results, made, strict=True):
            if isinstance(value, tuple):
                self._pairs[result] = value
            else:
                result.replace_all_uses_with(value)
        self._to_erase.append(created)

    def split_arguments(self, block: ir.Block) -> None:
        """Gives a block two arguments for each complex one."""
        old = list(block.arguments)
        for argument in old:
            new = [block.add_argument(x, argument.location) for x in _part_types([argument])]
            if len(new) == 2:
                self._pairs[argument] = (new[0], new[1])
            else:
                argument.replace_all_uses_with(new[0])
        self._old_arguments.append((block, len(old)))

    def drop(self, created: ir.Operation) -> None:
        """Erases at the end an operation without users."""
        self._to_erase.append(created)

    def finish(self) -> None:
        """Erases the operations and arguments that were replaced."""
        for created in reversed(self._to_erase):
            created.erase()
        for block, count in self._old_arguments:
            for number in reversed(range(count)):
                block.erase_argument(number)


def find_unsplittable(root: ir.Operation) -> str | None:
    """Returns why the body of an operation cannot be written on parts; None if it can."""
    reason: str | None = None

    def visit(created: ir.Operation) -> ir.WalkResult:
        nonlocal reason
        if has_complex(created) and not _has_rule(created):
            reason = f"there is no rule for {created.name}"
            return ir.WalkResult.INTERRUPT
        enters = created.name in CONTROL_FLOW
        return ir.WalkResult.ADVANCE if enters else ir.WalkResult.SKIP

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return reason


def has_complex(created: ir.Operation) -> bool:
    """Tells whether an operation has complex operands or results."""
    values = (*created.operands, *created.results)
    return any(isinstance(x.type, ir.RankedTensorType) and hlo.is_complex(x) for x in values)


def _has_rule(created: ir.Operation) -> bool:
    if created.name in _COMBINING:
        *combined, _ = (x.name for x in _body_of(created))
        return len(created.results) == 1 and combined in _COMBINING[created.name]
    if created.name == _LOOP:
        return len(created.results) == 1 and all(
            x.name not in _OTHER_COMPLEX and not len(x.regions) for x in _body_of(created)
        )
    return created.name in _RULES or created.name in (
        *_PART_WISE,
        *CONTROL_FLOW,
        "stablehlo.return",
        _PLACE,
    )


# The formulas of functions are written on parts; these would have to be written out.
_OTHER_COMPLEX = frozenset(
    f"complex.{name}" for name in "add sub mul div abs exp neg conj constant bitcast".split()
)


def _body_of(created: ir.Operation) -> list[ir.Operation]:
    return operations_of(created)[0]


# Control flow -----------------------------------------------------------------------------------


def split(created: ir.Operation, parts: Parts) -> None:
    """Writes a loop or a branch, with all its operations, on parts."""
    blocks = [region.blocks[0] for region in created.regions]
    for block, operations in zip(blocks, operations_of(created), strict=True):
        if len(block.arguments):
            parts.split_arguments(block)
        for inner in operations:
            split_in_block(inner, parts)
    made = ir.Operation.create(
        created.name,
        results=_part_types(created.results),
        operands=parts.expand(created.operands),
        attributes={name: created.attributes[name] for name in created.attributes},
        regions=len(blocks),
        loc=created.location,
        ip=ir.InsertionPoint(created),
    )
    for block, region in zip(blocks, made.regions, strict=True):
        block.append_to(region)
    parts.replace(created, _grouped(created.results, made.results))


def split_in_block(created: ir.Operation, parts: Parts) -> None:
    """Writes an operation on parts, if it has complex operands or results."""
    if created.name in CONTROL_FLOW:
        split(created, parts)
        return
    if not has_complex(created):
        return
    if created.name == _PLACE:
        parts.drop(created)
        return
    with ir.InsertionPoint(created), created.location:
        if created.name == "stablehlo.return":
            ir.Operation.create(created.name, operands=parts.expand(created.operands))
            created.erase()
            return
        parts.replace(created, _RULES.get(created.name, _by_parts)(created, parts))


def _part_types(xs: Sequence[ir.Value]) -> list[ir.Type]:
    found: list[ir.Type] = []
    for x in xs:
        kind = x.type
        if hlo.is_complex(x):
            part = hlo.tensor_type(kind.shape, hlo.element_type_of(x).element_type)
            found += [part, part]
        else:
            found.append(kind)
    return found


def _grouped(xs: Sequence[ir.Value], made: Sequence[ir.Value]) -> list[ir.Value | Pair]:
    flat = iter(made)
    return [(next(flat), next(flat)) if hlo.is_complex(x) else next(flat) for x in xs]


# Rules ------------------------------------------------------------------------------------------


def _by_parts(created: ir.Operation, parts: Parts) -> list[ir.Value | Pair]:
    """Applies the operation to the real and to the imaginary parts.

    A barrier may have complex results beside others, which stay single values.
    """
    attributes = {name: created.attributes[name] for name in created.attributes}
    halves = [
        ir.Operation.create(
            created.name,
            results=[_part_types([x])[0] for x in created.results],
            operands=[parts.of(x)[half] if hlo.is_complex(x) else x for x in created.operands],
            attributes=attributes,
        )
        for half in (0, 1)
    ]
    made = zip(*(half.results for half in halves), strict=True)
    return [
        pair if hlo.is_complex(x) else pair[0]
        for x, pair in zip(created.results, made, strict=True)
    ]


def _constant(created: ir.Operation, parts: Parts) -> list[Pair]:
    host = dense_to_numpy(created.attributes["value"])
    return [(hlo.constant(host.real), hlo.constant(host.imag))]


def _multiply(created: ir.Operation, parts: Parts) -> list[Pair]:
    (a, b), (c, d) = map(parts.of, created.operands)
    real = hlo.subtract(hlo.multiply(a, c), hlo.multiply(b, d))
    return [(real, hlo.add(hlo.multiply(a, d), hlo.multiply(b, c)))]


def _compare(created: ir.Operation, parts: Parts) -> list[ir.Value]:
    (a, b), (c, d) = map(parts.of, created.operands)
    direction = created.attributes["comparison_direction"]
    is_equal = "EQ" in str(direction)
    name = "EQ" if is_equal else "NE"
    join = hlo.and_ if is_equal else hlo.or_
    return [join(hlo.compare(a, c, name), hlo.compare(b, d, name))]


def _convert(created: ir.Operation, parts: Parts) -> list[ir.Value | Pair]:
    [x], [result] = created.operands, created.results
    element = hlo.element_type_of(result)
    if not isinstance(element, ir.ComplexType):
        return [hlo.convert(parts.of(x)[0], element)]
    part = element.element_type
    if hlo.is_complex(x):
        real, imag = parts.of(x)
        return [(hlo.convert(real, part), hlo.convert(imag, part))]
    real = hlo.convert(x, part)
    return [(real, hlo.full_like(real, 0))]


def _combine(created: ir.Operation, parts: Parts) -> list[Pair]:
    """Adds or replaces the real and the imaginary parts."""
    sums = len(_body_of(created)) > 1

    def body(first: ir.Value, second: ir.Value) -> ir.Value:
        return hlo.add(first, second) if sums else second

    [kind, _] = _part_types(created.results)
    scalar = hlo.tensor_type((), kind.element_type)
    attributes = {name: created.attributes[name] for name in created.attributes}
    halves = [
        hlo.build(
            created.name,
            created.name,
            [parts.of(x)[half] if hlo.is_complex(x) else x for x in created.operands],
            [kind],
            attributes,
            [((scalar, scalar), body)],
        ).result
        for half in (0, 1)
    ]
    return [(halves[0], halves[1])]


def _conjugate(created: ir.Operation, parts: Parts) -> list[Pair]:
    real, imag = parts.of(created.operands[0])
    return [(real, hlo.negate(imag))]


def _reinterpret(created: ir.Operation, parts: Parts) -> list[ir.Value | Pair]:
    [x] = created.operands
    return [joined(*parts.of(x)) if hlo.is_complex(x) else halves(x)]


def _loop(created: ir.Operation, parts: Parts) -> list[ir.Value | Pair]:
    """Writes a loop with a formula on scalars: once for each part of the result."""
    inputs = list(created.operands)[: -len(created.results)]
    [result] = created.results
    body = str(created.regions[0].blocks[0])
    types = _part_types([result])

    def part(number: int) -> ir.Value:
        name = f"part {number} of {body}"
        formula = functools.partial(_formula, created, number)
        element = types[number].element_type
        return elementwise(name, parts.expand(inputs), formula, [element])[0]

    return [(part(0), part(1)) if len(types) == 2 else part(0)]


def _formula(created: ir.Operation, number: int, *scalars: Scalar) -> Scalar:
    """Builds the body of a loop on parts; returns a part of its result, or the result."""
    values: dict[ir.Value, Scalar] = {}
    pairs: dict[ir.Value, tuple[Scalar, Scalar]] = {}
    flat = iter(scalars)
    for argument in list(created.regions[0].blocks[0].arguments)[: -len(created.results)]:
        if isinstance(argument.type, ir.ComplexType):
            pairs[argument] = (next(flat), next(flat))
        else:
            values[argument] = next(flat)
    for inner in _body_of(created):
        operands = list(inner.operands)
        if inner.name == _YIELD:
            [end] = operands
            return pairs[end][number] if end in pairs else values[end]
        [result] = inner.results
        if inner.name in ("complex.re", "complex.im"):
            values[result] = pairs[operands[0]][inner.name == "complex.im"]
        elif inner.name == "complex.create":
            real, imag = operands
            pairs[result] = (values[real], values[imag])
        else:
            attributes = {key: inner.attributes[key] for key in inner.attributes}
            numbers = [values[x] for x in operands]
            values[result] = operation(inner.name, numbers, result.type, attributes)
    raise AssertionError("a loop without a yield")


_RULES: dict[str, Rule] = {
    "stablehlo.real": lambda created, parts: [parts.of(created.operands[0])[0]],
    "stablehlo.imag": lambda created, parts: [parts.of(created.operands[0])[1]],
    "stablehlo.complex": lambda created, parts: [tuple(created.operands)],
    "stablehlo.constant": _constant,
    "stablehlo.multiply": _multiply,
    "stablehlo.compare": _compare,
    "stablehlo.convert": _convert,
    "chlo.conj": _conjugate,
    REINTERPRETATION: _reinterpret,
    **dict.fromkeys(_COMBINING, _combine),
    _LOOP: _loop,
}
