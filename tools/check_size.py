#!/usr/bin/env python3
"""A report of file and function sizes; fails only above the hard limits.

SPDX-License-Identifier: Apache-2.0

Aims: files 250 lines in the median and none over 700, functions 15 lines in the median, 95 % up to
60, none over 120. Hard limits: a file of 450 lines in the product and of 1,200 elsewhere, a
function of 200, 15 % of src in one of its folders, 3,000 lines in src/api. A function begins at a
line that is not indented and ends in "{" after ")", and ends at the next "}" in the first column
(the layout used everywhere here).
"""

import pathlib
import re
import statistics
import sys

AIM_FILE, HARD_FILE, AIM_FUNCTION, HARD_FUNCTION = 700, 1200, 120, 200
PRODUCT, HARD_PRODUCT_FILE = ("src/", "plugins/", "cli/", "python/core/"), 450
LARGEST_SHARE, LARGEST_API = 0.15, 3000  # of src in one folder of it; lines of src/api
FOLDERS = ("src", "plugins", "cli", "python", "bench", "tests", "examples")
START = re.compile(r"^(?:[A-Za-z_][^;={]*|\s+[^;={]*)\)\s*\{\s*$")
NAME = re.compile(r"(\w+)\s*\(")


def functions(lines):
    """Yields (name, first line, number of lines). Declarations that span lines start at the
    first line that is not indented."""
    head = start = None
    for number, line in enumerate(lines, 1):
        if start is None and line[:1].strip() and line[0] not in "#/*}":
            head = number
        if start is None and head is not None and START.match(line):
            start = head
        elif start is not None and line.startswith("}"):
            yield (
                NAME.search(" ".join(lines[start - 1 : number])).group(1),
                start,
                number - start + 1,
            )
            head = start = None


def describe(what, sizes):
    ordered = sorted(sizes)
    high = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    print(
        f"{what}: {len(sizes)}, median {statistics.median(sizes):g} lines, 95 % up to {high}, "
        f"longest {ordered[-1]}"
    )


def hard_limit(name):
    if ": " in name:
        return HARD_FUNCTION
    return HARD_PRODUCT_FILE if name.startswith(PRODUCT) else HARD_FILE


def large_folders(files):
    """Folders of src that are too large, of (lines, name) of all files."""
    lines = {}
    for size, name in files:
        if name.startswith("src/"):
            folder = "/".join(name.split("/")[:2])
            lines[folder] = lines.get(folder, 0) + size
    total = sum(lines.values())
    largest = max(lines, key=lines.get)
    share = lines[largest] / total
    print(f"src: {total} lines, {share:.1%} of them in {largest}; {lines['src/api']} in src/api")
    large = [largest] if share > LARGEST_SHARE else []
    return large + (["src/api"] if lines["src/api"] > LARGEST_API else [])


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    files, found, hard = [], [], []
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.[ch]")):
        name = path.relative_to(root).as_posix()
        lines = path.read_text().splitlines()
        files.append((len(lines), name))
        found += [(size, f"{name}:{line}: {function}") for function, line, size in functions(lines)]
    for title, chosen in (
        ("files", ("src/", "plugins/", "include/")),
        ("functions in src, plugins and cli", ("src/", "plugins/", "cli/")),
    ):
        sizes = [
            size for size, name in (files if title == "files" else found) if name.startswith(chosen)
        ]
        if sizes:
            describe(title, sizes)
    for size, name in sorted(found + files, reverse=True):
        function = ": " in name
        if size > min(hard_limit(name), AIM_FUNCTION if function else AIM_FILE):
            over = size > hard_limit(name)
            hard += [name] if over else []
            print(f"  {size:5} lines  {name}")
    hard += large_folders(files)
    for name in hard:
        print(f"over the hard limit: {name}")
    return 1 if hard or not found else 0


if __name__ == "__main__":
    sys.exit(main())
