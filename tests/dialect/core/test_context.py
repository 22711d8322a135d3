"""The line that an error names: axir's own files, in a clone and in an installed package."""

from __future__ import annotations

from pathlib import Path

from axir.dialect.core.context import internal_folders


def test_tests_and_examples_of_a_clone_are_a_users_whatever_its_name(tmp_path: Path) -> None:
    clone = tmp_path / "axir"
    (clone / "frontend").mkdir(parents=True)
    folders = internal_folders(clone)
    assert f"{clone}/frontend/lax.py".startswith(folders)
    assert f"{clone}/dialect/core/errors.py".startswith(folders)
    assert not f"{clone}/examples/digits.py".startswith(folders)


def test_all_files_of_an_installed_package_are_its_own(tmp_path: Path) -> None:
    folders = internal_folders(tmp_path / "axir")
    assert f"{tmp_path}/axir/numpy/__init__.py".startswith(folders)
    assert not f"{tmp_path}/axir_tools.py".startswith(folders)
