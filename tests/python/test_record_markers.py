# Fortran's sequential unformatted files: scipy and gfortran write and judge them.
#
# SPDX-License-Identifier: Apache-2.0
import itertools
import os
import pickle
import shutil
import struct
import subprocess

import numpy
import pytest
import tegula

BIN = os.environ.get("TEGULA_BIN", "build/bin/tegula")
SIZES = {"fortran4": "i4", "fortran8": "i8"}


def values(dtype, shape=(50, 33)):
    return numpy.arange(numpy.prod(shape)).reshape(shape).astype(dtype)


def records(array, markers="fortran4", order="<", most=None):
    """The bytes of the file, by the description in gfortran's manual."""
    kind = order + {"fortran4": "i", "fortran8": "q"}[markers]
    out = []
    for row in array:
        data = row.tobytes()
        cuts = range(0, len(data), most or len(data))
        for at in cuts:
            part = data[at : at + (most or len(data))]
            more = at + len(part) < len(data)
            out += [struct.pack(kind, -len(part) if more else len(part)), part]
            out += [struct.pack(kind, -len(part) if at > 0 else len(part))]
    return b"".join(out)


def same(found, expected):
    found = numpy.asarray(found)
    equal = numpy.array_equal(found, expected)
    return found.dtype == expected.dtype.newbyteorder("=") and equal


@pytest.mark.parametrize("markers", SIZES)
@pytest.mark.parametrize("dtype", ("<f4", "<f8", ">f4", ">f8"))
def test_what_scipy_writes_is_loaded_and_what_is_saved_scipy_reads(tmp_path, dtype, markers):
    fortran = pytest.importorskip("scipy.io").FortranFile
    array, path, back = values(dtype), tmp_path / "x.dat", tmp_path / "y.raw"
    header = dtype[0] + SIZES[markers].replace("i", "u")
    with fortran(path, "w", header) as file:
        for row in array:
            file.write_record(row)
    how = {"dtype": dtype, "row_shape": (33,), "record_markers": markers}
    assert same(tegula.load(path, **how, tiles=3), array)
    ds = tegula.open(path, **how)
    assert same(ds[3:40:7, 5:30:3], array[3:40:7, 5:30:3]) and ds[49, 32] == array[49, 32]
    tegula.save(array, back, byte_order=dtype[0], record_markers=markers)
    assert back.read_bytes() == path.read_bytes()
    with fortran(back, "r", header) as file:
        assert all(numpy.array_equal(file.read_reals(dtype), row) for row in array)


@pytest.mark.parametrize("markers, order", list(itertools.product(SIZES, "<>")))
@pytest.mark.parametrize("most", (1, 3, 8, 100, 131, 132, 4096))
def test_subrecords_of_any_length(tmp_path, markers, order, most):
    """The limit cuts elements, too: 2147483639 is no multiple of 4."""
    array, path, back = values(order + "f4"), tmp_path / "x.dat", tmp_path / "y.raw"
    path.write_bytes(records(array, markers, order, most))
    how = {"dtype": order + "f4", "row_shape": (33,), "record_markers": markers}
    assert same(tegula.load(path, **how, tiles=4), array)
    assert same(tegula.open(path, **how)[::9, 1::5], array[::9, 1::5])
    said = {"raw.subrecord_bytes": most}
    tegula.save(array, back, byte_order=order, record_markers=markers, settings=said)
    assert back.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("order", "<>")
def test_items_of_one_byte_take_the_order_of_markers_from_the_option(tmp_path, order):
    array, path, back = values("u1"), tmp_path / "x.dat", tmp_path / "y.raw"
    path.write_bytes(records(array, order=order))
    how = {"dtype": "u1", "row_shape": (33,), "record_markers": "fortran4"}
    assert same(tegula.load(path, **how, byte_order=order), array)
    with pytest.raises(tegula.CorruptError, match="marker at byte 0"):
        tegula.open(path, **how, byte_order="<>"[order == "<"])
    tegula.save(array, back, byte_order=order, record_markers="fortran4")
    assert back.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("row, most", ((33, None), (33, 60), (30000, None), (30000, 70001)))
def test_every_damaged_marker_that_a_read_meets_is_named(tmp_path, row, most):
    """Short records and long ones go different ways."""
    array, path = values("<f4", (6, row)), tmp_path / "x.dat"
    good = records(array, most=most)
    how = {"dtype": "<f4", "shape": (6, row), "record_markers": "fortran4"}
    path.write_bytes(good)
    assert same(tegula.load(path, **how), array)
    at, marks = 0, []
    while at < len(good):
        size = abs(struct.unpack("<i", good[at : at + 4])[0])
        marks += [at, at + 4 + size]
        at += size + 8
    for at in marks[1:]:
        expected = struct.unpack("<i", good[at : at + 4])[0]
        for wrong in (-expected, expected + 1, 0):
            path.write_bytes(good[:at] + struct.pack("<i", wrong) + good[at + 4 :])
            with pytest.raises(tegula.CorruptError) as caught:
                tegula.load(path, **how)
            assert f"byte {at} is {wrong}, expected {expected}" in str(caught.value)
            assert caught.value.offset == at
    period = len(good) // 6
    ds = tegula.open(path, **how)  # the last marker of all is damaged
    assert same(ds[4], array[4]) and len(good) == 6 * period
    for key in ((5, slice(None)), (5, row - 1), (5, slice(-9, -2))):
        with pytest.raises(tegula.CorruptError):
            ds[key]


def test_records_of_other_lengths_that_fill_the_file_are_no_rows(tmp_path):
    path = tmp_path / "x.dat"
    parts = [values("<f4", (1, n)) for n in (10, 4, 16, 10)]
    path.write_bytes(b"".join(records(part) for part in parts))
    ds = tegula.open(path, dtype="<f4", row_shape=(10,), record_markers="fortran4")
    for key in ((1, 2), (2, 9), (slice(None), 3)):
        with pytest.raises(tegula.CorruptError, match="expected 40"):
            ds[key]


def test_what_makes_no_sense_is_refused(tmp_path):
    path = tmp_path / "x.dat"
    path.write_bytes(records(values("<f4")))
    how = {"dtype": "<f4", "row_shape": (33,)}
    refused = (tegula.Error, ValueError)
    for more in ({"row_prefix": 4}, {"row_gap": 4}, {"order": "F"}):
        with pytest.raises(refused, match="record markers"):
            tegula.open(path, **how, **more, record_markers="fortran4")
    with pytest.raises(refused, match=r"fortran4\|fortran8"):
        tegula.open(path, **how, record_markers="fortran")
    for wrong in ((32,), (34,), (66,)):
        with pytest.raises(tegula.CorruptError, match="marker at byte 0 is 132"):
            tegula.open(path, dtype="<f4", row_shape=wrong, record_markers="fortran4")
    with pytest.raises(tegula.CorruptError):
        tegula.open(path, **how, record_markers="fortran8")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(tegula.Error):
        tegula.open(path, **how, record_markers="fortran4")
    for array, more in (
        (values("f4"), {"order": "F"}),
        (numpy.float32(1), {}),
        (numpy.empty((3, 0)), {}),
        (values("f4"), {"settings": {"raw.subrecord_bytes": 0}}),
    ):
        with pytest.raises(refused, match="record markers"):
            tegula.save(array, tmp_path / "y.raw", record_markers="fortran4", **more)
    with pytest.raises(refused, match="is for raw files"):
        tegula.save(values("f4"), tmp_path / "y.npy", record_markers="fortran4")


def test_shards_offset_trailing_bytes_and_side_files(tmp_path):
    array = values(">f8", (40, 5, 3))
    folder = tmp_path / "shards"
    tegula.save(array, folder, format="raw", shards=3, byte_order=">", record_markers="fortran8")
    assert same(tegula.load(folder), array)  # by its side file
    plain = tmp_path / "plain"
    plain.mkdir()
    for i, part in enumerate(numpy.split(array, [7, 11])):
        (plain / f"{i}.bin").write_bytes(b"title" + records(part, order=">") + bytes(9))
    how = {"dtype": ">f8", "row_shape": (5, 3), "offset": 5, "trailing_bytes": 9}
    ds = tegula.open(plain, **how, record_markers="fortran4", format="raw")
    assert ds.shape == (40, 5, 3) and same(ds[5:13, 1], array[5:13, 1])
    assert same(tegula.load(plain, **how, record_markers="fortran4", format="raw"), array)
    assert same(pickle.loads(pickle.dumps(ds))[6:9], array[6:9])
    assert ds.hash() == tegula.load(folder).hash()


def test_the_shell_copies_both_ways_and_keeps_manifests_and_sums(tmp_path):
    array, source, target = values("<f4"), tmp_path / "x.npy", tmp_path / "x.raw"
    manifest, sums, back = tmp_path / "m.json", tmp_path / "s.json", tmp_path / "y.npy"
    numpy.save(source, array)

    def run(*words, status=0):
        done = subprocess.run([BIN, *map(str, words)], capture_output=True, text=True)
        assert done.returncode == status, done.stderr
        return done

    run("copy", source, target, "--to-record-markers", "fortran4", "--verify")
    assert target.read_bytes() == records(array)
    said = ["--dtype", "<f4", "--row-shape", "33", "--record-markers", "fortran4"]
    run("copy", target, back, *said)
    assert same(numpy.load(back), array)
    run("info", target, *said, "--manifest", manifest)
    run("compare", manifest, source)
    run("verify", target, *said, "--write", sums)
    run("verify", target, *said, "--against", sums)
    damaged = bytearray(target.read_bytes())
    damaged[-3] ^= 1
    target.write_bytes(damaged)
    found = run("verify", target, *said, status=3)
    assert "record marker" in found.stdout + found.stderr
    assert "record marker" in run("load", target, *said, status=1).stderr


PROGRAM = """
program records
  implicit none
  integer, parameter :: rows = 50, length = 33
  real(4) :: row(length), found(length)
  integer :: i, k, unit
  character(256) :: name, what
  call get_command_argument(1, what)
  call get_command_argument(2, name)
  if (what == "write") then
    open (newunit=unit, file=name, form="unformatted", access="sequential", status="new")
  else
    open (newunit=unit, file=name, form="unformatted", access="sequential", status="old")
  end if
  do i = 1, rows
    do k = 1, length
      row(k) = real((i - 1) * length + k - 1)
    end do
    if (what == "write") then
      write (unit) row
    else
      read (unit) found
      if (any(found /= row)) stop 1
    end if
  end do
  if (what /= "write") then
    read (unit, iostat=i) found
    if (i >= 0) stop 2
  end if
end program
"""


@pytest.mark.parametrize("order", ("little", "big"))
@pytest.mark.parametrize("most", (None, 8, 50))
@pytest.mark.parametrize("markers", SIZES)
def test_gfortran_writes_and_reads_the_same(tmp_path, markers, most, order):
    compiler = shutil.which("gfortran")
    if compiler is None:
        pytest.skip("there is no gfortran")
    source, program = tmp_path / "records.f90", tmp_path / "records"
    source.write_text(PROGRAM)
    flags = [f"-frecord-marker={markers[-1]}", f"-fconvert={order}-endian"]
    flags += [f"-fmax-subrecord-length={most}"] if most else []
    subprocess.run([compiler, "-o", program, source, *flags], check=True)
    path, back = tmp_path / "x.dat", tmp_path / "y.raw"
    subprocess.run([program, "write", path], check=True)
    sign = "<" if order == "little" else ">"
    array = values(sign + "f4")
    how = {"dtype": sign + "f4", "row_shape": (33,), "record_markers": markers}
    assert same(tegula.load(path, **how), array)
    said = {"raw.subrecord_bytes": most} if most else None
    tegula.save(array, back, byte_order=order, record_markers=markers, settings=said)
    assert back.read_bytes() == path.read_bytes()
    subprocess.run([program, "read", back], check=True)


def test_a_save_in_the_background_keeps_its_settings(tmp_path):
    array = values("<f4")
    tegula.save(array, tmp_path / "x.raw", record_markers="fortran4", byte_order="<", block=False)
    tegula.fence()
    assert (tmp_path / "x.raw").read_bytes() == records(array)
