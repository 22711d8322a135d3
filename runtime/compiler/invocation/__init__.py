"""Running IREE's compiler: the one implementation, for this process and for helper processes.

A helper process loads this folder alone, under a name of its own: nothing here imports what stands
outside the folder, but for the compiler. Elsewhere: whether to use a helper, and the life of one
(`helpers.py`).
"""

from __future__ import annotations
