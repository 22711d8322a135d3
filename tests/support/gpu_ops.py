"""The samples of the op table on a GPU: right, or refused with a reason."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from axir.dialect.core.config import config
from axir.runtime import Device

from .op_cases import Case, cases_of, differences, joined
from .op_programs import Results, compiled_together

_REORDERED = {"cumprod"}


def gpu_cases(name: str) -> dict[str, Case]:
    """Returns the cases of an op, by the names of their functions."""
    return {f"{name}_{case.index}": case for case in joined(cases_of(name))}


def compile_cases(cases: dict[str, Case], device: Device) -> None:
    """Compiles cases for a device as `run_cases` does, and runs none."""
    config.update("jax_enable_x64", True)
    functions = {name: case.function() for name, case in cases.items()}
    for _ in compiled_together(functions, True, device):
        pass


def run_cases(cases: dict[str, Case], device: Device) -> tuple[list[str], dict[str, str]]:
    """Runs cases on a device; returns problems, and the reasons of refusals, by case."""
    config.update("jax_enable_x64", True)
    results = Results({n: (c.function(), c.args) for n, c in cases.items()}, True, device)
    problems, refused = list[str](), dict[str, str]()
    for symbol, text in results.failures.items():
        if results.is_refused(symbol):
            refused[str(cases[symbol])] = text.splitlines()[0]
        else:
            problems.append(f"{cases[symbol]}: {text}")
    for symbol, case in cases.items():
        if symbol in results.failures:
            continue
        problems += differences(
            str(case),
            comparable(case, results[symbol]),
            comparable(case, case.evaluate()),
            case.tolerance,
            is_elementwise=case.is_elementwise,
            or_else=[comparable(case, x) for x in case.evaluate_flushed()],
            zero_signs=False,  # sums of zeros may have either sign on GPUs
        )
    return problems, refused


def comparable(case: Case, results: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    """Returns results to compare.

    If products of complex numbers are formed in another order than the evaluator's, infinite parts
    of these may become nan, or the reverse: all values that are not finite count as nan.
    """
    if case.primitive.name not in _REORDERED:
        return results
    return [
        np.where(np.isfinite(x), x, x.dtype.type(np.nan)) if np.iscomplexobj(x) else x
        for x in results
    ]
