"""Waiting for tasks so that Ctrl-C is heard.

SPDX-License-Identifier: Apache-2.0

Legate's runtime has a handler of its own for Ctrl-C, which prints a backtrace and ends the process.
While we wait it is Python's, where the program has one.
"""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import _tasks

_PATIENCE = 0.25  # seconds for what was interrupted to end
_c: Any = ctypes.CDLL(None)


@contextmanager
def hearing() -> Iterator[None]:
    """Ctrl-C is a KeyboardInterrupt within."""
    ours = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(ours):
        yield
        return
    theirs = ctypes.create_string_buffer(1024)  # a struct sigaction, whatever its size
    if _c.sigaction(signal.SIGINT, None, theirs) != 0:
        yield
        return
    try:
        signal.signal(signal.SIGINT, ours)
        yield
    finally:
        _c.sigaction(signal.SIGINT, theirs, None)


def wait_for(run: _tasks.Run | None) -> None:
    """Until its tasks have ended; who waits otherwise waits in the runtime, which hears nothing."""
    if run is not None and not run.ended.is_set():
        with hearing():
            run.ended.wait()


def stop(run: _tasks.Run | None) -> None:
    """It is no longer wanted: tasks that read or write stop soon, others do not begin."""
    if run is not None:
        run.stop.set()
        with hearing():
            run.ended.wait(_PATIENCE)
