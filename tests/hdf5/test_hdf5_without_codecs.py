# A build without the libraries of codecs: what needs one is refused by its name, or decoded by a
# filter of libhdf5; all else loads.
#
# SPDX-License-Identifier: Apache-2.0
#
# TEGULA_WITHOUT names the libraries that the build lacks; scripts/test makes such a build.
import os

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes and judges these files")
hdf5plugin = pytest.importorskip(
    "hdf5plugin", reason="hdf5plugin is not installed: it brings the filters"
)
WITHOUT = os.environ.get("TEGULA_WITHOUT", "").split()
if not WITHOUT:
    pytest.skip("this build has its codecs: TEGULA_WITHOUT is not set", allow_module_level=True)

import hdf5_cases  # noqa: E402
import hdf5_files as h5  # noqa: E402

NEEDS = {
    "zstd": "libzstd",
    "lz4": "liblz4",
    "blosc": "libblosc",
    "blosc2": "libblosc2",
    "szip": "libaec",
    "bitshuffle_lz4": "liblz4",
    "bitshuffle_zstd": "libzstd",
    "bitshuffle_block": "liblz4",
}


def needed(name):
    """The library for a dataset of hdf5_cases."""
    fitting = [codec for codec in NEEDS if name == codec or name.startswith(codec + "_")]
    return NEEDS[max(fitting, key=len)] if fitting else None


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("codecs") / "a.h5"
    with h5py.File(path, "w") as file:
        for case in (hdf5_cases.plugin_filters, hdf5_cases.filters, hdf5_cases.masks):
            case(file, numpy.random.default_rng(4))
    return path


def names_of(path, lacking):
    with h5py.File(path) as file:
        return [name for name in file if (needed(name) in WITHOUT) == lacking]


def test_what_needs_no_library_loads(probe, tmp_path, path):
    names = names_of(path, lacking=False)
    assert len(names) > 10
    for name in names:
        h5.check_load(probe, tmp_path, path, name)


def test_what_needs_one_is_refused_by_its_name(probe, tmp_path, path):
    """Unless libhdf5 has the filter itself: szip in the libhdf5 of h5py."""
    names = names_of(path, lacking=True)
    assert {needed(name) for name in names} == set(WITHOUT)
    for name in names:
        if name.startswith("szip") and h5py.h5z.filter_avail(h5py.h5z.FILTER_SZIP):
            assert h5.check_load(probe, tmp_path, path, name)["reader_bytes"] > 0
        else:
            error = h5.open_refused(
                probe,
                path,
                name,
                "unsupported",
                [name, "a.h5", "this build has no " + needed(name)],
            )
            assert "build tegula where %s is installed" % needed(name) in error["hint"]


def test_plugins_of_libhdf5_take_their_place(new_probe, tmp_path, path):
    probe = new_probe(environment={"HDF5_PLUGIN_PATH": hdf5plugin.PLUGIN_PATH})
    probe.call("context", threads=2)
    for name in names_of(path, lacking=True):
        assert h5.check_load(probe, tmp_path, path, name)["reader_bytes"] > 0


def test_chunks_that_skipped_their_filter_need_no_library(probe, tmp_path):
    data = numpy.arange(40, dtype="<i4").reshape(8, 5)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, options in (
            ("zstd", hdf5plugin.Zstd()),
            ("lz4", hdf5plugin.LZ4()),
            ("blosc", hdf5plugin.Blosc()),
        ):
            x = file.create_dataset(
                name, data.shape, data.dtype, chunks=(4, 5), fillvalue=3, **options
            )
            x.id.write_direct_chunk((4, 0), data[4:].tobytes(), filter_mask=1)
            file.create_dataset(
                name + " unwritten", data.shape, data.dtype, chunks=(4, 5), fillvalue=3, **options
            )
        names = list(file)
    for name in names:
        h5.check_load(probe, tmp_path, tmp_path / "a.h5", name)
