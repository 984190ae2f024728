# Threads, interruptions, forks and pickles.
#
# SPDX-License-Identifier: Apache-2.0
import concurrent.futures
import contextlib
import multiprocessing
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy
import pytest
import tegula
from tegula._context import context

from tested import PACKAGE


@pytest.fixture
def chunked(tmp_path):
    """An HDF5 file with compressed chunks, and what it holds."""
    import h5py

    array = numpy.random.default_rng(0).integers(0, 100, (400, 50)).astype("i4")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=array, chunks=(20, 20), compression="gzip", shuffle=True)
    return tmp_path / "x.h5", array


# ---- threads ----


def test_sixteen_threads_on_one_dataset(chunked):
    path, array = chunked
    ds = tegula.open(path)

    def work(seed):
        rng = numpy.random.default_rng(seed)
        for _ in range(40):
            lo, hi = sorted(rng.integers(0, 401, 2))
            numpy.testing.assert_array_equal(ds[lo:hi, seed::3], array[lo:hi, seed::3])
        assert tegula.load(ds, tiles=seed + 1).hash() == ds.hash()
        return True

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(16)))


def test_other_threads_run_while_one_reads():
    """The GIL is free during a call: a reader that waits for another Python thread is served."""
    asked, answered = threading.Event(), threading.Event()

    def helper():
        assert asked.wait(100)
        answered.set()

    thread = threading.Thread(target=helper)
    thread.start()

    def read(box, out):
        asked.set()
        assert answered.wait(100)
        out[...] = 1

    assert (tegula.from_reader(read, (4,), "f4")[:] == 1).all()
    thread.join()


def test_readers_run_in_parallel():
    barrier = threading.Barrier(4)

    def read(box, out):
        barrier.wait(100)  # only passed when four calls are inside at once
        out[...] = box[0].start

    ds = tegula.from_reader(read, (4,), "f4", chunks=(1,), threads=4)
    assert ds[:].tolist() == [0, 1, 2, 3]


def test_readers_may_read_through_us(shards, chunked):
    """In a context of its own: one that waits for the call that it is part of would hang."""
    folder, array = shards
    inner, compressed = tegula.open(folder, threads=2), tegula.open(chunked[0])
    outer = tegula.from_reader(
        lambda box, out: inner.read(box, out), array.shape, "f4", chunks=(10, 3), threads=2
    )
    twice = tegula.from_reader(
        lambda box, out: numpy.copyto(out, outer[box]), array.shape, "f4", chunks=(50, 7)
    )
    assert (tegula.load(outer).local == array).all() and (twice[...] == array).all()
    contexts = []
    whole = tegula.from_reader(
        lambda box, out: (
            contexts.append(context()),
            numpy.copyto(out, tegula.load(compressed, tiles=3).local[box]),
        ),
        chunked[1].shape,
        "i4",
        chunks=(100, 50),
    )
    assert (
        tegula.load(whole, out=numpy.zeros(chunked[1].shape, "i4", order="F")).local == chunked[1]
    ).all()
    assert context() not in contexts and len(set(contexts)) == 1
    assert (compressed[...] == chunked[1]).all()
    endless = tegula.from_reader(lambda box, out: endless.read(box, out), (3,), "f4")
    with pytest.raises(tegula.Error, match="RecursionError"):
        endless[:]


def test_eight_threads_under_thread_sanitizer(tmp_path):
    """In the build that scripts/test makes for it;
    the interpreter and numpy are as they are, their locks are seen."""
    package = PACKAGE.parent / "tsan/python"
    if not (package / "tegula/_core.abi3.so").exists():
        pytest.skip(
            "the package is not built with ThreadSanitizer (build/tsan, with TEGULA_BUILD_PYTHON)"
        )
    library = subprocess.run(
        ["gcc", "-print-file-name=libtsan.so"], check=True, capture_output=True, text=True
    ).stdout.strip()
    done = subprocess.run(
        [sys.executable, pathlib.Path(__file__).parent / "eight_threads.py", tmp_path],
        env={
            **os.environ,
            "PYTHONPATH": str(package),
            "LD_PRELOAD": library,
            "TSAN_OPTIONS": "exitcode=99:halt_on_error=1",
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "8 threads are done\n", "")


# ---- Ctrl-C ----


@contextlib.contextmanager
def interrupted(when):
    """What is in it must end by the Ctrl-C that comes as soon as `when` is true, also where this
    thread gets no processor for a while."""
    over = threading.Event()

    def press(number, frame):
        while frame is not None:
            # too early: not yet in what must end
            if frame.f_code.co_name in ("__enter__", interrupted.__name__):
                threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()
                return
            frame = frame.f_back
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, press)  # the fixture `interruptible` puts back what was there

    def wait():
        while not over.is_set() and not when():
            time.sleep(0.001)
        if not over.is_set():
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=wait)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        try:
            yield
        finally:
            over.set()
    thread.join()


class Slow:
    """A dataset of 2,000 pieces, all of which would take 20 seconds; `calls` counts them."""

    def __init__(self):
        self.calls = 0
        self.dataset = tegula.from_reader(
            self.read, (4000, 1000), "f8", chunks=(2, 1000), threads=2
        )

    def read(self, box, out):
        self.calls += 1
        time.sleep(0.02)
        out[...] = 0


@pytest.mark.parametrize(
    "call",
    [lambda ds: tegula.load(ds), lambda ds: ds[...], lambda ds: ds.hash()],
    ids=["load", "read", "hash"],
)
def test_interrupt(call):
    slow = Slow()
    with interrupted(lambda: slow.calls > 5):
        call(slow.dataset)
    assert slow.calls < 1000
    assert slow.dataset[7, 7] == 0  # all is as before


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize(
    "call",
    [lambda ds: tegula.load(ds), lambda ds: ds[:2], lambda ds: ds[::2], lambda ds: ds.hash()],
    ids=["load", "index", "strided", "hash"],
)
def test_interrupt_within_a_reader(call, kind):
    """A small box is read by the caller's thread, so it is the reader that hears Ctrl-C."""

    def read(box, out):
        raise kind

    with pytest.raises(kind):
        call(tegula.from_reader(read, (4,), "i4"))


def test_failures_that_nobody_heard_of_do_not_hide_later_ones():
    """Of what the readers of several workers raise at once one arrives;
    the others stay for a while."""

    def read(box, out):
        raise KeyError(box)

    ds = tegula.from_reader(read, (4,), "i4")
    for count in range(200):
        ds._fill.keep(f"the reader raised ValueError: {count}", ValueError(count))
    with pytest.raises(tegula.Error) as caught:
        tegula.load(ds)
    assert type(caught.value.__cause__) is KeyError and len(ds._fill.failures) < 64


def test_interrupt_between_batches():
    """The piece that is awaited stops, and nothing is left of the walk."""
    slow = Slow()
    batches = slow.dataset.batches((2000, 1000))  # 1,000 pieces each, which take 10 seconds
    with interrupted(lambda: slow.calls > 5):
        for _ in batches:
            pass
    assert slow.calls < 500
    assert next(batches, None) is None
    assert slow.dataset[7, 7] == 0


def test_time_limit_of_batches(monkeypatch):
    slow = Slow()
    batches = slow.dataset.batches((2000, 1000))
    monkeypatch.setenv("TEGULA_TIMEOUT", "0.1")
    with pytest.raises(tegula.TimeLimitError, match=r"0\.1 seconds"):
        next(batches)
    monkeypatch.delenv("TEGULA_TIMEOUT")
    assert slow.calls < 500 and slow.dataset[7, 7] == 0


def test_interrupted_fence_leaves_the_save_alone(tmp_path):
    array = numpy.random.default_rng(0).integers(0, 1 << 14, 3 << 21).astype("i4")
    tegula.save(array, tmp_path / "x.h5", codec="deflate:9", chunks=(1 << 14,), block=False)
    with interrupted(lambda: os.listdir(tmp_path)):
        while True:
            tegula.fence()
    tegula.fence()
    assert (tegula.load(tmp_path / "x.h5").local == array).all()


def test_interrupted_saves_leave_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("TEGULA_THREADS", "1")
    array = numpy.random.default_rng(0).integers(0, 1 << 14, 3 << 23).astype("i4")
    with interrupted(lambda: os.listdir(tmp_path)):  # 96 MiB by one thread take seconds
        tegula.save(array, tmp_path / "x.h5", codec="deflate:9", chunks=(1 << 14,))
    assert os.listdir(tmp_path) == []


def test_time_limit(monkeypatch):
    monkeypatch.setenv("TEGULA_TIMEOUT", "0.2")
    with pytest.raises(TimeoutError, match=r"0\.2 seconds") as caught:
        tegula.load(Slow().dataset)
    assert caught.value.status == "timeout"
    monkeypatch.setenv("TEGULA_TIMEOUT", "60")
    assert (
        tegula.load(tegula.from_reader(lambda box, out: out.fill(1), (4,), "f8")).local.sum() == 4
    )


# ---- forks ----


def in_child(call, timeout=100):
    """What `call` returns in a forked child, as text; a child that hangs is killed."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.write(write, str(call()).encode())
            status = 0
        except BaseException as error:
            os.write(write, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(status)
    os.close(write)
    deadline = time.monotonic() + timeout
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.fail("the child hangs")
        time.sleep(0.01)
    with os.fdopen(read) as file:
        return file.read()


pytestmark = pytest.mark.filterwarnings(
    "ignore:This process .* is multi-threaded:DeprecationWarning"
)


def test_a_child_has_everything(shards, chunked, tmp_path):
    folder, array = shards
    ds, a, h5 = tegula.open(folder), tegula.load(folder, tiles=3), tegula.open(chunked[0])
    ds[...], h5[...]
    reader = tegula.from_reader(lambda box, out: out.fill(box[0].start), (3,), "i4", chunks=(1,))
    reader[:]
    # starts threads that a child does not have
    tegula.save(a, tmp_path / "parent.npy", block=False)
    tegula.fence()

    def use():
        assert (ds[::3] == array[::3]).all()
        assert (h5[...] == chunked[1]).all()
        assert (tegula.load(folder).local == array).all()
        assert (a.local == array).all() and a.hash() == ds.hash()
        assert reader[:].tolist() == [0, 1, 2]
        tegula.save(a, tmp_path / "child.npy", block=False, overwrite=True)
        tegula.fence()
        assert h5.attrs == {} and len(ds.files) == 5
        return len(pickle.loads(pickle.dumps(ds))[:])

    assert in_child(use) == "1000"
    assert in_child(lambda: in_child(use)) == "1000"
    assert (ds[...] == array).all()
    numpy.testing.assert_array_equal(numpy.load(tmp_path / "child.npy"), array)


@pytest.mark.parametrize(
    "path", ["x.npy", "x_*.npy", ["x_0.npy", "x_1.npy"], "link/../x.npy"], ids=str
)
def test_relative_paths_are_those_of_when_it_was_opened(tmp_path, monkeypatch, path):
    """In the other folder there are the same names: what is opened again, in a child or from a
    pickle, are the files that were meant."""
    import h5py

    for number, place in enumerate(("here[1]", "there", "here[1]/inside/deep", "here1")):
        (tmp_path / place).mkdir(parents=True)
        for name in ("x.npy", "x_0.npy", "x_1.npy", "inside/x.npy"):
            if (tmp_path / place / name).parent.exists():
                numpy.save(tmp_path / place / name, numpy.full((2, 3), number))
        with h5py.File(tmp_path / place / "x.h5", "w") as file:
            file.create_dataset("x", data=numpy.zeros(2)).attrs["number"] = number
    (tmp_path / "here[1]/link").symlink_to("inside/deep")
    numpy.save(tmp_path / "here[1]/inside/x.npy", numpy.full((2, 3), 7))
    monkeypatch.chdir(tmp_path / "here[1]")
    expected = 7 if "link" in path else 0
    ds, h5 = tegula.open(path), tegula.open("x.h5")
    monkeypatch.chdir(tmp_path / "there")
    assert in_child(lambda: sorted(set(ds[...].ravel().tolist()))) == f"[{expected}]"
    assert (pickle.loads(pickle.dumps(ds))[...] == expected).all() and (ds[...] == expected).all()
    assert h5.attrs == {"number": 0}
    monkeypatch.setattr("tegula._dataset._JSON_MOST", 10)  # path and options travel
    assert (pickle.loads(pickle.dumps(ds))[...] == expected).all()


def test_a_child_sees_that_files_changed(tmp_path):
    numpy.save(tmp_path / "x.npy", numpy.zeros(5))
    ds = tegula.open(tmp_path / "x.npy")
    numpy.save(tmp_path / "x.npy", numpy.zeros(6))
    assert in_child(lambda: ds[:]).startswith("ChangedError")


def test_a_fork_in_the_middle_of_a_call_is_said(shards):
    inside, go = threading.Event(), threading.Event()

    def read(box, out):
        inside.set()
        go.wait(20)

    busy = tegula.from_reader(read, (4,), "f4", threads=1)
    thread = threading.Thread(target=lambda: busy[:])
    thread.start()
    assert inside.wait(20)
    said = in_child(lambda: tegula.open(shards[0]))
    go.set()
    thread.join()
    assert said.startswith("UnsupportedError: cannot work in this process: it was forked while")
    assert in_child(lambda: tegula.open(shards[0]).shape) == "(1000, 7)"


def test_a_fork_by_a_progress_callback_is_said():
    """The child has none of the threads that load, and the parent's load goes on."""
    children = []

    def read(box, out):
        time.sleep(0.01)
        out[...] = 1

    def report(done, total):
        if not children:
            children.append(os.fork())
            if not children[0]:
                signal.alarm(20)  # not for ever

    try:
        loaded = tegula.load(
            tegula.from_reader(read, (200,), "i4", chunks=(2,), threads=2), progress=report
        )
    except tegula.UnsupportedError as error:
        os._exit(0 if "forked while" in str(error) else 2)
    finally:
        if not children[0]:
            os._exit(1)
    assert os.waitpid(children[0], 0)[1] == 0
    assert (loaded.local == 1).all()


def test_a_fork_during_a_save_is_said(shards, tmp_path):
    tegula.save(numpy.zeros(10), tmp_path / "x.npy", block=False)
    assert "forked" in in_child(lambda: tegula.open(shards[0]))
    tegula.fence()
    assert in_child(lambda: tegula.open(shards[0]).shape) == "(1000, 7)"


def read_part(task):
    ds, lo, hi = task
    return ds[lo:hi].sum(dtype="f8")


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pools(shards, method, monkeypatch):
    folder, array = shards
    ds = tegula.open(folder)
    monkeypatch.setenv("PYTHONPATH", f"{PACKAGE}:{pathlib.Path(__file__).parent}")
    with multiprocessing.get_context(method).Pool(2) as pool:
        sums = pool.map(read_part, [(ds, lo, lo + 100) for lo in range(0, 1000, 100)])
    numpy.testing.assert_allclose(sums, array.reshape(10, -1).sum(axis=1, dtype="f8"))


# ---- pickles ----


def attributes(ds):
    return (
        ds.shape,
        ds.dtype,
        ds.format,
        ds.name,
        ds.chunks,
        ds.codecs,
        ds.files,
        ds.nbytes,
        repr(ds),
    )


def test_pickled_datasets(shards, chunked, tmp_path):
    import h5py

    (tmp_path / "x.bin").write_bytes(bytes(range(40)))
    numpy.save(tmp_path / "r.npy", numpy.zeros(4, [("a", ">f4"), ("b", "i8")]))
    h5py.File(chunked[0], "a")["x"].attrs["n"] = 3
    for ds in (
        tegula.open(shards[0]),
        tegula.open(chunked[0]),
        tegula.open(tmp_path / "r.npy"),
        tegula.open(tmp_path / "x.bin", dtype=">u4", offset=4, row_shape=(3,), format="raw"),
        tegula.open(
            tmp_path / "x.bin", dtype=[("a", "u1"), ("b", "u1")], row_shape=(), format="raw"
        ),
        tegula.from_reader(numpy_ones, (3,), "f8", chunks=(2,)),
    ):
        data = ds[...]
        for _ in range(2):
            again = pickle.loads(pickle.dumps(ds))
            assert attributes(again) == attributes(ds)
            assert again.attrs == ds.attrs
            assert again[...].tobytes() == data.tobytes()
            ds = again


def numpy_ones(box, out):
    out[...] = 1


def test_a_virtual_dataset_over_many_files(tmp_path):
    """Its sources are opened when they are wanted, by any thread; a pickle brings all of them."""
    import h5py

    data = numpy.arange(260 * 6, dtype="<i4").reshape(260, 6)
    layout = h5py.VirtualLayout(data.shape, "<i4")
    for k in range(260):
        with h5py.File(tmp_path / f"s{k}.h5", "w") as file:
            file.create_dataset("x", data=data[k], chunks=(4,) if k % 2 else None)
        layout[k] = h5py.VirtualSource(f"s{k}.h5", "x", (6,))
    with h5py.File(tmp_path / "v.h5", "w", libver="latest") as file:
        file.create_virtual_dataset("v", layout)
    ds = tegula.open(tmp_path / "v.h5", "v")
    assert len(ds.files) == 1
    (tmp_path / "s259.h5").rename(tmp_path / "away")
    assert numpy.array_equal(ds[7:9, 1:], data[7:9, 1:]) and numpy.array_equal(
        ds[3:250:80], data[3:250:80]
    )
    with pytest.raises(tegula.NotFoundError, match="s259"):
        ds[258:]
    (tmp_path / "away").rename(tmp_path / "s259.h5")
    ds = tegula.open(tmp_path / "v.h5", "v")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert [row.tolist() for row in pool.map(lambda k: ds[k], range(0, 260, 3))] == data[
            ::3
        ].tolist()
    again = pickle.loads(pickle.dumps(ds))
    assert len(again.files) == 261 and numpy.array_equal(again[...], data)


def test_a_pickle_brings_its_manifest(shards, monkeypatch):
    """The other process lists no folder; files that changed since are an error."""
    folder, array = shards
    text = pickle.dumps(tegula.open(folder))
    (folder / "foreign.txt").touch()
    with pytest.raises(tegula.Error):
        tegula.open(folder)
    numpy.testing.assert_array_equal(pickle.loads(text)[...], array)
    numpy.save(folder / "part_2.npy", numpy.zeros((33, 7), "<f4"))
    with pytest.raises(tegula.ChangedError, match="part_2"):
        pickle.loads(text)[...]


def test_a_manifest_travels_up_to_a_mebibyte(tmp_path):
    """That of 1,000 chunks does; that of 100,000 is longer, and path and options are enough."""
    import h5py

    sizes = []
    for count in (1000, 100000):
        with h5py.File(tmp_path / f"{count}.h5", "w", libver="latest") as file:
            file.create_dataset(
                "x", data=numpy.arange(count, dtype="u1"), chunks=(1,), fletcher32=True
            )
        ds = tegula.open(tmp_path / f"{count}.h5")
        text = pickle.dumps(ds)
        assert (b"tegula_manifest" in text) is (count == 1000)
        assert (pickle.loads(text)[:] == ds[:]).all()
        sizes.append(len(text))
    assert sizes[1] < 2000 < sizes[0] < 1 << 20


def test_large_manifests_stay_at_home(shards, monkeypatch):
    from tegula import _dataset

    folder, array = shards
    monkeypatch.setattr(_dataset, "_JSON_MOST", 10)
    monkeypatch.chdir(folder.parent)
    text = pickle.dumps(tegula.open("shards"))
    monkeypatch.chdir("/")
    assert b"tegula_manifest" not in text
    numpy.testing.assert_array_equal(pickle.loads(text)[...], array)
    numpy.save(folder / "part_4.npy", numpy.zeros((101, 7), "<f4"))
    with pytest.raises(tegula.ChangedError):
        pickle.loads(text)


# ---- memory that is limited ----

SAVE_WITHIN_LIMITS = """
import os, resource, sys
import numpy, tegula

def save(path):
    arrays = {"x": numpy.arange(100_000), "y": numpy.arange(1000.0)}
    tegula.save(arrays, path, codec="shuffle,deflate:4")

def size():
    lines = open("/proc/self/status")
    return next(int(line.split()[1]) for line in lines if line.startswith("VmSize")) << 10

def child(path, more):
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (size() + more,) * 2)
    try:
        save(path)
    except MemoryError:
        os._exit(1)
    os._exit(0)

save(sys.argv[1] + "/first.h5")  # libhdf5 is loaded
for k in range(int(sys.argv[2])):
    pid = os.fork()
    if pid == 0:
        child(f"{sys.argv[1]}/{k}.h5", k << 15)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@pytest.mark.skipif(
    bool(os.environ.get("TEGULA_SANITIZER")), reason="sanitizers need terabytes of address space"
)
def test_too_little_memory_is_an_exception(tmp_path):
    """A save that finds no memory in libhdf5, with limits from nothing on in steps of 32 KiB:
    MemoryError and no file, or all of it."""
    import h5py

    count = 350 if os.environ.get("TEGULA_FAULT_ALL") == "1" else 70
    done = subprocess.run(
        [sys.executable, "-c", SAVE_WITHIN_LIMITS, tmp_path, str(count)],
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    codes = [int(line) for line in done.stdout.split()]
    assert len(codes) == count and set(codes) == {0, 1}, (codes, done.stderr)
    for k, code in enumerate(codes):
        assert (tmp_path / f"{k}.h5").exists() == (code == 0)
        if code == 0:
            with h5py.File(tmp_path / f"{k}.h5") as file:
                assert numpy.array_equal(file["x"][()], numpy.arange(100_000)) and file[
                    "y"
                ].shape == (1000,)
    assert not list(tmp_path.glob(".tegula-*"))
