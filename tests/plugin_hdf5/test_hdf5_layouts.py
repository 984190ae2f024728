"""Where the bytes of datasets without chunks are.

SPDX-License-Identifier: Apache-2.0
"""

import h5py
import numpy as np
import pytest

from described import Refused, assemble, dump, same, values

rng = np.random.default_rng(3)


def numbers(shape, dtype="f8"):
    return rng.integers(-100, 100, shape).astype(dtype)


@pytest.mark.parametrize("userblock", [0, 512, 2048])
@pytest.mark.parametrize("libver", ["earliest", "v110", "latest"])
def test_contiguous_chunked_and_compact_data_are_found_behind_a_user_block(
    tmp_path, library, userblock, libver
):
    data = numbers((7, 5))
    with h5py.File(tmp_path / "a.h5", "w", userblock_size=userblock, libver=libver) as f:
        f["plain"] = data
        f.create_dataset("chunked", data=data, chunks=(3, 2))
        compact(f, "compact", data)
    for name in ("plain", "chunked", "compact"):
        assert same(values(tmp_path / "a.h5", name, library=library), data)


@pytest.mark.parametrize("sizes", [(2, 2), (4, 4), (8, 4), (4, 8)])
def test_case_24_offsets_of_two_and_four_bytes(tmp_path, library, sizes):
    data = np.arange(64, dtype="i4")
    plist = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    plist.set_sizes(*sizes)
    with h5py.File(
        h5py.h5f.create(str(tmp_path / "a.h5").encode(), h5py.h5f.ACC_TRUNC, plist)
    ) as f:
        f["plain"] = data
        f.create_dataset("chunked", data=data, chunks=(8,))
    for name in ("plain", "chunked"):
        assert same(values(tmp_path / "a.h5", name, library=library), data)


def compact(f, name, data):
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple(data.shape) if data.ndim else h5py.h5s.create(h5py.h5s.SCALAR)
    dataset = h5py.h5d.create(
        f.id, name.encode(), h5py.h5t.py_create(data.dtype, logical=True), space, plist
    )
    dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(data).reshape(data.shape))


@pytest.mark.parametrize("dtype", ["<i2", ">f8", ">c8", "?", "S3", "<u1"])
def test_compact_data_come_through_libhdf5(tmp_path, library, dtype):
    data = (np.arange(12).reshape(3, 4) % 2).astype(dtype)
    with h5py.File(tmp_path / "a.h5", "w") as f:
        compact(f, "x", data)
        compact(f, "scalar", np.array(data[0, 1]))
    out = dump(tmp_path / "a.h5", "x", library=library)
    assert [part["kind"] for part in out["parts"]] == ["reader"]
    assert same(assemble(out), data)
    assert same(values(tmp_path / "a.h5", "scalar", library=library), data[0, 1])


def test_scalars_and_empty_axes(tmp_path, library):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["scalar"] = np.float32(1.5)
        f["empty"] = np.zeros((0, 4))
        f.create_dataset("chunked", (3, 0), chunks=(2, 2), maxshape=(None, None))
        f["null"] = h5py.Empty("f4")
    assert same(values(tmp_path / "a.h5", "scalar", library=library), np.float32(1.5))
    for name, shape in (("empty", [0, 4]), ("chunked", [3, 0])):
        out = dump(tmp_path / "a.h5", name, library=library)
        chunks = [(part["kind"], part["chunk"]) for part in out["parts"]]
        assert out["shape"] == shape and chunks == (
            [("chunked", [2, 2])] if name == "chunked" else []
        )
    with pytest.raises(Refused, match=r"unsupported.*null dataspace"):
        dump(tmp_path / "a.h5", "null", library=library)


@pytest.mark.parametrize("fill", [None, 7.5, np.nan])
def test_case_31_nothing_written_is_the_fill_value(tmp_path, library, fill):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("x", (3, 4), ">f8", fillvalue=fill)
        f.create_dataset("c", (8, 4), ">f8", chunks=(4, 4), fillvalue=fill)[:4] = 1
    out = dump(tmp_path / "a.h5", "x", library=library)
    assert [part["kind"] for part in out["parts"]] == ["fill"]
    assert same(assemble(out), np.full((3, 4), 0.0 if fill is None else fill))
    want = np.full((8, 4), 0.0 if fill is None else fill)
    want[:4] = 1
    assert same(values(tmp_path / "a.h5", "c", library=library), want)


def test_an_undefined_fill_value_is_told_as_none(tmp_path, library):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((2,))
        plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        make_fill_undefined(plist)
        h5py.h5d.create(f.id, b"x", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((4,)), plist)
    out = dump(tmp_path / "a.h5", "x", library=library)
    assert out["fill"] is None and out["grids"][0]["fill"] is None


def make_fill_undefined(plist):
    """H5Pset_fill_value(plist, -1, NULL), which h5py has not."""
    import ctypes

    import described

    loaded = [line.split()[-1] for line in open("/proc/self/maps") if "libhdf5-" in line]
    if not loaded:
        pytest.skip("h5py's libhdf5 is not found by its name: " + str(described.wheel_libraries()))
    function = ctypes.CDLL(loaded[0]).H5Pset_fill_value
    function.argtypes = [ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    assert function(plist.id, -1, None) >= 0


def test_a_file_that_was_cut_is_an_error(tmp_path, library):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["x"] = np.arange(1000.0)
    content = (tmp_path / "a.h5").read_bytes()
    (tmp_path / "a.h5").write_bytes(content[:-100])
    with pytest.raises(Refused) as refused:
        dump(tmp_path / "a.h5", "x", library=library)
    assert refused.value.status == "short_file" and "truncated" in refused.value.message


def test_what_is_no_hdf5_file_is_said_to_be_none(tmp_path, library):
    for content in (b"", b"\x89HDF\r\n\x1a\n", b"x" * 5000):
        (tmp_path / "a.h5").write_bytes(content)
        with pytest.raises(Refused, match="corrupt"):
            dump(tmp_path / "a.h5", library=library)


# ---- external files ----


def external(path, name, dtype, shape, segments):
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    for file, offset, size in segments:
        plist.set_external(str(file).encode(), offset, size)
    with h5py.File(path, "a") as f:
        h5py.h5d.create(
            f.id,
            name.encode(),
            h5py.h5t.py_create(np.dtype(dtype)),
            h5py.h5s.create_simple(shape),
            plist,
        )


def test_case_28_external_files_count_from_the_folder_of_the_file(tmp_path, library):
    data = numbers((6, 7), ">i4")
    stored = data.tobytes()
    (tmp_path / "one.bin").write_bytes(b"junk" + stored[:52])
    (tmp_path / "two.bin").write_bytes(stored[52:])
    external(
        tmp_path / "a.h5",
        "x",
        ">i4",
        (6, 7),
        [("one.bin", 4, 52), ("two.bin", 0, h5py.h5f.UNLIMITED)],
    )
    (tmp_path / "elsewhere").mkdir()
    # a decoy in the working directory
    (tmp_path / "elsewhere" / "one.bin").write_bytes(b"z" * 1000)
    assert same(values(tmp_path / "a.h5", "x", library=library, cwd=tmp_path / "elsewhere"), data)


@pytest.mark.parametrize("cut", [0, 8, 24, 60, 64, 100, 184, 192])
def test_external_files_may_end_anywhere_between_elements(tmp_path, library, cut):
    data = np.arange(24, dtype="f8").reshape(2, 3, 4)
    (tmp_path / "one.bin").write_bytes(data.tobytes()[:cut])
    (tmp_path / "two.bin").write_bytes(data.tobytes()[cut:])
    segments = [("one.bin", 0, cut), ("two.bin", 0, 192 - cut)]
    external(tmp_path / "a.h5", "x", "f8", (2, 3, 4), [s for s in segments if s[2]])
    if cut % 8:
        with pytest.raises(Refused, match=r"unsupported.*ends within an element"):
            dump(tmp_path / "a.h5", "x", library=library)
    else:
        assert same(values(tmp_path / "a.h5", "x", library=library), data)


def test_external_files_that_are_absent_or_short_are_lost(tmp_path, library):
    data = np.arange(10, dtype="i4")
    (tmp_path / "one.bin").write_bytes(data[:4].tobytes())
    external(tmp_path / "a.h5", "x", "i4", (10,), [("one.bin", 0, 24), ("two.bin", 0, 16)])
    out = dump(tmp_path / "a.h5", "x", library=library)
    lost = {tuple(p["lo"] + p["hi"]): p["status"] for p in out["parts"] if p["kind"] == "lost"}
    assert lost == {(4, 6): "short_file", (6, 10): "not_found"}
    assert same(assemble(out, lost=-1), np.r_[data[:4], np.full(6, -1, "i4")])


# ---- files in use ----


def set_flags(path, flags):
    content = bytearray(path.read_bytes())
    assert content[8] == 3
    content[11] = flags
    path.write_bytes(content)


def test_a_file_marked_as_being_written_is_refused(tmp_path, library):
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as f:
        f["x"] = np.arange(4)
    set_flags(tmp_path / "a.h5", 1)
    with pytest.raises(Refused) as refused:
        dump(tmp_path / "a.h5", library=library)
    assert (
        refused.value.status == "unsupported"
        and "open for writing" in refused.value.message
        and "h5clear -s" in refused.value.hint
    )


def test_a_file_that_a_swmr_writer_has_open_is_read(tmp_path, library):
    with h5py.File(tmp_path / "a.h5", "w", libver="v110") as f:
        x = f.create_dataset("x", data=np.arange(100.0), chunks=(7,), maxshape=(None,))
        f.swmr_mode = True
        x[:50] = 1
        x.flush()
        assert (tmp_path / "a.h5").read_bytes()[11] & 4
        assert same(values(tmp_path / "a.h5", "x", library=library), x[()])
