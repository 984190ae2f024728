# Chunks in Blosc2 that ask for what only a plugin of libblosc2 could do: refused by name,
# before libblosc2 sees them.
#
# SPDX-License-Identifier: Apache-2.0
#
# libblosc2 runs `python` to ask where such a plugin is; a `python` of ours that is first in PATH
# says whether it did. Frames are those of hdf5plugin, changed in the header of the chunk or of the
# index (README_CHUNK_FORMAT.rst, README_CFRAME_FORMAT.rst of c-blosc2).
import os

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes these files")
hdf5plugin = pytest.importorskip(
    "hdf5plugin", reason="hdf5plugin is not installed: it brings the filter"
)

FLAGS, FILTERS, CODEC, MORE_FLAGS = 2, 16, 22, 31
DATA = numpy.arange(4000, dtype="<i4").reshape(40, 100)


def header_of(frame, which):
    """Where the header of the first chunk begins, or that of the index behind all chunks."""
    first = int.from_bytes(frame[11:15], "big")
    return first if which == "chunk" else first + int.from_bytes(frame[39:47], "big")


def changed(path, which, change):
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset(
            "x", data=DATA, chunks=DATA.shape, **hdf5plugin.Blosc2(cname="zstd")
        )
        frame = bytearray(dataset.id.read_direct_chunk((0, 0))[1])
        if change:
            change(frame, header_of(frame, which))
        dataset.id.write_direct_chunk((0, 0), bytes(frame))


def codec(number):
    def change(frame, at):
        frame[at + FLAGS] = frame[at + FLAGS] & 31 | 5 | 6 << 5
        frame[at + CODEC] = number

    return change


def filter_of(number):
    def change(frame, at):
        frame[at + FLAGS] |= 5
        frame[at + FILTERS + 5] = number

    return change


def never_set(frame, at):
    frame[at + FLAGS] |= 5
    frame[at + MORE_FLAGS] = frame[at + MORE_FLAGS] & 15 | 4 << 4


@pytest.fixture
def watched(tmp_path, new_probe):
    """A probe that finds our `python` first, and the file that it would leave."""
    mark = tmp_path / "python-was-run"
    for name in ("python", "python3"):
        (tmp_path / name).write_text("#!/bin/sh\n: >'%s'\nexit 1\n" % mark)
        (tmp_path / name).chmod(0o755)
    probe = new_probe(environment={"PATH": "%s:%s" % (tmp_path, os.environ["PATH"])})
    probe.call("context", threads=2)
    return probe, mark


def load(probe, path):
    """The error of the load, None: it went well."""
    answer = probe.ask({"do": "open", "path": str(path)})
    if (
        "error" in answer
        and "blosc2: " in answer["error"]["message"]
        and "no libblosc2" in answer["error"]["message"]
    ):
        pytest.skip(answer["error"]["message"])
    assert "error" not in answer, answer
    answer = probe.ask(
        {"do": "read", "dtype": "<i4", "box": [[0, 40], [0, 100]], "path": str(path) + ".box"}
    )
    return answer.get("error")


def test_a_frame_that_was_not_changed_is_read(watched, tmp_path):
    probe, mark = watched
    changed(tmp_path / "x.h5", "chunk", None)
    assert load(probe, tmp_path / "x.h5") is None and not mark.exists()
    assert (tmp_path / "x.h5.box").read_bytes() == DATA.tobytes()


@pytest.mark.parametrize("which", ["chunk", "index"])
@pytest.mark.parametrize(
    "name, change",
    [
        ("codec 36", codec(36)),
        ("codec 37", codec(37)),
        ("codec 200", codec(200)),
        ("filter 37", filter_of(37)),
        ("filter 200", filter_of(200)),
        ("never set", never_set),
    ],
)
def test_what_needs_a_plugin_or_was_never_set_is_refused(watched, tmp_path, which, name, change):
    probe, mark = watched
    changed(tmp_path / "x.h5", which, change)
    error = load(probe, tmp_path / "x.h5")
    assert (
        error
        and error["status"] == "unsupported"
        and "blosc2: " in error["message"]
        and name in error["message"]
    ), error
    assert not mark.exists(), "libblosc2 ran python"
