"""The results of collectives, given the operands of one group: the members' parts in NumPy.

Elsewhere: how the parts of a group come together (`engines.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np

from axir.dialect.core.annotations import HostArray
from axir.dialect.program.meshes.communication import REDUCTIONS, Collective
from axir.runtime.device.buffers import aligned_empty

_REDUCTIONS = {"psum": np.add, "pmax": np.maximum, "pmin": np.minimum}
# Sums of narrow numbers are rounded once.
_WIDE_SUMS = {np.dtype(np.float16): np.float32, np.dtype(ml_dtypes.bfloat16): np.float32}
# Bytes of the operands that a pass of a reduction adds: the partial result stays in the cache.
_CHUNK_BYTES = 1 << 18
# Arrays up to this size are always copied, because that takes less time than aligning them.
_SMALL_BYTES = 1 << 14


def combined(collective: Collective, operands: Sequence[HostArray]) -> list[HostArray]:
    """Returns what each member of a group gets, as read-only arrays that members may share.

    Args:
        collective: The collective.
        operands: The members' parts, in their order in the group.

    >>> from axir.dialect.core.types import ShapedArray
    >>> part = ShapedArray((2,), np.float32)
    >>> parts = [np.ones(2, np.float32), np.arange(2, dtype=np.float32)]
    >>> combined(Collective("psum", ((0, 1),), part, part), parts)[0]
    array([1., 2.], dtype=float32)
    """
    kind = collective.kind
    if kind in REDUCTIONS:
        results = [reduced(kind, operands)] * len(operands)
    elif kind == "all_gather":
        results = [_gathered(collective, operands)] * len(operands)
    elif kind == "reduce_scatter":
        results = scattered(collective, reduced("psum", operands), len(operands))
    elif kind == "all_to_all":
        results = _exchanged(collective, operands)
    else:
        results = _permuted(collective, operands)
    for result in results:
        result.flags.writeable = False
    return results


def _empty(collective: Collective) -> HostArray:
    return aligned_empty(collective.result_type.shape, collective.result_type.dtype)


def partial_sum(kind: str, operands: Sequence[HostArray]) -> HostArray:
    """Returns the reduction of some operands, in the dtype of the further reduction."""
    wide = _WIDE_SUMS.get(operands[0].dtype) if kind == "psum" else None
    if wide is not None:
        return reduced(kind, [x.astype(wide) for x in operands])
    return operands[0] if len(operands) == 1 else reduced(kind, operands)


def reduced(kind: str, operands: Sequence[HostArray] | HostArray) -> HostArray:
    """Reduces arrays in their order, chunk by chunk."""
    first = operands[0]
    reduce = _REDUCTIONS[kind]
    wide = _WIDE_SUMS.get(first.dtype) if kind == "psum" else None
    if first.nbytes <= _SMALL_BYTES and wide is None and len(operands) > 1:
        total = np.empty(first.shape, first.dtype)
        reduce(first, operands[1], out=total)
        for other in operands[2:]:
            reduce(total, other, out=total)
        return total
    result = aligned_empty(first.shape, first.dtype)
    if len(operands) == 1:
        np.copyto(result, first)
        return result
    into, parts = result.reshape(-1), [np.ascontiguousarray(x).reshape(-1) for x in operands]
    step = _CHUNK_BYTES // first.itemsize
    for start in range(0, into.size, step):
        chunk = slice(start, start + step)
        if wide is not None:
            into[chunk] = sum(x[chunk].astype(wide) for x in parts)
            continue
        target = into[chunk]
        reduce(parts[0][chunk], parts[1][chunk], out=target)
        for part in parts[2:]:
            reduce(target, part[chunk], out=target)
    return result


def _gathered(collective: Collective, operands: Sequence[HostArray]) -> HostArray:
    result = _empty(collective)
    join = np.concatenate if collective.is_tiled else np.stack
    join(operands, axis=collective.dimension, out=result)
    return result


def scattered(collective: Collective, total: HostArray, count: int) -> list[HostArray]:
    """Returns each member's part of a sum, for `reduce_scatter`."""
    pieces = np.split(total, count, axis=collective.dimension)
    if not collective.is_tiled:
        pieces = [np.squeeze(x, collective.dimension) for x in pieces]
    return [_copied(collective, x) for x in pieces]


def _exchanged(collective: Collective, operands: Sequence[HostArray]) -> list[HostArray]:
    count = len(operands)
    pieces = [np.split(x, count, axis=collective.dimension) for x in operands]
    results = []
    for receiver in range(count):
        result = _empty(collective)
        received = [pieces[sender][receiver] for sender in range(count)]
        np.concatenate(received, axis=collective.concat_dimension, out=result)
        results.append(result)
    return results


def _permuted(collective: Collective, operands: Sequence[HostArray]) -> list[HostArray]:
    """Sends arrays as pairs say; a member that receives nothing gets zeros."""
    sources = {receiver: sender for sender, receiver in collective.permutation}
    results = []
    for receiver in range(len(operands)):
        if receiver in sources:
            results.append(_copied(collective, operands[sources[receiver]]))
        else:
            nothing = _empty(collective)
            nothing.fill(0)
            results.append(nothing)
    return results


def _copied(collective: Collective, part: HostArray) -> HostArray:
    """Copies a part: its owner's program uses its memory again afterwards."""
    result = _empty(collective)
    np.copyto(result, part)
    return result
