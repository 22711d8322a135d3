"""Passes are imported in another thread, which a fork waits for."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

PROGRAM = """
    import os, sys, threading
    import numpy as np
    import axir
    from axir.runtime.compiler import preloading

    assert "axir.passes.tune.products.tile_products" not in sys.modules
    axir.jit(lambda x: x + 1)(np.ones(3, np.float32))
    if os.fork() == 0:
        alive = [x for x in preloading._threads if x.is_alive()]
        os._exit(len(alive))
    status = os.wait()[1]
    [thread] = preloading._threads
    thread.join()
    assert "axir.passes.tune.products.tile_products" in sys.modules
    assert "axir.passes.legalize.sorting.sort_by_digits" in sys.modules
    print("status", status)
"""


def test_passes_are_imported_while_a_helper_compiles(tmp_path) -> None:
    environment = os.environ | {"AXIR_CACHE_DIR": str(tmp_path), "AXIR_ISOLATE_COMPILER": "auto"}
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "status 0\n", done.stderr
