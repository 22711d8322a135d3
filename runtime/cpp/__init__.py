"""C++ from compiled programs: the code that calls the kernels, and the header that it includes.

`compile_object` (`runtime/compiler/`) returns an object file of kernels and the program that calls
them. `reading/` reads that program, `emitting/` writes it as C++, `emission.py` writes the files.
Elsewhere: the C++ names of users' functions, arguments and results (`axir._cpp`).
"""

from __future__ import annotations
