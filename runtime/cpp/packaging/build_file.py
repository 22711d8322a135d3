"""`CMakeLists.txt` of a model: a library, and the example."""

from __future__ import annotations

from collections.abc import Sequence


def write_build_file(
    name: str, sources: Sequence[str], objects: Sequence[str], data: str | None
) -> str:
    """Returns the text of the file.

    Args:
        name: The model's name.
        sources: C++ sources.
        objects: Object files.
        data: The file of parameters, or None.
    """
    listed = "\n  ".join([*sources, *objects])
    lines = [
        f"# {name}: a model written by axir. Use it by add_subdirectory, or build the example.",
        "cmake_minimum_required(VERSION 3.25)",
        f"project({name} LANGUAGES C CXX)",
        "",
        "find_package(Threads REQUIRED)",
        "",
        f"add_library({name} STATIC\n  {listed})",
        f"target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}} "
        "${CMAKE_CURRENT_SOURCE_DIR}/include)",
        f"target_compile_features({name} PUBLIC cxx_std_17)",
        f"target_link_libraries({name} PUBLIC Threads::Threads m)",
        "",
        f"add_executable({name}_example example.cpp)",
        f"target_link_libraries({name}_example PRIVATE {name})",
    ]
    if data is not None:
        lines += [
            "# The parameters stand where the example is run.",
            f"configure_file({data} ${{CMAKE_CURRENT_BINARY_DIR}}/{data} COPYONLY)",
        ]
    return "\n".join(lines) + "\n"
