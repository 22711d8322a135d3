"""`pallas_call` and functions for kernels: compiled, evaluated, transformed, against NumPy."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax
from axir.errors import (
    AxirError,
    DTypeError,
    KernelScopeError,
    NonArrayArgumentError,
    OutOfBoundsError,
    ParameterError,
    RefArgumentError,
    ShapeError,
    TreeError,
)
from axir.experimental import pallas as pl
from axir.experimental.pallas import mosaic_gpu, ops, triton
from axir.experimental.pallas import tpu as pltpu

GENERATOR = np.random.default_rng(11)
X = GENERATOR.standard_normal((6, 10)).astype(np.float32)
V = np.arange(10, dtype=np.float32)
COUNTS = GENERATOR.integers(0, 4, 12).astype(np.int32)


def of(shape: tuple[int, ...], dtype: str = "float32") -> Any:
    return axir.ShapeDtypeStruct(shape, dtype)


def call(kernel: Callable[..., None], out_shape: Any, **options: Any) -> Callable[..., Any]:
    return pl.pallas_call(kernel, out_shape, **options)


def double(x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = 2 * x_ref[...]


def blocks(shape: tuple[Any, ...], index_map: Any = None) -> dict[str, Any]:
    spec = pl.BlockSpec(shape, index_map)
    return {"in_specs": [spec], "out_specs": spec}


def sum_of_blocks(x_ref: Any, o_ref: Any) -> None:
    """A block of the result that all instances write."""

    @pl.when(pl.program_id(0) == 0)
    def start() -> None:
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += x_ref[...]


def scratch_and_names(x_ref: Any, o_ref: Any, *, last: Any, count: Any) -> None:
    """Scratch memory lives as long as the grid."""
    i = pl.program_id(0)

    @pl.when(i == 0)
    def start() -> None:
        last[...] = jnp.zeros_like(last)
        count[0] = 0

    o_ref[...] = x_ref[...] + last[...] + count[0]
    last[...] = x_ref[...]
    count[0] += 1


def scratch_wanted(x: np.ndarray) -> np.ndarray:
    before = np.concatenate([np.zeros_like(x[:1]), x[:-1]])
    return x + before + np.arange(len(x))[:, None]


def collatz(n_ref: Any, o_ref: Any) -> None:
    """Loops without a known end, branches, a switch."""

    def step(state: Any) -> Any:
        n, steps = state
        n = lax.cond(n % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, n)
        return n, steps + 1

    steps = lax.while_loop(lambda state: state[0] > 1, step, (n_ref[0], 0))[1]
    o_ref[0] = lax.switch(jnp.minimum(steps, 1), [lambda s: -1 + 0 * s, lambda s: s], steps)


def scoped(x_ref: Any, o_ref: Any) -> None:
    def body(own_ref: Any, *, total: Any) -> Any:
        own_ref[...] = x_ref[...] * 2
        total[...] = jnp.zeros(())

        @pl.loop(0, 10, step=3)
        def add(i: Any) -> None:
            total[...] += own_ref[i]

        return total[...]

    o_ref[...] = pl.run_scoped(
        body, pltpu.VMEM((10,), jnp.float32), total=pltpu.SMEM((), "float32")
    )


def copies(x_ref: Any, o_ref: Any, sem: Any) -> None:
    copy = pltpu.make_async_copy(x_ref.at[pl.ds(2, 4)], o_ref.at[pl.ds(0, 4)], sem)
    copy.start()
    copy.wait()
    pltpu.async_copy(x_ref.at[0:6], o_ref.at[4:10], sem).wait()
    pl.semaphore_signal(sem, 3)
    pl.semaphore_wait(sem, 2)
    o_ref[0] += pl.semaphore_read(sem).astype("float32")


def pipelined(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
    def body(x: Any, y: Any, o: Any) -> None:
        o[...] = x[...] + y[...] * pl.program_id(0)

    block = pl.BlockSpec((2,), lambda i: (i,))
    pltpu.emit_pipeline(body, grid=(5,), in_specs=[block, block], out_specs=[block])(
        x_ref, y_ref, o_ref
    )


def histogram(x_ref: Any, o_ref: Any) -> None:
    i = pl.program_id(0)

    @pl.when(i == 0)
    def start() -> None:
        o_ref[...] = jnp.zeros_like(o_ref)

    triton.atomic_add(o_ref, x_ref[i], 1)
    triton.atomic_max(o_ref, 4, i)
    triton.atomic_add(o_ref, jnp.array([5, 5, 6]), 1, mask=jnp.array([True, True, False]))


def histogram_wanted(x: np.ndarray) -> np.ndarray:
    return np.concatenate([np.bincount(x, minlength=4), [11, 24, 0]]).astype(np.int32)


def bits(x_ref: Any, o_ref: Any, old_ref: Any) -> None:
    o_ref[...] = x_ref[...]
    triton.atomic_or(o_ref, slice(0, 2), 8)
    triton.atomic_and(o_ref, slice(2, 4), 1)
    triton.atomic_xor(o_ref, slice(4, 6), 3)
    triton.atomic_min(o_ref, slice(6, 8), 1)
    old_ref[0] = triton.atomic_xchg(o_ref, 8, 77)
    old_ref[1] = triton.atomic_cas(o_ref.at[9], x_ref[9], 55)
    old_ref[2] = triton.atomic_cas(o_ref.at[9], -1, 44)


def bits_wanted(x: np.ndarray) -> list[np.ndarray]:
    parts = [x[:2] | 8, x[2:4] & 1, x[4:6] ^ 3, np.minimum(x[6:8], 1), [77, 55], x[10:]]
    return [np.concatenate(parts).astype(np.int32), np.array([x[8], x[9], 55], np.int32)]


def over_the_end(x_ref: Any, o_ref: Any, seen_ref: Any) -> None:
    """Parts that reach over the end are not moved."""
    place, block = pl.ds(pl.program_id(0) * 4, 4), jnp.arange(4)
    mask = pl.program_id(0) * 4 + block < 10
    x = triton.load(x_ref.at[place], mask=mask, other=-1.0)
    seen_ref[pl.program_id(0)] = x
    triton.store(o_ref.at[place], x * 10, mask=mask)
    pl.store(o_ref, (pl.ds(8, 4),), x + 100, mask=block == pl.program_id(0))


def over_the_end_wanted(x: np.ndarray) -> list[np.ndarray]:
    seen = np.concatenate([x, [-1, -1]]).reshape(3, 4).astype(np.float32)
    out = 10 * x
    out[8] = seen[0, 0] + 100
    out[9] = seen[1, 1] + 100
    out[8:] = seen[2, :2] * 10
    return [out, seen]


def strides_and_arrays(x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = jnp.zeros_like(o_ref)
    i = pl.program_id(0)
    o_ref[0, :5] = x_ref[i + 1, pl.ds(0, 5, 2)]
    o_ref[1, :3] = x_ref[jnp.array([0, 2, 4]), jnp.array([1, 1, 3])]
    o_ref[2, 3] = x_ref[-1, -1]
    o_ref.at[3].at[pl.ds(2, 4)][...] = x_ref.at[i, :][4:8]
    assert o_ref.at[3].at[pl.ds(2, 4)].shape == (4,)


def strides_wanted(x: np.ndarray) -> np.ndarray:
    out = np.zeros((4, 10), np.float32)
    out[0, :5], out[1, :3] = x[1, ::2], x[[0, 2, 4], [1, 1, 3]]
    out[2, 3], out[3, 2:6] = x[-1, -1], x[0, 4:8]
    return out


def reads_what_it_writes(x_ref: Any, o_ref: Any) -> None:
    """An operand keeps the writes of instances."""
    x_ref[...] += 1.0
    o_ref[pl.program_id(0)] = x_ref[0]


def gathered(index_ref: Any, x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[...] + index_ref[pl.program_id(0)]


ORDER = np.array([3, 0, 5, 1], np.int32)
GATHER = pltpu.PrefetchScalarGridSpec(
    num_scalar_prefetch=1,
    grid=(4,),
    in_specs=[pl.BlockSpec((None, 10), lambda i, order: (order[i], 0))],
    out_specs=pl.BlockSpec((None, 10), lambda i, order: (i, 0)),
)


def tree_kernel(given: Any, out_refs: Any, other_ref: Any) -> None:
    out_refs["sum"][...] = given["a"][...] + given["b"][...]
    other_ref[...] = given["a"][...]


def dynamic_grid(n: Any, x: Any) -> Any:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] * pl.num_programs(0)

    return call(kernel, of((10,)), grid=(n,), input_output_aliases={0: 0},
                **blocks((2,), lambda i: (i,)))(x)  # fmt: skip


def doubled_where_run(n: int) -> np.ndarray:
    return np.where(np.arange(10) < 2 * n, V * n, V).astype(np.float32)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], Any]] = {
    "no grid": (call(double, of((6, 10))), (X,), 2 * X),
    "a number": (call(double, of(())), (np.float32(3),), np.float32(6)),
    "blocks": (call(double, of((6, 10)), grid=(3, 2), **blocks((2, 5), lambda i, j: (i, j))),
               (X,), 2 * X),
    "blocks that do not divide": (
        call(double, of((6, 10)), grid=(2, 4), **blocks((4, 3), lambda i, j: (i, j))), (X,), 2 * X),
    "a column at a time": (
        call(double, of((6, 10)), grid=10, **blocks((6, None), lambda j: (0, j))), (X,), 2 * X),
    "a transposition": (
        call(lambda x_ref, o_ref: o_ref.__setitem__(..., x_ref[...].T), of((10, 6)), grid=(3, 5),
             in_specs=[pl.BlockSpec((2, 2), lambda i, j: (i, j))],
             out_specs=pl.BlockSpec((2, 2), lambda i, j: (j, i))), (X,), X.T),
    "windows that overlap": (
        call(lambda x_ref, o_ref: o_ref.__setitem__(0, x_ref[...].sum()), of((8,)), grid=8,
             in_specs=[pl.BlockSpec((pl.Element(3),), lambda i: (i,))],
             out_specs=pl.BlockSpec((1,), lambda i: (i,))),
        (V,), V[:-2] + V[1:-1] + V[2:]),
    "windows with margins": (
        call(lambda x_ref, o_ref: o_ref.__setitem__(0, jnp.nansum(x_ref[...])), of((10,)), grid=10,
             in_specs=[pl.BlockSpec((pl.Element(3, (1, 1)),), lambda i: (i,))],
             out_specs=pl.BlockSpec((1,), lambda i: (i,))),
        (V,), np.convolve(V, np.ones(3), "same").astype(np.float32)),
    "places of rows": (
        call(lambda x_ref, o_ref: o_ref.__setitem__(..., x_ref[...]), of((4, 10)), grid=2,
             in_specs=[pl.BlockSpec((pl.Indirect(2), 10), lambda i: (jnp.array([4, 1]) + i, 0))],
             out_specs=pl.BlockSpec((2, 10), lambda i: (i, 0))), (X,), X[[4, 1, 5, 2]]),
    "a slice of an axis": (
        call(double, of((10,)), grid=2, in_specs=[
            pl.BlockSpec((pl.BoundedSlice(5),), lambda i: (pl.ds(i * 5, 5),))],
            out_specs=pl.BlockSpec((5,), lambda i: (i,))), (V,), 2 * V),
    "sum of blocks": (
        call(sum_of_blocks, of((10,)), grid=6,
             in_specs=[pl.BlockSpec((None, 10), lambda i: (i, 0))],
             out_specs=pl.BlockSpec((10,), lambda i: (0,))), (X,), X.sum(0)),
    "memory of its own": (
        call(scratch_and_names, of((6, 10)), grid=6,
             scratch_shapes={"last": pltpu.VMEM((10,), jnp.float32),
                             "count": pltpu.SMEM((1,), jnp.float32)},
             **blocks((None, 10), lambda i: (i, 0))), (X,), scratch_wanted(X)),
    "loops": (call(collatz, of((4,), "int32"), grid=4, **blocks((1,), lambda i: (i,))),
              (np.array([1, 6, 27, 97], np.int32),), np.array([-1, 8, 111, 118], np.int32)),
    "memory for a while": (call(scoped, of(())), (V,), 2 * V[::3].sum()),
    "copies": (call(copies, of((10,)), scratch_shapes=[pltpu.SemaphoreType.DMA]), (V,),
               np.concatenate([[V[2] + 1], V[3:6], V[:6]]).astype(np.float32)),
    "a pipeline": (call(pipelined, of((10,))), (V, V), V + V * (np.arange(10) // 2)),
    "histogram": (call(histogram, of((7,), "int32"), grid=12), (COUNTS,), histogram_wanted(COUNTS)),
    "bits": (call(bits, (of((12,), "int32"), of((3,), "int32"))), (COUNTS,), bits_wanted(COUNTS)),
    "over the end": (call(over_the_end, (of((10,)), of((3, 4))), grid=3), (V,),
                     over_the_end_wanted(V)),
    "strides and arrays": (call(strides_and_arrays, of((4, 10)), grid=1), (X,), strides_wanted(X)),
    "a kernel that writes operands": (
        call(reads_what_it_writes, of((3,)), grid=3), (V,), np.arange(1, 4, dtype=np.float32)),
    "an alias": (
        call(lambda x_ref, o_ref: o_ref.__setitem__(0, x_ref[1]), of((10,)),
             input_output_aliases={0: 0}), (V,), np.concatenate([[1], V[1:]]).astype(np.float32)),
    "operands of index maps": (call(gathered, of((4, 10)), grid_spec=GATHER), (ORDER, X),
                               X[ORDER] + ORDER[:, None]),
    "names of axes": (
        call(lambda o_ref: o_ref.__setitem__(
            ..., 10 * lax.axis_index("i") + pl.program_id(1)), of((2, 3), "int32"),
            grid=(("i", 2), ("j", 3)), out_specs=pl.BlockSpec((None, None), lambda i, j: (i, j))),
        (), np.array([[0, 1, 2], [10, 11, 12]], np.int32)),
    "trees": (call(tree_kernel, ({"sum": of((10,))}, of((10,)))), ({"a": V, "b": 2 * V},),
              [3 * V, V]),
    "no operands": (
        call(lambda o_ref: o_ref.__setitem__(..., pl.program_id(0) * jnp.ones((2,), "int32")),
             of((6,), "int32"), grid=3, out_specs=pl.BlockSpec((2,), lambda i: i)), (),
        np.repeat(np.arange(3, dtype=np.int32), 2)),
    "a grid that is computed": (dynamic_grid, (np.int32(3), V), doubled_where_run(3)),
    "a function on refs": (
        pl.run_state(lambda refs: refs[0].__setitem__(..., refs[1][...] * 2)), ((V, V),),
        [2 * V, V]),
    "vmap": (
        axir.vmap(call(double, of((10,)), grid=5, **blocks((2,), lambda i: (i,)))), (X,), 2 * X),
    "vmap of index maps": (
        axir.vmap(call(gathered, of((4, 10)), grid_spec=GATHER), in_axes=(0, None)),
        (np.stack([ORDER, ORDER[::-1]]), X),
        np.stack([X[o] + o[:, None] for o in (ORDER, ORDER[::-1])])),
    "vmap of a sum": (
        axir.vmap(call(sum_of_blocks, of((10,)), grid=6, in_specs=[
            pl.BlockSpec((None, 10), lambda i: (i, 0))],
            out_specs=pl.BlockSpec((10,), lambda i: (0,))), in_axes=2, out_axes=1),
        (np.stack([X, 2 * X], 2),), np.stack([X.sum(0), 2 * X.sum(0)], 1)),
    "jvp": (
        lambda x: axir.jvp(call(lambda x_ref, o_ref: o_ref.__setitem__(..., jnp.sin(x_ref[...])),
                                of((10,)), grid=5, **blocks((2,), lambda i: (i,))), (x,), (x,)),
        (V,), [np.sin(V), V * np.cos(V)]),
    "a gradient in a kernel": (
        call(lambda x_ref, o_ref: o_ref.__setitem__(
            ..., axir.grad(lambda x: (x**3).sum())(x_ref[...])), of((10,))), (V,), 3 * V**2),
    "within a loop": (
        lambda x: lax.fori_loop(0, 3, lambda _, x: call(double, of((10,)))(x), x), (V,), 8 * V),
}  # fmt: skip


def agree(got: Any, want: Any) -> None:
    for x, y in zip(axir.tree.leaves(got), axir.tree.leaves(want), strict=True):
        y = np.asarray(y, "float32") if np.asarray(y).dtype == np.float64 else y
        assert (np.shape(x), np.asarray(x).dtype) == (np.shape(y), np.asarray(y).dtype)
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def compiled() -> dict[str, Any]:
    """Results of all cases from one program."""

    def run(arguments: Any) -> list[Any]:
        return [f(*xs) for (f, _, _), xs in zip(CASES.values(), arguments, strict=True)]

    results = axir.jit(run)([xs for _, xs, _ in CASES.values()])
    return dict(zip(CASES, results, strict=True))


@pytest.mark.parametrize("name", CASES)
def test_compiled(name: str, compiled: dict[str, Any]) -> None:
    agree(compiled[name], CASES[name][2])


@pytest.mark.parametrize("name", CASES)
def test_evaluated(name: str) -> None:
    function, arguments, wanted = CASES[name]
    with axir.disable_jit():
        agree(function(*arguments), wanted)


def test_a_plain_call_is_compiled_and_leaves_arguments_alone() -> None:
    x = jnp.asarray(V)
    agree(call(reads_what_it_writes, of((3,)), grid=3, name="counted")(x), np.float32([1, 2, 3]))
    agree(x, V)
    equation = axir.make_jaxpr(call(double, of((10,)), name="twice"))(x).eqns[0]
    assert equation.params["name"] == "twice"


def test_what_nobody_writes_is_easy_to_see() -> None:
    floats, whole, truths, gap = call(
        lambda *refs: None, (of((2,)), of((2,), "int32"), of((2,), "bool"), of((2,), "uint8"))
    )()
    assert np.isnan(floats).all()
    agree((whole, truths, gap), (np.int32([-(2**31)] * 2), np.zeros(2, bool), np.uint8([0, 0])))


def test_prints(capfd: Any) -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        pl.debug_print("instance {} sees {}", pl.program_id(0), x_ref[0])
        pl.debug_print("without a place", x_ref[0])
        o_ref[...] = x_ref[...]

    axir.block_until_ready(call(kernel, of((2,)), grid=2, debug=True)(jnp.ones(2)))
    axir.effects_barrier()
    out = capfd.readouterr().out
    assert "instance 0 sees 1.0\nwithout a place 1.0\ninstance 1 sees 1.0\n" in out
    assert "The kernel in pallas_call kernel at " in out
    assert "let" in out


def test_costs_are_estimated() -> None:
    cost = pl.estimate_cost(lambda x, y: jnp.exp(x @ y), jnp.ones((4, 8)), jnp.ones((8, 2)))
    assert cost.flops >= 2 * 4 * 8 * 2
    assert cost.bytes_accessed == 4 * (32 + 16 + 8)


def test_hints_change_nothing() -> None:
    assert pl.multiple_of(3, 2) == 3
    assert triton.max_contiguous(4, 2) == 4
    assert float(pl.reciprocal(jnp.float32(4), approx=True)) == 0.25
    assert (pl.cdiv(7, 2), pl.align_to(9, 8), pl.next_power_of_2(17)) == (4, 16, 32)
    assert int(pl.cdiv(jnp.int32(7), 2)) == 4
    spec = pl.BlockSpec((2,), lambda i: i, memory_space=pltpu.VMEM)
    assert spec.replace(block_shape=(4,)).block_shape == (4,)
    assert pltpu.CompilerParams(dimension_semantics=("parallel",)).replace(flags={}).flags == {}
    with pltpu.force_tpu_interpret_mode(pltpu.InterpretParams(uninitialized_memory="zero")):
        agree(call(double, of((10,)), interpret=pltpu.InterpretParams())(V), 2 * V)


def test_functions_of_kernels_for_other_devices() -> None:
    attention = importlib.import_module("axir.experimental.pallas.ops.gpu.attention")
    flash = importlib.import_module("axir.experimental.pallas.ops.tpu.flash_attention")
    splash = importlib.import_module("axir.experimental.pallas.ops.tpu.splash_attention")
    matmul = importlib.import_module("axir.experimental.pallas.ops.tpu.matmul").matmul
    q, k, v = (GENERATOR.standard_normal((2, 3, 6, 4)).astype(np.float32) for _ in range(3))
    ids = np.array([[0, 0, 0, 1, 1, 1], [0, 1, 1, 1, 1, 2]], np.int32)
    scores = np.einsum("bhqc,bhkc->bhqk", q, k) / 2
    mask = np.tril(np.ones((6, 6), bool)) & (ids[:, None, :, None] == ids[:, None, None, :])
    e = np.where(mask, np.exp(scores), 0)
    wanted = (e / e.sum(-1, keepdims=True)) @ v
    segments = flash.SegmentIds(ids, ids)
    agree(flash.flash_attention(q, k, v, None, segments, causal=True, sm_scale=0.5), wanted)
    turned = [x.swapaxes(1, 2) for x in (q, k, v)]
    agree(attention.mha(*turned, ids, 0.5, True), wanted.swapaxes(1, 2))
    heads = splash.MultiHeadMask([splash.CausalMask((6, 6))] * 3)
    kernel = splash.make_splash_mha(heads, head_shards=1, q_seq_shards=1)
    for b in range(2):
        found = kernel(q[b] / 2, k[b], v[b], splash.SegmentIds(ids[b], ids[b]))
        agree(found, wanted[b])
    agree(matmul(X, X.T, block_shape=(3, 2), block_k=5), X @ X.T)


def test_masks_of_attention() -> None:
    masks = importlib.import_module(
        "axir.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask"
    )
    causal, local = masks.CausalMask((4, 4), 1), masks.LocalMask((4, 4), (1, None), 0)
    q, k = np.arange(4)[:, None], np.arange(4)[None, :]
    np.testing.assert_array_equal((causal & local)[:, :], (q + 1 >= k) & (q - 1 <= k))
    np.testing.assert_array_equal((causal | masks.FullMask((4, 4)))[1:3, :], np.ones((2, 4), bool))
    np.testing.assert_array_equal(
        masks.make_chunk_attention_mask((4, 4), 2), (q // 2 == k // 2) & (q >= k)
    )
    both = masks.MultiHeadMask([causal, masks.NumpyMask(local[:, :])])
    assert both.shape == (2, 4, 4)
    np.testing.assert_array_equal(both[1, 0:2, :], local[0:2, :])
    assert causal == masks.CausalMask((4, 4), 1) != masks.CausalMask((4, 4))
    assert len({causal, masks.CausalMask((4, 4), 1)}) == 1
    assert masks.make_random_mask((9, 9), 0.5, 3).dtype == bool
    with pytest.raises(ParameterError, match="no truth value"):
        bool(causal)


@pytest.mark.parametrize(
    "module", [m.name for m in pkgutil.walk_packages(ops.__path__, ops.__name__ + ".")]
)
def test_every_module_has_what_it_names(module: str) -> None:
    found = importlib.import_module(module)
    for name in getattr(found, "__all__", ()):
        assert getattr(found, name) is not None
    with pytest.raises(AttributeError):
        found.no_such_name  # noqa: B018


def test_what_is_for_accelerators_says_so() -> None:
    message = "mosaic_gpu.wgmma is for GPUs; axir runs kernels on CPUs(.|\n)*pl.pallas_call"
    with pytest.raises(pl.AcceleratorOnlyError, match=message):
        mosaic_gpu.wgmma(1, 2)
    with pytest.raises(pl.AcceleratorOnlyError, match="mosaic_gpu.Layout is for GPUs"):
        mosaic_gpu.Layout.WG_STRIDED  # noqa: B018
    assert not isinstance(3, pltpu.BufferedRef)
    with pytest.raises(pl.AcceleratorOnlyError, match="ppermute"):
        pltpu.make_async_remote_copy(None, None, None, None, 1)


VECTOR = of((10,))


def run(kernel: Callable[..., Any], out: Any = VECTOR, **options: Any) -> Callable[[], Any]:
    return lambda: pl.pallas_call(kernel, out, **options)(V)


SPEC = pl.BlockSpec((5,), lambda i: i)
ERRORS: dict[str, tuple[type[Exception], Callable[[], Any], str]] = {
    "no function": (NonArrayArgumentError, lambda: pl.pallas_call(3, of(())), "a function first"),
    "returns": (pl.KernelResultError, run(lambda x, o: 1),
                r"<lambda> at .*py:\d+ should return None.*o_ref\[\.\.\.\] = value"),
    "out_shape": (ParameterError, run(double, 3), "out_shape holds 3 of type 'int'.*Shape"),
    "scratch": (ParameterError, run(double, scratch_shapes=[3]), "scratch_shapes holds 3.*VMEM"),
    "grid": (pl.BlockSpecError, run(double, grid="a"), "Grid must be a tuple of integers"),
    "specs": (pl.BlockSpecError, run(double, in_specs=SPEC), "`in_specs` must be a tuple"),
    "twice": (pl.BlockSpecError, run(double, grid=2, grid_spec=pl.GridSpec(grid=2)),
              "then `grid` must not be given"),
    "trees": (TreeError, run(double, grid=2, in_specs=[SPEC, SPEC]),
              "Pytree for `in_specs` and `inputs` do not match"),
    "rank": (pl.BlockSpecError, run(double, grid=2, in_specs=[pl.BlockSpec((2, 5))]),
             r"Block shape for args\[0\] \(= \(2, 5\)\) must have the same number"),
    "block": (pl.BlockSpecError, run(double, grid=2, in_specs=[pl.BlockSpec(("a",))]),
              "Unsupported block dimension type: <class 'str'>"),
    "index map": (
        pl.BlockSpecError, run(double, grid=2, in_specs=[pl.BlockSpec((5,), lambda i: (i, 0))]),
        r"Index map function <lambda> at .* for args\[0\] must return 1 values.*returning 2"),
    "float of an index map": (
        pl.BlockSpecError, run(double, grid=2, in_specs=[pl.BlockSpec((5,), lambda i: i * 0.5)]),
        "must return integer scalars.*astype"),
    "slice of an index map": (
        pl.BlockSpecError,
        run(double, grid=2, in_specs=[pl.BlockSpec((pl.BoundedSlice(5),), lambda i: i)]),
        r"when it should be pl.Slice.*pl\.ds"),
    "alias": (pl.BlockSpecError, run(double, input_output_aliases={1: 0}),
              "'1:0' with input index 1 outside the range"),
    "other alias": (pl.BlockSpecError, run(double, of((3,)), input_output_aliases={0: 0}),
                    r"'0:0' referring to input\[0\].*different abstract value"),
    "cost": (pl.BlockSpecError, lambda: pl.CostEstimate(1.5, 0, 0), "must be ints"),
    "a ref as an array": (RefArgumentError, run(lambda x, o: o.__setitem__(..., jnp.sin(x))),
                          r"is Ref.*a ref, where an array is needed.*ref\[\.\.\.\]"),
    "axis": (OutOfBoundsError, run(lambda x, o: pl.program_id(1), grid=2), "Axis 1 is out of"),
    "outside": (KernelScopeError, lambda: pl.program_id(0), "program_id is called outside of a k"),
    "other": (ShapeError, lambda: pl.load(axir.new_ref(V), other=0.0), "without a mask"),
    "dot": (ShapeError, lambda: triton.dot(V, V), "must be 2D arrays"),
    "precision": (ParameterError, lambda: triton.dot(X, X.T, allow_tf32=True, precision="high"),
                  "only one of allow_tf32"),
    "cas": (ShapeError, lambda: triton.atomic_cas(axir.new_ref(V), 0.0, 1.0), "on one number"),
    "roll": (ParameterError, lambda: pltpu.roll(X, 1, 2), "roll: axis 2"),
    "negative roll": (ParameterError, lambda: pltpu.roll(X, -1, 1), "shift must be non-negative"),
    "bitcast": (ParameterError, lambda: pltpu.bitcast(V, "int16"), "cannot be packed"),
    "product": (
        DTypeError,
        lambda: importlib.import_module("axir.experimental.pallas.ops.tpu.matmul").matmul(
            X, X.T.astype("float16"), block_shape=(2, 2)),
        "float32 and float16 without a dtype.*out_dtype"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_a_mistake(name: str) -> None:
    kind, make, message = ERRORS[name]
    with pytest.raises(kind, match=f"(?s){message}") as caught:
        make()
    assert isinstance(caught.value, AxirError)
