"""The names and keywords of a JAX that axir has and lacks: a comparison with a recorded list.

`python -m support.jax_parity [FILE]` in `tests/` prints the missing names, and the share that axir
has. `support.jax_record` wrote FILE under that JAX; by default it is the file of the newest JAX.
Names that are left out on purpose stand in `support/jax_left_out.json`, with the reasons.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import axir.numpy as jnp
from axir.experimental.pallas._accelerators import AcceleratorOnlyError, _Elsewhere

NEWEST = Path(__file__).parents[1] / "frontend/jax_newest.json"
LEFT_OUT = Path(__file__).with_name("jax_left_out.json")
_NOTHING = object()
# A name that can be imported, has a meaning on accelerators only, and raises an error when used.
ELSEWHERE = object()


class Missing(NamedTuple):
    """A name or keyword that axir lacks: `jax.numpy.sum(where)` is a keyword."""

    name: str
    keyword: str | None = None

    def __str__(self) -> str:
        return self.name if self.keyword is None else f"{self.name}({self.keyword})"


def ours(module: str, name: str) -> Any:
    """Returns axir's object for a name of a module of JAX, or `ELSEWHERE`, or `_NOTHING`."""
    own = "axir" + module.removeprefix("jax")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found: Any = importlib.import_module(own)
            for part in name.split("."):
                found = getattr(found, part)
        except AcceleratorOnlyError:  # a part of such a name
            return ELSEWHERE
        except (ImportError, AttributeError):
            try:
                return importlib.import_module(f"{own}.{name}")
            except ImportError:
                return _NOTHING
    return ELSEWHERE if isinstance(found, _Elsewhere) else found


def keywords(parameters: list[str] | None) -> list[str]:
    """Returns the names by which arguments can be passed."""
    names = [p for p in parameters or () if not p.startswith(("/", "*"))]
    return [p.lstrip(",").rstrip("=") for p in names]


def accepted(value: Any) -> set[str] | None:
    """Returns the keywords that an object of axir takes, or None if it takes any."""
    if isinstance(value, jnp.ufunc):
        return {"out", "where"}
    if inspect.isclass(value) or isinstance(value, property) or not callable(value):
        return None
    try:
        signature = inspect.signature(value)
    except (ValueError, TypeError):
        return None
    kinds = {p.kind for p in signature.parameters.values()}
    if inspect.Parameter.VAR_KEYWORD in kinds:
        return None
    by_place = inspect.Parameter.POSITIONAL_ONLY
    return {p.name for p in signature.parameters.values() if p.kind is not by_place}


def lacking(module: str, name: str, parameters: list[str] | None) -> Iterator[Missing]:
    """Yields the name if axir lacks it, and else the keywords that it does not take.

    A name with a meaning on accelerators only is lacking with all its keywords.
    """
    full = f"{module}.{name}"
    value = ours(module, name)
    if value is _NOTHING or value is ELSEWHERE:
        yield Missing(full)
        if value is ELSEWHERE:
            yield from (Missing(full, word) for word in keywords(parameters))
        return
    taken = accepted(value)
    if taken is not None:
        yield from (Missing(full, word) for word in keywords(parameters) if word not in taken)


def left_out() -> dict[str, str]:
    """Returns the reasons for modules, names or keywords that are left out."""
    by_reason: dict[str, list[str]] = json.loads(LEFT_OUT.read_text())
    return {name: reason for reason, names in by_reason.items() for name in names}


def reason_for_name(name: str, reasons: dict[str, str]) -> str | None:
    """Returns the entry that leaves a name out: its own, its function's, class' or module's."""
    while name and name not in reasons:
        name = name.rpartition("(" if name.endswith(")") else ".")[0]
    return name or None


def reason_for(missing: Missing, reasons: dict[str, str]) -> str | None:
    """Returns the reason for an omission."""
    name = reason_for_name(str(missing), reasons)
    return None if name is None else reasons[name]


class Comparison(NamedTuple):
    """The result of a comparison.

    Attributes:
        version: Version of the JAX.
        total: The number of its names and keywords.
        missing: Names and keywords that axir lacks without a reason.
        on_purpose: Names and keywords that axir lacks for a reason.
        elsewhere: Names that can be imported, and raise an error when they are used, because they
            have a meaning on accelerators only.
    """

    version: str
    total: int
    missing: list[Missing]
    on_purpose: dict[Missing, str]
    elsewhere: list[Missing]

    @property
    def share(self) -> float:
        """The share that axir has, without names left out for a reason or for accelerators."""
        left_out = len(self.on_purpose) + len(self.elsewhere)
        return 1 - len(self.missing) / (self.total - left_out)


def compare(path: Path = NEWEST) -> Comparison:
    """Compares axir with the JAX that a file describes."""
    recorded = json.loads(path.read_text())
    reasons = left_out()
    total, missing, on_purpose, elsewhere = 0, [], {}, list[Missing]()
    for module, names in recorded["modules"].items():
        for name, parameters in names.items():
            total += 1 + len(keywords(parameters))
            lacks = list(lacking(module, name, parameters))
            if lacks and ours(module, name) is ELSEWHERE:
                elsewhere += lacks
                continue
            for lack in lacks:
                reason = reason_for(lack, reasons)
                if reason is None:
                    missing.append(lack)
                else:
                    on_purpose[lack] = reason
    return Comparison(recorded["version"], total, missing, on_purpose, elsewhere)


def report(path: Path = NEWEST) -> None:
    """Prints the missing names, and the share that axir has."""
    found = compare(path)
    for lack in found.missing:
        print(lack)
    print(
        f"JAX {found.version}: {found.total} names and keywords, {len(found.missing)} missing, "
        f"{len(found.on_purpose)} left out, {len(found.elsewhere)} for accelerators alone, which "
        f"raise an error when used; {found.share:.1%} of the others are there"
    )


if __name__ == "__main__":
    report(*map(Path, sys.argv[1:]))
