# HDF5 files on storage that counts its requests, gives short answers, fails or changes: the right
# values or one clear error.
#
# SPDX-License-Identifier: Apache-2.0
#
# The storage is tegula_slowfs (tests/support/slowfs.py). h5py, which read the files where they
# really lie, says what is right.
import json
import os
import pathlib
import sys

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes and judges these files")

import hdf5_files as h5  # noqa: E402
from probe import ProbeError, check_error  # noqa: E402
from reference_hash import content_hash  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from command import report, tegula  # noqa: E402

ENV = {
    key: value
    for key, value in os.environ.items()
    if key in ("TEGULA_HDF5_LIBRARY", "TEGULA_PLUGIN_PATH")
}

MIB = 1 << 20
BLOCK = 64 << 10  # what the plugin fetches of metadata at a time
KINDS = {
    "contiguous": {},
    "chunks": {"chunks": (64, 64)},
    "gzip": {"chunks": (64, 64), "compression": "gzip", "shuffle": True},
    "many": {"chunks": (8, 16), "maxshape": (None, None)},
    "scaleoffset": {"chunks": (64, 256), "scaleoffset": 0},
}


def write(folder, kind, rows=256, libver="latest"):
    """s/a.h5 with x; something else lies between its chunks. Gives the array."""
    (folder / "s").mkdir()
    data = numpy.random.default_rng(9).integers(0, 5000, (rows, 256)).astype("<i4")
    with h5py.File(folder / "s" / "a.h5", "w", libver=libver) as file:
        x = file.create_dataset("x", data.shape, "<i4", **KINDS[kind])
        for k in range(0, rows, 64):
            x[k : k + 64] = data[k : k + 64]
            file["other%d" % k] = numpy.arange(2000)
    return h5.read(folder / "s" / "a.h5", "x")


def load(probe, tmp_path, path):
    """(values, None) or (None, error)."""
    try:
        return h5.load(probe, tmp_path, path, "x", tiles=3)[0], None
    except ProbeError as refused:
        return None, refused.error


# ---- how many requests ----


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("kind", ["contiguous", "chunks", "gzip", "many"])
def test_requests_are_those_of_chunks_and_of_metadata(no_hang, mount, tmp_path, kind, libver):
    """No more than one for each chunk and for each block of metadata, and no byte twice but
    where data and metadata share a block."""
    data = write(tmp_path, kind, rows=1024, libver=libver)
    with h5py.File(tmp_path / "s" / "a.h5") as file:
        chunks = file["x"].id.get_num_chunks() if file["x"].chunks else 1
    size = (tmp_path / "s" / "a.h5").stat().st_size
    slow = mount(tmp_path / "s", direct_io=1, attr_cache=60)
    got, error = load(no_hang, tmp_path, slow.path / "a.h5")
    assert error is None and got.tobytes() == data.tobytes()
    counts = slow.counts()
    blocks = size // BLOCK + 8
    assert counts["read"] <= chunks + blocks, counts
    assert counts["bytes"] <= size + blocks * BLOCK, counts
    if kind == "many":  # neighbours come in one request
        assert counts["read"] < chunks // 20, counts


def test_contiguous_data_is_read_as_raw(no_hang, mount, tmp_path):
    (tmp_path / "s").mkdir()
    data = numpy.arange(4 * MIB, dtype="<f4").reshape(-1, 1024)  # 16 MiB
    with h5py.File(tmp_path / "s" / "a.h5", "w") as file:
        file["x"] = data
    data.tofile(tmp_path / "s" / "a.bin")
    slow = mount(tmp_path / "s", direct_io=1, attr_cache=60, delay_read=2000)
    counts = []
    for name, options in (
        ("a.bin", {"format": "raw", "dtype": "<f4", "row_shape": [1024]}),
        ("a.h5", {}),
    ):
        slow.zero()
        no_hang.call("open", path=str(slow.path / name), **options)
        no_hang.batch(
            [
                {"do": "tiling", "kind": "even", "shape": list(data.shape), "tiles": 3},
                {"do": "array", "dtype": "<f4"},
                {"do": "load"},
            ]
        )
        counts.append(slow.counts())
        assert no_hang.call("hash", of="array")["hash"] == content_hash(data)
    of_raw, of_hdf5 = counts
    assert of_hdf5["read"] <= of_raw["read"] + 4 and of_hdf5["open"] <= of_raw["open"] + 2, counts


# ---- what goes wrong ----


@pytest.mark.parametrize("kind", KINDS)
def test_short_answers_give_the_right_values(no_hang, mount, tmp_path, kind):
    data = write(tmp_path, kind)
    slow = mount(tmp_path / "s", direct_io=1, attr_cache=60)
    for most in (4095, 1001):
        slow.set(short_read=most)
        got, error = load(no_hang, tmp_path, slow.path / "a.h5")
        assert error is None, error
        assert got.tobytes() == data.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_a_read_that_fails(no_hang, mount, tmp_path, kind):
    """Each in turn, for once and for ever, until one is not reached any more."""
    data = write(tmp_path, kind)
    slow = mount(tmp_path / "s", direct_io=1, attr_cache=60)
    for times in (1, 1000):
        for number in [*range(1, 9), 12, 20, 35, 10000]:
            slow.set(fail_read=number, fail_times=times)
            slow.zero()
            got, error = load(no_hang, tmp_path, slow.path / "a.h5")
            if error is None:  # what could not be listed in one way was listed in another
                assert got.tobytes() == data.tobytes() and (
                    slow.counts()["read"] < number or times == 1
                ), number
            else:
                check_error(error, "io", ["a.h5"], path=slow.path / "a.h5")
                assert slow.counts()["read"] >= number


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_changes_under_the_load(no_hang, mount, tmp_path, kind):
    """Other bytes from the Nth read on: an error, or the values that were there before."""
    data = write(tmp_path, kind)
    slow = mount(tmp_path / "s", direct_io=1)
    refused = 0
    for number in [*range(10), 14, 25, 40, 10000]:
        slow.set(change_after=number)
        got, error = load(no_hang, tmp_path, slow.path / "a.h5")
        slow.set(change_after=-1)
        if error is None:
            assert number > 0 and got.tobytes() == data.tobytes(), number
        else:
            refused += 1
            # libhdf5 opens the file a second time for scaleoffset: two looks at it that differ are
            # begun again, and find no HDF5 file
            again = kind == "scaleoffset" or number == 0
            check_error(error, ("changed", "corrupt") if again else "changed", ["a.h5"])
    assert refused > 2


def test_a_file_that_changes_while_it_is_listed(mount, tmp_path):
    """Names, shapes and attributes are numbers, too."""
    write(tmp_path, "chunks")
    with h5py.File(tmp_path / "s" / "a.h5", "a") as file:
        for k in range(400):  # beyond the blocks that are read first
            file["x"].attrs["a%d" % k] = numpy.full(100, k, "<i8")
    slow = mount(tmp_path / "s", direct_io=1)
    path = slow.path / "a.h5"
    options = [
        ("info", path, "--attributes"),
        ("info", path),
        ("info", path, "--dataset", "x", "--chunks"),
    ]
    for words in options:
        slow.zero()
        right = report(*words, env=ENV)
        reads, seen = slow.counts()["read"], {}
        for number in [*range(1, reads + 1), 10000]:
            slow.set(change_after=number)
            run = tegula(words[0], "--json", *words[1:], env=ENV)
            slow.set(change_after=-1)
            answer = json.loads(run.stdout)
            status = answer["error"]["status"] if run.returncode else "right"
            assert status == "changed" or (status == "right" and answer == right), (number, answer)
            seen[number] = status
        # also behind the last read
        assert seen[reads] == "changed" and seen[10000] == "right", seen
