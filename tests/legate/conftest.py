# Programs in an environment with Legate (TEGULA_LEGATE, made by scripts/test from
# tools/requirements-legate.txt).
#
# SPDX-License-Identifier: Apache-2.0
#
# Each start of Legate takes about two seconds, so checks share processes: a module checks_*.py has
# functions check_*, of which one process runs all in turn (harness.py), and each is a test here.
import json
import os
import pathlib
import re
import subprocess
import time

import pytest

HERE = pathlib.Path(__file__).parent
PACKAGE = os.environ.get("TEGULA_PYTHON", str(HERE.parents[1] / "build/python"))
ENVIRONMENT = os.environ.get("TEGULA_LEGATE")
WITHOUT = "TEGULA_LEGATE names no environment with Legate (scripts/test makes one where it can)"


def ready(seconds=900):
    """scripts/test makes the environment while it builds: its mark says that it is whole, the
    other one that it cannot be had."""
    if not ENVIRONMENT:
        return False
    until = time.monotonic() + seconds
    while not (pathlib.Path(ENVIRONMENT) / ".installed").exists():
        if time.monotonic() > until or pathlib.Path(ENVIRONMENT + ".failed").exists():
            return False
        time.sleep(0.5)
    return True


@pytest.fixture(scope="session")
def environment():
    if not ready():
        pytest.skip(WITHOUT)
    return pathlib.Path(ENVIRONMENT)


@pytest.fixture(scope="session")
def packages(environment):
    """Where its packages lie."""
    return next(environment.glob("lib/python3*/site-packages"))


@pytest.fixture(scope="session")
def package():
    """The folder that the tegula under test is imported from."""
    return PACKAGE


@pytest.fixture(scope="session")
def no_cuda(environment, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cuda")
    subprocess.run(
        [
            os.environ.get("CC", "cc"),
            "-shared",
            "-fPIC",
            "-Wall",
            "-Werror",
            "-Wl,-soname,libcuda.so.1",
            "-o",
            str(folder / "libcuda.so.1"),
            str(HERE / "no_cuda.c"),
        ],
        check=True,
    )
    return folder


@pytest.fixture(scope="session")
def run_legate(environment, no_cuda):
    """Runs a program with Legate; returns what subprocess.run does."""

    def run(*words, config="--cpus 2 --sysmem 800", timeout=120, **more):
        own = {
            "LD_LIBRARY_PATH": str(no_cuda),
            "LEGATE_AUTO_CONFIG": "0",
            "LEGATE_CONFIG": config,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": PACKAGE,
            **more,
        }
        return subprocess.run(
            [environment / "bin/python", *map(str, words)],
            env={**os.environ, **own},
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    return run


@pytest.fixture(scope="session")
def checked(run_legate, legate_files):
    """What each check of a module said with that configuration, and how its process ended."""
    known = {}

    def look(module, name, config):
        if (module, config) not in known:
            done = run_legate(
                "-X", "dev", HERE / "harness.py", HERE / module, legate_files, config=config
            )
            said = [
                json.loads(line[len("@@") :])
                for line in done.stdout.splitlines()
                if line.startswith("@@")
            ]
            known[module, config] = {entry["check"]: entry for entry in said}, done
        said, done = known[module, config]
        assert name in said, (
            f"the process ended with {done.returncode} "
            f"before\n{done.stdout[-1000:]}\n{done.stderr[-4000:]}"
        )
        entry = said[name]
        if entry["skipped"]:
            pytest.skip(entry["skipped"])
        assert entry["failure"] is None, entry["failure"]
        if list(said)[-1] == name:
            assert done.returncode == 0, f"it ended with {done.returncode}\n{done.stderr[-4000:]}"
            assert not re.findall(r"^.*/tegula/.*Warning.*$", done.stderr, re.MULTILINE)

    return look


@pytest.fixture(scope="session")
def legate_files(tmp_path_factory):
    """Files by h5py and numpy, and the arrays that they hold."""
    pytest.importorskip("h5py", reason="h5py is not installed: it writes these files")
    from make_files import make

    folder = tmp_path_factory.mktemp("legate_files")
    make(folder)
    return folder
