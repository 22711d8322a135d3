"""Portable artifacts of StableHLO: modules of its versioned dialect, VHLO, as StableHLO.

VHLO has the operations of StableHLO under names that end in versions. Its own types and attributes
wrap MLIR's, and each dimension number of an operation is a separate attribute. The wheel reads VHLO
but has no pass that turns it back, so its operations are built again here. The correspondence
follows StableHLO's specification, `docs/vhlo.md` and `VhloOps.td` there.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from iree.compiler import ir

from axir.dialect.core.context import context, describe_location
from axir.dialect.core.errors import ParseError

from .resources import remember_resources, resources_of
from .shardings import NAMED

__all__ = ["is_portable_artifact", "to_stablehlo"]

_VERSION = re.compile(r"_v\d+$")
_WRAPPED = re.compile(r"#vhlo\.(\w+?)_v\d+<")
_ENUMERATION = re.compile(r"#vhlo<(\w+?)_v\d+ (\w+)>")
_ELEMENT = re.compile(r"!vhlo\.(\w+?)_v\d+(?!\w|<)")
_GENERIC = re.compile(r"!vhlo\.(tensor|complex|tuple)_v\d+<")
# The handle of a constant that was taken out of the artifact.
_WEIGHTS = re.compile(r'#vhlo\.string_v\d+<"(axir\.\d+\.\d+)">$')
_DENSE = re.compile(r"dense<(.*)> : tensor<(\d+)xi(64|1)>$", re.DOTALL)
_ELEMENTS = {"bool": "i1", "token": "!stablehlo.token", "none": "none"}
_SYMBOLS = ("callee", "decomposition")
# Lists of integers that StableHLO holds as arrays of elements, too.
_KEPT_DENSE = ("value", "padding", "replica_groups", "source_target_pairs")
# Attributes that say how, not what, to compute, or with a form that only their program knows.
_DROPPED = (
    "accumulation_type",
    "allow_imprecise_accumulation",
    "api_version",
    "lhs_component_count",
    "lhs_precision_type",
    "num_primitive_operations",
    "operand_layouts",
    "output_operand_aliases",
    "result_accuracy",
    "result_layouts",
    "rhs_component_count",
    "rhs_precision_type",
)
_RENAMED = {"vhlo.cross_replica_sum": "stablehlo.cross-replica-sum", "vhlo.call": "func.call"}

_GATHER = (
    "offset_dims",
    "collapsed_slice_dims",
    "operand_batching_dims",
    "start_indices_batching_dims",
    "start_index_map",
    "index_vector_dim",
)
_SCATTER = (
    "update_window_dims",
    "inserted_window_dims",
    "input_batching_dims",
    "scatter_indices_batching_dims",
    "scatter_dims_to_operand_dims",
    "index_vector_dim",
)
_DOT = (
    "lhs_batching_dimensions",
    "rhs_batching_dimensions",
    "lhs_contracting_dimensions",
    "rhs_contracting_dimensions",
)
_CONVOLUTION = tuple(
    f"{array}_{part}"
    for array, parts in (
        ("input", ("batch_dimension", "feature_dimension", "spatial_dimensions")),
        (
            "kernel",
            ("input_feature_dimension", "output_feature_dimension", "spatial_dimensions"),
        ),
        ("output", ("batch_dimension", "feature_dimension", "spatial_dimensions")),
    )
    for part in parts
)
# The attribute that dimension numbers form, its text before them, and their names.
_NUMBERS = {
    "stablehlo.gather": ("dimension_numbers", "#stablehlo.gather<", _GATHER),
    "stablehlo.dynamic_gather": ("dimension_numbers", "#stablehlo.gather<", _GATHER),
    "stablehlo.scatter": ("scatter_dimension_numbers", "#stablehlo.scatter<", _SCATTER),
    "stablehlo.dot_general": ("dot_dimension_numbers", "#stablehlo.dot<", _DOT),
    "stablehlo.convolution": ("dimension_numbers", "#stablehlo.conv<raw ", _CONVOLUTION),
    "stablehlo.dynamic_conv": ("dimension_numbers", "#stablehlo.conv<raw ", _CONVOLUTION),
}


def is_portable_artifact(module: ir.Module) -> bool:
    """Tells whether a module holds functions of VHLO."""
    return any(view.operation.name.startswith("vhlo.") for view in module.body.operations)


def to_stablehlo(module: ir.Module) -> ir.Module:
    """Returns a module of VHLO as one of StableHLO.

    Raises:
        ParseError: if StableHLO lacks one of its operations.
    """
    with context(), module.operation.location:
        made = ir.Module.create()
        for name in module.operation.attributes:
            made.operation.attributes[name] = module.operation.attributes[name]
        values: dict[ir.Value, ir.Value] = {}
        with ir.InsertionPoint(made.body):
            for view in module.body.operations:
                _rebuild(view.operation, values, in_function=False)
    resources = resources_of(module)
    if resources is not None:
        remember_resources(made, resources)
    return made


# Operations -------------------------------------------------------------------------------------


def _rebuild(op: ir.Operation, values: dict[ir.Value, ir.Value], in_function: bool) -> None:
    """Builds an operation again where MLIR inserts them now."""
    name = _name_of(op, in_function)
    try:
        made = ir.Operation.create(
            name,
            [_type(result.type) for result in op.results],
            [values[operand] for operand in op.operands],
            dict(_attributes(op, name)),
            None,
            len(op.regions),
            op.location,
        )
    except (ir.MLIRError, ValueError) as error:
        raise _without_form(op.name, error, describe_location(op.location)) from None
    values.update(zip(op.results, made.results, strict=True))
    for region, old in zip(made.regions, op.regions, strict=True):
        for block in old.blocks:
            _rebuild_block(block, region, values, name == "func.func")


def _without_form(what: str, error: Exception, where: str | None = None) -> ParseError:
    return ParseError(
        f"{what} of this portable artifact has no form in StableHLO: {str(error).splitlines()[0]}.",
        "Save the program as text, which is exported.mlir_module() of jax.export.",
        where=where or "",
    )


def _rebuild_block(
    block: ir.Block, region: ir.Region, values: dict[ir.Value, ir.Value], in_function: bool
) -> None:
    arguments = list(block.arguments)
    types = [_type(argument.type) for argument in arguments]
    made = region.blocks.append(*types, arg_locs=[argument.location for argument in arguments])
    values.update(zip(arguments, made.arguments, strict=True))
    with ir.InsertionPoint(made):
        for view in block.operations:
            _rebuild(view.operation, values, in_function)


def _name_of(op: ir.Operation, in_function: bool) -> str:
    short = _VERSION.sub("", op.name)
    if short == "vhlo.func":
        return "func.func"
    if short == "vhlo.return":
        return "func.return" if in_function else "stablehlo.return"
    return _RENAMED.get(short, short.replace("vhlo.", "stablehlo.", 1))


def _attributes(op: ir.Operation, name: str) -> Iterator[tuple[str, ir.Attribute]]:
    texts = {key: str(op.attributes[key]) for key in op.attributes}
    if name.startswith("sdy."):  # which holds them where only a look-up finds them
        texts.update({key: str(op.attributes[key]) for key in NAMED if key in op.attributes})
    if name in _NUMBERS:
        whole, beginning, parts = _NUMBERS[name]
        entries = ", ".join(f"{part} = {_dimensions(texts.pop(part))}" for part in parts)
        yield whole, _parse(f"{beginning}{entries}>")
    if name == "stablehlo.constant" and (weights := _WEIGHTS.match(texts["value"])):
        texts["value"] = f'dense_resource<"{weights[1]}"> : {_type_text(str(op.results[0].type))}'
    if "channel_id" in texts:  # of what kind a channel is older artifacts leave out
        handle = _dimensions(texts.pop("channel_id"))
        kind = _dimensions(texts.pop("channel_type", "0"))
        yield (
            "channel_handle",
            _parse(f"#stablehlo.channel_handle<handle = {handle}, type = {kind}>"),
        )
    if _dimensions(texts.pop("use_global_device_ids", "false")) == "true":
        yield "use_global_device_ids", ir.UnitAttr.get()
    for key, text in texts.items():
        if key in _DROPPED or text == "#vhlo<comparison_type_v1 NOTYPE>":
            continue
        if key in ("sym_visibility", "arg_attrs", "res_attrs") and _unwrapped(text) in ('""', "[]"):
            continue
        yield key, _attribute(key, text)


def _attribute(key: str, text: str) -> ir.Attribute:
    plain = _unwrapped(text)
    if key in _SYMBOLS:
        return ir.FlatSymbolRefAttr.get(ir.StringAttr(_parse(plain)).value)
    dense = None if key in _KEPT_DENSE else _DENSE.match(plain)
    if dense is not None:
        return _array(dense[1], int(dense[2]), int(dense[3]))
    return _parse(plain)


def _array(body: str, count: int, width: int) -> ir.Attribute:
    entries = [entry.strip() for entry in body.strip("[]").split(",") if entry.strip()]
    if len(entries) == 1:
        entries *= count
    if width == 1:
        return ir.DenseBoolArrayAttr.get([entry == "true" for entry in entries])
    return ir.DenseI64ArrayAttr.get([int(entry) for entry in entries])


def _dimensions(text: str) -> str:
    """Returns a dimension as `1`, a list of dimensions as `[0, 1]`."""
    plain = _unwrapped(text)
    dense = _DENSE.match(plain)
    if dense is None:
        return plain.partition(" : ")[0]
    return str(list(_array(dense[1], int(dense[2]), 64)))


@functools.lru_cache(maxsize=4096)
def _parse(text: str) -> ir.Attribute:
    return ir.Attribute.parse(text, context())


# Types and attributes ---------------------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def _type(value_type: ir.Type) -> ir.Type:
    try:
        return ir.Type.parse(_type_text(str(value_type)), context())
    except ir.MLIRError as error:
        raise _without_form(f"The type {value_type}", error) from None


def _type_text(text: str) -> str:
    """Returns the text of a type in MLIR's and StableHLO's own terms.

    >>> _type_text("!vhlo.tensor_v1<2x!vhlo.complex_v1<!vhlo.f32_v1>>")
    'tensor<2xcomplex<f32>>'
    >>> _type_text("!vhlo.func_v1<(!vhlo.i32_v1) -> !vhlo.i32_v1, !vhlo.bool_v1>")
    '(i32) -> (i32, i1)'
    >>> _type_text("!vhlo.func_v1<(()) -> ()>")
    '() -> ()'
    """
    text = _GENERIC.sub(r"\1<", text)
    text = _ELEMENT.sub(lambda match: _ELEMENTS.get(match[1], match[1]), text)
    function = re.fullmatch(r"!vhlo\.func_v\d+<\((.*)\) -> (.*)>", text)
    if function is None:
        return text
    inputs, results = ("" if types == "()" else types for types in function.groups())
    return f"({inputs}) -> ({results})"


def _unwrapped(text: str) -> str:
    """Returns the text of an attribute in MLIR's and StableHLO's own terms.

    >>> _unwrapped('#vhlo.dict_v1<{#vhlo.string_v1<"k"> = #vhlo.integer_v1<2 : i64>}>')
    '{"k" = 2 : i64}'
    >>> _unwrapped("#vhlo<precision_v1 HIGH>")
    '#stablehlo<precision HIGH>'
    """
    parts = []
    position = 0
    while found := _WRAPPED.search(text, position):
        end = _closing(text, found.end())
        inside = text[found.end() : end]
        parts.append(_plain(text[position : found.start()]))
        parts.append(inside if found[1] in ("tensor", "string") else _inside(found[1], inside))
        position = end + 1
    return "".join([*parts, _plain(text[position:])])


def _inside(kind: str, text: str) -> str:
    return _type_text(text) if kind in ("type", "integer", "float") else _unwrapped(text)


def _plain(text: str) -> str:
    return _type_text(_ENUMERATION.sub(r"#stablehlo<\1 \2>", text)) if "vhlo" in text else text


_BRACKETS = re.compile(r'"|->|[<>]')


def _closing(text: str, position: int) -> int:
    """Returns where the bracket `<` before a position is closed."""
    depth = 1
    while found := _BRACKETS.search(text, position):
        position = found.end()
        if found[0] == '"':
            position = _end_of_string(text, position)
        depth += {"<": 1, ">": -1}.get(found[0], 0)
        if depth == 0:
            return found.start()
    return len(text)


def _end_of_string(text: str, position: int) -> int:
    """Returns where the string ends that begins before a position."""
    while (end := text.find('"', position)) >= 0:
        before = text[position:end]
        if (len(before) - len(before.rstrip("\\"))) % 2 == 0:
            return end + 1
        position = end + 1
    return len(text)
