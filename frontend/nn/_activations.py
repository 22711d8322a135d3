"""Activation functions. All are elementwise, save for `glu`, and integers become floats.

Branches that a function does not take get arguments for which they are finite, so that gradients
are finite wherever the function's are.
"""

from __future__ import annotations

import math

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ArrayLike, ConcreteArray
from axir.dialect.core.errors import ParameterError
from axir.dialect.ops.elementwise.arithmetic import add, clamp, div, mul, neg, square
from axir.dialect.ops.elementwise.arithmetic import max as maximum
from axir.dialect.ops.elementwise.arithmetic import min as minimum
from axir.dialect.ops.elementwise.comparison import ge, gt, le, lt, select_n
from axir.dialect.ops.elementwise.transcendental import (
    erfc,
    exp,
    expm1,
    log,
    log1p,
    logistic,
    sqrt,
    tanh,
)
from axir.dialect.program.op_table import OPS
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer
from axir.numpy._arguments.checks import canonical_axis
from axir.numpy._arguments.promotion import (
    array_argument,
    broadcast_arguments,
    constant,
    promote_arguments,
    promote_inexact,
)
from axir.numpy._elementwise.arithmetic import absolute
from axir.numpy._elementwise.elementwise import are_local, evaluate
from axir.numpy._elementwise.exponential import logaddexp
from axir.numpy._shape.joining import split

_bind_logistic = OPS["logistic"].bind
_evaluate_logistic: UserObject = OPS["logistic"].evaluate
# Concrete arrays of these dtypes are evaluated in one step instead of op by op.
_DIRECT = frozenset((dtypes.float32, dtypes.float64))


def _inexact(name: str, x: ArrayLike) -> Value:
    if (type(x) is ConcreteArray or type(x) is Tracer) and dtypes.is_inexact(x.type.dtype):
        return x
    return promote_inexact(f"nn.{name}", x)[0]


def _beside_floats(name: str, x: ArrayLike) -> Value:
    """Promotes as beside a Python float: integers become weak floats."""
    if (type(x) is ConcreteArray or type(x) is Tracer) and dtypes.is_inexact(x.type.dtype):
        return x
    return promote_arguments(f"nn.{name}", x, 1.0)[0]


def _like(value: object, x: Value) -> Value:
    """Returns a number as a weak scalar of the dtype of an array."""
    return constant(value, x.type.dtype, True)


# Rectifiers ------------------------------------------------------------------------------------


def relu(x: ArrayLike) -> Value:
    """Returns max(x, 0); the derivative at 0 is 0. Integers stay integers.

    >>> import axir, axir.numpy as jnp
    >>> axir.nn.relu(jnp.array([-1.0, 0.0, 2.0]))
    Array([0., 0., 2.], dtype=float32)
    """
    if type(x) is Tracer:
        zero = _like(0, x)
        return select_n(le(x, zero), x, zero)
    x = array_argument("nn.relu", x)
    return maximum(x, _like(0, x))


def relu6(x: ArrayLike) -> Value:
    """Returns min(max(x, 0), 6); the derivative at 0 and 6 is 0.

    >>> import axir, axir.numpy as jnp
    >>> axir.nn.relu6(jnp.array([-1.0, 3.0, 9.0]))
    Array([0., 3., 6.], dtype=float32)
    """
    x = _beside_floats("relu6", x)
    return clamp(_like(0, x), x, _like(6, x))


def leaky_relu(x: ArrayLike, negative_slope: object = 0.01) -> Value:
    """Returns x where x >= 0, else negative_slope * x.

    >>> import axir, axir.numpy as jnp
    >>> axir.nn.leaky_relu(jnp.array([-1.0, 2.0]), 0.5)
    Array([-0.5,  2. ], dtype=float32)
    """
    x, slope = promote_arguments("nn.leaky_relu", x, negative_slope)
    x, slope = broadcast_arguments("nn.leaky_relu", x, slope)
    return select_n(ge(x, _like(0, x)), mul(slope, x), x)


def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Value:
    """Returns the exponential linear unit: x where x > 0, else alpha (exp(x) - 1).

    >>> import axir
    >>> axir.nn.elu(3.0)
    Array(3., dtype=float32, weak_type=True)
    """
    x, alpha = promote_inexact("nn.elu", x, alpha)
    x, alpha = broadcast_arguments("nn.elu", x, alpha)
    is_positive = gt(x, _like(0, x))
    negative = select_n(is_positive, x, _like(0, x))
    return select_n(is_positive, mul(alpha, expm1(negative)), x)


def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Value:
    """Returns the continuously differentiable ELU: max(x, 0) + alpha (exp(min(x, 0) / alpha) - 1).

    Source: Barron, "Continuously Differentiable Exponential Linear Units", 2017.

    >>> import axir
    >>> axir.nn.celu(3.0)
    Array(3., dtype=float32, weak_type=True)
    """
    x, alpha = promote_inexact("nn.celu", x, alpha)
    x, alpha = broadcast_arguments("nn.celu", x, alpha)
    zero = _like(0, x)
    return add(maximum(x, zero), mul(alpha, expm1(div(minimum(x, zero), alpha))))


_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


def selu(x: ArrayLike) -> Value:
    """Returns the scaled ELU that keeps mean 0 and variance 1.

    Source: Klambauer et al., "Self-Normalizing Neural Networks", 2017.

    >>> import axir, axir.numpy as jnp
    >>> axir.nn.selu(jnp.array([0.0, 1.0]))
    Array([0.      , 1.050701], dtype=float32)
    """
    x = _beside_floats("selu", x)
    return mul(_like(_SELU_SCALE, x), elu(x, _SELU_ALPHA))


# Sigmoids --------------------------------------------------------------------------------------


def sigmoid(x: ArrayLike) -> Value:
    """Returns the logistic function 1 / (1 + exp(-x)).

    >>> import axir
    >>> axir.nn.sigmoid(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return _bind_logistic(_inexact("sigmoid", x))


def log_sigmoid(x: ArrayLike) -> Value:
    """Returns log(sigmoid(x)), without cancellation or overflow.

    >>> import axir
    >>> axir.nn.log_sigmoid(-1000.0)
    Array(-1000., dtype=float32, weak_type=True)
    """
    return neg(softplus(neg(_inexact("log_sigmoid", x))))


def softplus(x: ArrayLike) -> Value:
    """Returns log(1 + exp(x)), without overflow.

    >>> import axir
    >>> axir.nn.softplus(1000.0)
    Array(1000., dtype=float32, weak_type=True)
    """
    x = _inexact("softplus", x)
    return logaddexp(x, _like(0, x))


def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Value:
    """Returns (x + sqrt(x**2 + b)) / 2, an algebraic `softplus`.

    Source: Barron, "Squareplus: A Softplus-Like Algebraic Rectifier", 2021.

    >>> import axir
    >>> axir.nn.squareplus(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    x, b = promote_inexact("nn.squareplus", x, b)
    x, b = broadcast_arguments("nn.squareplus", x, b)
    return div(add(x, sqrt(add(square(x), b))), _like(2, x))


def sparse_plus(x: ArrayLike) -> Value:
    """Returns 0 up to -1, x from 1 on, and (x + 1)**2 / 4 between.

    >>> import axir, axir.numpy as jnp
    >>> axir.nn.sparse_plus(jnp.array([-2.0, 0.0, 3.0]))
    Array([0.  , 0.25, 3.  ], dtype=float32)
    """
    x = _beside_floats("sparse_plus", x)
    one = _like(1, x)
    middle = div(square(add(clamp(_like(-1, x), x, one), one)), _like(4, x))
    return select_n(ge(x, one), middle, x)


def sparse_sigmoid(x: ArrayLike) -> Value:
    """Returns the derivative of `sparse_plus`: (x + 1) / 2, limited to the interval from 0 to 1.

    >>> import axir, axir.numpy as jnp
    >>> axir.nn.sparse_sigmoid(jnp.array([-2.0, 0.0, 3.0]))
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    x = _beside_floats("sparse_sigmoid", x)
    limited = minimum(maximum(add(x, _like(1, x)), _like(0, x)), _like(2, x))
    return mul(_like(0.5, x), limited)


def soft_sign(x: ArrayLike) -> Value:
    """Returns x / (|x| + 1).

    >>> import axir
    >>> axir.nn.soft_sign(-1.0)
    Array(-0.5, dtype=float32, weak_type=True)
    """
    x = _inexact("soft_sign", x)
    return div(x, add(absolute(x), _like(1, x)))


def silu(x: ArrayLike) -> Value:
    """Returns x sigmoid(x); `swish` is another name.

    >>> import axir
    >>> axir.nn.silu(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    x = _inexact("silu", x)
    if type(x) is ConcreteArray and x.type.dtype in _DIRECT and are_local(x):
        return evaluate("nn.silu", _silu_of, x.type, x)
    return mul(x, logistic(x))


def _silu_of(x: np.ndarray) -> np.ndarray:
    return x * _evaluate_logistic(x)


swish = silu


def mish(x: ArrayLike) -> Value:
    """Returns x tanh(softplus(x)).

    >>> import axir
    >>> axir.nn.mish(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    x = _inexact("mish", x)
    return mul(x, tanh(softplus(x)))


def hard_tanh(x: ArrayLike) -> Value:
    """Returns x, limited to the interval from -1 to 1; integers stay integers.

    >>> import axir, axir.numpy as jnp
    >>> axir.nn.hard_tanh(jnp.array([-3.0, 0.5, 2.0]))
    Array([-1. ,  0.5,  1. ], dtype=float32)
    """
    x = array_argument("nn.hard_tanh", x)
    one, minus_one = _like(1, x), _like(-1, x)
    return select_n(gt(x, one), select_n(lt(x, minus_one), x, minus_one), one)


def hard_sigmoid(x: ArrayLike) -> Value:
    """Returns relu6(x + 3) / 6.

    >>> import axir, axir.numpy as jnp
    >>> axir.nn.hard_sigmoid(jnp.array([-4.0, 0.0, 4.0]))
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    x = _beside_floats("hard_sigmoid", x)
    return div(relu6(add(x, _like(3, x))), _like(6, x))


def hard_silu(x: ArrayLike) -> Value:
    """Returns x hard_sigmoid(x); `hard_swish` is another name.

    >>> import axir, axir.numpy as jnp
    >>> axir.nn.hard_silu(jnp.array([-4.0, 1.0, 4.0]))
    Array([-0.       ,  0.6666667,  4.       ], dtype=float32)
    """
    x = _beside_floats("hard_silu", x)
    return mul(x, hard_sigmoid(x))


hard_swish = hard_silu


def gelu(x: ArrayLike, approximate: bool = True) -> Value:
    """Returns the Gaussian error linear unit: x times the normal distribution function of x.

    Args:
        x: Array or scalar.
        approximate: Whether to use tanh(sqrt(2 / pi) (x + 0.044715 x**3)) in place of the error
            function.

    Source: Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.

    >>> import axir, axir.numpy as jnp
    >>> axir.nn.gelu(jnp.array([0.0, 1.0]))
    Array([0.      , 0.841192], dtype=float32)
    """
    x = _inexact("gelu", x)
    half = _like(0.5, x)
    if not approximate:
        return mul(mul(half, x), erfc(mul(neg(x), constant(math.sqrt(0.5), x.dtype))))
    cubic = add(x, mul(_like(0.044715, x), mul(x, square(x))))
    inner = tanh(mul(constant(math.sqrt(2 / math.pi), x.dtype), cubic))
    return mul(x, mul(half, add(_like(1, x), inner)))


def glu(x: ArrayLike, axis: int = -1) -> Value:
    """Returns the gated linear unit: the first half along an axis times sigmoid of the second.

    Raises:
        ParameterError: if the axis has an odd extent.
        AxisError: for an axis out of range.

    >>> import axir, axir.numpy as jnp
    >>> axir.nn.glu(jnp.array([4.0, 0.0]))
    Array([2.], dtype=float32)
    """
    x = _inexact("glu", x)
    axis = canonical_axis("nn.glu", axis, x.ndim)
    if x.shape[axis] % 2:
        raise ParameterError(
            f"nn.glu: axis {axis} of {x.aval} has the odd extent {x.shape[axis]}.",
            "Its two halves are the values and their gates.",
        )
    value, gate = split(x, 2, axis)
    return mul(value, logistic(gate))


def log1mexp(x: ArrayLike) -> Value:
    """Returns log(1 - exp(-x)) for x > 0, without cancellation.

    Source: Mächler, "Accurately Computing log(1 - exp(-|a|))", 2012.

    >>> import axir
    >>> axir.nn.log1mexp(float("inf"))
    Array(-0., dtype=float32, weak_type=True)
    """
    x = _inexact("log1mexp", x)
    is_small = lt(x, _like(math.log(2), x))
    # Each branch gets an argument at which it and its derivative are finite.
    small, large = select_n(is_small, _like(1, x), x), select_n(is_small, x, _like(1, x))
    return select_n(is_small, log1p(neg(exp(neg(large)))), log(neg(expm1(neg(small)))))


def identity(x: ArrayLike) -> Value:
    """Returns its argument as an array.

    >>> import axir
    >>> axir.nn.identity(2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    return array_argument("nn.identity", x)
