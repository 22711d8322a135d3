"""Ways to run a model, each in a separate process that answers requests."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.imported.cpp_program import TimedProgram, results_of
from benchmarks.imported.prepared import BUNDLE, CPP, ONNX_FILE

# A round is about as long as the harness's other ones, and no call is left out of a round.
SECONDS_OF_A_ROUND = 0.03
Run = Callable[[], Any]


@dataclass(frozen=True)
class Loaded:
    """Data of the first calls of a model.

    Attributes:
        error: Largest difference from the results expected, by the largest value of their array.
        loading: Seconds until the model could be called.
        first: Seconds of the first call, compiling included.
        calls: How many calls make a round.
    """

    error: float
    loading: float
    first: float
    calls: int


class Contender:
    """A way to run models, and the one that it has loaded.

    Args:
        name: The way and the number of threads, such as `eager-2`.
    """

    def __init__(self, name: str) -> None:
        warnings.simplefilter("ignore")
        self._way, _, threads = name.partition("-")
        self._threads = int(threads)
        self._load = _WAYS[self._way](self._threads)
        self._run: Run = lambda: None
        self._program: TimedProgram | None = None

    def load(self, name: str, batch: int, folder: Path) -> Loaded:
        """Loads a model, compares its results, and calls it until it is warm."""
        self.drop()
        start = time.perf_counter()
        made = self._load(name, batch, folder)
        loading = time.perf_counter() - start
        want = list(np.load(folder / "results.npz").values())
        if isinstance(made, TimedProgram):
            self._program, first = made, made.first
            got = results_of(folder / CPP, want)
        else:
            start = time.perf_counter()
            self._run, result = made, made()
            first = time.perf_counter() - start
            got = [np.asarray(each) for each in result]
            self._settle()
        error = _error(got, want)
        once = min(self.time(1)[0])
        warm = self.time(max(5, min(500, int(0.5 / once))))[0]
        once = sorted(warm)[len(warm) // 2]
        return Loaded(error, loading, first, max(1, int(SECONDS_OF_A_ROUND / once)))

    def time(self, calls: int) -> tuple[list[float], float]:
        """Returns the wall-clock seconds of each call, and the processor seconds of all threads."""
        if self._program:
            return self._program.time(calls)
        times, run, clock = [], self._run, time.perf_counter
        used = time.process_time()
        for _ in range(calls):
            start = clock()
            run()
            times.append(clock() - start)
        return times, time.process_time() - used

    def processes(self) -> list[int]:
        """Returns the processes below this one that compute."""
        return [self._program.process_id] if self._program else []

    def _settle(self) -> None:
        """Waits for what axir compiles while its first program serves."""
        if self._way == "axir":
            import axir

            axir.extend.backend.wait_for_compilers()

    def drop(self) -> int:
        """Forgets the model."""
        self._run = lambda: None
        if self._program:
            self._program.close()
            self._program = None
        return 0


def _error(got: list[np.ndarray], want: list[np.ndarray]) -> float:
    if [each.shape for each in got] != [each.shape for each in want]:
        return float("inf")
    return max(
        float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-30))
        for ours, theirs in zip(got, want, strict=True)
    )


def _arguments(folder: Path) -> dict[str, np.ndarray]:
    return dict(np.load(folder / "arguments.npz"))


def _eager(threads: int, compiled: bool = False) -> Callable[[str, int, Path], Run]:
    import torch

    torch.set_num_threads(threads)

    def load(name: str, batch: int, _: Path) -> Run:
        from benchmarks.imported.torch_models import MODELS

        module, tensors = MODELS[name].seeded(), MODELS[name].arguments(batch)
        if compiled:
            torch.compiler.reset()
            module = torch.compile(module)

        def run() -> tuple[Any, ...]:
            with torch.inference_mode():
                result = module(*tensors)
            return result if isinstance(result, tuple) else (result,)

        return run

    return load


def _compiled(threads: int) -> Callable[[str, int, Path], Run]:
    return _eager(threads, compiled=True)


def _onnxruntime(threads: int) -> Callable[[str, int, Path], Run]:
    import onnxruntime

    def load(name: str, batch: int, folder: Path) -> Run:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(folder / ONNX_FILE, options)
        names = [each.name for each in session.get_inputs()]
        given = dict(zip(names, _arguments(folder).values(), strict=True))
        return lambda: session.run(None, given)

    return load


def _axir(threads: int) -> Callable[[str, int, Path], Run]:
    import axir

    axir.config.update("axir_num_threads", threads)
    axir.config.update("jax_enable_x64", True)

    def load(name: str, batch: int, folder: Path) -> Run:
        function = axir.export.load(folder / BUNDLE)
        given = [axir.numpy.asarray(each) for each in _arguments(folder).values()]
        wait = axir.block_until_ready

        return lambda: wait(axir.tree.leaves(function(*given)))

    return load


def _cpp(threads: int) -> Callable[[str, int, Path], TimedProgram]:
    return lambda name, batch, folder: TimedProgram(folder / CPP, threads)


_WAYS: dict[str, Callable[[int], Callable[[str, int, Path], Any]]] = {
    "eager": _eager,
    "compiled": _compiled,
    "onnxruntime": _onnxruntime,
    "axir": _axir,
    "cpp": _cpp,
}
