"""Parts of the report: where arrays lie, calls that do not wait, the demo, tests of GPUs."""

from __future__ import annotations

import functools
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import axir
import axir.numpy as jnp
from axir.runtime import Device, OutOfMemoryError

from .items import Item
from .rows import Row

_ROOT = Path(__file__).resolve().parents[2]
_SIDE = (2048, 64)
_STEPS = 40
_EPOCHS = (15, 2)
_LEAST_ACCURACY = 0.95
_BATCH = 64
_TESTS = ("placement", "host_calls", "reductions", "convolutions", "training")


class _UnexpectedError(Exception):
    """Something is not as it should be."""


def _expect(condition: object, text: str) -> None:
    if not condition:
        raise _UnexpectedError(text)


def behavior(is_tiny: bool) -> Iterator[Item]:
    """Yields items about the behaviour of a device, apart from values and times."""
    for name, check in _CHECKS.items():
        yield Item(name, functools.partial(_checked, name, check))
    yield Item("memory that is not there", _out_of_memory, _prepare_much)
    yield Item(
        "calls that do not wait",
        functools.partial(_asynchronous, _SIDE[is_tiny]),
        functools.partial(_prepare_product, _SIDE[is_tiny]),
    )
    yield Item("a tiny call", _overhead)
    yield Item("the demo", functools.partial(_demo, _EPOCHS[is_tiny]), _prepare_demo)


def _checked(name: str, check: Callable[[Device], None], device: Device) -> list[Row]:
    try:
        check(device)
    except (_UnexpectedError, AssertionError) as error:
        return [Row(name, "wrong", " ".join(str(error).split())[:400])]
    return [Row(name, "right")]


def _results_lie_there(device: Device) -> None:
    call = axir.jit(lambda t: {"sum": t["a"] + t["b"], "first": t["a"][0]}, device=device)
    tree = {"a": np.arange(4, dtype=np.float32), "b": np.ones(4, np.float32)}
    for _ in range(3):
        found = call(tree)
        _expect(found["sum"].devices() == {device}, f"the sum is on {found['sum'].devices()}")
        np.testing.assert_array_equal(found["sum"], [1, 2, 3, 4])
    moved = axir.device_put(found["sum"], axir.devices("cpu")[0])
    np.testing.assert_array_equal(moved, [1, 2, 3, 4])


def _single_ops(device: Device) -> None:
    host = np.random.default_rng(0).standard_normal((3, 4), np.float32)
    x = axir.device_put(host, device)
    for got, want in (
        (x * x[0] + 1, host * host[0] + 1),
        (x @ x.T, host @ host.T),
        (jnp.sort(x, 1), np.sort(host, 1)),
    ):
        _expect(got.devices() == {device}, f"the result is on {got.devices()}")
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def _donation(device: Device) -> None:
    step = axir.jit(lambda x: x.at[0].set(5.0), donate_argnums=0)
    x = axir.device_put(np.zeros(4, np.float32), device)
    y = step(x)
    _expect(x.is_deleted(), "the argument is still there")
    np.testing.assert_array_equal(step(y), [5, 0, 0, 0])


def _host_calls(device: Device) -> None:
    like = axir.ShapeDtypeStruct((4,), np.float32)

    def program(x: Any) -> Any:
        return axir.pure_callback(lambda x: np.asarray(x) * 3, like, x + 1) * 2

    x = axir.device_put(np.arange(4, dtype=np.float32), device)
    for _ in range(2):
        np.testing.assert_array_equal(axir.jit(program)(x), [6, 12, 18, 24])


def _memory_is_counted(device: Device) -> None:
    before = _bytes_in_use(device)
    arrays = [axir.device_put(np.zeros(1 << 20, np.float32), device) for _ in range(8)]
    used = _bytes_in_use(device) - before
    _expect(used >= 8 << 22, f"32 MiB take {used} bytes")
    arrays.clear()
    left = _bytes_in_use(device) - before
    _expect(left < 8 << 22, f"{left} bytes are left of 32 MiB")


def _bytes_in_use(device: Device) -> int:
    stats = device.memory_stats()
    _expect(stats is not None, "the device counts no memory")
    assert stats is not None
    return stats["bytes_in_use"]


def _much(x: Any) -> Any:
    return jnp.zeros((1 << 30, 300)) + x


def _prepare_much(device: Device) -> None:
    axir.jit(_much, device=device).lower(1.0).compile()


def _out_of_memory(device: Device) -> list[Row]:
    name = "memory that is not there is refused, and the process goes on"
    if device.platform != "cuda":
        return [Row(name, "refused", "for CUDA alone: a program for 1.3 TB")]
    try:
        axir.block_until_ready(axir.jit(_much, device=device)(1.0))
    except OutOfMemoryError as error:
        text = error.message
    else:
        return [Row(name, "wrong", "1.3 TB were allocated")]
    again = axir.jit(lambda x: x + 1, device=device)(np.ones(4, np.float32))
    is_right = np.array_equal(again, [2, 2, 2, 2])
    return [Row(name, "right" if is_right else "wrong", text)]


_CHECKS: dict[str, Callable[[Device], None]] = {
    "results lie where the program ran": _results_lie_there,
    "single ops run where their operands lie": _single_ops,
    "donated arguments are given up": _donation,
    "programs call functions of the host": _host_calls,
    "memory is counted, and given back": _memory_is_counted,
}


def _product(x: Any) -> Any:
    return x @ x * np.float32(1e-3)


def _prepare_product(side: int, device: Device) -> None:
    argument = axir.ShapeDtypeStruct((side, side), np.dtype(np.float32))
    axir.jit(_product, device=device).lower(argument).compile()


def _asynchronous(side: int, device: Device) -> list[Row]:
    """Tells how long calls take to return, and how long until their results are there."""
    call = axir.jit(_product, device=device)
    x = axir.device_put(np.full((side, side), 0.5, np.float32), device)
    for _ in range(6):
        axir.block_until_ready(call(x))
    start = time.perf_counter()
    y = x
    for _ in range(_STEPS):
        y = call(y)
    returned = time.perf_counter() - start
    axir.block_until_ready(y)
    done = time.perf_counter() - start
    text = f"{_STEPS} products of {side} x {side}, each of the one before: returned after "
    text += f"{1e3 * returned:.2f} ms, done after {1e3 * done:.2f} ms"
    return [Row("calls that do not wait", "told", text)]


def _overhead(device: Device) -> list[Row]:
    call = axir.jit(lambda x: x + 1, device=device)
    x = axir.device_put(np.ones(8, np.float32), device)
    times = []
    for _ in range(200):
        start = time.perf_counter()
        axir.block_until_ready(call(x))
        times.append(time.perf_counter() - start)
    start = time.perf_counter()
    for _ in range(200):
        x = call(x)
    axir.block_until_ready(x)
    in_a_row = (time.perf_counter() - start) / 200
    median = float(np.median(times))
    text = f"{1e6 * median:.0f} us, waited for; {1e6 * in_a_row:.0f} us each of 200 in a row"
    return [Row("a tiny call", "told", text)]


def _digits() -> Any:
    if str(_ROOT / "examples") not in sys.path:
        sys.path.append(str(_ROOT / "examples"))
    return importlib.import_module("digits")


def _prepare_demo(device: Device) -> None:
    """Compiles the training step; the other programs are small."""
    digits = _digits()
    params = digits.init(axir.random.PRNGKey(0))
    momentum = axir.tree_util.tree_map(jnp.zeros_like, params)
    images, labels = np.zeros((_BATCH, 64), np.float32), np.zeros(_BATCH, np.int64)
    step = axir.jit(digits.step.__wrapped__, device=device)
    step.lower(params, momentum, images, labels, 0.1).compile()


def _demo(epochs: int, device: Device) -> list[Row]:
    digits = _digits()
    train_set, test_set = digits.load_digits()
    start = time.perf_counter()
    params, curves = digits.train(train_set, test_set, epochs, device=device)
    seconds = time.perf_counter() - start
    where = {x.device for x in axir.tree_util.tree_leaves(params)}
    accuracy = curves[-1, 2]
    is_right = where == {device} and (accuracy >= _LEAST_ACCURACY or epochs == _EPOCHS[1])
    text = f"accuracy {accuracy:.2%} after {epochs} epochs, {seconds:.1f} s, on {where}"
    return [Row("the demo", "right" if is_right else "wrong", text)]


def tests(is_tiny: bool) -> Iterator[Item]:
    """Yields files of the project's GPU tests, if pytest is installed."""
    for name in _TESTS[:1] if is_tiny else _TESTS:
        yield Item(f"test_{name}.py", functools.partial(_run_tests, name))


def _run_tests(name: str, device: object) -> list[Row]:
    needed = ("pytest", "xdist", "hypothesis", "jax")
    missing = [x for x in needed if importlib.util.find_spec(x) is None]
    if missing:
        return [Row(f"test_{name}.py", "refused", f"not installed: {', '.join(missing)}")]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "tests.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += [f"--junitxml={report}", f"{_ROOT}/tests/gpu/test_{name}.py"]
        chosen = {"TEST_GPU": "any", "GPU_TESTS": "all", "TEST_COMPILER": "iree"}
        environment = chosen | dict(os.environ)
        result = subprocess.run(
            command, cwd=_ROOT, env=environment, capture_output=True, text=True, check=False
        )
        if not report.exists():
            end = " | ".join((result.stdout + result.stderr).splitlines()[-5:])
            return [Row(f"test_{name}.py", "error", end)]
        return [_row_of_test(case) for case in ElementTree.parse(report).iter("testcase")]


def _row_of_test(case: ElementTree.Element) -> Row:
    name, seconds = case.get("name", ""), float(case.get("time", 0))
    for kind, verdict in (("failure", "wrong"), ("error", "error"), ("skipped", "refused")):
        for found in case.iter(kind):
            return Row(name, verdict, " ".join(found.get("message", "").split())[:400], seconds)
    return Row(name, "right", "", seconds)
