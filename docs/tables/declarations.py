"""Where each op is declared, seen by watching the declarations while axir is imported."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from .markdown import Place, source_path

DECLARED: dict[str, Place] = {}


def _watch(frame: FrameType, event: str, argument: Any) -> None:
    if event != "call" or frame.f_code.co_name != "declare":
        return
    outer = frame.f_back
    while outer is not None and outer.f_code.co_name != "<module>":
        outer = outer.f_back
    if outer is not None and "name" in frame.f_locals:
        place = Place(source_path(outer.f_code.co_filename), outer.f_lineno)
        DECLARED[frame.f_locals["name"]] = place


if "axir" in sys.modules:
    raise ImportError("axir is imported already, so nobody saw where its ops are declared.")
sys.setprofile(_watch)
try:
    import axir  # noqa: F401
finally:
    sys.setprofile(None)
