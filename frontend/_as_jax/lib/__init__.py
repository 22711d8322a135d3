"""The module `jax.lib` where axir stands in for JAX: the parts of it that documents of 2020 use.

Elsewhere: XLA itself. `xla_client` has the builders of operations for translation rules, and
nothing that compiles or runs.
"""

from __future__ import annotations

from axir._as_jax.version import __version__, __version_info__

__all__ = ["__version__", "__version_info__"]
