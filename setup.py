"""Lists the packages of the four rooms; everything else about the build stands in pyproject.toml.

setuptools can find packages or rename folders, but not both at once, and a list kept by hand
would forget the next folder.
"""

from __future__ import annotations

from setuptools import find_packages, setup

ROOMS = {
    "axir": "frontend",
    "axir.dialect": "dialect",
    "axir.passes": "passes",
    "axir.runtime": "runtime",
}

setup(
    packages=[
        package
        for name, folder in ROOMS.items()
        for package in (name, *(f"{name}.{child}" for child in find_packages(folder)))
    ]
)
