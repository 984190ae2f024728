#!/usr/bin/env python3
"""Records what a build does, so that moves and renames of source can be shown to change nothing,
and compares two records.

SPDX-License-Identifier: Apache-2.0

usage: record.py record OUT.json [--build BUILD] [--only TEXT]
       record.py coverage OUT.json [PYTEST-ARGUMENT...]
       record.py compare OLD.json NEW.json
coverage: lines that tests reach, by function (record_coverage.py). compare: prints each difference;
exit status 1 when there is one.
Run it with build/venv/bin/python: inputs are made by numpy and h5py. A record holds, for each run
of the shell command, arguments, exit status, output and the files made; exported symbols and needed
libraries; names of tests. What varies by nature is masked (MASKS).
"""

import argparse
import difflib
import hashlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TIME_LIMIT = 120
NUMBER = r"-?[0-9]+(\.[0-9]+)?(e-?[0-9]+)?"
# what varies between two runs of the same build, and what stands for it
MASKS = [
    (re.compile(pattern), text)
    for pattern, text in [
        (r'("(limit_)?seconds(_\w+)?"|"gb_per_s"|"peak_rss_bytes"): ' + NUMBER, r"\1: NUMBER"),
        (r'("ratio"): ' + NUMBER, r"\1: NUMBER"),
        (r'("mtime_ns"): [0-9]{19}', r"\1: TIME"),
        (r'("runs"): \[[-0-9., e]+\]', r"\1: [NUMBERS]"),
        (r"\b[0-9]+\.[0-9]+ (s|GB/s)\b", r"NUMBER \1"),
        (r"(\r?\[[#.]{30}\][^\r\n]*)+", "BAR"),
        (r"(?m)^(ratio +)[0-9.]+", r"\1NUMBER"),
        (r"tegula-demo-\w{6}", "tegula-demo-RANDOM"),
        (r"\.tiles-[0-9a-f]+", ".tiles-RANDOM"),
        (r"\.tegula-[0-9a-f]+\.tmp", ".tegula-RANDOM.tmp"),
        (r"(?m)^main [0-9]+ ([0-9]+) [0-9.]+$", r"main INODE \1 TIME"),  # .tegula-companion
        (r"Process name: \[\[[0-9]+,1\],[01]\]", "Process name: RANK"),  # Open MPI
    ]
]


def cases(inputs):
    """All cases of record_cases.txt, written out; `inputs`: names of what lies in `in`."""
    text = pathlib.Path(__file__).with_name("record_cases.txt").read_text()
    for line in ["", *re.findall(r"(?m)^[^#\n].*", text)]:
        choice = re.fullmatch(r"(.*)\[(.*)\](.*)", line)
        several = (
            [choice[1] + each + choice[3] for each in choice[2].split("|")] if choice else [line]
        )
        yield from (
            each.replace("{}", name)
            for each in several
            for name in (inputs if "{}" in each else [""])
        )


def steps_of(line, json_too):
    steps = [step.split() for step in line.split("&&")]
    return [
        [*words[:1], *(["--json"] if json_too and words else []), *words[1:]] for words in steps
    ]


def masked(text, folder):
    text = text.replace(str(folder), "FOLDER")
    for pattern, instead in MASKS:
        text = pattern.sub(instead, text)
    return text


def environment(folder):
    """Nothing of the caller's settings; the libhdf5 of the h5py at hand."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not re.match("TEGULA_|OMPI_|PMIX_|PRTE_|SLURM_|LC_|LANG", key)
    }
    package = pathlib.Path(importlib.util.find_spec("h5py").origin).parent.parent
    library = next(package.glob("h5py.libs/libhdf5-*.so*"), None)
    return {
        **kept,
        "LC_ALL": "C",
        "TMPDIR": str(folder),
        "TEGULA_THREADS": "2",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        **({"TEGULA_HDF5_LIBRARY": str(library)} if library else {}),
    }


def content(path, folder):
    """What a file holds: masked text, or a digest. libhdf5 leaves bytes of a global heap (GCOL)
    unset: then the size alone."""
    data = path.read_bytes()
    try:
        return masked(data.decode("ascii"), folder)
    except UnicodeDecodeError:
        digest = "global heap" if b"GCOL" in data else "sha256 " + hashlib.sha256(data).hexdigest()
        return "%d bytes, %s" % (len(data), digest)


def files_in(folder, base):
    return {
        masked(path.relative_to(folder).as_posix(), base): content(path, base)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def run_case(tegula, steps, folder, variables):
    """The record of a case: its steps, and the files it has made."""
    out, done = folder / "out", []
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    for words in steps:
        run = subprocess.run(
            [tegula, *words],
            cwd=folder,
            env=variables,
            timeout=TIME_LIMIT,
            check=False,
            capture_output=True,
        )
        texts = [
            masked(text.decode("utf-8", "backslashreplace"), folder)
            for text in (run.stdout, run.stderr)
        ]
        done.append(
            {"arguments": words, "status": run.returncode, "stdout": texts[0], "stderr": texts[1]}
        )
    return {"steps": done, "files": files_in(out, folder)}


def record_runs(build, only):
    import record_inputs

    with tempfile.TemporaryDirectory(prefix="tegula-record-") as name:
        folder = pathlib.Path(name).resolve()
        record_inputs.make(folder / "in")
        before, variables, runs = files_in(folder / "in", folder), environment(folder), {}
        for line in cases(sorted(os.listdir(folder / "in"))):
            for suffix in ("", " (--json)") if only in line else ():
                runs[line + suffix] = run_case(
                    str(build / "bin/tegula"), steps_of(line, suffix != ""), folder, variables
                )
        after = files_in(folder / "in", folder)
    if after != before:
        raise SystemExit(
            "record.py: the runs have changed their inputs: %s"
            % sorted(set(after.items()) ^ set(before.items()))
        )
    return {"inputs": before, "runs": runs}


def output(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def record_symbols(build):
    """Exported symbols and needed libraries of the library,
    the plugins and the extension module."""
    found = {}
    paths = [
        build / "lib/libtegula.so",
        *build.glob("lib/tegula/*.so"),
        *build.glob("python/tegula/*.so"),
        build / "bin/tegula",
    ]
    for path in filter(pathlib.Path.exists, paths):
        rows = [
            line.split() for line in output("nm", "-D", "--defined-only", str(path)).splitlines()
        ]
        needed = re.findall(r"\((NEEDED|SONAME)\).*\[(.*)\]", output("readelf", "-d", str(path)))
        found[path.relative_to(build).as_posix()] = sorted(
            " ".join(row[-2:]) for row in rows
        ) + sorted(map(" ".join, needed))
    return found


def record_tests(build):
    """Names of the tests of ctest and pytest; empty where the build has none."""
    tree = re.search(r"CMAKE_HOME_DIRECTORY:INTERNAL=(.*)", (build / "CMakeCache.txt").read_text())[
        1
    ]
    names = re.findall(
        r"(?m)^ +Test +#[0-9]+: (\S+)", output("ctest", "--test-dir", str(build), "-N")
    )
    variables = {
        **os.environ,
        "TEGULA_BIN": str(build / "bin/tegula"),
        "TEGULA_PROBE": str(build / "bin/tegula_probe"),
        "TEGULA_LIB": str(build / "lib/libtegula.so"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=tree,
        env=variables,
        check=False,
        capture_output=True,
        text=True,
    )
    items = [line.replace(tree, "TREE") for line in run.stdout.splitlines() if "::" in line]
    return {"ctest": sorted(names), "pytest": sorted(items)}


def is_steps(value):
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def lines_of(value):
    if isinstance(value, str):
        return value.splitlines()
    return list(map(str, value)) if isinstance(value, list) else [str(value)]


def differences(old, new, where=""):
    """Lines that say what differs between two records, down to the lines of texts."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            if key not in new or key not in old:
                yield "%s%s: only in the %s record" % (
                    where,
                    key or '""',
                    "old" if key in old else "new",
                )
            else:
                yield from differences(old[key], new[key], "%s%s: " % (where, key or '""'))
    elif is_steps(old) and is_steps(new) and len(old) == len(new):
        for index, pair in enumerate(zip(old, new), 1):
            yield from differences(*pair, "%sstep %d: " % (where, index) if len(old) > 1 else where)
    elif old != new:
        for line in difflib.unified_diff(lines_of(old), lines_of(new), n=0, lineterm=""):
            if not re.match(r"---|\+\+\+|@@", line):
                yield where + line


def compare(old, new):
    records = [json.loads(pathlib.Path(path).read_text()) for path in (old, new)]
    found = list(differences(*records))
    print(
        "\n".join(
            [*found, "%d differences, %d runs" % (len(found), len(records[1].get("runs", [])))]
        )
    )
    return 1 if found else 0


def write(path, record):
    pathlib.Path(path).write_text(json.dumps(record, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(
        prog="record.py", description="Records what a build does; compares two records."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("record", help="run all cases and write OUT.json")
    command.add_argument("out", metavar="OUT.json")
    command.add_argument(
        "--build", default="build", type=pathlib.Path, help="build folder (default build)"
    )
    command.add_argument(
        "--only", default="", metavar="TEXT", help="only the cases whose line holds TEXT"
    )
    command = commands.add_parser("coverage", help="build with gcov, run tests, write OUT.json")
    command.add_argument("out", metavar="OUT.json")
    command.add_argument(
        "tests", nargs="*", help="what pytest runs beside ctest (default tests/cli tests/cases)"
    )
    command = commands.add_parser("compare", help="print each difference")
    command.add_argument("old", metavar="OLD.json")
    command.add_argument("new", metavar="NEW.json")
    arguments = parser.parse_args()
    if arguments.command == "compare":
        return compare(arguments.old, arguments.new)
    if arguments.command == "coverage":
        import record_coverage

        write(arguments.out, record_coverage.record(arguments.tests))
        return 0
    build = arguments.build.resolve()
    record = record_runs(build, arguments.only)
    if not arguments.only:
        record.update(symbols=record_symbols(build), tests=record_tests(build))
    write(arguments.out, record)
    print("%s: %d runs" % (arguments.out, len(record["runs"])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
