"""Writes models as folders of files: sources, object files, parameters, what builds them.

What does not live here: the text of the sources (`emitting/`).
"""

from __future__ import annotations
