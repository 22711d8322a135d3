"""Passes are imported in another thread during a wait; a fork waits for a module."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

PROGRAM = """
    import os, sys, time
    import numpy as np
    import axir
    from axir.runtime.compiler import waiting

    def imported():
        return len([name for name in sys.modules if name.startswith("axir.passes")])

    assert "axir.passes.tune.products.tile_products" not in sys.modules
    with waiting.passes_imported_meanwhile():
        # The helper that compiles this is waited for inside, and its answer is no end of it.
        axir.jit(lambda x: x + 1)(np.ones(3, np.float32))
        if os.fork() == 0:
            with waiting.passes_imported_meanwhile():
                import axir.passes.fuse.fuse_islands
            os._exit(0)
        status = os.wait()[1]
    time.sleep(0.1)  # a module that has been begun
    [thread] = waiting._threads
    before = imported()
    time.sleep(0.2)
    assert imported() == before
    with waiting.passes_imported_meanwhile():
        thread.join()
    assert "axir.passes.tune.products.tile_products" in sys.modules
    assert "axir.passes.fuse.fuse_islands" in sys.modules
    assert "axir.passes.legalize.sorting.sort_by_digits" not in sys.modules  # few need it
    print("status", status)
"""


def test_passes_are_imported_while_a_helper_compiles(tmp_path) -> None:
    environment = os.environ | {"AXIR_CACHE_DIR": str(tmp_path), "AXIR_ISOLATE_COMPILER": "auto"}
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "status 0\n", done.stderr
