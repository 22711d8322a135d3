"""Part of the report: the samples of the op table, in batches, beside the evaluator's values."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from axir.runtime import Device

from .items import Item
from .rows import Row

BATCHES = 3
# Errors are named by their cause, values by the word of the comparison.
_WRONG = " differ; at "


def batch(number: int, is_tiny: bool) -> Iterator[Item]:
    """Yields the ops of a batch; a few of them, if they are to be tiny."""
    from support.op_cases import sampled_ops  # late: the tests' folder is on the path by now

    names = sampled_ops()[number::BATCHES]
    for name in names[:: len(names) // 4] if is_tiny else names:
        yield Item(name, functools.partial(_run, name), functools.partial(_prepare, name))


def _prepare(name: str, device: Device) -> None:
    from support.gpu_ops import compile_cases, gpu_cases  # late: as above

    compile_cases(gpu_cases(name), device)


def _run(name: str, device: Device) -> list[Row]:
    from support.gpu_ops import gpu_cases, run_cases  # late: as above

    cases = gpu_cases(name)
    problems, refused = run_cases(cases, device)
    rows = [
        Row(name, "wrong" if _WRONG in text else "error", text.splitlines()[0]) for text in problems
    ]
    rows += [Row(name, "refused", f"{case}: {text}") for case, text in refused.items()]
    return rows or [Row(name, "right", f"{len(cases)} programs")]
