# What the tests of this folder share: slow file systems, a limit on how long a request to the
# library may take, inputs.
#
# SPDX-License-Identifier: Apache-2.0
import contextlib
import json
import subprocess
import threading

import numpy
import pytest

from faulty import BIN, ROWS, VALUES
from slowfs import SlowFolder, Unavailable


@pytest.fixture
def mount():
    """Mounts folders; they are unmounted at the end of the test.
    Skips where this machine does not allow it."""
    with contextlib.ExitStack() as mounts:

        def make(source, **settings):
            try:
                return mounts.enter_context(SlowFolder(source, **settings))
            except Unavailable as reason:
                pytest.skip(str(reason))

        yield make


@pytest.fixture
def no_hang(mount, probe):
    """The shared probe; a test in which it gives no answer for a minute fails, because the probe is
    then killed. It is set up after `mount`, so that it has closed its files when they are
    unmounted."""

    def kill():
        if probe.process is not None:
            probe.process.kill()

    timer = threading.Timer(60, kill)
    timer.start()
    yield probe
    timer.cancel()


def write_manifest(root, name):
    """By hand, as docs/manifest.md says: the shards of root/NAME, in root/NAME.json."""
    files, parts, start = [], [], 0
    for number, path in enumerate(sorted((root / name).glob("*.npy"))):
        status, piece = path.stat(), numpy.load(path)
        files.append(
            {
                "path": "%s/%s" % (name, path.name),
                "size": status.st_size,
                "mtime_ns": status.st_mtime_ns,
            }
        )
        parts.append(
            {
                "file": number,
                "offset": status.st_size - piece.nbytes,
                "lo": [start, 0],
                "hi": [start + len(piece), 6],
                "strides": list(piece.strides),
                "order": "<" if piece.dtype == "<f4" else ">",
            }
        )
        start += len(piece)
    whole = {
        "tegula_manifest": 1,
        "format": "npy",
        "name": "data",
        "dtype": "<f4",
        "shape": [start, 6],
        "files": files,
        "parts": parts,
    }
    (root / (name + ".json")).write_text(json.dumps(whole))


def write_raw(folder):
    """Big-endian raw files behind 8 bytes each, described by a side file."""
    folder.mkdir()
    pieces = numpy.split(VALUES.astype(">f4"), numpy.cumsum(ROWS)[:-1])
    for number, piece in enumerate(pieces):
        (folder / ("part_%d.bin" % number)).write_bytes(b"header!!" + piece.tobytes())
    rows = {"part_%d.bin" % number: len(piece) for number, piece in enumerate(pieces)}
    (folder / "shard_meta.json").write_text(
        json.dumps({"dtype": ">f4", "row_shape": [6], "offset": 8, "rows": rows})
    )


def write_shards(folder, values):
    folder.mkdir()
    for number, piece in enumerate(numpy.split(values, numpy.cumsum(ROWS)[:-1])):
        numpy.save(folder / ("shard_%02d.npy" % number), piece)


@pytest.fixture(scope="session")
def inputs(tmp_path_factory):
    """Shards in C order and in the other byte order, manifests of both, raw files with a side file,
    one Fortran file, one raw file: all hold VALUES. `other` differs in its element [6, 3];
    `plain.sums` has the sums of `plain`, `damaged.sums` the same for the names of `damaged`: of
    that the second file is cut and the last is no array."""
    root = tmp_path_factory.mktemp("inputs")
    other = VALUES.copy()
    other[6, 3] += 1
    for name, values in (
        ("plain", VALUES),
        ("swapped", VALUES.astype(">f4")),
        ("other", other),
        ("damaged", VALUES),
    ):
        write_shards(root / name, values)
    (root / "damaged" / "shard_01.npy").write_bytes(
        (root / "damaged" / "shard_01.npy").read_bytes()[:-4]
    )
    (root / "damaged" / "shard_03.npy").write_bytes(b"no array")
    write_manifest(root, "plain")
    write_manifest(root, "swapped")
    write_raw(root / "sided")
    subprocess.run(
        [BIN, "verify", root / "plain", "--quiet", "--write", root / "plain.sums"], check=True
    )
    head = (root / "plain.sums").read_text().rpartition(',\n "self"')[0]
    (root / "damaged.sums").write_text(head.replace('"plain/', '"damaged/') + "}")
    subprocess.run(
        [
            BIN,
            "write",
            root / "ramp",
            "--quiet",
            "--values",
            "ramp",
            "--shape",
            "9,3",
            "--num-shards",
            "3",
        ],
        check=True,
    )
    numpy.save(root / "fortran.npy", numpy.asfortranarray(VALUES))
    (root / "raw.bin").write_bytes(b"header!!" + VALUES.astype(">f4").tobytes())
    return root
