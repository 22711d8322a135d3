"""`write_folder`: writes a model's folder; each file is written whole or not at all.

Elsewhere: the texts (`emitting/`, and other files of this folder).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from axir.runtime.cpp.emitting.c_interface import write_c_header, write_c_source
from axir.runtime.cpp.emitting.data import write_data
from axir.runtime.cpp.emitting.description import description_text
from axir.runtime.cpp.emitting.header import write_header
from axir.runtime.cpp.emitting.source import write_sources
from axir.runtime.cpp.program.interface import Interface
from axir.runtime.cpp.program.variant import Variant

from .build_file import write_build_file
from .example import write_example
from .parameter_file import parameter_file

# Prefix of object files' symbols: no method's name begins so.
KERNEL_PREFIX = "axir_kernels_of_"
_HEADERS = Path(__file__).parent.parent / "include" / "axir"


def model_files(
    interface: Interface, variants: Sequence[Variant], constants: Sequence[bytes], embed_limit: int
) -> dict[str, bytes]:
    """Returns the content of a model's files by their path in its folder.

    Args:
        interface: The model's interface.
        variants: The methods' programs and their kernels, for one kind of CPU or for several.
        constants: Arrays that the programs share.
        embed_limit: Parameters of up to so many bytes become part of the program; larger ones lie
            in a file, which is mapped into memory.
    """
    name = interface.name
    kept = [*interface.parameters, *interface.states]
    parameters = parameter_file(kept) if kept else b""
    is_embedded = len(parameters) <= embed_limit
    size = len(parameters) if is_embedded else None
    files = {
        f"{name}.hpp": write_header(interface),
        **write_sources(interface, variants, size),
        f"{name}.h": write_c_header(interface),
        f"{name}_c.cpp": write_c_source(interface, description_text(interface, variants)),
        "example.cpp": write_example(interface),
    }
    embedded = parameters if kept and is_embedded else None
    if embedded is not None or constants:
        files[f"{name}_data.cpp"] = write_data(name, embedded, constants)
    sources = [file for file in files if file.startswith(name) and file.endswith(".cpp")]
    is_one = len(variants) == 1
    kernels = {
        f"{name}_kernels{'' if is_one else f'_for_{x.label}'}.o": x.kernels
        for x in variants
        if x.kernels
    }
    data = f"{name}.safetensors" if kept and not is_embedded else None
    files["CMakeLists.txt"] = write_build_file(name, sources, list(kernels), data)
    content = {path: text.encode() for path, text in files.items()}
    content |= kernels
    if data is not None:
        content[data] = parameters
    for header in sorted(_HEADERS.rglob("*.hpp")):
        content[f"include/axir/{header.relative_to(_HEADERS).as_posix()}"] = header.read_bytes()
    return content


def write_folder(directory: Path, files: Mapping[str, bytes]) -> None:
    """Writes files to a folder, which is made; each appears whole, by its name.

    Raises:
        OSError: if they cannot be written.
    """
    for path, content in files.items():
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(temporary, 0o666 & ~umask)
            os.replace(temporary, file)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
