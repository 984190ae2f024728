# tegula.legate.save; numpy and h5py judge. SPDX-License-Identifier: Apache-2.0
import concurrent.futures
import os
import time

import cupynumeric
import h5py
import numpy
import tegula
import tegula.legate
from legate.core import get_legate_runtime
from tegula.legate import _save, _tasks, fence, load, save

ROWS = numpy.random.default_rng(8).random((300, 11)).astype("f4")


def rows():
    return cupynumeric.array(ROWS)  # its own memory


def failing(call, kind=tegula.Error):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError("no error")


def check_npy_and_raw(files, scratch):
    for tiles in (None, 1, 7, 1000):
        save(rows(), scratch / "x.npy", tiles=tiles, overwrite=True)
        assert numpy.array_equal(numpy.load(scratch / "x.npy"), ROWS)
    save(rows(), scratch / "x.npy", tile_shape=(70, 4), overwrite=True, order="F", byte_order=">")
    found = numpy.load(scratch / "x.npy")
    assert found.flags.f_contiguous and found.dtype == ">f4" and numpy.array_equal(found, ROWS)
    save(rows(), scratch / "x.bin", format="raw", axis=1, tiles=5)
    assert numpy.array_equal(numpy.fromfile(scratch / "x.bin", "f4").reshape(ROWS.shape), ROWS)


def check_shards(files, scratch):
    save(rows(), scratch / "x", shards=4, tiles=3)
    parts = [numpy.load(scratch / "x" / name) for name in sorted(os.listdir(scratch / "x"))]
    assert len(parts) == 4 and numpy.array_equal(numpy.concatenate(parts), ROWS)


def check_views(files, scratch):
    x = rows()
    for number, (view, expected) in enumerate(
        [
            (x[5:250, 2:9], ROWS[5:250, 2:9]),
            (x.T, ROWS.T),
            (x[7], ROWS[7]),
            (x[:, 3], ROWS[:, 3]),
            (cupynumeric.broadcast_to(x[3], (40, 11)), numpy.broadcast_to(ROWS[3], (40, 11))),
        ]
    ):
        for tiling in ({"tiles": 1}, {"tiles": 4}, {"tile_shape": (9, 4)[-expected.ndim :]}):
            save(view, scratch / f"{number}.npy", overwrite=True, **tiling)
            assert numpy.array_equal(numpy.load(scratch / f"{number}.npy"), expected), number


def check_broadcast_from_no_axes(files, scratch):
    """Legate cannot cut those."""
    view = cupynumeric.broadcast_to(cupynumeric.array(3, "i2"), (40, 11))
    for tiling in ({}, {"tiles": 3}, {"tile_shape": (9, 4)}):
        save(view, scratch / "x.npy", overwrite=True, **tiling)
        found = numpy.load(scratch / "x.npy")
        assert found.shape == (40, 11) and found.dtype == "i2" and (found == 3).all()


def check_chunked(files, scratch):
    for number, options in enumerate(
        [
            {"codec": "shuffle,deflate:4"},
            {"chunks": (37, 4)},
            {"chunks": (37, 4), "codec": "zstd:3", "tiles": 9},
            {"layout": "chunked"},
        ]
    ):
        path = scratch / f"{number}.h5"
        save(rows(), path, "g/x", attrs={"unit": "m"}, fill=-1, **options)
        assert numpy.array_equal(tegula.open(path, "g/x").read(), ROWS)
        with h5py.File(path) as file:
            assert (
                file["g/x"].chunks
                and file["g/x"].attrs["unit"] == "m"
                and file["g/x"].fillvalue == -1
            )
            assert options.get("codec") == "zstd:3" or numpy.array_equal(file["g/x"][()], ROWS)


def check_added_to_a_file(files, scratch):
    save(rows(), scratch / "x.h5", "a")
    save(rows() * 2, scratch / "x.h5", "b")
    with h5py.File(scratch / "x.h5") as file:
        assert sorted(file) == ["a", "b"] and numpy.array_equal(file["b"][()], ROWS * 2)
    error = failing(lambda: save(rows(), scratch / "x.h5", "a"), FileExistsError)
    assert isinstance(error, tegula.ExistsError) and error.path == str(scratch / "x.h5")


def check_tasks_in_other_processes(files, scratch):
    """They write with the text that the first task made."""
    _tasks.pretend_elsewhere = True
    try:
        for layout, tiles in (("contiguous", 5), ("virtual", 12)):
            calls = []
            _tasks.savings = Forgetful(calls)
            save(rows(), scratch / f"{layout}.h5", layout=layout, tiles=tiles)
            with h5py.File(scratch / f"{layout}.h5") as file:
                assert numpy.array_equal(file["data"][()], ROWS) and len(calls) == tiles
        error = failing(lambda: save(rows(), scratch / "c.h5", codec="deflate"), ValueError)
        assert "chunked" in str(error)
    finally:
        _tasks.pretend_elsewhere, _tasks.savings = False, {}


class Forgetful(dict):
    def __init__(self, calls):
        super().__init__()
        self.calls = calls

    def get(self, number):
        self.calls.append(number)


def check_nothing_is_left_of_a_failure(files, scratch):
    (scratch / "file").write_text("x")
    full = "/dev/full"
    for path, kind in ((scratch / "file/x.npy", tegula.Error), (full, tegula.Error)):
        failing(lambda path=path: save(rows(), path, format="npy", overwrite=True), kind)
    assert os.listdir(scratch) == ["file"] and not _tasks.savings


def check_a_task_that_cannot_write(files, scratch):
    """Tile 2 of 6 fails: the error arrives, the old file stays, temporary ones go,
    and the runtime goes on."""
    save(rows(), scratch / "x.npy")
    real, error = (
        _tasks._local,
        tegula.StorageError("could not write", path="/x/y.npy", errno=28, hint="make room"),
    )

    def broken(ctx, *rest):
        if tuple(ctx.task_index) == (2, 0):
            raise error
        return real(ctx, *rest)

    _tasks._local = broken
    try:
        got = failing(lambda: save(rows() * 2, scratch / "x.npy", tiles=6, overwrite=True), OSError)
        assert type(got) is tegula.StorageError and (got.path, got.errno, got.hint) == (
            "/x/y.npy",
            28,
            "make room",
        )
        save(rows() * 2, scratch / "y.npy", tiles=6, block=False)
        assert type(failing(fence)) is tegula.StorageError
        fence()
    finally:
        _tasks._local = real
    assert (
        os.listdir(scratch) == ["x.npy"]
        and numpy.array_equal(numpy.load(scratch / "x.npy"), ROWS)
        and not _tasks.savings
    )
    save(rows(), scratch / "x.npy", tiles=6, overwrite=True)


def check_a_task_that_writes_too_little(files, scratch):
    real = _tasks.write_record
    _tasks.write_record = lambda store, value=0, *rest, **more: real(
        store, value and value - 4, *rest, **more
    )
    try:
        assert "another number of bytes" in str(
            failing(lambda: save(rows(), scratch / "x.npy"), tegula.InternalError)
        )
    finally:
        _tasks.write_record = real
    assert os.listdir(scratch) == []


def check_a_big_file_is_replaced(files, scratch):
    """Its space is given back beside; no handle stays."""
    before, _tasks._BIG = _tasks._BIG, 1
    try:
        save(rows(), scratch / "x.npy")
        handles = len(os.listdir("/proc/self/fd"))
        for factor in range(5):
            save(rows() * factor, scratch / "x.npy", overwrite=True)
            assert numpy.array_equal(numpy.load(scratch / "x.npy"), ROWS * factor)
        until = time.monotonic() + 60
        while len(os.listdir("/proc/self/fd")) > handles and time.monotonic() < until:
            time.sleep(0.01)
        assert len(os.listdir("/proc/self/fd")) <= handles
    finally:
        _tasks._BIG = before


def elsewhere(call):
    """What `call` returns or raises in another thread."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result(20)


def check_other_threads(files, scratch):
    """Legate would end the process. What opens and saves without it waits for Legate's saves
    there, too, also for one that fails."""
    x = rows()
    for call in (lambda: load(files / "rows.npy"), lambda: save(x, scratch / "no.npy"), fence):
        assert "thread" in str(failing(lambda call=call: elsewhere(call), RuntimeError))
    for block in range(3):
        save(x, scratch / f"{block}.npy", block=False, tiles=50)
        assert numpy.array_equal(
            elsewhere(lambda block=block: tegula.open(scratch / f"{block}.npy")[()]), ROWS
        )
    save(x, scratch / "0.npy", block=False)  # it exists
    assert numpy.array_equal(elsewhere(lambda: tegula.load(scratch / "0.npy").local), ROWS)
    failing(fence, tegula.ExistsError)
    fence()
    assert not _tasks.runs and sorted(os.listdir(scratch)) == ["0.npy", "1.npy", "2.npy"]


def check_in_the_background(files, scratch):
    x = rows()
    save(x, scratch / "x.npy", block=False)
    x[...] = 0  # the runtime orders it behind the save
    save(x, scratch / "zero.npy", block=False)
    get_legate_runtime().issue_execution_fence(block=True)  # Legate's own is enough
    assert (
        numpy.array_equal(numpy.load(scratch / "x.npy"), ROWS)
        and not numpy.load(scratch / "zero.npy").any()
    )
    fence()
    assert not _save._pending


def check_opening_waits(files, scratch):
    for number, look in enumerate(
        (
            lambda path: tegula.open(path)[()],
            lambda path: numpy.asarray(cupynumeric.asarray(load(path))),
            lambda path: tegula.load(path).local,
        )
    ):
        path = scratch / f"{number}.npy"
        save(rows(), path, block=False, tiles=50)
        assert numpy.array_equal(look(path), ROWS)
    save(rows(), scratch / "s", shards=3, block=False)
    assert numpy.array_equal(tegula.open(str(scratch / "s" / "shard_*.npy"))[()], ROWS)
    save(rows(), scratch / "twice.npy", block=False, tiles=50)
    tegula.save(ROWS * 2, scratch / "twice.npy", overwrite=True)
    assert numpy.array_equal(numpy.load(scratch / "twice.npy"), ROWS * 2)
    # it exists: the one who opens it reads what is there, fence says what failed
    save(rows(), scratch / "0.npy", block=False)
    assert numpy.array_equal(tegula.open(scratch / "0.npy")[()], ROWS)
    failing(fence, tegula.ExistsError)
    fence()


def check_scalars_and_empty(files, scratch):
    save(cupynumeric.array(7, "i2"), scratch / "x.npy")
    assert numpy.load(scratch / "x.npy") == 7 and numpy.load(scratch / "x.npy").shape == ()
    save(cupynumeric.zeros((3, 0), "u1"), scratch / "y.npy")
    assert numpy.load(scratch / "y.npy").shape == (3, 0)
    assert numpy.asarray(cupynumeric.asarray(load(scratch / "y.npy"))).shape == (3, 0)


def check_relative_paths(files, scratch):
    """As the system and tegula.save understand them."""
    (scratch / "here").mkdir()
    (scratch / "there/deep").mkdir(parents=True)
    (scratch / "here/link").symlink_to(scratch / "there/deep")
    before = os.getcwd()
    os.chdir(scratch / "here")
    try:
        save(rows(), "link/../x.npy", block=False)
        assert numpy.array_equal(tegula.open("link/../x.npy")[()], ROWS)
        save(rows(), "y.npy", block=False)
        for wrong, options in (("", {"shards": 2, "overwrite": True}), ("z.npy/", {})):
            failing(lambda wrong=wrong, options=options: save(rows(), wrong, **options), ValueError)
    finally:
        os.chdir(before)
    fence()
    assert sorted(os.listdir(scratch / "here")) == ["link", "y.npy"] and sorted(
        os.listdir(scratch / "there")
    ) == ["deep", "x.npy"]


def check_wrong_arguments(files, scratch):
    for wrong in (
        {"shards": 0},
        {"order": "X"},
        {"tiles": 0},
        {"chunks": (3,), "layout": "chunked"},
        {"chunks": (0, 3)},
        {"byte_order": "="},
    ):
        failing(lambda wrong=wrong: save(rows(), scratch / "x.h5", **wrong), ValueError)
    for wrong in (
        {"overwrite": "no"},
        {"block": None},
        {"codec": 3},
        {"dataset": b"x"},
        {"layout": 1},
        {"chunks": "ab"},
        {"axis": "rows"},
    ):
        failing(lambda wrong=wrong: save(rows(), scratch / "x.h5", **wrong), TypeError)
    for wrong in ({"tiles": 10**30}, {"tile_shape": (2**63, 3)}, {"shards": 2**64}):
        failing(lambda wrong=wrong: save(rows(), scratch / "x.h5", **wrong), ValueError)
    failing(lambda: save(rows(), scratch / "x.h5", layout="no"), tegula.Error)
    failing(lambda: save(rows(), scratch / "x.unknown"), tegula.UnsupportedError)
    assert os.listdir(scratch) == []
