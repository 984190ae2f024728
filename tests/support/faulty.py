# Runs the shell command and the probe with faults.c in front of the C library, and judges how each run ended.
#
# SPDX-License-Identifier: Apache-2.0
#
# A run ends in one of two ways: the right answer, or one clean error; a test tells several of its bad injections at once.
# TEGULA_FAULT_ALL=1 strikes at every call instead of about 48 of each kind. Under AddressSanitizer allocations are not made to
# fail, and it is the one that finds leaks.
import concurrent.futures
import json
import os
import pathlib
import subprocess

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
    "map": ["ENOMEM"],
    "thread": ["EAGAIN", "EAGAIN+"],
    "memory": ["ENOMEM", "ENOMEM+"],
}
# what the library must get over by itself
HARMLESS = {("read", "short"), ("read", "short+"), ("read", "EINTR"), ("read", "EAGAIN"), ("write", "short"), ("write", "short+"),
            ("write", "EINTR"), ("write", "EAGAIN"), ("thread", "EAGAIN"), ("thread", "EAGAIN+")}


def families():
    return [family for family in KINDS if family != "memory" or SANITIZER == ""]


def preload():
    """The sanitizer's runtime must come first."""
    if SANITIZER == "":
        return str(LIBRARY)
    lines = subprocess.run(["ldd", BIN], capture_output=True, text=True, check=True).stdout.splitlines()
    runtime = [line.split()[2] for line in lines if "libasan" in line or "libtsan" in line]
    return ":".join([*runtime, str(LIBRARY)])


class Run:
    """One finished program: `code`, `out`, `err`, and what faults.c counted (None after a crash).

    In the probe (`window`) libjansson always gets its memory: its parser (2.14) writes behind its buffer when it does not. The shell
    command keeps it from going on after the first failure."""

    def __init__(self, words, report, fault=None, text=None, window=False):
        kept = {key: value for key, value in os.environ.items() if not key.startswith("TEGULA_")}
        kept.update(LD_PRELOAD=preload(), TEGULA_FAULT_REPORT=str(report))
        if fault:
            kept["TEGULA_FAULT"] = fault
        if window:
            kept["TEGULA_FAULT_WINDOW"] = "1"
            kept["TEGULA_FAULT_SPARE"] = "libjansson"
        self.fault = fault
        try:
            done = subprocess.run([str(word) for word in words], env=kept, input=text, capture_output=True, timeout=TIME_LIMIT)
            self.code, self.out, self.err = done.returncode, done.stdout.decode(), done.stderr.decode()
        except subprocess.TimeoutExpired:
            self.code, self.out, self.err = "still running after %d s" % TIME_LIMIT, "", ""
        self.counted = None
        if report.exists():
            self.counted = json.loads(report.read_text())
            report.unlink()

    def expect(self, condition, what):
        assert condition, "%s (fault %s, status %s)\nstdout: %s\nstderr: %s\ncounted: %s" % (
            what, self.fault, self.code, self.out[:2000], self.err[-4000:], self.counted)

    def check_end(self):
        """It ended by itself, and let go of everything."""
        self.expect(isinstance(self.code, int) and self.code >= 0 and self.counted is not None, "a crash or a hang")
        self.expect(self.counted["live"] == 0, "memory was lost")
        self.expect(self.counted["descriptors"] == 0, "a descriptor was left open")

    def answer(self):
        """The one JSON object on standard output."""
        self.expect(self.out.count("\n") == 1 and self.out.endswith("}\n"), "not one object on one line")
        try:
            return json.loads(self.out)
        except ValueError:
            self.expect(False, "not JSON")

    def check_error(self, error):
        self.expect(set(error) == ERROR_KEYS, "not the error object")
        self.expect(error["status"] not in ("ok", "unknown", "internal"), "a status that explains nothing")
        message = error["message"]
        self.expect(message and "\n" not in message and not message.endswith("."), "not one line")


def places(total, most):
    """Every N from 1 to total, or about `most` of them: the first and last ones and an even stride between."""
    if EVERY or total <= most:
        return list(range(1, total + 1))
    edge = most // 6
    middle = range(edge + 1, total - edge, max(1, (total - 2 * edge) // (most - 2 * edge)))
    return sorted({*range(1, edge + 1), *middle, *range(total - edge + 1, total + 1)})


def plan(calls, most=48 if SANITIZER == "" else 12):
    """All (family, kind, fault text) for a program that makes these calls. Lasting faults get a quarter of the places."""
    for family in families():
        for kind in KINDS[family]:
            lasting = kind.endswith("+")
            for n in places(calls[family], most // 4 if lasting else most):
                yield family, kind, "%s:%d%s:%s" % (family, n, "+" if lasting else "", kind.rstrip("+"))


def each(injections, check):
    """check(number, family, kind, fault) for all of them, a few at a time; fails with what the first bad ones say."""
    bad = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
        jobs = [workers.submit(check, number, *injection) for number, injection in enumerate(injections)]
        for job in concurrent.futures.as_completed(jobs):
            if job.exception() is not None:
                bad.append(job.exception())
    unexpected = [error for error in bad if not isinstance(error, AssertionError)]
    if unexpected:
        raise unexpected[0]
    if bad:
        raise AssertionError("%d of %d injections ended badly: %s" % (
            len(bad), len(jobs), "; ".join(str(error).split("\n")[0] for error in bad[:200]) + "\n\n" + "\n\n".join(map(str, bad[:4]))))
    return len(jobs)
