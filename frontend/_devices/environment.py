"""The environment: versions of packages, and devices."""

from __future__ import annotations

import platform
import sys

from axir.runtime import devices

_PACKAGES = ("axir", "iree-base-compiler", "iree-base-runtime", "numpy", "ml_dtypes", "optree")


def versions() -> dict[str, str]:
    """Returns the versions of Python and of the packages that axir needs, by name."""
    from importlib import metadata  # late: loads the email package

    found = {"python": platform.python_version(), "platform": sys.platform}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def print_environment_info(return_string: bool = False) -> str | None:
    """Prints the data for a bug report: versions and devices.

    Args:
        return_string: Whether to return the text instead.

    >>> import axir
    >>> "numpy" in axir.print_environment_info(return_string=True)
    True
    """
    facts = {**versions(), "devices": ", ".join(map(str, devices()))}
    width = max(map(len, facts))
    text = "\n".join(f"{name:<{width}}  {value}" for name, value in facts.items())
    if return_string:
        return text
    print(text)
    return None
