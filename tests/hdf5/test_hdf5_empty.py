# Chunked datasets with an axis of length 0: nothing to load,
# but the shape and the codecs of their chunks stay known.
#
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import sys

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes and judges these files")

import hdf5_files as h5  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from command import report  # noqa: E402

KEPT = {
    key: value
    for key, value in os.environ.items()
    if key in ("TEGULA_HDF5_LIBRARY", "TEGULA_PLUGIN_PATH")
}

KINDS = {
    "rows": (
        (0, 4, 6),
        (3, 2, 6),
        (None, 4, 6),
        {"compression": "gzip", "shuffle": True},
        ["shuffle", "deflate:4"],
    ),
    "columns": ((5, 0), (3, 2), (5, None), {}, []),
    "limited": ((0, 3), (4, 2), (8, 3), {"fletcher32": True}, ["fletcher32"]),
}


def tell(*words):
    return report(*words, env=KEPT)


def write(path, libver="v110"):
    with h5py.File(path, "w", libver=libver) as file:
        for name, (shape, chunk, maximum, options, _) in KINDS.items():
            file.create_dataset(
                name, shape, ">i4", chunks=chunk, maxshape=maximum, fillvalue=3, **options
            )
        file.create_dataset("read", (0,), "<i4", chunks=(7,), maxshape=(None,), scaleoffset=0)
    with h5py.File(path, "a") as file:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((4,))
        plist.set_filter(40000, h5py.h5z.FLAG_OPTIONAL, (1,))
        h5py.h5d.create(
            file.id, b"foreign", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((0,), (9,)), plist
        )


@pytest.mark.parametrize("libver", ["earliest", "v110"])
@pytest.mark.parametrize("name", KINDS)
def test_chunks_are_kept(probe, tmp_path, name, libver):
    path, text = tmp_path / "a.h5", tmp_path / "a.json"
    shape, chunk, maximum, options, codecs = KINDS[name]
    write(path, libver)
    h5.check_load(probe, tmp_path, path, name, numpy.zeros(shape, "<i4"))
    tell("info", path, "--dataset", name, "--manifest", text)
    assert json.loads(text.read_text())["parts"][0]["chunk"] == list(chunk)
    h5.check_load(probe, tmp_path, text, None, numpy.zeros(shape, "<i4"))
    for where in ((path, "--dataset", name), (text,)):
        info = tell("info", *where)["datasets"][0]
        assert (info["chunks"], info["codecs"], info["stored_bytes"]) == (list(chunk), codecs, 0)
        target = tmp_path / "copy.h5"
        target.unlink(missing_ok=True)
        tell("copy", *where, target, "--to-dataset", "c")
        with h5py.File(target) as file:
            copy = file["c"]
            assert (
                copy.shape == shape
                and copy.chunks == chunk
                and (copy.compression == "gzip") == ("compression" in options)
            )
            assert copy.maxshape == (maximum if where[0] == path else shape) and copy.fillvalue == 3


def test_what_cannot_be_decoded_has_nothing_to_decode(probe, tmp_path):
    write(tmp_path / "a.h5")
    for name in ("read", "foreign"):
        h5.check_load(probe, tmp_path, tmp_path / "a.h5", name, numpy.zeros(0, "<i4"))


def test_an_empty_shard_first(probe, tmp_path):
    """Joined with shards in chunks of another shape."""
    (tmp_path / "s").mkdir()
    data = numpy.arange(40).reshape(10, 4)
    for k, (rows, chunk) in enumerate([(0, (3, 2)), (6, (2, 4)), (0, (9, 1)), (4, (4, 4))]):
        with h5py.File(tmp_path / "s" / f"p_{k}.h5", "w") as file:
            file.create_dataset(
                "x", data=data[[0, 0, 6, 6][k] :][:rows], chunks=chunk, maxshape=(None, 4)
            )
    h5.check_load(probe, tmp_path, tmp_path / "s", "x", data, tiles=3)
    tell("copy", tmp_path / "s", "--dataset", "x", tmp_path / "c.h5")
    with h5py.File(tmp_path / "c.h5") as file:
        assert (file["x"][()] == data).all()
    tell("verify", tmp_path / "s", "--dataset", "x")
