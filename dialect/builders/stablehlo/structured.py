"""StableHLO operations that carry a scalar computation (reduce, scatter, sort …); random bits."""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from axir.dialect.core.symbolic_dims import is_open

from .core import (
    Body,
    ElementType,
    as_values,
    attribute,
    build,
    element_type_of,
    integer,
    integers,
    padding_pairs,
    shape_of,
    tensor_type,
)
from .extents import extents
from .shape import concatenate, pad, reshape


def _scalar_types(values: Sequence[ir.Value]) -> list[ir.Type]:
    return [tensor_type((), element_type_of(value)) for value in values]


def reduce(
    operands: Sequence[ir.Value], inits: Sequence[ir.Value], dimensions: Sequence[int], body: Body
) -> list[ir.Value]:
    """Reduces operands of one shape together along `dimensions`.

    `body(*accumulators, *elements)` combines rank-0 values; `inits` are rank-0 and may not be
    identities.
    """
    operands, inits = as_values(operands), as_values(inits)
    kept = [size for axis, size in enumerate(shape_of(operands[0])) if axis not in set(dimensions)]
    result_types = [tensor_type(kept, element_type_of(operand)) for operand in operands]
    bodies = [(_scalar_types([*inits, *operands]), body)]
    attributes = {"dimensions": integers(dimensions)}
    values = (*operands, *inits)
    return list(
        build("reduce", "stablehlo.reduce", values, result_types, attributes, bodies).results
    )


def reduce_window(
    operands: Sequence[ir.Value],
    inits: Sequence[ir.Value],
    window_dimensions: Sequence[int],
    body: Body,
    *,
    window_strides: Sequence[int] | None = None,
    base_dilations: Sequence[int] | None = None,
    window_dilations: Sequence[int] | None = None,
    padding: Sequence[Sequence[int]] | None = None,
    shape: Sequence[int] | None = None,
) -> list[ir.Value]:
    """Reduces each window of the operands; see `reduce` for `body`. Padding reads `inits`.

    `shape` is the shape of the results, needed if it is open.
    """
    operands, inits = as_values(operands), as_values(inits)
    if is_open(window_dimensions):
        windows = (window_dimensions, window_strides, base_dilations, window_dilations)
        return _open_windows(operands, inits, windows, padding, body, shape)
    if padding is not None and any(map(is_open, padding)):
        low, high = zip(*padding, strict=True)
        between = [n - 1 for n in base_dilations or [1] * len(low)]
        both = zip(operands, inits, strict=True)
        operands = [pad(x, init, low, high, between) for x, init in both]
        base_dilations = padding = None
    ones = [1] * len(window_dimensions)
    strides, base, dilations = (
        list(given) if given is not None else ones
        for given in (window_strides, base_dilations, window_dilations)
    )
    pairs = [list(pair) for pair in padding] if padding is not None else [[0, 0] for _ in ones]
    shape = shape or [
        _window_count(size, *settings)
        for size, *settings in zip(
            shape_of(operands[0]), window_dimensions, strides, base, dilations, pairs, strict=True
        )
    ]
    attributes = {
        "window_dimensions": integers(window_dimensions),
        "window_strides": integers(strides),
        "base_dilations": integers(base),
        "window_dilations": integers(dilations),
        "padding": padding_pairs(pairs),
    }
    result_types = [tensor_type(shape, element_type_of(operand)) for operand in operands]
    bodies = [(_scalar_types([*inits, *operands]), body)]
    name, values = "reduce_window", (*operands, *inits)
    return list(build(name, f"stablehlo.{name}", values, result_types, attributes, bodies).results)


def _open_windows(
    operands: Sequence[ir.Value],
    inits: Sequence[ir.Value],
    windows: Sequence[Sequence[int] | None],
    padding: Sequence[Sequence[int]] | None,
    body: Body,
    shape: Sequence[int] | None,
) -> list[ir.Value]:
    """Reduces windows of open extents, by the call that refinement of shapes resolves."""
    rank = len(windows[0] or ())
    numbers = [extents(given if given is not None else [1] * rank) for given in windows]
    pairs = [extents(pair) for pair in padding or [(0, 0)] * rank]
    rows = concatenate([reshape(pair, (1, 2)) for pair in pairs], 0)
    reducer = _function("reducer", _scalar_types([*inits, *operands]), body, inits)
    attributes = {
        "call_target_name": ir.StringAttr.get("stablehlo.dynamic_reduce_window"),
        "called_computations": ir.ArrayAttr.get([ir.FlatSymbolRefAttr.get(reducer)]),
        "api_version": integer(2, 32),
    }
    kinds = [tensor_type(shape or (), element_type_of(operand)) for operand in operands]
    values = (*operands, *inits, *numbers, rows)
    name = "reduce_window"
    return list(build(name, "stablehlo.custom_call", values, kinds, attributes).results)


def _function(name: str, types: Sequence[ir.Type], body: Body, results: Sequence[ir.Value]) -> str:
    """Writes a private function beside the one that is being written; returns its symbol."""
    owner = ir.InsertionPoint.current.block.owner
    while owner.operation.parent is not None:
        owner = owner.operation.parent
    block = owner.regions[0].blocks[0]
    taken = {ir.StringAttr(op.operation.attributes["sym_name"]).value for op in block.operations}
    symbol, number = name, 0
    while symbol in taken:
        symbol, number = f"{name}_{number}", number + 1
    kind = ir.FunctionType.get(list(types), [value.type for value in results])
    attributes = {
        "sym_name": ir.StringAttr.get(symbol),
        "function_type": ir.TypeAttr.get(kind),
        "sym_visibility": ir.StringAttr.get("private"),
    }
    point = ir.InsertionPoint(block)
    made = ir.Operation.create("func.func", attributes=attributes, regions=1, ip=point)
    inner = ir.Block.create_at_start(made.regions[0], list(types))
    with ir.InsertionPoint(inner):
        ir.Operation.create("func.return", operands=as_values(body(*inner.arguments)))
    return symbol


def _window_count(
    size: int, window: int, stride: int, base: int, dilation: int, pad: Sequence[int]
) -> int:
    """Returns how many windows fit along one dimension."""
    padded = pad[0] + pad[1] + ((size - 1) * base + 1 if size else 0)
    spread = (window - 1) * dilation + 1 if window else 0
    return 0 if padded < spread or padded == 0 else (padded - spread) // stride + 1


def select_and_scatter(
    operand: ir.Value,
    source: ir.Value,
    init: ir.Value,
    select: Body,
    scatter: Body,
    *,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[Sequence[int]],
) -> ir.Value:
    """Combines each element of `source` into the element that `select` prefers in its window."""
    attributes = {
        "window_dimensions": integers(window_dimensions),
        "window_strides": integers(window_strides),
        "padding": padding_pairs(padding),
    }
    bodies = [
        (_scalar_types([operand, operand]), select),
        (_scalar_types([source, source]), scatter),
    ]
    name, values = "select_and_scatter", (operand, source, init)
    return build(name, f"stablehlo.{name}", values, (operand.type,), attributes, bodies).result


def scatter(
    operands: Sequence[ir.Value],
    indices: ir.Value,
    updates: Sequence[ir.Value],
    body: Body,
    *,
    update_window_dims: Sequence[int],
    inserted_window_dims: Sequence[int],
    scatter_dims_to_operand_dims: Sequence[int],
    index_vector_dim: int,
    input_batching_dims: Sequence[int] = (),
    scatter_indices_batching_dims: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> list[ir.Value]:
    """Returns the operands with `updates` combined in at `indices`; updates that do not fit are
    dropped.

    `body(*current, *updates)` combines rank-0 values. `unique_indices=True` promises that no
    element is hit twice.
    """
    operands, updates = as_values(operands), as_values(updates)
    numbers = (
        f"#stablehlo.scatter<update_window_dims = {list(update_window_dims)}, "
        f"inserted_window_dims = {list(inserted_window_dims)}, "
        f"input_batching_dims = {list(input_batching_dims)}, "
        f"scatter_indices_batching_dims = {list(scatter_indices_batching_dims)}, "
        f"scatter_dims_to_operand_dims = {list(scatter_dims_to_operand_dims)}, "
        f"index_vector_dim = {index_vector_dim}>"
    )
    attributes = {
        "scatter_dimension_numbers": attribute(numbers),
        "indices_are_sorted": ir.BoolAttr.get(indices_are_sorted),
        "unique_indices": ir.BoolAttr.get(unique_indices),
    }
    result_types = [operand.type for operand in operands]
    bodies = [(_scalar_types([*operands, *updates]), body)]
    values = (*operands, indices, *updates)
    return list(
        build("scatter", "stablehlo.scatter", values, result_types, attributes, bodies).results
    )


def sort(
    operands: Sequence[ir.Value], dimension: int, comparator: Body, *, is_stable: bool = True
) -> list[ir.Value]:
    """Sorts operands of one shape together along `dimension`.

    `comparator(lhs_0, rhs_0, lhs_1, rhs_1, …)` gets rank-0 values and says whether lhs comes
    before rhs.
    """
    operands = as_values(operands)
    argument_types = [scalar for scalar in _scalar_types(operands) for _ in range(2)]
    attributes = {"dimension": integer(dimension), "is_stable": ir.BoolAttr.get(is_stable)}
    result_types = [operand.type for operand in operands]
    bodies = [(argument_types, comparator)]
    return list(build("sort", "stablehlo.sort", operands, result_types, attributes, bodies).results)


def top_k(operand: ir.Value, k: int) -> list[ir.Value]:
    """Returns the `k` largest values of the last dimension, descending, and their `i32` indices."""
    return list(build("top_k", "chlo.top_k", (operand,), None, {"k": integer(k)}).results)


def rng_bit_generator(
    state: ir.Value, shape: Sequence[int], element: ElementType, algorithm: str = "DEFAULT"
) -> list[ir.Value]:
    """Returns the next state (`ui64`) and random bits; `algorithm` is DEFAULT, THREE_FRY or
    PHILOX.

    For a shape with symbolic extents it is the custom call that JAX writes and refines.
    """
    attributes = {"rng_algorithm": attribute(f"#stablehlo<rng_algorithm {algorithm}>")}
    result_types = [state.type, tensor_type(shape, element)]
    name = "rng_bit_generator"
    if is_open(shape):
        attributes["call_target_name"] = ir.StringAttr.get(f"stablehlo.dynamic_{name}")
        attributes["api_version"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 2)
        operands = (state, extents(shape))
        made = build(name, "stablehlo.custom_call", operands, result_types, attributes)
        return list(made.results)
    return list(build(name, f"stablehlo.{name}", (state,), result_types, attributes).results)
