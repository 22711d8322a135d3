"""Tests of programs on four CPU devices. They run in a process of their own.

`tests/frontend/test_four_devices.py` starts it, and by hand `TEST_CPU_DEVICES=4 pytest
tests/four_devices` does. The flag that divides the CPU into devices is JAX's as well, which is the
oracle.
"""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("TEST_CPU_DEVICES") == "4" else ["test_*.py"]
