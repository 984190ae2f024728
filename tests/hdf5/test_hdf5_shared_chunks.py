# Virtual datasets whose parts share the chunks of their sources: every chunk is read and decoded
# once, whoever wants a part of it.
#
# SPDX-License-Identifier: Apache-2.0
#
# h5py judges the values. What is stored is what h5py says,
# and gaps between chunks (less than 16 KiB) may be read too.
import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes and judges these files")

import generate_arrays as gen  # noqa: E402
import hdf5_files as h5  # noqa: E402
from probe import check_error  # noqa: E402

rng = numpy.random.default_rng(41)
FILTERS = {
    "deflate": {"compression": "gzip", "compression_opts": 1},
    "shuffle": {"compression": "gzip", "shuffle": True},
    "fletcher32": {"compression": "gzip", "shuffle": True, "fletcher32": True},
    "lzf": {"compression": "lzf", "shuffle": True},
    "plain": {},
}


def source(path, shape, dtype="<f4", **options):
    """Writes "d"; gives the bytes that are stored of it."""
    with h5py.File(path, "w") as file:
        data = rng.integers(0, 200, shape).astype(dtype)
        return file.create_dataset("d", data=data, **options).id.get_storage_size()


def dealt(tmp_path, count, shape, dtype="<f4", **options):
    """The virtual dataset "v" of which row k, k + count, ... are the rows of source k. Gives the
    bytes that are stored."""
    stored = sum(source(tmp_path / f"s{k}.h5", shape, dtype, **options) for k in range(count))
    mappings = [(numpy.s_[k::count], f"s{k}.h5", "d", shape, None) for k in range(count)]
    h5.virtual(tmp_path / "v.h5", "v", (count * shape[0], *shape[1:]), dtype, mappings)
    return stored


def check_once(statistics, stored, sources):
    assert stored <= statistics["bytes_read"] <= stored + sources * (16 << 10), (statistics, stored)


@pytest.mark.parametrize("tiles", [1, 5])
@pytest.mark.parametrize("filters", FILTERS)
def test_every_fourth_row(probe, tmp_path, filters, tiles):
    probe.call("context", threads=2)
    stored = dealt(tmp_path, 4, (64, 500), chunks=(16, 500), **FILTERS[filters])
    check_once(h5.check_load(probe, tmp_path, tmp_path / "v.h5", "v", tiles=tiles), stored, 4)


@pytest.mark.parametrize("dtype", [">i2", ">f8", "<c16", "|S7"])
def test_edge_chunks_and_byte_orders(probe, tmp_path, dtype):
    stored = dealt(tmp_path, 3, (50, 70), dtype, chunks=(16, 32), compression="gzip", shuffle=True)
    check_once(h5.check_load(probe, tmp_path, tmp_path / "v.h5", "v", tiles=3), stored, 3)


@pytest.mark.parametrize("filters", ["shuffle", "plain"])
def test_columns_steps_and_folds(probe, tmp_path, filters):
    """Large plain chunks too: pieces of 4 bytes, every 12."""
    stored = source(tmp_path / "s.h5", (300, 240), chunks=(100, 240), **FILTERS[filters])
    columns = [
        (numpy.s_[:, k::3], "s.h5", "d", (300, 240), numpy.s_[:, 80 * k : 80 * k + 80])
        for k in range(3)
    ]
    steps = [(numpy.s_[k], "s.h5", "d", (300, 240), numpy.s_[:, k::3]) for k in range(3)]
    folded = [
        (numpy.s_[k::2], "s.h5", "d", (300, 240), numpy.s_[k::2, k + 1 :: 4]) for k in range(2)
    ]
    h5.virtual(tmp_path / "v.h5", "columns", (300, 240), "<f4", columns)
    h5.virtual(tmp_path / "v.h5", "steps", (3, 300, 80), "<f4", steps)
    h5.virtual(tmp_path / "v.h5", "folded", (300, 60), "<f4", folded)
    h5.virtual(
        tmp_path / "v.h5",
        "rows",
        (40, 1200),
        "<f4",
        [(numpy.s_[:, :], "s.h5", "d", (300, 240), numpy.s_[50:250])],
    )
    for name in ("columns", "steps", "folded", "rows"):
        statistics = h5.check_load(probe, tmp_path, tmp_path / "v.h5", name)
        assert statistics["bytes_read"] <= stored + (16 << 10), (name, statistics)


@pytest.mark.parametrize("dtype, rows", [("<f4", 4000), (">i2", 6007), ("<f8", 1201)])
def test_columns_of_a_contiguous_source_are_read_once(probe, tmp_path, dtype, rows):
    """The source is several slices long, with and without a rest."""
    shape = (rows, 120)
    stored = source(tmp_path / "s.h5", shape, dtype)
    columns = [
        (numpy.s_[:, k::12], "s.h5", "d", shape, numpy.s_[:, 10 * k : 10 * k + 10])
        for k in range(12)
    ]
    some = [
        (numpy.s_[5:, k], "s.h5", "d", shape, numpy.s_[: rows - 5, 119 - 3 * k]) for k in range(40)
    ]
    h5.virtual(tmp_path / "v.h5", "columns", shape, dtype, columns)
    h5.virtual(tmp_path / "v.h5", "some", (rows, 41), dtype, some, fill=7)
    h5.virtual(
        tmp_path / "over.h5",
        "over",
        (rows, 60),
        dtype,
        [
            (numpy.s_[:, k::2], "v.h5", "columns", shape, numpy.s_[:, 7 + k : 67 + k : 2])
            for k in range(2)
        ],
    )
    for tiles in (1, 5):
        check_once(
            h5.check_load(probe, tmp_path, tmp_path / "v.h5", "columns", tiles=tiles), stored, 1
        )
    assert h5.check_load(probe, tmp_path, tmp_path / "v.h5", "some")["bytes_read"] <= stored + (
        16 << 10
    )
    h5.check_load(probe, tmp_path, tmp_path / "over.h5", "over", tiles=3)
    want = h5.read(tmp_path / "v.h5", "columns")
    probe.call("open", path=str(tmp_path / "v.h5"), dataset="columns")
    for box in (
        [[0, rows], [3, 4]],
        [[rows - 1, rows], [0, 120]],
        [[rows // 2 - 20, rows // 2 + 20], [50, 70]],
    ):
        read = probe.call(
            "read", dtype=gen.dtype_text(want.dtype), box=box, path=str(tmp_path / "box")
        )["statistics"]
        assert (tmp_path / "box").read_bytes() == want[
            tuple(slice(lo, hi) for lo, hi in box)
        ].tobytes()
        assert read["bytes_read"] <= stored + (16 << 10)


@pytest.mark.parametrize("middle", [700, 701])
def test_axes_of_contiguous_sources_in_another_order(probe, tmp_path, middle):
    """Slices along the axis in the middle; sources of more axes than the virtual dataset, and
    axes that are exchanged by their mappings."""
    shape = (3, middle, 500)
    stored = source(tmp_path / "s.h5", shape, "<i4")
    last = [
        (numpy.s_[k], "s.h5", "d", shape, numpy.s_[:, :, 5 * k : 5 * k + 5]) for k in range(100)
    ]
    flat = [(numpy.s_[:, k], "s.h5", "d", shape, numpy.s_[1, :, 499 - k]) for k in range(300)]
    h5.virtual(tmp_path / "v.h5", "last", (100, 3, middle, 5), "<i4", last)
    h5.virtual(tmp_path / "v.h5", "flat", (middle, 300), "<i4", flat)
    check_once(h5.check_load(probe, tmp_path, tmp_path / "v.h5", "last", tiles=4), stored, 1)
    assert h5.check_load(probe, tmp_path, tmp_path / "v.h5", "flat")["bytes_read"] <= stored / 3 + (
        16 << 10
    )


def test_the_same_chunks_twice(probe, tmp_path):
    stored = source(
        tmp_path / "s.h5", (64, 300), chunks=(16, 300), compression="gzip", shuffle=True
    )
    halves = [
        (numpy.s_[:64], "s.h5", "d", (64, 300), None),
        (numpy.s_[64:], "s.h5", "d", (64, 300), None),
    ]
    h5.virtual(tmp_path / "v.h5", "v", (128, 300), "<f4", halves)
    check_once(h5.check_load(probe, tmp_path, tmp_path / "v.h5", "v"), stored, 1)


def test_skipped_filters_and_chunks_that_are_absent(probe, tmp_path):
    with h5py.File(tmp_path / "s.h5", "w") as file:
        d = file.create_dataset(
            "d", (60, 40), "<i4", chunks=(10, 40), compression="gzip", shuffle=True, fillvalue=-5
        )
        d[:30] = rng.integers(0, 99, (30, 40))
        plain = rng.integers(0, 99, (10, 40)).astype("<i4")
        d.id.write_direct_chunk((40, 0), plain.tobytes(), 3)  # no filter
        # shuffled, not compressed
        d.id.write_direct_chunk((50, 0), plain.view("u1").reshape(-1, 4).T.tobytes(), 2)
        stored = d.id.get_storage_size()
    mappings = [
        (numpy.s_[k::6], "s.h5", "d", (60, 40), numpy.s_[10 * k : 10 * k + 10]) for k in range(6)
    ]
    h5.virtual(tmp_path / "v.h5", "v", (60, 40), "<i4", mappings)
    statistics = h5.check_load(probe, tmp_path, tmp_path / "v.h5", "v", tiles=4)
    check_once(statistics, stored, 1)
    assert statistics["missing"] == 10  # for each row one


def test_boxes_read_only_the_chunks_that_they_want(probe, tmp_path):
    stored = dealt(tmp_path, 4, (64, 500), chunks=(16, 250), compression="gzip")
    want = h5.read(tmp_path / "v.h5", "v")
    probe.call("open", path=str(tmp_path / "v.h5"), dataset="v")
    for box, part in (
        ([[1, 64], [0, 250]], 8),
        ([[70, 72], [240, 260]], 8),
        ([[0, 256], [499, 500]], 2),
        ([[5, 6], [0, 1]], 32),
    ):
        read = probe.call("read", dtype="<f4", box=box, path=str(tmp_path / "box"))["statistics"]
        assert (tmp_path / "box").read_bytes() == want[
            tuple(slice(lo, hi) for lo, hi in box)
        ].tobytes()
        assert read["bytes_read"] <= 1.2 * stored / part + 4 * (16 << 10), (box, read, stored)


def test_a_chunk_that_does_not_decode_is_told_with_the_first_place_that_wants_it(probe, tmp_path):
    dealt(tmp_path, 4, (64, 500), chunks=(16, 500), compression="gzip")
    with h5py.File(tmp_path / "s2.h5", "r+") as file:
        offset = file["d"].id.get_chunk_info_by_coord((16, 0)).byte_offset
    with open(tmp_path / "s2.h5", "r+b") as file:
        file.seek(offset)
        file.write(b"\xff" * 64)
    error = h5.load_refused(
        probe,
        tmp_path / "v.h5",
        "v",
        "corrupt",
        ["could not decode the chunk at (66, 0)", "deflate", "s2.h5"],
    )
    check_error(error, "corrupt", path=tmp_path / "s2.h5")
    assert error["offset"] == offset
    assert error["message"].count("could not decode") == 1


@pytest.mark.parametrize("filters", ["shuffle", "plain"])
def test_the_plan_foretells_the_reads(probe, tmp_path, filters):
    dealt(tmp_path, 3, (120, 300), "<f8", chunks=(40, 300), **FILTERS[filters])
    opened = probe.call("open", path=str(tmp_path / "v.h5"), dataset="v")
    tiling = {"do": "tiling", "kind": "even", "shape": opened["shape"], "tiles": 3}
    _, _, explained, moved = probe.batch(
        [tiling, {"do": "array", "dtype": "<f8"}, {"do": "explain"}, {"do": "load"}]
    )
    assert explained["plan"]["reads"] == moved["statistics"]["reads"]


@pytest.mark.parametrize("other", ["d", "e"])
@pytest.mark.parametrize("longest", [1000, None])
@pytest.mark.parametrize("options", [{"scaleoffset": 0}, FILTERS["shuffle"], {}])
def test_a_source_of_a_source_is_open_twice(probe, tmp_path, options, longest, other):
    """Indexes that are arrays; libhdf5 itself reads what is scaled,
    by the dataset that was opened first."""
    with h5py.File(tmp_path / "s.h5", "w", libver="latest") as file:
        file.create_dataset(
            "d", data=numpy.arange(1000, dtype="<i4"), chunks=(10,), maxshape=(longest,), **options
        )
        file["e"] = file["d"]
    h5.virtual(
        tmp_path / "v.h5", "inner", (1000,), "<i4", [(numpy.s_[:], "s.h5", other, (1000,), None)]
    )
    for name, first, second in (
        ("v", ("s.h5", "d"), (".", "inner")),
        ("w", (".", "inner"), ("s.h5", "d")),
    ):
        mappings = [
            (numpy.s_[:1000], *first, (1000,), None),
            (numpy.s_[1000:], *second, (1000,), None),
        ]
        h5.virtual(tmp_path / "v.h5", name, (2000,), "<i4", mappings)
        h5.check_load(probe, tmp_path, tmp_path / "v.h5", name)
