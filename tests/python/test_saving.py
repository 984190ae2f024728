# Saves piece by piece, as tasks of a runtime write them: tegula._core.Saving.
#
# SPDX-License-Identifier: Apache-2.0
import os
import threading

import numpy
import pytest
import tegula
from tegula import _core
from tegula._context import context
from tegula._memory import address, tiling

ARRAY = numpy.arange(60, dtype="f4").reshape(10, 6)


def begin(path, format="npy", layout=None, chunks=None, codec=None, overwrite=False):
    target = (format, None, 0, "C", "", overwrite, False, False)
    return _core.save_begin(
        context(1),
        "<f4",
        tiling(ARRAY.shape, (4, 6)),
        os.fsencode(path),
        target,
        (None, layout, chunks, codec, None, []),
    )


def piece(low, high):
    part = ARRAY[low:high]
    return address(part), (low, 0), (high, 6), part.strides


def test_tiles_and_commit(tmp_path):
    saving = begin(tmp_path / "x.npy")
    for low, high in ((4, 8), (8, 10), (0, 4)):
        saving.tile(*piece(low, high))
    assert not (tmp_path / "x.npy").exists()
    saving.commit()
    assert numpy.array_equal(numpy.load(tmp_path / "x.npy"), ARRAY)
    for call in (saving.commit, saving.to_json, lambda: saving.tile(*piece(0, 4))):
        with pytest.raises(ValueError, match="has ended"):
            call()
    saving.abandon()  # nothing to take back


def test_a_save_does_not_end_under_a_tile_that_is_being_written(tmp_path):
    """The call of another thread works with the save:
    freeing it there would be the end of the process."""
    big = numpy.random.default_rng(0).integers(0, 200, 16 << 20, "u1")
    for number in range(5):  # a machine that stands still may let the tile end first
        target = ("hdf5", None, 0, "C", "", False, False, False)
        dataset = (None, "chunked", (1 << 20,), "deflate:6", None, [])
        saving = _core.save_begin(
            context(2),
            "|u1",
            tiling(big.shape, big.shape),
            os.fsencode(tmp_path / f"{number}.h5"),
            target,
            dataset,
        )
        thread = threading.Thread(
            target=saving.tile, args=(address(big), (0,), big.shape, big.strides)
        )
        thread.start()
        refused = 0
        while thread.is_alive() and refused < 2:
            for end in (saving.commit, saving.abandon):
                try:
                    end()
                except ValueError as error:
                    refused += "still being written" in str(error)
                except tegula.Error:
                    break  # it ended before the tile began
        thread.join()
        if refused == 2:
            saving.commit()
            assert numpy.array_equal(tegula.open(tmp_path / f"{number}.h5")[()], big)
            return
    raise AssertionError("no end has met a tile")


@pytest.mark.parametrize(
    "options", [{}, {"format": "hdf5"}, {"format": "hdf5", "layout": "virtual"}]
)
def test_tiles_by_the_text(tmp_path, options):
    saving = begin(tmp_path / "x", **options)
    text = saving.to_json()
    for low, high in ((0, 4), (4, 8), (8, 10)):
        _core.save_tile_from(context(2), text, "<f4", *piece(low, high))
    saving.commit()
    assert numpy.array_equal(tegula.open(tmp_path / "x")[()], ARRAY)


def test_chunked_has_no_text(tmp_path):
    saving = begin(tmp_path / "x", "hdf5", "chunked", (2, 6), "shuffle,deflate:1")
    with pytest.raises(tegula.UnsupportedError):
        saving.to_json()
    for low, high in ((0, 4), (4, 8), (8, 10)):
        saving.tile(*piece(low, high))
    saving.commit()
    assert numpy.array_equal(tegula.open(tmp_path / "x")[()], ARRAY)


def test_nothing_is_left_of_what_was_taken_back(tmp_path):
    saving = begin(tmp_path / "x.npy")
    saving.tile(*piece(0, 4))
    saving.abandon()
    saving = begin(tmp_path / "x.npy")
    del saving  # forgotten: the same
    assert os.listdir(tmp_path) == []
    numpy.save(tmp_path / "x.npy", ARRAY)
    with pytest.raises(FileExistsError):
        begin(tmp_path / "x.npy")


def test_wrong_arguments(tmp_path):
    saving = begin(tmp_path / "x.npy")
    for wrong, kind in (
        ((0, (0, 0), (4, 6), (24, 4)), ValueError),  # no memory
        ((address(ARRAY), (0, 0), (11, 6), (24, 4)), ValueError),  # out of the array
        ((address(ARRAY), (0,), (4, 6), (24, 4)), ValueError),
        ((address(ARRAY), (0, 0), (4, 6)), TypeError),
        (("x", (0, 0), (4, 6), (24, 4)), TypeError),
    ):
        with pytest.raises(kind):
            saving.tile(*wrong)
    with pytest.raises(tegula.CorruptError):
        _core.save_tile_from(context(1), "{}", "<f4", *piece(0, 4))
    saving.abandon()
    assert os.listdir(tmp_path) == []
