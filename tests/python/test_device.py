# Memory of GPUs through a driver that stands in for CUDA's
# (tests/support/fake_cuda.c): numpy judges.
# SPDX-License-Identifier: Apache-2.0
import ctypes
import itertools
import os
import pathlib
import subprocess

import numpy as np
import pytest
import tegula
from tegula import _device

STREAM = 7
SOURCE = pathlib.Path(__file__).parents[1] / "support/fake_cuda.c"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("cuda") / "libfake_cuda.so"
    subprocess.run(
        [
            os.environ.get("CC", "cc"),
            "-shared",
            "-fPIC",
            "-Wall",
            "-Werror",
            "-O1",
            "-o",
            path,
            SOURCE,
        ],
        check=True,
    )
    return path


@pytest.fixture
def cuda(library, monkeypatch):
    monkeypatch.setattr(_device, "NAME", str(library))
    monkeypatch.setattr(_device, "_driver", None)
    monkeypatch.setattr(_device, "STAGING", 1000)
    found = ctypes.CDLL(str(library))
    found.fake_bias.restype = ctypes.c_uint64
    ctypes.c_int.in_dll(found, "fake_pinned_buffers").value = 0
    yield found
    ctypes.c_int.in_dll(found, "fake_fail_after").value = -1
    ctypes.c_int.in_dll(found, "fake_pinned_most").value = 1 << 30
    assert found.fake_waiting() == 0  # nothing is under way when a task ends


class Store:
    """As a task on a GPU sees it."""

    def __init__(self, cuda, array):
        said = array.__array_interface__
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": said["typestr"],
            "version": 3,
            "strides": said["strides"],
            "data": (said["data"][0] + cuda.fake_bias(), False),
        }


def tile_of(cuda, array):
    return _device.tile_of(Store(cuda, array), STREAM)


def views():
    """Parts of arrays in any order of axes, with what is around them."""
    for shape in [
        (),
        (1,),
        (7,),
        (300,),
        (3000,),
        (40, 50),
        (9, 8, 7),
        (300, 1, 5),
        (2, 3, 4, 5),
        (5, 0),
    ]:
        for dtype in ("f4", "i1", "c16", "V3"):
            for order in itertools.islice(itertools.permutations(range(len(shape))), 6):
                around = np.zeros([shape[k] + 3 for k in order], dtype)
                inside = around[(*(slice(1, 1 + shape[k]) for k in order), ...)]
                yield around, inside.transpose([order.index(k) for k in range(len(shape))])
                dense = np.zeros([shape[k] for k in order], dtype)
                yield dense, dense.transpose([order.index(k) for k in range(len(shape))])


def values(shape, dtype, seed=5):
    count = int(np.prod(shape, dtype=int)) * np.dtype(dtype).itemsize
    return (
        np.random.default_rng(seed).integers(1, 100, count, dtype="u1").view(dtype).reshape(shape)
    )


def same(a, b):
    return np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


def test_filled_in_pieces_of_any_order(cuda):
    for around, view in views():
        expected, seen = values(view.shape, view.dtype), np.zeros(view.shape, "i4")

        def read(lo, hi, out, expected=expected, seen=seen):
            box = tuple(map(slice, lo, hi))
            assert out.nbytes <= 1000 and out.dtype == expected.dtype
            seen[box] += 1
            out[...] = expected[box]

        _device.fill(tile_of(cuda, view), view.dtype, read)
        assert same(view, expected) and (seen == 1).all()
        view[...] = np.zeros((), view.dtype)
        assert not np.frombuffer(around.tobytes(), "u1").any()  # nothing beside it


def test_drained_in_pieces_of_any_order(cuda):
    for _, view in views():
        expected = values(view.shape, view.dtype)
        view[...] = expected
        found, seen = np.zeros(view.shape, view.dtype), np.zeros(view.shape, "i4")

        def write(lo, hi, part, found=found, seen=seen):
            seen[tuple(map(slice, lo, hi))] += 1
            found[tuple(map(slice, lo, hi))] = part

        _device.drain(tile_of(cuda, view), view.dtype, write)
        assert same(found, expected) and (seen == 1).all()


def test_broadcast_axes_are_copied_once(cuda):
    row = values((50,), "f8")
    view, found = np.broadcast_to(row, (40, 50)), np.zeros((40, 50))
    _device.drain(
        tile_of(cuda, view),
        view.dtype,
        lambda lo, hi, part: found.__setitem__(tuple(map(slice, lo, hi)), part),
    )
    assert np.array_equal(found, view) and ctypes.c_long.in_dll(cuda, "fake_copies").value < 10**6
    tile = tile_of(cuda, view)
    assert tile.nbytes == 40 * 50 * 8 and list(_device.slabs(tile)) == [((0, 0), (40, 50))]


def test_cut_at_chunks_only(cuda):
    array = values((64, 30), "f8")
    tile = tile_of(cuda, array)
    boxes = list(_device.slabs(tile, (10, 7)))
    assert len(boxes) > 5 and all(
        low % n == 0 for lo, _ in boxes for low, n in zip(lo, (10, 7), strict=True)
    )
    assert sum(np.prod(np.subtract(hi, lo)) for lo, hi in boxes) == array.size
    found = np.zeros_like(array)
    _device.drain(
        tile,
        array.dtype,
        lambda lo, hi, part: found.__setitem__(tuple(map(slice, lo, hi)), part),
        (33, 30),
    )
    assert np.array_equal(found, array)  # chunks that no buffer holds


def test_two_buffers_and_no_more(cuda):
    array = np.zeros(10_000, "u1")
    for _ in range(5):
        _device.fill(tile_of(cuda, array), array.dtype, lambda lo, hi, out: out.fill(3))
        _device.drain(tile_of(cuda, array), array.dtype, lambda lo, hi, part: None)
    assert (array == 3).all() and ctypes.c_int.in_dll(cuda, "fake_pinned_buffers").value == 2


def test_without_pinned_memory_it_is_plain_memory(cuda):
    ctypes.c_int.in_dll(cuda, "fake_pinned_most").value = 1
    array = np.zeros(10_000, "u1")
    _device.fill(tile_of(cuda, array), array.dtype, lambda lo, hi, out: out.fill(3))
    assert (array == 3).all()


def test_failures_of_the_driver(cuda):
    array = np.zeros(10_000, "u1")
    for calls in (0, 1, 5):
        ctypes.c_int.in_dll(cuda, "fake_fail_after").value = calls
        for call in (
            lambda: _device.fill(tile_of(cuda, array), array.dtype, lambda lo, hi, out: None),
            lambda: _device.drain(tile_of(cuda, array), array.dtype, lambda lo, hi, out: None),
        ):
            with pytest.raises(
                tegula.DeviceError,
                match=r"cuMemcpy.*Async_v2 failed: CUDA_ERROR_MAP_FAILED \(211\)",
            ):
                call()


def test_failures_of_the_reader(cuda):
    array = np.zeros(10_000, "u1")

    def read(lo, hi, out):
        if lo[0] > 4000:
            raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        _device.fill(tile_of(cuda, array), array.dtype, read)


def test_without_a_driver(monkeypatch, tmp_path):
    monkeypatch.setattr(_device, "_driver", None)
    monkeypatch.setattr(_device, "NAME", str(tmp_path / "libcuda.so.1"))
    with pytest.raises(tegula.DeviceError, match="driver cannot be used"):
        _device.driver()
