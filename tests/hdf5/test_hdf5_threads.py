# Sixteen threads open and load HDF5 datasets at the same time: of one file and of several, through
# one context and through two.
#
# SPDX-License-Identifier: Apache-2.0
#
# What each finds is compared with numpy; under ThreadSanitizer a race of the library or
# of the plugin fails it.
import itertools

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes these files")

import hdf5_files as h5  # noqa: E402
from reference_hash import content_hash  # noqa: E402

THREADS = 16


def write(path, seed):
    """Datasets of every kind of storage; gives the hash of each."""
    rng = numpy.random.default_rng(seed)
    data = {
        name: rng.integers(0, 1000, (60, 40)).astype(dtype)
        for name, dtype in (
            ("contiguous", "<i4"),
            ("big", ">f8"),
            ("gzip", "<i4"),
            ("deep/filters", ">i2"),
            ("scaleoffset", "<i4"),
            ("compact", "<u2"),
        )
    }
    with h5py.File(path, "w", libver=("earliest", "latest")[seed % 2]) as file:
        file["contiguous"], file["big"] = data["contiguous"], data["big"]
        file.create_dataset(
            "gzip", data=data["gzip"], chunks=(16, 16), compression="gzip", shuffle=True
        )
        file.create_dataset(
            "deep/filters",
            data=data["deep/filters"],
            chunks=(7, 40),
            compression="lzf",
            fletcher32=True,
        )
        file.create_dataset("scaleoffset", data=data["scaleoffset"], chunks=(30, 40), scaleoffset=0)
    h5.low_level(path, "compact", "<u2", (60, 40), h5.compact, data["compact"])
    h5.virtual(
        path,
        "virtual",
        (60, 40),
        "<i4",
        [
            (numpy.s_[:30], ".", "gzip", (60, 40), numpy.s_[30:]),
            (numpy.s_[30:], ".", "contiguous", (60, 40), numpy.s_[:30]),
        ],
    )
    data["virtual"] = numpy.concatenate([data["gzip"][30:], data["contiguous"][:30]])
    return {name: content_hash(h5.native(array)) for name, array in data.items()}


@pytest.mark.parametrize("contexts", [1, 2])
@pytest.mark.parametrize("files", [1, 5])
def test_sixteen_threads(shared_probe, tmp_path, files, contexts):
    items, want = [], []
    known = [(tmp_path / ("%d.h5" % k), write(tmp_path / ("%d.h5" % k), k)) for k in range(files)]
    for k in range(THREADS):
        path, hashes = known[k % files]
        name = sorted(hashes)[k % len(hashes)]
        items.append([str(path), name])
        want.append(hashes[name])
    found = shared_probe.call("crowd", items=items, contexts=contexts, rounds=6, threads=3)[
        "hashes"
    ]
    assert found == want


def test_threads_meet_the_sources_of_one_dataset(new_probe, tmp_path):
    """Sources that are opened when they are wanted:
    whoever comes first opens one, all get the same."""
    rows, count, rng = 3, 258, numpy.random.default_rng(3)
    data = rng.integers(0, 1000, (count * rows, 10)).astype("<i4")
    for k in range(count):
        with h5py.File(tmp_path / f"s{k}.h5", "w") as file:
            options = (
                {},
                {"chunks": (2, 6), "compression": "gzip"},
                {"chunks": (2, 6), "scaleoffset": 0},
            )[k % 3]
            file.create_dataset("d", data=data[k::count], **options)
    h5.virtual(
        tmp_path / "v.h5",
        "dealt",
        data.shape,
        "<i4",
        [(numpy.s_[k::count], f"s{k}.h5", "d", (rows, 10), None) for k in range(count)],
    )
    probe = new_probe()
    probe.call("context", threads=2)
    for _ in range(2):
        assert probe.call("open", path=str(tmp_path / "v.h5"), dataset="dealt")["sources"] == count
        spans = [
            (at, at + size)
            for at, size in zip(
                rng.integers(0, len(data) - 20, 32).tolist(), itertools.cycle((20, 3, 11))
            )
        ]
        spans += [(0, len(data))] * 2
        probe.call(
            "read_boxes",
            dtype="<i4",
            boxes=[[list(span), [0, 10]] for span in spans],
            threads=8,
            path=str(tmp_path / "boxes"),
        )
        assert (tmp_path / "boxes").read_bytes() == b"".join(
            data[slice(*span)].tobytes() for span in spans
        )


def test_threads_meet_in_chunks_that_are_held(new_probe, tmp_path):
    """Small boxes one behind the other, in the same chunks and in others, of one dataset."""
    rng = numpy.random.default_rng(6)
    data = rng.integers(0, 1000, (300, 10)).astype("<i4")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=data, chunks=(60, 10), compression="gzip")
    spans = [
        (at, at + size)
        for begin in rng.integers(0, 250, 20).tolist()
        for at, size in zip(range(begin, begin + 40, 2), itertools.cycle((1, 3, 9)))
    ]
    probe = new_probe()
    probe.call("context", threads=2)
    probe.call("open", path=str(tmp_path / "x.h5"), dataset="x")
    for threads in (2, 8):
        probe.call(
            "read_boxes",
            dtype="<i4",
            boxes=[[list(span), [0, 10]] for span in spans],
            threads=threads,
            path=str(tmp_path / "boxes"),
        )
        assert (tmp_path / "boxes").read_bytes() == b"".join(
            data[slice(*span)].tobytes() for span in spans
        )
