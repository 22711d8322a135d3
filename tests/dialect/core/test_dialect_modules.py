"""Wrapping an operation searches the disk for its dialect's Python module once at most."""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Iterator

import pytest
from iree.compiler import ir

from axir.dialect.core.context import context

TEXT = """
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.sine %x : tensor<4xf32>
      %1 = chlo.tan %0 : tensor<4xf32> -> tensor<4xf32>
      %2 = "jaxpr.neg"(%1) : (tensor<4xf32>) -> tensor<4xf32>
      return %2 : tensor<4xf32>
    }
"""


class Searches(importlib.abc.MetaPathFinder):
    """Records the modules that are looked for."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        self.names.append(fullname)


@pytest.fixture
def searches() -> Iterator[Searches]:
    finder = Searches()
    sys.meta_path.insert(0, finder)
    yield finder
    sys.meta_path.remove(finder)


def test_operations_are_wrapped_without_a_search(searches: Searches) -> None:
    module = ir.Module.parse(TEXT, context())
    block = module.body.operations[0].regions[0].blocks[0]
    first = [operation.operation.name for operation in block.operations]
    searches.names.clear()
    assert [operation.operation.name for operation in block.operations] == first
    assert all(operation.operands[0].owner is not None for operation in block.operations)
    assert searches.names == []
