"""The report's text: Markdown, errors first, then slow programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from .parts import Part
from .rows import VERDICTS, Row

# By words of the card's name: TFLOP/s of f32, tf32, and f16 and bf16 without sparsity; TB/s.
_PEAKS = {
    "H200": (67.0, 494.0, 989.0, 4.8),
    "H100": (67.0, 494.0, 989.0, 3.35),
    "A100": (19.5, 156.0, 312.0, 2.0),
}
_ROWS_OF_THE_CARD = ("nvidia-smi", "what it is")
_KINDS = {"tf32": 1, "bf16": 2, "bfloat16": 2, "f16": 2, "float16": 2}


def write_report(folder: Path, found: Mapping[str, Sequence[Row]], parts: Sequence[Part]) -> None:
    """Writes `report.md` and `report.json` from the rows so far."""
    content = {
        part.name: [vars(row) for row in found[part.name]] for part in parts if part.name in found
    }
    (folder / "report.json").write_text(json.dumps(content, indent=1) + "\n")
    (folder / "report.md").write_text("\n".join(_lines(found, parts)) + "\n")


def _lines(found: Mapping[str, Sequence[Row]], parts: Sequence[Part]) -> list[str]:
    lines = ["# Report of a GPU", ""]
    lines += ["| part | rows | what became of them | s |", "| --- | --- | --- | --- |"]
    for part in parts:
        rows = found.get(part.name)
        if rows is None:
            lines.append(f"| {part.title} | | not run | |")
            continue
        counted = Counter(row.verdict for row in rows)
        words = ", ".join(f"{counted[v]} {v}" for v in VERDICTS if counted[v])
        seconds = sum(row.seconds for row in rows)
        lines.append(f"| {part.title} | {len(rows)} | {words} | {seconds:.1f} |")
    lines += _bad(found, parts)
    lines += _told(found, parts)
    lines += _times(found, parts)
    return lines


def _bad(found: Mapping[str, Sequence[Row]], parts: Sequence[Part]) -> list[str]:
    rows = [
        (VERDICTS.index(row.verdict), part.name, row)
        for part in parts
        for row in found.get(part.name, ())
        if row.is_bad
    ]
    lines = ["", f"## To mend: {len(rows)}", ""]
    for _, name, row in sorted(rows, key=lambda x: x[:2]):
        lines.append(f"- **{row.verdict}** {row.name} ({name}): {_plain(row.message)}")
    return lines


def _told(found: Mapping[str, Sequence[Row]], parts: Sequence[Part]) -> list[str]:
    lines = list[str]()
    for part in parts:
        rows = [row for row in found.get(part.name, ()) if row.verdict in ("told", "refused")]
        if rows:
            lines += ["", f"## {part.title}", ""]
            mark = {"refused": "refused: "}
            lines += [f"- {x.name}: {mark.get(x.verdict, '')}{_plain(x.message)}" for x in rows]
    return lines


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _times(found: Mapping[str, Sequence[Row]], parts: Sequence[Part]) -> list[str]:
    columns = [part for part in parts if part.column and found.get(part.name)]
    if not columns:
        return []
    by_name: dict[str, dict[str, Row]] = {}
    for part in columns:
        for row in found[part.name]:
            if row.verdict == "measured":
                by_name.setdefault(row.name, {})[part.column] = row
    peak = _peak(found)
    heads = [part.column for part in columns]
    lines = ["", "## Times", "", "Microseconds of a call in a row of calls (waited for).", ""]
    if peak is not None:
        lines += [f"Peaks: {peak[0]} TFLOP/s of f32, {peak[2]} of bf16, {peak[3]} TB/s.", ""]
    lines.append("| program | " + " | ".join(heads) + " | of the fastest other | of peak |")
    lines.append("| --- |" + " --- |" * (len(heads) + 2))
    for name, rows in by_name.items():
        cells = [_cell(rows.get(head)) for head in heads]
        lines.append(f"| {name} | {' | '.join(cells)} | {_ratio(rows)} | {_share(rows, peak)} |")
    return lines


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    return f"{1e6 * row.figures['in a row']:,.1f} ({1e6 * row.figures['waited']:,.1f})"


def _ratio(rows: Mapping[str, Row]) -> str:
    others = [row.figures["in a row"] for column, row in rows.items() if column != "axir"]
    if "axir" not in rows or not others:
        return ""
    return f"{rows['axir'].figures['in a row'] / min(others):.2f}"


def _peak(found: Mapping[str, Sequence[Row]]) -> tuple[float, float, float, float] | None:
    """Returns the peaks of the card, if a row that names it says that it is a known one."""
    text = " ".join(
        row.message for rows in found.values() for row in rows if row.name in _ROWS_OF_THE_CARD
    )
    return next((peak for word, peak in _PEAKS.items() if word in text), None)


def _share(rows: Mapping[str, Row], peak: tuple[float, float, float, float] | None) -> str:
    """Returns the share of the card's peak that axir's program reaches."""
    row = rows.get("axir")
    if row is None or peak is None or "copy" in row.name:
        return ""
    kind = next((n for word, n in _KINDS.items() if word in row.name.split()), 0)
    least = row.figures["bytes"] / (peak[3] * 1e12)
    least = max(least, row.figures["operations"] / (peak[kind] * 1e12))
    return f"{least / row.figures['in a row']:.0%}"
