"""Small bundles of each kind: the corpus of files that must stay readable.

`python -m support.bundle_cases NAME` in `tests/` writes `frontend/_bundles/corpus/NAME-*.axir` and
beside each the arguments and results of its functions. A bundle that is committed is never written
again: a new version of the format gets new files.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import axir
import axir.numpy as jnp
from axir import lax, random
from axir.export import Bundle, export, symbolic_args_specs
from axir.runtime import Target

CORPUS = Path(__file__).parents[1] / "frontend" / "_bundles" / "corpus"


class Case(NamedTuple):
    """A bundle, the numbers of rows that it is compiled for, and arguments of its functions."""

    name: str
    bundle: Bundle
    rows: tuple[int, ...]
    arguments: dict[str, tuple[Any, ...]]


def _numbers(*shape: int) -> Any:
    return np.linspace(-1, 1, int(np.prod(shape))).astype(np.float32).reshape(shape)


def _predict(params: Any, x: Any) -> Any:
    hidden = jnp.tanh(x @ params["w"][0] + params["b"])
    return {"label": jnp.argmax(hidden @ params["w"][1], -1), "scores": hidden @ params["w"][1]}


def _step(params: Any, x: Any, y: Any) -> Any:
    def loss(params: Any) -> Any:
        return jnp.mean((_predict(params, x)["scores"] - y) ** 2)

    value, gradient = axir.value_and_grad(loss)(params)
    return axir.tree.map(lambda p, g: p - 0.1 * g, params, gradient), value


def _classifier() -> Case:
    params = {"w": (_numbers(6, 8), _numbers(8, 3)), "b": _numbers(8)}
    x, y = _numbers(5, 6), _numbers(5, 3)
    functions = {"predict": _predict, "step": axir.jit(_step, donate_argnums=0)}
    bound = {name: functools.partial(f, params) for name, f in functions.items()}
    exporter = export(bound, updates={"step": {"params": "result[0]"}})
    bundle = exporter(predict=symbolic_args_specs((x,), "b, ..."), step=(x, y))
    arguments = {"predict": (x,), "step": (x, y)}
    return Case("classifier", bundle, (1, 4), arguments)


def _control(x: Any, n: Any) -> Any:
    def body(carry: Any, row: Any) -> Any:
        carry = lax.cond(row.sum() > 0, lambda c: c + row, lambda c: c * 0.5, carry)
        return carry, carry.max()

    last, maxima = lax.scan(body, jnp.zeros(x.shape[1]), x)
    doubled = lax.while_loop(lambda v: v[0] < n, lambda v: (v[0] + 1, v[1] * 2), (0, last))[1]
    return [doubled, (maxima,), None]


@axir.custom_jvp
def _clipped(x: Any) -> Any:
    return jnp.clip(x, 0.0, 1.0)


_clipped.defjvps(lambda t, ans, x: t)


def _control_flow() -> Case:
    x = _numbers(4, 3)
    functions = {"control": _control, "clipped": lambda x: {"y": _clipped(x) ** 2}}
    bundle = export(functions)(control=(x, np.int32(3)), clipped=(x,))
    return Case("control", bundle, (), {"control": (x, np.int32(3)), "clipped": (x,)})


def _kinds(table: Any, key: Any, x: Any) -> Any:
    half, brain, wave, mask, count = table
    noise = random.normal(random.fold_in(key, 1), x.shape)
    return (half * 2, brain + 1, wave * 1j, ~mask, count // 3, jnp.where(mask, x, noise))


def _dtypes() -> Case:
    x = _numbers(4)
    table = [x.astype(np.float16), jnp.asarray(x, "bfloat16"), (x + 1j).astype(np.complex64)]
    table += [x > 0, np.array([7, 200, 255, 0], np.uint8)]
    table = list(map(jnp.asarray, table))
    bound = functools.partial(_kinds, table, random.key(3))
    return Case("dtypes", export({"kinds": bound})(kinds=(x,)), (), {"kinds": (x,)})


def cases() -> Iterator[Case]:
    """Yields the bundles."""
    yield _classifier()
    yield _control_flow()
    yield _dtypes()


def leaves(value: Any) -> list[Any]:
    """Returns arrays in the form of NumPy's files."""
    found = [np.asarray(x) for x in axir.tree.leaves(value)]
    return [x.astype(np.float32) if x.dtype == jnp.bfloat16 else x for x in found]


def main(version: str) -> None:
    """Writes the corpus of a version."""
    CORPUS.mkdir(exist_ok=True)
    for case in cases():
        path = CORPUS / f"{version}-{case.name}.axir"
        bundle = case.bundle
        if case.rows:
            bundle = bundle.compile(Target(cpu="generic"), rows=case.rows, debug_info=False)
        bundle.save(path, debug_info=False)
        arrays = {}
        for name, arguments in case.arguments.items():
            arrays.update({f"{name}/in{n}": x for n, x in enumerate(leaves(arguments))})
            results = case.bundle[name](*arguments)
            arrays.update({f"{name}/out{n}": x for n, x in enumerate(leaves(results))})
        np.savez_compressed(path.with_suffix(".npz"), **arrays)


if __name__ == "__main__":
    main(sys.argv[1])
