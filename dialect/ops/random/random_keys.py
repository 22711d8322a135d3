"""Ops on typed random keys: `random_seed`, `random_bits`, `random_split`, ...

All take arrays of keys, and apply a generator to each key: directly to the words of a single key,
and to an array by the vectorized traced function of the generator. The ops are lowered to the same
functions of words. Elsewhere: the generators (`threefry.py`, `bit_generators.py`) and ops that only
move elements, which take arrays of keys, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from iree.compiler import ir

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import AnyDtype, Param
from axir.dialect.core.array import from_numpy
from axir.dialect.core.config import config
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError
from axir.dialect.core.extended_dtypes import KeyDtype, key_dtype, keys_of, register, words_of
from axir.dialect.core.symbolic_zeros import Zero
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.family import align, broadcast_shape
from axir.dialect.ops.shape.rearranging import moveaxis, reshape
from axir.dialect.program.derived_functions import derive
from axir.dialect.program.dimensions import Dimensions, leading, position_wise
from axir.dialect.program.function import Function
from axir.dialect.program.function_rules import DimensionsRule, LoweringContext
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.module_writer import embed_captures
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.parameters import Ints
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import MlirValues, ResultAxes, Results, Rule, Tangent, Value

from .bit_generators import RBG, UNSAFE_RBG
from .threefry import THREEFRY, UNSIGNED

FRY = register(THREEFRY)
_RBG = register(RBG)
register(UNSAFE_RBG)
_RANK_6 = (1, 2, 1, 1, 2, 1)  # a shape of samples
_TRANSPOSE = {"transpose": "random bits are integers; no cotangent reaches them."}
# `(types, *words, **params) -> words or bits`: an op as a function of words in place of keys.
OnWords = Callable[..., Value]

# Generators on the words of keys -----------------------------------------------------------------


@lru_cache(maxsize=256)
def _of_one_key(
    dtype: KeyDtype, rule: str, is_partitionable: bool | None, *params: object
) -> Callable[..., Value]:
    """Returns a generator's function of the words of one key, under the op's parameters."""
    generate = getattr(dtype.impl, rule)

    def apply(*operands: Value) -> Value:
        if is_partitionable is None or is_partitionable is config.jax_threefry_partitionable:
            return generate(*operands, *params)
        with config(jax_threefry_partitionable=is_partitionable):
            return generate(*operands, *params)

    return apply


@lru_cache(maxsize=256)
def _traced(function: Callable[..., Value], *types: ShapedArray) -> Function:
    return trace_function(lambda *operands: [function(*operands)], types, name="random")


def _of_each_key(
    function: Callable[..., Value], shape: tuple[int, ...], *operands: tuple[Value, int]
) -> Value:
    """Applies a function of one element to the elements of arrays.

    Args:
        function: A result of `_of_one_key`.
        shape: Shape of the arrays of elements.
        *operands: Each with the number of axes that one element has; arrays of a single element are
            combined with every element of the others.
    """
    if not shape:
        return function(*(x for x, _ in operands))
    count = math.prod(shape)
    flat, axes, types = [], [], []
    for x, rank in operands:
        element = x.shape[x.ndim - rank :]
        types.append(ShapedArray(element, x.dtype))
        axes.append(0 if x.ndim > rank else None)
        flat.append(reshape(x, (count, *element)) if x.ndim > rank else x)
    one = _traced(function, *types)
    if not count:
        out = one.output_types[0]
        return from_numpy(np.zeros((*shape, *out.shape), out.dtype))
    axes += [None] * len(one.captures)
    batched = derive(one, "vmap", count, tuple(axes), (0,), None).function
    (result,) = batched.evaluate(*flat, *one.captured)
    return reshape(result, (*shape, *result.shape[1:]))


# Shared code of the ops --------------------------------------------------------------------------


def _declare(
    name: str,
    infer: Callable[..., ShapedArray],
    on_words: OnWords,
    *,
    gives_keys: bool = True,
    **rules: Rule,
) -> Primitive:
    """Declares an op on keys.

    Args:
        name: Its name.
        infer: As in any op.
        on_words: `(types, *words, **params)`: the op as a function of words in place of keys.
        gives_keys: Whether the results are keys. Their generator is the one that `impl` names, or
            the operand's generator.
        **rules: `samples`, and `batch` unless the batch axis stays where it is.
    """

    def evaluate(*hosts: np.ndarray, **params: Param) -> np.ndarray:
        types = [ShapedArray(x.shape, x.dtype) for x in hosts]
        result = on_words(types, *[from_numpy(words_of(x)) for x in hosts], **params).host()  # type: ignore[attr-defined]
        if not gives_keys:
            return result
        impl = params.get("impl")
        return keys_of(result, types[0].dtype if impl is None else key_dtype(impl))

    def lower(context: LoweringContext, *values: ir.Value, **params: object) -> MlirValues:
        types = context.types_in
        function = trace_function(
            lambda *words: [on_words(types, *words, **params)], [t.words for t in types], name=name
        )
        return context.inline(embed_captures(function), *values)

    def batch(
        operands: Sequence[Value], axes: Sequence[int | None], **params: object
    ) -> tuple[Results, ResultAxes]:
        return primitive.bind(*operands, **params), axes[0]

    primitive: Primitive = declare(
        name,
        infer=infer,
        evaluate=evaluate,
        jvp=_jvp,
        lower=lower,
        takes_keys=True,
        unsupported=_TRANSPOSE,
        **{"batch": batch, **rules},
    )
    return primitive


def _of_words(missing: int) -> DimensionsRule:
    """Returns the rule of ops that treat each key, or its words, separately.

    Args:
        missing: Minus the number of operand dimensions that are not dimensions of keys.
    """

    def rule(
        operands: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: object
    ) -> Dimensions:
        return leading(operands, results, operands[0].ndim + missing)

    return rule


def _jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], out: Value, **params: object
) -> Zero:
    return Zero(out.aval.to_tangent_aval())


def _dtype_of(name: str, keys: ShapedArray) -> KeyDtype:
    dtype: AnyDtype = keys.dtype
    if type(dtype) is not KeyDtype:
        raise DTypeError(
            f"{name} takes random keys, but got {keys}.",
            "random.wrap_key_data makes keys of words.",
        )
    return dtype


def _extents(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    if any(extent < 0 for extent in shape):
        raise ShapeError(f"{name}: shape {shape} has a negative extent.")
    return shape


def _some_keys(dtype: KeyDtype, *shape: int) -> np.ndarray:
    words = np.random.default_rng(0).integers(0, 2**32, (*shape, dtype.words), np.uint32)
    words.reshape(-1)[:2] = (2**32 - 1, 0)[: words.size]
    return keys_of(words, dtype)


# Words to keys and back --------------------------------------------------------------------------


def _infer_wrap(words: ShapedArray, *, impl: str) -> ShapedArray:
    dtype: AnyDtype = key_dtype(impl)
    if words.dtype != dtypes.uint32:
        raise DTypeError(
            f"random_wrap: the words of a key are uint32, not {words}.",
            "random.key makes a key from a seed.",
        )
    if words.shape[-1:] != (dtype.words,):
        raise ShapeError(
            f"random_wrap: the last axis holds the {dtype.words} words of a {dtype}, but got "
            f"{words}.",
            "random.key makes a key from a seed.",
        )
    return ShapedArray(words.shape[:-1], dtype)


def _batch_wrap(
    operands: Sequence[Value], axes: Sequence[int | None], *, impl: str
) -> tuple[Results, ResultAxes]:
    assert axes[0] is not None
    return random_wrap.bind(moveaxis(operands[0], axes[0], 0), impl=impl), 0


random_wrap = _declare(
    "random_wrap",
    _infer_wrap,
    lambda types, words, *, impl: words,
    parameters={"impl": str},
    batch=_batch_wrap,
    dimensions=_of_words(-1),
    samples=lambda: [
        Sample((words_of(_some_keys(key_dtype(tag), *shape)),), {"impl": tag})
        for tag, shape in (
            ("fry", ()), ("fry", (2, 3)), ("fry", (0,)), ("rbg", (2,)), ("fry", _RANK_6),
        )
    ],
)  # fmt: skip


def _infer_unwrap(keys: ShapedArray) -> ShapedArray:
    return ShapedArray((*keys.shape, _dtype_of("random_unwrap", keys).words), dtypes.uint32)


def _key_samples(**params: object) -> list[Sample]:
    shapes = ((), (3,), (2, 3), (0, 2), _RANK_6)
    return [Sample((_some_keys(FRY, *shape),), params) for shape in shapes]


random_unwrap = _declare(
    "random_unwrap",
    _infer_unwrap,
    lambda types, words: words,
    gives_keys=False,
    dimensions=_of_words(0),
    samples=_key_samples,
)


def _infer_clone(keys: ShapedArray) -> ShapedArray:
    _dtype_of("random_clone", keys)
    return keys


random_clone = _declare(
    "random_clone", _infer_clone, lambda types, words: words, samples=_key_samples
)

# Seeds -------------------------------------------------------------------------------------------


def _infer_seed(seeds: ShapedArray, *, impl: str) -> ShapedArray:
    if not dtypes.is_integer(seeds.dtype):
        raise DTypeError(f"random_seed: seeds are integers, not {seeds}.")
    dtype: AnyDtype = key_dtype(impl)
    return ShapedArray(seeds.shape, dtype)


def _seed_words(types: Sequence[ShapedArray], seeds: Value, *, impl: str) -> Value:
    return _of_each_key(_of_one_key(key_dtype(impl), "seed", None), seeds.shape, (seeds, 0))


random_seed = _declare(
    "random_seed",
    _infer_seed,
    _seed_words,
    parameters={"impl": str},
    dimensions=position_wise,
    samples=lambda: [
        Sample((np.array(seed, dtype),), {"impl": impl})
        for seed, dtype, impl in (
            (42, "int32", "fry"), ([-1, 0, 7], "int64", "fry"), (2**63, "uint64", "fry"),
            ([[200]], "uint8", "rbg"), ([], "int32", "urbg"),
            ([[[[[[2**31 - 1]], [[-(2**31)]]]]]], "int32", "fry"),
            ([2**63 - 1, -(2**63)], "int64", "fry"), ([0, 255], "uint8", "rbg"),
            ([2**64 - 1, 0], "uint64", "fry"),
        )
    ],
)  # fmt: skip

# Keys from keys, bits from keys ------------------------------------------------------------------


def _infer_split(keys: ShapedArray, *, shape: tuple[int, ...], partitionable: bool) -> ShapedArray:
    _dtype_of("random_split", keys)
    return ShapedArray((*keys.shape, *_extents("random_split", shape)), keys.dtype)


def _split_words(
    types: Sequence[ShapedArray], words: Value, *, shape: tuple[int, ...], partitionable: bool
) -> Value:
    (keys,) = types
    split = _of_one_key(_dtype_of("random_split", keys), "split", partitionable, shape)
    return _of_each_key(split, keys.shape, (words, 1))


random_split = _declare(
    "random_split",
    _infer_split,
    _split_words,
    parameters={"shape": Ints, "partitionable": bool},
    dimensions=_of_words(0),
    samples=lambda: [
        Sample((_some_keys(dtype, *shape),), {"shape": new, "partitionable": partitionable})
        for dtype, shape, new, partitionable in (
            (FRY, (), (2,), False), (FRY, (), (2, 3), True), (FRY, (2, 3), (), False),
            (FRY, (3,), (5,), True), (FRY, (3,), (0,), False), (FRY, (0,), (2,), True),
            (_RBG, (2,), (3,), True), (FRY, _RANK_6, (), True),
        )
    ],
)  # fmt: skip


def _infer_fold_in(keys: ShapedArray, data: ShapedArray) -> ShapedArray:
    _dtype_of("random_fold_in", keys)
    if data.dtype != dtypes.uint32:
        raise DTypeError(f"random_fold_in: the data must be uint32, not {data}.")
    return ShapedArray(broadcast_shape("random_fold_in", [keys, data]), keys.dtype)


def _fold_in_words(types: Sequence[ShapedArray], words: Value, data: Value) -> Value:
    keys = types[0]
    shape = keys.shape or data.shape
    fold_in = _of_one_key(_dtype_of("random_fold_in", keys), "fold_in", None)
    return _of_each_key(fold_in, shape, (words, 1), (data, 0))


def _batch_fold_in(operands: Sequence[Value], axes: Sequence[int | None]) -> tuple[Value, int]:
    aligned, axis = align(operands, axes)
    return random_fold_in.bind(*aligned), axis


random_fold_in = _declare(
    "random_fold_in",
    _infer_fold_in,
    _fold_in_words,
    batch=_batch_fold_in,
    dimensions=position_wise,
    samples=lambda: [
        Sample((_some_keys(dtype, *shape), np.array(data, np.uint32)))
        for dtype, shape, data in (
            (FRY, (), 2**32 - 1), (FRY, (2,), 3), (FRY, (), [4, 5]), (FRY, (2,), [6, 7]),
            (_RBG, (3,), [1, 2, 3]), (FRY, (), np.full(_RANK_6, 2**32 - 1)), (FRY, (0,), []),
            (FRY, (), 0),
        )
    ],
)  # fmt: skip


def _infer_bits(
    keys: ShapedArray, *, bit_width: int, shape: tuple[int, ...], partitionable: bool
) -> ShapedArray:
    _dtype_of("random_bits", keys)
    if bit_width not in UNSIGNED:
        raise ParameterError(f"random_bits: integers have 8, 16, 32 or 64 bits, not {bit_width}.")
    return ShapedArray((*keys.shape, *_extents("random_bits", shape)), UNSIGNED[bit_width])


def _bits_of_words(
    types: Sequence[ShapedArray],
    words: Value,
    *,
    bit_width: int,
    shape: tuple[int, ...],
    partitionable: bool,
) -> Value:
    (keys,) = types
    dtype = _dtype_of("random_bits", keys)
    draw = _of_one_key(dtype, "random_bits", partitionable, bit_width, shape)
    return _of_each_key(draw, keys.shape, (words, 1))


def _bits_dimensions(
    operands: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: Param
) -> Dimensions | Function:
    """Returns the dimensions; for one key, the function that encrypts counts, cut like the bits."""
    (keys,) = operands
    if keys.ndim:
        return leading(operands, results, keys.ndim)

    def draw(key: Value) -> list[Value]:
        return [_bits_of_words(operands, random_unwrap.bind(key), **params)]

    return trace_function(draw, operands, name="random_bits")


random_bits = _declare(
    "random_bits",
    _infer_bits,
    _bits_of_words,
    parameters={"bit_width": int, "shape": Ints, "partitionable": bool},
    gives_keys=False,
    dimensions=_bits_dimensions,
    samples=lambda: [
        Sample(
            (_some_keys(dtype, *shape),),
            {"bit_width": width, "shape": new, "partitionable": partitionable},
        )
        for dtype, shape, width, new, partitionable in (
            (FRY, (), 32, (), False), (FRY, (), 8, (5,), True), (FRY, (), 16, (2, 3), False),
            (FRY, (3,), 64, (3,), True), (FRY, (2, 3), 32, (7,), False), (FRY, (), 32, (0,), True),
            (FRY, (0, 2), 8, (2,), False), (FRY, (2, 1), 64, (), False),
            (FRY, _RANK_6, 32, (1,), True),
        )
    ],
)  # fmt: skip
