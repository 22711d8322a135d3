"""Runs IREE's compiler: the one implementation, in this process and in helper processes.

A helper process loads only this folder, under a separate module name: the files here import nothing
from outside the folder except the compiler. Elsewhere: whether to use a helper, and a helper's life
(`helpers.py`).
"""

from __future__ import annotations
