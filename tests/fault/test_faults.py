# Every system call and every allocation fails once, for whole commands and calls of the interface:
# each run ends in the right data or in one clean error, never both; nothing is lost, nothing is
# left behind, and an old target stays as it was.
#
# SPDX-License-Identifier: Apache-2.0
#
# A clean run counts the calls of each family; then the Nth of them fails, for every N (a stated
# stride where there are many).
import json
import shutil

import numpy
import pytest

import faulty
from faulty import (
    BIN,
    CONTEXT,
    HARMLESS,
    VALUES,
    Run,
    contents,
    each,
    first_error,
    harmless,
    judge,
    plan,
    probe_run,
    words_of,
)
from reference_hash import content_hash

# ---- commands ------------------------------------------------------------------------------------

COMMANDS = {
    "load": ["load", "plain", "--threads", "1"],
    "load-hash": ["load", "plain", "--threads", "1", "--hash", "--tiles", "3"],
    "load-threads": ["load", "plain", "--threads", "3", "--hash"],
    "load-staged": ["load", "swapped", "--threads", "1", "--hash"],
    "load-fortran": ["load", "fortran.npy", "--threads", "2", "--tiles", "2", "--hash"],
    "load-grid": ["load", "plain", "--threads", "1", "--tile-shape", "4,2", "--hash"],
    "load-box": ["load", "plain", "--threads", "1", "--box", "3:9,1:4", "--hash"],
    "load-pattern": ["load", "plain/shard_*.npy", "--threads", "1", "--hash", "-v"],
    "load-pattern-folders": ["load", "pl?[i]n/shard_*.npy", "--threads", "1", "--hash", "-v"],
    "load-pattern-plain-name": [
        "load",
        "pl?[i]n/shard_00.npy",
        "--threads",
        "1",
        "--hash",
        "--box",
        ":",
    ],
    "load-list": [
        "load",
        "plain/shard_00.npy",
        "plain/shard_01.npy",
        "--threads",
        "1",
        "--repeat",
        "2",
    ],
    "load-raw": [
        "load",
        "raw.bin",
        "--format",
        "raw",
        "--dtype",
        ">f4",
        "--shape",
        "17,6",
        "--offset",
        "8",
        "--threads",
        "1",
        "--hash",
    ],
    "load-check": ["load", "ramp", "--threads", "1", "--check-seed", "0"],
    "load-side-file": ["load", "sided", "--threads", "1", "--hash"],
    "load-manifest": ["load", "plain.json", "--threads", "1", "--hash"],
    "load-two-manifests": ["load", "plain.json", "swapped.json", "--threads", "1"],
    "load-direct": ["load", "plain", "--io", "direct", "--threads", "1", "--hash"],
    "load-ring": ["load", "plain", "--io", "io_uring", "--threads", "1", "--hash"],
    "info": ["info", "plain", "--threads", "1"],
    "info-side-file": ["info", "sided", "-v", "--threads", "1"],
    "info-manifest": ["info", "plain.json", "-v", "--threads", "1"],
    "plan": ["plan", "plain", "--tiles", "3", "--threads", "1"],
    "plan-ranks": ["plan", "fortran.npy", "--ranks", "4", "--axis", "1", "--threads", "1"],
    "plan-side-file": ["plan", "sided", "--tile-shape", "4,2", "--threads", "1"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_command_that_reads(name, inputs, tmp_path):
    command, *words = words_of(COMMANDS[name], inputs)

    def run(number, fault=None):
        return Run([BIN, command, "--json", *words], tmp_path / ("report%s" % number), fault)

    clean = run("clean")
    expected = judge(clean, clean.answer())
    assert expected is not None
    if "--hash" in words and "--box" not in words:
        assert expected["hash"] == content_hash(VALUES)

    def check(number, family, kind, fault):
        got = run(number, fault)
        answer = judge(got, expected)
        got.expect(
            got.counted["strikes"] > 0 or family == "memory" or "threads" in name,
            "the fault did not strike",
        )
        # the command's own note: an error will do
        side_file = name == "load-check" and kind == "EAGAIN"
        got.expect(
            answer is not None or (family, kind) not in HARMLESS or side_file,
            "this is no reason to fail",
        )

    assert each(plan(clean.counted["calls"]), check) > 20


def test_listing_that_fails_says_nothing_of_the_side_file(inputs, tmp_path):
    """Two of four files, whose rows are counted in the whole folder: that it cannot be listed is
    the error, not its length."""
    folder = shutil.copytree(inputs / "sided", tmp_path / "listed")
    (folder / "shard_meta.json").write_text(
        json.dumps({"dtype": ">f4", "row_shape": [6], "offset": 8, "rows": faulty.ROWS})
    )
    words = [BIN, "load", "--json", "--threads", "1", "--hash", folder / "part_[01].bin"]
    clean = Run(words, tmp_path / "report")
    assert clean.answer()["hash"] == content_hash(VALUES[: sum(faulty.ROWS[:2])])
    for number in range(1, clean.counted["calls"]["list"] + 1):
        got = Run(words, tmp_path / "report", "list:%d:EIO" % number)
        assert judge(got, clean.answer()) is not None or got.answer()["error"]["status"] == "io"


@pytest.mark.parametrize("command", ["load", "info", "verify", "plan"])
def test_deadline_that_passes_while_files_are_described(command, inputs, tmp_path):
    """On slow storage opening is most of the work: no file is opened any more."""
    words = [BIN, command, inputs / "plain", "--json", "--threads", "1"]
    clean = Run(words, tmp_path / "report")
    late = Run([*words, "--timeout", "0.000001"], tmp_path / "report")
    late.check_end()
    assert late.code == 1 and late.answer()["error"]["status"] == "timeout"
    assert late.counted["calls"]["open"] <= clean.counted["calls"]["open"] - len(faulty.ROWS)


def write_words(folder):
    return [
        BIN,
        "write",
        folder,
        "--json",
        "--threads",
        "1",
        "--num-shards",
        "3",
        "--shape",
        "40,3",
        "--seed",
        "5",
    ]


def test_write(tmp_path):
    """All of the files, or none and not even the folder."""
    good = tmp_path / "good" / "shards"
    clean = Run(write_words(good), tmp_path / "report")
    expected = judge(clean, clean.answer())
    loaded = numpy.concatenate([numpy.load(path) for path in sorted(good.glob("*.npy"))])
    assert loaded.shape == (40, 3)

    def check(number, family, kind, fault):
        parent = tmp_path / ("parent%d" % number)
        folder = parent / "shards"
        got = Run(write_words(folder), tmp_path / ("report%d" % number), fault)
        answer = judge(got, {**expected, "dir": str(folder)})
        if answer is not None:
            got.expect(
                contents(folder) == contents(good), "not the files of a run without the fault"
            )
            shutil.rmtree(parent)
        elif not (got.report_lost and parent.exists() and contents(folder) == contents(good)):
            got.expect(not parent.exists(), "left behind: %s" % sorted(parent.rglob("*")))

    assert each(plan(clean.counted["calls"]), check) > 20


def test_clean(tmp_path):
    """Removes its own files only, and never says that it did what it did not do."""

    def make(folder):
        folder.mkdir(parents=True)
        made = Run(write_words(folder / "shards"), folder / "report")
        assert made.code == 0, made.err
        return folder / "shards"

    def words(folder):
        return [BIN, "clean", folder, "--json"]

    folder = make(tmp_path / "good")
    clean = Run(words(folder), tmp_path / "report")
    expected = judge(clean, clean.answer())
    assert expected["removed"] == 3 and not folder.exists()
    original = make(tmp_path / "original")

    def check(number, family, kind, fault):
        folder = tmp_path / ("copy%d" % number) / "shards"
        shutil.copytree(original, folder)
        (folder.parent / "neighbour.npy").write_bytes(b"not mine")
        got = Run(words(folder), tmp_path / ("report%d" % number), fault)
        answer = judge(
            got, {**expected, "dir": str(folder)}, both=("dir", "removed", "left", "folder_kept")
        )
        got.expect(answer is None or not folder.exists(), "it says that the folder is gone")
        got.expect(
            answer is not None or folder.exists() or got.report_lost,
            "it does not say that the folder is gone",
        )
        got.expect((folder.parent / "neighbour.npy").exists(), "a file outside is gone")
        shutil.rmtree(folder.parent)

    removals = [
        ("remove", "EIO", "remove:%d:EIO" % n)
        for n in range(1, clean.counted["calls"]["remove"] + 1)
    ]
    assert each([*plan(clean.counted["calls"]), *removals], check) > 20


# ---- calls of the interface ----------------------------------------------------------------------

LOAD = [
    {"do": "tiling", "kind": "even", "shape": [17, 6], "axis": 0, "tiles": 3},
    {"do": "array", "dtype": "<f4"},
    {"do": "load"},
]
SHARDS = {"do": "save", "shards": 3}
SAVES = {
    "file": {"do": "save"},
    "fortran": {"do": "save", "order": "F", "byte_order": ">"},
    "shards": SHARDS,
    "background": {"do": "save", "async": True},
    "background-shards": {**SHARDS, "async": True},
    "fenced": {"do": "save", "detached": True},
    "fenced-shards": {**SHARDS, "detached": True},
    "durable": {"do": "save", "durable": True},
    "durable-shards": {**SHARDS, "durable": True},
}


@pytest.mark.parametrize("background", [False, True], ids=["waiting", "background"])
@pytest.mark.parametrize("name", ["plain", "swapped", "fortran.npy"])
def test_load_through_the_interface(name, background, inputs, tmp_path):
    watched = [
        CONTEXT,
        {"do": "open", "path": str(inputs / name)},
        *LOAD[:-1],
        {**LOAD[-1], "async": background},
    ]

    def run(number, fault=None):
        dump = tmp_path / ("dump%s" % number)
        got, answers = probe_run(
            tmp_path / ("report%s" % number),
            watched,
            [{"do": "dump", "path": str(dump)}],
            fault=fault,
        )
        error = first_error(got, answers)
        got.expect(error is not None or dump.read_bytes() == VALUES.tobytes(), "wrong data")
        return got, error

    clean, error = run("clean")
    assert error is None

    def check(number, family, kind, fault):
        got, error = run(number, fault)
        got.expect(
            error is None or not harmless(family, kind, background), "this is no reason to fail"
        )

    assert each(plan(clean.counted["calls"]), check) > 20


def target_of(folder, name):
    return folder / ("saved" if "shards" in name else "saved.npy")


def make_target(target):
    """An old target of another shape."""
    if target.suffix:
        numpy.save(target, numpy.zeros(3))
    else:
        target.mkdir()
        numpy.save(target / "shard_0000.npy", numpy.zeros((3, 2)))
        numpy.save(target / "shard_0001.npy", numpy.ones((1, 2)))


def whole(target):
    """What numpy finds in the target."""
    files = sorted(target.iterdir()) if target.is_dir() else [target]
    return numpy.concatenate([numpy.load(path) for path in files])


@pytest.mark.parametrize("old", [False, True], ids=["new", "overwrite"])
@pytest.mark.parametrize("name", SAVES)
def test_save(name, old, inputs, tmp_path):
    """New and whole, or as it was; nothing else in the folder."""
    before = [CONTEXT, {"do": "open", "path": str(inputs / "plain")}, *LOAD]

    def run(folder, report, fault=None):
        folder.mkdir()
        target = target_of(folder if old else folder / "made" / "here", name)
        if old:
            make_target(target)
        was = contents(folder)
        watched = [{**SAVES[name], "path": str(target), "overwrite": old}]
        if "fenced" in name:
            watched.append({"do": "fence"})
        got, answers = probe_run(report, watched, before=before, fault=fault)
        return got, first_error(got, answers), target, was

    clean, error, target, _ = run(tmp_path / "clean", tmp_path / "report")
    assert error is None and numpy.array_equal(whole(target), VALUES)
    assert faulty.SANITIZER or clean.counted["calls"]["write"] > 0
    durable, background = (
        SAVES[name].get("durable", False),
        "background" in name or "fenced" in name,
    )

    def check(number, family, kind, fault):
        folder = tmp_path / ("folder%d" % number)
        got, error, target, was = run(folder, tmp_path / ("report%d" % number), fault)
        inside = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
        if error is None:
            got.expect(numpy.array_equal(whole(target), VALUES), "wrong data")
            extra = set(contents(folder)) - {
                path.relative_to(folder) for path in [target, *target.rglob("*")]
            }
            got.expect(not extra, "left beside the target: %s" % inside)
        elif durable and family in ("sync", "open", "memory") and contents(folder) != was:
            # it has its name already, but that name may not be on the disk: neither old nor new
            # would be the whole truth
            got.expect(numpy.array_equal(whole(target), VALUES), "neither old nor new")
        else:
            got.expect(contents(folder) == was, "the old target is not as it was: %s" % inside)
            got.expect(old or inside == [], "folders were left: %s" % inside)
        got.expect(
            error is None or not harmless(family, kind, background), "this is no reason to fail"
        )
        shutil.rmtree(folder)

    # what is removed are the old target, and temporary files after another failure; a folder that
    # cannot be removed may stay
    removals = [
        ("remove", "EIO", "remove:%d:EIO" % n)
        for n in range(1, clean.counted["calls"]["remove"] + 1)
    ]
    assert each([*plan(clean.counted["calls"]), *removals], check) > 20


# ---- the instrument itself -----------------------------------------------------------------------


def test_lost_descriptors_and_memory_are_seen(inputs, tmp_path):
    words = [BIN, "load", inputs / "plain", "--json", "--threads", "1"]
    clean = Run(words, tmp_path / "report")
    calls = clean.counted["calls"]
    assert (
        calls["open"] >= 4
        and calls["read"] >= 5
        and calls["stat"] >= 8
        and calls["close"] >= 4
        and calls["list"] >= 6
    )
    lost = Run(words, tmp_path / "report", "close:1+:keep")
    assert lost.code == 0 and lost.counted["descriptors"] >= 4
    with pytest.raises(AssertionError, match="descriptor"):
        lost.check_end()
    if not faulty.SANITIZER:
        assert calls["memory"] >= 50 and clean.counted["live"] == 0
        lost = Run(words, tmp_path / "report", "release:1+:keep")
        assert lost.code == 0 and lost.counted["live"] >= 30
        with pytest.raises(AssertionError, match="memory"):
            lost.check_end()


def test_looking_for_libhdf5_without_memory(tmp_path):
    """glob(3) of glibc 2.36 frees twice where its memory runs out below a pattern."""
    numpy.save(tmp_path / "x.npy", VALUES)
    libraries = tmp_path / "lib" / "python3.11" / "site-packages" / "h5py.libs"
    libraries.mkdir(parents=True)
    (libraries / "libhdf5-1.so.310").touch()
    environment = {"PATH": "/usr/bin:/bin", "VIRTUAL_ENV": str(tmp_path)}
    for n in range(1, 50):
        run = Run(
            [BIN, "load", "--json", tmp_path / "x.npy"],
            tmp_path / "report",
            "memory:%d:ENOMEM" % n,
            environment=environment,
        )
        run.check_end()
