"""The save format: what comes back is what went in, or an error that says what is wrong."""

from __future__ import annotations

import io
import json
import os
import random
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
from circuit_cases import Referee, diagram, random_models

import semprola as sp
from semprola.circuit import Circuit, CircuitBuilder, Vtree, storage
from semprola.errors import FormatError


def example(vtree: bool = True) -> Circuit:
    b = CircuitBuilder(["cat", 'do"g\n', "ani\udc80mal 动物"], ["x"])
    root = b.decision(0, b.decision(3, b.true(), b.literal(1, False)), b.literal(2, True))
    tree = Vtree.right_linear([0, 3, 1, 2]) if vtree else None
    return b.build(
        root, vtree=tree, info={"backend": "test", "seconds": np.float64(0.5), "path": Path("x"), "n": 2**70}
    )


def members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(contents: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def with_header(**changes: object) -> bytes:
    contents = members(storage.dumps(example()))
    header = json.loads(contents["header.json"]) | changes
    return packed(contents | {"header.json": json.dumps(header).encode()})


@pytest.mark.parametrize("vtree", [True, False])
def test_round_trip(tmp_path: Path, vtree: bool) -> None:
    circuit = example(vtree)
    circuit.save(tmp_path / "a.sp")
    again = Circuit.load(tmp_path / "a.sp")
    assert again == circuit
    assert again.vtree == circuit.vtree
    assert (again.labels, again.given) == (circuit.labels, circuit.given)
    assert again.info == {"backend": "test", "seconds": 0.5, "path": "x", "n": 2**70}
    assert os.listdir(tmp_path) == ["a.sp"]


def test_round_trip_keeps_zero_suppression() -> None:
    rng = random.Random(0)
    for _ in range(20):
        models = random_models(rng, 5)
        again = storage.loads(storage.dumps(diagram(models, 5, given=1, suppress=True)))
        assert Referee(again).rows() == models
        assert again.model_count() == len(models)


def test_bytes_depend_on_contents_only() -> None:
    assert storage.dumps(example()) == storage.dumps(example())


def test_arrays_are_plain_npy(tmp_path: Path) -> None:
    example().save(tmp_path / "a.sp")
    with np.load(tmp_path / "a.sp") as arrays:
        np.testing.assert_array_equal(arrays["children"], example().children)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a circuit file"),
        (b"hello", "not a circuit file"),
        (packed({"other": b""}), "without header.json"),
        (with_header(format="other"), "does not say 'semprola circuit'"),
        (with_header(version=2), "format version 2 is newer than 1.*upgrade"),
        (with_header(version="1"), "no valid version"),
        (with_header(version=0), "no valid version"),
        (with_header(labels="abc"), "no valid 'labels'"),
        (with_header(labels=["cat", 3, "x"]), "a name must be a non-empty string"),
        (with_header(labels=["cat", "cat", "b"]), "listed twice"),
        (with_header(labels=["cat", "dog", "animal"]), "digest"),
        (with_header(info=None), "no valid 'info'"),
        (with_header(digest="0" * 64), "digest"),
        (packed(members(storage.dumps(example())), zipfile.ZIP_DEFLATED), "compressed"),
        (packed(members(storage.dumps(example())) | {"evil.npy": b""}), "do not belong"),
        (packed({"header.json": b"[" * 100_000}), "not JSON"),
        (packed({"header.json": b"\xff"}), "not JSON"),
    ],
)
def test_bad_files(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "bad.sp"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=f"^{re.escape(str(path))}: .*{message}") as caught:
        storage.load(path)
    assert "\n" not in str(caught.value)


def test_bad_arrays() -> None:
    contents = members(storage.dumps(example()))
    good = contents["kind.npy"]
    for bad in (
        b"",
        good[:-1],
        good + b"\0",
        good.replace(b"|i1", b"|O8"),
        good.replace(b"|i1", b"<i4"),
        good.replace(b"False", b"True "),
        re.sub(rb"\(\d+,\)", b"(999999999999,)", good),
        re.sub(rb"\(\d+,\)", b"(3, 3)", good),
        contents["children.npy"],
        good[:-1] + b"\x07",
    ):
        with pytest.raises(FormatError):
            storage.loads(packed(contents | {"kind.npy": bad}))
    for name in contents:
        with pytest.raises(FormatError, match="missing" if name != "header.json" else "header"):
            storage.loads(packed({key: data for key, data in contents.items() if key != name}))


def test_the_smallest_int_is_not_a_literal() -> None:
    with pytest.raises(FormatError):
        Circuit(["a"], [], [0], [-(2**31)], [0, 0], [])


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        storage.load(tmp_path / "none.sp")
    with pytest.raises(FileNotFoundError, match="folder"):
        example().save(tmp_path / "no" / "a.sp")
    with pytest.raises(IsADirectoryError):
        example().save(tmp_path)


def test_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.sp"
    example().save(path)
    before = path.read_bytes()

    def refuse(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        example(vtree=False).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.sp"]


def test_damaged_bytes() -> None:
    rng = random.Random(1)
    circuit = diagram(random_models(rng, 5), 5)
    whole = storage.dumps(circuit)
    messages: list[str] = []
    for _ in range(600):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 1, 2, 8))):
            i = rng.randrange(len(data))
            match rng.randrange(5):
                case 0:
                    data[i] = rng.randrange(256)
                case 1:
                    data[i] ^= 1 << rng.randrange(8)
                case 2:
                    del data[i : i + rng.choice((1, 4, 100))]
                case 3:
                    data[i:i] = rng.randbytes(rng.choice((1, 4, 100)))
                case _:
                    data[i : i + 4] = rng.choice((b"\xff\xff\xff\xff", b"\0\0\0\0", b"\xff\xff\xff\x7f"))
            data = data or bytearray(b"x")
        try:
            again = storage.loads(bytes(data), "damaged.sp")
        except FormatError as error:
            messages.append(str(error))
        else:
            assert again == circuit
    assert len(messages) > 300
    assert not any("\n" in message for message in messages)


def test_old_scraps_of_killed_writers_go(tmp_path: Path) -> None:
    old, fresh, other = (tmp_path / f".{name}" for name in ("c.sp." + "0" * 16, "c.sp." + "1" * 16, "c.sp.notes"))
    for path in (old, fresh, other):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    os.utime(other, (0, 0))
    sp.compile("a -> b").save(tmp_path / "c.sp")
    assert sorted(tmp_path.iterdir()) == sorted([fresh, other, tmp_path / "c.sp"])
