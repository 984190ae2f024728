# Runs the shell command given by TEGULA_BIN and compares what it prints.
#
# SPDX-License-Identifier: Apache-2.0
#
# `tegula(...)` gives exit status, standard output and standard error; `report(...)` also the object
# of --json, where the error object is checked for its keys. Fields that vary from run to run are
# masked by their type: SECONDS, COUNT.
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = os.environ.get("TEGULA_BIN", str(ROOT / "build" / "bin" / "tegula"))
ERROR_KEYS = {"status", "message", "hint", "path", "offset", "errno", "rank"}
TIME_LIMIT = 120


class Masked:
    def __init__(self, name, test):
        self.name, self.test = name, test

    def __eq__(self, other):
        return self.test(other)

    def __repr__(self):
        return self.name


SECONDS = Masked(
    "SECONDS", lambda value: isinstance(value, (int, float)) and 0 <= value < TIME_LIMIT
)
COUNT = Masked("COUNT", lambda value: isinstance(value, int) and value > 0)
NUMBER = Masked("NUMBER", lambda value: isinstance(value, (int, float)) and value >= 0)
TEXT = Masked("TEXT", lambda value: isinstance(value, str) and value != "")


def environment(**changes):
    kept = {key: value for key, value in os.environ.items() if not key.startswith("TEGULA_")}
    kept.update(changes)
    return kept


def tegula(*arguments, env=None, **options):
    """A finished run; its output is text in which carriage returns are kept."""
    words = [BIN] + [
        argument if isinstance(argument, bytes) else str(argument) for argument in arguments
    ]
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    run = subprocess.run(words, env=environment(**(env or {})), timeout=TIME_LIMIT, **options)
    run.stdout, run.stderr = (
        (text or b"").decode("utf-8", "replace") for text in (run.stdout, run.stderr)
    )
    return run


def start(*arguments):
    """A run that goes on, for signals and files that change under it."""
    words = [BIN, *map(str, arguments)]
    return subprocess.Popen(
        words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def report(*arguments, status=0, **options):
    """The object that --json prints; the run must end with `status`."""
    run = tegula(arguments[0], "--json", *arguments[1:], **options)
    assert run.returncode == status, (run.returncode, run.stdout, run.stderr)
    assert run.stdout.count("\n") == 1, "one object on one line"
    answer = json.loads(run.stdout)
    if status == 0:
        assert run.stderr == ""
        assert "error" not in answer
    else:
        assert set(answer["error"]) == ERROR_KEYS
        check_text(answer["error"], run.stderr)
    return answer


def check_text(error, stderr):
    """Standard error says the same: the message, then the hint when there is one."""
    lines = stderr.splitlines()
    assert lines[0] == "tegula: " + error["message"]
    assert lines[1:] == ([] if error["hint"] is None else ["hint: " + error["hint"]])


def refused(*arguments, status, says=(), exit_status=1, **options):
    """The error of a run that must fail with one of the statuses and a
    message that holds each text."""
    error = report(*arguments, status=exit_status, **options)["error"]
    assert error["status"] in ((status,) if isinstance(status, str) else status), error
    message = error["message"]
    assert "\n" not in message and not message.endswith("."), message
    for text in says:
        assert str(text) in message, "%r is not in %r" % (str(text), message)
    return error


def usage_error(*arguments, says=(), **options):
    return refused(*arguments, status="invalid_argument", says=says, exit_status=2, **options)
