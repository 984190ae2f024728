# Files on storage that is slow, gives short answers, fails or changes: the right values or one
# clear error, never both, never a hang.
#
# SPDX-License-Identifier: Apache-2.0
#
# The storage is tegula_slowfs (tests/support/slowfs.py); numpy, which read the files where they
# really lie, says what is right.
import errno
import json
import os
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest

from files import check_equal, load_all, save_shards
from probe import ProbeError, check_error
from reference_hash import content_hash

MS = 1000  # microseconds
MIB = 1 << 20


def shards(folder, lengths=(300, 1, 500, 199), columns=50, dtype="f4"):
    """Uneven shards under folder/s; gives what numpy finds in them."""
    full = numpy.arange(sum(lengths) * columns).astype(dtype).reshape(-1, columns)
    paths = save_shards(folder / "s", numpy.split(full, numpy.cumsum(lengths)[:-1]))
    return numpy.concatenate([numpy.load(path) for path in paths])


def load_or_error(probe, tmp_path, path, **options):
    """(values, None) or (None, error)."""
    try:
        return load_all(probe, tmp_path, path, tiles=3, **options)[0], None
    except ProbeError as refused:
        return None, refused.error


def check_names_a_file(error, statuses, slow):
    """One of the shards, in the message and as the path."""
    check_error(error, statuses)
    name = os.path.basename(error["path"])
    assert name.startswith("shard_") and name in error["message"], error
    assert os.path.dirname(error["path"]) == str(slow.path), error


# ---- the file system itself: a test on top of one that does nothing would prove nothing ----


def read_first_bytes(paths, size):
    """One thread per path, all at the same moment; gives what each read."""
    together = threading.Barrier(len(paths))

    def read(path):
        together.wait()
        fd = os.open(path, os.O_RDONLY)
        try:
            return os.pread(fd, size, 0)
        finally:
            os.close(fd)

    with ThreadPoolExecutor(len(paths)) as threads:
        return list(threads.map(read, paths))


@pytest.mark.parametrize("kind", ["getattr", "open", "read"])
def test_delays_of_many_requests_overlap(mount, tmp_path, kind):
    (tmp_path / "s").mkdir()
    for number in range(64):
        (tmp_path / "s" / f"{number}").write_bytes(bytes([number]) * 100)
    slow = mount(tmp_path / "s", direct_io=1, **{f"delay_{kind}": 400 * MS})
    overlapped = False
    for _ in range(3):  # a machine that stands still may cut the requests in two
        start = time.monotonic()
        found = read_first_bytes([slow.path / f"{number}" for number in range(64)], 1000)
        assert time.monotonic() - start >= 0.4
        assert found == [bytes([number]) * 100 for number in range(64)]
        # all 64 where no thread starts late; a busy machine starts some late
        overlapped = overlapped or slow.counts()["most_in_flight"] > 32
        if overlapped:
            break
    assert overlapped


def test_every_kind_of_request_is_delayed_and_counted(mount, tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "a").write_bytes(b"12345")
    slow = mount(tmp_path / "s", direct_io=1)

    def seconds(call):
        start = time.monotonic()
        call()
        return time.monotonic() - start

    calls = {
        "list": lambda: os.listdir(slow.path),
        "getattr": lambda: os.stat(slow.path / "a"),
        "open": lambda: os.close(os.open(slow.path / "a", os.O_RDONLY)),
        "read": lambda: (slow.path / "a").read_bytes(),
    }
    for kind, call in calls.items():
        slow.set(delay=0)
        slow.set(**{f"delay_{kind}": 100 * MS})
        slow.zero()
        assert seconds(call) >= 0.1
        assert slow.counts()[kind] >= 1


def test_short_reads_and_cuts_are_seen_by_a_plain_reader(mount, tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "a").write_bytes(bytes(range(100)))
    slow = mount(tmp_path / "s", direct_io=1, short_read=7)
    fd = os.open(slow.path / "a", os.O_RDONLY)
    assert os.pread(fd, 100, 10) == bytes(range(10, 17))
    slow.set(short_read=0, resize_after=0, resize_by=-95)
    assert os.pread(fd, 100, 0) == bytes(range(5))
    slow.set(fail_read=2, resize_after=-1)
    assert os.pread(fd, 100, 0) == bytes(range(100))
    with pytest.raises(OSError) as caught:
        os.pread(fd, 100, 0)
    assert caught.value.errno == errno.EIO
    assert os.pread(fd, 100, 0) == bytes(range(100))
    os.close(fd)


# ---- slow and short ----


@pytest.mark.parametrize(
    "settings",
    [
        {"direct_io": 1},
        {"direct_io": 0},
        {"direct_io": 0, "attr_cache": 60},
        {"direct_io": 1, "max_read": 4096},
        {"direct_io": 0, "max_read": 8192},
    ],
    ids=lambda settings: " ".join(f"{name}={value}" for name, value in settings.items()),
)
def test_slow_storage_gives_the_right_values(no_hang, mount, tmp_path, settings):
    full = shards(tmp_path)
    slow = mount(tmp_path / "s", delay=2 * MS, **settings)
    got, _, _ = load_all(no_hang, tmp_path, slow.path, tiles=3)
    check_equal(got, full)


@pytest.mark.parametrize("most", [7, 127, 4095, 50_000])
@pytest.mark.parametrize("layout", ["rows", "columns", "other byte order"])
def test_short_reads_give_the_right_values(no_hang, mount, tmp_path, most, layout):
    """Straight into one block, scattered over separate tiles that cut the
    columns, and through staging."""
    lengths, columns = ((9, 1, 15, 6), 3000) if most > 100 else ((30, 1, 50, 20), 50)
    full = shards(tmp_path, lengths, columns, dtype=">f4" if layout == "other byte order" else "f4")
    slow = mount(tmp_path / "s", direct_io=1, short_read=most)
    across = layout == "columns"
    got, _, moved = load_all(
        no_hang, tmp_path, slow.path, tiles=3, axis=1 if across else 0, separate=across
    )
    check_equal(got, full)
    assert slow.counts()["read"] >= full.nbytes // most, "the answers were not short"
    if most > 100:
        assert (moved["direct_bytes"] > 0) == (layout != "other byte order")


# ---- failing requests ----


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 6, 7, 8, 9, 50])
@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE], ids=errno.errorcode.get)
@pytest.mark.parametrize("kind", ["read", "open", "getattr", "list"])
def test_failure_of_the_nth_request(no_hang, mount, tmp_path, kind, code, number):
    """From that request on every one of its kind fails; a later load,
    when nothing fails any more, is right."""
    full = shards(tmp_path)
    slow = mount(tmp_path / "s", direct_io=1)
    slow.set(**{f"fail_{kind}": number, "fail_times": 1000, "error": code})
    got, error = load_or_error(no_hang, tmp_path, slow.path)
    failed = slow.counts()[kind] >= number
    slow.set(**{f"fail_{kind}": 0})
    assert (got is None) == failed, "an error when a request failed and only then"
    if error is None:
        check_equal(got, full)
    else:
        check_error(error, "changed" if code == errno.ESTALE else "io")
        assert error["path"].startswith(str(slow.path)) and str(slow.path) in error["message"], (
            error
        )
        if kind in ("read", "open"):
            check_names_a_file(error, error["status"], slow)
            assert error["errno"] == code
    check_equal(load_all(no_hang, tmp_path, slow.path)[0], full)


@pytest.mark.parametrize("direct_io", [0, 1])
@pytest.mark.parametrize("number", [1, 2, 3, 5, 8])
@pytest.mark.parametrize(
    "code", [errno.EIO, errno.ESTALE, errno.ENOMEM, errno.ENOTCONN], ids=errno.errorcode.get
)
def test_one_failing_read(no_hang, mount, tmp_path, code, number, direct_io):
    """One request alone fails. Whoever sees it (the library, or the kernel, which reads ahead
    and asks again) may try again."""
    full = shards(tmp_path)
    slow = mount(tmp_path / "s", direct_io=direct_io)
    slow.set(fail_read=number, error=code)
    got, error = load_or_error(no_hang, tmp_path, slow.path)
    if error is None:
        check_equal(got, full)
    else:
        check_names_a_file(error, ("io", "changed", "out_of_memory"), slow)


def test_failure_in_one_file_names_that_file(no_hang, mount, tmp_path):
    shards(tmp_path)
    slow = mount(tmp_path / "s", direct_io=1, delay_read=1 * MS)
    for name in ("shard_0000.npy", "shard_0002.npy", "shard_0003.npy"):
        for number in (1, 2):
            slow.set(name=name, fail_read=number, fail_times=1000)
            _, error = load_or_error(no_hang, tmp_path, slow.path)
            check_error(error, "io", [name], path=slow.path / name)


def test_raw_files_that_fail(no_hang, mount, tmp_path):
    full = numpy.arange(6000, dtype="i4").reshape(-1, 10)
    (tmp_path / "s").mkdir()
    full.tofile(tmp_path / "s" / "field.bin")
    raw = {"format": "raw", "dtype": "<i4", "row_shape": [10]}
    slow = mount(tmp_path / "s", direct_io=1)
    for number in range(1, 6):
        slow.set(fail_read=number, fail_times=1000)
        slow.zero()
        got, error = load_or_error(no_hang, tmp_path, slow.path / "field.bin", **raw)
        if slow.counts()["read"] >= number:
            check_error(error, "io", ["field.bin"], path=slow.path / "field.bin")
        else:
            check_equal(got, full)


# ---- files that vanish or change ----


@pytest.mark.parametrize("keep_open", [0, 1])
@pytest.mark.parametrize("opens", [0, 1, 2])
def test_file_that_vanishes(no_hang, mount, tmp_path, opens, keep_open):
    """Its values are right as long as it could be read; no other values take their place."""
    full = shards(tmp_path)
    slow = mount(tmp_path / "s", direct_io=1)
    no_hang.call("context", threads=2, max_open_files=keep_open)
    slow.set(name="shard_0002.npy", vanish_after=opens)
    got, error = load_or_error(no_hang, tmp_path, slow.path)
    if opens == 0:
        assert error is not None
    if error is None:
        check_equal(got, full)
    else:
        check_error(error, ("not_found", "changed"), ["shard_0002.npy"])


@pytest.mark.parametrize("attr_cache", [0, 60])
@pytest.mark.parametrize("opens", [0, 1])
@pytest.mark.parametrize("change", [-40_000, -1, 1, 4096])
def test_file_that_changes_size(no_hang, mount, tmp_path, change, opens, attr_cache):
    """With cached attributes the kernel still tells the old size: then only the end of the data
    can tell, and it must."""
    full = shards(tmp_path)
    slow = mount(tmp_path / "s", direct_io=1, attr_cache=attr_cache)
    for file in slow.path.iterdir():
        file.stat()  # the old attributes are what is cached
    slow.set(name="shard_0002.npy", resize_after=opens, resize_by=change)
    got, error = load_or_error(no_hang, tmp_path, slow.path)
    if change < 0:
        assert error is not None, "not all bytes are there"
    if error is None:
        check_equal(got, full)
    else:
        check_error(
            error,
            ("changed", "short_file", "malformed"),
            ["shard_0002.npy"],
            path=slow.path / "shard_0002.npy",
        )


@pytest.mark.parametrize("change", ["cut", "longer", "other bytes"])
def test_file_that_is_really_changed_during_the_load(no_hang, mount, tmp_path, change):
    """One file is changed where it really lies, while a read of it is on its way."""
    full = shards(tmp_path)
    slow = mount(tmp_path / "s", direct_io=1)
    info = no_hang.call("open", path=str(slow.path))
    no_hang.batch(
        [
            {"do": "tiling", "kind": "even", "shape": info["shape"], "tiles": 2},
            {"do": "array", "dtype": info["dtype"]},
        ]
    )
    victim = tmp_path / "s" / "shard_0002.npy"
    slow.set(name=victim.name, hold_read=1)
    slow.zero()

    def damage():
        while slow.counts()["held"] == 0:
            time.sleep(0.001)
        if change == "cut":
            os.truncate(victim, 20_000)
        else:
            with open(victim, "ab" if change == "longer" else "r+b") as file:
                file.write(b"other bytes")
        slow.set(hold_read=0)

    thread = threading.Thread(target=damage)
    thread.start()
    answer = no_hang.ask({"do": "load"})
    thread.join()
    check_error(
        answer.get("error", {"status": "none", "message": "loaded: the change was not noticed"}),
        ("changed", "short_file"),
        ["shard_0002.npy"],
        path=slow.path / "shard_0002.npy",
    )
    assert full.shape[0] == info["shape"][0]


def test_file_system_that_goes_away(no_hang, mount, tmp_path):
    """The process behind the mount dies in the middle of a load:
    every request fails, none waits for ever."""
    shards(tmp_path)
    slow = mount(tmp_path / "s", direct_io=1)
    info = no_hang.call("open", path=str(slow.path))
    no_hang.batch(
        [
            {"do": "tiling", "kind": "even", "shape": info["shape"], "tiles": 2},
            {"do": "array", "dtype": info["dtype"]},
        ]
    )
    slow.set(delay_read=30_000 * MS)
    slow.zero()

    def end():
        while slow.counts()["read"] == 0:
            time.sleep(0.001)
        slow.process.kill()

    thread = threading.Thread(target=end)
    thread.start()
    error = no_hang.refused("load")
    thread.join()
    check_names_a_file(error, "io", slow)


# ---- the command ----


def command(*arguments):
    return subprocess.run(
        [os.environ["TEGULA_BIN"], *map(str, arguments)], capture_output=True, text=True, timeout=60
    )


def test_command_says_which_file_and_prints_no_result(mount, tmp_path):
    shards(tmp_path)
    slow = mount(tmp_path / "s", direct_io=1, delay=1 * MS)
    right = command("load", slow.path, "--json", "--hash")
    assert right.returncode == 0
    for name, settings in (
        ("shard_0000.npy", {"fail_read": 2}),
        ("shard_0003.npy", {"fail_open": 1}),
        ("shard_0002.npy", {"vanish_after": 0}),
    ):
        slow.set(
            name=name,
            fail_times=1000,
            **{"fail_read": 0, "fail_open": 0, "vanish_after": -1, **settings},
        )
        wrong = command("load", slow.path, "--json", "--hash")
        assert wrong.returncode == 1 and name in wrong.stdout + wrong.stderr
        assert json.loads(right.stdout)["hash"] not in wrong.stdout
    slow.set(fail_read=0, fail_open=0, vanish_after=-1)
    assert (
        json.loads(command("load", slow.path, "--json", "--hash").stdout)["hash"]
        == json.loads(right.stdout)["hash"]
    )


# ---- how the requests look to the storage ----


@pytest.mark.parametrize("kind", ["npy", "raw"])
def test_case_57_few_large_reads_several_in_flight(no_hang, mount, tmp_path, kind):
    """safetensors#562: through a network disk, small reads one after the other (page faults of a
    memory map) take many times as long. Here: requests as large as the kernel passes on (1 MiB), no
    byte asked for twice, more than one at a time."""
    (tmp_path / "s").mkdir()
    full = numpy.arange(8 * MIB, dtype="f4").reshape(-1, 1024)  # 32 MiB
    if kind == "npy":
        numpy.save(tmp_path / "s" / "a.npy", full)
        options = {}
    else:
        full.tofile(tmp_path / "s" / "a.npy")
        options = {"format": "raw", "dtype": "<f4", "row_shape": [1024]}
    slow = mount(tmp_path / "s", direct_io=1, attr_cache=60, delay_read=5 * MS)
    got, _, _ = load_all(no_hang, tmp_path, slow.path / "a.npy", **options)
    check_equal(got, full)
    counts = slow.counts()
    assert counts["read"] <= full.nbytes / MIB * 1.25 + 4, counts
    assert counts["bytes"] <= full.nbytes + MIB, counts
    assert counts["open"] == 1, counts
    assert counts["most_in_flight"] >= 2, counts


def test_small_shards_cost_few_requests(no_hang, mount, tmp_path):
    """Per shard: its name, one open, two reads (header, data), and the look whether it changed."""
    full = shards(tmp_path, lengths=(4,) * 100, columns=1024)
    slow = mount(tmp_path / "s", direct_io=1, attr_cache=60, delay=1 * MS)
    got, _, _ = load_all(no_hang, tmp_path, slow.path, tiles=3)
    check_equal(got, full)
    counts = slow.counts()
    assert counts["open"] == 100 and counts["read"] <= 202, counts
    assert counts["getattr"] <= 105, counts


@pytest.mark.parametrize(
    "dtype, options",
    [("<f4", ()), ("<f4", ("--tiles", "7")), ("<f4", ("--tiles", "3", "--axis", "1")), (">f4", ())],
)
def test_loading_small_shards_costs_one_open_and_one_read_each(mount, tmp_path, dtype, options):
    """The header comes with the data, also where that is converted.
    Only the first header is read twice."""
    full = shards(tmp_path, lengths=(4,) * 100, columns=1024, dtype=dtype)
    slow = mount(tmp_path / "s", direct_io=1, attr_cache=60, delay=1 * MS)
    loaded = command("load", slow.path, "--json", "--hash", *options)
    assert json.loads(loaded.stdout)["hash"] == content_hash(full), loaded.stderr
    counts = slow.counts()
    more = 6 if "7" in options else 0  # tiles end within files
    assert counts["open"] == 100 and counts["read"] <= 101 + more and counts["getattr"] <= 105, (
        counts
    )


@pytest.mark.parametrize("number", [1, 2, 50, 101])
@pytest.mark.parametrize("kind", ["read", "open", "getattr"])
def test_loading_with_the_nth_request_failing(mount, tmp_path, kind, number):
    full = shards(tmp_path, lengths=(4,) * 100, columns=64)
    slow = mount(tmp_path / "s", direct_io=1)
    slow.set(**{f"fail_{kind}": number, "fail_times": 1000})
    loaded = command("load", slow.path, "--json", "--hash")
    if slow.counts()[kind] >= number:
        assert loaded.returncode == 1 and json.loads(loaded.stdout)["error"]["status"] == "io", (
            loaded
        )
    else:
        assert json.loads(loaded.stdout)["hash"] == content_hash(full)


@pytest.mark.parametrize("change", [-1, -256, 64])
def test_file_that_changes_between_its_name_and_its_open(mount, tmp_path, change):
    """Found when it is opened, also where whole rows are left,
    and where a second load would find nothing wrong."""
    shards(tmp_path, lengths=(4,) * 10, columns=64)
    slow = mount(tmp_path / "s", direct_io=1)
    slow.set(name="shard_0004.npy", resize_after=1, resize_by=change)
    error = json.loads(command("load", slow.path, "--json", "--hash").stdout)["error"]
    assert error["status"] == "changed" and "shard_0004.npy" in error["message"], error
    assert "it had %d bytes, now %d" % (1152, 1152 + change) in error["message"]
