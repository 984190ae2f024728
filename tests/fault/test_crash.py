# Saves that are killed, before each system call of theirs and at random moments: the target is the
# old or the new array, whole, and the next save leaves nothing else in the folder. Disks that are
# full, limits, and what is on the disk before it gets its name.
#
# SPDX-License-Identifier: Apache-2.0
#
# TEGULA_FAULT_ALL=1 (scripts/test --long): 200 random moments instead of 50,
# and every call of `tegula write`.
import json
import os
import random
import resource
import select
import signal
import stat
import subprocess
import time

import numpy
import pytest

import faulty
from faulty import BIN, CONTEXT, PROBE, VALUES, Run, each, places, preload
from probe import Probe

FAMILIES = [
    "open",
    "write",
    "stat",
    "size",
    "sync",
    "rename",
    "mkdir",
    "list",
    "remove",
    "close",
    "lock",
    "rights",
]
OLD = numpy.full((3, 2), 7.5, "f8")
MAKE = [
    {"do": "tiling", "kind": "even", "shape": [17, 6], "axis": 0, "tiles": 3},
    {"do": "array", "dtype": "<f4"},
]
SAVES = {"file": {}, "shards": {"shards": 3}, "durable-shards": {"shards": 2, "durable": True}}


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def probe(text, fault=None, report=None, **settings):
    """Runs the probe until its input ends or it is killed: the exit status,
    and how many answers there were."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith("TEGULA_")}
    variables.update(LD_PRELOAD=preload(), TEGULA_FAULT_WINDOW="1", **settings)
    if fault:
        variables["TEGULA_FAULT"] = fault
    if report:
        variables["TEGULA_FAULT_REPORT"] = str(report)
    done = subprocess.run([PROBE], env=variables, input=text, capture_output=True, timeout=60)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def read(target):
    """What numpy finds; None when there is nothing."""
    if target.is_dir():
        return numpy.concatenate([numpy.load(path) for path in sorted(target.iterdir())])
    return numpy.load(target) if target.exists() else None


def make_old(target):
    if target.suffix:
        numpy.save(target, OLD)
    else:
        target.mkdir()
        numpy.save(target / "shard_0000.npy", OLD[:2])
        numpy.save(target / "shard_0001.npy", OLD[2:])


def entries(folder):
    return sorted(path.name for path in folder.iterdir())


def sweep(folder):
    """The next save in the folder, by another process that nothing happens to."""
    code, answers = probe(
        lines(CONTEXT, *MAKE, {"do": "save", "path": str(folder / "next.npy"), "overwrite": True})
    )
    assert code == 0 and "error" not in answers[-1], answers


@pytest.mark.parametrize("old", [False, True], ids=["new", "overwrite"])
@pytest.mark.parametrize("name", SAVES)
def test_killed_before_each_call(name, old, tmp_path):
    values = tmp_path / "values"
    values.write_bytes(VALUES.tobytes())

    def text(target):
        save = {"do": "save", "path": str(target), "overwrite": old, **SAVES[name]}
        watched = [{"do": "faults", "on": True}, save, {"do": "faults", "on": False}]
        return lines(CONTEXT, *MAKE, {"do": "fill", "path": str(values)}, watched)

    def target_in(folder):
        folder.mkdir()
        target = folder / ("x" if "shards" in name else "x.npy")
        if old:
            make_old(target)
        return target

    report = tmp_path / "report"
    target = target_in(tmp_path / "clean")
    code, _ = probe(text(target), report=report)
    assert (
        code == 0
        and numpy.array_equal(read(target), VALUES)
        and entries(target.parent) == [target.name]
    )
    calls = json.loads(report.read_text())["calls"]

    def check(number, family, n):
        folder = tmp_path / str(number)
        target = target_in(folder)
        code, _ = probe(text(target), "%s:%d:KILL" % (family, n))
        where = "%s:%d" % (family, n)
        assert code == -signal.SIGKILL, (where, code)
        for swept in (False, True):
            found = read(target)
            assert found is not None or not old, (where, "the old one is gone")
            assert (
                found is None
                or numpy.array_equal(found, VALUES)
                or (old and numpy.array_equal(found, OLD))
            ), (where, found)
            if not swept:
                sweep(folder)
        assert entries(folder) == sorted(
            ["next.npy"] + ([target.name] if target.exists() else [])
        ), (where, entries(folder))
        assert not list(folder.rglob(".*")), where

    most = 999 if faulty.EVERY else 12 if faulty.SANITIZER == "" else 3
    plan = [(family, n) for family in FAMILIES for n in places(calls[family], most)]
    assert calls["rename"] > 0 and calls["lock"] > 0 and len(plan) > 15
    assert each(plan, check) == len(plan)


def test_write_killed_before_each_call(tmp_path):
    """The folder that `tegula write` makes is whole, empty or not there;
    parents that it made go with the next one."""

    def words(folder):
        return [
            BIN,
            "write",
            folder,
            "--threads",
            "1",
            "--num-shards",
            "2",
            "--shape",
            "40,3",
            "--json",
        ]

    good = tmp_path / "good"
    clean = Run(words(good / "x"), tmp_path / "report")
    assert clean.code == 0, clean.err
    calls, expected = clean.counted["calls"], read_shards(good / "x")

    def check(number, family, n):
        folder = tmp_path / str(number)
        folder.mkdir()
        run = Run(words(folder / "x"), tmp_path / ("report%d" % number), "%s:%d:KILL" % (family, n))
        run.expect(run.code == -signal.SIGKILL, "not killed")
        for _ in range(2):
            left = list(entries(folder / "x")) if (folder / "x").exists() else []
            run.expect(
                left == [] or numpy.array_equal(read_shards(folder / "x"), expected),
                "part of a folder",
            )
            again = Run(words(folder / "next"), tmp_path / ("report%d" % number))
            run.expect(
                again.code == 0 or again.answer()["error"]["status"] == "exists",
                "the next one fails: %s" % again.err,
            )
        run.expect(set(entries(folder)) <= {"x", "next"}, "left: %s" % entries(folder))

    most = 999 if faulty.EVERY else 6 if faulty.SANITIZER == "" else 2
    each([(family, n) for family in FAMILIES for n in places(calls[family], most)], check)


def test_write_that_goes_on_is_not_swept(tmp_path):
    """It is stopped in the middle while others save beside it."""
    running = subprocess.Popen(
        [BIN, "write", tmp_path / "x", "--num-shards", "2000", "--shape", "20000,3", "--quiet"]
    )
    until = time.monotonic() + 60
    while (
        not list(tmp_path.glob(".tegula-*.tmp/data/shard_0003.npy"))
        and running.poll() is None
        and time.monotonic() < until
    ):
        time.sleep(0.001)
    running.send_signal(signal.SIGSTOP)
    stopped = list(tmp_path.glob(".tegula-*.tmp/data"))
    sweep(tmp_path)
    running.send_signal(signal.SIGCONT)
    assert running.wait(timeout=60) == 0 and stopped
    assert read_shards(tmp_path / "x").shape == (20000, 3) and entries(tmp_path) == [
        "next.npy",
        "x",
    ]


def read_shards(folder):
    return numpy.concatenate([numpy.load(path) for path in sorted(folder.glob("shard_*.npy"))])


@pytest.mark.skipif(faulty.SANITIZER != "", reason="the same code, and a matter of time")
def test_killed_at_random_moments(tmp_path):
    """Full arrays of one number, each larger by one than the one before it."""
    seconds = random.Random(20240611)
    shape, kinds = [2000, 1000], [{}, {"shards": 5}]
    targets = [tmp_path / "x.npy", tmp_path / "x"]
    now, killed = [None, None], 0
    took = [0.05, 0.05]
    rounds = 200 if faulty.EVERY else 50
    begin = lines(
        CONTEXT,
        {"do": "tiling", "kind": "even", "shape": shape, "axis": 0, "tiles": 2},
        {"do": "array", "dtype": "<f4"},
    )
    values = tmp_path.parent / (tmp_path.name + "values")
    for turn in range(rounds + 2):
        which = turn % 2
        numpy.full(shape, turn, "f4").tofile(values)
        running = subprocess.Popen([PROBE], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        running.stdin.write(begin + lines({"do": "fill", "path": str(values)}))
        running.stdin.flush()
        for _ in range(4):
            assert b"error" not in running.stdout.readline()
        started = time.monotonic()
        running.stdin.write(
            lines({"do": "save", "path": str(targets[which]), "overwrite": True, **kinds[which]})
        )
        running.stdin.flush()
        if turn < 2:
            assert b"error" not in running.stdout.readline()
            # not that of a machine that stood still
            took[which] = min(2, time.monotonic() - started)
        else:
            time.sleep(seconds.random() * 1.1 * took[which])
            ended = select.select([running.stdout], [], [], 0)[0]
            took[which] *= 0.6 if ended else 1.1  # the machine is not always as busy
        running.kill()
        running.communicate()
        found = read(targets[which])
        assert found.shape == tuple(shape)
        value = int(found[0, 0])
        assert value in (now[which], turn) and (found == value).all(), (turn, now, value)
        killed += value != turn
        now[which] = value
    values.unlink()
    sweep(tmp_path)
    assert entries(tmp_path) == ["next.npy", "x", "x.npy"] and entries(targets[1]) == [
        "shard_%04d.npy" % n for n in range(5)
    ]
    assert killed > rounds // 10  # else the moments were all too late


# ---- what is on the disk before it gets its name -------------------------------------------------


@pytest.mark.parametrize("old", [False, True], ids=["new", "overwrite"])
@pytest.mark.parametrize("shards", [0, 3])
def test_durable_order(shards, old, tmp_path):
    """All data, then the names of the files in a folder, then the rename, then the folder with
    the target, and those above."""
    folder, log = tmp_path / "a" / "b", tmp_path / "log"
    target = folder / ("x" if shards else "x.npy")
    if old:
        folder.mkdir(parents=True)
        make_old(target)
    save = {"do": "save", "path": str(target), "overwrite": old, "durable": True, "shards": shards}
    code, answers = probe(lines(CONTEXT, *MAKE, save), TEGULA_FAULT_LOG=str(log))
    assert code == 0 and "error" not in answers[-1], answers
    # the rename is logged before it is done, a sync with the name that it has then
    events = [line.split(" ")[:3] for line in log.read_text().splitlines()]
    renames = [number for number, event in enumerate(events) if event[0] == "rename"]
    assert len(renames) == 1, events
    at = renames[0]
    data = events[at][1]
    assert data.endswith(".tmp/data") and events[at][2] == str(target)
    synced = [event[1] for event in events[:at] if event[0] == "sync"]
    written = {
        event[1]: number
        for number, event in enumerate(events)
        if event[0] == "write" and event[1].startswith(data)
    }
    assert len(written) == max(1, shards)
    for path, number in written.items():
        assert number < at and ["sync", path, ""] in events[number:at], (path, events)
    if shards:
        assert synced.index(data) > max(synced.index(path) for path in written)
    after = [event[1] for event in events[at + 1 :] if event[0] == "sync"]
    assert after[0] == str(folder)
    if not old:
        assert {str(tmp_path / "a"), str(tmp_path)} <= set(after)


@pytest.mark.parametrize("shards", [0, 3])
def test_durable_tiles_of_another_process(shards, tmp_path):
    """The process that began brings to the disk what others have written, before the rename."""
    target, log = tmp_path / "out", tmp_path / "log"
    (tmp_path / "values").write_bytes(numpy.arange(17 * 6, dtype="<f4").tobytes())
    tile = {
        "dtype": "<f4",
        "tiles": [{"box": [[0, 17], [0, 6]], "values": str(tmp_path / "values")}],
    }
    beginner, writer = (
        Probe(environment={"LD_PRELOAD": preload(), "TEGULA_FAULT_LOG": str(log)}),
        Probe(),
    )
    try:
        beginner.batch([CONTEXT, MAKE[0]])
        beginner.call(
            "save_begin", dtype="<f4", path=str(target), format="npy", shards=shards, durable=True
        )
        writer.batch(
            [CONTEXT, {"do": "save_tiles", "token": beginner.call("save_token")["token"], **tile}]
        )
        begun = len(log.read_text().splitlines())
        beginner.call("save_commit")
    finally:
        beginner.close()
        writer.close()
    events = [line.split(" ")[:3] for line in log.read_text().splitlines()][begun:]
    at = [event[0] for event in events].index("rename")
    data = events[at][1]
    files = [f"{data}/shard_{number:04d}.npy" for number in range(shards)] or [data]
    assert set(files) <= {event[1] for event in events[:at] if event[0] == "sync"}, events
    found = read(target) if shards else numpy.load(target)
    assert found.ravel().tolist() == list(range(17 * 6))


# ---- full disks and limits -----------------------------------------------------------------------


def refused(target, fault=None, prepare=None, **settings):
    """A write of 2 shards of 400 kB that must fail: the error. Nothing is left, and what is
    beside it is as it was."""
    before = {path: path.read_bytes() for path in target.parent.rglob("*") if path.is_file()}
    variables = {key: value for key, value in os.environ.items() if not key.startswith("TEGULA_")}
    if settings or fault:
        variables.update(LD_PRELOAD=preload(), **settings)
    if fault:
        variables["TEGULA_FAULT"] = fault
    text = lines(
        CONTEXT,
        {"do": "tiling", "kind": "even", "shape": [1000, 200], "axis": 0, "tiles": 2},
        {"do": "array", "dtype": "<f4"},
        replacement(target),
    )
    done = subprocess.run(
        [PROBE], env=variables, input=text, capture_output=True, timeout=60, preexec_fn=prepare
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    assert "error" in answer, answer
    assert {
        path: path.read_bytes() for path in target.parent.rglob("*") if path.is_file()
    } == before
    assert not list(target.parent.rglob(".*"))
    return answer["error"]


@pytest.fixture(params=["x.npy", "x"])
def target(request, tmp_path):
    """An old target."""
    folder = tmp_path / "folder"
    folder.mkdir()
    make_old(folder / request.param)
    return folder / request.param


def test_what_does_not_fit_is_refused_before_the_first_byte(target):
    error = refused(target, TEGULA_FAULT_FREE="409600")
    files = 1 if target.suffix else 2
    assert error["status"] == "io" and error["errno"] != 0 and error["path"] == str(target)
    assert (
        "%d bytes needed, 409600 free" % (800000 + 128 * files) in error["message"]
        and str(target) in error["message"]
    )


@pytest.mark.parametrize("kind", ["ENOSPC", "EDQUOT"])
def test_space_that_runs_out_while_writing(target, kind):
    """Of the writes the first is the mark's."""
    for number in (2, 3):
        error = refused(target, "write:%d:%s" % (number, kind))
        assert (
            error["status"] == "io"
            and "bytes needed" in error["message"]
            and "free" in error["message"]
        )
        assert (
            str(target) in error["message"]
            and ".tegula-" not in error["message"]
            and error["path"] == str(target)
        )


@pytest.mark.skipif(
    faulty.SANITIZER == "thread", reason="its runtime makes a larger file of its own"
)
def test_limit_of_file_size(target):
    for most in (0, 100, 300000):
        limits = most, most
        error = refused(target, prepare=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits))  # noqa: B023
        assert str(target) in error["message"] and ".tegula-" not in error["message"]


def test_full_tmpfs(tmp_path):
    """A real disk of 1 MiB that others have filled by half; also when the free space is not
    told, or cannot be reserved."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if (
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True
        ).returncode
        != 0
    ):
        pytest.skip("no right to mount a tmpfs")
    try:
        (disk / "other").write_bytes(bytes(500000))
        make_old(disk / "x")
        make_old(disk / "x.npy")
        for target in (disk / "x", disk / "x.npy"):
            plenty = {"TEGULA_FAULT_FREE": str(1 << 40)}
            messages = [
                refused(target)["message"],
                refused(target, **plenty)["message"],
                refused(
                    target, "size:2+:EOPNOTSUPP" if target.suffix else "size:2:EOPNOTSUPP", **plenty
                )["message"],
            ]
            for message in messages:
                assert "bytes needed" in message and str(target) in message, message
    finally:
        subprocess.run(["umount", disk], check=True)


# ---- rights --------------------------------------------------------------------------------------


def replacement(target):
    return {
        "do": "save",
        "path": str(target),
        "shards": 0 if target.suffix else 2,
        "overwrite": True,
    }


def replace(target):
    code, answers = probe(lines(CONTEXT, *MAKE, replacement(target)))
    assert code == 0 and "error" not in answers[-1], answers


def test_rights_are_those_of_what_is_replaced(target):
    """Mode, and for root owner and group."""
    target.chmod(0o751)
    root = os.geteuid() == 0
    if root:
        os.chown(target, 12345, 23456)
        target.chmod(0o751)
    replace(target)
    found = target.stat()
    assert stat.S_IMODE(found.st_mode) == 0o751 and (
        not root or (found.st_uid, found.st_gid) == (12345, 23456)
    )


def test_access_lists_are_kept(target):
    """user::rw-, user:12345:r--, group::r--, mask::r--, other::---: version 2,
    then tag, permissions, number."""
    rows = [(1, 6, -1), (2, 4, 12345), (4, 4, -1), (16, 4, -1), (32, 0, -1)]
    value = b"\x02\0\0\0" + b"".join(
        tag.to_bytes(2, "little")
        + rights.to_bytes(2, "little")
        + (number & 0xFFFFFFFF).to_bytes(4, "little")
        for tag, rights, number in rows
    )
    if not target.suffix:
        value = value.replace(b"\x01\0\x06", b"\x01\0\x07")
    try:
        os.setxattr(target, "system.posix_acl_access", value)
    except OSError as error:
        pytest.skip("no access lists here: %s" % error)
    replace(target)
    assert os.getxattr(target, "system.posix_acl_access") == value
    os.removexattr(target, "system.posix_acl_access")
    os.setxattr(target.parent, "system.posix_acl_default", value)  # what new files would get
    replace(target)
    with pytest.raises(OSError):
        os.getxattr(target, "system.posix_acl_access")


@pytest.fixture
def other_user(tmp_path):
    """Becomes nobody; all that leads to tmp_path may be searched."""
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    for folder in [tmp_path, *tmp_path.parents]:
        if folder != folder.parent and not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)

    def become():
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)

    return become


def test_what_cannot_be_replaced_is_refused_before_anything_is_written(target, other_user):
    folder = target.parent
    target.chmod(0o777)
    for file in target.rglob("*"):
        file.chmod(0o666)
    folder.chmod(0o755)  # the target may be written to, its folder not
    error = refused(target, prepare=other_user)
    assert (
        error["status"] == "permission"
        and str(folder) in error["message"]
        and "writable" in error["hint"]
    )
    folder.chmod(0o1777)
    error = refused(target, prepare=other_user)
    assert error["status"] == "permission" and "sticky" in error["message"]
    if not target.suffix:
        folder.chmod(0o777)
        target.chmod(0o755)
        error = refused(target, prepare=other_user)
        assert error["status"] == "permission" and "cannot replace" in error["message"]


def test_a_group_that_cannot_be_kept_gets_no_more_than_others(target, other_user):
    folder = target.parent
    folder.chmod(0o777)
    os.chown(target, 65534, 0)
    target.chmod(0o775)
    text = lines(CONTEXT, *MAKE, replacement(target))
    for file in target.rglob("*"):
        os.chown(file, 65534, 0)
    done = subprocess.run(
        [PROBE], input=text, capture_output=True, timeout=60, preexec_fn=other_user
    )
    assert b"error" not in done.stdout, done.stdout
    assert stat.S_IMODE(target.stat().st_mode) == 0o755 and target.stat().st_gid == 65534


def test_links(tmp_path):
    """A symbolic link stays; a hard link is broken, and the other name keeps the old file."""
    make_old(tmp_path / "real.npy")
    os.link(tmp_path / "real.npy", tmp_path / "hard.npy")
    (tmp_path / "sub").mkdir()
    make_old(tmp_path / "sub" / "shards")
    os.symlink("real.npy", tmp_path / "soft.npy")
    os.symlink("sub/shards", tmp_path / "soft")
    saves = [
        {"do": "save", "path": str(tmp_path / "soft.npy"), "overwrite": True},
        {"do": "save", "path": str(tmp_path / "soft"), "shards": 2, "overwrite": True},
    ]
    code, answers = probe(lines(CONTEXT, *MAKE, *saves))
    assert code == 0 and not [answer for answer in answers if "error" in answer], answers
    assert (tmp_path / "soft.npy").is_symlink() and (tmp_path / "soft").is_symlink()
    assert read(tmp_path / "real.npy").shape == (17, 6) and read(
        tmp_path / "sub" / "shards"
    ).shape == (17, 6)
    assert numpy.array_equal(read(tmp_path / "hard.npy"), OLD)
    assert entries(tmp_path) == ["hard.npy", "real.npy", "soft", "soft.npy", "sub"] and entries(
        tmp_path / "sub"
    ) == ["shards"]


def test_names_and_paths_of_full_length(tmp_path):
    """A name of 255 bytes; a folder whose path is the longest that a workplace in it allows, and
    one that is longer: one clean error."""
    target = tmp_path / ("n" * 251 + ".npy")
    folder = str(tmp_path)
    while len(folder) < 3850:
        folder += "/" + "d" * 200
    exact = folder + "/" + "f" * (4095 - 34 - len(folder) - 1)
    os.makedirs(exact)
    code, answers = probe(
        lines(
            CONTEXT,
            *MAKE,
            {"do": "save", "path": str(target)},
            {"do": "save", "path": exact + "/x"},
        )
    )
    assert code == 0 and not [answer for answer in answers if "error" in answer], answers
    assert read(target).shape == (17, 6) and os.listdir(exact) == ["x"]
    os.rename(exact, exact + "f")
    code, answers = probe(lines(CONTEXT, *MAKE, {"do": "save", "path": exact + "f/y"}))
    assert (
        code == 0
        and answers[-1]["error"]["status"] == "limit_exceeded"
        and os.listdir(exact + "f") == ["x"]
    ), answers
