"""What `axir.profiler` is made of: files of timelines and of memory, a server, files read back.

What does not live here: the timeline itself (`dialect/core/timeline.py`).
"""
