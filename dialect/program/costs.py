"""The cost model: the time to interpret a function, to compile it, and to run it compiled.

All decisions by estimates use this module: whether a loop on concrete operands is interpreted or
compiled (`dialect/ops/control_flow/execution.py`), and whether a compiled program is first tried on
one core or on all of them (`runtime/calls/executable.py`, which then measures). Elsewhere: those
decisions, and measurements of running programs.
"""

from __future__ import annotations

import math

from axir.dialect.core.annotations import Params
from axir.dialect.core.memo import quickly_derived

from .equation import Equation
from .function import Function, functions_of

# All times are in microseconds, measured on one core of an x86-64 CPU.

# The least time of compiling, and the time per op.
_COMPILATION = 300_000.0
_COMPILED_OP = 5_000.0
# The time of interpreting: per step, and per element that it reads or writes.
_STEP = 2.5
_ELEMENT = 1e-3
SLICING = 1.0
"""What slicing and stacking add to a pass of an interpreted loop."""
COMPILED_PASS = 6.0
"""What a pass of a compiled loop takes at least: bodies of an op or two are faster interpreted."""
# The assumed passes of a loop of unknown length in another loop.
_UNKNOWN_LENGTH = 10
PARALLEL_OPERATIONS = 1 << 22
"""Scalar operations of one op from which on several cores are likely to be faster than one."""


@quickly_derived
def interpretation_time(function: Function) -> float:
    """Estimates the time to interpret a function."""
    return sum(map(_time_of, function.equations))


def _time_of(equation: Equation) -> float:
    bodies = [interpretation_time(f) for f in functions_of(equation.params)]
    if not bodies:
        return _STEP + _ELEMENT * sum(_sizes(equation))
    if equation.primitive.name == "cond":
        return _STEP + max(bodies)
    is_loop = equation.primitive.name == "while"
    return _STEP + sum(bodies) * equation.params.get("length", _UNKNOWN_LENGTH if is_loop else 1)


def compilation_time(params: Params) -> float:
    """Estimates the time to compile an op, from its parameters."""
    return _COMPILATION + _COMPILED_OP * sum(map(_op_count, functions_of(params)))


def _op_count(function: Function) -> int:
    return len(function.equations) + sum(map(_op_count, function.callees()))


def largest_operation(function: Function) -> int:
    """Estimates the scalar operations of a function's largest op."""
    own = max(map(_scalar_operations, function.equations), default=0)
    return max(own, max(map(largest_operation, function.callees()), default=0))


def _scalar_operations(equation: Equation) -> int:
    sizes = _sizes(equation)
    if equation.primitive.name == "dot_general":
        # Each of the three extents of a matrix product belongs to two of the matrices.
        return int(math.prod(float(max(1, size)) for size in sizes) ** 0.5)
    return max(sizes, default=0)


def _sizes(equation: Equation) -> list[int]:
    return [v.type.size for v in (*equation.operands, *equation.results)]


# Costs of a function, independent of its execution ------------------------------------------------

# Arithmetic of a factorization of an n x n matrix, in n³, as counted in Golub and Van Loan, Matrix
# Computations, 4th edition.
_FACTORIZATIONS = {
    "cholesky": 1 / 3,
    "lu": 2 / 3,
    "qr": 4 / 3,
    "geqrf": 4 / 3,
    "triangular_solve": 1.0,
    "eigh": 9.0,
    "eig": 25.0,
    "svd": 21.0,
}


@quickly_derived
def arithmetic_operations(function: Function) -> int:
    """Counts the additions, multiplications and scalar functions that a call computes.

    A product of matrices has two for each pair of factors, an elementwise op one for each element,
    an op that only moves elements none. The passes of a loop count if their number is known, else
    one pass counts. Of several branches, the largest one counts.
    """
    return sum(map(_arithmetic_of, function.equations))


def _arithmetic_of(equation: Equation) -> int:
    name, params = equation.primitive.name, equation.params
    bodies = [arithmetic_operations(f) for f in functions_of(params)]
    if bodies:
        return max(bodies) if name == "cond" else sum(bodies) * params.get("length", 1)
    sizes = _sizes(equation)
    result = equation.results[0].type.size if equation.results else 0
    if name == "dot_general":
        (contracted, _), _ = params["dimension_numbers"]
        shape = equation.operands[0].type.shape
        return 2 * result * math.prod(shape[axis] for axis in contracted)
    if name == "conv_general_dilated":
        kernel = equation.operands[1].type
        features = kernel.shape[params["dimension_numbers"].rhs_spec[0]]
        return 2 * result * (kernel.size // max(1, features))
    if name in _FACTORIZATIONS and equation.operands[0].type.ndim >= 2:
        shape = equation.operands[0].type.shape
        order, columns = min(shape[-2:]), max(shape[-2:])
        if name == "triangular_solve":
            columns = equation.operands[1].type.size // max(1, math.prod(shape[:-1]))
        return int(_FACTORIZATIONS[name] * math.prod(shape[:-2]) * order**2 * columns)
    return 0 if equation.primitive.moves_elements else max(sizes, default=0)


# Scalar functions that are computed by series or approximations, not by a few instructions.
_TRANSCENDENTAL = frozenset(
    "acos acosh asin asinh atan atan2 atanh cbrt cos cosh erf erf_inv erfc exp exp2 expm1 lgamma "
    "digamma log log1p logistic pow rsqrt sin sinh sqrt tan tanh zeta polygamma bessel_i0e "
    "bessel_i1e cosine_integral dawsn erfcinv erfcx exp1 expi expn fresnel_cosine fresnel_sine "
    "hyp1f1 hyp2f1 igamma igammac ndtri owens_t regularized_incomplete_beta sine_integral spence "
    "wofz".split()
)


@quickly_derived
def transcendental_operations(function: Function) -> int:
    """Counts the evaluations of transcendental functions, such as `exp`, in a call.

    They are included in `arithmetic_operations`, which counts loops in the same way.
    """
    return sum(map(_transcendental_of, function.equations))


def _transcendental_of(equation: Equation) -> int:
    name, params = equation.primitive.name, equation.params
    bodies = [transcendental_operations(f) for f in functions_of(params)]
    if bodies:
        return max(bodies) if name == "cond" else sum(bodies) * params.get("length", 1)
    return equation.results[0].type.size if name in _TRANSCENDENTAL else 0


@quickly_derived
def temporary_bytes(function: Function) -> int:
    """Returns the peak bytes of values that live at the same time, without the arguments of a call.

    An op-by-op evaluation holds this much, including the results. A compiled program needs less,
    because most values stay in registers.
    """
    last_use = {v: n for n, each in enumerate(function.equations) for v in each.operands}
    last_use.update(dict.fromkeys(function.outputs, len(function.equations)))
    alive, peak = 0, 0
    freed: dict[int, int] = {}
    for number, equation in enumerate(function.equations):
        inner = max(map(temporary_bytes, functions_of(equation.params)), default=0)
        for result in equation.results:
            size = result.type.size * result.type.dtype.itemsize
            alive += size
            end = last_use.get(result, number)
            freed[end] = freed.get(end, 0) + size
        peak = max(peak, alive + inner)
        alive -= freed.pop(number, 0)
    return peak
