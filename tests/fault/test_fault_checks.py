# Every system call and every allocation fails once while something is checked or a manifest is
# written: a check never says that all is well when it did not see all, never finds a difference
# that is not there, and a manifest is there whole or not at all.
#
# SPDX-License-Identifier: Apache-2.0
import json
import os
import shutil

import pytest

from faulty import BIN, HARMLESS, VALUES, Run, contents, each, judge, plan, steady, words_of
from reference_hash import content_hash

# name -> exit status without faults, words
CHECKS = {
    "verify": (0, ["verify", "plain", "--threads", "1"]),
    "verify-sizes": (0, ["verify", "plain", "--level", "sizes", "--threads", "1"]),
    "verify-side-file": (0, ["verify", "sided", "--threads", "1"]),
    "verify-manifest": (0, ["verify", "plain.json", "--threads", "1"]),
    "verify-list": (0, ["verify", "plain/shard_00.npy", "plain/shard_01.npy", "--threads", "1"]),
    "verify-against": (0, ["verify", "plain", "--against", "plain.sums", "--threads", "1"]),
    "verify-against-damaged": (
        3,
        ["verify", "damaged", "--against", "damaged.sums", "--threads", "1"],
    ),
    "verify-damaged": (3, ["verify", "damaged", "--threads", "1"]),
    "verify-damaged-pattern": (3, ["verify", "damaged/shard_*.npy", "--threads", "1"]),
    "verify-damaged-folders": (3, ["verify", "d?maged/shard_*.npy", "--threads", "1"]),
    "compare": (0, ["compare", "plain", "swapped", "--threads", "1"]),
    "compare-threads": (0, ["compare", "plain", "fortran.npy", "--threads", "3"]),
    "compare-side-file": (0, ["compare", "sided", "plain.json", "--threads", "1"]),
    "compare-different": (3, ["compare", "swapped", "other", "--values", "--threads", "1"]),
}


def check_problems(run, answer, expected, whole):
    """Status 3 of verify: problems in place of the clean answer; each file that is really damaged
    is named, or a folder above it is, or what was asked for."""
    found = [problem["path"] for problem in answer["problems"]]
    run.expect(found, "status 3 without a problem")
    run.expect(
        answer["error"]["message"] == answer["problems"][0]["message"],
        "the error is not the first problem",
    )
    for problem in expected["problems"]:
        named = any((problem["path"] + "/").startswith(path.rstrip("/") + "/") for path in found)
        run.expect(named or whole in found, "a damaged file is not named")


def judge_check(run, clean, whole):
    """True: the answer of the clean run. False: a clean error,
    or problems that verify found because of the fault."""
    run.check_end()
    answer = run.answer()
    if run.code == clean.code and steady(answer) == steady(clean.answer()):
        return True
    run.expect(run.code in (1, 3), "another answer than without the fault")
    run.check_error(answer["error"])
    run.expect(
        run.err.startswith("tegula: %s\n" % answer["error"]["message"]),
        "standard error says something else",
    )
    if run.code == 3 and set(answer) == {"error"}:  # there was no memory for the report
        run.expect(
            answer["error"]["message"] == clean.answer().get("error", {}).get("message"),
            "something that is not there",
        )
    elif run.code == 3:
        run.expect("problems" in answer, "a difference that is not there")
        check_problems(run, answer, clean.answer(), whole)
    else:
        run.expect(set(answer) == {"error"}, "a result beside an error")
    return False


@pytest.mark.parametrize("name", CHECKS)
def test_check(name, inputs, tmp_path):
    status, row = CHECKS[name]
    command, *words = words_of(row, inputs)

    def run(number, fault=None):
        return Run([BIN, command, "--json", *words], tmp_path / ("report%s" % number), fault)

    clean = run("clean")
    assert clean.code == status, clean.err
    if name.startswith("verify-damaged"):
        assert [os.path.basename(p["path"]) for p in clean.answer()["problems"]] == [
            "shard_01.npy",
            "shard_03.npy",
        ]
    if name == "compare-different":
        assert clean.answer()["index"] == [6, 3]

    def check(number, family, kind, fault):
        got = run(number, fault)
        same = judge_check(got, clean, words[0])
        got.expect(
            got.counted["strikes"] > 0 or family == "memory" or "threads" in name,
            "the fault did not strike",
        )
        got.expect(same or (family, kind) not in HARMLESS, "this is no reason to fail")

    assert each(plan(clean.counted["calls"]), check) > 20


def test_sums_are_there_whole_or_not_at_all(inputs, tmp_path):
    """A run that fails leaves the older sums; never a temporary file. Status 3:
    it names what it could not read."""
    older = json.dumps({"tegula_sums": 1})

    def run(number, fault=None):
        folder = tmp_path / ("folder%s" % number)
        folder.mkdir()
        out = folder / "out.json"
        out.write_text(older)
        words = [
            BIN,
            "verify",
            inputs / "plain",
            "--write",
            out,
            "--overwrite",
            "--json",
            "--threads",
            "1",
        ]
        return Run(words, tmp_path / ("report%s" % number), fault), folder

    clean, folder = run("clean")
    good = contents(folder)
    assert clean.code == 0, clean.err
    assert content_hash(VALUES).encode() in next(iter(good.values()))

    def check(number, family, kind, fault):
        got, folder = run(number, fault)
        got.check_end()
        answer, now = got.answer(), contents(folder)
        lost = answer.get("error", {}).get("message") == "could not make the report: no memory"
        if got.code == 0:
            got.expect(
                steady({**answer, "bytes": 0, "sums": ""})
                == steady({**clean.answer(), "bytes": 0, "sums": ""}),
                "another answer",
            )
            got.expect(now == good, "not the sums of a run without the fault")
        else:
            got.expect(
                got.code == 1
                or (got.code == 3 and (answer.get("problems") or set(answer) == {"error"})),
                "an end without a reason",
            )
            got.expect(
                now == {path: older.encode() for path in good} or (lost and now == good),
                "left behind: %s" % now,
            )
        own_file = kind == "EAGAIN" and "out.json" in got.err  # not the library's: an error will do
        got.expect(
            got.code == 0 or own_file or (family, kind) not in HARMLESS, "this is no reason to fail"
        )
        shutil.rmtree(folder)

    assert each(plan(clean.counted["calls"]), check) > 20


@pytest.mark.parametrize("old", [False, True], ids=["new", "overwrite"])
@pytest.mark.parametrize("name", ["plain", "sided"])
def test_manifest_is_there_whole_or_not_at_all(name, old, inputs, tmp_path):
    """A run that fails leaves what was there: nothing, or the older manifest;
    never a temporary file."""
    older = json.dumps({"tegula_manifest": 1})

    def run(number, fault=None):
        folder = tmp_path / ("folder%s" % number)
        folder.mkdir()
        out = folder / "out.json"
        if old:
            out.write_text(older)
        words = [BIN, "info", inputs / name, "--manifest", out, "--json", "--threads", "1"]
        return Run(words, tmp_path / ("report%s" % number), fault), folder

    clean, folder = run("clean")
    expected = judge(clean, clean.answer())
    good = contents(folder)
    loaded = Run([BIN, "load", folder / "out.json", "--json", "--hash"], tmp_path / "report")
    assert loaded.code == 0 and loaded.answer()["hash"] == content_hash(VALUES)

    def check(number, family, kind, fault):
        got, folder = run(number, fault)
        answer = judge(got, {**expected, "manifest": str(folder / "out.json")})
        now = {path: data.decode() for path, data in contents(folder).items()}
        whole = {path: data.decode() for path, data in good.items()}
        if answer is not None:
            got.expect(now == whole, "not the manifest of a run without the fault: %s" % now)
        elif not (got.report_lost and now == whole):
            got.expect(now == (dict.fromkeys(whole, older) if old else {}), "left behind: %s" % now)
        own_file = kind == "EAGAIN" and "out.json" in got.err  # not the library's: an error will do
        got.expect(
            answer is not None or own_file or (family, kind) not in HARMLESS,
            "this is no reason to fail",
        )
        shutil.rmtree(folder)

    assert each(plan(clean.counted["calls"]), check) > 20
