#!/usr/bin/env python3
"""Writes docs/coverage.md: which HDF5 datasets load, by layout, dtype, codec,
file version and release of libhdf5.

SPDX-License-Identifier: Apache-2.0

    python3 tools/make_coverage.py [--check] [--also FOLDER] LIBHDF5...

Loads every dataset of tests/support/hdf5_coverage.py with every library that is given and compares
it with what h5py reads. --also: a folder with another h5py (pip install --target), whose process
writes the files of versions that the h5py of this one has not. What comes out is kept in
tests/hdf5/coverage.json, where releases and file versions that are not at hand stay as they were,
and shown in docs/coverage.md. --check writes nothing and exits with 1 when the two say something
else. Needs h5py, hdf5plugin and TEGULA_PROBE.
"""

import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
SUPPORT = ROOT / "tests" / "support"
TABLE = ROOT / "tests" / "hdf5" / "coverage.json"
SWEEP = ROOT / "tests" / "real" / "sweep.json"
DOCUMENT = ROOT / "docs" / "coverage.md"
sys.path.insert(0, str(SUPPORT))

import hdf5_cases  # noqa: E402
import hdf5_coverage  # noqa: E402
import hdf5_files as h5  # noqa: E402
from probe import Probe, ProbeError  # noqa: E402

MATRICES = {"layout_by_dtype": "Layouts and dtypes", "codec_by_dtype": "Codecs and dtypes"}
TITLE = """# What loads from HDF5 files

Written by `tools/make_coverage.py`; do not edit. \
Each dataset of `tests/support/hdf5_coverage.py`, in files of every version that HDF5
writes, loaded with each libhdf5 and compared with what h5py reads, or with what was written. \
`tests/hdf5/test_hdf5_coverage.py` holds that
it is so, for every libhdf5 at hand.

*right*: in all file versions and with each libhdf5 of this page (%s). *needs libblosc2*: \
right where tegula was built with
it, else refused by name. Anything else is the status of a refusal and its reason. \
What is said first holds for all but what follows with
file versions and releases of libhdf5 in brackets. `-`: there is no such dataset. \
A refusal that is not here is a defect.
"""


def release(library):
    """ "1.14.6", from the text that every libhdf5 holds."""
    return (
        re.search(
            rb"HDF5 (?:library version|Version):? *(\d+\.\d+\.\d+)",
            pathlib.Path(library).read_bytes(),
        )
        .group(1)
        .decode()
    )


# ---- what is so ----


def reason(error, path):
    text = (
        error["message"]
        .replace(str(path), "FILE")
        .replace(str(path.parent), "FOLDER")
        .replace("|", "/")
    )
    lacking = re.search(r"(?:this build has|:) no (lib\w+)", text)
    if lacking:
        return "needs " + lacking.group(1)
    text = re.sub(r'^(cannot load ".*?" of|could not open ".*?" in) "FILE": ', "", text)
    text = re.sub(r"HDF5 \d+\.\d+\.\d+", "libhdf5", text)
    return error["status"] + ": " + text


def outcome(probe, path, name, want):
    try:
        if "open" in want:
            return (
                "right"
                if probe.call("open", path=str(path), dataset=name)["shape"] == want["open"]
                else "WRONG"
            )
        got, _ = h5.load(probe, path.parent, path, name)
    except ProbeError as failure:
        status, text = failure.error["status"], reason(failure.error, path)
        too_new = status == "unsupported" and "version" in text
        return text if too_new or want.get("status", status) == status else "WRONG, " + text
    same = (
        "status" not in want
        and list(got.shape) == want["shape"]
        and hashlib.sha256(got.tobytes()).hexdigest()[:16] == want["digest"]
    )
    return "right" if same else "WRONG"


def column(library, folders):
    """{case: {dataset: {version: text}}} for one library,
    of the files that were written into the folders."""
    probe = Probe(environment={"TEGULA_HDF5_LIBRARY": str(library)})
    probe.call("context", threads=2)
    found = {}
    for path in sorted(path for folder in folders for path in pathlib.Path(folder).glob("*/a.h5")):
        case, version = path.parent.name.rsplit("-", 1)
        for name, want in json.loads((path.parent / "want.json").read_text()).items():
            found.setdefault(case, {}).setdefault(name, {})[version] = outcome(
                probe, path, name, want
            )
    probe.close()
    return found


def write_files(folder, also=None):
    """The files of this h5py and, with `also`, what that one adds. Gives the folders."""
    hdf5_coverage.write_all(folder / "here")
    missing = [version for version in hdf5_coverage.VERSIONS if not hdf5_cases.writable(version)]
    if also is None:
        return [folder / "here"]
    environment = {**os.environ, "PYTHONPATH": str(also), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(
        [sys.executable, str(SUPPORT / "hdf5_coverage.py"), str(folder / "also"), *missing],
        env=environment,
        check=True,
    )
    return [folder / "here", folder / "also"]


# ---- what is kept: {case: {dataset: {release: {version: text}}}};
# equal outcomes once, by number ----


def read_table():
    """(releases, cases)"""
    kept = (
        json.loads(TABLE.read_text())
        if TABLE.exists()
        else {"releases": [], "outcomes": [], "cases": {}}
    )
    outcomes = kept["outcomes"]
    return kept["releases"], {
        case: {name: outcomes[k] for name, k in datasets.items()}
        for case, datasets in kept["cases"].items()
    }


def ordered(value, releases):
    return {
        one: {
            version: value[one][version]
            for version in hdf5_coverage.VERSIONS
            if version in value[one]
        }
        for one in releases
        if one in value
    }


def write_table(cases):
    found = {one for datasets in cases.values() for value in datasets.values() for one in value}
    releases = sorted(found, key=lambda text: [int(number) for number in text.split(".")])
    numbers = {}

    def number(value):
        return numbers.setdefault(json.dumps(ordered(value, releases)), len(numbers))

    lines = [
        "%s: %s"
        % (json.dumps(case), json.dumps({name: number(value) for name, value in datasets.items()}))
        for case, datasets in cases.items()
    ]
    parts = json.dumps(releases), ",\n".join(numbers), ",\n".join(lines)
    TABLE.write_text('{"releases": %s,\n"outcomes": [\n%s],\n"cases": {\n%s}}\n' % parts)


def merge(columns):
    """What was found in place of what was kept; the rest of the table as it was. Cases and
    datasets that are gone are gone."""
    _, kept = read_table()
    merged = {}
    for case in hdf5_coverage.CASES:
        found = {one: cases.get(case, {}) for one, cases in columns.items()}
        for name in dict.fromkeys(name for datasets in found.values() for name in datasets):
            value = {one: dict(texts) for one, texts in kept.get(case, {}).get(name, {}).items()}
            for one, datasets in found.items():
                # a build with libblosc2 does not take away what needs it
                before = value.setdefault(one, {})
                before.update(
                    {
                        version: text
                        for version, text in datasets.get(name, {}).items()
                        if not agrees(before.get(version, "-"), text)
                    }
                )
            merged.setdefault(case, {})[name] = value
    return merged


# ---- how it is shown ----


def places(value, text, releases):
    """Where a dataset has this outcome: "v114, v200 with HDF5 1.10.8; v200 with HDF5 1.14.6"."""
    by_versions = {}
    for one in releases:
        found = ", ".join(version for version, said in value.get(one, {}).items() if said == text)
        by_versions.setdefault(found, []).append(one)
    every = {version for texts in value.values() for version in texts}
    parts = []
    for versions, ones in by_versions.items():
        names = [] if set(versions.split(", ")) == every else [versions]
        names += [] if ones == list(releases) else ["HDF5 " + ", ".join(ones)]
        parts += [" with ".join(names)] if versions else []
    return "; ".join(parts)


def cell(value, releases):
    """The outcome, and those of other files and releases with where."""
    texts = [text for one in releases for text in value.get(one, {}).values()]
    usual = "right" if "right" in texts else max(texts, key=texts.count)
    lines = [usual] + [
        "%s (%s)" % (text, places(value, text, releases))
        for text in dict.fromkeys(texts)
        if text != usual
    ]
    return "<br>".join(lines)


def kinds_table(cases, releases):
    lines = ["| kind | datasets | outcome |", "|---|---|---|"]
    for case, datasets in cases.items():
        rows = {}
        for name, value in datasets.items() if case not in MATRICES else ():
            rows.setdefault(cell(value, releases), []).append(name)
        for text, names in rows.items():
            lines.append(
                "| %s | %s | %s |"
                % (case.replace("_", " "), ", ".join("`%s`" % name for name in names), text)
            )
    return lines


def short(text, notes):
    """The first words, with the number of a note where there are more."""
    first = text.split("<br>")[0]
    word = first if first == "right" or first.startswith("needs ") else "refused"
    return word if word == text else "%s (%d)" % (word, notes.setdefault(text, len(notes) + 1))


def matrix(datasets, releases):
    """Rows: dtypes; columns: what is in front of the last slash."""
    names = {name: name.rsplit("/", 1) for name in datasets}
    columns, rows = (list(dict.fromkeys(place[k] for place in names.values())) for k in (0, 1))
    notes, lines = {}, []
    for row in rows:
        cells = [
            short(cell(datasets[one + "/" + row], releases), notes)
            if one + "/" + row in datasets
            else "-"
            for one in columns
        ]
        lines.append("| `%s` | %s |" % (row, " | ".join(cells)))
    head = ["| dtype | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    return (
        head
        + lines
        + [""]
        + ["%d. %s" % (number, text.replace("<br>", "; ")) for text, number in notes.items()]
    )


# tests/hdf5/test_hdf5_save.py holds that it is so.
SAVED = """## What is not saved as HDF5

Saved are all dtypes of the first table, opaque items (`V`) and records (numpy's structured \
dtypes), in every layout. Refused before anything is written:

| what | status and reason |
|---|---|
| records with long doubles, fields without bytes, or names with a zero character | \
unsupported: HDF5 has no such types |
| arrays in Fortran order, more than 32 axes | unsupported: HDF5 has no such datasets |
| chunks of 4 GiB and more, or larger than the codec can take | limit_exceeded |
| codecs whose library is not there, szip and filters that only libhdf5 has | \
unsupported |""".split("\n")


def sweep():
    """What tests/real/sweep.py has found."""
    found = json.loads(SWEEP.read_text())
    packages, results = found["packages"], found["results"]
    lines = [
        "## Files of published packages",
        "",
        "`tests/real/sweep.py` opened %d HDF5 and npy files of %d source packages and compared "
        "each of their %d datasets with h5py or numpy. *refused*: h5py reads it. *neither*: h5py "
        "does not read it either. *not by h5py*: tegula alone reads it. `X` and `N` stand for "
        "names and numbers." % (sum(packages.values()), len(packages), sum(n for *_, n in results)),
        "",
        "| datasets | outcome | reason |",
        "|---:|---|---|",
    ]
    for result, why, n in results:
        lines.append("| %d | %s | %s |" % (n, result, (why or "").replace("|", "/")))
    names = ["%s (%d)" % (name.split()[1], n) for name, n in packages.items()]
    return [*lines, "", "The packages, with their files: " + ", ".join(names) + "."]


def document():
    releases, cases = read_table()
    lines = [TITLE % ", ".join(releases)]
    for case, title in MATRICES.items():
        versions = dict.fromkeys(
            version
            for value in cases[case].values()
            for texts in value.values()
            for version in texts
        )
        lines += [
            "## " + title,
            "",
            "File versions: %s." % ", ".join(versions),
            "",
            *matrix(cases[case], releases),
            "",
        ]
    lines += ["## Kinds of datasets and files", "", *kinds_table(cases, releases)]
    lines += ["", *SAVED, "", *sweep()]
    return "\n".join(lines) + "\n"


# ---- checks ----


def agrees(said, text):
    """Codecs depend on the build."""
    return said == text or {said.split()[0], text.split()[0]} <= {"needs", "right"}


def check(columns):
    """What is not as the table says, one line each; releases that it does not know are left out."""
    releases, told = read_table()
    wrong = []
    for one in set(columns) & set(releases):
        for case, datasets in columns[one].items():
            for name, texts in datasets.items():
                for version, text in texts.items():
                    said = told.get(case, {}).get(name, {}).get(one, {}).get(version, "untested")
                    if not agrees(said, text):
                        wrong.append(
                            "HDF5 %s, %s, %s, %s: the table says %r, found %r"
                            % (one, case, name, version, said, text)
                        )
    return wrong


def main(arguments):
    checking = "--check" in arguments
    also = (
        pathlib.Path(arguments[arguments.index("--also") + 1]).resolve()
        if "--also" in arguments
        else None
    )
    libraries = [
        one for one in arguments if not one.startswith("--") and pathlib.Path(one).is_file()
    ]
    with tempfile.TemporaryDirectory() as folder:
        folders = write_files(pathlib.Path(folder), also)
        columns = {release(library): column(library, folders) for library in libraries}
    if checking:
        wrong = check(columns)
        print("\n".join(wrong))
        return 1 if wrong or DOCUMENT.read_text() != document() else 0
    write_table(merge(columns))
    DOCUMENT.write_text(document())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
