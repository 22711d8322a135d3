"""Runs programs and libraries that were written for JAX, unchanged.

As the first import of a program, `import axir.as_jax` makes `import jax` and all that begins with
`jax.` give axir's modules. `python -m axir.as_jax script.py`, `python -m axir.as_jax -m module` and
`python -m axir.as_jax -c code` do so for a program that knows nothing of axir, and
`pytest -p axir.as_jax` for tests, in the processes of pytest-xdist as well.

Raises:
    RealJaxLoadedError: if this process has imported JAX itself before.
"""

from __future__ import annotations

from axir._as_jax import JAX_VERSION
from axir._as_jax.errors import JaxModuleNotFoundError, JaxNameError, RealJaxLoadedError
from axir._as_jax.installation import install

__all__ = ["JAX_VERSION", "JaxModuleNotFoundError", "JaxNameError", "RealJaxLoadedError"]

install()
