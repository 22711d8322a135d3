"""C++ from compiled programs: what calls the kernels, and the header that it stands on.

`compile_object` (`runtime/compiler/`) gives an object file of kernels and the program that calls
them. `reading/` reads that program, `emitting/` writes it as C++, `packaging/` writes the files.
Elsewhere: what users' functions, arguments and results are called (`axir._cpp`).
"""

from __future__ import annotations
