"""Global heaps, where texts of attributes and the mappings of virtual datasets lie: sound ones are
read, damaged ones refused at once.

SPDX-License-Identifier: Apache-2.0

libhdf5 itself walks a damaged one for ever, or out of its memory.
"""

import json
import os
import struct
import subprocess

import h5py
import numpy as np
import pytest

from described import BUILD, Refused, dump, values

DATA = np.arange(12, dtype="<i4")


def attributes(path, library):
    """Of the root group, as `tegula info` says: {name: value}, or the error."""
    run = subprocess.run(
        [str(BUILD / "bin" / "tegula"), "info", "--json", str(path), "--attributes"],
        capture_output=True,
        text=True,
        env={**os.environ, "TEGULA_HDF5_LIBRARY": library},
        timeout=120,
    )
    assert run.returncode in (0, 1), run
    answer = json.loads(run.stdout)
    return (
        answer["error"]
        if run.returncode
        else {one["name"]: one["value"] for one in answer["attributes"]}
    )


def write(path, **options):
    """Texts of an attribute and the mappings of a virtual dataset in collections of their own."""
    with h5py.File(path, "w", **options) as file:
        file["x"] = DATA
        file.attrs["texts"] = ["one", "", "three" * 9]
    with h5py.File(path, "a", **options) as file:
        layout = h5py.VirtualLayout((24,), "<i4")
        layout[:12], layout[12:] = (
            h5py.VirtualSource(".", "x", (12,)),
            h5py.VirtualSource(".", "x", (12,)),
        )
        file.create_virtual_dataset("v", layout)


def collections(content):
    """Where they are, and in each the objects: (number, where its header is, size)."""
    at, found = content.find(b"GCOL"), {}
    while at >= 0:
        end, here, objects = at + struct.unpack_from("<Q", content, at + 8)[0], at + 16, []
        while end - here >= 16:
            number, size = struct.unpack_from("<H6xQ", content, here)
            objects.append((number, here, size))
            here += 16 + (size + 7) // 8 * 8 if number else size
        found[at] = objects
        at = content.find(b"GCOL", end)
    return found


def length(content, at, value):
    return content[:at] + struct.pack("<Q", value % 2**64) + content[at + 8 :]


DAMAGE = {
    "no size": lambda content, heap, objects: length(content, heap + 8, 0),
    "small": lambda content, heap, objects: length(content, heap + 8, 4088),
    "beyond the file": lambda content, heap, objects: length(
        content, heap + 8, len(content) - heap + 8
    ),
    "huge": lambda content, heap, objects: length(content, heap + 8, -1),
    "free space of no size": lambda content, heap, objects: length(content, objects[-1][1] + 8, 0),
    "free space too long": lambda content, heap, objects: length(
        content, objects[-1][1] + 8, objects[-1][2] + 8
    ),
    "object of no end": lambda content, heap, objects: length(content, objects[0][1] + 8, -1),
    "round in a circle": lambda content, heap, objects: length(
        content, objects[1][1] + 8, -16 - (objects[1][1] - objects[0][1])
    ),
    "back to itself": lambda content, heap, objects: length(content, objects[0][1] + 8, -16),
    "into the next": lambda content, heap, objects: length(
        content, objects[0][1] + 8, objects[0][2] + 8
    ),
    "out of the collection": lambda content, heap, objects: length(
        content, objects[0][1] + 8, 4096
    ),
    "the same number twice": lambda content, heap, objects: (
        content[: objects[1][1]] + content[objects[0][1] :][:2] + content[objects[1][1] + 2 :]
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_collections_are_refused_at_once(tmp_path, library, damage):
    path = tmp_path / "a.h5"
    write(path, libver="latest")
    sound = path.read_bytes()
    assert attributes(path, library) == {"texts": ["one", "", "three" * 9]}
    (texts, objects), (mappings, blocks) = collections(sound).items()
    assert [number for number, _, _ in objects] == [1, 2, 3, 0] and [
        number for number, _, _ in blocks
    ] == [1, 0]
    path.write_bytes(DAMAGE[damage](sound, texts, objects))
    error = attributes(path, library)
    assert error["status"] == "corrupt" and error["offset"] == texts, error
    for text in (
        'attribute "texts" of "/"',
        str(path),
        f"global heap collection at offset {texts} is damaged",
    ):
        assert text in error["message"]
    if damage not in ("the same number twice", "round in a circle"):  # of two objects
        path.write_bytes(DAMAGE[damage](sound, mappings, blocks))
        with pytest.raises(
            Refused, match=f"corrupt: .*/v.*global heap collection at offset {mappings} is damaged"
        ):
            dump(path, "v", library=library, timeout=120)
        assert attributes(path, library) == {"texts": ["one", "", "three" * 9]}


@pytest.mark.parametrize(
    "libver, width",
    [("earliest", 2), ("earliest", 4), ("latest", 4), ("earliest", 8), ("latest", 8)],
)
def test_sound_collections_are_read(tmp_path, library, libver, width):
    """Long texts, some that begin like a collection,
    and room of texts that were taken away: as h5py reads them."""
    path = tmp_path / "a.h5"
    create = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    create.set_sizes(8, width)
    create.set_userblock(512)
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_libver_bounds(
        *{
            "earliest": (h5py.h5f.LIBVER_EARLIEST, h5py.h5f.LIBVER_LATEST),
            "latest": (h5py.h5f.LIBVER_LATEST,) * 2,
        }[libver]
    )
    with h5py.File(h5py.h5f.create(str(path).encode(), h5py.h5f.ACC_TRUNC, create, access)) as file:
        # libhdf5 itself does not look after lengths that have no room in two bytes
        large = 40000 if width > 2 else 60
        for number, size in enumerate(
            [3, 3000, 4064, 4072, 5, 4080, 600, 60, 1000, 2000, large, 7, 4096, 900]
        ):
            file.attrs[f"{number:02}"] = ("GCOL\x01" + "\x02" * 4075 + "GCOL\x01" * size)[:size]
        for number in (1, 4, 8):
            del file.attrs[f"{number:02}"]
        for number in (20, 21):
            file.attrs[f"{number:02}"] = "new " * number
    with h5py.File(path) as file:
        want = dict(file.attrs)
    assert len(want) == 13
    assert attributes(path, library) == want


def test_data_may_look_like_a_collection(tmp_path, library):
    """Through libhdf5: numbers with padding that begin with the bytes of a damaged collection."""
    odd = h5py.h5t.STD_U64LE.copy()
    odd.set_precision(63)
    stored = np.frombuffer(b"GCOL\x01\0\0\0" + bytes(8) * 600, "<u8").copy()
    with h5py.File(tmp_path / "a.h5", "w") as file:
        h5py.h5d.create(file.id, b"x", odd, h5py.h5s.create_simple(stored.shape)).write(
            h5py.h5s.ALL, h5py.h5s.ALL, stored, mtype=odd
        )
    assert values(tmp_path / "a.h5", library=library).tolist() == stored.tolist()


def test_a_damaged_list_of_mappings_is_refused_before_it_is_decoded(tmp_path, library):
    """Where a selection would have 255 axes libhdf5 writes behind its memory:
    it compares the checksum later."""
    path = tmp_path / "a.h5"
    write(path)
    sound = path.read_bytes()
    _, (_, blocks) = collections(sound).items()
    start, size = blocks[0][1] + 16, blocks[0][2]
    assert sound[start] == 0 and sound[start + 9 : start + 13] == b".\0x\0"
    # versions, axes, counts
    ones = [at for at in range(start + 13, start + size - 4) if sound[at] == 1]
    assert len(ones) >= 6
    for at in ones[:12]:
        path.write_bytes(sound[:at] + b"\xff" + sound[at + 1 :])
        with pytest.raises(
            Refused, match=r"corrupt: .*checksum of a list of mappings is wrong|version"
        ):
            dump(path, "v", library=library, timeout=120)
    path.write_bytes(sound)
    assert values(path, "v", library=library).tolist() == [*DATA, *DATA]
