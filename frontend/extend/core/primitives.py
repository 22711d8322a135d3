"""The primitives of axir, under names that end in `_p`.

>>> from axir.extend.core import primitives
>>> primitives.sin_p.name
'sin'
"""

from __future__ import annotations

from axir._primitive_names import OTHER_NAMES, composite_primitives, primitive_named
from axir.dialect.core.annotations import UserObject
from axir.dialect.program.op_table import OPS


def __getattr__(name: str) -> UserObject:
    """Returns the primitive behind a name: `exp_p`, `dot_general_p` ..."""
    if name == "__all__":
        return __dir__()
    primitive = primitive_named(name)
    if primitive is None:
        raise AttributeError(f"module 'axir.extend.core.primitives' has no attribute {name!r}")
    return primitive


def __dir__() -> list[str]:
    return sorted({*OTHER_NAMES, *(f"{name}_p" for name in (*OPS, *composite_primitives()))})
