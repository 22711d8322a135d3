"""The jaxpr view of a function: its grammar, and the attributes that interpreters expect.

A `Jaxpr` shows a `Function`, which is MLIR, or makes one from given equations.
"""

from __future__ import annotations

import itertools
import string
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from iree.compiler import ir

from axir.dialect.core.annotations import UserFunction, UserObject
from axir.dialect.core.array import Array, ConcreteArray, as_array
from axir.dialect.core.context import describe_location, scope_of
from axir.dialect.core.dtypes import is_key
from axir.dialect.core.single_flight import deep_recursion
from axir.dialect.core.types import ShapedArray

from .effects import primitives_that_act
from .equation import Equation, Literal, Var
from .function import Function, functions_of, unit_of
from .jaxpr_making import function_of_equations, function_with
from .module_writer import write_module
from .parameters import is_printed
from .rules import Value

if TYPE_CHECKING:
    from axir.dialect.program.operation import Operation

_WIDTH = 88
_LETTERS = string.ascii_lowercase


class Detail(NamedTuple):
    """The details in the text of a jaxpr, as `Jaxpr.pretty_print` takes them."""

    source_info: bool = False
    print_shapes: bool = True
    name_stack: bool = False
    use_color: bool = False

    def word(self, text: str) -> str:
        """Returns a word of the grammar."""
        return f"\33[34;1m{text}\33[0m" if self.use_color else text

    def type_of(self, variable: Var) -> str:
        """Returns the type of a variable, with the separator between name and type."""
        if not self.print_shapes:
            return ""
        text = f":{_short(variable.type)}"
        return f"\33[35m{text}\33[0m" if self.use_color else text

    def note(self, equation: Equation) -> str:
        """Returns the comment behind an equation."""
        notes = []
        if self.name_stack:
            notes.append(f"[{scope_of(equation.location)}]")
        if self.source_info:
            notes.append(describe_location(equation.location) or "")
        return f"  # {' '.join(notes)}" if notes else ""


class DebugInfo(NamedTuple):
    """Facts about a function that errors and texts may show.

    Attributes:
        traced_for: The purpose of the trace.
        func_src_info: Its name.
        arg_names: Names of its arguments, if they are known.
        result_paths: Paths of its results in the tree that it returns, if they are known.
    """

    traced_for: str
    func_src_info: str
    arg_names: tuple[str, ...] | None = None
    result_paths: tuple[str, ...] | None = None


class Jaxpr:
    """A function as `{ lambda constants ; inputs. let equations in (outputs,) }`.

    Jaxprs are views of traced functions. A jaxpr may also be made from equations, or from another
    jaxpr with other equations (`replace`). It becomes a function, and is checked, at its first use.

    Args:
        constvars: Variables for constants.
        invars: The inputs.
        outvars: The outputs; some of them may be literals.
        eqns: Equations in order, of this or other jaxprs, or made (`core.new_jaxpr_eqn`).
        effects: Has no effect: the equations determine the effects.
        debug_info: Facts about it that errors and texts may show.

    Raises:
        VerificationError: at its first use, if the equations do not fit together.

    >>> import axir
    >>> from axir import core, lax
    >>> x, y = core.Var(core.ShapedArray((), "float32")), core.Var(core.ShapedArray((), "float32"))
    >>> Jaxpr([], [x], [y], [core.new_jaxpr_eqn([x], [y], lax.sin_p, {}, set())])
    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    """

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Var],
        eqns: Sequence[Equation],
        effects: object = None,
        debug_info: DebugInfo | None = None,
    ):
        self.constvars = list(constvars)
        self.invars = list(invars)
        self.outvars = list(outvars)
        self.eqns = list(eqns)
        self.debug_info = debug_info or DebugInfo("jaxpr", "jaxpr")
        self._function: Function | None = None
        # The number of last inputs that are the function's captures in a call.
        self._captured_count = 0

    @classmethod
    def of(cls, function: Function, is_called: bool = False) -> Jaxpr:
        """Returns the view of a function.

        Args:
            function: The function to show.
            is_called: Whether an op calls it. The captures are operands of the call, so they are
                inputs.
        """
        captures = function.captures
        constvars, further = ((), captures) if is_called else (captures, ())
        jaxpr = cls(
            constvars, (*function.inputs, *further), function.outputs, function.equations,
            debug_info=DebugInfo("jit", function.name),
        )  # fmt: skip
        jaxpr._function = function
        jaxpr._captured_count = len(further)
        return jaxpr

    @property
    def function(self) -> Function:
        """The program."""
        if self._function is None:
            count = len(self.invars) - self._captured_count
            self._function = function_of_equations(
                self.debug_info.func_src_info,
                self.invars[:count],
                (*self.invars[count:], *self.constvars),
                self.outvars,
                self.eqns,
            )
        return self._function

    def replace(self, **parts: UserObject) -> Jaxpr:
        """Returns the jaxpr with other parts, which are arguments of `Jaxpr`.

        >>> import axir
        >>> from axir import lax
        >>> jaxpr = axir.make_jaxpr(lambda x: lax.cos(lax.sin(x)))(1.0).jaxpr
        >>> jaxpr.replace(outvars=jaxpr.eqns[0].outvars, eqns=jaxpr.eqns[:1])
        { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
        """
        names = ("constvars", "invars", "outvars", "eqns", "debug_info")
        given = {name: parts.get(name, getattr(self, name)) for name in names}
        made = Jaxpr(**given)
        made._captured_count = self._captured_count
        return made

    @property
    def in_avals(self) -> list[ShapedArray]:
        """Types of the inputs."""
        return [v.type for v in self.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        """Types of the outputs."""
        return [v.type for v in self.outvars]

    @property
    def effects(self) -> frozenset[Operation]:
        """The primitives that act in it; empty if it only computes."""
        return frozenset().union(*map(primitives_that_act, self.eqns))

    def pretty_print(
        self,
        *,
        source_info: bool = False,
        print_shapes: bool = True,
        name_stack: bool = False,
        use_color: bool = False,
    ) -> str:
        """Returns the text, with the requested details.

        Args:
            source_info: Whether the user's line stands behind each equation.
            print_shapes: Whether the types of variables are shown.
            name_stack: Whether the scopes of the user stand behind each equation.
            use_color: Whether words and types have colors, by escape sequences of terminals.

        >>> import axir, axir.numpy as jnp
        >>> axir.make_jaxpr(jnp.sin)(1.0).pretty_print(print_shapes=False)
        '{ lambda ; a. let b = sin a in (b,) }'
        """
        return print_function(
            self.function, Detail(source_info, print_shapes, name_stack, use_color)
        )

    def __str__(self) -> str:
        return print_function(self.function)

    __repr__ = __str__


class ClosedJaxpr:
    """A jaxpr together with the values of its constants, as `make_jaxpr` returns it.

    Args:
        jaxpr: The jaxpr.
        consts: Values of `jaxpr.constvars`.
    """

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[object]):
        self.jaxpr = jaxpr
        self.consts = [x if isinstance(x, Array) else as_array(x) for x in consts]

    @classmethod
    def of(cls, function: Function) -> ClosedJaxpr:
        """Returns the view of a function and its captured values."""
        return cls(Jaxpr.of(function), function.captured)

    @property
    def function(self) -> Function:
        """The program, which knows the constants."""
        function = self.jaxpr.function
        if function.captures and not self.jaxpr.constvars:
            return unit_of(function)
        return function_with(function, self.consts)

    def replace(
        self, *, jaxpr: Jaxpr | None = None, consts: Sequence[object] | None = None
    ) -> ClosedJaxpr:
        """Returns it with another jaxpr, or other constants."""
        return ClosedJaxpr(
            self.jaxpr if jaxpr is None else jaxpr, self.consts if consts is None else consts
        )

    def map_jaxpr(self, f: UserFunction) -> ClosedJaxpr:
        """Returns it with its jaxpr replaced by a function's result for that jaxpr.

        >>> import axir
        >>> closed = axir.make_jaxpr(lambda x: x + 1.0)(1.0)
        >>> closed.map_jaxpr(lambda jaxpr: jaxpr.replace(outvars=jaxpr.invars, eqns=[]))
        { lambda ; a:f32[]. let in (a,) }
        """
        return ClosedJaxpr(f(self.jaxpr), self.consts)

    @property
    def invars(self) -> list[Var]:
        """The inputs."""
        return self.jaxpr.invars

    @property
    def outvars(self) -> list[Var]:
        """The outputs."""
        return self.jaxpr.outvars

    @property
    def literals(self) -> list[Value]:
        """The constants, under their old name."""
        return self.consts

    @property
    def in_avals(self) -> list[ShapedArray]:
        """Types of the inputs."""
        return self.jaxpr.in_avals

    @property
    def out_avals(self) -> list[ShapedArray]:
        """Types of the outputs."""
        return self.jaxpr.out_avals

    @property
    def eqns(self) -> list[Equation]:
        """The equations, in order."""
        return self.jaxpr.eqns

    @property
    def effects(self) -> frozenset[Operation]:
        """The primitives that act in it; empty if it only computes."""
        return self.jaxpr.effects

    def module(self) -> ir.Module:
        """Returns the program as an MLIR module of the jaxpr dialect, with `main`."""
        return write_module({"main": self.function})

    def pretty_print(self, **detail: bool) -> str:
        """Returns the text, as `Jaxpr.pretty_print` does."""
        return self.jaxpr.pretty_print(**detail)

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

    def __init__(self, fresh: Iterator[str], detail: Detail) -> None:
        self.detail = detail
        self.names: dict[Var, str] = {}
        # Inner functions share it, so that a name has one meaning in the whole text.
        self.fresh = fresh

    def bind(self, variable: Var) -> str:
        name = self.names[variable] = next(self.fresh)
        return f"{name}{self.detail.type_of(variable)}"

    def use(self, variable: Var) -> str:
        if type(variable) is Literal:
            return _literal(variable.array)
        return self.names[variable]

    def equation(self, equation: Equation, used: set[Var]) -> str:
        operands = " ".join(self.use(v) for v in equation.operands)
        results = " ".join(
            self.bind(v) if v in used else f"_{self.detail.type_of(v)}" for v in equation.results
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

    def param(self, value: object) -> str:
        """Renders the value of a parameter."""
        if type(value) is Function:
            return _print(value, self.fresh, self.detail)
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


def print_function(function: Function, detail: Detail = Detail()) -> str:  # noqa: B008
    """Prints a function in the grammar of jaxprs, on one line if it is short."""
    with deep_recursion:
        return _print(function, _names(), detail)


def _print(function: Function, fresh: Iterator[str], detail: Detail) -> str:
    printer = _Printer(fresh, detail)
    constants = " ".join(printer.bind(v) for v in function.captures)
    inputs = " ".join(printer.bind(v) for v in function.inputs)
    words = [detail.word(word) for word in ("lambda", "let", "in")]
    head = f"{{ {words[0]} {constants + ' ' if constants else ''}; {inputs}. {words[1]}"
    used = {v for e in function.equations for v in e.operands} | set(function.outputs)
    equations = [printer.equation(e, used) + detail.note(e) for e in function.equations]
    has_notes = any(map(detail.note, function.equations))
    outputs = ", ".join(printer.use(v) for v in function.outputs)
    comma = "," if len(function.outputs) == 1 else ""
    tail = f"{words[2]} ({outputs}{comma}) }}"
    one_line = f"{head} {'; '.join(equations)}{' ' if equations else ''}{tail}"
    if len(one_line) <= _WIDTH and "\n" not in one_line and not has_notes:
        return one_line
    body = "".join("\n    " + e.replace("\n", "\n    ") for e in equations)
    return f"{head}{body}\n  {tail}"
