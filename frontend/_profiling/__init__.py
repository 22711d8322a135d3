"""Parts of `axir.profiler`: files of timelines and of memory, a server, reading files.

Elsewhere: the timeline itself (`dialect/core/timeline.py`).
"""
