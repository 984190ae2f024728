# The Python end of the probe: starts it, talks to it line by line, and makes a test fail when it
# crashes or does not end cleanly.
#
# SPDX-License-Identifier: Apache-2.0
#
# TEGULA_PROBE names the program. A crash is a ProbeCrash with what the program wrote to standard
# error (a sanitizer's report, too); the next request then starts a new one. `close` checks the exit
# status, which is where a leak is told.
import json
import os
import pathlib
import subprocess
import tempfile


class ProbeCrash(AssertionError):
    """The program ended in the middle of a request, or with a status other than 0."""


class ProbeError(AssertionError):
    """The library refused something that the test takes for right."""

    def __init__(self, command, error):
        super().__init__(
            "%s: %s\n(command: %s)"
            % (error["status"], error["message"], json.dumps(command)[:2000])
        )
        self.error = error


def program():
    path = os.environ.get("TEGULA_PROBE")
    if not path:
        raise RuntimeError("TEGULA_PROBE must name the built program tegula_probe")
    return os.path.abspath(path)


class Probe:
    """`prefix` is put in front of the command line (prlimit, setpriv, strace ...), `environment`
    is added to the environment."""

    def __init__(self, prefix=(), environment=None, timeout=120):
        self.command_line = [*prefix, program()]
        self.environment = {**os.environ, **(environment or {})}
        self.timeout = timeout
        self.process = None
        self.errors = None

    def start(self):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            self.command_line,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env=self.environment,
        )

    def error_text(self):
        self.errors.seek(0)
        return self.errors.read()[-20000:].decode("utf-8", "replace")

    def crashed(self, request):
        try:
            status = self.process.wait(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = "still running"
        text = self.error_text()
        self.process = None
        raise ProbeCrash("the probe ended (status %s) at: %s\n%s" % (status, request[:2000], text))

    def ask(self, request):
        """One request, one answer, errors included."""
        if self.process is None:
            self.start()
        line = json.dumps(request)
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = b""
        if not answer:
            self.crashed(line)
        return json.loads(answer)

    def send(self, request):
        """A request whose answer nobody waits for."""
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.process = None

    def call(self, do, **arguments):
        """One command that must work."""
        command = {"do": do, **arguments}
        answer = self.ask(command)
        if "error" in answer:
            raise ProbeError(command, answer["error"])
        return answer

    def refused(self, do, **arguments):
        """One command that must not work: gives the error."""
        command = {"do": do, **arguments}
        answer = self.ask(command)
        assert "error" in answer, "this must be refused: %s\nbut the answer was %s" % (
            json.dumps(command),
            answer,
        )
        assert answer["error"]["status"] != "probe", answer
        return answer["error"]

    def batch(self, commands):
        """Several commands in one go, all of which must work."""
        answers = self.ask(commands)
        if answers and "error" in answers[-1]:
            raise ProbeError(commands[len(answers) - 1], answers[-1]["error"])
        return answers

    def close(self):
        if self.process is None:
            return
        self.process.stdin.close()
        try:
            status = self.process.wait(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = "still running"
        self.process.stdout.close()
        self.process = None
        if status != 0:
            raise ProbeCrash("the probe ended with status %s\n%s" % (status, self.error_text()))


def check_error(error, status, names=(), path=None):
    """`status` is one status or several; each of `names` must be found in the message; `path`
    must be the error's path."""
    statuses = (status,) if isinstance(status, str) else status
    assert error["status"] in statuses, "expected %s: %s" % (statuses, error)
    assert error["reported"] == error["status"], error
    for name in names:
        assert str(name) in error["message"], "no %r in the message: %s" % (str(name), error)
    if path is not None:
        assert pathlib.Path(error["path"]) == pathlib.Path(path), error
    check_style(error)
    return error


def check_style(error):
    """One line, lower case at the start, no full stop at the end."""
    message = error["message"]
    assert message and "\n" not in message and not message.endswith("."), error
    assert not message[0].isupper(), error
    assert "\n" not in error["hint"], error
