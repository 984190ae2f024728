# verify and compare on ranks: the outcome of one process, the work divided.
#
# SPDX-License-Identifier: Apache-2.0
import json
import os
import subprocess

import numpy
import pytest

from launch import BIN, RANK, RANKS, Job, Ranks, felt

h5py = pytest.importorskip("h5py")
NUMBERS = numpy.arange(900 * 400, dtype="<i4").reshape(900, 400)  # 1.44 MB


def write_sums(path, out, *words):
    code, report = alone("verify", path, "--write", out, *words)
    assert code == 0
    return report, out.read_text()


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Whole ones, and the same with damage: a short shard, one that is gone, two chunks that
    cannot be decoded, another number."""
    folder = tmp_path_factory.mktemp("check")
    for name in ("shards", "damaged"):
        (folder / name).mkdir()
        for i, part in enumerate(numpy.split(NUMBERS, 9)):
            numpy.save(folder / name / f"part_{i}.npy", part)
    numpy.save(folder / "whole.npy", NUMBERS)
    for name in ("chunks.h5", "torn.h5"):
        with h5py.File(folder / name, "w") as file:
            d = file.create_dataset("x", data=NUMBERS, chunks=(50, 400), compression="gzip")
            places = [d.id.get_chunk_info(i).byte_offset for i in (3, 15)]
    with open(folder / "torn.h5", "r+b") as file:
        for place in places:
            file.seek(place)
            file.write(b"\xff" * 64)
    write_sums(folder / "shards", folder / "shards.sums")
    numpy.save(folder / "swapped.npy", NUMBERS.astype(">i4"))
    subprocess.run(
        [BIN, "info", folder / "damaged", "--manifest", folder / "damaged.json", "--quiet"],
        check=True,
        timeout=60,
    )
    os.truncate(folder / "damaged" / "part_1.npy", 1000)
    (folder / "damaged" / "part_5.npy").unlink()
    os.truncate(folder / "damaged" / "part_8.npy", 0)
    for name, index in (("early.npy", (5, 7)), ("late.npy", (899, 399)), ("both.npy", (5, 7))):
        other = NUMBERS.copy()
        other[index] = -1
        if name == "both.npy":
            other[899, 399] = -2
        numpy.save(folder / name, other)
    numpy.save(folder / "floats.npy", NUMBERS.astype("f4"))
    return folder


def alone(*words):
    """The report of one process."""
    result = subprocess.run([BIN, *map(str, words), "--json"], capture_output=True, timeout=60)
    return result.returncode, json.loads(result.stdout)


@pytest.mark.parametrize("ranks", [2, 3, 7])
def test_verify_reads_everything_once(some_mpi, sources, tmp_path, ranks):
    jobs = [
        Ranks(some_mpi, ranks, tmp_path / name, sources / name, "load=0", f"verify={level}", *words)
        for name, level, words in (
            ("shards", 2, []),
            ("chunks.h5", 2, ["dataset=x"]),
            ("whole.npy", 0, []),
        )
    ]
    for job, bytes_of_all in zip(jobs, (NUMBERS.nbytes, NUMBERS.nbytes, 0)):
        answers = job.answers()
        assert None not in answers and answers.one("status") == "ok", (job.code, job.err, answers)
        report = answers.one("verified")
        assert report["bytes"] == bytes_of_all and report["problems"] == 0
        if bytes_of_all:
            shares = [answer["bytes_read"] for answer in answers]
            stored = sum(shares)
            # divided, each byte read once
            assert max(shares) < 0.75 * stored if ranks > 2 else max(shares) < 0.9 * stored, shares
    assert jobs[0].answers().one("verified")["files"] == 9


def of_problems(problems):
    return [(problem["status"], problem["path"], problem["message"]) for problem in problems]


def test_what_is_wrong_is_the_same_as_in_one_process(some_mpi, sources, tmp_path):
    """On every rank: the problems, their order, the first one as the error. Files that changed
    are found by a manifest of before."""
    names = {"torn.h5": (["dataset=x"], ["--dataset", "/x"]), "damaged.json": ([], [])}
    jobs = {
        name: Ranks(some_mpi, 4, tmp_path / name, sources / name, "load=0", "verify=2", *words)
        for name, (words, _) in names.items()
    }
    for name, (_, words) in names.items():
        code, report = alone("verify", sources / name, *words)
        answers = jobs[name].answers()
        problems = answers.one("problems")
        assert code == 3 and of_problems(problems) == of_problems(report["problems"]), (
            name,
            problems,
        )
        assert (
            answers.one("verified")["problems"] == len(problems)
            and answers.one("verified")["files"] == report["files"]
        )
        assert (
            answers.one("message") == problems[0]["message"]
            and answers.one("failed") == problems[0]["rank"]
        )
    assert [os.path.basename(problem["path"]) for problem in problems] == [
        "part_1.npy",
        "part_5.npy",
        "part_8.npy",
    ]
    assert {problem["rank"] for problem in problems} == {0, 2, 3}  # who looked at them


def test_compare_names_the_first_difference(some_mpi, sources, tmp_path):
    """Also where a later rank finds another one,
    or cannot read what one process would not have read."""
    pairs = {
        "equal": ("whole.npy", ""),
        "early": ("early.npy", "(5, 7)"),
        "late": ("late.npy", "(899, 399)"),
        "both": ("both.npy", "(5, 7)"),
        "floats": ("floats.npy", "dtypes"),
    }
    jobs = {
        name: Ranks(
            some_mpi,
            3,
            tmp_path / name,
            sources / "chunks.h5",
            "dataset=x",
            "load=0",
            f"compare={sources / other}",
        )
        for name, (other, _) in list(pairs.items())[:3]
    }
    for name, (other, where) in pairs.items():
        if name not in jobs:
            jobs[name] = Ranks(
                some_mpi,
                3,
                tmp_path / name,
                sources / "chunks.h5",
                "dataset=x",
                "load=0",
                f"compare={sources / other}",
            )
        answers = jobs[name].answers()
        _, report = alone("compare", sources / "chunks.h5", sources / other)
        assert answers.one("status") == "ok" and answers.one("equal") == (where == ""), jobs[
            name
        ].err
        assert where in answers.one("difference") and answers.one("difference") == (
            report["reason"] or ""
        )
        if name == "equal":
            assert max(answer["bytes_read"] for answer in answers) < 0.6 * sum(
                answer["bytes_read"] for answer in answers
            )
    torn = Ranks(
        some_mpi,
        7,
        tmp_path / "torn",
        sources / "early.npy",
        "load=0",
        f"compare={sources / 'torn.h5'}",
        "other=x",
    ).answers()
    # the torn chunks lie behind it
    assert torn.one("status") == "ok" and "(5, 7)" in torn.one("difference")
    torn = Ranks(
        some_mpi,
        7,
        tmp_path / "torn_late",
        sources / "late.npy",
        "load=0",
        f"compare={sources / 'torn.h5'}",
        "other=x",
    ).answers()
    assert torn.one("status") == "corrupt" and torn.one("failed") == 1


def test_ranks_that_verify_differently(some_mpi, sources, tmp_path):
    jobs = [
        Ranks(some_mpi, 3, tmp_path / str(i), sources / "whole.npy", "load=0", *words)
        for i, words in enumerate(
            (
                ["verify=2", "@1:verify=0"],
                ["verify=9", "@1:verify=2"],
                ["verify=2", "@2:skip=verify"],
            )
        )
    ]
    messages = [job.answers().one("message") for job in jobs]
    assert messages[0] == "the ranks were not called alike: the level of rank 0: 2, of rank 1: 0"
    assert "there is no such level" in messages[1]
    assert "rank 0 is in tegula_dataset_verify, rank 2 in tegula_comm_end" in messages[2]


def test_sums_are_those_of_one_process(some_mpi, sources, tmp_path):
    """Blocks as they are hashed, chunks that are decoded in passing, and an order of bytes that
    is read again; what cannot be read is no sums."""
    # 36 MB: three blocks of sums, in which chunks begin that end in the next
    with h5py.File(sources / "large.h5", "w") as file:
        noise = numpy.random.default_rng(3).integers(0, 1 << 30, (3000, 3000), dtype="i4")
        file.create_dataset("x", data=noise, chunks=(170, 333), compression="lzf")
    for name, ranks in (("shards", 3), ("chunks.h5", 2), ("swapped.npy", 7), ("large.h5", 3)):
        expected, text = write_sums(sources / name, tmp_path / f"{name}.one")
        job = Job(
            some_mpi,
            ranks,
            [BIN, "verify", sources / name, "--write", tmp_path / f"{name}.all", "--json"],
        ).end()
        assert job.code == 0, job.err
        assert (tmp_path / f"{name}.all").read_text() == text
        report = json.loads(job.out)
        # divided, not repeated; what lies at the borders of ranks is read again
        assert report["bytes"] < 2 * expected["bytes"]
        assert {**report, "sums": "", "bytes": 0} == {**expected, "sums": "", "bytes": 0}
    job = Job(
        some_mpi,
        3,
        [BIN, "verify", sources / "damaged.json", "--write", tmp_path / "none", "--json"],
    ).end()
    assert (
        job.code != 0
        and len(json.loads(job.out)["problems"]) == 3
        and not (tmp_path / "none").exists()
    )


@pytest.fixture(scope="module")
def summed(sources):
    """(what is looked at, its sums, whether it can be opened, words): as it was,
    and with damage of many kinds since."""

    def renamed(old, new):
        head = (sources / f"{old}.sums").read_text().rpartition(',\n "self"')[0]
        (sources / f"{new}.sums").write_text(head.replace(f'"{old}', f'"{new}') + "}")

    noise = numpy.random.default_rng(3).integers(0, 1 << 30, (3000, 3000), dtype="i4")
    with h5py.File(sources / "big.h5", "w") as file:  # 36 MB: three blocks of sums
        x = file.create_dataset("x", data=noise, chunks=(170, 333), compression="lzf")
        where = [x.id.get_chunk_info(i) for i in (100, 160)]
    numpy.save(sources / "big.npy", noise.astype(">i4"))
    for name in ("chunks.h5", "big.h5", "big.npy"):
        write_sums(sources / name, sources / f"{name}.sums")
    (sources / "big_torn.h5").write_bytes((sources / "big.h5").read_bytes())
    with open(sources / "big_torn.h5", "r+b") as file:
        for chunk in where:
            file.seek(chunk.byte_offset + 20)
            file.write(b"\xff" * 200)
    other = noise.copy()
    other[2999, 0] = -1
    numpy.save(sources / "big_other.npy", other.astype(">i4"))
    (sources / "changed").mkdir()
    for i, part in enumerate(numpy.split(NUMBERS, 9)):
        numpy.save(sources / "changed" / f"part_{i}.npy", part if i not in (2, 7) else part[::-1])
    numpy.save(sources / "changed" / "part_9.npy", NUMBERS[:1])
    for old, new in (
        ("shards", "damaged"),
        ("shards", "changed"),
        ("chunks.h5", "torn.h5"),
        ("big.h5", "big_torn.h5"),
        ("big.npy", "big_other.npy"),
    ):
        renamed(old, new)
    names = [
        "shards",
        "big.h5",
        "big.npy",
        "changed",
        "torn.h5",
        "big_torn.h5",
        "big_other.npy",
        "damaged",
    ]
    return {name: (sources / name, sources / f"{name}.sums") for name in names}


def test_checks_against_sums_are_those_of_one_process(quick_mpi, summed):
    """The report of the shell command, with the places of damage, hints, and whether the content
    is the same; at every level."""
    seen = set()
    for name, (path, sums) in summed.items():
        for level in {"big_torn.h5": ("decode", "checksums"), "damaged": ("decode", "sizes")}.get(
            name, ("decode",)
        ):
            words = ["verify", path, "--against", sums, "--level", level]
            code, report = alone(*words)
            job = Job(
                quick_mpi, {"changed": 2, "torn.h5": 7}.get(name, 3), [BIN, *words, "--json"]
            ).end()
            of_ranks = json.loads(job.out)
            for one in (report, of_ranks):
                one.get("error", {}).pop("rank", None)
                for problem in one["problems"]:
                    problem.pop("rank", None)
            # how much is read of a file that is not as it should be depends on who comes first
            if code != 0 and name in ("damaged",):
                report["bytes"] = of_ranks["bytes"]
            assert of_ranks == report and bool(job.code) == bool(code), (name, level, job.err)
            seen.add((name, level, report["content"], len(report["problems"])))
    assert {(name, content) for name, level, content, _ in seen if level == "decode"} >= {
        ("shards", "same"),
        ("big.h5", "same"),
        ("big.npy", "same"),
        ("changed", "different"),
        ("big_other.npy", "different"),
        ("torn.h5", None),
    }
    assert all(
        (count == 0) == (name in ("shards", "big.h5", "big.npy")) for name, _, _, count in seen
    ), seen


def test_each_rank_reads_its_share_of_what_sums_say(quick_mpi, summed, tmp_path):
    """And every rank gets the report."""
    for name, words, status, level in (
        ("big.h5", ["dataset=x"], "ok", 2),
        ("big_torn.h5", ["dataset=x"], "mismatch", 1),
        ("damaged", ["path=" + str(summed["shards"][0]), "files=1"], "mismatch", 2),
    ):
        path, sums = summed[name]
        job = Ranks(
            quick_mpi,
            3,
            tmp_path / name,
            path,
            "load=0",
            f"verify={level}",
            f"against={sums}",
            *words,
        )
        answers = job.answers()
        assert None not in answers, job.err
        report, problems = answers.one("verified"), answers.one("problems")
        assert (
            report["problems"] == len(problems)
            and (answers.one("status") == "ok") == (status == "ok")
            and answers.one("content") == (1 if status == "ok" else -1)
        )
        if problems:
            assert answers.one("message") == problems[0]["message"]
        if name != "damaged":
            shares = [answer["bytes_read"] for answer in answers]
            assert (
                report["bytes"] == path.stat().st_size
                and max(shares) < 0.6 * sum(shares) < 0.6 * 1.8 * report["bytes"]
            ), shares
    path, sums = summed["shards"]
    for words, message in (
        (["verify=2", "@1:verify=0"], "the level of rank 0: 2, of rank 1: 0"),
        (["verify=2", f"@2:against={sums}2"], f"the sums of rank 0: {sums}, of rank 2: {sums}2"),
        (["verify=2", "@1:files=1"], "of rank 1: none"),
    ):
        answers = Ranks(
            quick_mpi, 3, tmp_path / words[1][:6], path, "load=0", f"against={sums}", *words
        ).answers()
        assert (
            answers.one("status") == "mismatch"
            and message in answers.one("message")
            and answers.one("verified")["problems"] == 0
        )


def test_one_rank_that_fails_while_it_checks_sums(quick_mpi, summed, tmp_path):
    """A read of rank 1 that fails is a problem of that file in the report of all; no memory, or
    sums that rank 0 cannot read, end the check."""
    path, sums = summed["big.h5"]
    for plan, rank, status, problems in (
        ("read:2:EIO", 1, "io", 1),
        ("open:1:EACCES", 2, "permission", 1),
        ("memory:40+:ENOMEM", 1, "out_of_memory", 0),
    ):
        if not felt(plan):
            continue
        answers = Ranks(
            quick_mpi,
            3,
            tmp_path / plan.replace(":", "_"),
            path,
            "load=0",
            "dataset=x",
            "verify=1",
            f"against={sums}",
            "deadline=60",
            faults=(rank, plan),
        ).answers()
        assert (
            None not in answers
            and answers.one("status") == status
            and answers.one("failed") == rank
        ), (plan, answers)
        assert answers.one("verified")["problems"] == problems == len(answers.one("problems"))
    answers = Ranks(
        quick_mpi, 3, tmp_path / "none", path, "load=0", "dataset=x", "verify=1", f"against={sums}2"
    ).answers()
    assert (
        answers.one("status") == "not_found"
        and answers.one("failed") == 0
        and answers.one("problems") == []
    )


def test_the_shell_command(some_mpi, sources, tmp_path):
    """One report, of all ranks, as of one process; the status of a failed check."""
    for words in (
        ["verify", sources / "damaged.json"],
        ["verify", sources / "shards"],
        ["compare", sources / "whole.npy", sources / "early.npy"],
        ["verify", sources / "shards", "--against", sources / "shards.sums"],
    ):
        code, report = alone(*words)
        job = Job(some_mpi, 3, [BIN, *words, "--json"]).end()
        of_ranks = json.loads(job.out)
        for one in (report, of_ranks):
            one.get("error", {}).pop("rank", None)  # who found it
        assert of_ranks == report and bool(job.code) == bool(code), job.err
    job = Job(some_mpi, 3, [BIN, "compare", sources / "whole.npy", sources / "early.npy"]).end()
    assert job.out == "" and job.err.count("the element at (5, 7) differs") == 1


def test_ranks_that_find_other_sources_say_so(some_mpi, tmp_path):
    """A virtual dataset over so many files that each rank looks at them by itself: here each
    finds another folder's, with as many."""
    for folder, words in (("0", {}), ("1", {"chunks": (1, 1)})):
        (tmp_path / folder).mkdir()
        layout = h5py.VirtualLayout((257, 3), "i4")
        for i in range(257):
            with h5py.File(tmp_path / folder / f"{i}.h5", "w") as file:
                file.create_dataset("y", data=numpy.full((1, 3), i, "i4"), **words)
            layout[i : i + 1] = h5py.VirtualSource(f"{i}.h5", "y", (1, 3))
        with h5py.File(tmp_path / folder / "d.h5", "w") as file:
            file.create_virtual_dataset("x", layout)
    for words in (["verify=2"], [f"copy={tmp_path / 'copy.npy'}"]):
        out = tmp_path / words[0].split("=")[0]
        out.mkdir()
        Job(
            some_mpi,
            2,
            [
                "sh",
                "-c",
                f'cd {tmp_path}/"{RANK}" && exec "$@"',
                "sh",
                RANKS,
                out,
                "d.h5",
                "dataset=x",
                "load=0",
                "deadline=60",
                *words,
            ],
        ).end()
        answers = [json.loads((out / f"{rank}.json").read_text()) for rank in (0, 1)]
        assert {answer["status"] for answer in answers} == {"mismatch"}, answers
        assert {answer["message"] for answer in answers} == {
            "the ranks were not called alike: the files of rank 0: 258 files, 257 parts, 0 chunks, "
            "of rank 1: 258 files, 257 parts, 771 chunks"
        }
    assert not (tmp_path / "copy.npy").exists()
