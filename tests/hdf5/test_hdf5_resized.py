# Datasets that grew and shrank, chunks that were written over, deleted or lie outside, shapes at
# the limits of the format: what h5py reads.
#
# SPDX-License-Identifier: Apache-2.0
import zlib

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes and judges these files")

import hdf5_cases  # noqa: E402
import hdf5_files as h5  # noqa: E402

VERSIONS = {
    "earliest": ("earliest", "latest"),
    "v110": ("v110", "v110"),
    "latest": ("latest", "latest"),
}
rng = numpy.random.default_rng(53)


def resize(path, shape):
    with h5py.File(path, "r+") as file:
        file["x"].resize(shape)


def overwrite(path, box):
    with h5py.File(path, "r+") as file:
        x = file["x"]
        x[box] = rng.integers(-(1 << 31), 1 << 31, x[box].shape)


# ---- chunks at the edge that are not filtered ----

RESIZES = {
    "grown": [(16, 15), (17, 16)],  # partial chunks become whole, and others partial
    "shrunk": [(9, 12), (8, 10), (3, 4)],
    "shrunk and grown": [(7, 6), (12, 15), (10, 13)],
    "whole to partial": [(12, 15), (11, 14)],
    "to nothing and back": [(0, 13), (10, 13)],
    "one axis": [(10, 20), (10, 5), (10, 11)],
}


@pytest.mark.parametrize("largest", [(None, 20), (40, None), (None, None), (40, 40)], ids=str)
@pytest.mark.parametrize("steps", RESIZES)
def test_unfiltered_edge_chunks_after_resizing(probe, tmp_path, steps, largest):
    def prepare(plist):
        plist.set_chunk((4, 5))
        plist.set_shuffle()
        plist.set_deflate(4)
        plist.set_fill_value(numpy.array(-9, "<i4"))
        hdf5_cases.call("H5Pset_chunk_opts", plist.id, 2)  # H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS

    path = tmp_path / "a.h5"
    data = rng.integers(0, 1000, (10, 13)).astype("<i4")
    most = tuple(h5py.h5s.UNLIMITED if n is None else n for n in largest)
    h5.low_level(
        path, "x", "<i4", data.shape, prepare, data, maxshape=most, libver=("v110", "latest")
    )
    h5.check_load(probe, tmp_path, path, "x", data)
    for shape in RESIZES[steps]:
        resize(path, shape)
        h5.check_load(probe, tmp_path, path, "x", tiles=3)
        overwrite(path, numpy.s_[shape[0] // 2 :, shape[1] // 2 :])
        h5.check_load(probe, tmp_path, path, "x", tiles=2)


# ---- chunks that come and go ----


@pytest.mark.parametrize("libver", VERSIONS)
@pytest.mark.parametrize("largest", [(None, 14), (30, None), (None, None), (30, 30)], ids=str)
@pytest.mark.parametrize("compression", [None, "gzip"])
def test_chunks_outside_after_shrinking(probe, tmp_path, compression, largest, libver):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=VERSIONS[libver]) as file:
        data = rng.integers(0, 99, (22, 14)).astype(">i4")
        file.create_dataset(
            "x", data=data, chunks=(5, 4), maxshape=largest, compression=compression, fillvalue=3
        )
    for shape in [(13, 9), (5, 4), (1, 14), (22, 14), (0, 0), (6, 6)]:
        resize(path, shape)
        h5.check_load(probe, tmp_path, path, "x")
        if 0 not in shape:
            overwrite(path, numpy.s_[shape[0] - 1 :, :])
            h5.check_load(probe, tmp_path, path, "x")


@pytest.mark.parametrize("libver", VERSIONS)
def test_chunks_written_over_and_datasets_deleted(probe, tmp_path, libver):
    """The places of what was there before are used again,
    or left as holes that still hold old numbers."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=VERSIONS[libver]) as file:
        for name in ("gone", "x", "y"):
            file.create_dataset(
                name, (16, 16), "<i4", chunks=(4, 4), compression="gzip", maxshape=(None, None)
            )
            file[name][:] = 1
    with h5py.File(path, "r+") as file:
        del file["gone"]
        for turn in range(3):  # longer and shorter each time
            file["x"][2:14, 3:9] = rng.integers(0, 1 << 30, (12, 6)) if turn % 2 == 0 else turn
        noise = rng.integers(-(1 << 31), 1 << 31, (4, 4)).astype("<i4")
        file["y"].id.write_direct_chunk((4, 4), zlib.compress(noise.tobytes(), 0))
        file["y"].id.write_direct_chunk((8, 4), noise.tobytes(), filter_mask=1)
        file["y"].id.write_direct_chunk((8, 4), zlib.compress(bytes(64)))
        file.create_dataset("new", data=noise, chunks=(4, 4))
    for name in ("x", "y", "new"):
        h5.check_load(probe, tmp_path, path, name)
    h5.open_refused(probe, path, "gone", "not_found", ["gone"])


# ---- odd shapes ----


def odd_shapes(file):
    file.create_dataset(
        "chunk_beyond_2",
        data=rng.integers(0, 9, (3, 5)).astype("<i2"),
        chunks=(7, 11),
        maxshape=(None, None),
    )
    beyond = file.create_dataset(
        "chunk_beyond_zip", (3, 5), "<i2", chunks=(64, 5), maxshape=(64, 5), compression="gzip"
    )
    beyond[:] = rng.integers(0, 9, (3, 5))
    file.create_dataset(
        "chunk_beyond_one",
        data=rng.integers(0, 9, (1,)).astype("<i2"),
        chunks=(1000,),
        maxshape=(None,),
        shuffle=True,
    )
    file.create_dataset(
        "axes_32", data=rng.integers(0, 99, (1, 2) * 5 + (1,) * 20 + (3, 2)).astype("<i4")
    )
    for name, more in (("axes_32_c", {}), ("axes_32_z", {"compression": "gzip"})):
        shape = (2, 1, 3) + (1,) * 26 + (2, 3, 2)
        chunks = (1, 1, 2) + (1,) * 26 + (2, 2, 1)
        file.create_dataset(
            name,
            data=rng.integers(0, 99, shape).astype("<i4"),
            chunks=chunks,
            maxshape=(None, *shape[1:]),
            **more,
        )
    file.create_dataset(
        "axes_32_2",
        data=rng.integers(0, 99, (2,) * 12 + (1,) * 20).astype("u1"),
        chunks=(1,) * 6 + (2,) * 6 + (1,) * 20,
    )


@pytest.mark.parametrize("libver", VERSIONS)
def test_chunks_larger_than_the_dataset_and_32_axes(probe, tmp_path, libver):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=VERSIONS[libver]) as file:
        odd_shapes(file)
        names = list(file)
    for name in names:
        h5.check_load(probe, tmp_path, path, name)
