"""Pages of the reference: a page for each module, and one for each function and class."""

from __future__ import annotations

import inspect
import re
from types import ModuleType

from tables.markdown import source_path, table
from tables.ops import rules_of

from axir.dialect.program.operation import RULES

from .docstrings import markdown, summary
from .links import Site
from .names import Name, has_page, names_of
from .samples import Sample, sample_of

# Pages of functions are found by search and from their module's page: a list of all of them beside
# every page would be longer than the pages.
ORPHAN = "---\norphan: true\n---\n\n"


class Reference:
    """The reference of a site.

    Attributes:
        site: Where it is written.
        pages: Pages of functions and classes, by object; an object with several names has one page.
    """

    def __init__(self, site: Site):
        self.site = site
        self.pages: dict[int, str] = {}

    def write_module(self, module: ModuleType, only: frozenset[str] = frozenset()) -> str | None:
        """Writes a module's page and the pages of its names; returns its path without extension."""
        found = [name for name in names_of(module) if not only or name.full in only]
        if not found:
            return None
        for name in found:
            if has_page(name.value) and id(name.value) not in self.pages:
                path = f"reference/{module.__name__}/{name.name}"
                self.pages[id(name.value)] = path
                self.site.write(f"{path}.md", self.page(name))
        rows = [(self._linked(name), _summary(name)) for name in found]
        text = f"# `{module.__name__}`\n\n{markdown(module)}\n{table(['name', ''], rows)}"
        self.site.write(f"reference/{module.__name__}.md", text)
        return f"reference/{module.__name__}"

    def _linked(self, name: Name) -> str:
        page = self.pages.get(id(name.value))
        if page is None:
            return f"`{name.name}`"
        return f"[`{name.name}`]({page.removeprefix('reference/')}.md)"

    def page(self, name: Name) -> str:
        """Returns the page of a function or a class."""
        head = f"{ORPHAN}# `{name.full}`\n\n```python\n{_signature(name)}\n```\n\n"
        text = f"{head}{markdown(name.value)}\n"
        if inspect.isclass(name.value):
            text += "".join(map(_method, _methods(name.value)))
        sample = sample_of(name)
        if sample is not None:
            text += self._sample(sample)
        return text + self._where(name)

    def _sample(self, sample: Sample) -> str:
        text = (
            f"## A call as a program\n\n```python\n{sample.call}\n```\n\n"
            f"The jaxpr:\n\n```text\n{sample.jaxpr}\n```\n\n"
            f"The StableHLO:\n\n```text\n{sample.stablehlo}\n```\n"
        )
        if not sample.primitives:
            return text
        rows = [rules_of(primitive) for primitive in sample.primitives]
        return (
            f"{text}\nThe rules of its [ops](../../docs/ops.md):\n\n{table(['op', *RULES], rows)}"
        )

    def _where(self, name: Name) -> str:
        try:
            file = source_path(inspect.getsourcefile(inspect.unwrap(name.value)) or "")
        except (TypeError, ValueError):
            return ""
        page = f"reference/{name.module}/{name.name}.md"
        return f"\nDefined in [`{file}`]({self.site.target(f'../../{file}', page)}).\n"


def _summary(name: Name) -> str:
    return summary(name.value) if has_page(name.value) else ""


def _signature(name: Name) -> str:
    try:
        signature = str(inspect.signature(name.value))
    except (TypeError, ValueError):
        signature = "(...)"
    # Defaults as they are written: what Python shows of classes and objects is no code.
    for shown, written in (
        (r"<class '([\w.]+)'>", r"\1"),
        (r"<([\w.]+): [^<>]*>", r"\1"),
        (r"<[^<>]*? at 0x[0-9a-f]+>", "..."),
    ):
        signature = re.sub(shown, written, signature)
    return f"{name.name}{signature}"


def _methods(documented: type) -> list[Name]:
    members = vars(documented).items()
    return [
        Name(documented.__name__, key, value)
        for key, value in members
        if not key.startswith("_")
        and inspect.getdoc(value)
        and (callable(value) or isinstance(value, property))
    ]


def _method(name: Name) -> str:
    called = name.name if isinstance(name.value, property) else _signature(name)
    return f"## `{name.name}`\n\n```python\n{called}\n```\n\n{markdown(name.value)}\n"
