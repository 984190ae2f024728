# Every kind of HDF5 dataset x every file version, judged by h5py: whole, tiles, boxes.
#
# SPDX-License-Identifier: Apache-2.0
import zlib

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes and judges these files")
pytest.importorskip("hdf5plugin", reason="hdf5plugin is not installed: it brings the filters")

import hdf5_cases  # noqa: E402
from hdf5_files import compare_opened, without_blosc2  # noqa: E402

VERSIONS = [version for version in hdf5_cases.VERSIONS if hdf5_cases.writable(version)]


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
                compare_opened(
                    probe,
                    probe.call("open", path=str(path), dataset=name),
                    path,
                    name,
                    file[name],
                    rng,
                )
