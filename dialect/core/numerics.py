"""IEEE arithmetic without NumPy's warnings, at a tenth of a microsecond.

axir's arithmetic is IEEE's: divisions by zero and overflows give infinities, silently, in eager
mode as in compiled code. `numpy.errstate` does this too, but costs more than a small operation; the
context variable behind it costs a tenth. If a NumPy release lacks that variable, `errstate` takes
its place.
"""

from __future__ import annotations

import numpy as np

from .annotations import Foreign

try:
    from numpy._core import umath as _umath

    _VARIABLE: Foreign = _umath._extobj_contextvar
    _IGNORE_ALL: Foreign = _umath._make_extobj(all="ignore")
except (ImportError, AttributeError):
    _VARIABLE = None

if _VARIABLE is not None:

    def ignore_floating_point_warnings() -> Foreign:
        """Silences floating-point warnings until the returned token is handed back."""
        return _VARIABLE.set(_IGNORE_ALL)

    def restore_warnings(token: Foreign) -> None:
        """Ends the effect of `ignore_floating_point_warnings`."""
        _VARIABLE.reset(token)

else:

    def ignore_floating_point_warnings() -> Foreign:
        """Silences floating-point warnings until the returned token is handed back."""
        manager = np.errstate(all="ignore")
        manager.__enter__()
        return manager

    def restore_warnings(token: Foreign) -> None:
        """Ends the effect of `ignore_floating_point_warnings`."""
        token.__exit__(None, None, None)
