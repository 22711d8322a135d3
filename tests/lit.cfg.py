"""Configuration of lit for the golden tests in tests/filecheck.

A golden test is a module with `// RUN:` lines, such as

    // RUN: axir opt %s -p jvp | filecheck %s

The commands `axir`, `iree-opt` and `filecheck` are those of the Python that runs lit.
"""

import os
import sys
import sysconfig

import lit.formats

config.name = "axir"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(os.path.dirname(__file__), "..", "build", "lit")

SCRIPTS = sysconfig.get_path("scripts")
# Where a process listens that has imported axir already, the command runs in a fork of it.
SERVER = os.environ.get("AXIR_COMMAND_SERVER")
CLIENT = os.path.join(os.path.dirname(__file__), "support", "command_server.py")
COMMANDS = {
    "axir": f"{sys.executable} -I -S {CLIENT} run {SERVER}"
    if SERVER
    else f"{sys.executable} -m axir",
    "iree-opt": os.path.join(SCRIPTS, "iree-opt"),
    "filecheck": os.path.join(SCRIPTS, "filecheck"),
}
for command, replacement in COMMANDS.items():
    # Only the command itself: not a file such as %t.axir or a path through a folder of that name.
    config.substitutions.append((rf"(?<![\w./-]){command}(?![\w./-])", replacement))

for variable in ("AXIR_CACHE_DIR", "HOME", "JAX_PLATFORMS"):
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]
