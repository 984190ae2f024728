# Ctrl-C while tegula.legate waits. SPDX-License-Identifier: Apache-2.0
#
# Legate's own handler ends the process, so a check in which it is in force while we
# wait takes all with it.
import ctypes
import os
import signal
import threading
import time

import cupynumeric
import numpy
import tegula
import tegula.legate
from tegula.legate import _hdf5, _load, _save, _tasks, fence, load, save

ROWS = numpy.random.default_rng(8).random((300, 11)).astype("f4")


def handler():
    """What the process has, which Python does not know."""
    found = ctypes.create_string_buffer(1024)
    assert ctypes.CDLL(None).sigaction(signal.SIGINT, None, found) == 0
    return found.raw[:8]


class CtrlC:
    """Is pressed half a second after the first call of begun()."""

    def __init__(self):
        self.at, self.timer, self.lock = None, None, threading.Lock()

    def begun(self):
        with self.lock:
            if self.timer is None:
                self.timer = threading.Timer(0.5, self.press)
                self.timer.start()

    def press(self):
        self.at = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    def heard(self, call):
        before = handler()
        try:
            call()
        except KeyboardInterrupt:
            took = time.monotonic() - self.at
        else:
            raise AssertionError("no KeyboardInterrupt")
        assert took < 30, took  # no hang; how much work went on, each check counts
        assert handler() == before  # outside of our calls it is Legate's again


def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    assert condition()


def works(files):
    assert numpy.array_equal(
        numpy.asarray(cupynumeric.asarray(load(files / "uneven"))), numpy.load(files / "rows.npy")
    )


def check_a_load(files, scratch):
    ctrl_c, read = CtrlC(), []

    def slowly(box, out):
        ctrl_c.begun()
        read.append(box)
        time.sleep(0.1)
        out[...] = 1

    reader = tegula.from_reader(slowly, (400, 3), "f4", chunks=(1, 3))
    ctrl_c.heard(lambda: load(reader, tiles=4))
    until(lambda: not _tasks.runs)
    assert len(read) < 200, len(read)  # the tasks stopped, and between two calls of the reader
    works(files)
    assert not _load._stopping and not _tasks.datasets.lent and not _tasks.causes


def check_a_task_that_does_not_stop(files, scratch):
    """It is left alone, and what it reads from stays until it ends."""
    ctrl_c, go = CtrlC(), threading.Event()

    def stuck(box, out):
        ctrl_c.begun()
        go.wait(100)

    ctrl_c.heard(lambda: load(tegula.from_reader(stuck, (4, 3), "f4"), tiles=1))
    assert len(_load._stopping) == len(_tasks.datasets.lent) == 1
    go.set()
    until(lambda: not _tasks.runs)
    works(files)
    assert not _load._stopping and not _tasks.datasets.lent


class Slow:
    """Tiles of a save take a while each."""

    def __init__(self, ctrl_c):
        self.ctrl_c, self.real, self.tiles = ctrl_c, _tasks._local, 0

    def __enter__(self):
        def slowly(*arguments):
            self.tiles += 1
            self.ctrl_c.begun()
            time.sleep(0.1)
            return self.real(*arguments)

        _tasks._local = slowly
        return self

    def __exit__(self, *_):
        _tasks._local = self.real


def check_a_save(files, scratch):
    save(cupynumeric.array(ROWS), scratch / "x.npy")
    for name in ("x.npy", "y.npy"):
        with Slow(CtrlC()) as slow:
            slow.ctrl_c.heard(
                lambda name=name: save(
                    cupynumeric.array(ROWS * 2), scratch / name, tiles=100, overwrite=True
                )
            )
            fence()  # has nothing to say
        assert slow.tiles < 80, slow.tiles
        assert os.listdir(scratch) == ["x.npy"] and numpy.array_equal(
            numpy.load(scratch / "x.npy"), ROWS
        )
        assert not _save._pending and not _tasks.savings and not _tasks.runs
    save(cupynumeric.array(ROWS * 2), scratch / "y.npy")
    assert numpy.array_equal(numpy.load(scratch / "y.npy"), ROWS * 2)


def check_a_fence(files, scratch):
    """The save goes on."""
    with Slow(CtrlC()) as slow:
        save(cupynumeric.array(ROWS), scratch / "x.npy", tiles=30, block=False)
        slow.ctrl_c.heard(fence)
        fence()
    assert numpy.array_equal(numpy.load(scratch / "x.npy"), ROWS)


def check_batches(files, scratch):
    """The piece that is asked for is not waited for,
    the one that is read ahead is not wanted either."""
    ctrl_c, real = CtrlC(), tegula.Dataset._read_box

    def slowly(self, lo, *rest):
        if lo[0] >= 50:
            time.sleep(2)
        return real(self, lo, *rest)

    pieces = _hdf5.from_file_batched(files / "plain.h5", "rows", (50, 7))
    tegula.Dataset._read_box = slowly
    try:
        next(pieces)
        ctrl_c.begun()
        ctrl_c.heard(lambda: next(pieces))
        assert next(pieces, None) is None
        until(lambda: not _tasks.runs)
    finally:
        tegula.Dataset._read_box = real
    works(files)
    assert not _load._stopping
