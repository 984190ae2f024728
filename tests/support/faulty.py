# Runs the shell command and the probe with faults.c in front of the C library,
# and judges how each run ended.
#
# SPDX-License-Identifier: Apache-2.0
#
# A run ends in one of two ways: the right answer, or one clean error; a test tells several of its
# bad injections at once. TEGULA_FAULT_ALL=1 strikes at about 160 calls of each kind instead of 12
# (2 under a sanitizer). Under AddressSanitizer allocations are not made to fail, and it is the one
# that finds leaks.
import concurrent.futures
import json
import os
import pathlib
import subprocess

import numpy

BIN = pathlib.Path(os.environ.get("TEGULA_BIN", "build/bin/tegula")).resolve()
PROBE = pathlib.Path(os.environ.get("TEGULA_PROBE", BIN.parent / "tegula_probe")).resolve()
LIBRARY = BIN.parent.parent / "tests" / "faults.so"
SANITIZER = os.environ.get("TEGULA_SANITIZER", "")
EVERY = os.environ.get("TEGULA_FAULT_ALL") == "1"
TIME_LIMIT = 60
ERROR_KEYS = {"status", "message", "hint", "path", "offset", "errno", "rank"}

# family -> kinds of fault that a system can give at these calls
KINDS = {
    "open": ["EIO", "ESTALE", "EMFILE", "EINTR", "EACCES"],
    "read": ["short", "short+", "EINTR", "EAGAIN", "EIO", "ESTALE"],
    "write": ["short", "short+", "EINTR", "EAGAIN", "EIO", "ENOSPC", "EDQUOT"],
    "stat": ["EIO", "ESTALE", "ENOMEM"],
    "size": ["ENOSPC", "EIO", "EINTR", "EOPNOTSUPP"],
    "sync": ["EIO", "ENOSPC"],
    "rename": ["EIO", "EINVAL", "ENOSPC"],
    "mkdir": ["EIO", "ENOSPC", "EACCES"],
    "list": ["EIO", "ENOMEM"],
    "close": ["EIO", "ENOSPC"],
    "lock": ["ENOLCK", "EOPNOTSUPP+"],
    "rights": ["EPERM"],
    "map": ["ENOMEM"],
    "thread": ["EAGAIN", "EAGAIN+"],
    "memory": ["ENOMEM", "ENOMEM+"],
}
# what the library must get over by itself
HARMLESS = {
    ("read", "short"),
    ("read", "short+"),
    ("read", "EINTR"),
    ("read", "EAGAIN"),
    ("write", "short"),
    ("write", "short+"),
    ("write", "EINTR"),
    ("write", "EAGAIN"),
    ("thread", "EAGAIN"),
    ("thread", "EAGAIN+"),
    ("lock", "ENOLCK"),
    ("lock", "EOPNOTSUPP+"),
}


# what the shards hold together, and how many rows each of them has
ROWS = [5, 7, 1, 4]
VALUES = numpy.arange(17 * 6, dtype="f4").reshape(17, 6) * 1.5


def families():
    return [family for family in KINDS if family != "memory" or SANITIZER == ""]


def preload():
    """The sanitizer's runtime must come first."""
    if SANITIZER == "":
        return str(LIBRARY)
    lines = subprocess.run(
        ["ldd", BIN], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    runtime = [line.split()[2] for line in lines if "libasan" in line or "libtsan" in line]
    return ":".join([*runtime, str(LIBRARY)])


class Run:
    """One finished program: `code`, `out`, `err`, and what faults.c counted (None after a crash).

    In the probe (`window`) libjansson always gets its memory: its parser (2.14) writes behind its
    buffer when it does not. The shell command keeps it from going on after the first failure.
    `kept`: the live allocations and descriptors that a good run ends with."""

    def __init__(
        self, words, report, fault=None, text=None, window=False, environment=None, kept=(0, 0)
    ):
        variables = {
            key: value for key, value in os.environ.items() if not key.startswith("TEGULA_")
        }
        variables.update(
            LD_PRELOAD=preload(), TEGULA_FAULT_REPORT=str(report), **(environment or {})
        )
        if fault:
            variables["TEGULA_FAULT"] = fault
        if window:
            variables["TEGULA_FAULT_WINDOW"] = "1"
            variables.setdefault("TEGULA_FAULT_SPARE", "libjansson")
        self.fault, self.kept = fault, kept
        try:
            done = subprocess.run(
                [str(word) for word in words],
                env=variables,
                input=text,
                capture_output=True,
                timeout=TIME_LIMIT,
            )
            self.code, self.out, self.err = (
                done.returncode,
                done.stdout.decode(),
                done.stderr.decode(),
            )
        except subprocess.TimeoutExpired:
            self.code, self.out, self.err = "still running after %d s" % TIME_LIMIT, "", ""
        self.counted = None
        if report.exists():
            self.counted = json.loads(report.read_text())
            report.unlink()

    def expect(self, condition, what):
        assert condition, "%s (fault %s, status %s)\nstdout: %s\nstderr: %s\ncounted: %s" % (
            what,
            self.fault,
            self.code,
            self.out[:2000],
            self.err[-4000:],
            self.counted,
        )

    def check_end(self):
        """It ended by itself, and let go of everything."""
        self.expect(
            isinstance(self.code, int) and self.code >= 0 and self.counted is not None,
            "a crash or a hang",
        )
        self.expect(self.counted["live"] <= self.kept[0], "memory was lost")
        self.expect(self.counted["descriptors"] <= self.kept[1], "a descriptor was left open")

    def answer(self):
        """The one JSON object on standard output."""
        self.expect(
            self.out.count("\n") == 1 and self.out.endswith("}\n"), "not one object on one line"
        )
        try:
            return json.loads(self.out)
        except ValueError:
            self.expect(False, "not JSON")

    def check_error(self, error):
        self.expect(set(error) == ERROR_KEYS, "not the error object")
        self.expect(
            error["status"] not in ("ok", "unknown", "internal"), "a status that explains nothing"
        )
        message = error["message"]
        self.expect(message and "\n" not in message and not message.endswith("."), "not one line")


def places(total, most, turn=0.0):
    """Every N from 1 to total, or about `most` of them: the first and last ones and an even stride
    between, which begins later by the part `turn` of a stride."""
    if total <= most:
        return list(range(1, total + 1))
    edge = most // 6
    stride = -(-(total - 2 * edge) // (most - 2 * edge))
    middle = range(edge + 1 + int(turn * stride), total - edge, stride)
    return sorted({*range(1, edge + 1), *middle, *range(total - edge + 1, total + 1)})


def plan(calls, most=160 if EVERY else 12 if SANITIZER == "" else 2):
    """All (family, kind, fault text) for a program that makes these calls. Lasting faults get a
    quarter of the places. The kinds of a family take different places."""
    for family in families():
        for turn, kind in enumerate(KINDS[family]):
            lasting = kind.endswith("+")
            for n in places(
                calls[family], max(1, most // 4) if lasting else most, turn / len(KINDS[family])
            ):
                yield (
                    family,
                    kind,
                    "%s:%d%s:%s" % (family, n, "+" if lasting else "", kind.rstrip("+")),
                )


def each(injections, check):
    """check(number, family, kind, fault) for all of them, a few at a time;
    fails with what the first bad ones say."""
    bad = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
        jobs = [
            workers.submit(check, number, *injection) for number, injection in enumerate(injections)
        ]
        for job in concurrent.futures.as_completed(jobs):
            if job.exception() is not None:
                bad.append(job.exception())
    unexpected = [error for error in bad if not isinstance(error, AssertionError)]
    if unexpected:
        raise unexpected[0]
    if bad:
        raise AssertionError(
            "%d of %d injections ended badly: %s"
            % (
                len(bad),
                len(jobs),
                "; ".join(str(error).split("\n")[0] for error in bad[:200])
                + "\n\n"
                + "\n\n".join(map(str, bad[:4])),
            )
        )
    return len(jobs)


# ---- commands ------------------------------------------------------------------------------------

VARIABLE = {
    "seconds",
    "seconds_describe",
    "seconds_allocate",
    "seconds_move",
    "gb_per_s",
    "peak_rss_bytes",
    "opens",
    "reads",
    "runs",
    "io_path",
    "fallback_reason",
}


def steady(answer):
    """What does not depend on how it was done."""
    return {key: value for key, value in answer.items() if key not in VARIABLE}


def same_answer(answer, expected):
    """Equal, but for more bytes read: a set whose file was stale once is described anew."""
    read = "bytes_read"
    more = (
        {read: expected[read]} if read in expected and answer.get(read, 0) >= expected[read] else {}
    )
    return steady({**answer, **more}) == steady(expected)


def words_of(row, inputs):
    """The words of a command, those that name or match one of the inputs as its path."""
    return [
        str(inputs / word)
        if not word.startswith((">", "-")) and any(inputs.glob(word.split("/")[0]))
        else word
        for word in row
    ]


def judge(run, expected, both=()):
    """The answer when it worked, None after a clean error; `both`: keys that this command
    reports beside an error."""
    run.check_end()
    answer = run.answer()
    if run.code == 0:
        run.expect(run.err == "" and "error" not in answer, "an error beside a success")
        run.expect(same_answer(answer, expected), "another answer than without the fault")
        return answer
    run.expect(run.code == 1, "an error that is not the user's has exit status 1")
    run.expect(set(answer) - set(both) == {"error"}, "data beside an error")
    run.check_error(answer["error"])
    run.expect(
        run.err.startswith("tegula: %s\n" % answer["error"]["message"]),
        "standard error says something else",
    )
    run.report_lost = answer["error"]["message"] == "could not make the report: no memory"
    return None


def contents(folder):
    return {
        path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


# ---- calls of the interface ----------------------------------------------------------------------

CONTEXT = {"do": "context", "threads": 2}


def probe_run(
    report, watched, then=(), before=(), fault=None, after=None, environment=None, kept=(0, 0)
):
    """Gives the run and the answers to `watched` and `then`; only `watched` and the clean-up may
    meet the fault. With `after`, also the answers to that, which is done without faults whatever
    came before."""
    on, off = {"do": "faults", "on": True}, {"do": "faults", "on": False}
    lines = [
        list(before),
        [on, *watched, off, *then],
        [off, *(after or ())],
        [on, {"do": "close"}, off],
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    run = Run([PROBE], report, fault, text=text, window=True, environment=environment, kept=kept)
    run.check_end()
    run.expect(run.code == 0, "the probe failed")
    answers = [json.loads(line) for line in run.out.splitlines()]
    run.expect(len(answers) == len(lines), "an answer is missing")
    assert first_error(run, answers[0]) is None
    return (run, answers[1]) if after is None else (run, answers[1], answers[2])


def harmless(family, kind, background):
    """What the library must get over. What is queued needs a thread, or is refused."""
    return (family, kind) in HARMLESS and not (background and family == "thread")


def first_error(run, answers):
    """The error that ended a list of commands; None when all worked."""
    errors = [answer["error"] for answer in answers if "error" in answer]
    for error in errors:
        run.expect(
            error.pop("reported") == error["status"] and error.pop("value") > 0,
            "status and error disagree",
        )
        run.check_error(error)
    return errors[0] if errors else None
