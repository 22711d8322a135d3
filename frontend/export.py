"""Saving functions as modules, and loading them without their Python source.

`export(f)(*args)` traces; the result prints as MLIR of the jaxpr dialect or of StableHLO, is saved
to a file, and is called. `load` reads such a file. Both give an `Exported`, which can be jitted,
differentiated and vectorized like any function. What does not live here: the notation of trees
(`frontend/_trees/text.py`), compiled programs (`frontend/_programs/compiled_modules.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from axir._arguments.arguments import check_callable
from axir._programs.compiled_modules import open_program
from axir._programs.files import write_module_file
from axir._programs.saved_arguments import conform
from axir._transforms.jit import JitFunction, jit
from axir._trees import text as tree_text
from axir._trees import tree
from axir.dialect.core.annotations import Options, UserFunction, UserObject
from axir.dialect.core.attributes import is_opaque
from axir.dialect.core.context import describe_location
from axir.dialect.core.errors import (
    SerializationError,
    TreeError,
    UnexpectedTracerError,
    VerificationError,
)
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops import OPS
from axir.dialect.ops.calls.jit_call import call
from axir.dialect.program.function import Function
from axir.dialect.program.module_writer import embed_captures, write_module
from axir.dialect.program.tracer import Tracer
from axir.dialect.text.module_reader import read_file, read_module
from axir.dialect.text.signature import Argument, Signature, annotate, signatures
from axir.dialect.text.summary import summarize
from axir.passes.transforms.lower_to_stablehlo import lower_functions
from axir.runtime.calls.compiled_function import compiled, device_of


def export(fun: UserFunction) -> Callable[..., Exported]:
    """Returns a function that exports `fun` for the types of given arguments.

    Args:
        fun: A jitted function, or a plain one. Static arguments are fixed to the values given.

    Returns:
        A function of arrays, or of anything with `shape` and `dtype` such as `ShapeDtypeStruct`,
        that returns an `Exported`.

    Raises:
        NonArrayArgumentError: if `fun` is not callable, or by the call, if an argument is no array.
        UnexpectedTracerError: by the call, if `fun` uses values of a trace that is going on.

    >>> import axir, axir.numpy as jnp
    >>> exported = export(lambda x: jnp.sin(x))(jnp.ones(3))
    >>> exported.in_avals, exported.argument_names
    ([ShapedArray(float32[3])], ['x'])
    >>> print(exported.stablehlo())
    module {
      func.func @main(%arg0: tensor<3xf32>) -> tensor<3xf32> {
        %0 = stablehlo.sine %arg0 : tensor<3xf32>
        return %0 : tensor<3xf32>
      }
    }
    <BLANKLINE>
    """
    check_callable(fun, "export")
    jitted = fun if isinstance(fun, JitFunction) else jit(fun)

    def exporter(*args: Options, **kwargs: Options) -> Exported:
        lowered = jitted.lower(*args, **kwargs)
        if any(type(x) is Tracer for x in lowered.function.captured):
            raise UnexpectedTracerError(
                f"export: {lowered.function.name!r} uses values of a function that is being "
                "traced.",
                "Export outside of jit, grad and vmap, or pass these values as arguments.",
            )
        names = list(_argument_names(jitted, args, kwargs))
        function = embed_captures(lowered.function)
        return Exported(function, lowered.in_tree, lowered.out_tree, names)

    return exporter


def _argument_names(
    jitted: JitFunction, args: tuple[UserObject, ...], kwargs: dict[str, Options]
) -> Iterator[str]:
    """Yields the name of each leaf: that of the parameter, and the path below it."""
    positional, rest = _parameter_names(jitted)
    static = {n % len(args) for n in jitted._static_argnums} if args else set()
    for index, value in enumerate(args):
        if index in static:
            continue
        beyond = index - len(positional)
        name = positional[index] if beyond < 0 else f"{rest}[{beyond}]"
        yield from (name + path for path in tree.paths(value))
    for name in sorted(kwargs):
        if name not in jitted._static_argnames:
            yield from (name + path for path in tree.paths(kwargs[name]))


def _parameter_names(fun: UserFunction) -> tuple[list[str], str]:
    """Returns the names of the positional parameters, and of the one that takes the rest."""
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (ValueError, TypeError):
        return [], "args"
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    rest = [p.name for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL]
    return [p.name for p in parameters if p.kind in positional], rest[0] if rest else "args"


def load(path: str | Path) -> UserObject:
    """Loads a module of the jaxpr dialect that was saved as `.mlir` or `.mlirbc`.

    Returns:
        An `Exported`, whose trees are those it was saved with. A module of StableHLO, or a
        compiled `.vmfb`, gives a compiled program instead: it can be called, but not
        transformed.

    Raises:
        OSError: if there is no such file.
        ParseError, UnknownOpError, VerificationError: if the file holds no valid module.
    """
    if Path(path).suffix == ".vmfb":
        return open_program(path)
    module = read_file(path)
    if summarize(module).dialect != "jaxpr":
        return open_program(path)
    return Exported.from_module(module, str(path))


class Exported:
    """A function saved, or ready to be.

    Attributes:
        function: The jaxpr function; captured arrays are constants in it.
        in_tree: Structure of `(args, kwargs)`.
        out_tree: Structure of the result.
        argument_names: Where each argument of the function comes from: `x`, `params['w']`.
    """

    def __init__(
        self,
        function: Function,
        in_tree: tree.TreeDef | None = None,
        out_tree: tree.TreeDef | None = None,
        argument_names: Sequence[str] | None = None,
        in_text: str | None = None,
        out_text: str | None = None,
    ):
        count, results = len(function.inputs), len(function.outputs)
        self.function = function
        # A tree without leaves counts as false.
        if in_tree is None:
            in_tree = tree.structure(((0,) * count, {}))
        if out_tree is None:
            out_tree = tree.structure(0 if results == 1 else (0,) * results)
        self.in_tree = in_tree
        self.out_tree = out_tree
        self.argument_names = list(argument_names or [f"arg{index}" for index in range(count)])
        self._in_text = in_text or tree_text.write(self.in_tree)
        self._out_text = out_text or tree_text.write(self.out_tree)

    @staticmethod
    def from_module(module: UserObject, where: str, symbol: str = "main") -> Exported:
        """Returns a function of a module, verified.

        Raises:
            UnknownOpError, VerificationError: if the module is not valid.
            ParseError: if its trees are not those of the function.
        """
        functions = read_module(module)
        found = signatures(module)
        if symbol not in found:
            raise VerificationError(
                f"{where} has no public function {symbol!r}.",
                f"It has {', '.join(found) or 'none at all'}.",
                where="",
            )
        signature = found[symbol]
        return Exported(
            functions[symbol],
            tree_text.structure(signature.in_tree, len(signature.arguments), where),
            tree_text.structure(signature.out_tree, len(signature.results), where),
            [a.name for a in signature.arguments],
            signature.in_tree,
            signature.out_tree,
        )

    @property
    def fun_name(self) -> str:
        """What the function was called."""
        return self.function.name

    @property
    def in_avals(self) -> list[ShapedArray]:
        """Types of the arguments, flat."""
        return self.function.input_types

    @property
    def out_avals(self) -> list[ShapedArray]:
        """Types of the results, flat."""
        return self.function.output_types

    @property
    def result_names(self) -> list[str]:
        """Where each result goes: `result`, `result['loss']`."""
        skeleton = self.out_tree.unflatten(range(self.out_tree.num_leaves))
        return [f"result{path}" for path in tree.paths(skeleton)]

    @property
    def signature(self) -> Signature:
        """Names and types of arguments and results, and the notation of their trees."""
        arguments = map(Argument, self.argument_names, self.in_avals)
        results = map(Argument, self.result_names, self.out_avals)
        return Signature(tuple(arguments), tuple(results), self._in_text, self._out_text, True)

    def module(self) -> UserObject:
        """Returns the program as an MLIR module of the jaxpr dialect, with `main`.

        Raises:
            SerializationError: if an op is a primitive of the user's own, has a parameter that is
                a Python object, or a custom rule that closes over values of the function.
        """
        _check_primitives(self.function, set())
        try:
            module = write_module({"main": self.function})
        except UnexpectedTracerError as error:
            raise SerializationError(
                f"A custom rule in {self.fun_name!r} closes over a value that is computed there, "
                f"so no function of the module can hold it: {error.message}",
                "Pass that value as an argument to the function that has the rule, and let the "
                "rule return a derivative for it, of zeros perhaps.",
                where=error.where,
            ) from error
        annotate(module, "main", self.signature)
        read_module(module)  # raises for parameters without a textual form
        return module

    def mlir_module(self) -> str:
        """Returns the program as text of the jaxpr dialect, with the user's lines as locations."""
        return self.module().operation.get_asm(enable_debug_info=True)

    def stablehlo(self) -> str:
        """Returns the program as portable StableHLO text."""
        return str(lower_functions({"main": self.function}))

    def save(self, path: str | Path) -> None:
        """Writes the module to a file: `.mlir` as text, `.mlirbc` as MLIR bytecode.

        Readers see the whole file or none, also when writing fails.

        Raises:
            ParameterError: if the suffix is another one.
            SerializationError: if the program has no textual form; see `module`.
        """
        write_module_file(self.module(), path)

    def call(self, *args: Options, **kwargs: Options) -> UserObject:
        """Calls the function, compiled; inside a transformation it becomes part of its trace.

        Raises:
            TreeError: if the arguments are not the tree it was exported for.
            ShapeError, DTypeError: if an argument has another shape or dtype.
        """
        leaves, structure = tree.flatten((args, kwargs))
        # Containers whose classes a saved module cannot name are known by their notation.
        if structure != self.in_tree and tree_text.write(structure) != self._in_text:
            raise TreeError(
                f"{self.fun_name!r} was exported for arguments {self._in_text}, but was called "
                f"with {tree_text.write(structure)}.",
                f"Its arguments are {', '.join(self.argument_names)}.",
            )
        values = list(map(conform, leaves, self.signature.arguments))
        if any(type(x) is Tracer for x in values):
            return self.out_tree.unflatten(call(self.function, *values))
        return self.out_tree.unflatten(compiled(self.function, device_of(values)).run(values))

    __call__ = call

    def __repr__(self) -> str:
        arguments = ", ".join(map("{}: {}".format, self.argument_names, self.in_avals))
        return f"<Exported {self.fun_name}({arguments}) -> {', '.join(map(str, self.out_avals))}>"


def _check_primitives(function: Function, seen: set[Function]) -> None:
    seen.add(function)
    for equation in function.equations:
        primitive = equation.primitive
        if OPS.get(primitive.name) is not primitive:
            raise SerializationError(
                f"The primitive {primitive.name!r} is defined in Python, not in the jaxpr dialect.",
                "Give it an mlir.register_lowering rule and export .stablehlo(), or write the "
                "function with axir.lax.",
                where=_place(equation),
            )
        opaque = [name for name, value in equation.params.items() if is_opaque(value)]
        if opaque:
            raise SerializationError(
                f"jaxpr.{primitive.name}: the parameter {opaque[0]!r} is a Python object, which "
                "has no textual form.",
                "A saved module calls no Python: leave callbacks and debug.print out of what is "
                "exported, and take policies of checkpoint from axir.checkpoint_policies.",
                where=_place(equation),
            )
    for callee in function.callees():
        if callee not in seen:
            _check_primitives(callee, seen)


def _place(equation: UserObject) -> str | None:
    return describe_location(equation.location)
