"""Files that are no bundles, damaged files, and forged files: errors, never crashes.

`BUNDLE_MUTATIONS=10000` makes as many mutated files instead of a few hundred.
"""

from __future__ import annotations

import copy
import hashlib
import io
import json
import os
import random
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.bundle_cases import CORPUS

import axir.numpy as jnp
from axir._bundles.archive import Archive, archive_bytes
from axir._bundles.bundle import Bundle, open_bundle
from axir.dialect.core.errors import AxirError, BundleError, BundleVersionError, ParameterError
from axir.export import deserialize, export, load

GOOD = (CORPUS / "v1-classifier.axir").read_bytes()
ENTRIES = {name: bytes(data) for name, data in Archive(GOOD, "good").entries.items()}
MANIFEST = json.loads(ENTRIES["manifest.json"])
LENGTH = (64).to_bytes(8, "little")
MUTATIONS = int(os.environ.get("BUNDLE_MUTATIONS", "400"))


def packed(entries: dict[str, bytes]) -> bytes:
    return archive_bytes({name: [data] for name, data in entries.items()})


def with_manifest(change: Callable[[dict[str, Any]], object]) -> bytes:
    manifest = copy.deepcopy(MANIFEST)
    change(manifest)
    return packed({**ENTRIES, "manifest.json": json.dumps(manifest).encode()})


def zipped(method: int = zipfile.ZIP_STORED, **entries: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in entries.items():
            archive.writestr(name.replace("__", "/"), data)
    return file.getvalue()


def refuse(data: bytes, reason: str, kind: type[Exception] = BundleError) -> None:
    with pytest.raises(kind, match=reason):
        open_bundle(data, "model.axir").verify()


def test_other_files_are_no_bundles(tmp_path: Path) -> None:
    refuse(b"", "model.axir is not a bundle, or one that is not whole")
    refuse(b"PK\x03\x04 and then something else", "File is not a zip file")
    refuse(GOOD[: len(GOOD) // 2], "not whole: File is not a zip file")
    refuse(zipped(a=b"1"), "a zip archive without manifest.json, so it is no bundle")
    (tmp_path / "empty.axir").write_bytes(b"")
    with pytest.raises(BundleError, match=r"empty.axir is empty"):
        load(tmp_path / "empty.axir")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing.axir")


def test_names_that_lead_out_of_the_archive_are_refused() -> None:
    for name in ("../x", "/etc/x", "a/../../x", "C:x", "a\\x"):
        refuse(packed({**ENTRIES, name: b""}), "names a place outside of the bundle")


def test_what_is_compressed_or_overlaps_is_refused() -> None:
    bomb = zipped(zipfile.ZIP_DEFLATED, manifest=bytes(10_000_000))
    refuse(bomb, "'manifest' is compressed, so it cannot be mapped.*\n.*zip -0 -r")
    data = zipped(a=b"12345678", b=b"12345678")
    start = data.rindex(b"PK\x01\x02")
    overlapping = data[: start + 42] + bytes(4) + data[start + 46 :]
    refuse(overlapping, "header of 'b' is damaged|overlaps")
    twice = zipped(a=b"1", b=b"2").replace(b"b", b"a")
    refuse(twice, "two entries 'a'")


def test_what_the_manifest_does_not_describe_is_refused() -> None:
    refuse(packed({**ENTRIES, "more": b""}), "has besides what its manifest names, 'more'")
    rest = {name: data for name, data in ENTRIES.items() if name != "module.mlir"}
    refuse(packed(rest), "it lacks, or has besides what its manifest names, 'module.mlir'")
    shorter = {**ENTRIES, "module.mlir": ENTRIES["module.mlir"][:-1]}
    refuse(packed(shorter), "module.mlir has [0-9,]+ bytes instead of [0-9,]+")
    changed = bytearray(ENTRIES["parameters.safetensors"])
    changed[-1] ^= 1
    refuse(
        packed({**ENTRIES, "parameters.safetensors": bytes(changed)}),
        "the content of parameters.safetensors is not what its checksum says",
    )


def test_large_parameters_are_checked_when_they_are_used(monkeypatch: Any) -> None:
    monkeypatch.setattr("axir._bundles.bundle._CHECKED_AT_ONCE", 1)
    changed = bytearray(ENTRIES["parameters.safetensors"])
    changed[-1] ^= 1
    bundle = open_bundle(packed({**ENTRIES, "parameters.safetensors": bytes(changed)}), "b")
    with pytest.raises(BundleError, match="not what its checksum says"):
        bundle.predict(np.ones((1, 6), np.float32))


def test_newer_bundles_name_both_versions() -> None:
    data = with_manifest(lambda m: m.update(version=3, written_by={"axir": "9.1"}))
    refuse(
        data,
        r"of version 3, written by axir 9.1; this axir reads up to version 2.\n.*Install a newer",
        BundleVersionError,
    )


def test_unknown_keys_of_the_manifest_are_ignored() -> None:
    data = with_manifest(lambda m: m["functions"]["predict"].update(cost=3))
    assert list(open_bundle(data)) == ["predict", "step"]


def set_type(manifest: dict[str, Any], **changes: Any) -> None:
    manifest["parameters"]["arrays"]["params['b']"].update(changes)


def set_argument(manifest: dict[str, Any], **changes: Any) -> None:
    manifest["functions"]["step"]["arguments"][0].update(changes)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda m: m.update(format="zip"), "it is of another format"),
        (lambda m: m.update(version="1"), "version is no int"),
        (lambda m: m.update(functions=[]), "functions is no table"),
        (lambda m: m.update(functions={}), "the bundle has no function"),
        (lambda m: m["parameters"].update(file=None), "parameters without a file"),
        (lambda m: m.update(module="other.mlir"), "names other files than it describes"),
        (lambda m: set_type(m, shape=[9]), r"is float32\[8\] instead of float32\[9\]"),
        (lambda m: set_type(m, dtype="float128"), "is not one that axir|not a dtype|no arrays of"),
        (lambda m: set_type(m, dtype="object"), "not one that axir computes with"),
        (lambda m: set_type(m, shape=[-8]), "shape is no natural number"),
        (lambda m: set_type(m, shape=[1 << 61, 8]), "an array larger than any"),
        (lambda m: set_argument(m, shape=["b", 6]), "shape has the extent 'b', not declared"),
        (lambda m: set_argument(m, shape=[5, 7]), "step is not in its module as the manifest"),
        (lambda m: set_argument(m, name=7), "name is no str"),
        (lambda m: m["functions"]["step"].update(in_tree="open('x')"), "is not the notation"),
        (lambda m: m["functions"]["step"].update(in_tree="((0,), {})"), "are not the leaves of"),
        (lambda m: m["functions"]["step"].update(parameters=["x"]), "takes a parameter 'x', which"),
        (lambda m: m["functions"]["predict"]["batch"].update(sizes=[4, 1]), "do not ascend from 1"),
        (lambda m: m["programs"][0]["functions"].update(other={}), "has a function 'other', which"),
        (lambda m: m["programs"][0]["functions"].update(step={"-1": ""}), "'-1' is no extent"),
        (lambda m: m["files"]["module.mlir"].update(sha256="0"), "not what its checksum says"),
    ],
)  # fmt: skip
def test_manifests_that_do_not_fit_are_refused(
    change: Callable[[dict[str, Any]], object], reason: str
) -> None:
    refuse(with_manifest(change), reason, AxirError)


def test_deep_manifests_are_refused() -> None:
    refuse(packed({**ENTRIES, "manifest.json": b"[" * 100_000}), "the manifest is no JSON")


@pytest.mark.parametrize(
    "header",
    [
        b"\xff" * 8,
        b"\x00" * 8,
        (2).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"[]",
        LENGTH + b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 9]}}   ',
        LENGTH + b'{"a": {"dtype": "F99", "shape": [1], "data_offsets": [0, 4]}}   ',
    ],
)
def test_parameter_files_that_are_none(header: bytes) -> None:
    entry = {"bytes": len(header), "sha256": hashlib.sha256(header).hexdigest()}
    manifest = copy.deepcopy(MANIFEST)
    manifest["files"]["parameters.safetensors"] = entry
    text = json.dumps(manifest).encode()
    data = packed({**ENTRIES, "parameters.safetensors": header, "manifest.json": text})
    refuse(data, "not a file of safetensors|do not both have")


def test_files_appear_whole_or_not_at_all(tmp_path: Path, monkeypatch: Any) -> None:
    exported = export(jnp.sin)(1.0)
    exported.save(tmp_path / "f.axir")
    before = (tmp_path / "f.axir").read_bytes()

    def fails(*_: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("axir._bundles.archive._write", fails)
    with pytest.raises(OSError, match="no space"):
        export(jnp.cos)(1.0).save(tmp_path / "f.axir")
    assert [path.name for path in tmp_path.iterdir()] == ["f.axir"]
    assert (tmp_path / "f.axir").read_bytes() == before
    with pytest.raises(ParameterError, match=r"f.zip: a module is saved as .mlir"):
        exported.save(tmp_path / "f.zip")


# Mutations ----------------------------------------------------------------------------------------


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yields containers and keys of all values in JSON."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(items):
        yield value, key
        if isinstance(item, (dict, list)):
            yield from places(item)


def mutated_manifest(choose: random.Random) -> bytes:
    manifest = copy.deepcopy(MANIFEST)
    others: list[Any] = [
        None,
        True,
        -1,
        0,
        1,
        2**70,
        0.5,
        "",
        "b",
        "float32",
        [],
        [0],
        {},
        [[]],
        "8",
    ]
    for _ in range(choose.randint(1, 2)):
        container, key = choose.choice(list(places(manifest)))
        if choose.random() < 0.2:
            del container[key]
        else:
            container[key] = choose.choice(others)
    return packed({**ENTRIES, "manifest.json": json.dumps(manifest).encode()})


def mutated_entry(choose: random.Random) -> bytes:
    """Returns a bundle with one changed entry, and its changed checksum."""
    name = choose.choice(["module.mlir", "parameters.safetensors"])
    # Of parameters mostly the header.
    end = len(ENTRIES[name]) if name == "module.mlir" else 300
    data = bytearray(ENTRIES[name])
    for _ in range(choose.randint(1, 3)):
        data[choose.randrange(end)] = choose.choice(b'0189-+(){}[]<>"%@#:,x.= \xff\x00')
    manifest = copy.deepcopy(MANIFEST)
    manifest["files"][name]["sha256"] = hashlib.sha256(data).hexdigest()
    text = json.dumps(manifest).encode()
    return packed({**ENTRIES, name: bytes(data), "manifest.json": text})


def mutated_bytes(choose: random.Random) -> bytes:
    data = bytearray(GOOD)
    kind = choose.randrange(4)
    at = choose.choice([choose.randrange(len(data)), len(data) - 1 - choose.randrange(400)])
    if kind == 0:
        for _ in range(choose.randint(1, 8)):
            data[choose.randrange(len(data))] ^= 1 << choose.randrange(8)
        data[at] = choose.randrange(256)
    elif kind == 1:
        del data[at : at + choose.randint(1, 5000)]
    elif kind == 2:
        data[at:at] = choose.randbytes(choose.randint(1, 300))
    else:
        other = choose.randrange(len(data) - 64)
        data[at : at + 64] = data[other : other + 64]
    return bytes(data)


def survives(data: bytes) -> bool:
    """Opens and checks a file; tells whether it was still a bundle."""
    try:
        bundle = open_bundle(data, "mutated.axir")
        bundle.verify()
        assert isinstance(bundle, Bundle)
        for exported in bundle.values():
            repr(exported)
            assert exported.module() is not None
    except AxirError:
        return False
    return True


def test_mutated_files_are_survived() -> None:
    choose = random.Random(0)
    opened = 0
    for number in range(MUTATIONS):
        mutated = (mutated_manifest, mutated_bytes, mutated_entry)[number % 3]
        opened += survives(mutated(choose))
    # Bytes between entries, and names or marks in the manifest, may change.
    assert 0 < opened < MUTATIONS / 2


def test_the_unchanged_file_is_a_bundle() -> None:
    assert survives(GOOD)
    assert list(deserialize(bytearray(GOOD))) == ["predict", "step"]
