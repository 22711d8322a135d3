"""Writes the sources of the site: all pages, and the reference; `make site` runs it, then Sphinx.

Usage: make_site.py FOLDER [NAME ...]. With names, such as `axir.numpy.sum`, the reference has only
    these. The reference is made from the docstrings, and shows the compiled forms of a sample call
    of each function (`reference/`).
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from reference.links import Site
from reference.names import modules
from reference.pages import Reference
from tables.markdown import ROOT

LEARN = ["quickstart", "sharp_bits", "faq", "autodiff", "custom_derivatives", "pytrees"]
LEARN += ["log_densities", "jaxprs", "interpreters", "primitives", "examples"]
USE = [
    "as_jax",
    "libraries",
    "devices",
    "distributed",
    "gpus",
    "errors",
    "profiling",
    "kernels",
    "saved_modules",
    "from_torch",
    "export",
    "cpp",
    "stablehlo",
    "options",
]
INSIDE = ["an-hour", "design", "native", "ops", "passes", "error_classes", "iree"]
OTHER_PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "benchmarks/README.md",
    "benchmarks/imported/README.md",
)
INDEX = """\
# axir

```{{include}} README.md
:start-line: 1
```

{contents}"""


def contents(title: str, pages: list[str]) -> str:
    """Returns a table of contents that stands beside all pages."""
    listed = "\n".join(pages)
    return f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n{listed}\n```\n\n"


def main() -> None:
    """Writes the pages."""
    folder, only = Path(sys.argv[1]), frozenset(sys.argv[2:])
    shutil.rmtree(folder, ignore_errors=True)
    site = Site(folder)
    shutil.copytree(ROOT / "docs/images", folder / "docs/images")
    for picture in (ROOT / "benchmarks").glob("*.png"):
        (folder / "benchmarks").mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, folder / "benchmarks")
    pages = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md"))
    for path in (*OTHER_PAGES, *pages):
        site.copy_page(path)
    reference = Reference(site)
    written = [reference.write_module(module, only) for module in modules()]
    named = {f"docs/{name}" for name in (*LEARN, *USE, *INSIDE)}
    further = [path.removesuffix(".md") for path in pages]
    parts = [
        contents("Learn", [f"docs/{name}" for name in LEARN]),
        contents("Use", [f"docs/{name}" for name in USE]),
        contents("Inside", [f"docs/{name}" for name in INSIDE]),
        contents(
            "Further",
            [page for page in further if page not in named]
            + [path.removesuffix(".md") for path in OTHER_PAGES[1:]],
        ),
        contents("Reference", [page for page in written if page]),
    ]
    site.write("index.md", INDEX.format(contents="".join(parts)))
    site.write_sources()


if __name__ == "__main__":
    main()
