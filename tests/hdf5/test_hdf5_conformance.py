# Every kind of HDF5 dataset x every file version, judged by h5py: whole, tiles, boxes.
#
# SPDX-License-Identifier: Apache-2.0
import zlib

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes and judges these files")
pytest.importorskip("hdf5plugin", reason="hdf5plugin is not installed: it brings the filters")

import generate_arrays as gen  # noqa: E402
import hdf5_cases  # noqa: E402
from reference_hash import content_hash  # noqa: E402


VERSIONS = [version for version in hdf5_cases.VERSIONS if hdf5_cases.writable(version)]


def as_loaded(dataset):
    """What h5py reads, in native byte order."""
    data = numpy.asarray(dataset[()])
    return data.astype(data.dtype.newbyteorder("=")) if data.dtype.kind not in "SV" else data


def load_and_compare(probe, path, name, dataset, rng):
    shape = dataset.shape
    small = int(numpy.prod([max(1, n) for n in shape], dtype="f8")) < 1 << 20
    info = probe.call("open", path=str(path), dataset=name)
    assert info["shape"] == list(shape), name
    if small:
        data = as_loaded(dataset)
        tiling, boxes = gen.random_tiling(rng, list(shape), from_dataset=False)
        probe.batch([tiling, gen.array_command(rng, data)])
        moved = probe.call("load", progress=True)
        dump = probe.call("dump", path=str(path) + ".tiles")
        stored = open(str(path) + ".tiles", "rb").read()
        at = 0
        for tile in dump["tiles"]:
            expected = gen.plain_bytes(gen.in_box(data, tile["box"]))
            assert stored[at : at + tile["bytes"]] == expected, "%s: tile %s" % (name, tile["box"])
            at += tile["bytes"]
        assert at == data.nbytes and moved["statistics"]["bytes_read"] >= 0
        assert probe.call("hash", of="dataset")["hash"] == content_hash(data)
    for _ in range(3):
        box = gen.random_box(rng, shape)
        if not small:  # a corner and what was written
            box = [[n - min(n, 70), n] if k == 0 else [0, min(n, 70)] for k, n in enumerate(shape)]
        expected = numpy.asarray(dataset[tuple(slice(lo, hi) for lo, hi in box)])
        if expected.dtype.kind not in "SV":
            expected = expected.astype(expected.dtype.newbyteorder("="))
        probe.call("read", dtype=gen.dtype_text(expected.dtype), box=box, layout=gen.random_layout(rng, len(shape)), path=str(path) + ".box")
        assert open(str(path) + ".box", "rb").read() == gen.plain_bytes(expected), "%s: box %s" % (name, box)


def without_blosc2(probe, path, name):
    """Is the library built without libblosc2 (Debian 12 has none)? Then the refusal names it."""
    answer = probe.ask({"do": "open", "path": str(path), "dataset": name})
    return "error" in answer and answer["error"]["status"] == "unsupported" and "blosc2" in answer["error"]["message"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", hdf5_cases.CASES)
def test_hdf5_equals_h5py(probe, tmp_path, case, version):
    rng = numpy.random.default_rng(zlib.crc32((case + version).encode()))
    path = tmp_path / "file.h5"
    with h5py.File(path, "w", libver=hdf5_cases.VERSIONS[version]) as file:
        datasets = hdf5_cases.CASES[case](file, rng)
    with h5py.File(path) as file:
        for name, status in datasets.items():
            if name.startswith("blosc2") and without_blosc2(probe, path, name):
                continue
            if status is not None:
                assert probe.refused("open", path=str(path), dataset=name)["status"] == status, name
            else:
                load_and_compare(probe, path, name, file[name], rng)
