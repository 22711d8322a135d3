"""Programs of one kernel as plain data: kept and read back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from axir.runtime.native.kernel_program import KernelProgram

_origins = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 999))).map(tuple)
_shapes = st.lists(st.integers(0, 1 << 40), max_size=4).map(tuple)
_names = st.sampled_from(["float32", "bfloat16", "bool", "uint64"])
_places = st.lists(st.tuples(st.integers(0, 999), st.integers(0, 1 << 40))).map(tuple)
_steps = st.lists(st.tuples(st.text(max_size=9), st.integers(0, 999), _places)).map(tuple)
_programs = st.builds(
    KernelProgram,
    st.binary(max_size=300),
    st.lists(st.integers(0, 999)).map(tuple),
    st.lists(st.tuples(_names, _shapes, st.binary())).map(tuple),
    st.lists(st.tuples(_names, _shapes)).map(tuple),
    st.integers(0, 1 << 40),
    _origins,
    _steps,
    st.booleans(),
    st.lists(st.binary(max_size=30)).map(tuple),
    _places,
)


@given(_programs)
def test_a_program_is_what_it_was_when_read_back(program: KernelProgram) -> None:
    assert KernelProgram.from_bytes(program.to_bytes()) == program
