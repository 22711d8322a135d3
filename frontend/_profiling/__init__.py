"""What `axir.profiler` is made of: files of timelines and of memory, a server, files read back.

Elsewhere: the timeline itself (`dialect/core/timeline.py`).
"""
