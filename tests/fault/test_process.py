# Odd settings of a process: masks, limits, closed streams, long and strange names, many threads,
# arrays larger than memory.
#
# SPDX-License-Identifier: Apache-2.0
#
# Runs with any build; with ThreadSanitizer a report of it ends the program with status 99,
# which no test accepts.
import json
import os
import pathlib
import resource
import stat
import subprocess

import numpy
import pytest

BIN = pathlib.Path(os.environ.get("TEGULA_BIN", "build/bin/tegula")).resolve()
SANITIZER = os.environ.get("TEGULA_SANITIZER", "")
TIME_LIMIT = 300


def start(words, prepare=None, **options):
    """A finished run of the command."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("TEGULA_")}
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    return subprocess.run(
        [os.fsencode(word) if not isinstance(word, int) else str(word) for word in (BIN, *words)],
        env=kept,
        preexec_fn=prepare,
        timeout=TIME_LIMIT,
        **options,
    )


def report(*words, **options):
    """The object of a run that must work."""
    run = start([words[0], "--json", *words[1:]], **options)
    assert run.returncode == 0 and run.stderr == b"", (run.returncode, run.stdout, run.stderr)
    return json.loads(run.stdout)


def save(folder, pieces, name="shard_%04d.npy"):
    folder.mkdir(exist_ok=True)
    for number, piece in enumerate(pieces):
        numpy.save(folder / (name % number), piece)
    return folder


@pytest.fixture
def shards(tmp_path):
    return save(tmp_path / "shards", [numpy.full((3 + n, 4), n, "f4") for n in range(5)])


# ---- masks and limits ----------------------------------------------------------------------------


def test_open_umask(tmp_path):
    report(
        "write", tmp_path / "s", "--shape", "20,2", "--num-shards", 2, prepare=lambda: os.umask(0)
    )
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "s").glob("*.npy")}
    assert modes == {0o666} and stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o777


def test_closed_umask(tmp_path):
    """Files are made without any right for anybody. Only root can write into such a folder;
    others get a clean error."""
    run = start(
        ["write", tmp_path / "s", "--json", "--shape", "20,2", "--num-shards", "2"],
        prepare=lambda: os.umask(0o777),
    )
    if os.geteuid() == 0:
        assert run.returncode == 0, run.stderr
        assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "s").glob("*.npy")} == {0}
    else:
        assert run.returncode == 1 and json.loads(run.stdout)["error"]["status"] == "permission"
        assert not (tmp_path / "s").exists()


@pytest.mark.skipif(SANITIZER != "", reason="a sanitizer's own frames need more stack")
def test_small_stack(tmp_path, shards):
    """256 KiB of stack, for the first thread and for those that are started."""

    def limit():
        resource.setrlimit(resource.RLIMIT_STACK, (256 << 10, 256 << 10))

    assert report("load", shards, "--hash", "--threads", 4, prepare=limit)["shape"] == [25, 4]
    report("write", tmp_path / "s", "--shape", "100,3", prepare=limit)
    assert report("load", tmp_path / "s", "--check-seed", 0, "--tile-shape", "7,2", prepare=limit)[
        "shape"
    ] == [100, 3]


def test_few_descriptors(tmp_path):
    """16 descriptors, 100 files, 8 threads."""
    folder = save(tmp_path / "s", [numpy.full((2, 3), n, "<i4") for n in range(100)])
    whole = report("load", folder, "--hash")
    few = report(
        "load",
        folder,
        "--hash",
        "--threads",
        8,
        prepare=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16)),
    )
    assert few["hash"] == whole["hash"] and few["shape"] == [200, 3]


# ---- closed streams ------------------------------------------------------------------------------


def without(*closed):
    def prepare():
        for fd in closed:
            os.close(fd)

    return prepare


def test_closed_input(shards):
    assert report("load", shards, prepare=without(0))["shape"] == [25, 4]


def test_closed_output(tmp_path, shards):
    """A report that nobody gets is a failure,
    and it does not land in a file that is opened meanwhile."""
    run = start(["load", shards], prepare=without(1))
    assert run.returncode == 1 and b"standard output" in run.stderr
    before = {path: path.read_bytes() for path in shards.iterdir()}
    run = start(["load", shards, "--json", "--threads", "3"], prepare=without(0, 1, 2))
    assert run.returncode == 1
    run = start(["write", tmp_path / "s", "--shape", "20,2", "--json"], prepare=without(0, 1, 2))
    assert run.returncode == 1
    assert {path: path.read_bytes() for path in shards.iterdir()} == before
    rows = sum(numpy.load(path).shape[0] for path in (tmp_path / "s").glob("*.npy"))
    assert rows in (0, 20)


def test_closed_errors(tmp_path, shards):
    assert report("load", shards, prepare=without(2))["shape"] == [25, 4]
    run = start(["load", tmp_path / "gone", "--json"], prepare=without(2))
    assert run.returncode == 1 and json.loads(run.stdout)["error"]["status"] == "not_found"


def test_full_output(shards):
    with open("/dev/full", "wb") as full:
        run = start(["load", shards, "--json"], stdout=full)
    assert run.returncode == 1 and b"standard output" in run.stderr


# ---- names ---------------------------------------------------------------------------------------


def test_path_of_4000_bytes(tmp_path):
    """Just below the system's limit of 4096; one that is above it is an error that says so."""
    folder = str(tmp_path)
    while len(folder) < 3700:
        folder += "/" + "d" * 200
    folder += "/" + "e" * (3970 - len(folder))
    os.makedirs(folder)
    report("write", folder + "/s", "--shape", "30,2", "--num-shards", 2)
    assert report("load", folder + "/s", "--check-seed", 0)["shape"] == [30, 2]
    assert report("info", folder + "/s", "--manifest", folder + "/m")["manifest"] == folder + "/m"
    assert (
        report("compare", folder + "/s", folder + "/m")["equal"]
        and report("verify", folder + "/m")["problems"] == []
    )
    assert len(report("plan", folder + "/s", "--tiles", 3)["tiles"]) == 3
    os.unlink(folder + "/m")
    assert report("clean", folder + "/s")["removed"] == 2
    run = start(["load", "--json", folder + "/" + "f" * 255])
    error = json.loads(run.stdout)["error"]
    assert (
        run.returncode == 1
        and error["status"] in ("not_found", "limit_exceeded")
        and "\n" not in error["message"]
    )
    run = start(["write", "--json", folder + "/" + "f" * 100 + "/" + "g" * 100, "--shape", "3,2"])
    assert run.returncode == 1 and json.loads(run.stdout)["error"]["status"] != "internal"
    assert os.listdir(folder) == []


NAMES = [
    "with space",
    "new\nline",
    "tab\tand'quote\"",
    "daten_\u00e4\u4e2d\U0001f600",
    b"not utf8 \xff\xfe",
    "-dash",
    "*star?[x]",
    "back\\slash",
    "\x1b[31mred",
    b'unit\x1eend\x1f 50% %s %b;:,|\n"\xff',
]


@pytest.mark.parametrize("name", NAMES, ids=[repr(name) for name in NAMES])
def test_strange_names(name, tmp_path):
    """Folders and files; the report is valid JSON,
    and no control character reaches standard error."""
    root = os.fsencode(tmp_path)
    folder = root + b"/" + os.fsencode(name)
    answer = report("write", folder, "--shape", "30,2", "--num-shards", "3")
    assert answer["files"] == 3 and len(os.listdir(folder)) == 4
    assert report("load", folder, "--check-seed", "0")["files"] == 3
    for number in range(3):
        os.rename(
            folder + b"/shard_%04d.npy" % number,
            folder + b"/" + os.fsencode(name) + b"_%d.npy" % number,
        )
    answer = report("load", folder, "--check-seed", "0", "-v")
    assert len(answer["tile_list"][0]["sources"]) == 3
    for form, suffix in (
        (["--shards", "2"], b""),
        ([], b".npy"),
        (["--format", "raw", "--shards", "2"], b".bins"),
    ):
        copied = root + b"/c" + os.fsencode(name) + suffix
        assert (
            report("copy", folder, copied, "--verify", *form)["hash"]
            == report("load", folder, "--hash")["hash"]
        )
        assert suffix != b".npy" or numpy.load(copied).shape == (30, 2)
    manifest = root + b"/m" + os.fsencode(name)
    assert report("info", folder, "--manifest", manifest)["datasets"][0]["files"] == 3
    assert report("load", manifest, "--hash")["hash"] == report("load", folder, "--hash")["hash"]
    assert report("compare", folder, manifest)["equal"] and report("verify", folder)["files"] == 3
    assert len(report("plan", folder, "--tiles", "2")["tiles"]) == 2
    os.unlink(folder + b"/" + os.fsencode(name) + b"_1.npy")
    run = start(["load", "--json", folder])
    error = json.loads(run.stdout)["error"]
    assert run.returncode == 1 and error["status"] == "incomplete" and "\n" not in error["message"]
    assert run.stderr.count(b"\n") <= 2 and not any(
        byte < 0x20 and byte != 0x0A for byte in run.stderr
    )


# ---- many threads, large arrays ------------------------------------------------------------------


@pytest.mark.parametrize("io", ["pread", "io_uring", "direct"])
def test_64_threads_over_many_small_and_few_large_files(tmp_path, io):
    small = save(tmp_path / "small", [numpy.full((1 + n % 3, 5), n, "f4") for n in range(400)])
    large = save(
        tmp_path / "large",
        [numpy.arange(n << 18, (n + 3) << 18, dtype=">i4").reshape(-1, 64) for n in range(3)],
    )
    fortran = tmp_path / "fortran.npy"
    numpy.save(fortran, numpy.asfortranarray(numpy.arange(300000, dtype="f8").reshape(1000, 300)))
    for path, tiles in (
        (small, ["--tiles", 7]),
        (large, ["--tile-shape", "1000,17"]),
        (fortran, ["--axis", 1, "--tiles", 13]),
    ):
        one = report("load", path, "--hash", "--threads", 1)
        many = report("load", path, "--hash", "--threads", 64, "--io", io, *tiles)
        assert many["hash"] == one["hash"] and many["tiles"] > 1
    report("write", tmp_path / "s", "--threads", 64, "--shape", "20000,16", "--num-shards", 50)
    report("load", tmp_path / "s", "--threads", 64, "--io", io, "--check-seed", 0)


@pytest.mark.skipif(
    SANITIZER != "", reason="the same code, and a sanitizer counts memory of its own"
)
def test_100_gigabytes_by_boxes(tmp_path):
    """A sparse file of 100 GB, float32 in 25,000,000 rows of 1,000: boxes from the start,
    the middle and the end."""
    rows, columns = 25_000_000, 1000
    path = tmp_path / "large.npy"
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (rows, columns)
    header += b" " * (117 - len(header)) + b"\n"
    try:
        with open(path, "wb") as file:
            file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
            file.truncate(128 + rows * columns * 4)
            for row, value in ((0, 1.5), (rows // 2, 2.5), (rows - 1, 3.5)):
                file.seek(128 + (row * columns + 7) * 4)
                file.write(numpy.float32(value).tobytes())
    except OSError as error:
        pytest.skip("no sparse file of 100 GB here: %s" % error)
    from reference_hash import content_hash

    for row, value in ((0, 1.5), (rows // 2, 2.5), (rows - 1, 3.5)):
        lo = max(0, row - 2)
        expected = numpy.zeros((row + 1 - lo, 3), "f4")
        expected[row - lo, 1] = value
        answer = report("load", path, "--hash", "--box", "%d:%d,6:9" % (lo, row + 1))
        assert answer["hash"] == content_hash(expected)
        assert answer["peak_rss_bytes"] < 200 << 20
    run = start(
        ["load", "--json", path],
        prepare=lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)),
    )
    assert run.returncode == 1 and json.loads(run.stdout)["error"]["status"] == "out_of_memory"
