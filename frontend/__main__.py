"""`python -m axir` is the command `axir`."""

from __future__ import annotations

from axir.cli import main

if __name__ == "__main__":
    main()
