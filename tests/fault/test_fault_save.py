# Every system call and every allocation fails once while HDF5 files are saved: the right file, or
# one clean error that names the target; then the old file is as it was, and nothing is left behind.
#
# SPDX-License-Identifier: Apache-2.0
#
# What libhdf5 allocates does not fail (test_fault_hdf5.py);
# it has been opened by another save before.
import errno
import os
import shutil

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it judges these files")

from faulty import EVERY, SANITIZER, contents, each, first_error, harmless, plan, probe_run  # noqa: E402
from probe import check_error  # noqa: E402

DATA = numpy.cumsum(numpy.random.default_rng(3).integers(-3, 4, (40, 30)), axis=-1).astype("<i4")
LIBRARY = (
    {
        "TEGULA_HDF5_LIBRARY": os.environ["TEGULA_HDF5_LIBRARY"],
        "TEGULA_FAULT_SPARE": "libjansson,libc",
    }
    if os.environ.get("TEGULA_HDF5_LIBRARY")
    else {}
)
LIBRARY_KEPT = (3, 1)
CASES = {
    "contiguous": (1, False, {}),
    "encoded": (2, False, {"chunk": [7, 30], "codec": "shuffle,deflate:1"}),
    "virtual": (1, False, {"layout": "virtual"}),
    "added": (2, True, {"durable": True}),
    "added-encoded": (
        1,
        True,
        {
            "chunk": [3, 11],
            "codec": "fletcher32",
            "attributes": [{"name": "t", "type": "str", "shape": [], "texts": ["x"]}],
        },
    ),
    "replaced": (1, True, {"dataset": "old", "overwrite": True, "chunk": [40, 3]}),
    "shards": (2, False, {"shards": 2, "format": "hdf5", "codec": "lzf"}),
}


def setup(folder, threads):
    """The array, and libhdf5 in use."""
    (folder / "values").write_bytes(DATA.tobytes())
    warm = folder / "warm.h5"
    return [
        {"do": "context", "threads": threads},
        {"do": "tiling", "kind": "grid", "shape": [40, 30], "tile": [20, 30]},
        {"do": "array", "dtype": "<i4"},
        {"do": "fill", "path": str(folder / "values")},
        {"do": "save", "path": str(warm), "codec": "deflate", "overwrite": True},
        {"do": "save", "path": str(warm), "dataset": "x"},
    ]


def read(path, dataset):
    if path.is_dir():
        return numpy.concatenate([read(shard, dataset) for shard in sorted(path.iterdir())])
    with h5py.File(path) as file:
        return file[dataset][()]


@pytest.mark.parametrize("name", CASES)
def test_save_with_faults(name, tmp_path):
    threads, existing, options = CASES[name]
    dataset = options.get("dataset", "x")
    if existing:
        with h5py.File(tmp_path / "existing.h5", "w") as file:
            file["old"] = DATA * 3
            file["group/older"] = DATA[:2]

    def run(number, fault=None):
        folder = tmp_path / ("run%s" % number)
        (folder / "out").mkdir(parents=True)
        path = folder / "out" / ("x" if "shards" in options else "x.h5")
        if existing:
            shutil.copy2(tmp_path / "existing.h5", path)
        command = {"do": "save", "path": str(path), "dataset": dataset, **options}
        before = contents(folder / "out")
        got, answers = probe_run(
            folder / "report",
            [command],
            before=setup(folder, threads),
            fault=fault,
            environment=LIBRARY,
            kept=LIBRARY_KEPT,
        )
        error = first_error(got, answers)
        if error is None:
            got.expect(read(path, dataset).tobytes() == DATA.tobytes(), "other values")
            if existing:
                got.expect("group" in h5py.File(path), "everything else is lost")
                got.expect((read(path, "group/older") == DATA[:2]).all(), "what was there is lost")
                got.expect(
                    dataset == "old" or (read(path, "old") == DATA * 3).all(),
                    "what was there is lost",
                )
            names = {str(p) for p in contents(folder / "out")}
            got.expect(
                not [
                    n
                    for n in names
                    if ".tegula" in n and not n.endswith((".tegula-companion", ".tegula-file"))
                ],
                "something is left behind",
            )
        else:
            got.expect(
                contents(folder / "out") == before or "durable" in options,
                "something is left behind, or the old file is another",
            )
            got.expect(
                ".tegula-" not in error["path"] and ".tegula-" not in error["message"],
                "the error names a temporary file: %s" % error,
            )
        shutil.rmtree(folder)
        return got, error

    clean, error = run("clean")
    clean.expect(error is None, "the clean run failed")

    def check(number, family, kind, fault):
        got, error = run(number, fault)
        got.expect(error is None or not harmless(family, kind, False), "this is no reason to fail")
        if error is not None and kind in ("EIO", "ENOSPC", "EDQUOT") and family == "write":
            got.expect(
                error["status"] == "io" and error["errno"] == getattr(errno, kind),
                "another status: %s" % error,
            )

    assert (
        each(plan(clean.counted["calls"], 48 if EVERY else 4 if SANITIZER == "" else 2), check) > 20
    )


# ---- limits --------------------------------------------------------------------------------------

# 2 MiB that no codec makes shorter
LARGE = numpy.random.default_rng(9).integers(0, 256, (512, 4096), dtype="u1")
LAYOUTS = {
    "contiguous": {},
    "plain": {"chunk": [4, 4096]},
    "encoded": {"chunk": [4, 4096], "codec": "deflate:1"},
    "large": {"chunk": [300, 4096], "codec": "lzf"},
    "virtual": {"layout": "virtual"},
    "shards": {"format": "hdf5", "shards": 2, "chunk": [16, 4096]},
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("existing", [False, True])
def test_a_disk_that_is_full(new_probe, tmp_path, layout, existing):
    """The limit on the size of a file stands for it: chunked files reach it while others still
    encode. Nothing hangs."""
    if existing and layout in ("virtual", "shards"):
        pytest.skip("added to nothing")
    out = tmp_path / "out"
    out.mkdir()
    path = out / ("x" if layout == "shards" else "x.h5")
    (tmp_path / "values").write_bytes(LARGE.tobytes())
    if existing:
        with h5py.File(path, "w") as file:
            file["old"] = LARGE[:10]
    before = contents(out)
    probe = new_probe(
        prefix=["env", "--ignore-signal=XFSZ", "prlimit", "--fsize=600000"], timeout=60
    )
    for threads in (1, 2, 8, 64):
        probe.batch(
            [
                {"do": "context", "threads": threads},
                {"do": "tiling", "kind": "even", "shape": [512, 4096], "axis": 0, "tiles": 2},
                {"do": "array", "dtype": "|u1"},
                {"do": "fill", "path": str(tmp_path / "values")},
            ]
        )
        error = probe.refused("save", path=str(path), dataset="x", **LAYOUTS[layout])
        check_error(error, ("io", "limit_exceeded"), [path], path)
        assert ".tegula-" not in error["message"]
        assert contents(out) == before and sorted(os.listdir(out)) == sorted(
            str(name) for name in before
        )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_cancelled(new_probe, tmp_path, layout):
    out = tmp_path / "out"
    out.mkdir()
    path = out / ("x" if layout == "shards" else "x.h5")
    (tmp_path / "values").write_bytes(LARGE.tobytes())
    probe = new_probe(timeout=60)
    for threads in (1, 2, 8, 64):
        probe.batch(
            [
                {"do": "context", "threads": threads},
                {"do": "tiling", "kind": "even", "shape": [512, 4096], "axis": 0, "tiles": 2},
                {"do": "array", "dtype": "|u1"},
                {"do": "fill", "path": str(tmp_path / "values")},
            ]
        )
        answer = probe.ask(
            {
                "do": "save",
                "path": str(path),
                "progress": True,
                "cancel_after": 0,
                **LAYOUTS[layout],
            }
        )
        check_error(answer["error"], "cancelled", ["cancelled"])
        assert os.listdir(out) == []
