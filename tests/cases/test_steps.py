# Steps of a box: what is read is counted, for each layout, axis and step.
#
# SPDX-License-Identifier: Apache-2.0
#
# Values are judged by numpy; tests/property has random steps for all formats.
import numpy
import pytest

from probe import check_error

SHAPES = {"rows": (3000, 500), "cubes": (60, 50, 200)}
STEPS = (2, 10, 25, 32, 50, 250)


def write(folder, layout, array):
    """A file of one layout; gives how it is opened and how many bytes its elements have."""
    if layout == "npy":
        numpy.save(folder / "x.npy", array)
    elif layout == "fortran":
        numpy.save(folder / "x.npy", numpy.asfortranarray(array))
    else:
        h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes this file")
        with h5py.File(folder / "x.h5", "w") as file:
            options = {"chunks": tuple(max(1, n // 4) for n in array.shape)}
            if layout == "gzip":
                options.update(compression="gzip", compression_opts=1)
            file.create_dataset("x", data=array, **(options if layout != "contiguous" else {}))
        return folder / "x.h5"
    return folder / "x.npy"


def read(probe, folder, path, step):
    probe.call("open", path=str(path))
    shape = probe.call("select", ndim=len(step), step=step)["shape"]
    moved = probe.call("read", dtype="<f4", box=[[0, n] for n in shape], path=str(folder / "box"))
    return numpy.fromfile(folder / "box", "<f4").reshape(shape), moved["statistics"]["bytes_read"]


@pytest.mark.parametrize("layout", ["npy", "fortran", "contiguous", "chunked", "gzip"])
@pytest.mark.parametrize("name", SHAPES)
def test_no_byte_is_read_twice(probe, tmp_path, layout, name):
    shape = SHAPES[name]
    array = numpy.random.default_rng(5).integers(0, 9999, shape).astype("f4")
    path = write(tmp_path, layout, array)
    size = path.stat().st_size
    for axis in range(len(shape)):
        for k in STEPS:
            step = [1] * len(shape)
            step[axis] = k
            got, count = read(probe, tmp_path, path, step)
            want = array[tuple(slice(None, None, n) for n in step)]
            assert got.tobytes() == want.tobytes(), step
            assert count <= size, "%d bytes of %d with step %s" % (count, size, step)


def test_far_rows_are_read_alone(probe, tmp_path):
    """Between rows that are 1 MB apart nothing is read."""
    array = numpy.arange(200 * 5000, dtype="f4").reshape(200, 5000)
    numpy.save(tmp_path / "x.npy", array)
    got, count = read(probe, tmp_path, tmp_path / "x.npy", [50, 1])
    assert (got == array[::50]).all()
    assert got.nbytes <= count <= 1.1 * got.nbytes


def test_chunks_between_steps_are_left_out(probe, tmp_path):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes this file")
    array = numpy.random.default_rng(6).integers(0, 1 << 30, (400, 3000)).astype("f4")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=array, chunks=(10, 3000), compression="gzip")
        stored = file["x"].id.get_storage_size()
    got, count = read(probe, tmp_path, tmp_path / "x.h5", [100, 1])
    assert (got == array[::100]).all()
    assert count <= 0.15 * stored


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"ndim": 3, "step": [1, 1, 1]}, "has 3 axes, the dataset 2"),
        ({"ndim": 2, "step": [0, 1]}, "step[0] is 0"),
        ({"ndim": 2, "step": [1, -1]}, "step[1] is -1"),
        ({"ndim": 2, "lo": [0, 9], "hi": [4, 8]}, "9:8 on axis 1"),
        ({"ndim": 2, "hi": [5, 8]}, "0:5 on axis 0 is outside of the shape (4, 8)"),
        ({"ndim": 2, "lo": [-1, 0]}, "-1:4 on axis 0"),
    ],
)
def test_selections_that_cannot_be(probe, tmp_path, given, says):
    numpy.save(tmp_path / "x.npy", numpy.zeros((4, 8)))
    probe.call("open", path=str(tmp_path / "x.npy"))
    check_error(probe.refused("select", **given), "invalid_argument", [says])


def test_a_step_beyond_all_lengths_takes_one_element(probe, tmp_path):
    numpy.save(tmp_path / "x.npy", numpy.arange(12, dtype="f4").reshape(4, 3))
    got, _ = read(probe, tmp_path, tmp_path / "x.npy", [2**63 - 1, 2])
    assert got.tolist() == [[0.0, 2.0]]
