"""Functions exported with open rows; tests check whether rows are independent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from axir._bundles.batching import DependentRowsError
from axir.dialect.core.errors import AxirError
from axir.export import Exported, export


def export_rows(function: Callable[..., Any], **options: Any) -> Callable[..., Exported]:
    """Returns an exporter of a function; it raises the reason why rows are not independent."""

    def exporter(*specs: Any, **named: Any) -> Exported:
        try:
            exported = export(function, **options)(*specs, **named)
        except AxirError as error:
            if isinstance(error.__cause__, DependentRowsError):
                raise error.__cause__ from None
            raise
        if exported.dependent_rows is not None:
            raise exported.dependent_rows
        return exported

    return exporter
