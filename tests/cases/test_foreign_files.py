# Files that are no arrays, or not where they seem to begin: named by their first bytes, with what
# to do next; HDF5 behind a user block of any size.
#
# SPDX-License-Identifier: Apache-2.0
#
# The files are made by the programs and modules that people use, not by hand.
import bz2
import gzip
import io
import lzma
import tarfile

import h5py
import numpy
import pytest

from files import check_equal, load_all
from probe import check_error

ARRAY = numpy.arange(24, dtype="f4").reshape(4, 6)
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 12345\n" % (b"ab" * 32)
PAGE = b"<!DOCTYPE html>\n<html><body>404 Not Found</body></html>\n"


def npy():
    out = io.BytesIO()
    numpy.save(out, ARRAY)
    return out.getvalue()


def npz():
    out = io.BytesIO()
    numpy.savez(out, x=ARRAY)
    return out.getvalue()


def tar():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        member = tarfile.TarInfo("x.npy")
        member.size = len(npy())
        archive.addfile(member, io.BytesIO(npy()))
    return out.getvalue()


def mat5():
    scipy_io = pytest.importorskip("scipy.io", reason="scipy writes MAT files of version 5")
    out = io.BytesIO()
    scipy_io.savemat(out, {"x": ARRAY})
    return out.getvalue()


def netcdf():
    scipy_io = pytest.importorskip("scipy.io", reason="scipy writes netCDF classic files")
    out = io.BytesIO()
    file = scipy_io.netcdf_file(out, "w")
    file.createDimension("n", 4)
    file.createVariable("x", "f4", ("n",))[:] = 1
    file.flush()
    return out.getvalue()


KINDS = {
    "lfs": (lambda: LFS, "a pointer of Git LFS", "git lfs pull"),
    "page": (lambda: PAGE, "a web page", "download"),
    "xml": (lambda: b'<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>', "an XML", ""),
    "npz": (npz, "a zip archive", "unzip"),
    "gzip": (lambda: gzip.compress(npy()), "compressed by gzip", "gunzip"),
    "bzip2": (lambda: bz2.compress(npy()), "compressed by bzip2", "bunzip2"),
    "xz": (lambda: lzma.compress(npy()), "compressed by xz", "unxz"),
    "tar": (tar, "a tar archive", "tar -xf"),
    "mat5": (mat5, "a MAT file of version 5", "-v7.3"),
    "netcdf": (netcdf, "a netCDF classic file", "nccopy -k nc4"),
    "hdf4": (lambda: b"\x0e\x03\x13\x01" + bytes(100), "an HDF4 file", "h4toh5"),
    "fits": (lambda: b"SIMPLE  =                    T".ljust(2880), "a FITS file", "astropy"),
}


@pytest.mark.parametrize("suffix", ["", ".npy", ".h5", ".dat"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_foreign_file_is_named(probe, tmp_path, kind, suffix):
    make, what, hint = KINDS[kind]
    path = tmp_path / ("x" + suffix)
    path.write_bytes(make())
    error = probe.refused("open", path=str(path))
    check_error(error, "unsupported", [what], str(path))
    assert hint in error["hint"]


@pytest.mark.parametrize("kind", ["lfs", "page"])
def test_what_stands_in_the_place_of_data_is_never_raw_by_chance(probe, tmp_path, kind):
    make, what, _ = KINDS[kind]
    path = tmp_path / "x.bin"
    path.write_bytes(make())
    error = probe.refused("open", path=str(path), dtype="u1")
    check_error(error, "unsupported", [what], str(path))
    assert "say format raw" in error["hint"]
    got, _, _ = load_all(probe, tmp_path, path, dtype="u1", format="raw")
    assert got.tobytes() == make()


@pytest.mark.parametrize("kind", ["fits", "gzip", "hdf4"])
def test_a_dtype_makes_other_formats_raw(probe, tmp_path, kind):
    make, _, _ = KINDS[kind]
    path = tmp_path / "x.bin"
    path.write_bytes(make())
    got, _, _ = load_all(probe, tmp_path, path, dtype="u1")
    assert got.tobytes() == make()


@pytest.mark.parametrize("suffix", ["", ".nc", ".mat", ".dat"])
@pytest.mark.parametrize("size", [0, 512, 1024, 2048, 4096, 8192, 65536, 1 << 20])
def test_hdf5_behind_a_block_of_the_user(probe, tmp_path, size, suffix):
    path = tmp_path / ("x" + suffix)
    with h5py.File(path, "w", userblock_size=size) as file:
        file["x"] = ARRAY
    with open(path, "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file"[: size or 0])
    got, info, _ = load_all(probe, tmp_path, str(path))
    assert info["format"] == "hdf5"
    check_equal(got, ARRAY)
    # a dtype beside it does not make it raw
    got, info, _ = load_all(probe, tmp_path, path, dtype="f4")
    assert info["format"] == "hdf5"
    check_equal(got, ARRAY)


@pytest.mark.parametrize("kind", ["page", "npz", "tar"])
def test_hdf5_behind_a_block_that_looks_foreign(probe, tmp_path, kind):
    make, _, _ = KINDS[kind]
    path = tmp_path / "x.h5"
    with h5py.File(path, "w", userblock_size=1 << 16) as file:
        file["x"] = ARRAY
    with open(path, "r+b") as file:
        file.write(make())
    got, info, _ = load_all(probe, tmp_path, path)
    assert info["format"] == "hdf5"
    check_equal(got, ARRAY)


def test_looking_for_hdf5_costs_a_few_reads_of_one_file(probe, tmp_path):
    """Raw files of a dtype: one file is looked into, the others are not."""
    for i in range(20):
        (tmp_path / ("x%02d.bin" % i)).write_bytes(bytes(1 << 20))
    _, info, report = load_all(probe, tmp_path, tmp_path / "x*.bin", dtype="u1")
    assert info["shape"] == [20 << 20]
    assert report["reads"] <= 20 * 2 + 20
