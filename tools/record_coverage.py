"""Which lines tests reach: a build with gcov in build/coverage, ctest and some of pytest, then
tables by file and by function.

SPDX-License-Identifier: Apache-2.0

The table by function has no files in it, so that moves do not matter: name -> [lines, lines
reached] of each function of that name. Tests that take another user fail here: gcov cannot write
its counts then, and says so on standard error.
"""

import collections
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/coverage"
OPTIONS = [
    "-DCMAKE_C_COMPILER=gcc",
    "-DCMAKE_BUILD_TYPE=Debug",
    "-DCMAKE_C_FLAGS=--coverage -fprofile-update=atomic",
    "-DTEGULA_BUILD_TESTS=ON",
    "-DTEGULA_BUILD_BENCH=OFF",
]
FOLDERS = ("src/", "plugins/", "cli/")
AT_ONCE = 50


def run(*command, **options):
    print("==", *command[:4], flush=True)
    return subprocess.run(list(map(str, command)), cwd=ROOT, check=False, **options).returncode


def build():
    jobs = str(len(os.sched_getaffinity(0)))
    if run("cmake", "-S", ROOT, "-B", BUILD, *OPTIONS, stdout=subprocess.DEVNULL) or run(
        "cmake", "--build", BUILD, "-j", jobs
    ):
        raise SystemExit("record.py: build/coverage could not be built")
    for path in BUILD.rglob("*.gcda"):
        path.unlink()
    return jobs


def run_tests(jobs, tests):
    variables = {
        **os.environ,
        "TEGULA_BIN": str(BUILD / "bin/tegula"),
        "TEGULA_PROBE": str(BUILD / "bin/tegula_probe"),
        "TEGULA_LIB": str(BUILD / "lib/libtegula.so"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    failed = run("ctest", "--test-dir", BUILD, "-j", jobs, "--output-on-failure", env=variables)
    failed |= run(
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, env=variables
    )
    return "some tests failed" if failed else "all tests passed"


def counted():
    """Of each (file, line): how often it ran in any program, and the function that it is in."""
    data, times, inside = sorted(map(str, BUILD.rglob("*.gcda"))), collections.Counter(), {}
    for first in range(0, len(data), AT_ONCE):
        found = subprocess.run(
            ["gcov", "--json-format", "--stdout", *data[first : first + AT_ONCE]],
            check=True,
            cwd=BUILD,
            capture_output=True,
            text=True,
        ).stdout
        for record in map(json.loads, found.splitlines()):
            for file in record["files"]:
                name = os.path.relpath(
                    os.path.join(record["current_working_directory"], file["file"]), ROOT
                )
                for line in file["lines"] if name.startswith(FOLDERS) else ():
                    times[name, line["line_number"]] += line["count"]
                    inside[name, line["line_number"]] = line.get("function_name", "")
    return times, inside


def record(tests):
    result = run_tests(build(), tests or ["tests/cli", "tests/cases"])
    times, inside = counted()
    lines = collections.defaultdict(lambda: [0, 0])
    files = collections.defaultdict(lambda: [0, 0])
    for (file, number), function in inside.items():
        for total in (lines[function, file], files[file]):
            total[0] += 1
            total[1] += times[file, number] > 0
    functions = collections.defaultdict(list)
    for (function, _), total in sorted(lines.items()):
        functions[function] = sorted([*functions[function], total])
    total = [sum(column) for column in zip(*files.values())]
    print(
        "%s; %d of %d lines reached in %d files, %d functions"
        % (result, total[1], total[0], len(files), len(functions))
    )
    return {"tests": result, "functions": dict(functions), "files": dict(sorted(files.items()))}
