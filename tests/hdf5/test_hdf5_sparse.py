# Datasets of which few chunks of very many are stored: what is not stored is filled in boxes,
# exactly where h5py has the fill value, and neither time nor memory follows what the file claims.
#
# SPDX-License-Identifier: Apache-2.0
import itertools
import os
import pathlib
import sys

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes and judges these files")

import hdf5_files as h5  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from command import refused, report  # noqa: E402

KEPT = {
    key: value
    for key, value in os.environ.items()
    if key in ("TEGULA_HDF5_LIBRARY", "TEGULA_PLUGIN_PATH")
}

# shape, chunk, places where something is stored
KINDS = {
    "one axis": ((20011,), (3,), [(5,), (6000,), (6003,), (20010,)]),
    "rows": ((9001, 4), (1, 4), [(0, 1), (8999, 0), (4500, 3)]),
    "columns": ((3, 15000), (3, 2), [(1, 7), (2, 14999), (0, 8192)]),
    "grid": ((200, 301), (2, 3), [(0, 0), (199, 300), (64, 150), (65, 153), (100, 6)]),
    "three axes": (
        (60, 31, 40),
        (2, 1, 5),
        [(0, 0, 0), (59, 30, 39), (30, 15, 20), (30, 15, 25), (31, 16, 20)],
    ),
    "nothing": ((7000, 3), (1, 3), []),
}


def write(path, kind, **options):
    shape, chunk, places = KINDS[kind]
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("x", shape, "<i4", chunks=chunk, fillvalue=-7, **options)
        for number, place in enumerate(places):
            dataset[place] = number + 1
    chunks = {tuple(i // c for i, c in zip(place, chunk, strict=True)) for place in places}
    return chunks, int(numpy.prod([-(-n // c) for n, c in zip(shape, chunk, strict=True)]))


@pytest.mark.parametrize("kind", KINDS)
def test_values_and_what_is_missing(probe, tmp_path, kind):
    """Tiles of every cut, and boxes; absent chunks are counted one by one,
    whatever they are filled by."""
    path = tmp_path / "a.h5"
    stored, slots = write(path, kind, compression="gzip")
    for tiles in (1, 2, 7):
        assert h5.check_load(probe, tmp_path, path, "x", tiles=tiles)["missing"] == slots - len(
            stored
        ), tiles
    shape, chunk, _ = KINDS[kind]
    with h5py.File(path) as file:
        for seed in range(6):
            info = probe.call("open", path=str(path), dataset="x")
            h5.compare_opened(probe, info, path, "x", file["x"], numpy.random.default_rng(seed))
    rng = numpy.random.default_rng(1)
    for _ in range(3):
        box = [sorted(rng.choice(n + 1, 2, replace=False).tolist()) for n in shape]
        met = itertools.product(
            *[range(lo // c, (hi - 1) // c + 1) for (lo, hi), c in zip(box, chunk, strict=True)]
        )
        asked = ",".join(f"{lo}:{hi}" for lo, hi in box)
        told = report("load", path, "--dataset", "x", "--box", asked, "--tiles", "3", env=KEPT)
        assert told["missing"] == sum(place not in stored for place in met), asked


def test_virtual_over_what_is_sparse(probe, tmp_path):
    """Two parts share a grid, each every second row of it, and tiles want columns."""
    path = tmp_path / "a.h5"
    write(path, "grid")
    h5.virtual(
        path,
        "v",
        (100, 602),
        "<i4",
        [
            (numpy.s_[:, 0:301], ".", "x", (200, 301), numpy.s_[0:200:2]),
            (numpy.s_[:, 301:602], ".", "x", (200, 301), numpy.s_[1:200:2]),
        ],
        fill=3,
    )
    for tiles in (1, 5):
        h5.check_load(probe, tmp_path, path, "v", tiles=tiles)


def test_strict_names_a_place_that_was_never_written(tmp_path):
    path = tmp_path / "a.h5"
    write(path, "rows")
    error = refused(
        "load",
        path,
        "--missing",
        "strict",
        status="incomplete",
        says=['of dataset "/x"', "was never written"],
        env=KEPT,
    )
    row = int(error["message"].split(" at (")[1].split(",")[0])
    with h5py.File(path) as file:
        assert (file["x"][row] == -7).all()


def test_little_is_needed_for_a_file_that_claims_much(tmp_path, sanitizer):
    """3 KB of file: 16,777,216 chunks of a byte took 0.8 GB beside the array,
    and a plan of 2^30 chunks did not end."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (1 << 24,), "u1", chunks=(1,))[1 << 23] = 5
        file.create_dataset("huge", (1 << 40, 8), "<f8", chunks=(1024, 8), compression="gzip")[
            1 << 39, 3
        ] = 1
    told = report("load", path, "--dataset", "x", "--hash", env=KEPT)
    assert told["missing"] == (1 << 24) - 1
    assert sanitizer or told["peak_rss_bytes"] < 150 << 20
    plan = report("plan", path, "--dataset", "huge", "--ranks", "3", env=KEPT)
    assert [tile["reads"] for tile in plan["tiles"]] == [0, 1, 0]
    assert sum(tile["bytes"] for tile in plan["tiles"]) == plan["bytes"] == 1 << 46
    told = report("verify", path, "--dataset", "huge", env=KEPT)
    assert (told["chunks"], told["bytes"], told["problems"]) == (1, 1 << 46, [])


def test_verify_reads_what_is_stored(tmp_path):
    """Windows without anything in them are passed over; damage in the others is found, and
    strict still names what was never written."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("x", (1 << 26,), "<i4", chunks=(1024,), fletcher32=True)
        for place in (0, 1 << 25, (1 << 26) - 1):
            dataset[place] = 1
        places = [dataset.id.get_chunk_info(i).byte_offset for i in range(3)]
    told = report("verify", path, env=KEPT)
    assert (told["chunks"], told["bytes"], told["problems"]) == (3, 1 << 28, [])
    told = report("load", path, "--missing", "strict", status=1, env=KEPT)
    assert told["error"]["status"] == "incomplete"
    for place in places:
        whole = path.read_bytes()
        data = bytearray(whole)
        data[place + 9] ^= 255
        path.write_bytes(data)
        told = report("verify", path, status=3, env=KEPT)
        assert [problem["status"] for problem in told["problems"]] == ["corrupt"]
        path.write_bytes(whole)
