"""Shared code of the tests made from the op table: samples as cases, comparisons of values."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.array import as_array
from axir.dialect.core.config import config
from axir.dialect.core.extended_dtypes import keys_of, words_of
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops import OPS
from axir.dialect.ops.elementwise.family import UNDIFFERENTIABLE
from axir.dialect.ops.random.random_keys import FRY
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.operation import Sample, Unsupported
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.tracer import Trace

# Families with results element by element, so that errors are relative to each element.
_ELEMENTWISE_FAMILY = "axir.dialect.ops.elementwise.family"
_FORMULAS = "axir.dialect.builders.formula"


@dataclasses.dataclass(frozen=True)
class Case:
    """One sample of one primitive, ready to be evaluated and traced."""

    primitive: Primitive
    index: int
    args: tuple[np.ndarray, ...]
    params: dict[str, Any]
    is_smooth: bool
    tolerance: float
    invariants: Callable[[list[Any]], list[Any]] | None = None

    def __str__(self) -> str:
        operands = ", ".join(f"{x.dtype}{list(x.shape)}" for x in self.args)
        params = ", ".join(f"{k}={v}" for k, v in self.params.items())
        return f"{self.primitive.name} sample {self.index} ({operands}; {params})"

    @property
    def types(self) -> list[ShapedArray]:
        """Types of the operands."""
        return [ShapedArray(x.shape, x.dtype) for x in self.args]

    @property
    def is_elementwise(self) -> bool:
        """Whether each element of the result depends on its own operands only."""
        return getattr(self.primitive.infer, "__module__", "") == _ELEMENTWISE_FAMILY

    @property
    def is_formula(self) -> bool:
        """Whether the op is computed by a formula: an elementwise function made of others."""
        return self.primitive.lower.__module__ == _FORMULAS

    @property
    def results(self) -> list[np.dtype]:
        """dtypes of the results."""
        inferred = self.primitive.infer(*self.types, **self.params)
        return [t.dtype for t in (inferred if self.primitive.multiple_results else [inferred])]

    @property
    def active(self) -> tuple[bool, ...]:
        """Which operands have tangents."""
        fixed = UNDIFFERENTIABLE.get(self.primitive.name, ())
        return tuple(
            dtypes.is_inexact(x.dtype) and number not in fixed for number, x in enumerate(self.args)
        )

    def bind(self, *operands: Any) -> list[Any]:
        """Applies the primitive to values or tracers; always returns a list."""
        results = self.primitive.bind(*operands, **self.params)
        return list(results) if self.primitive.multiple_results else [results]

    def apply(self, *operands: Any) -> list[Any]:
        """The comparable values of the results: the sample's invariants, or the results."""
        results = self.bind(*operands)
        return results if self.invariants is None else self.invariants(results)

    def function(self) -> Function:
        """`apply` under the sample's parameters as a traced function of its operands."""
        if self.args:
            return trace_function(self.apply, self.types, name=self.primitive.name)
        with Trace(self.primitive.name) as trace:  # `bind` would evaluate an op without operands
            result = trace.record(self.primitive, (), self.params)
            return trace.finish(result if self.primitive.multiple_results else [result])

    def evaluate(self, *args: np.ndarray) -> list[np.ndarray]:
        """`apply` by the evaluator, with the sample's arguments or others of their types."""
        return values(self.apply(*(as_array(x) for x in (args or self.args))))

    def evaluate_flushed(self) -> list[list[np.ndarray]]:
        """Further results allowed in compiled code, which may treat denormal arguments as zeros."""
        known = [self.evaluate()]
        choices = [(x, flushed(x)) if has_denormals(x) else (x,) for x in self.args]
        for args in list(itertools.product(*choices))[1:]:
            known.append([flushed(x) for x in self.evaluate(*args)])
        return known[1:]

    def generator(self) -> np.random.Generator:
        """A separate random generator, the same in every run."""
        return np.random.default_rng([zlib.crc32(self.primitive.name.encode()), self.index])


def values(results: Sequence[Any]) -> list[np.ndarray]:
    """The NumPy arrays behind arrays; of random keys, their words."""
    return [words_of(x.host()) for x in results]


@functools.cache
def cases_of(name: str) -> tuple[Case, ...]:
    """All samples of a primitive, with read-only arguments."""
    primitive = OPS[name]
    assert primitive.samples is not None
    with config(jax_enable_x64=True):
        samples = primitive.samples()
    if primitive.moves_elements:
        samples = [*samples, *_moving_keys(primitive, samples)]
    return tuple(_case(primitive, index, sample) for index, sample in enumerate(samples))


def _moving_keys(primitive: Primitive, samples: Sequence[Sample]) -> Iterator[Sample]:
    """Samples with random keys in place of the float32 numbers that an op moves."""
    generator = np.random.default_rng(0)
    for sample in samples:
        args = tuple(map(np.asarray, sample.args))
        if not any(x.dtype == dtypes.float32 for x in args) or sample.params.get("fill_value"):
            continue
        words = (generator.integers(0, 2**32, (*x.shape, FRY.words), np.uint32) for x in args)
        moved = (
            keys_of(w, FRY) if x.dtype == dtypes.float32 else x
            for x, w in zip(args, words, strict=True)
        )
        yield Sample(tuple(moved), sample.params)


def _case(primitive: Primitive, index: int, sample: Sample) -> Case:
    args = tuple(read_only(x) for x in sample.args)
    params = dict(sample.params)
    return Case(
        primitive, index, args, params, sample.is_smooth, sample.tolerance, sample.invariants
    )


def read_only(value: Any) -> np.ndarray:
    """A view that cannot be written to."""
    array = np.asarray(value).view()
    array.flags.writeable = False
    return array


def joined(cases: Sequence[Case]) -> Iterator[Case]:
    """Joins the samples of an elementwise op that have the same dtypes and parameters.

    Each function costs the compiler as much as the next one, and elements have no influence on each
    other, so the values of all these samples are one sample of rank 6. Samples without elements, of
    rank 0, and with broadcast operands stay as they are. But formulas are thousands of operations
    with one rule for shapes: all their samples with elements are joined.
    """
    groups: dict[Any, list[Case]] = {}
    for case in cases:
        key: Any = case.index
        shapes = {x.shape for x in case.args}
        has_one_shape = case.is_elementwise and len(shapes) == 1 and case.args[0].ndim
        if (has_one_shape or case.is_formula) and all(x.size for x in case.args):
            key = (*(x.dtype for x in case.args), case.tolerance, repr(case.params))
        groups.setdefault(key, []).append(case)
    for group in groups.values():
        if len(group) == 1:
            yield group[0]
        else:
            columns = zip(*(np.broadcast_arrays(*case.args) for case in group), strict=True)
            yield dataclasses.replace(group[0], args=tuple(map(_of_rank_6, columns)))


def _of_rank_6(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """All elements; the last one is repeated to fill the array."""
    flat = np.concatenate([x.reshape(-1) for x in arrays])
    missing = -flat.size % 4
    return read_only(np.append(flat, flat[[-1] * missing]).reshape(1, 2, 1, -1, 2, 1))


def sampled_ops() -> list[str]:
    """Names of the ops with samples.

    Ops without samples are collectives, which have a meaning in a map only; callbacks, checks and
    kernels, because their parameters have no text; `custom_lin`, which only waits to be transposed;
    and `joined_psum`, which only programs for the devices of a mesh have.
    """
    return [
        name
        for name, primitive in OPS.items()
        if primitive.batch_named is None
        and not name.endswith("_callback")
        and name not in ("check", "custom_lin", "joined_psum")
    ]


# Smooth cases in high precision -----------------------------------------------------------------

_WIDE = {"f": dtypes.float64, "c": dtypes.complex128}


def differentiable_ops() -> list[str]:
    """Names of the ops that have smooth cases with a float or complex result."""
    return [
        name
        for name, primitive in OPS.items()
        if not isinstance(primitive.jvp, Unsupported) and smooth_cases(name)
    ]


@functools.cache
def smooth_cases(name: str) -> list[Case]:
    """Samples at which the primitive can be differentiated, in float64 and complex128.

    Samples that become equal up to their values count once, as the sample of the finest values,
    because coarse values are whole numbers too often. Samples with functions in their parameters
    keep their dtypes: the functions were traced for them.
    """
    found: dict[Any, Case] = {}
    candidates = [
        case
        for case in cases_of(name)
        if case.is_smooth and any(case.active) and any(dtypes.is_inexact(d) for d in case.results)
    ]
    for case in sorted(candidates, key=_coarseness):
        wide = case if _holds_function(case.params) else _widened(case)
        key = (tuple(wide.types), repr(sorted(wide.params.items())))
        found.setdefault(key, wide)
    return list(found.values())


def _coarseness(case: Case) -> float:
    return max(resolution(x.dtype) for x in case.args if dtypes.is_inexact(x.dtype))


def _widened(case: Case) -> Case:
    args = tuple(read_only(x.astype(_wide(x.dtype))) for x in case.args)
    return dataclasses.replace(case, args=args, params=_wide(case.params))


def _wide(value: Any) -> Any:
    if isinstance(value, np.dtype):
        return _WIDE.get(dtypes.kind(value), value)
    if isinstance(value, dict):
        return {name: _wide(item) for name, item in value.items()}
    if type(value) is tuple:
        return tuple(_wide(item) for item in value)
    return value


def _holds_function(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_holds_function(item) for item in value.values())
    if isinstance(value, tuple):
        return any(_holds_function(item) for item in value)
    return isinstance(value, Function)


def random_like(generator: np.random.Generator, array: Any) -> np.ndarray:
    """Standard normal numbers of an array's shape and (float or complex) dtype."""
    drawn = generator.standard_normal(array.shape)
    if dtypes.is_complex(array.dtype):
        drawn = drawn + 1j * generator.standard_normal(array.shape)
    return read_only(np.asarray(drawn).astype(array.dtype))


# Comparison -------------------------------------------------------------------------------------

# Compiled code treats denormal numbers of these dtypes as zeros, and returns zeros for them, like
# XLA's (docs/iree.md). The evaluator computes with them. Denormals of float16 are normal numbers of
# float32.
_FLUSHED = {dtypes.bfloat16, dtypes.float32, dtypes.float64}


def resolution(dtype: np.dtype) -> float:
    """Distance from one to the next number of a float or complex dtype."""
    return float(ml_dtypes.finfo(dtypes.real_dtype(dtype)).eps)


def differences(
    label: str,
    results: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    tolerance: float,
    *,
    is_elementwise: bool = False,
    zero_signs: bool = True,
    or_else: Sequence[Sequence[np.ndarray]] = (),
) -> Iterator[str]:
    """Yields where results differ from the expected ones, and from all others that are allowed.

    Integers and truth values must be equal, as must nan, infinities, and (if `zero_signs`) signs of
    zeros. Other numbers may differ by `tolerance` times the dtype's resolution, relative to the
    element (if `is_elementwise`; for complex numbers to its modulus) or to the largest one, and by
    twice the smallest normal number where denormal ones are flushed to zero.
    """
    if len(results) != len(expected):
        yield f"{label}: {len(results)} results, not {len(expected)}"
        return
    for number, (got, want) in enumerate(zip(results, expected, strict=True)):
        place = f"{label}[{number}]" if len(expected) > 1 else label
        if (got.shape, got.dtype) != (want.shape, want.dtype):
            yield f"{place}: {got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
            continue
        agreed = _agree(got, want, tolerance, is_elementwise, zero_signs)
        for other in or_else:
            rounded = flushed(got)
            agreed |= _agree(rounded, other[number], tolerance, is_elementwise, zero_signs)
        wrong = np.atleast_1d(~agreed)
        if wrong.any():
            first = tuple(int(axis[0]) for axis in np.nonzero(wrong))
            yield (
                f"{place}: {int(wrong.sum())} of {wrong.size} differ; at {first} "
                f"{np.atleast_1d(got)[first]!r}, not {np.atleast_1d(want)[first]!r}"
            )


def _flushed_below(dtype: np.dtype) -> float:
    """The smallest normal number of a dtype with flushed denormal numbers, else 0."""
    real = dtypes.real_dtype(dtype)
    return float(ml_dtypes.finfo(real).smallest_normal) if real in _FLUSHED else 0.0


def has_denormals(x: np.ndarray) -> bool:
    """Tells whether an array holds numbers that are flushed to zero."""
    return not np.array_equal(x, flushed(x), equal_nan=dtypes.is_inexact(x.dtype))


def flushed(x: np.ndarray) -> np.ndarray:
    """An array with zeros of the same signs for the denormal numbers that are flushed."""
    if not dtypes.is_inexact(x.dtype):
        return x
    if dtypes.is_complex(x.dtype):
        result = np.empty_like(x)
        result.real, result.imag = flushed(x.real), flushed(x.imag)
        return result
    return np.where(np.abs(x) < _flushed_below(x.dtype), np.copysign(x.dtype.type(0), x), x)


def _agree(
    got: np.ndarray, want: np.ndarray, tolerance: float, is_elementwise: bool, zero_signs: bool
) -> np.ndarray:
    if not dtypes.is_inexact(want.dtype):
        return np.asarray(got == want)
    allowed = tolerance * resolution(want.dtype)
    pairs = [(got, want)]
    has_open_signs = is_elementwise & np.isnan(want)  # C99 does not define signs beside nan
    if dtypes.is_complex(want.dtype):
        pairs = [(got.real, want.real), (got.imag, want.imag)]
    with np.errstate(all="ignore"):
        scale = np.abs(want.astype(np.complex128 if len(pairs) > 1 else np.float64))
        if not is_elementwise:
            scale = np.where(np.isfinite(scale), scale, 0)
            scale = np.full(scale.shape, scale.max(initial=0.0))
        agreed = np.ones(want.shape, np.bool_)
        for left, right in pairs:
            left, right = left.astype(np.float64), right.astype(np.float64)
            is_same = (left == right) | (np.isnan(left) & np.isnan(right))
            if zero_signs:
                is_same &= (right != 0) | np.isnan(right) | (np.signbit(left) == np.signbit(right))
            is_same |= has_open_signs & (np.abs(left) == np.abs(right))
            # Beside an infinite part the other one is measured relative to its own size.
            own = np.where(np.isfinite(right), np.abs(right), 0)
            bound = allowed * np.where(np.isfinite(scale), scale, own)
            is_near = (right != 0) & (
                np.abs(left - right) <= bound + 2 * _flushed_below(want.dtype)
            )
            agreed &= is_same | is_near
    return agreed
