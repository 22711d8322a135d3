"""`axir.image`: images, of any number of dimensions, resized, scaled and moved.

>>> import axir.numpy as jnp
>>> from axir.image import resize
>>> resize(jnp.array([[0.0, 1.0]]), (1, 4), "linear")
Array([[0.  , 0.25, 0.75, 1.  ]], dtype=float32)
"""

from __future__ import annotations

from ._methods import ResizeMethod
from ._resampling import resize, scale_and_translate

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]
