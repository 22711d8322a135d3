"""Long random programs as C++: one model of several, with the evaluator's results.

The small ones are written as StableHLO, and raised, before.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support import cpp_models
from support.random_pool_checks import Expected
from support.random_pools import draw
from support.small_pools import EARLY_UPDATES

import axir
from axir.dialect.core.config import config
from axir.dialect.ops.calls.jit_call import set_executor
from axir.dialect.program.function_tracing import trace_function
from axir.export import Exported, export, load

# Seed, length and kind.
DRAWN = [(1, 60, "single"), (3, 60, "single"), (1, 60, "mixed"), (1, 60, "narrow")]


@pytest.fixture(autouse=True)
def evaluated_calls() -> Iterator[None]:
    """Makes the evaluator run the bodies of calls, which are compiled otherwise."""
    executor = set_executor(None)
    yield
    set_executor(executor)


def raised(exported: Exported, folder: Path) -> Exported:
    path = folder / f"{exported.fun_name}.mlir"
    path.write_text(exported.stablehlo())
    return load(path)


def test_emitted_programs_agree_with_the_evaluator(tmp_path: Path) -> None:
    exported, expected, arguments = {}, {}, {}
    with config(jax_enable_x64=True):
        cases = {}
        for seed, length, kind in DRAWN:
            program = draw(seed, length, kind)
            cases[f"{kind}_{seed}"] = (program.callable(), program.arguments())
        for name, (function, *values) in EARLY_UPDATES.items():
            cases[name] = (function, [axir.numpy.asarray(x) for x in values])
        for name, (function, values) in cases.items():
            exported[name] = export(function)(*values)
            if name in EARLY_UPDATES:
                exported[name] = raised(exported[name], tmp_path)
            traced = trace_function(
                lambda *xs, f=function: axir.tree.leaves(f(*xs)), [x.type for x in values]
            )
            expected[name] = Expected(traced, values, 0)
            arguments[name] = [np.asarray(x.host()) for x in values]
        emitted = cpp_models.emit(exported, tmp_path, "pools")
    program = cpp_models.build(tmp_path, "driver", cpp_models.driver(emitted.interface))
    cpp_models.write_inputs(tmp_path, emitted.interface, arguments)
    cpp_models.run(program)
    for name in cases:
        found = cpp_models.read_outputs(tmp_path, emitted.interface, name)
        assert list(expected[name].problems(found)) == [], name
