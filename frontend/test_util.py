"""Checking derivatives against finite differences: `check_grads`, `check_jvp`, `check_vjp`.

Numerical derivatives are central differences `(f(x + eps v) - f(x - eps v)) / (2 eps)` along one
random direction, computed in NumPy. Their error is of order eps^2 plus the dtype's resolution over
eps; steps and tolerances by dtype balance the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from axir._arguments.arguments import check_callable, to_values
from axir._transforms.autodiff import jvp, vjp
from axir._trees import tree
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Tree, UserFunction, UserObject
from axir.dialect.core.array import ConcreteArray, as_array
from axir.dialect.core.errors import AxirError, ParameterError
from axir.dialect.core.types import ShapedArray

__all__ = ["check_grads", "check_jvp", "check_vjp"]


def __dir__() -> list[str]:
    return __all__


# The step that balances both errors is the cube root of the resolution, within a factor.
_STEPS = {
    dtypes.bfloat16: 2.0**-3,
    dtypes.float16: 2.0**-4,
    dtypes.float32: 2.0**-7,
    dtypes.float64: 2.0**-18,
}
_TOLERANCES = {
    dtypes.bfloat16: 1e-1,
    dtypes.float16: 2e-2,
    dtypes.float32: 2e-3,
    dtypes.float64: 1e-5,
}
_MODES = ("fwd", "rev")


class DerivativeMismatchError(AxirError, AssertionError):
    """A derivative differs from the numerical one."""


def check_grads(
    f: Callable[..., object],
    args: Sequence[object],
    order: int,
    modes: Sequence[str] = _MODES,
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Checks the derivatives of a function up to an order against finite differences.

    Args:
        f: Function of arrays or trees of arrays.
        args: Its arguments, float or complex, where `f` must be smooth.
        order: Of derivatives: 2 checks first and second ones.
        modes: `"fwd"` for `jvp`, `"rev"` for `vjp`; both by default, in all combinations.
        atol: Absolute tolerance; by default the tolerance of the coarsest dtype.
        rtol: Relative tolerance, with the same default.
        eps: Step of the finite differences; by default one that suits the coarsest dtype.

    Raises:
        AssertionError: names the derivative, the value, and both numbers.
        ParameterError: if `modes` holds something else, or `order` is not positive.

    >>> import axir.numpy as jnp
    >>> check_grads(jnp.sin, (1.0,), order=2)
    """
    check_callable(f, "check_grads")
    names = (modes,) if isinstance(modes, str) else tuple(modes)
    if not names or any(mode not in _MODES for mode in names):
        raise ParameterError(f"check_grads: modes are 'fwd' and 'rev', not {modes!r}.")
    if order < 1:
        raise ParameterError(f"check_grads: the order must be at least 1, not {order}.")
    _check_grads(f, tuple(args), order, names, (atol, rtol, eps), "")


def _check_grads(
    f: Callable[..., object],
    args: tuple[object, ...],
    order: int,
    modes: tuple[str, ...],
    settings: tuple[float | None, float | None, float | None],
    path: str,
) -> None:
    atol, rtol, eps = settings
    if "fwd" in modes:
        name = f"JVP{path}"

        def push(primals: Tree, tangents: Tree) -> UserObject:
            return jvp(f, primals, tangents)

        check_jvp(f, push, args, atol, rtol, eps, name)
        if order > 1:
            tangents = _random_like(args, _generator(path + "fwd"))
            _check_grads(
                lambda *xs: _moving(push(xs, tangents)[1]),
                args,
                order - 1,
                modes,
                settings,
                f" of {name}",
            )
    if "rev" in modes:
        name = f"VJP{path}"

        def pull(*primals: object) -> UserObject:
            return vjp(f, *primals)

        check_vjp(f, pull, args, atol, rtol, eps, name)
        if order > 1:
            cotangent = _random_like(f(*args), _generator(path + "rev"))
            _check_grads(
                lambda *xs: _moving(pull(*xs)[1](cotangent)),
                args,
                order - 1,
                modes,
                settings,
                f" of {name}",
            )


def check_jvp(
    f: UserFunction,
    f_jvp: UserFunction,
    args: Sequence[UserObject],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Checks a forward-mode derivative along a random direction.

    Args:
        f: Function of arrays or trees of arrays.
        f_jvp: From `(primals, tangents)` to `(outputs, tangents of the outputs)`.
        args: The point.
        atol: Absolute tolerance; by default the tolerance of the coarsest dtype.
        rtol: Relative tolerance, with the same default.
        eps: Step of the finite differences; by default one that suits the coarsest dtype.
        err_msg: Name of the derivative in errors.

    Raises:
        AssertionError: if outputs or tangents differ.

    >>> import axir, axir.numpy as jnp
    >>> check_jvp(jnp.sin, lambda xs, dxs: axir.jvp(jnp.sin, xs, dxs), (1.0,))
    """
    args, name = tuple(args), err_msg or "JVP"
    tangents = _random_like(args, _generator(name))
    outs, out_tangents = f_jvp(args, tangents)
    expected = f(*args)
    tolerances = _Tolerances((args, expected), atol, rtol)
    _check_equal(f"{name}: output", outs, expected, tolerances, "the function gives")
    numerical = _numerical_jvp(f, args, tangents, eps)
    _check_equal(f"{name}: tangent of the output", out_tangents, numerical, tolerances)


def check_vjp(
    f: UserFunction,
    f_vjp: UserFunction,
    args: Sequence[UserObject],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Checks a reverse-mode derivative, paired with random tangents and cotangents.

    For each argument, the product of its cotangent with a random tangent must equal the product of
    the output's cotangent with the numerical tangent of the output, while the tangents of all other
    arguments are 0. So an error names the argument with the wrong cotangent.

    Args:
        f: Function of arrays or trees of arrays.
        f_vjp: From primals to `(outputs, pullback)`.
        args: The point.
        atol: Absolute tolerance; by default the tolerance of the coarsest dtype.
        rtol: Relative tolerance, with the same default.
        eps: Step of the finite differences; by default one that suits the coarsest dtype.
        err_msg: Name of the derivative in errors.

    Raises:
        AssertionError: if outputs or pairings differ.

    >>> import axir, axir.numpy as jnp
    >>> check_vjp(jnp.sin, lambda x: axir.vjp(jnp.sin, x), (1.0,))
    """
    args, name = tuple(args), err_msg or "VJP"
    generator = _generator(name)
    outs, pullback = f_vjp(*args)
    expected = f(*args)
    tolerances = _Tolerances((args, expected), atol, rtol)
    _check_equal(f"{name}: output", outs, expected, tolerances, "the function gives")
    cotangent = _random_like(expected, generator)
    cotangents = pullback(cotangent)
    if tree.structure(tuple(cotangents)) != tree.structure(args):
        raise DerivativeMismatchError(
            f"{name}: the pullback returned a tree {tree.structure(tuple(cotangents))} for "
            f"arguments {tree.structure(args)}.",
            "It must return a tuple with a cotangent for each argument.",
        )
    tangents = _random_like(args, generator)
    leaves, structure = tree.flatten(tangents)
    for index, path in enumerate(tree.paths(args)):
        if not _is_moving(leaves[index]):
            continue
        alone = [x if n == index else np.zeros_like(x) for n, x in enumerate(leaves)]
        direction = structure.unflatten(alone)
        found = _pairing(tree.leaves(tuple(cotangents))[index], leaves[index])
        moved = _numerical_jvp(f, args, direction, eps)
        wanted = sum(
            (_pairing(a, b) for a, b in zip(_leaves(cotangent), _leaves(moved), strict=True)), 0.0
        )
        size = max(1.0, float(np.sqrt(leaves[index].size)))
        _compare(f"{name}: cotangent of argument {path}", found, wanted, tolerances, size)


class _Tolerances:
    """Tolerances that suit the coarsest of the dtypes in a tree."""

    def __init__(self, values: object, atol: float | None, rtol: float | None):
        default = _of_coarsest(_TOLERANCES, _leaves(values))
        self.atol = default if atol is None else atol
        self.rtol = default if rtol is None else rtol


def _of_coarsest(table: dict[object, float], leaves: Sequence[np.ndarray]) -> float:
    real = {dtypes.real_dtype(x.dtype) for x in leaves if _is_moving(x)}
    return max((table[d] for d in real), default=table[dtypes.float32])


def _leaves(values: object) -> list[np.ndarray]:
    return [_host(x) for x in tree.leaves(values)]


def _host(x: object) -> np.ndarray:
    if getattr(x, "dtype", None) == dtypes.float0:
        return np.asarray(x)
    return as_array(x).host()


def _moving(values: object) -> list[object]:
    """Returns the leaves that are no tangents of integers."""
    return [x for x in tree.leaves(values) if x.dtype != dtypes.float0]


def _is_moving(x: np.ndarray) -> bool:
    return x.dtype != dtypes.float0 and dtypes.is_inexact(x.dtype)


def _generator(name: str) -> np.random.Generator:
    """Returns random numbers that are the same in every run."""
    return np.random.default_rng(list(name.encode()))


def _random_like(values: object, generator: np.random.Generator) -> object:
    """Returns a tree of numbers between 1/2 and 1 in size, of the types of tangents."""
    leaves, structure = tree.flatten(values)
    return structure.unflatten([_random(_host(x), generator) for x in leaves])


def _random(like: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    if not _is_moving(like):
        return np.zeros(like.shape, dtypes.float0)

    def draw() -> np.ndarray:
        return generator.choice([-1.0, 1.0], like.shape) * generator.uniform(0.5, 1.0, like.shape)

    drawn = draw() + 1j * draw() if dtypes.is_complex(like.dtype) else draw()
    return np.asarray(drawn).astype(like.dtype)


def _numerical_jvp(
    f: Callable[..., object], args: tuple[object, ...], tangents: Tree, eps: float | None
) -> object:
    """Returns the central difference of a function along a direction, as a tree of arrays."""
    leaves, structure = tree.flatten(args)
    values = to_values(leaves, args, "f")
    moves = tree.leaves(tangents)
    step = _of_coarsest(_STEPS, [x.host() for x in values]) if eps is None else eps  # type: ignore[attr-defined]

    def moved(sign: float) -> list[np.ndarray]:
        shifted = [_shifted(x, t, sign * step) for x, t in zip(values, moves, strict=True)]  # type: ignore[arg-type]
        return _leaves(f(*structure.unflatten(shifted)))

    ahead, behind = moved(1.0), moved(-1.0)
    return [_difference(a, b, step) for a, b in zip(ahead, behind, strict=True)]


def _shifted(x: ConcreteArray, tangent: Tree, step: float) -> ConcreteArray:
    host = x.host()
    if not _is_moving(host):
        return x
    wide = _widened(host) + step * _widened(_host(tangent))
    return ConcreteArray(
        ShapedArray(x.shape, x.dtype, x.weak_type), np.asarray(wide).astype(x.dtype)
    )


def _difference(ahead: np.ndarray, behind: np.ndarray, step: float) -> np.ndarray:
    if not _is_moving(ahead):
        return np.zeros(ahead.shape, dtypes.float0)
    return np.asarray((_widened(ahead) - _widened(behind)) / (2 * step))


def _widened(x: np.ndarray) -> np.ndarray:
    return x.astype(np.complex128 if dtypes.is_complex(x.dtype) else np.float64)


def _pairing(cotangent: Tree, tangent: Tree) -> float:
    """Returns the real part of the sum of products, the pairing of dual spaces."""
    left, right = _host(cotangent), _host(tangent)
    if not _is_moving(left) or not _is_moving(right):
        return 0.0
    return float(np.sum(_widened(left) * _widened(right)).real)


_NUMERICAL = "finite differences give"


def _check_equal(
    what: str,
    found: object,
    expected: object,
    tolerances: _Tolerances,
    source: str = _NUMERICAL,
) -> None:
    found_leaves, expected_leaves = tree.leaves(found), tree.leaves(expected)
    if len(found_leaves) != len(expected_leaves):
        raise DerivativeMismatchError(
            f"{what}: {len(found_leaves)} arrays, but the function returns {len(expected_leaves)}."
        )
    paths = tree.paths(found)
    for path, a, b in zip(paths, _leaves(found), _leaves(expected), strict=True):
        _compare(f"{what}{path}", a, b, tolerances, source=source)


def _compare(
    what: str,
    found: object,
    expected: object,
    tolerances: _Tolerances,
    scale: float = 1.0,
    source: str = _NUMERICAL,
) -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    if found.dtype == dtypes.float0 or expected.dtype == dtypes.float0:
        return
    if found.shape != expected.shape:
        raise DerivativeMismatchError(
            f"{what} has shape {found.shape}, but it should have {expected.shape}."
        )
    found, expected = _widened(found), _widened(expected)
    allowed = scale * (tolerances.atol + tolerances.rtol * np.abs(expected))
    with np.errstate(invalid="ignore"):
        distances = np.abs(found - expected)
    differs = ~((distances <= allowed) | (found == expected))
    differs &= ~(np.isnan(found) & np.isnan(expected))
    if not differs.any():
        return
    distances = np.where(differs, np.nan_to_num(distances, nan=np.inf), -1.0)
    worst = np.unravel_index(int(np.argmax(distances)), found.shape)
    place = f" at {tuple(map(int, worst))}" if worst else ""
    raise DerivativeMismatchError(
        f"{what}{place} is {found[worst]:.7g}, but {source} {expected[worst]:.7g} "
        f"({int(differs.sum())} of {differs.size} differ by more than "
        f"atol={tolerances.atol:g}, rtol={tolerances.rtol:g}).",
        "Correct the derivative rule, or the tolerances if the function is not smooth there.",
    )
