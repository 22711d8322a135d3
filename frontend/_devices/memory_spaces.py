"""Names of the memories of devices; each device has one memory here."""

from __future__ import annotations

import enum
from types import SimpleNamespace

MemorySpace = enum.Enum("MemorySpace", ["Device", "Host", "Any"])
"""Where an array lies: in the device's memory, which may be the host's."""

memory = SimpleNamespace(Space=MemorySpace)
