# Storage that is slow or breaks: a folder seen again through tegula_slowfs,
# for tests and benchmarks.
#
# SPDX-License-Identifier: Apache-2.0
#
# Settings (numbers; those marked * only when mounting, the others also later with `set`):
#   delay, delay_read, delay_open, delay_getattr, delay_list
#                   microseconds that each request takes (`delay`: all kinds; looking up a name is a
#                   getattr); requests wait side by side
#   short_read      most bytes that one read gives (needs direct_io)
#   fail_read, fail_open, fail_getattr, fail_list
#                   number of the request of that kind that fails, counted from when it is set
#   fail_times, error
#                   how many fail from there on (1), with which errno (EIO)
#   vanish_after    opens after which the name is gone; what is open can still be read
#   resize_after, resize_by
#                   opens after which the file has so many bytes more or fewer
#   change_after    reads after which the file has other bytes (each one inverted) and a later time
#   hold_read       1: reads wait until it is 0 again; `held` counts them
#   name            text: only files with it in their path are met by fail_, vanish_, resize_,
#                   change_ and hold_
#   direct_io *     1: no page cache, every read is a request
#   attr_cache *    seconds for which the kernel keeps names and attributes (0)
#   max_read *      most bytes of one request (1 MiB)
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

PATIENCE = 60  # seconds in which the file system must end


class Unavailable(Exception):
    """This machine does not allow it; the text says why."""


class SlowFolder:
    """`source` again, under `path`, until `close`. Gives itself to `with`."""

    def __init__(self, source, program=None, **settings):
        program = find_program(program)
        self.parent = tempfile.mkdtemp(prefix="tegula-slow-")
        self.path = pathlib.Path(self.parent) / "mount"
        self.path.mkdir()
        self.errors = tempfile.TemporaryFile()
        words = [f"{name}={value}" for name, value in settings.items()]
        self.process = subprocess.Popen(
            [program, str(source), str(self.path), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )
        if self.process.stdout.readline() != "ready\n":
            self.give_up(settings)

    def give_up(self, settings):
        """A wrong setting is a mistake of the caller, anything else is this machine."""
        status = self.process.wait(PATIENCE)
        self.errors.seek(0)
        text = " ".join(self.errors.read().decode("utf-8", "replace").split())
        self.remove()
        if "could not be mounted" in text:
            raise Unavailable(f"a FUSE file system cannot be mounted here: {text}")
        raise RuntimeError(f"tegula_slowfs with {settings}: status {status}: {text}")

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")

    def set(self, **settings):
        answer = self.ask("set " + " ".join(f"{name}={value}" for name, value in settings.items()))
        assert answer == "ok", f"{settings}: {answer}"

    def counts(self):
        """Requests by kind, bytes that were asked for, most requests at the same time."""
        return json.loads(self.ask("counts"))

    def zero(self):
        assert self.ask("zero") == "ok"

    def close(self):
        if self.process is None:
            return
        plain = subprocess.run(
            ["fusermount3", "-u", str(self.path)], check=False, capture_output=True
        )
        self.process.stdin.close()  # detaches a mount that is still in use
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            subprocess.run(
                ["fusermount3", "-u", "-z", str(self.path)], check=False, capture_output=True
            )
            raise RuntimeError(
                f"the file system did not end, is a file still open? {plain.stderr.decode()}"
            ) from None
        finally:
            self.process.stdout.close()
            self.process = None
            self.remove()

    def remove(self):
        """The empty mount point; never what is mounted there."""
        self.errors.close()
        try:
            os.rmdir(self.path)
            os.rmdir(self.parent)
        except OSError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def find_program(given=None):
    """The path of tegula_slowfs, or Unavailable with the reason."""
    program = given or os.environ.get("TEGULA_SLOWFS")
    if not program or not os.path.exists(program):
        raise Unavailable(
            "tegula_slowfs was not built (it needs libfuse3 3.12 or newer) or TEGULA_SLOWFS does "
            "not name it"
        )
    if not os.path.exists("/dev/fuse"):
        raise Unavailable("there is no /dev/fuse")
    if not shutil.which("fusermount3"):
        raise Unavailable("there is no fusermount3 (Debian: package fuse3)")
    return os.path.abspath(program)
