"""`pallas_call`: a kernel on blocks of arrays, run for each place of a grid.

The instances run one after the other, the last axis of the grid fastest. An instance has refs of
its blocks. The contents of result blocks are written back before the next instance begins. So a
call is a program of loops, slices and updates, and transformations need no rules for kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from axir import lax
from axir._transforms.callbacks import callback_name
from axir._transforms.jit import jit
from axir._transforms.refs import Ref
from axir._transforms.staging import make_jaxpr, named_scope
from axir._trees import tree
from axir.dialect.core.annotations import AnyDtype, PyTree, Tree, UserFunction, UserObject
from axir.dialect.core.errors import AxirError, NonArrayArgumentError, TreeError
from axir.dialect.core.state import Change
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import state
from axir.numpy import asarray

from ._blocks import Blocks, place_of
from ._memory import available, uninitialized, wanted_type
from ._specs import (
    BlockSpecError,
    CostEstimate,
    GridLike,
    GridSpec,
    NoBlockSpec,
    is_spec,
    no_block_spec,
)

Values: TypeAlias = tuple[Value, ...]
Begin: TypeAlias = Callable[[tuple[int, ...], AnyDtype], Value]
Carry: TypeAlias = tuple[Values, Values, Values]
"""Results, operands that the kernel writes, and memory of its own."""


class KernelResultError(AxirError, ValueError):
    """A kernel on refs returns something."""


class _WritesOperands(Exception):
    """A kernel writes into operands, which later instances are to see."""


def pallas_call(
    kernel: Callable[..., object],
    out_shape: Tree,
    *,
    grid_spec: GridSpec | None = None,
    grid: GridLike = (),
    in_specs: Tree = no_block_spec,
    out_specs: Tree = no_block_spec,
    scratch_shapes: Tree = (),
    input_output_aliases: Mapping[int, int] | None = None,
    debug: bool = False,
    interpret: object = False,
    name: str | None = None,
    compiler_params: object = None,
    cost_estimate: CostEstimate | None = None,
    metadata: Mapping[str, str] | None = None,
    backend: str | None = None,
) -> UserFunction:
    """Returns a function of arrays that runs a kernel for each place of a grid.

    Instances run in order, the last axis of the grid fastest, and see the writes of earlier
    instances to the blocks of results and to scratch memory. The function is compiled, under `jit`
    and without. It can be vectorized, and differentiated as far as the kernel's operations can be.

    Args:
        kernel: Takes a ref for each operand, then one for each result, then one for each array of
            `scratch_shapes` (by name, if these are a dict), and returns nothing.
        out_shape: Tree of objects with `shape` and `dtype`: the results. Before an instance writes
            them they hold nan, or the least integer.
        grid_spec: The next four in one.
        grid: How often the kernel runs along each axis: integers, also computed ones.
        in_specs: A `BlockSpec` for each operand: which block an instance sees. By default, the
            whole array.
        out_specs: The same for results.
        scratch_shapes: Scratch memory of the kernel: `pltpu.VMEM(shape, dtype)` and similar
            requests.
        input_output_aliases: For operands, the result that begins with their value.
        debug: Whether to print the jaxpr of the call.
        interpret: Accepted for compatibility: kernels are compiled for the CPU in any case.
        name: Name of the call in programs and profiles.
        compiler_params: Accepted for compatibility: they are about other compilers.
        cost_estimate: Accepted for compatibility.
        metadata: Accepted for compatibility.
        backend: Accepted for compatibility.

    Returns:
        A function of arrays, or trees of such, that returns the tree of results.

    Raises:
        BlockSpecError: by the function, if blocks do not fit the arrays.
        KernelResultError: by the function, if the kernel returns something.

    >>> import axir, axir.numpy as jnp
    >>> from axir.experimental import pallas as pl
    >>> def add(x_ref, y_ref, o_ref):
    ...     o_ref[...] = x_ref[...] + y_ref[...]
    >>> block = pl.BlockSpec((2,), lambda i: i)
    >>> x = jnp.arange(6.0)
    >>> pl.pallas_call(add, x, grid=3, in_specs=[block, block], out_specs=block)(x, x)
    Array([ 0.,  2.,  4.,  6.,  8., 10.], dtype=float32)
    """
    if grid_spec is None:
        grid_spec = GridSpec(grid, in_specs, out_specs, scratch_shapes)
    else:
        _check_alone(grid, in_specs, out_specs, scratch_shapes)
    aliases = dict(input_output_aliases or {})
    return call_of("pallas_call", kernel, out_shape, grid_spec, aliases, name, debug)


def call_of(
    what: str,
    kernel: Callable[..., object],
    out_shape: Tree,
    spec: GridSpec,
    aliases: Mapping[int, int] | None = None,
    name: str | None = None,
    debug: bool = False,
    begin: Begin = uninitialized,
) -> UserFunction:
    """Returns the function of arrays that runs a kernel.

    Args:
        what: Name of the user's function in messages.
        kernel: See `pallas_call`, as for the next five.
        out_shape: The results.
        spec: Blocks and grid.
        aliases: For operands, the result that begins with their value.
        name: Of the call.
        debug: Whether to print the jaxpr.
        begin: Makes the initial contents of results.
    """
    if not callable(kernel):
        raise NonArrayArgumentError(
            f"{what} takes a function first, not {kernel!r}.",
            f"Write {what}(kernel, out_shape, ...).",
        )
    call = _Call(what, kernel, out_shape, spec, dict(aliases or {}), begin)
    return call.function(name or callback_name(kernel), debug)


def _check_alone(grid: GridLike, in_specs: Tree, out_specs: Tree, scratch_shapes: Tree) -> None:
    given = {
        "grid": not isinstance(grid, tuple) or bool(grid),
        "in_specs": not isinstance(in_specs, NoBlockSpec),
        "out_specs": not isinstance(out_specs, NoBlockSpec),
        "scratch_shapes": bool(scratch_shapes),
    }
    twice = [what for what, is_given in given.items() if is_given]
    if twice:
        raise BlockSpecError(
            f"If `grid_spec` is specified, then `{twice[0]}` must not be given as well.",
            "Say it in the grid_spec.",
        )


class _Call:
    """A kernel, with the blocks and the grid of its call."""

    def __init__(
        self,
        what: str,
        kernel: Callable[..., object],
        out_shape: Tree,
        spec: GridSpec,
        aliases: dict[int, int],
        begin: Begin,
    ):
        self.what = what
        self.begin = begin
        self.kernel = kernel
        self.spec = spec
        self.aliases = aliases
        out_shape = tuple(out_shape) if isinstance(out_shape, list) else out_shape
        self.out_paths, wanted, self.out_tree = _with_paths(out_shape, "outputs")
        self.out_types = [wanted_type(x, f"{what}: out_shape") for x in wanted]
        scratch, self.scratch_tree = tree.flatten(spec.scratch_shapes)
        self.scratch_types = [wanted_type(x, f"{what}: scratch_shapes") for x in scratch]

    def function(self, name: str, debug: bool) -> UserFunction:
        """Returns the function of arrays."""

        def run(bounds: Values, args: tuple[Tree, ...]) -> PyTree:
            with named_scope(name):
                return self.results(bounds, args)

        run.__name__ = run.__qualname__ = name
        compiled = jit(run)
        bounds = tuple(n for n in self.spec.grid if not isinstance(n, int))

        def call(*args: object) -> PyTree:
            if debug:
                print(f"The kernel in {self.what} {place_of(self.kernel)}:")
                print(make_jaxpr(run)(bounds, args))
            return compiled(bounds, args)

        call.__name__ = call.__qualname__ = name
        return call

    def results(self, bounds: Values, args: tuple[Tree, ...]) -> PyTree:
        """Returns the results for arguments."""
        paths, leaves, in_tree = _with_paths(args, "args")
        operands = [_strong(asarray(x)) for x in leaves]
        out_types = list(map(available, self.out_types))
        self._check_aliases(operands, out_types, args)
        count = self._scalar_count(args)
        known = iter(bounds)
        instance = _Instance(
            self, in_tree, operands[:count],
            self._blocks(self.spec.in_specs, args[self.spec.num_scalar_prefetch :],
                         paths[count:], operands[count:], "in_specs"),
            self._blocks(self.spec.out_specs, self.out_tree.unflatten(out_types),
                         self.out_paths, out_types, "out_specs"),
            tuple(n if isinstance(n, int) else next(known) for n in self.spec.grid),
        )  # fmt: skip
        arrays = tuple(
            blocks.enlarged(x) for blocks, x in zip(instance.inputs, operands[count:], strict=True)
        )
        begun = {result: operand for operand, result in self.aliases.items()}
        outputs = tuple(
            blocks.enlarged(operands[begun[n]])
            if n in begun
            else self.begin(blocks.enlarged_shape, blocks.type.dtype)
            for n, blocks in enumerate(instance.outputs)
        )
        scratch = tuple(uninitialized(t.shape, t.dtype) for t in map(available, self.scratch_types))
        results = instance.run(arrays, outputs, scratch)
        trimmed = [blocks.trimmed(x) for blocks, x in zip(instance.outputs, results, strict=True)]
        return self.out_tree.unflatten(trimmed)

    def _scalar_count(self, args: tuple[Tree, ...]) -> int:
        return len(tree.leaves(args[: self.spec.num_scalar_prefetch]))

    def _blocks(
        self,
        specs: Tree,
        like: Tree,
        paths: Sequence[str],
        values: Sequence[Value | ShapedArray],
        what: str,
    ) -> list[Blocks]:
        types = [x if isinstance(x, ShapedArray) else ShapedArray(x.shape, x.dtype) for x in values]
        if isinstance(specs, NoBlockSpec):
            found: list[UserObject] = [no_block_spec] * len(types)
        else:
            found, structure = tree.flatten(specs, is_leaf=is_spec)
            wanted = tree.structure(like)
            if structure != wanted:
                other = "inputs" if what == "in_specs" else "out_shape"
                raise TreeError(
                    f"Pytree for `{what}` and `{other}` do not match. `{what}` is {structure}, "
                    f"and `{other}` is {wanted}.",
                    "Give a pl.BlockSpec for each array, in the same containers.",
                )
        return [Blocks(*each) for each in zip(paths, found, types, strict=True)]

    def _check_aliases(
        self, operands: Sequence[Value], out_types: Sequence[ShapedArray], args: tuple[Tree, ...]
    ) -> None:
        for operand, result in self.aliases.items():
            pair = f"input_output_aliases contains the mapping '{operand}:{result}'"
            for kind, number, of in (
                ("input", operand, operands),
                ("output", result, out_types),
            ):
                if number not in range(len(of)):
                    raise BlockSpecError(
                        f"{pair} with {kind} index {number} outside the range [0, {len(of)}).",
                        "Count the arrays of operands and results from 0, in the order of leaves.",
                    )
            x, t = operands[operand], out_types[result]
            if (x.shape, x.dtype) != (t.shape, t.dtype):
                raise BlockSpecError(
                    f"{pair} referring to input{_with_paths(args, '')[0][operand]} with abstract "
                    f"value {x.aval} and to output{self.out_paths[result].removeprefix('outputs')} "
                    f"with a different abstract value {t}.",
                    "An operand and the result that takes its place have one shape and dtype.",
                )


class _Instance:
    """The view of a kernel instance, for operands of known types."""

    def __init__(
        self,
        call: _Call,
        in_tree: tree.TreeDef,
        scalars: Sequence[Value],
        inputs: list[Blocks],
        outputs: list[Blocks],
        grid: tuple[object, ...],
    ):
        self.call = call
        self.in_tree = in_tree
        self.scalars = scalars
        self.inputs = inputs
        self.outputs = outputs
        self.grid = grid

    def run(self, arrays: Values, outputs: Values, scratch: Values) -> Values:
        """Returns the results of all instances."""
        try:
            return self._nest((), (outputs, (), scratch), arrays)[0]
        except _WritesOperands:
            return self._nest((), (outputs, arrays, scratch), ())[0]

    def _nest(self, place: tuple[Value, ...], carry: Carry, arrays: Values) -> Carry:
        """Runs the instances at the places that begin with some indices."""
        if len(place) == len(self.grid):
            return self._one(place, carry, arrays)
        extent = self.grid[len(place)]
        if isinstance(extent, int) and extent == 1:
            return self._nest((*place, asarray(0, np.int32)), carry, arrays)

        def step(i: Value, carry: Carry) -> Carry:
            return self._nest((*place, convert_element_type(i, np.int32, False)), carry, arrays)

        return lax.fori_loop(0, extent, step, carry)

    def _one(self, place: tuple[Value, ...], carry: Carry, arrays: Values) -> Carry:
        """Runs the instance at a grid position; returns the new contents of its refs."""
        outputs, written, scratch = carry
        operands = written or arrays
        names = self.call.spec.grid_names or ()
        sizes = {**state.axis_sizes, **dict(zip(names, self.grid, strict=False))}
        with Change(grid=(place, self.grid, names), axis_sizes=sizes):
            scalars = [_ref(x) for x in self.scalars]
            starts = [blocks.starts(place, scalars) for blocks in (*self.inputs, *self.outputs)]
            cuts = list(
                zip((*self.inputs, *self.outputs), (*operands, *outputs), starts, strict=True)
            )
            refs = [_ref(blocks.read(array, start)) for blocks, array, start in cuts]
            first = [ref.load() for ref in refs]
            own = [_ref(x) for x in scratch]
            self._call_kernel([*scalars, *refs[: len(arrays or written)]],
                              refs[len(operands) :], own)  # fmt: skip
            last = [_settled(ref) for ref in refs]
            scratch = tuple(_settled(ref) for ref in own)
        count = len(operands)
        if not written and any(
            a is not b for a, b in zip(first[:count], last[:count], strict=True)
        ):
            raise _WritesOperands
        new = [
            array if before is after else blocks.write(array, start, after)
            for (blocks, array, start), before, after in zip(cuts, first, last, strict=True)
        ]
        return tuple(new[count:]), tuple(new[:count]) if written else (), scratch

    def _call_kernel(self, inputs: list[Ref], outputs: list[Ref], scratch: list[Ref]) -> None:
        ins: UserObject = self.in_tree.unflatten(inputs)
        outs: UserObject = self.call.out_tree.unflatten(outputs)
        own: UserObject = self.call.scratch_tree.unflatten(scratch)
        outs = tuple(outs) if isinstance(outs, (tuple, list)) else (outs,)
        named = own if isinstance(own, dict) else {}
        result = self.call.kernel(*ins, *outs, *(() if named else own), **named)
        if result is not None:
            raise KernelResultError(
                f"The kernel function in the {self.call.what} {place_of(self.call.kernel)} should "
                f"return None. It returns a PyTree: {tree.structure(result)}.",
                "Assign to the refs of results: o_ref[...] = value.",
            )


def _ref(value: Value) -> Ref:
    return Ref(_strong(value), state.ambient)


def _settled(ref: Ref) -> Value:
    """Returns the contents of a ref; the ref must not be used afterwards."""
    value = ref.load()
    ref._value = None
    return value


def _strong(value: Value) -> Value:
    return convert_element_type(value, value.dtype, False)


def _with_paths(given: Tree, root: str) -> tuple[list[str], list[UserObject], tree.TreeDef]:
    pairs, structure = tree.flatten_with_path(given)
    return [root + tree.keystr(path) for path, _ in pairs], [x for _, x in pairs], structure
