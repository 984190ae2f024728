# Every system call and every allocation fails once while HDF5 files are described and loaded, those
# of libhdf5 among them: the right data, or one clean error.
#
# SPDX-License-Identifier: Apache-2.0
#
# The copy of libhdf5 is bound to the C library past faults.c (RTLD_DEEPBIND): its own allocations
# do not fail and are not counted. Those that the C library makes for it (strdup) would, and are
# spared: the start of libhdf5 1.14.6 crashes without them. The plugin keeps the library and the
# descriptor of its copy to the end of the process.
import os

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes these files")

from faulty import BIN, HARMLESS, Run, each, judge, plan  # noqa: E402
from reference_hash import content_hash  # noqa: E402

LIBRARY_KEPT = (3, 1)  # two of the plugin, one of the loader; the copy
DATA = numpy.arange(40 * 6, dtype="<i4").reshape(40, 6) * 7


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hdf5")
    with h5py.File(folder / "one.h5", "w") as file:
        file.create_dataset("gzip", data=DATA, chunks=(8, 4), compression="gzip", shuffle=True)
        file["plain"] = DATA
        file.create_dataset("gaps", DATA.shape, "<i4", chunks=(8, 4), scaleoffset=0, fillvalue=7)[
            8:
        ] = DATA[8:]
        file["group/deep"] = DATA[:3]
    for k in range(2):
        with h5py.File(folder / ("part%d.h5" % k), "w") as file:
            file.create_dataset("x", data=DATA[20 * k : 20 * k + 20], chunks=(7, 6))
    layout = h5py.VirtualLayout((40, 6), "<i4")
    for k in range(2):
        layout[20 * k : 20 * k + 20] = h5py.VirtualSource("part%d.h5" % k, "x", (20, 6))
    with h5py.File(folder / "virtual.h5", "w", libver="latest") as file:
        file.create_virtual_dataset("v", layout)
    # the last 260 sources are not there: nobody wants them
    layout = h5py.VirtualLayout((300, 6), "<i4")
    for k in range(2):
        layout[20 * k : 20 * k + 20] = h5py.VirtualSource("part%d.h5" % k, "x", (20, 6))
    for k in range(40, 300):
        layout[k] = h5py.VirtualSource("absent%d.h5" % k, "x", (6,))
    with h5py.File(folder / "late.h5", "w", libver="latest") as file:
        file.create_virtual_dataset("v", layout)
    shards = folder / "shards"
    shards.mkdir()
    for k in range(3):
        with h5py.File(shards / ("shard_%d.h5" % k), "w", libver="latest") as file:
            rows = DATA[14 * k : min(40, 14 * k + 14)]
            file.create_dataset("x", data=rows, chunks=(5, 6), compression="gzip")
    return folder


class HdfRun(Run):
    def answer(self):
        """A file whose name could not be compared is opened twice:
        how much is read of it differs."""
        answer = super().answer()
        answer.pop("bytes_read", None)
        return answer


COMMANDS = {
    "load-gzip": ["load", "one.h5", "--dataset", "gzip", "--hash", "--threads", "1"],
    "load-contiguous": ["load", "one.h5", "--dataset", "/plain", "--hash", "--threads", "2"],
    "load-gaps": ["load", "one.h5", "--dataset", "gaps", "--hash", "--threads", "1"],
    "load-virtual": ["load", "virtual.h5", "--dataset", "v", "--hash", "--threads", "1"],
    "load-late": [
        "load",
        "late.h5",
        "--dataset",
        "v",
        "--box",
        "0:40,:",
        "--hash",
        "--threads",
        "1",
    ],
    "load-shards": ["load", "shards", "--dataset", "x", "--hash", "--threads", "2"],
    "info": ["info", "one.h5", "--threads", "1"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_hdf5_command(name, files, tmp_path):
    words = [str(files / word) if (files / word).exists() else word for word in COMMANDS[name]]
    library = os.environ.get("TEGULA_HDF5_LIBRARY")

    def run(number, fault=None, kept=LIBRARY_KEPT):
        return HdfRun(
            [BIN, words[0], "--json", *words[1:]],
            tmp_path / ("report%s" % number),
            fault,
            kept=kept,
            environment={
                "TEGULA_FAULT_SPARE": "libc",
                **({"TEGULA_HDF5_LIBRARY": library} if library else {}),
            },
        )

    clean = run("clean")
    expected = judge(clean, clean.answer())
    assert expected is not None
    if "--hash" in words:
        assert expected["hash"] == content_hash(
            numpy.r_[numpy.full((8, 6), 7, "<i4"), DATA[8:]] if name == "load-gaps" else DATA
        )

    def check(number, family, kind, fault):
        got = run(number, fault)
        # listing was not possible: what opening said, that the file has several datasets
        if name == "info" and got.code == 2:
            got.expect("which one is meant" in got.err, "another refusal")
            return
        answer = judge(got, expected)
        got.expect(
            answer is not None or (family, kind) not in HARMLESS, "this is no reason to fail"
        )

    assert each(plan(clean.counted["calls"]), check) > 20


def test_a_name_is_followed_to_its_end(files, tmp_path):
    """A name of which a part got no memory is not that of the group before it:
    around there each allocation fails."""
    library = os.environ.get("TEGULA_HDF5_LIBRARY")

    def check(number, family, kind, fault):
        run = HdfRun(
            [BIN, "info", "--json", files / "one.h5", "--dataset", "group/deep", "--threads", "1"],
            tmp_path / ("report%d" % number),
            fault,
            environment={
                "TEGULA_FAULT_SPARE": "libc",
                **({"TEGULA_HDF5_LIBRARY": library} if library else {}),
            },
        )
        run.expect(run.code in (0, 1), "another error than that of memory")

    each([("memory", "ENOMEM", "memory:%d:ENOMEM" % n) for n in range(30, 75)], check)
