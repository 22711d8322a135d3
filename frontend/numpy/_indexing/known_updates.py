"""Updates of small arrays with known values and positions: NumPy does them at once.

Elsewhere: updates by ops, which any array takes (`index_update.py`).
"""

from __future__ import annotations

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import IndexLike, Options
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.config import config
from axir.dialect.core.host_arrays import ignore_floating_point_warnings, restore_warnings
from axir.dialect.core.state import state

from .indexing import numpy_index

# Arrays up to this size are updated by NumPy, if all is known.
_SMALL = 2048
_IN_PLACE: dict[str, Options] = {
    "set": None,
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


def update_known(
    x: ConcreteArray, index: IndexLike, kind: str, values: ConcreteArray, is_plain: bool
) -> ConcreteArray | None:
    """Updates a small array as NumPy does with its memory, which is faster than doing it by ops.

    Returns None where NumPy's rules are others: for positions out of bounds, for `mode`s unless all
    positions are inside, for masks beside values, for values that do not broadcast, and for many
    positions.
    """
    if state.keeps_origins or x.remote_device is not None:
        return None
    if kind not in _IN_PLACE or values.dtype != x.dtype or max(x.size, values.size) > _SMALL:
        return None
    if config.jax_debug_nans or config.jax_debug_infs:
        return None
    known = numpy_index(index if type(index) is tuple else (index,))
    if known is None or not (is_plain or _is_inside(known, x.shape)):
        return None
    if any(getattr(item, "dtype", None) == np.bool_ for item in known):
        return None
    if any(getattr(item, "size", 0) > _SMALL for item in known):
        return None
    if kind in ("add", "subtract", "multiply") and x.dtype == dtypes.bool_:
        return None
    host = np.array(x.host(), order="C")
    combine = _IN_PLACE[kind]
    token = ignore_floating_point_warnings()
    try:
        if combine is None:
            host[known] = values.host()
        else:
            combine.at(host, known, values.host())
    except (IndexError, TypeError, ValueError):
        return None
    finally:
        restore_warnings(token)
    return ConcreteArray(x.type, host, None, x._device)


def _is_inside(known: tuple[object, ...], shape: tuple[int, ...]) -> bool:
    """Tells whether an index is one array of positions, all of them inside and not negative."""
    if len(known) != 2 or type(known[0]) is not np.ndarray or not shape:
        return False
    positions = known[0]
    return positions.dtype.kind in "iu" and bool(((positions >= 0) & (positions < shape[0])).all())
