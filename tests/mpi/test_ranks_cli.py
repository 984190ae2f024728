# The shell command on ranks: one report with sums, one error,
# and no rank that does all the work alone.
#
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import subprocess

import numpy
import pytest

import replacing
from launch import BIN, MPIS, Job, environment, some_at_once
from reference_hash import content_hash


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    for i in range(4):
        numpy.save(
            folder / f"s{i}.npy", numpy.arange(i * 600, (i + 1) * 600, dtype="f4").reshape(100, 6)
        )
    return folder


def load(mpi, ranks, *words, **options):
    return Job(mpi, ranks, [BIN, *words], **options).end()


def test_one_report_with_sums(mpi, shards):
    job = load(mpi, 3, "load", shards, "--hash", "--json", "-v")
    assert job.code == 0, job.err
    report = json.loads(job.out)
    assert (report["ranks"], report["tiles"], report["shape"]) == (3, 3, [400, 6])
    assert report["opens"] == 4 + 2 + 2 and report["bytes"] == 9600 and report["bytes_read"] >= 9600
    assert report["hash"] == content_hash(numpy.arange(2400, dtype="f4").reshape(400, 6))
    assert [(tile["rank"], tile["box"][0]) for tile in report["tile_list"]] == [
        (0, [0, 134]),
        (1, [134, 268]),
        (2, [268, 400]),
    ]
    assert [source["rows"] for source in report["tile_list"][1]["sources"]] == [[34, 100], [0, 68]]


def test_ranks_read_one_of_two_folders_that_are_exchanged(some_mpi, tmp_path):
    """Rank 0 describes; what the others open by name is compared with that."""
    hashes = {}
    for name, value in (("a", 1), ("b", 2)):
        (tmp_path / name).mkdir()
        arrays = [numpy.full((2 + (i + value) % 3, 5), value, "i4") for i in range(64)]
        for i, array in enumerate(arrays):
            numpy.save(tmp_path / name / f"part_{i:02}.npy", array)
        hashes[content_hash(numpy.concatenate(arrays))] = value
    outcomes = []
    with replacing.running("exchange", tmp_path / "a", tmp_path / "b", 0.02):
        for _ in range(200 if os.environ.get("TEGULA_MPI_ALL") == "1" else 8):
            job = load(some_mpi, 3, "load", tmp_path / "a", "--hash", "--json")
            report = json.loads(job.out)
            outcomes.append(hashes[report["hash"]] if job.code == 0 else report["error"]["status"])
    assert set(outcomes) <= {1, 2, "changed"}, outcomes


def test_datasets_that_a_pattern_matches(some_mpi, tmp_path):
    """Rank 0 describes them, each rank gets the one array."""
    h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes the file")
    data = numpy.random.default_rng(1).integers(0, 99, (90, 4)).astype("f4")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for i in range(3):
            file.create_dataset(
                f"g/x_{i}", data=data[30 * i : 30 * i + 30], chunks=(7, 4), compression="gzip"
            )
    named = ["--dataset", "/g/x_*"]
    job = load(some_mpi, 4, "load", tmp_path / "x.h5", *named, "--hash", "--json")
    assert job.code == 0, job.err
    assert json.loads(job.out)["hash"] == content_hash(data)
    job = load(some_mpi, 3, "copy", tmp_path / "x.h5", tmp_path / "y.h5", *named, "--json")
    assert job.code == 0, job.err
    with h5py.File(tmp_path / "y.h5") as file:
        assert (file["g/x"][()] == data).all()
    job = load(some_mpi, 3, "load", tmp_path / "x.h5", "--dataset", "/g/y_*", "--json")
    assert job.code != 0 and json.loads(job.out)["error"]["status"] == "not_found"


def test_one_error_with_the_rank_that_failed(mpi, shards, tmp_path):
    job = load(mpi, 4, "load", tmp_path / "nowhere", "--json")
    assert job.code != 0
    error = json.loads(job.out)["error"]
    assert error["status"] == "not_found" and error["rank"] == 0
    assert job.err.count("tegula: ") == 1


def test_a_usage_error_is_said_once(some_mpi, shards):
    job = load(some_mpi, 3, "load", shards, "--bogus")
    assert job.code != 0 and job.err.count("tegula: load has no option --bogus") == 1


def test_values_that_are_wrong_on_one_rank(some_mpi, tmp_path):
    subprocess.run([BIN, "write", tmp_path / "w", "--shape", "300,4", "--quiet"], check=True)
    path = sorted((tmp_path / "w").glob("*.npy"))[-1]
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    job = load(some_mpi, 3, "load", tmp_path / "w", "--check-seed", "0", "--json")
    assert job.code == 0
    path.write_bytes(data)
    job = load(some_mpi, 3, "load", tmp_path / "w", "--check-seed", "0", "--json")
    error = json.loads(job.out)["error"]
    assert job.code != 0 and error["status"] == "mismatch" and error["rank"] == 2


def test_a_copy_by_all_ranks_is_reported_once(some_mpi, shards, tmp_path):
    for ranks in (1, 3):
        job = load(some_mpi, ranks, "copy", shards, tmp_path / f"{ranks}.npy", "--verify", "--json")
        report = json.loads(job.out)
        assert (
            job.code == 0
            and report["ranks"] == ranks
            and report["stored_bytes"] == report["bytes"]
            and report["hash"]
        ), job.err
    assert (tmp_path / "1.npy").read_bytes() == (tmp_path / "3.npy").read_bytes()
    job = load(some_mpi, 3, "copy", shards, tmp_path / "3.npy")
    assert job.code != 0 and job.err.count("exists") == 1 and job.out == ""


STRANGE = b"a\x1eb\x1f\n\"c\" 'd' 50% %s %b e\\f;g:h,i|j \xff\xfe"
TARGETS = {
    b".npy": [],
    b".d": ["--shards", "3"],
    b".raw": ["--format", "raw"],
    b".bins": ["--format", "raw", "--shards", "3"],
    b".h5": ["--layout", "contiguous", "--to-dataset", b"x\x1ey\n%s"],
    b".virtual.h5": ["--layout", "virtual", "--tiles", "3"],
}


def from_target(path):
    """As numpy and h5py read it."""
    if os.path.isdir(path):
        parts = sorted(name for name in os.listdir(path) if not name.endswith(b".json"))
        return numpy.concatenate([from_target(path + b"/" + name) for name in parts])
    if path.endswith(b".npy"):
        return numpy.load(path)
    if path.endswith(b".h5"):
        h5py = pytest.importorskip("h5py")
        with h5py.File(path) as file:
            return file[next(iter(file))][:]
    return numpy.fromfile(path, "f4").reshape(-1, 6)


def test_verified_copies_to_paths_of_any_bytes(some_mpi, shards, tmp_path):
    """In folders and files. The words stand in scripts, because launchers change some of them."""
    expected = numpy.arange(2400, dtype="f4").reshape(400, 6)
    folder = os.fsencode(tmp_path) + b"/" + STRANGE
    os.mkdir(folder)
    for number, (suffix, options) in enumerate(TARGETS.items()):
        words = [
            os.fsencode(word)
            for word in (
                BIN,
                "copy",
                "--verify",
                "--json",
                shards,
                folder + b"/" + STRANGE + suffix,
                *options,
            )
        ]
        line = b" ".join(b"'%s'" % word.replace(b"'", b"'\\''") for word in words)
        (tmp_path / str(number)).write_bytes(b"exec " + line + b"\n")
    for job in some_at_once(
        [
            lambda number=number: Job(some_mpi, 3, ["sh", tmp_path / str(number)])
            for number in range(len(TARGETS))
        ]
    ):
        assert job.end().code == 0, (job.out, job.err)
    for suffix in TARGETS:
        assert numpy.array_equal(from_target(folder + b"/" + STRANGE + suffix), expected), suffix


def test_rank_0_alone_looks_and_writes(some_mpi, shards, tmp_path):
    for words in (["info", shards], ["plan", shards], ["verify", shards]):
        job = load(some_mpi, 3, *words, "--json")
        assert job.code == 0 and json.loads(job.out), (job.out, job.err)
    job = load(
        some_mpi, 3, "write", tmp_path / "x", "--num-shards", "3", "--shape", "20,3", "--json"
    )
    assert (
        job.code == 0
        and json.loads(job.out)["files"] == 3
        and len(list((tmp_path / "x").glob("*.npy"))) == 3
    )


def test_a_rank_that_stands_still_is_named(some_mpi, shards):
    """In front of MPI's own start: nobody knows who it is, but nobody waits."""
    # also late it is the same message: those that are here are not named
    job = Job(
        some_mpi,
        3,
        [
            "sh",
            "-c",
            'if [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ]; then kill -STOP $$; fi; exec "$@"',
            "sh",
            BIN,
            "load",
            shards,
            "--timeout",
            "1",
        ],
    ).end()
    assert (
        job.code != 0
        and "tegula: not all of 3 ranks came to the start of MPI within the deadline" in job.err
    )


@pytest.mark.parametrize(
    "variables",
    [
        {"OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_RANK": "0"},
        {"PMI_SIZE": "3", "PMI_RANK": "0"},
        {"MV2_COMM_WORLD_SIZE": "3", "MV2_COMM_WORLD_RANK": "0"},
        {"SLURM_NTASKS": "3", "SLURM_PROCID": "0"},
        {"SLURM_STEP_NUM_TASKS": "3", "SLURM_PROCID": "0"},
    ],
    ids=lambda value: next(iter(value)),
)
@pytest.mark.parametrize("library", ["the MPI that is here", "/nowhere/libmpi.so"])
def test_ranks_without_mpi_are_an_error(variables, library, shards, tmp_path):
    """The launcher says three, but MPI cannot be opened, or knows of one process:
    nobody may load all of it."""
    if library[0] != "/" and (not MPIS or "PMI_SIZE" in variables):
        pytest.skip("no MPI is here" if not MPIS else "MPICH would wait for a launcher")
    named = MPIS[0].library if MPIS and library[0] != "/" else library
    env = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("OMPI_", "PMI", "SLURM_"))
    }
    env.update(
        variables,
        TEGULA_MPI_LIBRARY=named,
        OMPI_ALLOW_RUN_AS_ROOT="1",
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
    )
    run = subprocess.run(
        [BIN, "load", shards, "--json"], env=env, capture_output=True, text=True, timeout=60
    )
    error = json.loads(run.stdout)["error"]
    assert run.returncode == 1
    if library[0] == "/":
        assert error["status"] == "unsupported" and "/nowhere/libmpi.so" in error["message"]
    else:
        assert (
            error["status"] == "comm"
            and f"has started 3 ranks ({next(iter(variables))}" in error["message"]
            and error["message"].endswith("finds 1")
        )


def test_a_script_of_slurm_is_one_process(shards):
    env = dict(os.environ, SLURM_NTASKS="3", SLURM_PROCID="0", ENVIRONMENT="BATCH")
    run = subprocess.run(
        [BIN, "load", shards, "--json"], env=env, capture_output=True, text=True, timeout=60
    )
    assert json.loads(run.stdout)["ranks"] == 1


def fake_launcher(folder, name):
    path = pathlib.Path(folder) / name
    path.write_text(
        '#!/bin/sh\nif [ "$1" = --version ]; then echo "$VERSION"; else printf "%s\\n" "$@"; fi\n'
    )
    path.chmod(0o755)


@pytest.mark.parametrize(
    "words, env, expected",
    [
        (["--ranks", "4"], {}, ["-n", "4"]),
        (
            ["--nodes", "2", "--ranks-per-node", "3"],
            {"VERSION": "mpirun (Open MPI) 4.1.4"},
            ["-n", "6", "--map-by", "ppr:3:node"],
        ),
        (
            ["--nodes", "2", "--ranks-per-node", "3"],
            {"VERSION": "HYDRA build details:"},
            ["-n", "6", "-ppn", "3"],
        ),
        (["--ranks", "4"], {"SLURM_JOB_ID": "7"}, ["-n", "4"]),
        (
            ["--nodes", "2", "--ranks-per-node", "3", "--launcher", "srun"],
            {},
            ["-n", "6", "-N", "2", "--ntasks-per-node", "3"],
        ),
    ],
)
def test_run_says_what_the_launcher_wants(words, env, expected, tmp_path):
    for name in ("mpirun", "srun"):
        fake_launcher(tmp_path, name)
    run = subprocess.run(
        [BIN, "run", *words, "--", "load", "a b", "--json"],
        env=dict(os.environ, PATH=f"{tmp_path}:/bin:/usr/bin", **env),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.stdout.splitlines() == [*expected, str(BIN), "load", "a b", "--json"], run.stderr


def test_srun_ends_the_others_when_one_fails(tmp_path):
    (tmp_path / "srun").write_text('#!/bin/sh\necho "kill $SLURM_KILL_BAD_EXIT"\n')
    (tmp_path / "srun").chmod(0o755)
    for env, expected in (({}, "kill 1"), ({"SLURM_KILL_BAD_EXIT": "0"}, "kill 0")):
        run = subprocess.run(
            [BIN, "run", "--launcher", "srun", "--ranks", "2", "--", "load", "x"],
            capture_output=True,
            text=True,
            timeout=60,
            env=dict(os.environ, PATH=f"{tmp_path}:/bin:/usr/bin", **env),
        )
        assert run.stdout.strip() == expected, run.stderr


def test_run_starts_ranks(some_mpi, shards, tmp_path):
    (tmp_path / "mpirun").write_text(f'#!/bin/sh\nexec {some_mpi.launcher} "$@"\n')
    (tmp_path / "mpirun").chmod(0o755)
    env = environment(some_mpi)
    run = subprocess.run(
        [BIN, "run", "--ranks", "3", "--", "load", shards, "--json"],
        env=dict(env, PATH=f"{tmp_path}:{env['PATH']}"),
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["ranks"] == 3


def test_run_needs_a_number_and_a_launcher(tmp_path):
    run = subprocess.run(
        [BIN, "run", "--", "load", "x"], capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 2 and "how many ranks?" in run.stderr
    run = subprocess.run(
        [BIN, "run", "--ranks", "2", "--", "load", "x"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 1 and "no launcher was found" in run.stderr


@pytest.mark.parametrize("most", (None, 10))
def test_files_of_records_and_their_settings(some_mpi, tmp_path, most):
    """Rank 0 finds out what the records are; each rank compares the markers of what it reads."""
    array = numpy.arange(90 * 7, dtype=">f4").reshape(90, 7)
    numpy.save(tmp_path / "x.npy", array)
    limit = ["--to-set", f"raw.subrecord_bytes={most}"] if most else []
    target = tmp_path / "x.raw"
    saved = load(
        some_mpi, 3, "copy", tmp_path / "x.npy", target,
        "--to-record-markers", "fortran4", *limit, "--verify",
    )  # fmt: skip
    assert saved.code == 0, saved.err
    if most is None:
        record = numpy.dtype([("before", "<i4"), ("row", "<f4", (7,)), ("behind", "<i4")])
        found = numpy.fromfile(target, record)
        assert (found["row"] == array).all()
        assert (found["before"] == 28).all() and (found["behind"] == 28).all()
    said = ["--dtype", "<f4", "--row-shape", "7", "--set", "raw.record_markers=fortran4"]
    job = load(some_mpi, 3, "load", target, *said, "--hash", "--json")
    assert job.code == 0 and json.loads(job.out)["hash"] == content_hash(array), job.err
    damaged = bytearray(target.read_bytes())
    damaged[-2] ^= 1
    target.write_bytes(damaged)
    job = load(some_mpi, 3, "load", target, *said, "--json")
    assert job.code == 1 and json.loads(job.out)["error"]["status"] == "corrupt"
