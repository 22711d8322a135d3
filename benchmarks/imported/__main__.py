"""Runs whole models in PyTorch, ONNX Runtime and axir, in turn: `python -m benchmarks.imported`.

Needs torch, torch-mlir, onnx, onnxruntime and g++, and reports missing ones.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from benchmarks.harness.report import describe_machine
from benchmarks.harness.workers import Worker, WorkerError
from benchmarks.imported import rows as kept
from benchmarks.imported.contenders import Contender
from benchmarks.imported.measuring import measure
from benchmarks.imported.page import write_page
from benchmarks.imported.prepared import Maker
from benchmarks.imported.rows import OTHERS, WAYS, Row

_HERE = Path(__file__).parent
FILE, PAGE = _HERE / "figures.json", _HERE / "README.md"
TORCH_MODELS = ("mlp", "resnet", "mobilenet", "bert", "gpt", "lstm", "vit", "unet")
ONNX_MODELS = ("onnx-perceptron", "onnx-convolutional", "onnx-separable", "onnx-transformer",
               "onnx-gated")  # fmt: skip
_NEEDED = ("torch", "torch_mlir", "onnx", "onnxruntime")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.imported", description=__doc__)
    add = parser.add_argument
    add("models", nargs="*", help="models to run, with wildcards (all by default)")
    add("--batch", type=int, action="append", help="a batch size (1, 8 and 64; ONNX models 1)")
    add("--threads", type=int, action="append", help="a number of threads (1 and 2)")
    add("--way", action="append", choices=WAYS, help="a way to run them (all)")
    add("--rounds", type=int, default=15, help="rounds of each model (15)")
    add("--timeout", type=float, default=900, help="seconds that an answer may take (900)")
    add("--priority", type=int, help="niceness of what is timed, for who may set it")
    add("--folder", type=Path, help="where files of models are kept (a temporary folder)")
    add("--keep", action="store_true", help=f"merge the figures into {FILE.name} and {PAGE.name}")
    add("--page", action="store_true", help=f"write {PAGE.name} of the figures that are kept")
    return parser


def _missing() -> list[str]:
    missing = [name for name in _NEEDED if find_spec(name) is None]
    return missing + [name for name in ("g++",) if shutil.which(name) is None]


def _models(parser: argparse.ArgumentParser, patterns: list[str]) -> list[str]:
    names: dict[str, None] = {}
    for pattern in patterns or ["*"]:
        found = fnmatch.filter((*TORCH_MODELS, *ONNX_MODELS), pattern)
        if not found:
            parser.error(f"no model is named {pattern}")
        names.update(dict.fromkeys(found))
    return list(names)


def _cases(options: argparse.Namespace, models: list[str]) -> list[tuple[str, int]]:
    cases = []
    for model in models:
        sizes = options.batch or ([1] if model in ONNX_MODELS else [1, 8, 64])
        cases += [(model, batch) for batch in sizes]
    return cases


def _run(options: argparse.Namespace, cases: list[tuple[str, int]], folder: Path) -> None:
    console = Console(stderr=True)
    threads = options.threads or [1, 2]
    maker = Worker("maker", options.timeout, Maker)
    workers = {
        (way, count): Worker(f"{way}-{count}", options.timeout, Contender)
        for way in options.way or WAYS
        for count in threads
    }
    try:
        for model, batch in cases:
            where = folder / f"{model}-{batch}"
            try:
                made = maker.ask("make", model, batch, where)
            except WorkerError as error:
                console.print(f"{model} {batch}: {error}", style="red")
                continue
            for count in threads:
                row = Row(model, batch, count, made=made)
                chosen = {
                    way: worker
                    for (way, its), worker in workers.items()
                    if its == count and (model in TORCH_MODELS or way not in OTHERS[:2])
                }
                measure(row, chosen, where, options.rounds)
                _tell(console, row)
                if options.keep:  # at once: runs are long, and may be interrupted
                    _keep(row)
    finally:
        for worker in (maker, *workers.values()):
            worker.close()


def _tell(console: Console, row: Row) -> None:
    told = [f"{way} {time.median * 1e3:.3f}" for way, time in row.timings.items()]
    ratios = [f"{ratio:.2f}" for way in ("axir", "cpp") if (ratio := row.ratio(way))]
    console.print(f"{row.model} {row.batch}, threads {row.threads}: ms {', '.join(told)}; "
                  f"ratios {' '.join(ratios)}; load {row.load:.1f}", highlight=False)  # fmt: skip
    for way, why in row.failures.items():
        console.print(f"  {way}: {why}", style="red", highlight=False)


def _keep(row: Row) -> None:
    """Puts a row in the place of the one of its kind; ways that were not run keep their timings."""
    before = {each.key: each for each in kept.read(FILE)[1]} if FILE.exists() else {}
    if old := before.get(row.key):
        row.timings = {**old.timings, **row.timings}
        row.made = {**old.made, **row.made}
    merged = {**before, row.key: row}
    order = {name: index for index, name in enumerate((*TORCH_MODELS, *ONNX_MODELS))}
    ordered = sorted(merged.values(), key=lambda row: (order[row.model], *row.key[1:]))
    kept.write(FILE, describe_machine(), ordered)


def main() -> None:
    """Runs the models that the command line names."""
    parser = _parser()
    options = parser.parse_args()
    if options.page:
        write_page(PAGE, *kept.read(FILE))
        return
    if missing := _missing():
        print(f"Models of PyTorch and ONNX are not run: {', '.join(missing)} not found. "
              "Install torch, torch-mlir, onnx and onnxruntime.", file=sys.stderr)  # fmt: skip
        return
    cases = _cases(options, _models(parser, options.models))
    if options.priority is not None:
        os.environ["BENCHMARK_PRIORITY"] = str(options.priority)
    with tempfile.TemporaryDirectory(prefix="axir-bench-") as temporary:
        os.environ["AXIR_CACHE_DIR"] = f"{temporary}/cache"
        _run(options, cases, options.folder or Path(temporary))
    if options.keep:
        write_page(PAGE, *kept.read(FILE))
        print(f"wrote {FILE} and {PAGE}", file=sys.stderr)


if __name__ == "__main__":
    main()
