"""Draws the pictures of pages and examples in `images/`; `make pictures` runs it.

Usage: pictures.py [NAME ...]. A name is the file name of a page or an example, without its
extension; without names all are drawn. A page's examples are run, and its figures are saved under
the names of the pictures that it shows, in their order. An example is run in full. Pictures are
reduced to a small palette, so that they stay a few dozen kilobytes.
"""

from __future__ import annotations

import doctest
import re
import runpy
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from PIL import Image

FOLDER = Path(__file__).parent
IMAGES = FOLDER / "images"
EXAMPLES = FOLDER.parent / "examples"
SHOWN = re.compile(r"!\[[^\]]*\]\(images/([\w-]+\.png)\)")
BLOCK = re.compile(r"^```python\n(>>> .*?)^```$", re.MULTILINE | re.DOTALL)
WIDTH, COLOURS = 640, 64


def draw_page(path: Path) -> None:
    """Runs a page's examples, and saves its figures."""
    names = SHOWN.findall(path.read_text())
    plt.close("all")
    code = "".join(BLOCK.findall(path.read_text()))
    test = doctest.DocTestParser().get_doctest(code, {}, path.name, str(path), 0)
    exec("\n".join(example.source for example in test.examples), {"__name__": "__main__"})
    for name, number in zip(names, plt.get_fignums(), strict=True):
        plt.figure(number).savefig(IMAGES / name, dpi=70)
        reduce(IMAGES / name)


def draw_example(path: Path) -> None:
    """Runs an example in full."""
    picture = IMAGES / f"{path.stem}.png"
    sys.argv = [str(path), "--out", str(picture)]
    runpy.run_path(str(path), run_name="__main__")
    reduce(picture)


def reduce(path: Path) -> None:
    """Writes a picture again, no wider than a page, with few colours."""
    picture = Image.open(path).convert("RGB")
    picture.thumbnail((WIDTH, WIDTH))
    picture.quantize(COLOURS).save(path, optimize=True)


def main() -> None:
    """Draws the requested pictures."""
    IMAGES.mkdir(exist_ok=True)
    wanted = sys.argv[1:]
    pages = [page for page in sorted(FOLDER.glob("*.md")) if SHOWN.search(page.read_text())]
    drawn = {path.stem: draw_page for path in pages if path.stem != "examples"}
    drawn |= {path.stem: draw_example for path in EXAMPLES.glob("*.py") if path.stem != "digits"}
    for name, draw in drawn.items():
        if not wanted or name in wanted:
            folder, ending = (FOLDER, ".md") if draw is draw_page else (EXAMPLES, ".py")
            draw(folder / f"{name}{ending}")


if __name__ == "__main__":
    main()
