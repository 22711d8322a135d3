"""Writes models as folders of files: sources, object files, parameters, what builds them.

Elsewhere: the text of the sources (`emitting/`).
"""

from __future__ import annotations
