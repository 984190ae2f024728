# The MPIs that are here, and programs started on ranks by them.
#
# SPDX-License-Identifier: Apache-2.0
#
# Debian's Open MPI and MPICH lie beside each other; the wheels of PyPI are in environments of their
# own below TEGULA_MPI_FOLDER (scripts/test makes them in build/). Every run has a time limit; what
# it leaves behind is ended by its process group.
import atexit
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings

import numpy

BIN = pathlib.Path(os.environ.get("TEGULA_BIN", "build/bin/tegula")).resolve()
RANKS = BIN.parent / "tegula_ranks"
FAULTS = BIN.parent.parent / "tests" / "faults.so"
FOLDER = pathlib.Path(os.environ.get("TEGULA_MPI_FOLDER", BIN.parent.parent)).resolve()
SANITIZED = os.environ.get("TEGULA_SANITIZER") == "address"
TIME_LIMIT = 120  # of a job: one that hangs ends by it
PATIENCE = 40  # a deadline that outlasts a machine that stands still
WHY = (
    "no MPI: neither mpirun.openmpi nor mpirun.mpich (openmpi-bin, mpich), nor the wheels below "
    "TEGULA_MPI_FOLDER"
)
RANK = "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$SLURM_PROCID}}"  # in a shell


class Mpi:
    def __init__(self, name, launcher, library, words=(), python=None, before=()):
        self.name, self.launcher, self.library, self.words, self.python = (
            name,
            launcher,
            str(library),
            list(words),
            python,
        )
        self.before = list(before)  # words in front of the launcher

    def __repr__(self):
        return self.name


def find():
    """All that are here. `python`: one that can import mpi4py with it."""
    found = []
    here = sys.executable
    for name, launcher, library, words in (
        ("openmpi-debian", "mpirun.openmpi", "libmpi.so.40", ["--oversubscribe"]),
        ("mpich-debian", "mpirun.mpich", "libmpich.so.12", []),
    ):
        if shutil.which(launcher):
            found.append(Mpi(name, launcher, library, words, here))
    for name, folder, library, words in (
        ("openmpi-wheel", "mpi-openmpi", "libmpi.so.40", ["--oversubscribe"]),
        ("mpich-wheel", "mpi-mpich", "libmpi_abi.so.1", []),
        ("intel-wheel", "mpi-intel", "libmpi.so.12", []),
        ("mpich-wheel-old", "mpi-mpich", "libmpi.so.12", []),
    ):
        launcher = FOLDER / folder / "bin" / "mpiexec"
        if launcher.exists():
            found.append(
                Mpi(
                    name,
                    str(launcher),
                    FOLDER / folder / "lib" / library,
                    words,
                    str(FOLDER / folder / "bin" / "python"),
                )
            )
    return found


MPIS = find()
ONCE = [mpi for mpi in MPIS if not mpi.name.endswith("-old")]  # each with one of its interfaces


def own_place():
    """A folder for what the launcher keeps in one. Jobs that share Open MPI's /tmp/ompi.HOST.USER
    meet there: one that ends takes it away while another one makes it. Its name is short, because
    sockets lie in it."""
    place = tempfile.mkdtemp(prefix="mpi-", dir="/tmp")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


def environment(mpi, **changes):
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("OMPI_", "PMI", "SLURM_", "MV2_"))
    }
    kept.update(
        OMPI_ALLOW_RUN_AS_ROOT="1",
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
        TEGULA_MPI_LIBRARY=mpi.library,
        OMPI_MCA_hwloc_base_binding_policy="none",
        PRTE_MCA_hwloc_default_binding_policy="none",
        **changes,
    )
    # the libraries of MPI keep what they have; faults are preloaded,
    # and so stand before the sanitizer
    if SANITIZED:
        kept["ASAN_OPTIONS"] = ":".join(
            [kept.get("ASAN_OPTIONS", ""), "detect_leaks=0", "verify_asan_link_order=0"]
        )
    kept.pop("PYTHONHOME", None)
    kept["TMPDIR"] = own_place()
    if "intel" in mpi.name:  # a wheel does not say where its parts lie
        lib = str(pathlib.Path(mpi.library).parent)
        kept.update(LD_LIBRARY_PATH=lib, FI_PROVIDER_PATH=lib, FI_PROVIDER="tcp", I_MPI_PIN="0")
    if "mpi-" in mpi.launcher:
        kept["PATH"] = str(pathlib.Path(mpi.launcher).parent) + ":" + kept["PATH"]
    return kept


def text_of(file):
    file.seek(0)
    with file:
        return file.read().decode("utf-8", "replace")


class Job:
    """A program on ranks that was started. `elsewhere`, (rank, folder): that rank sees another,
    empty file system at the folder (as root)."""

    def __init__(self, mpi, ranks, words, faults=None, env=None, elsewhere=None):
        words = [str(word) for word in words]
        if elsewhere is not None:
            rank, folder = elsewhere
            words = [
                "sh",
                "-c",
                f'if [ "{RANK}" = {rank} ]; then exec unshare --mount sh -c \'mount -t tmpfs '
                f'elsewhere "$0" && exec "$@"\' "{folder}" "$@"; fi; '
                'exec "$@"',
                "sh",
                *words,
            ]
        if faults == "told":  # by the program itself
            words = [
                "env",
                f"LD_PRELOAD={FAULTS}",
                "TEGULA_FAULT_WINDOW=1",
                "TEGULA_FAULT_ONLY=program",
                *words,
            ]
        elif faults is not None:  # (rank, plan): on that rank only
            rank, plan = faults
            words = [
                "sh",
                "-c",
                f'if [ "{RANK}" = {rank} ]; then export LD_PRELOAD={FAULTS} TEGULA_FAULT={plan} '
                "TEGULA_FAULT_WINDOW=1 "
                'TEGULA_FAULT_ONLY=program; fi; exec "$@"',
                "sh",
                *words,
            ]
        self.code = None
        # no pipes: what a launcher leaves behind would hold them open
        self.files = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [*mpi.before, mpi.launcher, *mpi.words, "-n", str(ranks), *words],
            env=environment(mpi, **(env or {})),
            stdin=subprocess.DEVNULL,
            stdout=self.files[0],
            stderr=self.files[1],
            start_new_session=True,
        )

    def wait_for(self, condition, limit=TIME_LIMIT):
        end = time.monotonic() + limit
        while not condition() and time.monotonic() < end and self.process.poll() is None:
            time.sleep(0.02)

    def stop(self):
        """Ends the launcher."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(1)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()

    def end(self, limit=TIME_LIMIT):
        """Waits for the end; what was printed is read once."""
        if self.code is not None:
            return self
        try:
            self.process.wait(limit)
            late = False
        except subprocess.TimeoutExpired:
            late = True
            self.stop()
        self.code, self.out, self.err = self.process.returncode, *map(text_of, self.files)
        assert not late, f"the job did not end within {limit} s: {self.err[-2000:]}"
        return self


def within(deadline, check):
    """check(DEADLINE) of a deadline that passes in any case. Where a machine stands still for
    longer, ranks are missing that are well: then one decides that outlasts it."""
    try:
        return check(deadline)
    except AssertionError as error:
        warnings.warn(f"with a deadline of {deadline} s: {error}", stacklevel=2)
    return check(PATIENCE)


class Answers(list):
    """What each rank wrote down, by rank; None for one that wrote nothing."""

    def one(self, key):
        """The value that all ranks that wrote something agree on."""
        values = {json.dumps(answer[key]) for answer in self if answer is not None}
        assert len(values) == 1, (key, values)
        return json.loads(values.pop())


class Ranks(Job):
    """tegula_ranks with its answers in a folder."""

    def __init__(self, mpi, ranks, folder, path, *words, **options):
        self.folder, self.ranks = pathlib.Path(folder), ranks
        self.folder.mkdir(parents=True, exist_ok=True)
        super().__init__(mpi, ranks, [RANKS, self.folder, path, *words], **options)

    def answers(self, **options):
        self.end(**options)
        answers = Answers()
        for rank in range(self.ranks):
            path = self.folder / f"{rank}.json"
            answers.append(json.loads(path.read_text()) if path.exists() else None)
        return answers

    def array(self, shape, answers):
        """The array as the ranks hold it; each element must have been brought exactly once."""
        dtype = numpy.dtype(answers.one("dtype"))
        out, count = numpy.zeros(shape, dtype), numpy.zeros(shape, "i1")
        for rank, answer in enumerate(answers):
            for i, box in enumerate(answer["tiles"]):
                place = tuple(slice(lo, hi) for lo, hi in box)
                data = numpy.fromfile(self.folder / f"{rank}.{i}.bin", dtype)
                out[place] = data.reshape([hi - lo for lo, hi in box])
                count[place] += 1
        assert (count == 1).all()
        return out


def injected(mpi, ranks, folder, path, lines, *words, limit=TIME_LIMIT):
    """One job that does all of it again for each line, RANK PLAN [KEY=VALUE...]; gives the
    answers of all ranks for each."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "injections").write_text("".join(line + "\n" for line in lines))
    job = Ranks(
        mpi,
        ranks,
        folder / "out",
        path,
        *words,
        f"injections={folder / 'injections'}",
        faults="told",
    ).end(limit)
    answers = [
        [json.loads(line) for line in (job.folder / f"{rank}.lines").read_text().splitlines()]
        for rank in range(ranks)
    ]
    counts = [len(done) for done in answers]
    assert job.code == 0 and counts == [len(lines)] * ranks, (
        job.err,
        counts,
        lines[counts[0] - 1 :][:2],
    )
    return [Answers(of) for of in zip(*answers)]


def felt(plan):
    """A sanitizer has an allocator of its own, which is not made to fail."""
    return not (SANITIZED and plan.startswith("memory"))


def some_at_once(start, most=4):
    """Jobs in their order; most of their time they wait for their launchers."""
    jobs = [make() for make in start[:most]]
    for make in [*start[most:], *[None] * most][: len(start)]:
        yield jobs.pop(0)
        if make is not None:
            jobs.append(make())
