"""Names of modules that are imported late."""

from __future__ import annotations

import pytest

from axir._later import later as of_frontend
from axir.dialect.core.late_modules import LateNames
from axir.dialect.ops.later_ops import later as of_ops
from axir.dialect.program.operation import later as of_programs

ROOMS = {"frontend": of_frontend, "ops": of_ops, "programs": of_programs}


@pytest.mark.parametrize("room", ROOMS)
def test_every_name_is_found_in_its_module(room: str) -> None:
    names = ROOMS[room]._module_of
    assert names
    for name in names:
        assert getattr(ROOMS[room], name) is not None


def test_a_missing_module_is_an_error() -> None:
    names = LateNames("axir.dialect", {"nowhere": ["nothing"]})
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        _ = names.nothing
    with pytest.raises(AttributeError, match="No module is known for the late name other"):
        _ = names.other
