"""`emit_pipeline`: a kernel within a kernel, over blocks of refs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from axir import lax
from axir._transforms.refs import AnyRef, Ref
from axir._trees import tree
from axir.dialect.core.annotations import Tree, UserFunction
from axir.dialect.core.state import Change
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import state
from axir.numpy import asarray

from ._blocks import Blocks
from ._specs import GridLike, GridSpec, is_spec


def emit_pipeline(
    body: Callable[..., object],
    *,
    grid: GridLike,
    in_specs: Tree = (),
    out_specs: Tree = (),
    **options: object,
) -> UserFunction:
    """Returns a function of refs that runs a kernel on their blocks at each grid position.

    Args:
        body: Takes refs of blocks of operands, then of results.
        grid: How often it runs along each axis.
        in_specs: A `BlockSpec` for each ref that is read.
        out_specs: A `BlockSpec` for each ref that is written.
        **options: Accepted for compatibility: nothing is buffered.
    """
    extents = GridSpec(grid).grid
    specs_in = tree.leaves(in_specs, is_leaf=is_spec)
    specs_out = tree.leaves(out_specs, is_leaf=is_spec)

    def pipeline(*refs: AnyRef, scratches: Sequence[AnyRef] = (), **more: object) -> None:
        flat: list[AnyRef] = tree.leaves(refs)
        blocks = [
            Blocks(f"refs[{n}]", spec, ShapedArray(tuple(ref.shape), ref.dtype))
            for n, (spec, ref) in enumerate(zip((*specs_in, *specs_out), flat, strict=True))
        ]

        def nest(place: tuple[Value, ...]) -> None:
            if len(place) < len(extents):

                def step(i: Value, _: None) -> None:
                    nest((*place, asarray(i, np.int32)))

                lax.fori_loop(0, extents[len(place)], step, None)
                return
            with Change(grid=(place, extents, ())):
                _run(body, place, blocks, flat, len(specs_in), scratches)

        nest(())

    return pipeline


def _run(
    body: Callable[..., object],
    place: tuple[Value, ...],
    blocks: Sequence[Blocks],
    refs: Sequence[AnyRef],
    inputs: int,
    scratches: Sequence[AnyRef],
) -> None:
    """Runs the body on the blocks at a grid position, and writes their contents back."""
    starts = [each.starts(place, ()) for each in blocks]
    wholes = [each.enlarged(ref[...]) for each, ref in zip(blocks, refs, strict=True)]
    cuts = list(zip(blocks, wholes, starts, strict=True))
    parts = [Ref(each.read(whole, start), state.ambient) for each, whole, start in cuts]
    body(*parts, *scratches)
    for (each, whole, start), part, ref in list(zip(cuts, parts, refs, strict=True))[inputs:]:
        ref[...] = each.trimmed(each.write(whole, start, part.load()))
