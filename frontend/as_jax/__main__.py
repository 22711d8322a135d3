"""`python -m axir.as_jax` runs a script, module or string in which `import jax` gives axir."""

from __future__ import annotations

import sys

from axir._as_jax.command import main

if __name__ == "__main__":
    main(sys.argv[1:])
