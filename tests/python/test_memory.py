# Memory is shared, never copied in secret: numpy, the buffer protocol, DLPack, out=.
#
# SPDX-License-Identifier: Apache-2.0
import array as arrays
import ctypes
import gc
import mmap

import ml_dtypes
import numpy
import pytest
import tegula


@pytest.fixture
def loaded(shards):
    folder, array = shards
    return tegula.load(folder, tiles=3), array


def test_numpy_shares_the_memory(loaded):
    a, _array = loaded
    view = numpy.asarray(a)
    assert view.ctypes.data == a.local.ctypes.data
    view[5, 5] = -1
    assert a.local[5, 5] == a[5, 5] == -1
    copy = numpy.array(a)
    assert not numpy.shares_memory(copy, view)
    assert numpy.asarray(a, dtype="f8").dtype == "f8"
    assert (len(a), a.ndim, a.size, a.nbytes) == (1000, 2, 7000, 28000)


def test_a_view_keeps_the_memory(loaded):
    a, array = loaded
    view, tile, buffer = numpy.asarray(a)[10:20], a.tiles[1][1], memoryview(a)
    del a
    gc.collect()
    numpy.testing.assert_array_equal(view, array[10:20])
    numpy.testing.assert_array_equal(tile, array[334:668])
    numpy.testing.assert_array_equal(numpy.asarray(buffer), array)


def test_the_interfaces_say_where(loaded):
    a, _ = loaded
    interface = a.__array_interface__
    assert (interface["version"], interface["shape"], interface["typestr"]) == (3, (1000, 7), "<f4")
    assert interface["data"] == (a.local.ctypes.data, False)
    buffer = memoryview(a)
    assert (buffer.format, buffer.shape, buffer.strides, buffer.readonly) == (
        "f",
        (1000, 7),
        (28, 4),
        False,
    )


@pytest.mark.parametrize("dtype", ["V3", "V2", "bfloat16"])
def test_opaque_items_keep_their_dtype(tmp_path, dtype):
    stored = (
        numpy.arange(12, dtype="u1").reshape(2, 2, 3).view("V3")[..., 0]
        if dtype == "V3"
        else numpy.arange(4, dtype="u2").view("V2")
    )
    numpy.save(tmp_path / "x.npy", stored)
    a = tegula.load(tmp_path / "x.npy", dtype=dtype)
    assert numpy.asarray(a).dtype == (ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    assert numpy.shares_memory(numpy.asarray(a), a.local)
    with pytest.raises(BufferError):
        memoryview(a)


# ---- DLPack, read as the specification says it ----


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Legacy(ctypes.Structure):
    pass


class Versioned(ctypes.Structure):
    pass


LEGACY_DELETER, VERSIONED_DELETER = (
    ctypes.CFUNCTYPE(None, ctypes.POINTER(kind)) for kind in (Legacy, Versioned)
)
Legacy._fields_ = [("tensor", Tensor), ("manager", ctypes.c_void_p), ("deleter", LEGACY_DELETER)]
Versioned._fields_ = [
    ("major", ctypes.c_uint32),
    ("minor", ctypes.c_uint32),
    ("manager", ctypes.c_void_p),
    ("deleter", VERSIONED_DELETER),
    ("flags", ctypes.c_uint64),
    ("tensor", Tensor),
]
get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
set_name = ctypes.pythonapi.PyCapsule_SetName
set_name.argtypes = [ctypes.py_object, ctypes.c_char_p]


def contents(capsule, name, kind):
    return kind.from_address(get_pointer(capsule, name))


def test_dlpack_legacy(loaded):
    a, _ = loaded
    capsule = a.__dlpack__()
    tensor = contents(capsule, b"dltensor", Legacy).tensor
    assert (tensor.data, list(tensor.device), tensor.ndim, tensor.byte_offset) == (
        a.local.ctypes.data,
        [1, 0],
        2,
        0,
    )
    assert (tensor.code, tensor.bits, tensor.lanes) == (2, 32, 1)
    assert (tensor.shape[:2], tensor.strides[:2]) == ([1000, 7], [7, 1])
    assert a.__dlpack_device__() == (1, 0)


@pytest.mark.parametrize(("copy", "flags"), [(None, 0), (False, 0), (True, 2)])
def test_dlpack_versioned(loaded, copy, flags):
    a, _array = loaded
    capsule = a.__dlpack__(max_version=(1, 3), dl_device=(1, 0), copy=copy)
    managed = contents(capsule, b"dltensor_versioned", Versioned)
    assert (managed.major, managed.minor, managed.flags) == (1, 0, flags)
    assert (managed.tensor.data == a.local.ctypes.data) is not bool(copy)
    assert managed.tensor.shape[:2] == [1000, 7]


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("?", (6, 8)),
        ("i1", (0, 8)),
        ("u8", (1, 64)),
        ("f2", (2, 16)),
        ("c16", (5, 128)),
        ("bfloat16", (4, 16)),
    ],
)
def test_dlpack_dtypes(tmp_path, dtype, expected):
    numpy.save(
        tmp_path / "x.npy",
        numpy.zeros((2, 3), ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype),
    )
    capsule = tegula.load(tmp_path / "x.npy", dtype=dtype).__dlpack__(max_version=(1, 0))
    tensor = contents(capsule, b"dltensor_versioned", Versioned).tensor
    assert (tensor.code, tensor.bits) == expected


def test_dlpack_edges(tmp_path):
    numpy.save(tmp_path / "s.npy", numpy.float32(1))
    numpy.save(tmp_path / "e.npy", numpy.empty((0, 3)))
    numpy.save(tmp_path / "d.npy", numpy.zeros(3, "M8[s]"))
    capsules = [tegula.load(tmp_path / name).__dlpack__() for name in ("s.npy", "e.npy")]
    scalar, empty = (contents(capsule, b"dltensor", Legacy).tensor for capsule in capsules)
    assert scalar.ndim == 0 and not scalar.shape and not scalar.strides and scalar.data
    assert empty.data is None and empty.shape[:2] == [0, 3]
    with pytest.raises(BufferError, match="datetime64"):
        tegula.load(tmp_path / "d.npy").__dlpack__()
    a = tegula.load(tmp_path / "s.npy")
    for wrong in ({"stream": 1}, {"dl_device": (2, 0)}):
        with pytest.raises(BufferError):
            a.__dlpack__(**wrong)
    fields = numpy.zeros(4, [("a", "i2"), ("b", "i4")])
    odd = tegula.load(tegula.from_reader(lambda box, out: out.fill(3), (4,), "i4"), out=fields["b"])
    with pytest.raises(BufferError, match="strides"):
        odd.__dlpack__()


@pytest.mark.parametrize("max_version", [None, (1, 0)])
@pytest.mark.parametrize("taken", [False, True])
def test_dlpack_gives_the_memory_back(tmp_path, max_version, taken):
    """An untaken capsule frees itself; a taken one is freed by its consumer, once."""
    out = numpy.zeros(8)
    numpy.save(tmp_path / "x.npy", numpy.arange(8.0))
    a = tegula.load(tmp_path / "x.npy", out=out)
    import sys

    before = sys.getrefcount(out)
    capsule = a.__dlpack__(max_version=max_version)
    assert sys.getrefcount(out) == before + 1
    name, kind = (
        (b"dltensor", Legacy) if max_version is None else (b"dltensor_versioned", Versioned)
    )
    if taken:
        managed = contents(capsule, name, kind)
        used = ctypes.create_string_buffer(b"used_" + name)
        set_name(capsule, used)
        del capsule
        assert sys.getrefcount(out) == before + 1
        managed.deleter(ctypes.pointer(managed))
    else:
        del capsule
    assert sys.getrefcount(out) == before


def test_dlpack_of_read_only_memory(loaded):
    """Versions before 1.0 cannot say it."""
    a, _ = loaded
    a.local.flags.writeable = False
    assert contents(a.__dlpack__(max_version=(1, 0)), b"dltensor_versioned", Versioned).flags == 1
    for before in (None, (0, 8)):
        with pytest.raises(BufferError, match="read-only"):
            a.__dlpack__(max_version=before)
    assert contents(a.__dlpack__(copy=True), b"dltensor", Legacy).tensor.data != a.local.ctypes.data
    assert not numpy.from_dlpack(a).flags.writeable and memoryview(a).readonly


def test_numpy_takes_dlpack(loaded):
    a, array = loaded
    taken = numpy.from_dlpack(a)
    assert numpy.shares_memory(taken, a.local)
    del a
    gc.collect()
    numpy.testing.assert_array_equal(taken, array)


# ---- out= ----


def layouts(shape):
    yield "C", numpy.empty(shape, "f4")
    yield "F", numpy.empty(shape, "f4", order="F")
    yield "reversed", numpy.empty(shape, "f4")[::-1, ::-1]
    yield "strided", numpy.empty((shape[0] * 3, shape[1] * 2), "f4")[::3, 1::2]
    yield "field", numpy.empty(shape, [("x", "u1"), ("v", "f4")])["v"]
    yield "unaligned", numpy.empty(shape[0] * shape[1] * 4 + 1, "u1")[1:].view("f4").reshape(shape)


@pytest.mark.parametrize("tiles", [1, 4])
def test_out_of_any_strides(shards, tiles):
    folder, array = shards
    for name, out in layouts(array.shape):
        a = tegula.load(folder, out=out, tiles=tiles)
        numpy.testing.assert_array_equal(out, array, err_msg=name)
        assert a.local is out
        out[...] = 0
        assert tegula.open(folder).read(out=out) is out
        numpy.testing.assert_array_equal(out, array, err_msg=name)


def test_out_of_other_kinds_of_memory(tmp_path):
    numpy.save(tmp_path / "x.npy", numpy.arange(64, dtype="u1"))
    for out in (
        bytearray(64),
        arrays.array("B", bytes(64)),
        mmap.mmap(-1, 64),
        (ctypes.c_uint8 * 64)(),
        memoryview(bytearray(64)),
    ):
        tegula.load(tmp_path / "x.npy", out=out)
        assert bytes(out) == bytes(range(64)), type(out)

    class Foreign:
        """Shows DLPack only."""

        memory = numpy.zeros(64, "u1")

        def __dlpack__(self, **arguments):
            return self.memory.__dlpack__(**arguments)

        def __dlpack_device__(self):
            return (1, 0)

    tegula.load(tmp_path / "x.npy", out=Foreign())
    assert Foreign.memory.tobytes() == bytes(range(64))
    Foreign.__dlpack_device__ = lambda self: (2, 0)
    with pytest.raises(TypeError, match="device"):
        tegula.load(tmp_path / "x.npy", out=Foreign())


@pytest.mark.parametrize(
    ("out", "error", "says"),
    [
        (numpy.zeros((1000, 7)), ValueError, "dtype float32"),
        (numpy.zeros((1000, 7), ">f4"), ValueError, "dtype float32"),
        (numpy.zeros((1000, 8), "f4"), ValueError, r"shape \(1000, 7\)"),
        (numpy.zeros(7000, "f4"), ValueError, r"shape \(1000, 7\)"),
        (numpy.broadcast_to(numpy.float32(0), (1000, 7)), ValueError, "read-only"),
        (bytes(28000), ValueError, "read-only"),
        ([0] * 7, TypeError, "list"),
        (numpy.ma.masked_all((1000, 7), "f4"), TypeError, "masked"),
        (
            numpy.lib.stride_tricks.as_strided(numpy.zeros(7, "f4"), (1000, 7), (0, 4)),
            ValueError,
            None,
        ),
    ],
)
def test_what_out_cannot_be(shards, out, error, says):
    with pytest.raises(error, match=says):
        tegula.load(shards[0], out=out)
    with pytest.raises(error, match=says):
        tegula.open(shards[0]).read(out=out)


def test_memory_stays_level(run_python, shards):
    """1,000 loads, and reads, saves and failures between them, leave what 100 left."""
    program = """
import os, sys, gc, numpy, tegula
folder, target = sys.argv[1:]
def once(i):
    a = tegula.load(folder, tiles=3)
    if i % 5: return
    numpy.from_dlpack(a); memoryview(a); a.__dlpack__(); a.hash()
    ds = tegula.open(folder)
    ds[5:900:3]; ds.files; ds.explain(2)
    tegula.load(ds, out=numpy.empty(ds.shape, ds.dtype), progress=lambda done, total: None)
    tegula.from_reader(lambda box, out: out.fill(1), (50,), "f8")[:]
    broken = tegula.from_reader(lambda box, out: 1 / 0, (5,), "f8")
    for wrong in (lambda: tegula.open(folder + "/none"), lambda: broken[:]):
        try: wrong()
        except tegula.Error: pass
    tegula.save(a, target, overwrite=True, block=False); tegula.fence()
def resident():
    gc.collect()
    with open("/proc/self/statm") as file: pages = int(file.read().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
for i in range(100): once(i)
before = resident()
for i in range(900): once(i)
print(resident() - before)
"""
    assert (
        int(
            run_python(
                program,
                shards[0],
                shards[0].parent / "out.npy",
                TEGULA_THREADS="2",
                MALLOC_ARENA_MAX="2",
            )
        )
        <= 1 << 20
    )


class Framed(numpy.ndarray):
    """What it shows is not how its memory is."""

    shape, strides, dtype = (1000000,), (1 << 30,), numpy.dtype("f8")


def test_subclasses_that_say_something_else_of_their_memory(tmp_path):
    values = numpy.arange(5, dtype="f4")
    tegula.save(values.view(Framed), tmp_path / "x.npy")
    numpy.testing.assert_array_equal(numpy.load(tmp_path / "x.npy"), values)
    target = numpy.zeros(5, "f4")
    framed = target.view(Framed)
    assert tegula.open(tmp_path / "x.npy").read(out=framed) is framed
    numpy.testing.assert_array_equal(target, values)
    target[:] = 0
    assert tegula.load(tmp_path / "x.npy", out=framed).shape == (5,)
    numpy.testing.assert_array_equal(target, values)
