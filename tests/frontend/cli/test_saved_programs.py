"""Programs of every kind, saved in one module: compiled, called, transformed, moved elsewhere.

Each is called by name in the program that `axir compile` makes; the same file runs under
`iree-run-module`, and in a process that has never seen the functions.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import axir
import axir.numpy as jnp
from axir import lax, tree
from axir.cli import cli
from axir.dialect.program.module_writer import write_module
from axir.dialect.text.signature import annotate
from axir.export import export

RNG = np.random.default_rng(0)
X = RNG.standard_normal(3).astype(np.float32)
ROWS = RNG.standard_normal((4, 3)).astype(np.float32)
POSITIVE = (ROWS.T @ ROWS + 3 * np.eye(3)).astype(np.float32)
IMAGE = RNG.standard_normal((1, 2, 6, 6)).astype(np.float32)
KERNEL = RNG.standard_normal((2, 2, 3, 3)).astype(np.float32)
INDICES = np.array([0, 3, 1], np.int32)

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}


def program(*arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = function, arguments
        return function

    return register


@program(np.int32(1), X)
def branches(index: Any, x: Any) -> Any:
    chosen = lax.switch(index, [jnp.sin, jnp.cos, lambda x: x * 3], x)
    return lax.cond(x[0] > 0, lambda y: y * 2, lambda y: y - 1, chosen)


@program(np.float32(100))
def halvings(x: Any) -> Any:
    return lax.while_loop(lambda c: c[1] > 1, lambda c: (c[0] + 1, c[1] / 2), (0, x))


@program(np.int32(5), X)
def counted(n: Any, x: Any) -> Any:
    return lax.fori_loop(0, n, lambda i, c: c * 1.1 + i, x)


def recurrence(rows: Any, carry: Any) -> Any:
    def outer(c: Any, row: Any) -> Any:
        return lax.scan(lambda c, x: (jnp.tanh(c * x), c.sum()), c, row)

    return lax.scan(outer, carry, rows)


@program(ROWS, X)
def gradient_of_nested_scans(rows: Any, carry: Any) -> Any:
    return axir.grad(lambda c: (recurrence(rows, c)[0] ** 2).sum())(carry)


@axir.custom_jvp
def steep(x: Any) -> Any:
    return jnp.sin(x)


@steep.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return steep(*primals), 3 * jnp.cos(primals[0]) * tangents[0]


@axir.custom_vjp
def scaled(x: Any) -> Any:
    return x * 2


scaled.defvjp(lambda x: (scaled(x), x), lambda x, ct: (5 * ct * x,))


@program(X)
def custom(x: Any) -> Any:
    return axir.checkpoint(lambda x: jnp.sin(scaled(steep(x))))(x)


@program(X)
def gradient_of_custom(x: Any) -> Any:
    return axir.grad(lambda x: custom(x).sum())(x)


@program(POSITIVE, X)
def factorized(a: Any, b: Any) -> Any:
    solved = lax.custom_linear_solve(
        lambda x: a @ x, b, lambda _, b: jnp.linalg.solve(a, b), symmetric=True
    )
    return jnp.linalg.cholesky(a), solved, jnp.linalg.det(a)


@program(np.arange(6, dtype=np.float32))
def spectrum(x: Any) -> Any:
    return jnp.abs(jnp.fft.rfft(x)), axir.scipy.special.gammaln(x + 1)


@program(IMAGE, KERNEL)
def images(image: Any, kernel: Any) -> Any:
    pooled = lax.reduce_window(image, -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return axir.grad(lambda k: (lax.conv(image, k, (1, 1), "SAME") ** 2).sum())(kernel), pooled


@program(ROWS)
def collective(rows: Any) -> Any:
    return axir.vmap(lambda r: (r / lax.psum(r, "i"), lax.axis_index("i")), axis_name="i")(rows)


@program(ROWS, INDICES)
def indexed(rows: Any, indices: Any) -> Any:
    return rows[indices], rows.at[indices].add(1.0), jnp.sort(rows, 0), jnp.argsort(rows[:, 0])


@program(np.array([0, 42], np.uint32))
def numbers(key: Any) -> Any:
    return axir.random.normal(key, (3,)), axir.random.permutation(key, 5)


def command(*arguments: Any) -> str:
    result = CliRunner().invoke(cli, [str(a) for a in arguments], prog_name="axir")
    assert result.exit_code == 0, result.output
    return result.stdout


def expected_of(name: str) -> list[np.ndarray]:
    function, arguments = PROGRAMS[name]
    arrays = [jnp.asarray(x) for x in arguments]
    return [np.asarray(x) for x in tree.leaves(function(*arrays))]


def check(found: Path, name: str) -> None:
    with np.load(found) as content:
        results = [content[key] for key in content.files]
    for result, expected in zip(results, expected_of(name), strict=True):
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result, expected, rtol=2e-4, atol=1e-5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with all programs as functions of `all.mlir` and `all.vmfb`."""
    folder = tmp_path_factory.mktemp("programs")
    exported = {name: export(f)(*arguments) for name, (f, arguments) in PROGRAMS.items()}
    module = write_module({name: found.function for name, found in exported.items()})
    for name, found in exported.items():
        annotate(module, name, found.signature)
        found.save(folder / f"{name}.mlir")
        pairs = zip(found.argument_names, PROGRAMS[name][1], strict=True)
        np.savez(folder / f"{name}.npz", **dict(pairs))
        for index, value in enumerate(PROGRAMS[name][1]):
            np.save(folder / f"{name}.{index}.npy", value)
    (folder / "all.mlir").write_text(module.operation.get_asm(enable_debug_info=True))
    command("compile", folder / "all.mlir", "-o", folder / "all.vmfb")
    return folder


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_and_evaluated_from_files(name: str, folder: Path) -> None:
    inputs = [f"@{folder / name}.npz", "--function", name, "--out", folder / "out.npz"]
    command("run", folder / "all.vmfb", *inputs)
    check(folder / "out.npz", name)
    command("run", folder / "all.mlir", *inputs, "--eager")
    check(folder / "out.npz", name)


def test_text_parses_back_to_itself(folder: Path) -> None:
    text = command("opt", folder / "all.mlir", "--debug-info")
    (folder / "again.mlir").write_text(text)
    assert command("opt", folder / "again.mlir", "--debug-info") == text
    command("opt", folder / "all.mlir", "-o", folder / "all.mlirbc")
    assert command("opt", folder / "all.mlirbc", "--debug-info") == text


@pytest.mark.parametrize("name", ["gradient_of_nested_scans", "factorized", "indexed"])
def test_iree_runs_the_compiled_file_by_itself(name: str, folder: Path) -> None:
    expected = expected_of(name)
    tool = Path(sysconfig.get_path("scripts")) / "iree-run-module"
    subprocess.run(
        [
            tool,
            "--device=local-sync",
            f"--module={folder / 'all.vmfb'}",
            f"--function={name}",
            *(f"--input=@{folder / name}.{i}.npy" for i in range(len(PROGRAMS[name][1]))),
            *(f"--output=@{folder}/iree{i}.npy" for i in range(len(expected))),
        ],
        check=True,
        capture_output=True,
        timeout=60,
    )
    for index, value in enumerate(expected):
        found = np.load(folder / f"iree{index}.npy")
        np.testing.assert_allclose(found, value, rtol=2e-4, atol=1e-5)


def test_the_reverse_of_a_saved_module_takes_what_its_forward_part_left(folder: Path) -> None:
    out = folder / "reverse.mlir"
    command("opt", folder / "custom.mlir", "-p", "linearize,transpose{function=linear}", "-o", out)
    command("run", out, f"@{folder / 'custom.npz'}", "--eager", "--out", folder / "kept.npz")
    inputs = [f"@{folder / 'kept.npz'}", "ct_result=ones:", "--function", "linear", "--eager"]
    command("run", out, *inputs, "--out", folder / "ct.npz")
    with np.load(folder / "ct.npz") as content:
        assert content.files == ["ct_x"]
    check(folder / "ct.npz", "gradient_of_custom")


def test_linearizing_what_holds_constant_arrays_adds_no_arguments(folder: Path) -> None:
    found = command("opt", folder / "gradient_of_nested_scans.mlir", "-p", "linearize")
    main = next(line for line in found.splitlines() if "@main(" in line)
    arguments = main.split("->")[0]
    assert arguments.count("tensor<") == 2
    assert 'jaxpr.name = "carry"' in arguments


_ELSEWHERE = """
import sys
import numpy as np
import axir
from axir.export import load
folder = sys.argv[1]
x = np.load(f"{folder}/custom.0.npy")
custom = load(f"{folder}/custom.mlir")
gradient = axir.jit(axir.grad(lambda x: custom(x).sum()))
np.save(f"{folder}/elsewhere.npy", gradient(x))
np.save(f"{folder}/batch.npy", axir.vmap(custom)(np.stack([x, x])))
"""


def test_a_process_that_never_saw_the_rules_uses_them(folder: Path, tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-c", _ELSEWHERE, folder], check=True, cwd=tmp_path, timeout=120
    )
    (gradient,), (value,) = expected_of("gradient_of_custom"), expected_of("custom")
    np.testing.assert_allclose(np.load(folder / "elsewhere.npy"), gradient, rtol=1e-5)
    np.testing.assert_allclose(np.load(folder / "batch.npy"), [value, value], rtol=1e-5)
