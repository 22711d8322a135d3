"""The communication of a partitioned program: its collectives, with the user's lines."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from axir.dialect.core.context import describe_location
from axir.dialect.program.equation import Equation
from axir.dialect.program.function import Function, functions_of
from axir.dialect.program.meshes.layouts import MeshAxes, device_count
from axir.dialect.program.named_axes import names_in

# Bytes that a device receives for each byte of its operand, by the number of devices. An all-reduce
# is a reduce-scatter and a gather of its results.
_RECEIVED = {
    "psum": lambda n: 2 * (n - 1) / n,
    "joined_psum": lambda n: 2 * (n - 1) / n,
    "pmax": lambda n: 2 * (n - 1) / n,
    "pmin": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: n - 1,
    "reduce_scatter": lambda n: (n - 1) / n,
    "all_to_all": lambda n: (n - 1) / n,
    "ppermute": lambda n: 1,
}


@dataclass(frozen=True)
class Communication:
    """A collective of a program.

    Attributes:
        op: Its name.
        axes: The axes of the mesh along which it works.
        operand: Type of the part that each device gives, as text.
        received: Bytes that each device receives.
        times: The number of executions, as far as lengths of loops are known.
        line: The user's line, if known.
    """

    op: str
    axes: tuple[Hashable, ...]
    operand: str
    received: int
    times: int
    line: str | None


def communications(function: Function, axes: MeshAxes, times: int = 1) -> list[Communication]:
    """Returns the collectives of a program of parts, and of the functions it calls, in order.

    Args:
        function: The program of one device.
        axes: The axes of the mesh.
        times: The number of executions of the program.
    """
    return list(_found(function, axes, times))


def _found(function: Function, axes: MeshAxes, times: int) -> Iterator[Communication]:
    for equation in function.equations:
        if equation.primitive.name in _RECEIVED:
            yield _communication(equation, axes, times)
        passes = equation.params.get("length", 1)
        for inner in functions_of(equation.params):
            yield from _found(inner, axes, times * passes)


def _communication(equation: Equation, axes: MeshAxes, times: int) -> Communication:
    names = tuple(name for name, _ in axes if name in names_in(equation))
    operands = [v.type for v in equation.operands]
    held = sum(t.size * t.dtype.itemsize for t in operands)
    return Communication(
        equation.primitive.name,
        names,
        ", ".join(map(str, operands)),
        round(held * _RECEIVED[equation.primitive.name](device_count(names, axes))),
        times,
        describe_location(equation.location),
    )
