"""dtypes: the promotion lattice against JAX's, the 64-bit switch, conversions to MLIR and back."""

from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest
from jax._src import dtypes as jax_dtypes

from axir.dialect.core import dtypes
from axir.dialect.core.config import config
from axir.dialect.core.errors import DTypeError, ShapeError
from axir.dialect.core.types import ShapedArray, element_type, numpy_dtype, type_of_mlir

WEAK = (int, float, complex)
NODES = [*dtypes.ALL, *WEAK]


def _pair(node) -> tuple[np.dtype, bool]:
    return (dtypes.as_dtype(node), True) if isinstance(node, type) else (node, False)


@pytest.mark.parametrize("enable_x64", [False, True])
def test_promotion_is_jax_lattice(enable_x64: bool) -> None:
    differences = []
    with config(jax_enable_x64=enable_x64), jax.enable_x64(enable_x64):
        nodes = [
            n
            for n in NODES
            if enable_x64 or isinstance(n, type) or n == dtypes.canonicalize_dtype(n)
        ]
        for first, second in itertools.product(nodes, nodes):
            ours = dtypes.promote([_pair(first), _pair(second)])
            values = [
                n(0) if isinstance(n, type) else jax.numpy.zeros((), n) for n in (first, second)
            ]
            dtype, is_weak = jax_dtypes.lattice_result_type(*values)
            expected = (dtypes.canonicalize_dtype(dtype), bool(is_weak))
            if ours != expected:
                differences.append((first, second, ours, expected))
    assert not differences


def test_sixty_four_bits_are_truncated_unless_enabled() -> None:
    assert dtypes.canonicalize_dtype("float64") == np.float32
    assert dtypes.scalar_dtype(1) == np.int32
    with config(jax_enable_x64=True):
        assert dtypes.canonicalize_dtype("complex128") == np.complex128
        assert dtypes.scalar_dtype(1.0) == np.float64


def test_strict_promotion_allows_only_weak_types_to_yield() -> None:
    with config(jax_numpy_dtype_promotion="strict"):
        assert dtypes.promote([_pair(dtypes.float32), _pair(float)]) == (np.float32, False)
        with pytest.raises(DTypeError, match="Strict dtype promotion does not allow to mix"):
            dtypes.promote([_pair(dtypes.float32), _pair(dtypes.int32)])


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_types_survive_mlir(dtype: np.dtype) -> None:
    assert numpy_dtype(element_type(dtype)) is dtype
    array_type = ShapedArray((2, 3), dtype)
    assert type_of_mlir(array_type.mlir) is array_type


def test_types_are_interned() -> None:
    assert ShapedArray([2, np.int64(3)], "float32") is ShapedArray((2, 3), np.float32)
    assert ShapedArray((2,), np.float32, True) is not ShapedArray((2,), np.float32)
    assert str(ShapedArray((2, 3), np.float32)) == "float32[2,3]"
    assert ShapedArray((), dtypes.bfloat16).str_short(short_dtypes=True) == "bf16[]"


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (
            lambda: ShapedArray((2,), "datetime64[s]"),
            DTypeError,
            "is not one that axir computes with",
        ),
        (lambda: ShapedArray((2,), "nonsense"), DTypeError, "'nonsense' is not a dtype."),
        (lambda: ShapedArray((-1,), "float32"), ShapeError, "Shape (-1,) has a negative extent."),
        (lambda: ShapedArray(3, "float32"), ShapeError, "3 is not a shape."),
    ],
)
def test_errors(make, error, text) -> None:
    with pytest.raises(error) as caught:
        make()
    assert text in str(caught.value)
