# Storage that fails, answers short or changes its files, by every way of moving bytes: io_uring
# asks the kernel itself, so that nothing in front of the C library can make it fail. The right
# values or a clear error; a file that changed is never taken for what it was.
#
# SPDX-License-Identifier: Apache-2.0
import errno
import json
import os
import subprocess
import threading

import numpy
import pytest

from files import check_equal, load_all, save_shards
from probe import ProbeError, check_error

ROWS = (300, 1, 500, 199)
VICTIM = "shard_0002.npy"
# reads of the victim before it changes; its header is the first of them
CHANGES = [0, 1, 2, 3, 5, 8]


@pytest.fixture(params=["pread", "io_uring", "direct"])
def way(request, mount, new_probe):
    """A probe of this way of moving bytes; it has closed its files when `mount` takes them away."""
    probe = new_probe(environment={"TEGULA_IO": request.param}, timeout=60)
    probe.call("context", threads=2)
    probe.way = request.param
    timer = threading.Timer(60, probe.process.kill)  # no answer for a minute: the test fails
    timer.start()
    yield probe
    timer.cancel()


@pytest.fixture
def storage(mount, tmp_path):
    """Values, and the slow folder that holds them in shards; requests of 4 KiB,
    so that each shard takes many."""
    full = numpy.arange(sum(ROWS) * 50, dtype="f4").reshape(-1, 50)
    save_shards(tmp_path / "s", numpy.split(full, numpy.cumsum(ROWS)[:-1]))
    return full, mount(tmp_path / "s", direct_io=1, max_read=4096)


def load_or_error(probe, tmp_path, path):
    """(values, None) or (None, error); two tiles that cut the columns,
    so that there are many requests."""
    try:
        return load_all(probe, tmp_path, path, tiles=2, axis=1, separate=True)[0], None
    except ProbeError as refused:
        return None, refused.error


def test_changed_bytes_and_times_are_seen_by_a_plain_reader(mount, tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "a").write_bytes(bytes(range(100)))
    slow = mount(tmp_path / "s", direct_io=1)
    slow.set(change_after=2)
    fd = os.open(slow.path / "a", os.O_RDONLY)
    before = os.fstat(fd)
    assert [os.pread(fd, 100, 0) for _ in range(2)] == [bytes(range(100))] * 2
    assert os.pread(fd, 100, 90) == bytes(255 - n for n in range(90, 100))
    after = os.fstat(fd)
    assert after.st_size == before.st_size and after.st_mtime_ns > before.st_mtime_ns
    os.close(fd)


def test_the_way_is_taken(way, storage, tmp_path):
    """Else the other tests here would all be of pread."""
    full, slow = storage
    got, _, statistics = load_all(way, tmp_path, slow.path, tiles=2, axis=1, separate=True)
    check_equal(got, full)
    if statistics["io_path"] != way.way:
        pytest.skip("no %s here: %s" % (way.way, statistics["fallback_reason"]))


@pytest.mark.parametrize("most", [127, 4095])
def test_short_answers(way, storage, tmp_path, most):
    full, slow = storage
    slow.set(short_read=most)
    got, error = load_or_error(way, tmp_path, slow.path)
    assert error is None, error
    check_equal(got, full)
    assert slow.counts()["read"] >= full.nbytes // most, "the answers were not short"


@pytest.mark.parametrize("times", [1, 1000])
@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.ENOMEM], ids=errno.errorcode.get)
def test_nth_read_fails(way, storage, tmp_path, code, times):
    """Of one file, once or from there on. It is this file that the error names; with `once`
    whoever saw it may have tried again."""
    full, slow = storage
    for number in CHANGES[1:]:
        slow.set(name=VICTIM, fail_read=number, fail_times=times, error=code)
        got, error = load_or_error(way, tmp_path, slow.path)
        assert error is not None or times == 1, "the failure of read %d was lost" % number
        if error is None:
            check_equal(got, full)
        else:
            check_error(
                error, ("io", "changed", "out_of_memory"), [VICTIM], path=slow.path / VICTIM
            )
    slow.set(fail_read=0)
    check_equal(load_or_error(way, tmp_path, slow.path)[0], full)


@pytest.mark.parametrize("after", CHANGES)
def test_load_of_a_file_that_changes(way, storage, tmp_path, after):
    """It has the same size, other bytes and a later time: what was read of it is of two files."""
    full, slow = storage
    slow.set(name=VICTIM, change_after=after)
    got, error = load_or_error(way, tmp_path, slow.path)
    assert error is not None, "the change was not noticed"
    assert got is None and full is not None
    check_error(error, "corrupt" if after == 0 else "changed", [VICTIM], path=slow.path / VICTIM)


@pytest.mark.parametrize("after", CHANGES[1:])
def test_checks_of_a_file_that_changes(way, storage, tmp_path, after):
    """verify names it, compare gives an error and no difference, the hash is not told."""
    _, slow = storage
    for check in ("verify", "compare", "hash"):
        slow.set(name=VICTIM, change_after=-1)
        way.call("open", path=str(slow.path))
        way.call("open", path=str(tmp_path / "s"), other=True)
        slow.set(name=VICTIM, change_after=after - 1)  # the header has been read
        if check == "verify":
            answer = way.call("verify", level=2)
            assert [problem["status"] for problem in answer["problems"]] == ["changed"] and answer[
                "status"
            ] == "changed"
            assert answer["problems"][0]["path"] == str(slow.path / VICTIM)
        else:
            check_error(way.refused(check), "changed", [VICTIM], path=slow.path / VICTIM)


@pytest.mark.parametrize("after", CHANGES[1:])
def test_command_does_not_take_a_change_for_a_difference(storage, tmp_path, after):
    _, slow = storage
    for words in (
        ["compare", tmp_path / "s", slow.path],
        ["load", "--hash", slow.path],
        ["verify", slow.path],
    ):
        slow.set(name=VICTIM, change_after=after)
        run = subprocess.run(
            [os.environ["TEGULA_BIN"], *map(str, words), "--json"],
            capture_output=True,
            text=True,
            timeout=60,
        )
        answer = json.loads(run.stdout)
        assert run.returncode == (3 if words[0] == "verify" else 1), (run.stdout, run.stderr)
        assert answer["error"]["status"] == "changed" and VICTIM in answer["error"]["message"]
        assert "hash" not in answer and "equal" not in answer


def test_raw_file_that_changes(way, mount, tmp_path):
    """No header that could be wrong: only the time tells."""
    (tmp_path / "s").mkdir()
    full = numpy.arange(60000, dtype="i4").reshape(-1, 10)
    full.tofile(tmp_path / "s" / "field.bin")
    slow = mount(tmp_path / "s", direct_io=1, max_read=4096)
    for after in (1, 2, 5, 20):
        slow.set(change_after=-1)
        way.call(
            "open", path=str(slow.path / "field.bin"), format="raw", dtype="<i4", row_shape=[10]
        )
        way.batch(
            [
                {"do": "tiling", "kind": "even", "shape": [6000, 10], "tiles": 2},
                {"do": "array", "dtype": "<i4"},
            ]
        )
        slow.set(change_after=after)
        check_error(way.refused("load"), "changed", ["field.bin"], path=slow.path / "field.bin")
