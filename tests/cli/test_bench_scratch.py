# What the benchmark saves goes away again, however it ends.
#
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

BENCH = pathlib.Path(__file__).parents[2] / "bench"
sys.path.insert(0, str(BENCH))

from scratch import PREFIX, Scratch  # noqa: E402

PROGRAM = """
import subprocess, sys
from scratch import Scratch
scratch = Scratch(sys.argv[1])
open(scratch.path + "/saved", "w").close()
child = subprocess.Popen(["sleep", "60"], pass_fds=[scratch.fd])
print(child.pid, flush=True)
child.wait()
"""


def folders(parent):
    return [path.name for path in parent.iterdir()]


def wait_until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_after_a_kill_when_the_last_that_uses_it_has_ended(tmp_path):
    bench = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, tmp_path],
        stdout=subprocess.PIPE,
        cwd=BENCH,
        env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"),
    )
    child = int(bench.stdout.readline())
    bench.kill()
    bench.wait()
    time.sleep(0.2)
    assert len(folders(tmp_path)) == 1
    os.kill(child, signal.SIGKILL)
    wait_until(lambda: not folders(tmp_path))
    bench.stdout.close()


def test_the_next_one_removes_what_nobody_uses(tmp_path):
    (tmp_path / (PREFIX + "left") / "saved.h5.tiles-0").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    first = Scratch(tmp_path)
    second = Scratch(tmp_path)
    assert sorted(folders(tmp_path)) == sorted(
        ["other", os.path.basename(first.folder), os.path.basename(second.folder)]
    )
    pathlib.Path(first.path, "folder").mkdir()
    pathlib.Path(first.path, "file").touch()
    first.empty()
    assert not os.listdir(first.path)
    first.close()
    second.close()
    assert folders(tmp_path) == ["other"]


@pytest.mark.parametrize("layout", ["contiguous", "virtual"])
def test_saves_leave_nothing(layout, tmp_path):
    tegula = pathlib.Path(os.environ.get("TEGULA_BIN", "build/bin/tegula")).resolve()
    if not tegula.with_name("tegula_bench").exists():
        pytest.skip("built without the benchmark (TEGULA_BUILD_BENCH)")
    subprocess.run([tegula, "write", tmp_path / "data", "--shape", "100,4", "--quiet"], check=True)
    (tmp_path / "out").mkdir()
    run = subprocess.run(
        [
            tegula.with_name("tegula_bench"),
            "save",
            tmp_path / "data",
            "--at",
            tmp_path / "out",
            "--layout",
            layout,
            "--pairs",
            "2",
        ],
        capture_output=True,
        text=True,
    )
    if "libhdf5" in run.stderr:
        pytest.skip(run.stderr)
    assert run.returncode == 0, run.stderr
    assert not folders(tmp_path / "out")
