"""Runs the programs on JAX, and keeps their results in `expected.json`.

To be run where JAX and the libraries are installed. Names of programs choose some of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
FILE = FOLDER / "expected.json"


def recorded(program: Path) -> dict[str, object]:
    """Returns the results that a program reports."""
    command = [sys.executable, "-W", "ignore", program]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    line = next(x for x in finished.stdout.splitlines() if x.startswith("RESULTS "))
    results = json.loads(line.removeprefix("RESULTS "))
    assert results.pop("implementation") == "jax.numpy", "This environment has no JAX."
    return results


def main() -> None:
    """Runs the programs that the command line names, or all."""
    kept = json.loads(FILE.read_text()) if FILE.exists() else {}
    for program in sorted((FOLDER / "programs").glob("*.py")):
        if program.stem != "reporting" and program.stem in (sys.argv[1:] or [program.stem]):
            kept[program.stem] = recorded(program)
    write(kept)


def write(kept: dict[str, dict[str, object]]) -> None:
    """Writes the programs' results on JAX, a line a result."""
    lines = [
        f'  "{name}": {{\n'
        + ",\n".join(f'    "{key}": {json.dumps(value)}' for key, value in results.items())
        + "\n  }"
        for name, results in sorted(kept.items())
    ]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
