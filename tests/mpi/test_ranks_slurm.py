# Ranks that srun starts, by a Slurm of our own on this machine: MPICH by pmi2, Open MPI by pmix.
#
# SPDX-License-Identifier: Apache-2.0
import json
import subprocess
import time

import numpy
import pytest

from launch import BIN, ONCE, RANK, WHY, Job, Ranks, environment, within
from reference_hash import content_hash
from slurm import Slurm, Unavailable

ARRAY = numpy.random.default_rng(12).standard_normal((211, 30))


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    try:
        with Slurm(tmp_path_factory.mktemp("slurm") / "own") as slurm:
            yield slurm
    except Unavailable as why:
        pytest.skip(str(why))


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    for i, part in enumerate(numpy.split(ARRAY, [5, 100, 101])):
        numpy.save(folder / f"s{i}.npy", part)
    return folder


def started_by(slurm, mpi):
    if mpi is None:
        pytest.skip(WHY)
    try:
        return slurm.mpi(mpi)
    except Unavailable as why:
        pytest.skip(str(why))


@pytest.fixture(params=ONCE or [None], ids=str)
def srun(request, slurm):
    return started_by(slurm, request.param)


@pytest.fixture(params=ONCE[:2] or [None], ids=str)
def some_srun(request, slurm):
    return started_by(slurm, request.param)


def env(slurm):
    return {"SLURM_CONF": slurm.environment["SLURM_CONF"]}


def test_as_one_process(srun, slurm, shards, tmp_path):
    """One report of four ranks; the array, its hash and what they save."""
    job = Job(srun, 4, [BIN, "load", shards, "--hash", "--json"], env=env(slurm))
    ranks = Ranks(
        srun,
        4,
        tmp_path / "out",
        shards,
        "hash=1",
        "axis=1",
        f"save={tmp_path / 'x.npy'}",
        env=env(slurm),
    )
    report = json.loads(job.end().out)
    assert job.code == 0 and (report["ranks"], report["shape"]) == (4, [211, 30]), job.err
    assert report["hash"] == content_hash(ARRAY)
    answers = ranks.answers()
    assert ranks.code == 0 and answers.one("hash") == content_hash(ARRAY), ranks.err
    assert (ranks.array(ARRAY.shape, answers) == ARRAY).all() and (
        numpy.load(tmp_path / "x.npy") == ARRAY
    ).all()


def test_a_rank_that_fails_is_killed_or_stands_still(some_srun, slurm, shards, tmp_path):
    """The same error on all ranks; when one is gone or does nothing, the step ends, and a
    deadline's message names it."""
    within(
        3,
        lambda deadline: check_failures(
            some_srun, slurm, shards, tmp_path / str(deadline), deadline
        ),
    )


def check_failures(some_srun, slurm, shards, tmp_path, deadline):
    tmp_path.mkdir()
    options = {"env": env(slurm)}
    failed = Ranks(
        some_srun, 4, tmp_path / "failed", shards, "threads=1", faults=(2, "read:1:EIO"), **options
    )
    killed = Ranks(
        some_srun,
        4,
        tmp_path / "killed",
        shards,
        f"deadline={deadline}",
        "@1:kill=load",
        f"save={tmp_path / 'x.npy'}",
        **options,
    )
    still = Ranks(
        some_srun, 4, tmp_path / "still", shards, f"deadline={deadline}", "@3:stop=array", **options
    )
    early = Job(
        some_srun,
        4,
        [
            "sh",
            "-c",
            f'if [ "{RANK}" = 1 ]; then sleep 600; fi; exec "$@"',
            "sh",
            BIN,
            "load",
            shards,
            "--timeout",
            "2",
        ],
        **options,
    )
    answers = failed.answers()
    assert (
        failed.code != 0
        and answers.one("status") == "io"
        and answers.one("failed") == 2
        and answers.one("step") == "load"
    ), failed.err
    killed.end()
    assert killed.code != 0 and not (tmp_path / "x.npy").exists()
    answers = still.answers()[:3]
    assert (
        still.code != 0
        and [answer["message"] for answer in answers]
        == ["rank 3 did not come to an agreement of 4 ranks within the deadline"] * 3
    )
    assert (
        early.end().code != 0
        and "tegula: not all of 4 ranks came to the start of MPI within the deadline" in early.err
    ), early.err


def test_srun_without_what_mpi_understands(slurm, shards):
    """Each process would be alone: an error, never four full copies."""
    if not ONCE:
        pytest.skip(WHY)
    words = [*slurm.before, "srun", "--mpi=none", "-n", "4", BIN, "load", shards, "--json"]
    run = subprocess.run(
        [str(word) for word in words],
        env=environment(ONCE[-1], **env(slurm)),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (
        run.returncode != 0
        and "has started 4 ranks (SLURM_STEP_NUM_TASKS)" in run.stdout
        and "srun --mpi=list" in run.stderr
    ), run.stderr


def test_a_batch_script_is_one_process_and_its_steps_are_ranks(some_srun, slurm, shards, tmp_path):
    """sbatch -n 4: the command itself, `srun` in it, and `tegula run`, which takes srun there."""
    script, out, plugin = tmp_path / "script", tmp_path / "out", some_srun.words[0].split("=")[1]
    script.write_text(
        f"#!/bin/sh\n{BIN} load {shards} --json\nsrun --mpi={plugin} {BIN} load {shards} --json\n"
        f"SLURM_MPI_TYPE={plugin} {BIN} run --ranks 3 -- load {shards} --json\necho end\n"
    )
    words = [*slurm.before, "sbatch", "-n", "4", f"--output={out}", script]
    run = subprocess.run(
        [str(word) for word in words],
        env=environment(some_srun, **env(slurm)),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    until = time.monotonic() + 100
    while not (out.exists() and out.read_text().endswith("end\n")) and time.monotonic() < until:
        time.sleep(0.05)
    reports = [json.loads(line) for line in out.read_text().splitlines() if line.startswith("{")]
    assert [report.get("ranks", 1) for report in reports] == [1, 4, 3], out.read_text()
