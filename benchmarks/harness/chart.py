"""A picture of the ratios: a bar for each program, by group, on a logarithmic axis."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter
from PIL import Image

from benchmarks.harness.measure import Row
from benchmarks.harness.report import Run, geometric_mean

_ROWS = 55  # in one column
_COLORS = 32  # of the file, a third as large
_GOOD, _BEHIND, _OVER = "#2a7f62", "#e0a030", "#c0392b"


def draw(run: Run, path: Path) -> None:
    """Draws the ratios of a run: left of 1 axir is faster."""
    panels = list(_panels(run.rows))
    height = 1.5 + 0.165 * max(len(rows) for _, rows in panels)
    figure, axes = plt.subplots(
        1, len(panels), figsize=(4 * len(panels), height), layout="constrained", squeeze=False
    )
    for panel, (title, rows) in zip(axes[0], panels, strict=True):
        _draw_panel(panel, title, rows, max(len(rows) for _, rows in panels))
    machine = run.machine
    figure.suptitle(
        f"axir {machine['versions']['axir']} ({machine['commit']}): time of axir / time of the "
        f"other, left of the line axir is faster. {machine['cpu']}, {machine['cores']} cores, "
        f"JAX {machine['versions']['jax']}, {machine['date'][:10]}",
        fontsize=10,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    Image.open(path).convert("RGB").quantize(_COLORS).save(path, optimize=True)


def _panels(rows: list[Row]) -> list[tuple[str, list[Row]]]:
    """Returns titles and rows of the columns; a group that is too long takes several."""
    panels = []
    for group in dict.fromkeys(row.group for row in rows):
        ratios = [row for row in rows if row.group == group and row.ratio]
        ratios.sort(key=lambda row: -(row.ratio or 0))
        mean = geometric_mean(row.ratio for row in ratios if row.ratio)
        for start in range(0, len(ratios), _ROWS):
            title = f"{group}, continued" if start else f"{group}: geometric mean {mean:.2f}"
            panels.append((title, ratios[start : start + _ROWS]))
    return panels


def _draw_panel(panel: Axes, title: str, rows: list[Row], height: int) -> None:
    ratios = [row.ratio or 1.0 for row in rows]
    places = range(len(rows))
    # Bars grow out of the line at 1, to both sides.
    lefts = [min(1.0, ratio) for ratio in ratios]
    widths = [max(1.0, ratio) - left for ratio, left in zip(ratios, lefts, strict=True)]
    panel.barh(places, widths, left=lefts, color=[_color(row) for row in rows], height=0.7)
    panel.set_xscale("log")
    low, high = min([*ratios, 0.5]), max([*ratios, 2.0])
    panel.set_xlim(low / 1.5, high * 2.5)
    panel.set_ylim(height - 0.4, -0.6)
    panel.set_yticks(places, [row.name for row in rows], fontsize=6.5)
    panel.tick_params(axis="x", labelsize=7)
    panel.xaxis.set_major_formatter("{x:g}")
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.axvline(1, color="black", linewidth=0.8)
    panel.grid(axis="x", color="#dddddd", linewidth=0.5)
    panel.set_axisbelow(True)
    for place, ratio in zip(places, ratios, strict=True):
        panel.text(max(ratio, 1) * 1.08, place, f"{ratio:.2g}", va="center", fontsize=6)
    for side in ("top", "right", "left"):
        panel.spines[side].set_visible(False)
    panel.set_title(title, fontsize=9)


def _color(row: Row) -> str:
    if row.is_over:
        return _OVER
    return _GOOD if (row.ratio or 0) <= 1 else _BEHIND
