# tegula with its copy of libhdf5 beside Legate, which brings HDF5 1.14.6 of its own, and beside
# h5py, in one process and in every order.
#
# SPDX-License-Identifier: Apache-2.0
#
# TEGULA_LEGATE_H5PY is a folder with a newer h5py than that of the environment, which goes before
# it (build/other-h5py).
import os
import pathlib

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes these files")

HERE = pathlib.Path(__file__).parent
ORDERS = [
    "tegula legate",
    "legate tegula",
    "tegula h5py legate",
    "h5py tegula legate",
    "h5py legate tegula",
    "tegula legate h5py",
    "legate tegula h5py",
    "legate h5py tegula",
]


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("legate") / "x.h5"
    rng = numpy.random.default_rng(11)
    data = {
        "packed": numpy.cumsum(rng.integers(-3, 4, (400, 300)), axis=1).astype("f4"),
        "plain": rng.random((123, 45)),
        "numbers": rng.integers(0, 1000, (50, 60, 7)),
    }
    with h5py.File(path, "w", libver=("v108", "v110")) as out:
        out.create_dataset(
            "packed", data=data["packed"], chunks=(64, 100), compression="gzip", shuffle=True
        )
        out.create_dataset("plain", data=data["plain"])
        out.create_dataset(
            "numbers", data=data["numbers"], chunks=(10, 60, 7), maxshape=(None, 60, 7)
        )
    for name, array in data.items():
        numpy.save("%s.%s.npy" % (path, name), array)
    return path


def libhdf5(folder):
    return str(next(folder.glob("libhdf5-*.so*")))


@pytest.fixture
def beside(run_legate, file):
    def run(order, hdf5, h5py_folder=None):
        environment = {"BESIDE_HDF5": hdf5, "TEGULA_LIB": os.path.abspath(os.environ["TEGULA_LIB"])}
        if h5py_folder:
            environment["PYTHONPATH"] = h5py_folder
        done = run_legate(
            HERE / "beside.py", file, *order.split(), config="--cpus 1 --sysmem 400", **environment
        )
        assert done.returncode == 0 and "right" in done.stdout.splitlines(), "%s\n%s" % (
            done.stdout[-2000:],
            done.stderr[-4000:],
        )
        assert "memfd:tegula-libhdf5" in done.stdout, (
            "no copy of libhdf5 of tegula's own: " + done.stdout
        )
        return done.stdout

    return run


@pytest.mark.parametrize("order", ORDERS)
def test_beside_legate_with_the_libhdf5_of_h5py(beside, packages, order):
    told = beside(order, libhdf5(packages / "h5py.libs"))
    assert "legate.libs/libhdf5" in told


@pytest.mark.parametrize("order", ["tegula legate", "legate tegula", "legate h5py tegula"])
def test_beside_legate_with_a_copy_of_its_own_libhdf5(beside, packages, order):
    beside(order, libhdf5(packages / "legate.libs"))


# h5py 3.16 itself cannot be imported behind Legate
@pytest.mark.parametrize(
    "order",
    [order for order in ORDERS if "h5py" in order and order.index("h5py") < order.index("legate")],
)
def test_beside_legate_with_a_newer_h5py(beside, packages, order):
    folder = os.environ.get("TEGULA_LEGATE_H5PY")
    if not folder:
        pytest.skip(
            "TEGULA_LEGATE_H5PY names no folder with a newer h5py (scripts/test --long makes one)"
        )
    beside(order, libhdf5(pathlib.Path(folder) / "h5py.libs"), folder)
