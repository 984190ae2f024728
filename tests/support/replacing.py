"""Programs that replace or rewrite the files of an array again and again,
and what may be read of them meanwhile.

Run as a program: `replacing.py exchange A B PAUSE`, `renew FOLDER SPARE NAMES PAUSE LOG`,
`rewrite FILE OFFSET BYTES PAUSE` or `touch FOLDER`. It prints a line when it has begun, and ends
when its standard input is closed.

SPDX-License-Identifier: Apache-2.0
"""

import contextlib
import ctypes
import os
import pathlib
import select
import struct
import subprocess
import sys
import time

AT_FDCWD, RENAME_EXCHANGE = -100, 2
RECORD = struct.Struct("<qq")  # nanoseconds before and after one rename


def exchange(a, b):
    """Exchanges two names in one step."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(AT_FDCWD, os.fsencode(a), AT_FDCWD, os.fsencode(b), RENAME_EXCHANGE) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


def wanted():
    """Is the standard input still open?"""
    return not select.select([sys.stdin], [], [], 0)[0]


def keep_exchanging(a, b, pause):
    while wanted():
        exchange(a, b)
        time.sleep(float(pause))


def keep_renewing(folder, spare, names, pause, log):
    """Links the files of generation 1, 2, 1, ... over the names, one by one, and notes when."""
    names = names.split(",")
    with open(log, "ab", buffering=0) as notes:
        generation = 1
        while wanted():
            generation = 3 - generation
            for name in names:
                os.link(f"{spare}/{generation}/{name}", f"{spare}/next")
                before = time.monotonic_ns()
                os.rename(f"{spare}/next", f"{folder}/{name}")
                notes.write(RECORD.pack(before, time.monotonic_ns()))
            time.sleep(float(pause))


def keep_rewriting(path, offset, size, pause):
    """Writes all bytes of a file by one call each time: all 1, all 2, all 1, ..."""
    contents = [bytes([value]) * int(size) for value in (2, 1)]
    fd = os.open(path, os.O_WRONLY)
    turn = 0
    while wanted():
        assert os.pwrite(fd, contents[turn % 2], int(offset)) == int(size)
        turn += 1
        time.sleep(float(pause))


def keep_touching(folder):
    """Makes and removes a file that belongs to no set."""
    while wanted():
        pathlib.Path(folder, "log.tmp").write_text("x")
        os.unlink(f"{folder}/log.tmp")


@contextlib.contextmanager
def running(*arguments):
    """The program, at work."""
    command = [sys.executable, __file__, *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"at work\n"
        try:
            yield process
            assert process.poll() is None, "the program that replaces files has ended"
        finally:
            process.stdin.close()
            process.wait()


def states(log):
    """(before, after) of each rename, in their order."""
    data = pathlib.Path(log).read_bytes()
    return list(RECORD.iter_unpack(data[: len(data) // RECORD.size * RECORD.size]))


def was_there(found, begin, end, renames):
    """Did the folder hold these generations, one for each name,
    at a moment between `begin` and `end`?"""
    count = len(found)
    # the state between rename `done` - 1 and rename `done`; the last may not be noted yet
    for done in range(len(renames) + 2):
        since = renames[done - 1][0] if 0 < done <= len(renames) else 0
        until = renames[done][1] if done < len(renames) else end
        if since > end or until < begin:
            continue
        turn, place = divmod(done, count)
        newer = 2 - turn % 2  # round 0 writes generation 2
        if list(found) == [newer] * place + [3 - newer] * (count - place):
            return True
    return False


def moments(found, begin, end, renames):
    """What was found, and how many renames were done at its begin and end, for messages."""
    done = [sum(before < moment for before, _ in renames) for moment in (begin, end)]
    return (
        f"found {''.join(map(str, found))}, renames {done[0]} to {done[1]} of {len(found)} a round"
    )


if __name__ == "__main__":
    print("at work", flush=True)
    {
        "exchange": keep_exchanging,
        "renew": keep_renewing,
        "rewrite": keep_rewriting,
        "touch": keep_touching,
    }[sys.argv[1]](*sys.argv[2:])
