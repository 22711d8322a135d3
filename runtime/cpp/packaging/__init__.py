"""Writes models as folders of files: sources, object files, parameters, build files.

Elsewhere: the text of the sources (`emitting/`).
"""

from __future__ import annotations
