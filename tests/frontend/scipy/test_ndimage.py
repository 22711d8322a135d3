"""`axir.scipy.ndimage` against SciPy and JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
import scipy.ndimage
from jax.scipy.ndimage import map_coordinates as jax_coordinates

import axir
import axir.numpy as jnp
from axir.scipy.ndimage import gaussian_filter, map_coordinates

_GENERATOR = np.random.default_rng(0)
IMAGE = _GENERATOR.standard_normal((5, 4)).astype(np.float32)
PLACES = _GENERATOR.uniform(-12, 15, (2, 3, 40)).astype(np.float32)
# What SciPy calls the modes.
MODES = {
    "constant": "grid-constant", "nearest": "nearest", "wrap": "grid-wrap", "mirror": "mirror",
    "reflect": "reflect",
}  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [0, 1])
def test_values_between_pixels(mode: str, order: int) -> None:
    for image in (IMAGE, (100 * IMAGE).astype(np.int32), IMAGE[:1]):
        ours = map_coordinates(image, PLACES, order, mode, cval=7)
        scipys = scipy.ndimage.map_coordinates(image, PLACES, order=order, mode=MODES[mode], cval=7)
        assert ours.dtype == image.dtype
        atol = 1 if image.dtype == np.int32 else 2e-5
        np.testing.assert_allclose(ours, scipys, atol=atol)
        other = map_coordinates(
            image, PLACES, order, MODES[mode].replace("reflect", "grid-mirror"), 7
        )
        np.testing.assert_array_equal(ours, other)


def test_compiled_with_derivatives() -> None:
    def loss(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda image, places: sum(
            (function(image, list(places), 1, mode, 0.5) ** 2).sum() for mode in MODES
        )

    ours = axir.jit(axir.grad(loss(map_coordinates), argnums=(0, 1)))(IMAGE, PLACES)
    theirs = jax.grad(loss(jax_coordinates), argnums=(0, 1))(IMAGE, PLACES)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-4)


def test_integer_positions() -> None:
    positions = np.array([[0, 4, 5], [1, -1, 0]])
    found = map_coordinates(IMAGE, positions, 1, "nearest")
    np.testing.assert_array_equal(found, IMAGE[[0, 4, 4], [1, 0, 0]])


BLURS: list[tuple[Any, dict[str, Any]]] = [
    (1.3, {}),
    ((0.6, 2.0), {"mode": "mirror"}),
    (0.9, {"order": (1, 2), "mode": ("nearest", "wrap")}),
    (1.1, {"order": 3, "truncate": 3.0, "mode": "constant", "cval": 2.0}),
    ((0.0, 1.0), {"mode": "grid-mirror"}),
]


def test_blurred_images() -> None:
    def blurred(x: Any) -> list[Any]:
        return [gaussian_filter(x, sigma, **options) for sigma, options in BLURS]

    expected = [scipy.ndimage.gaussian_filter(IMAGE, sigma, **options) for sigma, options in BLURS]
    for results in (blurred(IMAGE), axir.jit(blurred)(IMAGE)):
        for ours, scipys in zip(results, expected, strict=True):
            np.testing.assert_allclose(ours, scipys, atol=2e-5)
    along = gaussian_filter(IMAGE, 0.7, radius=2, axes=(1,))
    scipys = scipy.ndimage.gaussian_filter1d(IMAGE, 0.7, axis=1, radius=2)
    np.testing.assert_allclose(along, scipys, atol=2e-5)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: map_coordinates(IMAGE, [PLACES[0]], 1), "ShapeError", "there are 1 coordinates"),
        (lambda: map_coordinates(IMAGE, PLACES, 2), "ParameterError", "It is 0 or 1"),
        (lambda: map_coordinates(IMAGE, PLACES, 1, "x"), "ParameterError", "grid-wrap"),
        (lambda: map_coordinates(IMAGE[:0], PLACES, 1), "ShapeError", "is empty"),
        (lambda: gaussian_filter(IMAGE, -1), "ParameterError", "negative"),
        (lambda: gaussian_filter(IMAGE, (1, 2, 3)), "ShapeError", "3 entries for 2 axes"),
        (lambda: gaussian_filter(IMAGE, 1, mode="x"), "ParameterError", "mode is 'x'"),
        (lambda: gaussian_filter(IMAGE, 1, output=IMAGE), "ParameterError", "immutable"),
    ],
)
def test_errors(call: Callable[[], Any], error: str, text: str) -> None:
    with pytest.raises(axir.errors.AxirError) as caught:
        call()
    assert type(caught.value).__name__ == error
    assert text in str(caught.value)


def test_empty_images_are_blurred() -> None:
    assert gaussian_filter(jnp.ones((0, 3)), 1.0).shape == (0, 3)
