"""Convolutions in groups on a GPU, which Vulkan's compiler gets wrong as they are."""

from __future__ import annotations

from typing import Any

import numpy as np

import axir
from axir import lax
from axir.runtime import Device

RNG = np.random.default_rng(0)


def test_convolutions_in_groups(gpu: Device) -> None:
    shapes = ((2, 4, 6, 6), (6, 2, 3, 3))
    arrays = [RNG.normal(size=shape).astype(np.float32) for shape in shapes]

    def loss(x: Any, k: Any) -> Any:
        y = lax.conv_general_dilated(x, k, (1, 1), "VALID", feature_group_count=2)
        return (y**2).sum(), y

    found = [
        axir.jit(axir.grad(loss, (0, 1), has_aux=True), device=device)(*arrays)
        for device in (gpu, axir.devices("cpu")[0])
    ]
    for ours, expected in zip(*map(axir.tree.leaves, found), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-4)
