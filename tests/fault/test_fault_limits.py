# A process whose memory is limited (ulimit -v) reads HDF5 files or says that there is too little of
# it: libhdf5 does not end it.
#
# SPDX-License-Identifier: Apache-2.0
#
# libhdf5 fails where little is lacking. So the lowest limit is looked for with which the command
# works, and most limits are tried below it. TEGULA_FAULT_ALL=1 tries 350 of them.
import json
import os
import resource
import subprocess

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes these files")

from faulty import BIN, EVERY, SANITIZER, each  # noqa: E402

pytestmark = pytest.mark.skipif(
    SANITIZER != "", reason="sanitizers need terabytes of address space"
)

KIB = 1024
MOST = 256 << 10  # KiB: with this all works
NEAR = 6 << 10  # so far below the lowest limit that works most are tried


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("limits")
    rows = numpy.arange(400 * 60, dtype="<i4").reshape(400, 60)
    with h5py.File(folder / "chunks.h5", "w") as file:
        file.create_dataset("z", data=rows, chunks=(8, 20), compression="gzip", shuffle=True)
    # its description takes memory in several calls
    with h5py.File(folder / "many.h5", "w") as file:
        file.create_dataset(
            "z", data=numpy.arange(1 << 18, dtype="<i4"), chunks=(8,), compression=1
        )
        for k in range(300):
            file.attrs["attribute%d" % k] = k
            file["group/dataset%d" % k] = k
    with h5py.File(folder / "decoded.h5", "w") as file:  # by libhdf5 alone
        file.create_dataset(
            "z",
            data=numpy.arange(1 << 20, dtype="<i4").reshape(256, 4096),
            chunks=(128, 4096),
            scaleoffset=0,
        )
    return folder


def environment_of(library):
    """`system`: what tegula finds on its own, with more libraries behind it than that of h5py's
    wheel, which the tests name else."""
    return {
        key: value
        for key, value in os.environ.items()
        if (library, key) != ("system", "TEGULA_HDF5_LIBRARY")
    }


def run(words, limit, environment):
    def set_limits():
        resource.setrlimit(resource.RLIMIT_AS, (limit * KIB, limit * KIB))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    return subprocess.run(
        [BIN, *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=set_limits,
    )


def lowest(words, environment):
    """The limit, in KiB, from which on the command works, where it works at all."""
    fails, works = 0, MOST
    assert run(words, works, environment).returncode == 0
    while works - fails > 64:
        middle = (fails + works) // 2
        fails, works = (
            (fails, middle) if run(words, middle, environment).returncode == 0 else (middle, works)
        )
    return works


def limits(least, works):
    near, far = (200, 150) if EVERY else (28, 8)
    return [
        *numpy.linspace(max(least, works - NEAR), works + 1000, near, dtype=int),
        *numpy.linspace(least, works + 20000, far, dtype=int),
    ]


COMMANDS = {
    "load": ["load", "chunks.h5"],
    "info": ["info", "chunks.h5"],
    "load-many": ["load", "many.h5", "--dataset", "z"],
    "info-many": ["info", "many.h5", "--attributes"],
    "load-decoded": ["load", "decoded.h5", "--threads", "2"],
}


@pytest.mark.parametrize(
    "library, name",
    [("system", "load"), ("system", "info"), *[("named", name) for name in COMMANDS]],
)
def test_limited_memory(library, name, folder):
    environment = environment_of(library)
    command, file, *rest = COMMANDS[name]
    words = [command, "--json", folder / file, *rest]
    first = run(words, MOST, environment)
    if "found no libhdf5" in first.stderr:
        pytest.skip("the system has no libhdf5")
    works, least = lowest(words, environment), lowest(["--version"], environment)

    def check(number, family, kind, limit):
        done = run(words, int(limit), environment)
        said = "limit of %d KiB: status %d, %s" % (limit, done.returncode, done.stderr)
        assert done.returncode in (0, 1), said
        assert done.returncode == 0 or done.stderr.startswith("tegula: "), said
        if done.returncode == 1 and "could not open the plugin" not in done.stderr:
            error = json.loads(done.stdout)["error"]
            assert error["status"] == "out_of_memory", said
            assert error["hint"] or "libhdf5" not in error["message"], said

    assert each([("limit", "memory", limit) for limit in limits(least, works)], check) > 30
