"""Records the public names of a JAX by module, with the parameters of functions.

`python -m support.jax_record > FILE` in `tests/`, by any Python that has that JAX; axir need not be
installed. `tests/frontend/jax_newest.json` is its output for the newest JAX, and
`support.jax_parity` compares axir with such a file.

A parameter is its name, with `=` behind it if it has a default, and before it `/` if it is
positional only, `,` if it is keyword only, `*` and `**` if it stands for many. A name without
parameters, or with parameters unknown to Python, has null. Methods of classes stand beside the
classes, as `Class.method`, if programs have objects of these classes.
"""

from __future__ import annotations

import inspect
import json
import warnings
from types import ModuleType
from typing import Any

import jax

from . import jax_names

Parameters = list[str] | None
# Modules with classes of objects in programs; classes of other modules are internal to JAX.
_WITH_METHODS = ("jax", "jax.sharding", "jax.stages")
_BUILT_IN = {*dir(Exception), *dir(tuple), *dir(int), *dir(str)}
_MARKS = {"POSITIONAL_ONLY": "/", "KEYWORD_ONLY": ",", "VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}


def parameters(value: Any) -> Parameters:
    """Returns the parameters of a function, or None without known parameters."""
    if not callable(value) or inspect.isclass(value):
        return None
    try:
        signature = inspect.signature(value)
    except (ValueError, TypeError):
        return None
    return [
        _MARKS.get(p.kind.name, "") + p.name + "=" * (p.default is not p.empty)
        for p in signature.parameters.values()
        if not p.name.startswith("_")
    ]


def methods(kind: type) -> dict[str, Parameters]:
    """Returns the public methods of a class, with their parameters behind `self`."""
    found: dict[str, Parameters] = {}
    for name in dir(kind):
        attribute = inspect.getattr_static(kind, name, None)
        if name.startswith("_") or name in _BUILT_IN or isinstance(attribute, property):
            continue
        described = parameters(getattr(kind, name))
        if described is not None:
            found[name] = [p for p in described if p not in ("self", "/self")]
    return found


def names_in(module: ModuleType) -> dict[str, Parameters]:
    """Returns the public names of a module."""
    found: dict[str, Parameters] = {}
    place = module.__name__
    with_methods = place in _WITH_METHODS or place.startswith("jax.scipy.")
    for name in jax_names.public_names(place):
        value = getattr(module, name)
        found[name] = parameters(value)
        if with_methods and inspect.isclass(value):
            found.update({f"{name}.{m}": p for m, p in methods(value).items()})
    return found


def record() -> dict[str, Any]:
    """Returns the version of this process's JAX, and its names by module."""
    modules: dict[str, dict[str, Parameters]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in jax_names.modules():
            module = jax_names.load(name)
            if module is not None:
                modules[name] = names_in(module)
    return {"version": jax.__version__, "modules": modules}


def text_of(recorded: dict[str, Any]) -> str:
    """Returns a record as JSON with a line for each name."""
    lines = ["{", f'"version": {json.dumps(recorded["version"])},', '"modules": {']
    parts = []
    for module, names in recorded["modules"].items():
        each = ",\n".join(f"{json.dumps(n)}: {json.dumps(p)}" for n, p in sorted(names.items()))
        parts.append(f"{json.dumps(module)}: {{\n{each}\n}}")
    return "\n".join([*lines, ",\n".join(parts), "}", "}"])


if __name__ == "__main__":
    print(text_of(record()))
