"""Products of vectors and matrices, einsum and diagonals against JAX."""

from __future__ import annotations

from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
from support.against_jax import Weak, assert_close, compare, same_error

import axir
import axir.numpy as jnp
from axir.dialect.core.array import from_numpy

FACTOR = 16.0


def values(shape: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng([seed, *shape])
    if dtype == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    if "int" in dtype:
        return generator.integers(0, 5, shape).astype(dtype)
    x = generator.normal(size=shape)
    if dtype == "complex64":
        x = x + 1j * generator.normal(size=shape)
    return x.astype(getattr(ml_dtypes, dtype, None) or dtype)


def both(name: str) -> tuple[Any, Any]:
    return getattr(jnp, name), getattr(jax.numpy, name)


def check(name: str, *args: Any, **kwargs: Any) -> None:
    compare(*both(name), *args, factor=FACTOR, **kwargs)


PAIRS = [
    ("float32", "float32"), ("int8", "int8"), ("bool", "bool"), ("float16", "float16"),
    ("bfloat16", "bfloat16"), ("complex64", "complex64"), ("int32", "float16"),
    ("float32", "complex64"), ("uint8", "int8"), ("bfloat16", "float16"),
]  # fmt: skip


@pytest.mark.parametrize(("lhs", "rhs"), PAIRS)
@pytest.mark.parametrize("name", ["matmul", "dot", "vdot", "inner", "outer", "vecdot"])
def test_dtypes(name: str, lhs: str, rhs: str) -> None:
    check(name, values((4,), lhs), values((4,), rhs, 1))


@pytest.mark.parametrize("name", ["matmul", "dot", "vdot", "inner", "outer", "kron"])
def test_weak_types(name: str) -> None:
    weak, strong = Weak(np.full((3,), 2.0)), values((3,), "float16")
    check(name, weak, weak)
    check(name, Weak(np.full((3,), 2)), weak)
    check(name, weak, strong)


MATMUL_SHAPES = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)), ((5, 2, 3), (5, 3, 4)), ((1, 2, 3), (5, 3, 4)), ((5, 2, 3), (1, 3, 4)),
    ((6, 1, 2, 3), (5, 3, 4)), ((5, 2, 3), (6, 1, 3, 4)), ((6, 1, 2, 3), (1, 5, 3, 4)),
    ((5, 2, 3), (3,)), ((3,), (5, 3, 2)), ((6, 5, 2, 3), (3,)), ((2, 0), (0, 3)),
    ((0, 2), (2, 3)), ((1, 1, 2, 3), (3, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("lhs", "rhs"), MATMUL_SHAPES)
def test_matmul_shapes(lhs: Any, rhs: Any) -> None:
    check("matmul", values(lhs), values(rhs, seed=1))


@pytest.mark.parametrize(
    ("lhs", "rhs"), [((), (2, 3)), ((2,), ()), ((2, 3), (4, 3, 5)), ((3,), (2, 3, 4)), ((), ())]
)
def test_dot_shapes(lhs: Any, rhs: Any) -> None:
    check("dot", values(lhs), values(rhs, seed=1))


def test_preferred_element_type() -> None:
    x, y = values((2, 3), "bfloat16"), values((3, 4), "bfloat16")
    for name in ("matmul", "dot", "tensordot"):
        extra = () if name != "tensordot" else (1,)
        check(name, x, y, *extra, preferred_element_type=np.float32)
    check("einsum", "ij,jk", values((2, 3), "int8"), values((3, 2), "int8"),
          preferred_element_type=np.int32)  # fmt: skip
    check("matmul", values((2, 3)), values((3, 4)), precision="highest")


def test_inner_and_outer() -> None:
    check("inner", values((2, 3)), values((4, 3)))
    check("inner", 2.0, values((3,)))
    check("outer", values((2, 2)), values((3,)))
    check("vdot", values((2, 2), "complex64"), values((4,), "complex64"))


def test_vectors_of_matrices() -> None:
    check("vecdot", values((2, 3), "complex64"), values((4, 1, 3), "complex64"))
    check("vecdot", values((3, 2)), values((3, 2), seed=1), axis=0)
    check("matvec", values((5, 2, 3)), values((3,)))
    check("matvec", values((2, 3)), values((5, 3)))
    check("vecmat", values((5, 2), "complex64"), values((2, 3), "complex64"))


@pytest.mark.parametrize("axes", [0, 1, 2, ((1, 2), (1, 0)), (2, 0), ([-1], [0])])
def test_tensordot(axes: Any) -> None:
    check("tensordot", values((2, 3, 4)), values((4, 3, 2) if axes != 2 else (3, 4, 2)), axes)


def test_kron() -> None:
    check("kron", values((2, 3)), values((4, 5)))
    check("kron", values((2,)), values((3, 2)))
    check("kron", values((2,), "int8"), values((3,), "float16"))


def test_cross() -> None:
    check("cross", values((3,)), values((3,), seed=1))
    check("cross", values((4, 3)), values((3,)))
    check("cross", values((4, 2)), values((4, 2), seed=1))
    check("cross", values((2,)), values((3,)))
    check("cross", values((3,)), values((2,)))
    check("cross", values((3, 4)), values((3, 4), seed=1), axis=0)
    check("cross", values((3, 4)), values((4, 3)), axisa=0, axisc=0)


EINSUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ba", (2, 3)), ("ii", (3, 3)),
    ("ii->i", (3, 3)), ("iij->j", (3, 3, 2)), ("iji->j", (3, 2, 3)), ("iii->i", (3, 3, 3)),
    ("i,i", (3,), (3,)), ("i,j->ij", (3,), (2,)), ("ij->", (2, 3)), ("ij->ji", (2, 3)),
    ("...ij,...jk->...ik", (5, 2, 3), (3, 4)), ("...i,...i->...", (4, 1, 3), (5, 3)),
    ("i...->...", (3, 2, 2)), ("...", (2, 3)), ("i...j->j...i", (2, 3, 4)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)), ("a,ab,abc->abc", (2,), (2, 3), (2, 3, 4)),
    ("ij,ij->ij", (1, 3), (2, 3)), (",i->i", (), (3,)), (" ij , jk -> ik ", (2, 3), (3, 4)),
    ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)), ("ii,jj->ij", (3, 3), (2, 2)),
    ("a,b,c,d->abcd", (2,), (2,), (3,), (2,)), ("ab,ab,c->", (2, 3), (2, 3), (4,)),
    ("aab,fa,df,ecc->bde", (4, 4, 3), (2, 4), (5, 2), (3, 2, 2)),
]  # fmt: skip


@pytest.mark.parametrize("case", EINSUMS, ids=lambda c: c[0])
def test_einsum(case: Any) -> None:
    subscripts, *shapes = case
    arrays = [values(shape, seed=i) for i, shape in enumerate(shapes)]
    check("einsum", subscripts, *arrays)
    if len(arrays) == 2:  # opt_einsum is asked where there is something to choose, or a path
        check("einsum", subscripts, *arrays, optimize=[(0, 1)])


@pytest.mark.parametrize("optimize", [True, False, "greedy", [(0, 2), (0, 1)]])
def test_einsum_paths(optimize: Any) -> None:
    arrays = [values((2, 3)), values((3, 4)), values((4, 2))]
    check("einsum", "ij,jk,kl->il", *arrays, optimize=optimize)


def test_einsum_dtypes() -> None:
    for lhs, rhs in PAIRS:
        check("einsum", "i,i->i", values((4,), lhs), values((4,), rhs, 1))
    check("einsum", "ij->i", values((2, 3), "int8"))
    check("einsum", "ij->i", values((2, 3), "bool"))
    check("einsum", "i,i", Weak(np.full((3,), 2.0)), Weak(np.full((3,), 2)))


def test_einsum_with_axes_as_integers() -> None:
    x = values((2, 3))
    check("einsum", x, [0, 1], x, [2, 1], [0, 2])
    check("einsum", x, [0, 1], x, [2, 1])
    check("einsum", x, [Ellipsis, 1], [1, Ellipsis])


@pytest.mark.parametrize("optimize", ["optimal", "dp", True, False, [(1, 2), (0, 2), (0, 1)]])
def test_einsum_path(optimize: Any) -> None:
    ours, theirs = both("einsum_path")
    arrays = [values(shape) for shape in ((2, 30), (30, 4), (4, 20), (20, 3))]
    path, _ = ours("ij,jk,kl,lm->im", *map(from_numpy, arrays), optimize=optimize)
    expected, _ = theirs("ij,jk,kl,lm->im", *arrays, optimize=optimize)
    assert list(map(tuple, path)) == list(map(tuple, expected))


def test_diagonals() -> None:
    for offset in (-5, -2, -1, 0, 1, 3, 9):
        check("diagonal", values((3, 5)), offset=offset)
        check("trace", values((3, 5)), offset=offset)
    check("diagonal", values((2, 3, 4)), 1, 0, 2)
    check("diagonal", values((2, 3, 4)), axis1=-1, axis2=0)
    check("diagonal", Weak(np.full((2, 2), 2.0)))
    check("trace", values((3, 3), "int8"))
    check("trace", values((3, 3), "int8"), dtype="float32")
    check("trace", values((2, 3, 3)), axis1=1, axis2=2)


ERRORS = [
    ("matmul", (np.ones((2, 3)), np.ones((2, 3))), "contracting extents differ"),
    ("matmul", (np.ones(()), np.ones(3)), "must have at least one axis"),
    ("matmul", (np.ones((2, 2, 3)), np.ones((3, 3, 4))), "do not broadcast"),
    ("dot", (np.ones(3), np.ones(4)), "contracting extents differ"),
    ("tensordot", (np.ones((2, 3)), np.ones((2, 3)), ((0,), (1,))), "contracting extents differ"),
    ("tensordot", (np.ones((2, 3)), np.ones((2, 3)), ((0,), (0, 1))), "Name as many of each"),
    ("tensordot", (np.ones((2, 3)), np.ones(2), 2), "axes=2 exceeds the number of axes"),
    ("cross", (np.ones(4), np.ones(4)), "must have 2 or 3 elements"),
    ("diagonal", (np.ones(3),), "at least two axes"),
    ("einsum", ("ij,jk", np.ones((2, 3)), np.ones((4, 5))), "has extent 3 and 4"),
    ("einsum", ("ij->k", np.ones((2, 2))), "cannot be read"),
    ("einsum", ("i,j", np.ones(3)), "cannot be read"),
]


@pytest.mark.parametrize(("name", "args", "text"), ERRORS)
def test_errors(name: str, args: Any, text: str) -> None:
    args = [x.astype(np.float32) if isinstance(x, np.ndarray) else x for x in args]
    error = same_error(*both(name), *args)
    with pytest.raises(type(error), match=text):
        raise error


def loss(np_: Any, x: Any, y: Any, z: Any) -> Any:
    products = [
        np_.matmul(x, y), np_.einsum("ij,jk,ki->i", x, y, z),
        np_.einsum("...ii->...", np_.dot(x, x)),
        np_.tensordot(x, z, ((0, 1), (1, 0))), np_.kron(x, y), np_.cross(x, y), np_.trace(x, 1),
        np_.matmul(x[None, :, None, :], np_.stack([y, z])[:, None]), np_.inner(x, z),
    ]  # fmt: skip
    total = np_.sum(products[0])
    for k, product in enumerate(products[1:], 2):
        total = total + np_.sum(product * product) * (1.0 / k)
    return total


def test_gradients() -> None:
    arrays = [values((3, 3), seed=i) for i in range(3)]
    ours = axir.grad(lambda *v: loss(jnp, *v), argnums=(0, 1, 2))(*map(from_numpy, arrays))
    theirs = jax.grad(lambda *v: loss(jax.numpy, *v), argnums=(0, 1, 2))(*arrays)
    for mine, expected in zip(ours, theirs, strict=True):
        assert_close(np.asarray(mine), np.asarray(expected), 64.0)


def everything(x: Any, y: Any, k: Any) -> list[Any]:
    names = ("matmul", "dot", "inner", "outer", "kron", "cross", "vdot", "vecdot")
    results = [getattr(jnp, name)(x, y) for name in names]
    results += [jnp.tensordot(x, y, axes) for axes in (0, 1, 2)]
    results += [jnp.matmul(k, k), jnp.trace(k), jnp.diagonal(x, -1), jnp.matvec(x, y)]
    results += [jnp.einsum("iij->ji", jnp.stack([x, y, x])), jnp.einsum("ij,kj->ik", x, k)]
    results += [jnp.einsum("...ij,...jk->...ik", jnp.stack([x, y])[:, None], jnp.stack([y, x]))]
    return results


def test_compiled_as_evaluated() -> None:
    x, y = from_numpy(values((3, 3))), from_numpy(values((3, 3), seed=1))
    k = from_numpy(values((3, 3), "int8"))
    evaluated = everything(x, y, k)
    compiled = axir.jit(everything)(x, y, k)
    assert len(compiled) == len(evaluated)
    for ours, expected in zip(compiled, evaluated, strict=True):
        assert ours.type is expected.type
        assert_close(np.asarray(ours), np.asarray(expected), 16.0)


def test_what_einsum_multiplies_with_is_told_the_dtype_of_the_result() -> None:
    told = []

    def product(*operands, preferred_element_type, **options):
        told.append(preferred_element_type)
        return axir.lax.dot_general(
            *operands, preferred_element_type=preferred_element_type, **options
        )

    x = jnp.ones((2, 2), "bfloat16")
    assert jnp.einsum("ij,jk->ik", x, x, _dot_general=product).dtype == x.dtype
    assert jnp.einsum("ij,jk->ik", x, x.astype("float32"), _dot_general=product).dtype == "float32"
    assert told == ["bfloat16", "float32"]
