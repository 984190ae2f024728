# What tasks do on a GPU: called with stores and a driver that stand in for it
# (tests/support/fake_cuda.c), because there is none here.
#
# SPDX-License-Identifier: Apache-2.0
import ctypes
import os
import pathlib
import pickle
import subprocess
import types

import h5py
import numpy
import tegula
from legate.core import StoreTarget, VariantCode
from tegula import _core, _device
from tegula._context import context
from tegula._memory import tiling
from tegula.legate import _held, _load, _tasks

STREAM = 7
BIAS = 1 << 60  # the device's addresses are no addresses


class Driver:
    def __init__(self, folder):
        source = pathlib.Path(__file__).parents[1] / "support/fake_cuda.c"
        self.path = folder / "libfake_cuda.so"
        subprocess.run(
            [os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", self.path, source], check=True
        )

    def __enter__(self):
        self.before = _device.NAME, _device.STAGING, _device._driver
        _device.NAME, _device.STAGING, _device._driver = str(self.path), 700, None
        self.library = ctypes.CDLL(self.path)
        return self

    def __exit__(self, *_):
        assert self.library.fake_waiting() == 0
        _device.NAME, _device.STAGING, _device._driver = self.before

    def copies(self):
        return ctypes.c_long.in_dll(self.library, "fake_copies").value


class Store:
    """A part of an array in the memory of a GPU, as the task whose tile it is sees it."""

    target = StoreTarget.FBMEM

    def __init__(self, array, lo):
        said = array.__array_interface__
        self.domain = types.SimpleNamespace(
            lo=lo, hi=tuple(low + n - 1 for low, n in zip(lo, array.shape, strict=True))
        )
        self.shape, self.held = array.shape, array
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": said["typestr"],
            "version": 3,
            "strides": said["strides"],
            "data": (said["data"][0] + BIAS, False),
        }

    def __array__(self, *_, **__):
        raise AssertionError("memory of a GPU was touched by the host")


class Task:
    task_stream = STREAM

    def __init__(self, *index):
        self.task_index = index

    def get_variant_kind(self):
        return VariantCode.GPU


def check_variants(files, scratch):
    assert VariantCode.GPU not in _tasks.VARIANTS_OF_TILES  # there are none here
    assert VariantCode.GPU in _tasks.variants_of_tiles(2) and set(
        _tasks.variants_of_tiles(2)
    ) > set(_tasks.variants_of_tiles(0))
    for task in (
        _tasks.read_tile,
        _tasks.read_tile_of_run,
        _tasks.write_tile,
        _tasks.begin,
        _tasks.publish,
    ):
        assert task.library is not None
    assert 1 <= _tasks.threads_of(Task(0)) <= 8


def check_tiles_are_read(files, scratch):
    expected, tile = numpy.load(files / "rows.npy"), (60, 4)
    with Driver(scratch) as driver:
        for name, dataset in (("uneven", None), ("fortran", None), ("plain.h5", "gzip")):
            with _load.Source(tegula.open(files / name, dataset)) as source:
                memory = numpy.zeros((200, 7), "f4")
                for index in numpy.ndindex(4, 2):
                    lo = tuple(i * n for i, n in zip(index, tile, strict=True))
                    box = tuple(slice(low, low + n) for low, n in zip(lo, tile, strict=True))
                    place = pickle.dumps(((0, 0), (200, 7), tile))
                    assert (
                        _tasks._read(
                            Task(*index), Store(memory[box], lo), source.key, source.text, place, 0
                        )
                        is None
                    )
                    assert (
                        numpy.array_equal(memory[box], expected[box])
                        and numpy.count_nonzero(memory) <= (index[0] + 1) * 60 * 7
                    )
                assert numpy.array_equal(memory, expected)
        assert driver.copies() > 24  # each tile in pieces


def check_mapped_memory_may_be_more_than_the_tile(files, scratch):
    expected, memory = numpy.load(files / "rows.npy"), numpy.zeros((100, 7), "f4")
    with Driver(scratch), _load.Source(tegula.open(files / "uneven")) as source:
        place = pickle.dumps(((10, 0), (190, 7), (40, 7)))  # from row 10 on
        assert (
            _tasks._read(Task(1, 0), Store(memory, (30, 0)), source.key, source.text, place, 0)
            is None
        )
    assert (
        numpy.array_equal(memory[10:50], expected[50:90])
        and not memory[:10].any()
        and not memory[50:].any()
    )


def check_failures_of_reads(files, scratch):
    with Driver(scratch) as driver, _load.Source(tegula.open(files / "damaged.h5")) as source:
        place, memory = pickle.dumps(((0, 0), (200, 7), (200, 7))), numpy.zeros((200, 7), "f4")
        error = _tasks._read(Task(0, 0), Store(memory, (0, 0)), source.key, source.text, place, 0)
        assert isinstance(error, tegula.CorruptError) and "damaged.h5" in str(error)
        ctypes.c_int.in_dll(driver.library, "fake_fail_after").value = 0
        error = _tasks._read(Task(0, 0), Store(memory, (0, 0)), source.key, source.text, place, 0)
        assert isinstance(error, tegula.DeviceError) and "CUDA_ERROR_MAP_FAILED" in str(error)


def saved(path, array, tile, chunks=None, fail=False):
    """What begin, the tasks of the tiles and publish do, the tiles in the memory of a GPU."""
    target = None, None, 0, "C", "", False, False, False
    described = (
        None,
        "chunked" if chunks else None,
        chunks,
        "deflate:1" if chunks else None,
        None,
        [],
    )
    saving = _core.save_begin(
        context(), array.dtype.str, tiling(array.shape, tile), os.fsencode(path), target, described
    )
    number = next(_tasks.numbers)
    _tasks.savings[number] = saving, os.fsencode(path)
    written, place = 0, pickle.dumps((array.dtype.str, array.ndim, array.shape, tile, chunks))
    for index in numpy.ndindex(*(-(-n // t) for n, t in zip(array.shape, tile, strict=True))):
        lo = tuple(i * n for i, n in zip(index, tile, strict=True))
        token, status = numpy.zeros(_tasks.RECORD, "u1"), numpy.zeros(_tasks.RECORD, "u1")
        if fail:
            _tasks.write_record(token, payload=b"why", failed=True)
        part = array[tuple(slice(low, low + n) for low, n in zip(lo, tile, strict=True))]
        _tasks._write_from_gpu(
            Task(*index), Store(part, lo), Store(token, (0,)), Store(status, (0,)), number, place
        )
        failed, value, _ = _tasks.read_record(status)
        assert not failed
        written += value
    _tasks.savings.pop(number)
    saving.abandon() if fail else saving.commit()
    return written


def check_tiles_are_written(files, scratch):
    array = numpy.random.default_rng(4).random((130, 21))
    with Driver(scratch):
        assert saved(scratch / "x.npy", array, (40, 10)) == array.nbytes
        assert numpy.array_equal(numpy.load(scratch / "x.npy"), array)
        # a view in another order of axes
        assert saved(scratch / "t.npy", array.T, (21, 50)) == array.nbytes
        assert numpy.array_equal(numpy.load(scratch / "t.npy"), array.T)
        assert saved(scratch / "x.h5", array, (80, 14), chunks=(20, 7)) == array.nbytes
        with h5py.File(scratch / "x.h5") as file:
            assert file["data"].chunks == (20, 7) and numpy.array_equal(file["data"][()], array)
        # begin failed: nothing is done
        assert saved(scratch / "y.npy", array, (40, 10), fail=True) == 0
        assert not (scratch / "y.npy").exists()


def check_parts_of_a_strict_scope(files, scratch):
    array = numpy.random.default_rng(4).random((130, 21))
    with Driver(scratch):
        memory, held = numpy.zeros_like(array), _held.Held(next(_tasks.numbers), array.size, array)
        _tasks.runs[held.number] = held
        for lo, hi in (((0, 0), (90, 10)), ((0, 10), (90, 21)), ((90, 0), (130, 21))):
            part = tuple(map(slice, lo, hi))
            assert not held.ended.is_set()
            _held._put_part(Task(0), Store(memory[part], lo), held.number)
        assert numpy.array_equal(memory, array) and held.ended.is_set() and held.memory is None
        target = None, None, 0, "C", "", False, False, False
        described = None, None, None, None, None, []
        path = os.fsencode(scratch / "x.npy")
        begun = _core.save_begin(
            context(), array.dtype.str, tiling(array.shape, array.shape), path, target, described
        )
        held = _held.Held(next(_tasks.numbers), array.size, saving=(begun, path))
        _tasks.runs[held.number] = held
        for lo, hi in (((0, 0), (90, 10)), ((0, 10), (90, 21)), ((90, 0), (130, 21))):
            assert not (scratch / "x.npy").exists()
            _held._write_part(Task(0), Store(array[tuple(map(slice, lo, hi))], lo), held.number, 0)
        assert held.first() is None and numpy.array_equal(numpy.load(scratch / "x.npy"), array)


def check_failures_of_writes(files, scratch):
    array, status = numpy.zeros((30, 21)), numpy.zeros(_tasks.RECORD, "u1")
    with Driver(scratch):
        place = pickle.dumps(("f8", 2, array.shape, array.shape, None))
        token = Store(numpy.zeros(_tasks.RECORD, "u1"), (0,))
        _tasks._write_from_gpu(
            Task(0, 0), Store(array, (0, 0)), token, Store(status, (0,)), -1, place
        )
    failed, _, payload = _tasks.read_record(status)
    assert failed and "only the process that began" in str(pickle.loads(payload)), payload
