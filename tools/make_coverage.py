#!/usr/bin/env python3
"""Writes docs/coverage.md: which HDF5 datasets load, by kind, file version and release of libhdf5.

SPDX-License-Identifier: Apache-2.0

    python3 tools/make_coverage.py [--check] docs/coverage.md LIBHDF5...

Loads every dataset of tests/support/hdf5_cases.py with every library that is given and compares it with h5py. --check: exits with 1 when
a column of the file says something else about one of these libraries. Needs h5py, hdf5plugin and TEGULA_PROBE.
"""
import pathlib
import re
import sys
import tempfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

import h5py  # noqa: E402
import numpy  # noqa: E402

import hdf5_cases  # noqa: E402
import hdf5_files as h5  # noqa: E402
from probe import Probe, ProbeError  # noqa: E402

TITLE = """# What loads from HDF5 files

Written by `tools/make_coverage.py`; do not edit. Each dataset of `tests/support/hdf5_cases.py`, in files of every version that h5py
writes, loaded with each libhdf5 and compared with h5py element by element. *right*: in all file versions; *untested*: that library was not
at hand; anything else is the status of the refusal, in file versions in brackets where not in all, and its reason. A refusal that is not
here is a defect.

"""


def release(library):
    """"1.14.6", from the text that every libhdf5 holds."""
    return re.search(rb"HDF5 (?:library version|Version):? *(\d+\.\d+\.\d+)", pathlib.Path(library).read_bytes()).group(1).decode()


def reason(error, path):
    text = error["message"].replace(str(path), "FILE").replace("|", "\\|")
    text = text.split(": ", 1)[1] if ": " in text else text
    return error["status"] + ": " + text


def outcome(probe, folder, path, name):
    with h5py.File(path) as file:
        shape, size = file[name].shape, file[name].size
    try:
        if size is not None and size > 1 << 24:
            probe.call("open", path=str(path), dataset=name)
            return "right"
        got, _ = h5.load(probe, folder, path, name)
    except ProbeError as failure:
        return reason(failure.error, path)
    return "right" if shape is not None and got.tobytes() == h5.read(path, name).tobytes() else "WRONG"


def one_file(probe, folder, case, version):
    path = folder / "a.h5"
    rng = numpy.random.default_rng(zlib.crc32((case + version).encode()))
    with h5py.File(path, "w", libver=hdf5_cases.VERSIONS[version]) as file:
        names = hdf5_cases.CASES[case](file, rng)
    return {name: outcome(probe, folder, path, name) for name, status in names.items() if status in (None, "unsupported")}


def column(library, versions):
    """{(case, dataset): text} for one library."""
    probe = Probe(environment={"TEGULA_HDF5_LIBRARY": library})
    probe.call("context", threads=2)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for case in hdf5_cases.CASES:
            for version in versions:
                for name, text in one_file(probe, pathlib.Path(folder), case, version).items():
                    found.setdefault((case, name), {}).setdefault(text, []).append(version)
    probe.close()
    return {key: summary(texts) for key, texts in found.items()}


def summary(texts):
    count = sum(len(versions) for versions in texts.values())
    parts = [text if len(versions) == count else "%s (%s)" % (text, ", ".join(versions)) for text, versions in texts.items()]
    return "; ".join(parts)


def writable():
    done = []
    for version, libver in hdf5_cases.VERSIONS.items():
        try:
            h5py.File("x", "w", driver="core", backing_store=False, libver=libver).close()
            done.append(version)
        except ValueError:
            pass
    return done


def table(columns):
    releases = sorted(columns, key=lambda text: [int(n) for n in text.split(".")])
    rows = dict.fromkeys(key for one in columns.values() for key in one)
    lines = ["| kind | dataset | " + " | ".join("HDF5 " + one for one in releases) + " |", "|---|---|" + "---|" * len(releases)]
    for case, name in rows:
        cells = [columns[one].get((case, name), "untested") for one in releases]
        lines.append("| %s | %s | %s |" % (case.replace("_", " "), name, " | ".join(cells)))
    return "\n".join(lines) + "\n"


def read_table(path):
    """{release: {(kind, dataset): text}}"""
    lines = [line for line in path.read_text().splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").replace("\\|", "\0").split("|")] for line in lines]
    return {head[5:]: {(row[0], row[1]): row[k].replace("\0", "\\|") for row in cells[2:]} for k, head in enumerate(cells[0]) if k > 1}


def check(path, columns):
    told, wrong = read_table(path), 0
    for one, found in columns.items():
        for (case, name), text in found.items() if one in told else ():
            said = told[one].get((case.replace("_", " "), name))
            if said != text and "this build has no" not in text + str(said):  # codecs that depend on the build
                print("HDF5 %s, %s, %s: the file says %r, found %r" % (one, case, name, said, text))
                wrong += 1
    return 1 if wrong else 0


def main(arguments):
    checking = arguments[:1] == ["--check"]
    path, *libraries = arguments[checking:]
    versions = writable()
    columns = {release(library): column(library, versions) for library in libraries}
    if checking:
        return check(pathlib.Path(path), columns)
    pathlib.Path(path).write_text(TITLE + table(columns))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
