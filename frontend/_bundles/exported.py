"""`Exported`: a function that is saved, or ready to be.

It is called, differentiated and vectorized like any function, with or without its Python source.
Elsewhere: how it comes to be (`axir.export`), files (`saving.py`, `bundle.py`).
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from axir._programs.compiled_modules import conform
from axir._programs.files import bytecode_of, write_module_file
from axir._trees import text as tree_text
from axir._trees import tree
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.errors import ParameterError, TreeError
from axir.dialect.core.symbolic_dims import SymbolicDim
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.function import Function
from axir.dialect.program.module_writer import embed_captures
from axir.dialect.text.signature import Argument, Signature, annotate
from axir.passes.transforms.lower_to_stablehlo import lower_functions

from .archive import archive_bytes
from .batching import DependentRowsError, of_rows
from .bound_arguments import trees_of
from .calls import Calls, in_rows, pullback, pullback_signature
from .captures import with_captures
from .manifest import Batch, FunctionEntry, Open, ProgramEntry, Sizes
from .open_sizes import (
    check_names,
    checked_sizes,
    combinations,
    in_sizes,
    name_of_sizes,
    open_of,
)
from .programs import Programs
from .saving import bundle_entries, is_function_name, module_of, save_bundle

# The types of arguments that are leaves without conversion.
_ARRAYS = {ConcreteArray}


class Exported(Calls):
    """A function that is saved or can be saved.

    Args:
        entry: Its name, arguments, results and parameters.
        function: The traced function, or a function that reads it when it is first asked for.
        parameters: The values of `entry.parameters`, by name.
        in_tree: Structure of `(args, kwargs)`.
        out_tree: Structure of the result.
        programs: Its compiled programs.

    Attributes:
        entry: Its entry in a bundle's manifest.
        parameters: The arrays that it captured, by name; small arrays are part of the program
            instead.
        in_tree: Structure of `(args, kwargs)`.
        out_tree: Structure of the result.
        dependent_rows: The reason that its open leading dimension is not one of rows, so that
            programs are made only for sizes; None if it is one of rows, or this was never checked.
    """

    dependent_rows: DependentRowsError | None = None

    @staticmethod
    def of_signature(
        name: str, signature: Signature, function: Function, where: str = ""
    ) -> Exported:
        """Returns a function without captures, with the trees that a signature records."""
        in_tree, out_tree = trees_of(signature, where)
        entry = FunctionEntry(name, signature, open=open_of(function, signature))
        return Exported(entry, function, {}, in_tree, out_tree)

    @property
    def __name__(self) -> str:
        return self.entry.name

    @property
    def __signature__(self) -> inspect.Signature:
        """The signature for `inspect`: positional arguments and arguments by keyword."""
        numbers: UserObject = self.in_tree.unflatten(range(self.in_tree.num_leaves))
        args, kwargs = numbers
        names: list[str] = []
        for number, value in enumerate(args):
            leaves = tree.leaves(value)
            name = re.split(r"[\[.]", self.argument_names[leaves[0]])[0] if leaves else ""
            is_free = is_function_name(name) and name not in (*names, *kwargs)
            names.append(name if is_free else f"arg{number}")
        kinds = inspect.Parameter
        return inspect.Signature(
            [kinds(name, kinds.POSITIONAL_OR_KEYWORD) for name in names]
            + [kinds(name, kinds.KEYWORD_ONLY) for name in sorted(kwargs)]
        )

    def __getattr__(self, name: str) -> Exported:
        # A bundle of one function is that function, and has it under its name like all bundles.
        if name != "entry" and name == self.entry.name:
            return self
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}.")

    def __getitem__(self, name: str) -> Exported:
        """Returns itself by its name, as a bundle returns its functions."""
        if name != self.entry.name:
            raise KeyError(name)
        return self

    @property
    def fun_name(self) -> str:
        """The function's name."""
        return self.entry.name

    @property
    def signature(self) -> Signature:
        """Names and types of arguments and results, and the notation of their trees."""
        return self.entry.signature

    @property
    def donated(self) -> tuple[int, ...]:
        """Numbers of the arguments that results may overwrite, as `donate_argnums` said."""
        return self.entry.donated

    @property
    def argument_names(self) -> list[str]:
        """Where each argument comes from: `x`, `params['w']`."""
        return [value.name for value in self.signature.arguments]

    @property
    def result_names(self) -> list[str]:
        """The path of each result: `result`, `result['loss']`."""
        return [value.name for value in self.signature.results]

    @property
    def in_avals(self) -> tuple[ShapedArray, ...]:
        """Types of the arguments, flat; open dimensions are symbolic ones."""
        return self._avals(self.signature.arguments, self.batch.arguments if self.batch else None)

    @property
    def out_avals(self) -> tuple[ShapedArray, ...]:
        """Types of the results, flat; open dimensions are symbolic ones."""
        return self._avals(self.signature.results, self.batch.results if self.batch else None)

    def _avals(
        self, values: Sequence[Argument], is_open: Sequence[bool] | None
    ) -> tuple[ShapedArray, ...]:
        kinds = [value.type for value in values]
        if self.batch is None or is_open is None:
            return tuple(kinds)
        dimension = SymbolicDim(self.batch.symbol)
        return tuple(
            kind.update(shape=(dimension, *kind.shape)) if rows else kind
            for kind, rows in zip(kinds, is_open, strict=True)
        )

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names of the dimensions that are open."""
        if self.batch is not None:
            return (self.batch.symbol,)
        return self.open.symbols if self.open is not None else ()

    @property
    def open(self) -> Open | None:
        """The symbolic dimensions in its types, and the sizes of its programs."""
        return self.entry.open

    @property
    def batch(self) -> Batch | None:
        """The leading dimension that is open, and the numbers of rows that programs are for."""
        return self.entry.batch

    def with_rows(self, *counts: int) -> Exported:
        """Returns the function with programs for some numbers of rows; others are padded to these.

        Without any, a program is made for each number of rows in a call.

        Raises:
            ParameterError: if the function has no open dimension, or a number is not positive.
        """
        if self.batch is None:
            raise self._fixed()
        if any(type(count) is not int or count < 1 for count in counts):
            raise ParameterError(
                f"with_rows: {counts} are no numbers of rows.", "Give positive integers: 1, 8, 64."
            )
        entry = replace(self.entry, batch=replace(self.batch, sizes=tuple(sorted(set(counts)))))
        return self._changed(entry, self._programs)

    def with_sizes(self, **sizes: int | Sequence[int]) -> Exported:
        """Returns the function with programs for all combinations of some sizes.

        Calls of other sizes compile programs when they come. Without any sizes, all calls do.

        Args:
            sizes: By name of a dimension, one size or several.

        Raises:
            ParameterError: if no dimension is open, or the names are not the dimensions' names.
            ShapeError: if a constraint does not hold.

        >>> import axir.numpy as jnp
        >>> from axir.export import export, symbolic_args_specs
        >>> mean = export(lambda x: x.mean(0))(*symbolic_args_specs((jnp.ones((4, 6)),), "b, t"))
        >>> mean.with_sizes(b=(1, 8), t=3).open.sizes
        ((('b', 1), ('t', 3)), (('b', 8), ('t', 3)))
        """
        if sizes and self.symbols:
            check_names(self.fun_name, sizes, self.symbols)
        return self.with_combinations(combinations(sizes) if sizes else ())

    def with_combinations(self, sizes: Iterable[Mapping[str, int]]) -> Exported:
        """Returns the function with programs for some combinations of sizes.

        Raises:
            ParameterError: if no dimension is open, or the names are not the dimensions' names.
            ShapeError: if a constraint does not hold.
        """
        made = tuple(dict.fromkeys(map(self._checked_sizes, sizes)))
        if self.open is None:  # no or one open dimension: `with_rows` refuses the former
            return self.with_rows(*(size for found in made for _, size in found))
        entry = replace(self.entry, open=replace(self.open, sizes=made))
        return self._changed(entry, self._programs)

    def of_sizes(self, **sizes: int) -> Exported:
        """Returns the function for sizes of its open dimensions.

        Raises:
            ParameterError: if no dimension is open, or the names are not the dimensions' names.
            ShapeError: if a constraint does not hold.

        >>> import axir.numpy as jnp
        >>> from axir.export import export, symbolic_args_specs
        >>> mean = export(lambda x: x.mean(0))(*symbolic_args_specs((jnp.ones((4, 6)),), "b, t"))
        >>> mean.of_sizes(b=3, t=5)
        <Exported main_b3_t5(x: float32[3,5]) -> float32[5]>
        """
        if self.batch is not None and set(sizes) == {self.batch.symbol}:
            return self.of_rows(sizes[self.batch.symbol])
        found = self._checked_sizes(sizes)
        own = self.signature
        signature = replace(
            own,
            arguments=in_sizes(own.arguments, found),
            results=in_sizes(own.results, found),
        )
        name = name_of_sizes(self.fun_name, found)
        entry = replace(self.entry, name=name, signature=signature, open=None)
        function = self.function_of(found)
        return Exported(entry, function, self.parameters, self.in_tree, self.out_tree)

    def _checked_sizes(self, sizes: Mapping[str, int]) -> Sizes:
        if not self.symbols:
            raise self._fixed()
        return checked_sizes(self.fun_name, sizes, self.open or Open(self.symbols))

    def with_programs(self, programs: Programs) -> Exported:
        """Returns the function with its compiled programs."""
        return self._changed(self.entry, programs)

    def with_batch(self, batch: Batch) -> Exported:
        """Returns the function with another set of results that have the open dimension."""
        return self._changed(replace(self.entry, batch=batch), None)

    def with_parameters(self, values: Mapping[str, object]) -> Exported:
        """Returns the function with other values of some of its parameters; nothing is traced.

        Raises:
            ParameterError: if the function has no such parameter.
            ShapeError, DTypeError: if a value is not of the type of the parameter.

        >>> import functools, axir.numpy as jnp
        >>> from axir.export import export
        >>> scale = export(functools.partial(jnp.multiply, jnp.array([1.0, 2.0])))(1.0)
        >>> scale.with_parameters({"x": jnp.array([3.0, 4.0])})(10.0)
        Array([30., 40.], dtype=float32)
        """
        unknown = [name for name in values if name not in self.parameters]
        if unknown:
            raise ParameterError(
                f"{self.fun_name!r} has no parameter {unknown[0]!r}.",
                f"It has {', '.join(self.parameters) or 'none at all'}.",
            )
        parameters = dict(self.parameters)
        for name, value in values.items():
            parameters[name] = conform(value, Argument(name, parameters[name].type))

        def function() -> Function:
            own = self.function
            rest = own.captured[len(parameters) :]
            return with_captures(own, len(own.inputs), [*parameters.values(), *rest])

        return self._changed(self.entry, self._programs, function, parameters)

    def _changed(
        self,
        entry: FunctionEntry,
        programs: Programs | None,
        function: Callable[[], Function] | None = None,
        parameters: Mapping[str, ConcreteArray] | None = None,
    ) -> Exported:
        own = function or (lambda: self.function)
        values = self.parameters if parameters is None else parameters
        made = Exported(entry, own, values, self.in_tree, self.out_tree, programs)
        made._whole = self._whole
        made.dependent_rows = self.dependent_rows
        return made

    def _fixed(self) -> ParameterError:
        return ParameterError(
            f"{self.fun_name!r} was exported for arguments of fixed shapes.",
            "Export it with symbolic dimensions: symbolic_shape('b, 3').",
        )

    def of_rows(self, count: int) -> Exported:
        """Returns the function for a number of rows, where the leading dimension is open.

        Raises:
            ParameterError: if it is not.

        >>> import axir, axir.numpy as jnp
        >>> from axir.export import export, symbolic_args_specs
        >>> spec = symbolic_args_specs(jnp.ones((1, 2)), "b, ...")
        >>> export(lambda x: x.sum(-1))(spec).of_rows(3)
        <Exported main(x: float32[3,2]) -> float32[3]>
        """
        batch, signature = self.batch, self.signature
        if batch is None and self.open is not None and len(self.open.symbols) == 1:
            return self.of_sizes(**{self.open.symbols[0]: count})
        if batch is None:
            raise self._fixed()
        signature = replace(
            signature,
            arguments=in_rows(signature.arguments, batch.arguments, count),
            results=in_rows(signature.results, batch.results, count),
        )
        entry = replace(self.entry, signature=signature, batch=None)
        function = of_rows(self.function, batch, count)
        captured = dict(zip(entry.parameters, function.captured, strict=False))
        made = Exported(entry, function, captured, self.in_tree, self.out_tree)  # type: ignore[arg-type]
        return made

    def module(self) -> UserObject:
        """Returns the program as an MLIR module of the jaxpr dialect, with `main`.

        The parameters are constants in it.

        Raises:
            SerializationError: if an op is a user's primitive, has a parameter that is a Python
                object, or has a custom rule that closes over values of the function.
        """
        module = module_of({"main": embed_captures(self.function)})
        annotate(module, "main", self.signature)
        return module

    def mlir_module(self) -> str:
        """Returns the program as text of the jaxpr dialect, with the user's lines as locations."""
        return self.module().operation.get_asm(enable_debug_info=True)

    @property
    def mlir_module_serialized(self) -> bytes:
        """The program as MLIR bytecode of the jaxpr dialect."""
        return bytecode_of(self.module())

    def vjp(self) -> Exported:
        """Returns the pullback: from arguments and cotangents of the results to cotangents.

        It takes the arguments, then a cotangent for each inexact result, flat, and returns a
        cotangent for each inexact argument, as a tuple if these are several.

        Raises:
            ParameterError: if the number of rows is open, over which cotangents would be summed.

        >>> import axir.numpy as jnp
        >>> from axir.export import export
        >>> export(jnp.sin)(0.0).vjp()(0.0, 2.0)
        Array(2., dtype=float32, weak_type=True)
        """
        if self.batch is not None:
            raise ParameterError(
                f"The number of rows of {self.fun_name!r} is open.",
                "Differentiate it for a number of rows: exported.of_rows(8).vjp().",
            )
        signature = pullback_signature(self.signature)
        name = f"{self.fun_name}_vjp"
        entry = FunctionEntry(name, signature, self.entry.parameters, open=self.open)
        function = pullback(self.function, len(self.parameters))
        return Exported(entry, function, self.parameters, *trees_of(signature, self.fun_name))

    def stablehlo(self) -> str:
        """Returns the program as portable StableHLO text; open dimensions stay open."""
        function = self.function
        if self.batch is not None:
            function = of_rows(function, self.batch, SymbolicDim(self.batch.symbol))
        return str(lower_functions({"main": embed_captures(function)}, allows_open=True))

    def save(self, path: str | Path) -> None:
        """Writes the function to a file.

        The suffix determines the form: `.axir` a bundle, `.mlir` a module as text, `.mlirbc` the
        same as MLIR bytecode. Readers see the whole file or none, also when writing fails.

        Raises:
            ParameterError: if the path has another suffix.
            SerializationError: if the program has no textual form; see `module`.
        """
        if Path(path).suffix == ".axir":
            save_bundle({self.fun_name: self}, path, self._contents())
        else:
            write_module_file(self.module(), path)

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """Returns the content of the bundle that `save` would write.

        Args:
            vjp_order: Ignored: a saved function can be differentiated any number of times.
        """
        return bytearray(archive_bytes(bundle_entries({self.fun_name: self}, self._contents())))

    def _contents(self) -> Sequence[tuple[ProgramEntry, bytes | memoryview]]:
        return self._programs.only({self.fun_name}).content() if self._programs else ()

    def call(self, *args: object, **kwargs: object) -> UserObject:
        """Calls the function, compiled; inside a transformation it becomes part of its trace.

        Raises:
            TreeError: if the arguments have another structure than in the export.
            ShapeError, DTypeError: if an argument has another shape or dtype.
        """
        if not kwargs and len(args) == self._flat_count and set(map(type, args)) == _ARRAYS:
            leaves = list(args)  # a flattening would take longer than small models
        else:
            leaves = self._flattened(args, kwargs)
        key = self.key_of(leaves)
        results = self._run_key(key, list(map(conform, leaves, self._arguments(key))))
        return self.out_tree.unflatten(results)

    __call__ = call

    @functools.cached_property
    def _flat_count(self) -> int:
        """The number of arguments if all are arrays, passed by position; else -1."""
        count = self.in_tree.num_leaves
        return count if self.in_tree == tree.structure(((0,) * count, {})) else -1

    def _flattened(self, args: tuple[object, ...], kwargs: dict[str, object]) -> list[object]:
        """Returns the leaves of arguments.

        Raises:
            TreeError: if the arguments are not the tree it was exported for.
        """
        leaves, structure = tree.flatten((args, kwargs))
        # Containers of classes that a saved module cannot name are compared by their notation.
        if structure != self.in_tree and tree_text.write(structure) != self.signature.in_tree:
            raise TreeError(
                f"{self.fun_name!r} was exported for arguments {self.signature.in_tree}, but was "
                f"called with {tree_text.write(structure)}.",
                f"Its arguments are {', '.join(self.argument_names)}.",
            )
        return leaves

    def __repr__(self) -> str:
        arguments = ", ".join(
            f"{name}: {kind}" for name, kind in zip(self.argument_names, self.in_avals, strict=True)
        )
        results = ", ".join(map(str, self.out_avals))
        return f"<Exported {self.fun_name}({arguments}) -> {results}>"
