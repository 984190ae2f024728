# Slow file systems for the tests of this folder, and a limit on how long a request to the library may take.
#
# SPDX-License-Identifier: Apache-2.0
import contextlib
import threading

import pytest

from slowfs import SlowFolder, Unavailable


@pytest.fixture
def mount():
    """Mounts folders; they are unmounted at the end of the test. Skips where this machine does not allow it."""
    with contextlib.ExitStack() as mounts:
        def make(source, **settings):
            try:
                return mounts.enter_context(SlowFolder(source, **settings))
            except Unavailable as reason:
                pytest.skip(str(reason))
        yield make


@pytest.fixture
def no_hang(mount, probe):
    """The shared probe; a test in which it gives no answer for a minute fails, because the probe is then killed. It is set up after
    `mount`, so that it has closed its files when they are unmounted."""
    def kill():
        if probe.process is not None:
            probe.process.kill()
    timer = threading.Timer(60, kill)
    timer.start()
    yield probe
    timer.cancel()
