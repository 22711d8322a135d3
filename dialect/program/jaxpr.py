"""The jaxpr view of a function: its grammar, and the attributes that interpreters expect.

A `Jaxpr` holds no program of its own: it shows a `Function`, which is MLIR.
"""

from __future__ import annotations

import itertools
import string
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from iree.compiler import ir

from axir.dialect.core.annotations import Param
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.dtypes import is_key
from axir.dialect.core.types import ShapedArray

from .effects import primitives_that_act
from .equation import Equation, Literal, Var
from .function import Function, functions_of
from .module_writer import write_module
from .parameters import is_printed

if TYPE_CHECKING:
    from .primitive import Primitive
from axir.dialect.core.annotations import UserObject

from .rules import Value

_WIDTH = 88
_LETTERS = string.ascii_lowercase


class Jaxpr:
    """A function as `{ lambda constants ; inputs. let equations in (outputs,) }`.

    Attributes:
        function: What is shown.
        is_called: Whether an op calls it. The captures are operands of the call, hence inputs.
    """

    def __init__(self, function: Function, is_called: bool = False):
        self.function = function
        self.is_called = is_called

    @property
    def invars(self) -> list[Var]:
        """The inputs."""
        captures = self.function.captures if self.is_called else ()
        return [*self.function.inputs, *captures]

    @property
    def constvars(self) -> list[Var]:
        """The captures: inputs for values of the surroundings."""
        return [] if self.is_called else list(self.function.captures)

    @property
    def in_avals(self) -> list[ShapedArray]:
        """Types of the inputs."""
        return [v.type for v in self.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        """Types of the outputs."""
        return self.function.output_types

    @property
    def effects(self) -> frozenset[Primitive]:
        """The primitives that act in it; empty if it only computes."""
        return frozenset().union(*map(primitives_that_act, self.function.equations))

    @property
    def outvars(self) -> list[Var]:
        """The outputs, some of which may be literals."""
        return list(self.function.outputs)

    @property
    def eqns(self) -> list[Equation]:
        """The equations, in order."""
        return list(self.function.equations)

    def __str__(self) -> str:
        return print_function(self.function)

    __repr__ = __str__


class ClosedJaxpr:
    """A jaxpr together with the values of its constants, as `make_jaxpr` returns it.

    Attributes:
        jaxpr: The view of the function.
        consts: Values of `jaxpr.constvars`.
    """

    def __init__(self, function: Function):
        self.function = function
        self.jaxpr = Jaxpr(function)
        self.consts = list(function.captured)

    @property
    def literals(self) -> list[Value]:
        """The constants, under their old name."""
        return self.consts

    @property
    def in_avals(self) -> list[ShapedArray]:
        """Types of the inputs."""
        return self.function.input_types

    @property
    def out_avals(self) -> list[ShapedArray]:
        """Types of the outputs."""
        return self.function.output_types

    @property
    def eqns(self) -> list[Equation]:
        """The equations, in order."""
        return self.jaxpr.eqns

    @property
    def effects(self) -> frozenset[Primitive]:
        """The primitives that act in it; empty if it only computes."""
        return self.jaxpr.effects

    def module(self) -> ir.Module:
        """Returns the program as an MLIR module of the jaxpr dialect, with `main`."""
        return write_module({"main": self.function})

    def __str__(self) -> str:
        return str(self.jaxpr)

    __repr__ = __str__


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Value], *args: UserObject) -> list[Value]:
    """Evaluates a jaxpr op by op on values of its constants and inputs.

    >>> import axir, axir.numpy as jnp
    >>> closed = axir.make_jaxpr(lambda x: jnp.sin(x) + 1)(0.0)
    >>> eval_jaxpr(closed.jaxpr, closed.consts, 0.0)
    [Array(1., dtype=float32, weak_type=True)]
    """
    return jaxpr.function.interpret([*args, *consts])


def _names() -> Iterator[str]:
    """Yields a to z, then ba, bb, ...: numbers with letters as digits."""
    for number in itertools.count():
        name, rest = _LETTERS[number % 26], number // 26
        while rest:
            name, rest = _LETTERS[rest % 26] + name, rest // 26
        yield name


class _Printer:
    """Names the variables of one function in the order of their binding."""

    def __init__(self, fresh: Iterator[str]) -> None:
        self.names: dict[Var, str] = {}
        # Functions within share it, so that a name means one thing in the whole text.
        self.fresh = fresh

    def bind(self, variable: Var) -> str:
        name = self.names[variable] = next(self.fresh)
        return f"{name}:{_short(variable.type)}"

    def use(self, variable: Var) -> str:
        if type(variable) is Literal:
            return _literal(variable.array)
        return self.names[variable]

    def equation(self, equation: Equation, used: set[Var]) -> str:
        operands = " ".join(self.use(v) for v in equation.operands)
        results = " ".join(
            self.bind(v) if v in used else f"_:{_short(v.type)}" for v in equation.results
        )
        declared = equation.primitive.parameters or {}
        params = [
            f"{name}={self.param(value)}"
            for name, value in sorted(equation.params.items())
            if is_printed(declared.get(name))
        ]
        name = equation.primitive.name
        head = f"{results} = {name}" if results else name
        bracket = f"[{' '.join(params)}]" if params else ""
        text = f"{head}{bracket} {operands}".rstrip()
        holds_function = any(True for _ in functions_of(equation.params))
        if not holds_function or (len(text) <= _WIDTH and "\n" not in text):
            return text
        lines = "".join("\n  " + param.replace("\n", "\n  ") for param in params)
        return f"{head}[{lines}\n] {operands}".rstrip()

    def param(self, value: Param) -> str:
        """Renders the value of a parameter."""
        if type(value) is Function:
            return _print(value, self.fresh)
        if isinstance(value, np.dtype):
            return str(value)
        if isinstance(value, np.ndarray):
            return f"<{value.dtype}{list(value.shape)}>"
        if isinstance(value, tuple) and any(type(item) is Function for item in value):
            items = [self.param(item) for item in value]
            return "(" + "".join("\n  " + item.replace("\n", "\n  ") for item in items) + "\n)"
        return str(value)


def _short(value_type: ShapedArray) -> str:
    return value_type.str_short(short_dtypes=True)


def _literal(array: ConcreteArray) -> str:
    if array.ndim == 0 and not is_key(array.dtype):
        value = array.host()[()]
        number = value.item() if array.dtype.kind != "V" else float(value)
        return f"{number}:{_short(array.type)}"
    return f"<constant {_short(array.type)}>"


def print_function(function: Function) -> str:
    """Prints a function in the grammar of jaxprs, on one line if it is short."""
    return _print(function, _names())


def _print(function: Function, fresh: Iterator[str]) -> str:
    printer = _Printer(fresh)
    constants = " ".join(printer.bind(v) for v in function.captures)
    inputs = " ".join(printer.bind(v) for v in function.inputs)
    head = f"{{ lambda {constants + ' ' if constants else ''}; {inputs}. let"
    used = {v for e in function.equations for v in e.operands} | set(function.outputs)
    equations = [printer.equation(e, used) for e in function.equations]
    outputs = ", ".join(printer.use(v) for v in function.outputs)
    comma = "," if len(function.outputs) == 1 else ""
    tail = f"in ({outputs}{comma}) }}"
    one_line = f"{head} {'; '.join(equations)}{' ' if equations else ''}{tail}"
    if len(one_line) <= _WIDTH and "\n" not in one_line:
        return one_line
    body = "".join("\n    " + e.replace("\n", "\n    ") for e in equations)
    return f"{head}{body}\n  {tail}"
