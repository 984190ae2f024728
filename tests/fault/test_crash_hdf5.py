# HDF5 saves and copies that are killed, before each system call of theirs and at random moments:
# the old file or the new one, whole, judged by h5py, and nothing else in the folder after the next
# save. A real disk that is full, a folder that may not be written to, a codec that fails.
#
# SPDX-License-Identifier: Apache-2.0
#
# TEGULA_FAULT_ALL=1 (scripts/test --long): up to 999 calls of each kind, and 200 random moments
# instead of 15.
import json
import os
import random
import shutil
import signal
import subprocess
import time

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it judges these files")

import faulty  # noqa: E402
from faulty import BIN, CONTEXT, each, places, preload  # noqa: E402
from test_crash import entries, lines, probe  # noqa: E402

LIBRARY = (
    {"TEGULA_HDF5_LIBRARY": os.environ["TEGULA_HDF5_LIBRARY"]}
    if os.environ.get("TEGULA_HDF5_LIBRARY")
    else {}
)
FAMILIES = [
    "open",
    "write",
    "stat",
    "size",
    "sync",
    "rename",
    "mkdir",
    "remove",
    "close",
    "lock",
    "rights",
]
NEW = numpy.cumsum(numpy.random.default_rng(3).integers(-3, 4, (40, 30)), axis=-1).astype("<i4")
OLD = numpy.full((8, 30), 7, "<i4")
MAKE = [
    {"do": "tiling", "kind": "grid", "shape": [40, 30], "tile": [20, 30]},
    {"do": "array", "dtype": "<i4"},
]
# what is saved, and the dataset that was there before under that name
SAVES = {
    "contiguous": {"dataset": "x"},
    "encoded": {"dataset": "x", "chunk": [7, 30], "codec": "shuffle,deflate:1", "durable": True},
    "virtual": {"dataset": "x", "layout": "virtual"},
    "added": {"dataset": "new", "chunk": [9, 9]},
    "shards": {"shards": 2, "format": "hdf5"},
}


def read(path, name):
    """None: there is no such file or dataset."""
    if path.is_dir():
        return numpy.concatenate([read(part, name) for part in sorted(path.iterdir())])
    if not path.exists():
        return None
    with h5py.File(path) as file:
        return file[name][()] if name in file else None


def make_old(path, name):
    if path.suffix == "":
        path.mkdir()
    for part in [path / "shard_0000.h5", path / "shard_0001.h5"] if path.suffix == "" else [path]:
        with h5py.File(part, "w") as file:
            file["data" if path.suffix == "" else "x"] = OLD
            if name == "added":
                file["g/y"] = OLD * 2


def sweep(folder):
    code, answers = probe(
        lines(CONTEXT, *MAKE, {"do": "save", "path": str(folder / "next.npy"), "overwrite": True})
    )
    assert code == 0 and "error" not in answers[-1], answers


def check_old_or_new(path, name, old, where):
    found = read(path, {"shards": "data", "added": "new"}.get(name, "x"))
    was = (
        None
        if not old or name == "added"
        else numpy.concatenate([OLD, OLD])
        if name == "shards"
        else OLD
    )
    assert (found is None and was is None) or (
        found is not None
        and (numpy.array_equal(found, NEW) or (was is not None and numpy.array_equal(found, was)))
    ), (where, found)
    if name == "added" and old:
        assert numpy.array_equal(read(path, "x"), OLD) and numpy.array_equal(
            read(path, "g/y"), OLD * 2
        ), where


@pytest.mark.parametrize(
    "name, old",
    [(name, True) for name in SAVES]
    + [(name, False) for name in SAVES if faulty.EVERY or name == "virtual"],
)
def test_killed_before_each_call(name, old, tmp_path):
    values = tmp_path / "values"
    values.write_bytes(NEW.tobytes())
    warm = {"do": "save", "overwrite": True, "codec": "deflate"}

    def text(target):
        save = {"do": "save", "path": str(target), "overwrite": old, **SAVES[name]}
        return lines(
            CONTEXT,
            *MAKE,
            {"do": "fill", "path": str(values)},
            {**warm, "path": str(tmp_path / ("warm%s.h5" % target.parent.name))},
            [{"do": "faults", "on": True}, save, {"do": "faults", "on": False}],
        )

    def target_in(folder):
        folder.mkdir()
        target = folder / ("x" if name == "shards" else "x.h5")
        if old:
            make_old(target, name)
        return target

    report = tmp_path / "report"
    target = target_in(tmp_path / "clean")
    code, answers = probe(text(target), report=report, **LIBRARY)
    assert code == 0 and not any("error" in answer for answer in answers), answers
    check_old_or_new(target, name, old, "clean")
    calls = json.loads(report.read_text())["calls"]

    def check(number, family, n):
        folder = tmp_path / str(number)
        target = target_in(folder)
        code, _ = probe(text(target), "%s:%d:KILL" % (family, n), **LIBRARY)
        where = "%s:%d" % (family, n)
        assert code == -signal.SIGKILL, (where, code)
        check_old_or_new(target, name, old, where)
        sweep(folder)
        check_old_or_new(target, name, old, where)
        # those of a virtual file, and of no other
        kept = [one for one in entries(folder) if ".h5.tiles-" in one]
        assert len(kept) == (
            name == "virtual" and target.exists() and numpy.array_equal(read(target, "x"), NEW)
        ), (where, kept)
        assert entries(folder) == sorted(
            ["next.npy", *kept] + ([target.name] if target.exists() else [])
        ), (where, entries(folder))
        assert not [
            path
            for path in folder.rglob(".*")
            if path.name not in (".tegula-companion", ".tegula-file")
        ], where

    most = {"rename": 9, "mkdir": 2, "write": 2} if faulty.SANITIZER == "" else {}
    plan = [
        (family, n)
        for family in FAMILIES
        for n in places(calls[family], 999 if faulty.EVERY else most.get(family, 1))
    ]
    assert calls["rename"] > 0 and calls["write"] > 0 and len(plan) > 8
    assert each(plan, check) == len(plan)


@pytest.mark.skipif(faulty.SANITIZER != "", reason="the same code, and a matter of time")
def test_copies_killed_at_random_moments(tmp_path):
    """A copy of one file to the same place, again and again, in turn encoded, virtual, and
    beside another dataset."""
    seconds = random.Random(20240612)
    shape, folder = (900, 400), tmp_path / "folder"
    folder.mkdir()
    with h5py.File(folder / "added.h5", "w") as file:
        file["old"] = OLD
    kinds = {
        "encoded.h5": ["--codec", "shuffle,deflate:1"],
        "virtual.h5": ["--layout", "virtual", "--tiles", "3"],
        "added.h5": ["--to-dataset", "data"],
    }
    now, took, killed = {}, {}, 0
    rounds = 200 if faulty.EVERY else 15
    for turn in range(rounds + 3):
        name = list(kinds)[turn % 3]
        numpy.save(tmp_path / "in.npy", numpy.full(shape, turn, "<i4"))
        words = [
            BIN,
            "copy",
            "-q",
            str(tmp_path / "in.npy"),
            str(folder / name),
            "--overwrite",
            *kinds[name],
        ]
        started = time.monotonic()
        running = subprocess.Popen(words, env={**os.environ, **LIBRARY})
        if turn < 3:
            assert running.wait(timeout=60) == 0
            # not that of a machine that stood still
            took[name] = min(2, time.monotonic() - started)
        else:
            time.sleep((0.3 + 0.8 * seconds.random()) * took[name])
            # the machine is not always as busy
            took[name] *= 1.1 if running.poll() is None else 0.6
        running.kill()
        running.wait()
        found = read(folder / name, "data")
        assert (
            found.shape == shape
            and (found == found[0, 0]).all()
            and found[0, 0] in (now.get(name), turn)
        ), (turn, now, found)
        killed += found[0, 0] != turn
        now[name] = int(found[0, 0])
        if name == "added.h5":
            assert numpy.array_equal(read(folder / name, "old"), OLD)
    sweep(folder)
    assert not [one for one in entries(folder) if one.startswith(".")]
    assert killed > rounds // 10  # else the moments were all too late


# ---- what publishing promises, for every layout --------------------------------------------------


def saved(tmp_path, target, **options):
    (tmp_path / "values").write_bytes(NEW.tobytes())
    report = options.pop("log", None)
    code, answers = probe(
        lines(
            CONTEXT,
            *MAKE,
            {"do": "fill", "path": str(tmp_path / "values")},
            {"do": "save", "path": str(target), **options},
        ),
        **LIBRARY,
        **({"TEGULA_FAULT_LOG": str(report)} if report else {}),
    )
    assert code == 0, answers
    return answers[-1].get("error")


@pytest.mark.parametrize("name", SAVES)
def test_durable_order(name, tmp_path):
    """The data of every file is on the disk before the rename, the folder after it."""
    folder, log = tmp_path / "folder", tmp_path / "log"
    target = folder / ("x" if name == "shards" else "x.h5")
    folder.mkdir()
    if name == "added":
        make_old(target, name)
    assert saved(tmp_path, target, **{**SAVES[name], "durable": True, "log": log}) is None
    events = [line.split(" ")[:3] for line in log.read_text().splitlines()]
    last = [number for number, event in enumerate(events) if event[0] == "rename"][-1]
    assert events[last][2] == str(target)
    synced = {}
    for number, event in enumerate(events):
        synced.setdefault(event[1], []).append((event[0], number))
    files = [
        path
        for path in synced
        if path.endswith(("/data", ".h5")) and any(kind == "write" for kind, _ in synced[path])
    ]
    assert len(files) == {"virtual": 3, "shards": 2}.get(name, 1), events
    for path in files:
        written = max(number for kind, number in synced[path] if kind == "write")
        assert any(kind == "sync" and written < number < last for kind, number in synced[path]), (
            path,
            events,
        )
    assert ["sync", str(folder), ""] in events[last:]


@pytest.mark.parametrize("name", ["contiguous", "encoded", "virtual", "added"])
def test_rights_and_links(name, tmp_path):
    """What is replaced gives its mode to the new file; a symbolic link is written through; new
    files have what the umask leaves."""
    (tmp_path / "real").mkdir()
    target = tmp_path / "real" / "x.h5"
    make_old(target, "encoded")
    target.chmod(0o640)
    os.symlink("real/x.h5", tmp_path / "soft.h5")
    before = os.umask(0o027)
    try:
        assert saved(tmp_path, tmp_path / "soft.h5", **{**SAVES[name], "overwrite": True}) is None
        assert saved(tmp_path, tmp_path / "new.h5", **SAVES[name]) is None
    finally:
        os.umask(before)
    assert (tmp_path / "soft.h5").is_symlink() and not target.is_symlink()
    assert (
        target.stat().st_mode & 0o777 == 0o640
        and (tmp_path / "new.h5").stat().st_mode & 0o777 == 0o640
    )
    for path in (tmp_path / "soft.h5", tmp_path / "new.h5"):
        assert numpy.array_equal(read(path, SAVES[name]["dataset"]), NEW)
    for folder in tmp_path.rglob("*.tiles-*"):
        assert folder.stat().st_mode & 0o777 == 0o750 and all(
            tile.stat().st_mode & 0o777 == 0o640 for tile in folder.glob("tile*")
        )


@pytest.mark.parametrize("name", ["contiguous", "virtual", "added", "shards"])
def test_what_does_not_fit_is_refused_before_the_first_byte(name, tmp_path):
    options = {**SAVES[name]}
    options.pop("codec", None)
    target = tmp_path / "out" / ("x" if name == "shards" else "x.h5")
    target.parent.mkdir()
    (tmp_path / "values").write_bytes(NEW.tobytes())
    code, answers = probe(
        lines(
            CONTEXT,
            *MAKE,
            {"do": "fill", "path": str(tmp_path / "values")},
            {"do": "save", "path": str(target), **options},
        ),
        **LIBRARY,
        TEGULA_FAULT_FREE="4096",
    )
    error = answers[-1]["error"]
    assert (
        code == 0
        and error["status"] == "io"
        and error["errno"] == 28
        and "4800 bytes needed, 4096 free" in error["message"]
    ), error
    assert list(target.parent.iterdir()) == []


# ---- failures ------------------------------------------------------------------------------------

# 1.2 MB that no codec makes shorter
LARGE = numpy.random.default_rng(9).integers(0, 256, (300, 4096), dtype="u1")


def refused(path, *options, env=None, prefix=()):
    """The error of a copy that must fail; what is in the folder is as it was."""
    before = {one: one.read_bytes() for one in path.parent.rglob("*") if one.is_file()}
    done = subprocess.run(
        [*prefix, BIN, "copy", "--json", str(path.parents[1] / "in.npy"), str(path), *options],
        capture_output=True,
        timeout=60,
        env={**os.environ, **LIBRARY, **(env or {})},
    )
    error = json.loads(done.stdout)["error"]
    assert (
        done.returncode == 1 and error["path"] == str(path) and ".tegula-" not in error["message"]
    ), error
    assert {
        one: one.read_bytes() for one in path.parent.rglob("*") if one.is_file()
    } == before and not [*path.parent.rglob(".tegula*")]
    return error


def test_full_tmpfs(tmp_path):
    """A real disk of 1 MiB, with an old file on it."""
    disk = tmp_path / "disk"
    disk.mkdir()
    numpy.save(tmp_path / "in.npy", LARGE)
    if (
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True
        ).returncode
        != 0
    ):
        pytest.skip("no right to mount a tmpfs")
    try:
        make_old(disk / "old.h5", "added")
        for options in (
            [],
            ["--chunks", "10,4096"],
            ["--codec", "deflate:1"],
            ["--layout", "virtual"],
        ):
            for name in ("new.h5", "old.h5"):
                whole = (
                    ["--overwrite", "--to-dataset", "x"]
                    if name == "old.h5" and "virtual" not in options
                    else ["--to-dataset", "z"]
                )
                if name == "old.h5" and "virtual" in options:
                    continue  # not added to a file
                error = refused(disk / name, *whole, *options)
                assert error["status"] == "io" and error["errno"] == 28, error
        error = refused(disk / "shards", "--format", "hdf5", "--shards", "3", "--codec", "lzf")
        assert error["status"] == "io"
    finally:
        subprocess.run(["umount", disk], check=True)


def test_adding_needs_room_for_a_copy_of_the_old_file(tmp_path):
    """On a disk without reflinks: what is added would fit, and not the copy besides.
    The message counts both."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if (
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], capture_output=True
        ).returncode
        != 0
    ):
        pytest.skip("no right to mount a tmpfs")
    try:
        with h5py.File(disk / "old.h5", "w") as file:
            file["x"] = numpy.arange(100_000.0)
        copied = (disk / "old.h5").stat().st_size
        for rows, options in ((120_000, []), (170_000, []), (170_000, ["--codec", "deflate:1"])):
            new = numpy.random.default_rng(rows).integers(0, 1 << 62, rows)
            numpy.save(tmp_path / "in.npy", new)
            error = refused(disk / "old.h5", "--to-dataset", "z", *options)
            sum_of_both = "%d bytes needed: %d for what is added, %d for a copy of the old file" % (
                copied + new.nbytes,
                new.nbytes,
                copied,
            )
            assert (
                error["errno"] == 28
                and (
                    sum_of_both
                    if not options
                    else "%d bytes needed for a copy of the old file, more for" % copied
                )
                in error["message"]
            ), error
        numpy.save(tmp_path / "in.npy", new[:30_000])
        subprocess.run(
            [BIN, "copy", tmp_path / "in.npy", disk / "old.h5", "--to-dataset", "z", "--quiet"],
            env={**os.environ, **LIBRARY},
            check=True,
        )
        with h5py.File(disk / "old.h5") as file:
            assert numpy.array_equal(file["z"][()], new[:30_000]) and numpy.array_equal(
                file["x"][()], numpy.arange(100_000.0)
            )
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None,
    reason="needs root, and setpriv to give it up",
)
def test_a_folder_that_may_not_be_written_to(tmp_path):
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents[:2]:
        parent.chmod(parent.stat().st_mode | 0o011)
    numpy.save(tmp_path / "in.npy", LARGE[:4])
    folder = tmp_path / "folder"
    folder.mkdir()
    make_old(folder / "x.h5", "added")
    folder.chmod(0o555)
    prefix = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    for name, options in (
        ("x.h5", ["--to-dataset", "z"]),
        ("x.h5", ["--to-dataset", "x", "--overwrite"]),
        ("y.h5", ["--codec", "lzf"]),
        ("z.h5", ["--layout", "virtual"]),
    ):
        error = refused(folder / name, *options, prefix=prefix)
        assert error["status"] == "permission" and error["errno"] == 13, error


def test_a_copy_with_scales_and_storage_that_fails(tmp_path):
    """All of it is there, or one error and nothing:
    what cannot be read or written is never only listed as dropped."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"], file["time"] = NEW, numpy.arange(40.0)
        file["time"].make_scale("time")
        file["time"].attrs["unit"] = file["x"].attrs["unit"] = "K"
        file["x"].dims[0].attach_scale(file["time"])
    (tmp_path / "out").mkdir()

    def run(number, fault=None):
        target, report = tmp_path / "out" / ("%s.h5" % number), tmp_path / ("report%s" % number)
        done = subprocess.run(
            [
                BIN,
                "copy",
                "--json",
                str(tmp_path / "a.h5"),
                str(target),
                "--dataset",
                "x",
                "--threads",
                "1",
            ],
            capture_output=True,
            timeout=60,
            env={
                **os.environ,
                **LIBRARY,
                "LD_PRELOAD": preload(),
                "TEGULA_FAULT_REPORT": str(report),
                **({"TEGULA_FAULT": fault} if fault else {}),
            },
        )
        answer = json.loads(done.stdout)
        if done.returncode == 0:
            with h5py.File(target) as file:
                assert answer["dropped"] == [] and numpy.array_equal(
                    file["x"].dims[0]["time"][...], numpy.arange(40.0)
                ), fault
                assert (
                    numpy.array_equal(file["x"][...], NEW)
                    and file["time"].attrs["unit"] == file["x"].attrs["unit"] == "K"
                ), fault
        else:
            assert answer["error"]["status"] in ("io", "short_file") and not target.exists(), (
                fault,
                answer,
            )
        return done.returncode, json.loads(report.read_text())["calls"]

    code, calls = run("clean")
    assert code == 0
    kinds = [
        ("read", "EIO"),
        ("read", "short"),
        ("write", "EIO"),
        ("write", "ENOSPC"),
        ("write", "short"),
    ]
    plan = [
        ("%s:%d:%s" % (family, n, kind),)
        for family, kind in kinds
        for n in places(calls[family], 999 if faulty.EVERY else 6)
    ]
    failed = []

    def check(number, fault):
        failed.append(run(number, fault)[0])

    assert each(plan, check) == len(plan) and sum(failed) > 6 and failed.count(0) > 6
    assert not [*(tmp_path / "out").rglob(".tegula*")]


FAILING = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
size_t ZSTD_compressCCtx(void *c, void *to, size_t room, const void *from, size_t size, int level) {
  typedef size_t function(void *, void *, size_t, const void *, size_t, int);
  static function *real;
  static atomic_int calls;
  if (!real) real = (function *)dlsym(RTLD_NEXT, "ZSTD_compressCCtx");
  return atomic_fetch_add(&calls, 1) == 2 ? (size_t)-1 : real(c, to, room, from, size, level);
}
"""


@pytest.mark.skipif(
    faulty.SANITIZER != "", reason="the sanitizer's runtime stands in front of the library"
)
@pytest.mark.parametrize("threads", ["1", "4"])
def test_a_codec_that_fails_on_the_third_chunk(tmp_path, threads):
    """A library in front of libzstd: the save ends with that error, the old file stays."""
    (tmp_path / "fail.c").write_text(FAILING)
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O1", "-o", tmp_path / "fail.so", tmp_path / "fail.c", "-ldl"],
        check=True,
    )
    numpy.save(tmp_path / "in.npy", LARGE)
    folder = tmp_path / "folder"
    folder.mkdir()
    make_old(folder / "x.h5", "added")
    for name, options in (
        ("x.h5", ["--to-dataset", "z"]),
        ("y.h5", []),
        ("shards", ["--format", "hdf5", "--shards", "2"]),
    ):
        error = refused(
            folder / name,
            *options,
            "--codec",
            "zstd",
            "--chunks",
            "10,4096",
            "--threads",
            threads,
            env={"LD_PRELOAD": str(tmp_path / "fail.so")},
        )
        assert "could not encode a chunk" in error["message"] and "zstd" in error["message"], error
    assert (
        subprocess.run(
            [
                BIN,
                "copy",
                "-q",
                tmp_path / "in.npy",
                folder / "x.h5",
                "--to-dataset",
                "z",
                "--codec",
                "zstd",
            ],
            env={**os.environ, **LIBRARY},
        ).returncode
        == 0
    )
    assert numpy.array_equal(read(folder / "x.h5", "x"), OLD)
