"""Attributes and types of StableHLO, as MLIR's bindings have them: `PrecisionAttr.get("HIGH")`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iree.compiler import ir

from axir.dialect.core.annotations import UserObject

from .core import attribute


class _Words:
    """An attribute with a word from a fixed set as its value."""

    _name: str

    @classmethod
    def get(cls, value: str, context: ir.Context | None = None) -> ir.Attribute:
        """Returns the attribute of a word."""
        return attribute(f"#{cls._name} {value}>")


def _words(name: str, text: str) -> type[_Words]:
    return type(name, (_Words,), {"_name": text, "__doc__": f"Attributes `#{text} ...>`."})


ComparisonDirectionAttr = _words("ComparisonDirectionAttr", "stablehlo<comparison_direction")
ComparisonTypeAttr = _words("ComparisonTypeAttr", "stablehlo<comparison_type")
FftTypeAttr = _words("FftTypeAttr", "stablehlo<fft_type")
PrecisionAttr = _words("PrecisionAttr", "stablehlo<precision")
RngAlgorithmAttr = _words("RngAlgorithmAttr", "stablehlo<rng_algorithm")
RngDistributionAttr = _words("RngDistributionAttr", "stablehlo<rng_distribution")
TransposeAttr = _words("TransposeAttr", "stablehlo<transpose")
ResultAccuracyModeAttr = _words("ResultAccuracyModeAttr", "stablehlo<result_accuracy_mode")


def _structure(name: str, **parts: Sequence[int] | int | bool | str) -> ir.Attribute:
    """Returns an attribute of named parts; leaves out empty ones."""

    def shown(value: Sequence[int] | int | bool | str) -> str:
        if isinstance(value, (str, bool)):
            return str(value).lower() if isinstance(value, bool) else value
        return str(value) if isinstance(value, int) else f"[{', '.join(map(str, value))}]"

    kept = [f"{part} = {shown(value)}" for part, value in parts.items() if _counts(value)]
    return attribute(f"#stablehlo.{name}<{', '.join(kept)}>")


def _counts(value: Sequence[int] | int | bool | str) -> bool:
    return isinstance(value, (int, str)) or len(value) > 0


class DotDimensionNumbers:
    """The contracting and batch axes of a product."""

    @staticmethod
    def get(
        lhs_batching_dimensions: Sequence[int],
        rhs_batching_dimensions: Sequence[int],
        lhs_contracting_dimensions: Sequence[int],
        rhs_contracting_dimensions: Sequence[int],
        context: ir.Context | None = None,
    ) -> ir.Attribute:
        """Returns the attribute."""
        return _structure(
            "dot",
            lhs_batching_dimensions=lhs_batching_dimensions,
            rhs_batching_dimensions=rhs_batching_dimensions,
            lhs_contracting_dimensions=lhs_contracting_dimensions,
            rhs_contracting_dimensions=rhs_contracting_dimensions,
        )


class GatherDimensionNumbers:
    """The axes along which `gather` reads."""

    @staticmethod
    def get(
        offset_dims: Sequence[int],
        collapsed_slice_dims: Sequence[int],
        operand_batching_dims: Sequence[int],
        start_indices_batching_dims: Sequence[int],
        start_index_map: Sequence[int],
        index_vector_dim: int,
        context: ir.Context | None = None,
    ) -> ir.Attribute:
        """Returns the attribute."""
        return _structure(
            "gather",
            offset_dims=offset_dims,
            collapsed_slice_dims=collapsed_slice_dims,
            operand_batching_dims=operand_batching_dims,
            start_indices_batching_dims=start_indices_batching_dims,
            start_index_map=start_index_map,
            index_vector_dim=index_vector_dim,
        )


class ScatterDimensionNumbers:
    """The axes along which `scatter` writes."""

    @staticmethod
    def get(
        update_window_dims: Sequence[int],
        inserted_window_dims: Sequence[int],
        input_batching_dims: Sequence[int],
        scatter_indices_batching_dims: Sequence[int],
        scattered_dims_to_operand_dims: Sequence[int],
        index_vector_dim: int,
        context: ir.Context | None = None,
    ) -> ir.Attribute:
        """Returns the attribute."""
        return _structure(
            "scatter",
            update_window_dims=update_window_dims,
            inserted_window_dims=inserted_window_dims,
            input_batching_dims=input_batching_dims,
            scatter_indices_batching_dims=scatter_indices_batching_dims,
            scatter_dims_to_operand_dims=scattered_dims_to_operand_dims,
            index_vector_dim=index_vector_dim,
        )


class ConvDimensionNumbers:
    """The roles of the axes of a convolution."""

    @staticmethod
    def get(
        input_batch_dimension: int,
        input_feature_dimension: int,
        input_spatial_dimensions: Sequence[int],
        kernel_input_feature_dimension: int,
        kernel_output_feature_dimension: int,
        kernel_spatial_dimensions: Sequence[int],
        output_batch_dimension: int,
        output_feature_dimension: int,
        output_spatial_dimensions: Sequence[int],
        ctx: ir.Context | None = None,
    ) -> ir.Attribute:
        """Returns the attribute."""

        def shown(names: Mapping[int, str], spatial: Sequence[int]) -> str:
            axes = {**names, **{axis: str(n) for n, axis in enumerate(spatial)}}
            return ", ".join(axes[axis] for axis in range(len(axes)))

        lhs = shown(
            {input_batch_dimension: "b", input_feature_dimension: "f"}, input_spatial_dimensions
        )
        kernel = {kernel_input_feature_dimension: "i", kernel_output_feature_dimension: "o"}
        rhs = shown(kernel, kernel_spatial_dimensions)
        out = shown(
            {output_batch_dimension: "b", output_feature_dimension: "f"}, output_spatial_dimensions
        )
        return attribute(f"#stablehlo.conv<[{lhs}]x[{rhs}]->[{out}]>")


class ChannelHandle:
    """The channel of a message."""

    @staticmethod
    def get(handle: int, type: int, context: ir.Context | None = None) -> ir.Attribute:
        """Returns the attribute."""
        return attribute(f"#stablehlo.channel_handle<handle = {handle}, type = {type}>")


class TypeExtensions:
    """Bounds of the axes of a type."""

    @staticmethod
    def get(bounds: Sequence[int], context: ir.Context | None = None) -> ir.Attribute:
        """Returns the attribute; negative bounds mean no bound."""
        shown = ", ".join("?" if bound < 0 else str(bound) for bound in bounds)
        return attribute(f"#stablehlo.bounds<{shown}>")


class TokenType:
    """The type of tokens, which order effects."""

    @staticmethod
    def get(context: ir.Context | None = None) -> ir.Type:
        """Returns the type."""
        return ir.Type.parse("!stablehlo.token")


ATTRIBUTES: Mapping[str, UserObject] = {
    kind.__name__: kind
    for kind in (
        ChannelHandle, ComparisonDirectionAttr, ComparisonTypeAttr, ConvDimensionNumbers,
        DotDimensionNumbers, FftTypeAttr, GatherDimensionNumbers, PrecisionAttr,
        ResultAccuracyModeAttr, RngAlgorithmAttr, RngDistributionAttr, ScatterDimensionNumbers,
        TokenType, TransposeAttr, TypeExtensions,
    )
}  # fmt: skip
