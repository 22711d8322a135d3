"""The parts of `axir.profiler`: files of timelines and of memory, a server, and reading files.

Elsewhere: the timeline (`dialect/core/timeline.py`).
"""
