"""Linear algebra: the operations of StableHLO, and calls of LAPACK as JAX's lowering writes them.

LAPACK's result `info` becomes zero: axir's decompositions are NaN where they fail. JAX's are also
NaN there, because they select NaN by `info`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.core import dtypes
from axir.dialect.core.array import from_numpy
from axir.dialect.ops.elementwise import conversion
from axir.dialect.ops.elementwise.arithmetic import add
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.indexing.static_slicing import slice_in_dim
from axir.dialect.ops.linalg.cholesky import cholesky
from axir.dialect.ops.linalg.eig import eig
from axir.dialect.ops.linalg.eigh import eigh
from axir.dialect.ops.linalg.householder import factor_qr, multiply_reflections
from axir.dialect.ops.linalg.lu import lu
from axir.dialect.ops.linalg.matrices import adjoint
from axir.dialect.ops.linalg.qr import qr
from axir.dialect.ops.linalg.schur import hessenberg, schur, tridiagonal
from axir.dialect.ops.linalg.svd import svd
from axir.dialect.ops.linalg.triangular_solve import triangular_solve
from axir.dialect.ops.linalg.tridiagonal_solve import tridiagonal_solve
from axir.dialect.ops.shape.padding import pad
from axir.dialect.program.rules import Value
from axir.passes.raising.dimensions.attributes import flag, word

from .table import RaisingContext, raises, raises_calls_of, refusal, result_type


@raises("stablehlo.cholesky")
def _cholesky(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    factor = _factored(_wide(x), flag(operation, "lower"))
    return convert_element_type(factor, x.dtype)


def _wide(x: Value) -> Value:
    """Returns numbers of half precision as float32, which axir's matrix functions support."""
    is_half = x.dtype in (dtypes.float16, dtypes.bfloat16)
    return convert_element_type(x, dtypes.float32) if is_half else x


def _factored(x: Value, is_lower: bool) -> Value:
    if is_lower:
        return cholesky(x, symmetrize_input=False)
    return adjoint(cholesky(adjoint(x), symmetrize_input=False))


@raises("stablehlo.triangular_solve")
def _triangular_solve(
    context: RaisingContext, operation: ir.Operation, a: Value, b: Value
) -> Value:
    kind = word(operation.attributes["transpose_a"])
    solution = triangular_solve(
        _wide(a),
        _wide(b),
        left_side=flag(operation, "left_side"),
        lower=flag(operation, "lower"),
        transpose_a=kind in ("TRANSPOSE", "ADJOINT"),
        conjugate_a=kind == "ADJOINT",
        unit_diagonal=flag(operation, "unit_diagonal"),
    )
    return convert_element_type(solution, b.dtype)


# LAPACK -----------------------------------------------------------------------------------------


def _routines(names: str, types: str = "sdcz") -> Iterator[str]:
    """Yields the call targets of a routine: `getrf` is `lapack_sgetrf_ffi` and similar names."""
    for name in names.split():
        yield from (f"lapack_{letter}{name}_ffi" for letter in types)


def _letter(operation: ir.Operation, name: str, default: str = "") -> str:
    """Returns an option of a routine, which is stored as the number of a letter."""
    options = operation.attributes["mhlo.backend_config"]
    if name in options:
        return chr(ir.IntegerAttr(options[name]).value)
    if default:
        return default
    raise refusal(
        f"The call of {_target(operation)} has no option {name!r}.", "Export the program again."
    )


def _target(operation: ir.Operation) -> str:
    return ir.StringAttr(operation.attributes["call_target_name"]).value


def _is_used(operation: ir.Operation, number: int) -> bool:
    return any(True for _ in operation.results[number].uses)


def _filled(operation: ir.Operation, results: Iterable[Value | None]) -> list[Value]:
    """Returns the results of a call: the given ones, and zeros (such as `info`) for the others."""
    given = list(results)
    given += [None] * (len(operation.results) - len(given))
    made = []
    for number, value in enumerate(given):
        if value is None:
            wanted = result_type(operation, number)
            value = from_numpy(np.zeros(wanted.shape, wanted.dtype))
        made.append(value)
    return made


@raises_calls_of(*_routines("potrf"))
def _potrf(context: RaisingContext, operation: ir.Operation, x: Value) -> Sequence[Value]:
    return _filled(operation, [_factored(x, _letter(operation, "uplo") == "L")])


@raises_calls_of(*_routines("getrf"))
def _getrf(context: RaisingContext, operation: ir.Operation, x: Value) -> Sequence[Value]:
    packed, pivots, _ = lu(x)
    return _filled(operation, [packed, add(pivots, np.int32(1))])


@raises_calls_of(*_routines("trsm"))
def _trsm(context: RaisingContext, operation: ir.Operation, a: Value, b: Value) -> Value:
    kind = _letter(operation, "trans_x")
    return triangular_solve(
        a,
        b,
        left_side=_letter(operation, "side") == "L",
        lower=_letter(operation, "uplo") == "L",
        transpose_a=kind != "N",
        conjugate_a=kind == "C",
        unit_diagonal=_letter(operation, "diag") == "U",
    )


@raises_calls_of(*_routines("gesdd"), *_routines("gesvd"))
def _gesdd(context: RaisingContext, operation: ir.Operation, x: Value) -> Sequence[Value]:
    mode = _letter(operation, "mode")
    if mode == "N":
        return _filled(operation, [None, svd(x, compute_uv=False)])
    left, values, right = svd(x, full_matrices=mode == "A")
    return _filled(operation, [None, values, left, right])


@raises_calls_of(*_routines("syevd", "sd"), *_routines("heevd", "cz"))
def _syevd(context: RaisingContext, operation: ir.Operation, x: Value) -> Sequence[Value]:
    is_lower = _letter(operation, "uplo") == "L"
    vectors, values = eigh(x, lower=is_lower, symmetrize_input=False)
    return _filled(operation, [vectors, values])


@raises_calls_of(*_routines("geev"))
def _geev(context: RaisingContext, operation: ir.Operation, x: Value) -> Sequence[Value]:
    has_left, has_right = (
        _letter(operation, name) == "V" for name in ("compute_left", "compute_right")
    )
    values, *vectors = eig(
        x, compute_left_eigenvectors=has_left, compute_right_eigenvectors=has_right
    )
    parts = [values] if dtypes.is_complex(x.dtype) else _parts(values)
    found = iter(vectors)
    sides = [next(found) if is_made else None for is_made in (has_left, has_right)]
    return _filled(operation, [*parts, *sides])


def _parts(x: Value) -> list[Value]:
    return [conversion.real(x), conversion.imag(x)]


@raises_calls_of(*_routines("gees"))
def _gees(context: RaisingContext, operation: ir.Operation, x: Value) -> Sequence[Value]:
    has_vectors = _letter(operation, "mode") == "V"
    if _letter(operation, "sort", "N") != "N" or _is_used(operation, 2):
        raise refusal(
            "This Schur decomposition sorts eigenvalues, or returns them.",
            "Take the eigenvalues of the matrix with eigvals.",
        )
    found = schur(x, compute_schur_vectors=has_vectors)
    return _filled(operation, found)


@raises_calls_of(*_routines("gehrd"))
def _gehrd(context: RaisingContext, operation: ir.Operation, x: Value) -> Sequence[Value]:
    return _filled(operation, hessenberg(x))


@raises_calls_of(*_routines("sytrd", "sd"), *_routines("hetrd", "cz"))
def _sytrd(context: RaisingContext, operation: ir.Operation, x: Value) -> Sequence[Value]:
    return _filled(operation, tridiagonal(x, lower=_letter(operation, "uplo") == "L"))


@raises_calls_of(*_routines("gtsv"))
def _gtsv(
    context: RaisingContext, operation: ir.Operation, dl: Value, d: Value, du: Value, b: Value
) -> Sequence[Value]:
    zero = from_numpy(np.zeros((), d.dtype))
    before = [(0, 0, 0)] * (d.ndim - 1)
    lower, upper = dl, du
    if dl.shape != d.shape:  # the places outside the matrix, which are not read
        lower, upper = pad(dl, zero, [*before, (1, 0, 0)]), pad(du, zero, [*before, (0, 1, 0)])
    return _filled(operation, [dl, d, du, tridiagonal_solve(lower, d, upper, b)])


# QR ---------------------------------------------------------------------------------------------


@raises_calls_of(*_routines("geqrf"))
def _geqrf(context: RaisingContext, operation: ir.Operation, x: Value) -> Sequence[Value]:
    products = _products_of(operation)
    if products is None:
        packed, taus, _ = factor_qr(x)
        return [packed, taus]
    # Only the product of the reflections and the triangle are used: this is the op `qr`.
    is_full = any(product.results[0].type.shape[-1] > min(x.shape[-2:]) for product in products)
    q, r = qr(x, full_matrices=is_full)
    for product in products:
        width = product.results[0].type.shape[-1]
        context.replace(product, [slice_in_dim(q, 0, width, axis=q.ndim - 1)])
    rows = x.shape[-2] - r.shape[-2]
    zero = from_numpy(np.zeros((), x.dtype))
    below = [*[(0, 0, 0)] * (x.ndim - 2), (0, rows, 0), (0, 0, 0)]
    return _filled(operation, [pad(r, zero, below) if rows else r])


def _products_of(operation: ir.Operation) -> list[ir.Operation] | None:
    """Returns the calls that multiply the reflections, if the reflections have no other users.

    The triangle of the packed matrix may have other users, which take it by a select.
    """
    products = []
    for use in operation.results[1].uses:
        if not _is_product(use.owner):
            return None
        products.append(use.owner.operation)
    pending = [operation.results[0]]
    while pending:
        for use in pending.pop().uses:
            owner = use.owner
            if owner.name in ("stablehlo.slice", "stablehlo.pad"):
                pending.append(owner.results[0])
            elif not (_is_product(owner) or _takes_triangle(owner, use.operand_number)):
                return None
    return products if products else None


def _is_product(operation: ir.Operation | ir.OpView) -> bool:
    return operation.name == "stablehlo.custom_call" and _target(operation.operation) in (
        *_routines("orgqr", "sd"),
        *_routines("ungqr", "cz"),
    )


def _takes_triangle(operation: ir.Operation | ir.OpView, number: int) -> bool:
    """Tells whether an operation is select(row - 1 >= column, 0, x) or equivalent."""
    if operation.name != "stablehlo.select" or number != 2:
        return False
    test = operation.operands[0]
    while isinstance(test, ir.OpResult) and test.owner.name == "stablehlo.broadcast_in_dim":
        test = test.owner.operands[0]
    if not isinstance(test, ir.OpResult) or test.owner.name != "stablehlo.compare":
        return False
    if word(test.owner.attributes["comparison_direction"]) != "GE":
        return False
    rows, columns = test.owner.operands
    return _iota_dimension(rows, "stablehlo.add") == 0 and _iota_dimension(columns) == 1


def _iota_dimension(value: ir.Value, through: str = "") -> int | None:
    if not isinstance(value, ir.OpResult):
        return None
    owner = value.owner
    if owner.name == through:
        return _iota_dimension(owner.operands[0])
    if owner.name != "stablehlo.iota":
        return None
    return ir.IntegerAttr(owner.attributes["iota_dimension"]).value


@raises_calls_of(*_routines("orgqr", "sd"), *_routines("ungqr", "cz"))
def _orgqr(context: RaisingContext, operation: ir.Operation, packed: Value, taus: Value) -> Value:
    return multiply_reflections(packed, taus)


@raises_calls_of(*_routines("geqp3"))
def _geqp3(
    context: RaisingContext, operation: ir.Operation, x: Value, pivots: Value
) -> Sequence[Value]:
    packed, taus, order = factor_qr(x, True)
    return [packed, add(order, np.int32(1)), taus]
