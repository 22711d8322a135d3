"""The computation of programs as numbered expressions: equal ones have one number.

Ops that only regroup elements, in order, are one kind of expression, so that programs with one
dimension of extent 1 more or less compare as equal. Elsewhere: whether a function's rows are
independent (`row_proof.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from axir.dialect.core.annotations import HostArray, Params
from axir.dialect.core.array import ConcreteArray, as_array
from axir.dialect.core.extended_dtypes import words_of
from axir.dialect.core.state import outside_traces
from axir.dialect.program.equation import Equation, Literal, Var
from axir.dialect.program.function import Function, functions_of, resolved
from axir.passes.partition.propagation import callee_of, dimensions_of

Shape = tuple[int, ...]

# The number of first elements that distinguish most arrays.
_BEGIN = 16
# Up to this number of elements, expressions of known arrays are evaluated.
_SMALL = 4096
# Ops that change no element and no order of elements if the number of elements stays.
_REGROUPING = ("reshape", "squeeze", "broadcast_in_dim")


@dataclass(frozen=True)
class Made:
    """The results of a function among the parameters of an op; it stands for the function.

    Attributes:
        results: Expressions of the results, in terms of the inputs.
    """

    results: tuple[int, ...]


@dataclass(frozen=True)
class Node:
    """An expression.

    Attributes:
        kind: The kind of node: an input, a constant, a regrouping, or an op with its parameters and
            the number of the result.
        operands: Numbers of the operands, which are smaller than its own.
        shape: The shape of the value.
    """

    kind: Hashable
    operands: tuple[int, ...]
    shape: Shape

    @property
    def op(self) -> str:
        """The name of the applied op."""
        return str(self.kind[0]) if type(self.kind) is tuple else ""


class Expressions:
    """Expressions by number.

    Attributes:
        nodes: All expressions.
    """

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._numbers: dict[Node, int] = {}
        self._arrays: dict[Hashable, list[tuple[ConcreteArray, int]]] = {}
        self._functions: dict[Function, Made] = {}
        self._values: dict[int, ConcreteArray] = {}
        self._params: dict[Hashable, Params] = {}

    def shape(self, number: int) -> Shape:
        """Returns the shape of an expression's value."""
        return self.nodes[number].shape

    def input(self, place: int, shape: Shape) -> int:
        """Returns the number of an input of a function."""
        return self._number(Node(("input", place), (), shape))

    def constant(self, array: ConcreteArray) -> int:
        """Returns the number of an array, which is an equal array's number if there is one."""
        shape, host = array.type.shape, array.host()
        inner = tuple(extent for extent in shape if extent != 1)
        begin = words_of(host.flat[:_BEGIN]).tobytes()
        known = self._arrays.setdefault((inner, array.type.dtype, begin), [])
        for other, number in known:
            if other is array or equal_bits(other.host().reshape(inner), host.reshape(inner)):
                return self.regrouped(number, shape)
        number = self._number(Node(("constant", len(self.nodes)), (), inner))
        known.append((array, number))
        self._values[number] = array
        return self.regrouped(number, shape)

    def regrouped(self, operand: int, shape: Shape) -> int:
        """Returns the number of an array's elements, in order, in another shape."""
        node = self.nodes[operand]
        if node.op == "regroup":
            (operand,) = node.operands
        if self.shape(operand) == shape:
            return operand
        return self._number(Node(("regroup",), (operand,), shape))

    def applied(
        self, equation: Equation, params: Params, operands: Sequence[int], shapes: Iterable[Shape]
    ) -> list[int]:
        """Returns the numbers of an op's results.

        Args:
            equation: The op.
            params: Its parameters, with `Made` in place of functions.
            operands: Numbers of its operands.
            shapes: Shapes of its results.
        """
        found, name = list(shapes), equation.primitive.name
        if (name in _REGROUPING and params.get("dimensions") is None) or name == "squeeze":
            (operand,), (shape,) = operands, found
            if math.prod(self.shape(operand)) == math.prod(shape) != 0:
                return [self.regrouped(operand, shape)]
        rule = _WITHOUT_ONES.get(name)
        if rule is not None:
            params, operands, inner = rule(self, params, operands, found[0])
            if params.get("permutation") == tuple(range(len(inner))):
                return [self.regrouped(operands[0], found[0])]
            return [self.regrouped(self._op(equation, params, operands, [inner])[0], found[0])]
        return self._op(equation, params, operands, found)

    def without_ones(self, operand: int) -> tuple[int, list[int]]:
        """Returns an array without its dimensions of extent 1, and which dimensions are left."""
        shape = self.shape(operand)
        kept = [place for place, extent in enumerate(shape) if extent != 1]
        return self.regrouped(operand, tuple(shape[place] for place in kept)), kept

    def _op(
        self, equation: Equation, params: Params, operands: Sequence[int], shapes: Sequence[Shape]
    ) -> list[int]:
        kind = (equation.primitive.name, equation.primitive, self._frozen(params))
        self._params.setdefault(kind, params)
        return [
            self._number(Node((*kind, place), tuple(operands), shape))
            for place, shape in enumerate(shapes)
        ]

    def interpreted(self, function: Function, arguments: Sequence[int]) -> list[int]:
        """Returns the numbers of a function's outputs.

        Args:
            function: The function.
            arguments: Numbers of its inputs, and then of its captures; without the latter, the
                captured values are used.
        """
        variables = (*function.inputs, *function.captures)
        rest = captured_behind(function, len(arguments))
        values = [*arguments, *map(self.constant, rest)]
        numbers = dict(zip(variables, values, strict=True))
        for equation in function.equations:
            operands = [self._number_of(v, numbers) for v in equation.operands]
            inner = inlined(equation)
            if inner is not None:
                results = self.interpreted(inner, operands)
            else:
                shapes = [v.type.shape for v in equation.results]
                results = self.applied(equation, equation.params, operands, shapes)
            numbers.update(zip(equation.results, results, strict=True))
        return [self._number_of(v, numbers) for v in function.outputs]

    def replaced(
        self, number: int, others: Mapping[int, int], keeps_inputs: bool = False
    ) -> int | None:
        """Returns an expression with some parts replaced, and evaluated as far as it is known then.

        Args:
            number: The expression.
            others: The replacements, by the number of an expression in it.
            keeps_inputs: Whether inputs may remain.

        Returns:
            None if inputs remain, unless they may.
        """
        pending, reached = [number], set[int]()
        while pending:
            each = pending.pop()
            if each not in reached:
                reached.add(each)
                pending += () if each in others else self.nodes[each].operands
        made = dict(others)
        for each in sorted(reached - made.keys()):  # operands first
            node = self.nodes[each]
            if node.op == "input":
                if not keeps_inputs:
                    return None
                made[each] = each
                continue
            operands = tuple(made[operand] for operand in node.operands)
            if node.op == "regroup":
                made[each] = self.regrouped(operands[0], node.shape)
                continue
            made[each] = self._number(Node(node.kind, operands, node.shape))
            value = self._value(made[each])
            if value is not None:
                made[each] = self.constant(value)
        return made[number]

    def is_known(self, number: int) -> bool:
        """Tells whether an expression is a small array."""
        return self._known(number) is not None

    def _value(self, number: int) -> ConcreteArray | None:
        """Evaluates an op on known arrays; returns None for others, and for large results."""
        node = self.nodes[number]
        if type(node.kind) is not tuple or len(node.kind) != 4 or math.prod(node.shape) > _SMALL:
            return None
        _, primitive, _, place = node.kind
        arrays = [self._known(operand) for operand in node.operands]
        params = self._params[node.kind[:3]]
        has_functions = any(True for _ in functions_of(params))
        if not arrays or any(x is None for x in arrays) or has_functions:
            return None
        with outside_traces():
            results = primitive.bind(*arrays, **params)
        found = results[place] if primitive.multiple_results else results
        return found if type(found) is ConcreteArray else None

    def _known(self, number: int) -> ConcreteArray | None:
        """Returns the array of an expression; None if it is not known, or large."""
        node = self.nodes[number]
        array = self._values.get(node.operands[0] if node.op == "regroup" else number)
        if array is None or array.size > _SMALL:
            return None
        return ConcreteArray(array.type.update(shape=node.shape), array.host().reshape(node.shape))

    def _number(self, node: Node) -> int:
        if node not in self._numbers:
            self._numbers[node] = len(self.nodes)
            self.nodes.append(node)
        return self._numbers[node]

    def _number_of(self, variable: Var, numbers: Mapping[Var, int]) -> int:
        if type(variable) is Literal:
            return self.constant(variable.array)
        return numbers[variable]

    def _function(self, function: Function) -> Made:
        if function not in self._functions:
            variables = (*function.inputs, *function.captures)
            inputs = [self.input(n, v.type.shape) for n, v in enumerate(variables)]
            self._functions[function] = Made(tuple(self.interpreted(function, inputs)))
        return self._functions[function]

    def _frozen(self, value: object) -> Hashable:
        """Returns a key that is the same for equal parameters."""
        if isinstance(value, dict):
            return tuple((key, self._frozen(value[key])) for key in sorted(value))
        if isinstance(value, (tuple, list)):
            return tuple(map(self._frozen, value))
        if isinstance(value, Function):
            return self._function(value)
        if isinstance(value, Made):
            return value
        if isinstance(value, np.ndarray):
            return value.shape, value.dtype, value.tobytes()
        try:
            hash(value)
        except TypeError:
            return _Only(value)
        return type(value), value


# Ops without dimensions of extent 1 ---------------------------------------------------------------

_Plain = tuple[Params, list[int], Shape]


def _plain_transpose(
    expressions: Expressions, params: Params, operands: Sequence[int], shape: Shape
) -> _Plain:
    operand, kept = expressions.without_ones(operands[0])
    order = [kept.index(place) for place in params["permutation"] if place in kept]
    inner = expressions.shape(operand)
    return {"permutation": tuple(order)}, [operand], tuple(inner[place] for place in order)


def _plain_broadcast(
    expressions: Expressions, params: Params, operands: Sequence[int], shape: Shape
) -> _Plain:
    operand, kept = expressions.without_ones(operands[0])
    places = [place for place, extent in enumerate(shape) if extent != 1]
    inner = tuple(shape[place] for place in places)
    dimensions = tuple(places.index(params["broadcast_dimensions"][place]) for place in kept)
    return {"shape": inner, "broadcast_dimensions": dimensions}, [operand], inner


def _plain_product(
    expressions: Expressions, params: Params, operands: Sequence[int], shape: Shape
) -> _Plain:
    sides = [expressions.without_ones(operand) for operand in operands]
    numbers = tuple(
        tuple(
            tuple(kept.index(place) for place in places if place in kept)
            for (_, kept), places in zip(sides, pairs, strict=True)
        )
        for pairs in params["dimension_numbers"]
    )
    inner = tuple(extent for extent in shape if extent != 1)
    return {**params, "dimension_numbers": numbers}, [number for number, _ in sides], inner


_WITHOUT_ONES: dict[str, Callable[[Expressions, Params, Sequence[int], Shape], _Plain]] = {
    "transpose": _plain_transpose,
    "broadcast_in_dim": _plain_broadcast,
    "dot_general": _plain_product,
}


class _Only:
    """A key that equals only itself."""

    def __init__(self, value: object):
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Only) and other._value is self._value

    def __hash__(self) -> int:
        return id(self._value)


def inlined(equation: Equation) -> Function | None:
    """Returns the function that an op is equivalent to, or None."""
    callee = callee_of(equation)
    if callee is not None:
        return resolved(callee)
    if equation.primitive.partition is not None:
        return None
    found = dimensions_of(equation)
    return found if isinstance(found, Function) else None


def captured_behind(function: Function, count: int) -> list[ConcreteArray]:
    """Returns the arrays that a function captured, unless so many arguments include them."""
    if count > len(function.inputs):
        return []
    return [as_array(x) for x in function.captured]


def equal_bits(one: HostArray, other: HostArray) -> bool:
    """Tells whether arrays of one shape and dtype hold the same bits."""
    if not one.size:
        return True
    # Views that repeat elements would take more memory to compare than they have.
    strides = zip(one.strides, other.strides, strict=True)
    place = (*(slice(None) if any(pair) else 0 for pair in strides), ...)
    one, other = words_of(one[place]), words_of(other[place])
    if one.dtype.kind in "biu":
        return bool(np.array_equal(one, other))
    bits = [np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in (one, other)]
    return bool(np.array_equal(bits[0], bits[1]))
