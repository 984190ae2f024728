"""Folders for what rows save, which go away however the benchmark ends.

SPDX-License-Identifier: Apache-2.0

A folder is locked as long as this process or one that it has started is there: they have inherited
the descriptor. A process of its own waits for that lock (flock, of util-linux) and removes the
folder, also after a SIGKILL. If that one was killed too, the next benchmark removes what nobody
locks.
"""

import fcntl
import os
import pathlib
import shutil
import subprocess
import tempfile

PREFIX = "tegula_bench-"


def sweep(parent):
    """Removes folders of benchmarks that have ended."""
    for folder in pathlib.Path(parent).glob(PREFIX + "*"):
        try:
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            pass
        finally:
            os.close(fd)


class Scratch:
    """`folder`, in `parent`, has the lock; `path`: an empty one in it, because saves take turns by
    a lock on the folder that they save in; `fd`: what the processes that use it must inherit."""

    def __init__(self, parent):
        sweep(parent)
        while True:
            self.folder = tempfile.mkdtemp(prefix=PREFIX, dir=parent)
            self.fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(self.fd, fcntl.LOCK_EX)
            if os.path.isdir(self.folder):  # another's sweep may have been faster than the lock
                break
            os.close(self.fd)
        self.watcher = subprocess.Popen(
            ["flock", self.folder, "rm", "-rf", self.folder],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.path = os.path.join(self.folder, "saved")
        os.mkdir(self.path)

    def empty(self):
        for entry in os.scandir(self.path):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                os.unlink(entry.path)

    def close(self):
        os.close(self.fd)
        self.watcher.wait()
