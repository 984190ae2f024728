#!/usr/bin/env python3
"""Opens every HDF5 and npy file of published packages and compares each dataset with h5py or numpy.

SPDX-License-Identifier: Apache-2.0

    python3 tests/real/sweep.py [--keep FOLDER] [--only NAME,...] [--write FILE] [--jobs N]

The packages of tests/real/packages.txt are got from a package index (PyPI; the newest source
archive, nothing of it is run) and from Debian's archive of sources, whose mirror apt knows.
Packages that cannot be had are named. --keep: where archives stay; --write: the table as JSON,
which tools/make_coverage.py shows in docs/coverage.md. Ends with status 1 where a dataset is
different, a process crashed or did not end; with 77 where no package can be had.

Each file is looked at in a process of its own. `equal`: shape, dtype and every element are those
of h5py or numpy. `refused`: tegula said why, and h5py reads it. `neither`: neither reads it.
`not by h5py`: tegula alone reads it.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import zipfile

HERE = pathlib.Path(__file__).resolve()
SIGNATURE = b"\x89HDF\r\n\x1a\n"
MOST_ARCHIVE = 400 << 20  # bytes of an archive
MOST_DATASET = 512 << 20  # bytes of a dataset in memory
SECONDS = 120  # for one file
BAD = ("different", "crash", "hang")


# ---- one file, in a process of its own ----


def same(ours, theirs):
    """Element by element, bytes of numbers that are not equal to themselves aside."""
    import numpy

    if ours.shape != theirs.shape:
        return False
    if theirs.dtype.names is not None:
        # tegula has them in the order of their bytes
        return sorted(ours.dtype.names or ()) == sorted(theirs.dtype.names) and all(
            same(ours[name], theirs[name]) for name in theirs.dtype.names
        )
    if ours.dtype.newbyteorder("=") != theirs.dtype.newbyteorder("="):
        return False
    if theirs.dtype.kind in "fcmM":
        return bool(numpy.array_equal(ours, theirs, equal_nan=True))
    if theirs.dtype.kind == "V":
        return ours.tobytes() == theirs.tobytes()
    return bool(numpy.array_equal(ours, theirs))


def plain(message):
    """A reason without what is only of this file."""
    message = re.sub(r'"[^"]*"', "X", message)
    message = re.sub(r"X \(([^)]*)\)", r"\1", message)
    message = re.sub(r"\d+", "N", message).replace("HDFN", "HDF5")
    start, colon, members = message.rpartition(": ")
    if "records" in start:  # each reason once, however many members have it
        start = start.replace("a member of its records", "members of its records")
        members = ", ".join(sorted(set(members.split(", "))))
    return (start + colon + members)[:200]


def judged(open_ours, read_theirs):
    import numpy
    import tegula

    try:
        theirs, why = numpy.asarray(read_theirs()), None
    except Exception as error:
        theirs, why = None, type(error).__name__
    try:
        ours = open_ours()[...]
    except tegula.Error as error:
        if theirs is None:
            return "neither", plain(str(error))
        return "refused", plain(str(error))
    if theirs is None:
        return "not by h5py", why
    if theirs.dtype.hasobject:
        return "different", "h5py gives objects"
    return ("equal", None) if same(numpy.asarray(ours), theirs) else ("different", None)


def names_of(file):
    """Datasets by their first path; links are followed, each object once."""
    import h5py

    found, seen, todo = [], set(), [("/", file)]
    while todo:
        path, group = todo.pop()
        try:
            names = list(group)
        except Exception:  # damaged on purpose
            continue
        for name in names:
            try:
                link = group.get(name, getlink=True)
                item = group[name]
            except Exception:
                continue
            if isinstance(link, h5py.ExternalLink):
                continue
            info = h5py.h5o.get_info(item.id)
            if (info.fileno, info.addr) in seen:
                continue
            seen.add((info.fileno, info.addr))
            inner = path.rstrip("/") + "/" + name
            if isinstance(item, h5py.Group):
                todo.append((inner, item))
            elif isinstance(item, h5py.Dataset):
                found.append(inner)
    return sorted(found)


def large(dataset):
    try:
        return dataset.shape is not None and dataset.nbytes > MOST_DATASET
    except Exception:  # h5py has no dtype for it
        return False


def sweep_hdf5(path):
    import h5py
    import tegula

    try:
        file = h5py.File(path)
    except Exception as error:
        try:
            tegula.open(path)[...]
        except tegula.Error as ours:
            return [("/", "neither", plain(str(ours)))]
        return [("/", "not by h5py", type(error).__name__)]
    results = []
    with file:
        for name in names_of(file):
            dataset = file[name]
            if large(dataset):
                results.append((name, "too large", None))
            elif dataset.shape is None:
                results.append((name, "no dataspace", None))
            else:
                results.append(
                    (name, *judged(lambda: tegula.open(path, name), lambda: dataset[()]))  # noqa: B023
                )
    return results


def sweep_npy(path):
    import numpy
    import tegula

    return [("data", *judged(lambda: tegula.open(path), lambda: numpy.load(path)))]


def sweep_file(path):
    with open(path, "rb") as file:
        npy = file.read(6) == b"\x93NUMPY"
    print(json.dumps(sweep_npy(path) if npy else sweep_hdf5(path)))


# ---- files ----


def is_data(path):
    if not path.is_file() or path.is_symlink():
        return False
    with path.open("rb") as file:
        start = file.read(8)
        if start[:6] == b"\x93NUMPY" or start == SIGNATURE:
            return True
        place, size = 512, path.stat().st_size
        while place < min(size, 1 << 20):
            file.seek(place)
            if file.read(8) == SIGNATURE:
                return True
            place *= 2
    return False


def look_at(path):
    """Results of one file."""
    try:
        run = subprocess.run(
            [sys.executable, HERE, "--file", path],
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return [("/", "hang", None)]
    if run.returncode != 0:
        last = run.stderr.decode(errors="replace").strip().splitlines()[-1:]
        return [("/", "crash", "%d %s" % (run.returncode, "".join(last)[:200]))]
    return json.loads(run.stdout)


# ---- packages ----


def fetch(url, target):
    request = urllib.request.Request(url, headers={"User-Agent": "tegula-sweep"})
    with urllib.request.urlopen(request, timeout=120) as answer, open(target, "wb") as out:
        while block := answer.read(1 << 20):
            out.write(block)


def from_index(name, folder):
    """The newest source archive, by the index's own list."""
    index = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/")
    request = urllib.request.Request(
        "%s/%s/" % (index, name), headers={"Accept": "application/vnd.pypi.simple.v1+json"}
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        files = json.load(answer)["files"]
    wanted = [
        file
        for file in files
        if file["filename"].endswith((".tar.gz", ".zip", ".tar.bz2")) and not file.get("yanked")
    ] or [file for file in files if file["filename"].endswith(".whl")]
    newest = max(wanted, key=lambda file: file.get("upload-time") or "")
    if (newest.get("size") or 0) > MOST_ARCHIVE:
        raise ValueError("its archive has %d MB" % (newest["size"] >> 20))
    target = folder / newest["filename"]
    if not target.exists():
        fetch(urllib.request.urljoin(answer.url, newest["url"]), target)
    return [target]


def apt(state, *words, check=True, **options):
    return subprocess.run(
        [
            *("apt-get", "-qq", "-o", f"Dir::Etc::SourceList={state}/sources.list"),
            *("-o", "Dir::Etc::SourceParts=/dev/null", "-o", f"Dir::State::Lists={state}/lists"),
            *words,
        ],
        check=check, capture_output=True, **options,
    )  # fmt: skip


def debian_sources(state):
    """Lists of source packages in a folder of their own: the system's stay as they are."""
    policy = subprocess.run(["apt-cache", "policy"], capture_output=True, text=True, check=True)
    found = re.search(r"(https?://\S+) (\w+)/main amd64 Packages", policy.stdout)
    if found is None:
        raise ValueError("apt knows no mirror")
    (state / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (state / "sources.list").write_text("deb-src %s %s main\n" % found.groups())
    apt(state, "update")


def originals(place):
    return [path for path in place.glob("*.orig*") if path.suffix != ".asc"]


def from_debian(name, folder):
    state = folder / "apt"
    if not (state / "sources.list").exists():
        debian_sources(state)
    place = folder / ("debian-" + name)
    place.mkdir(exist_ok=True)
    if not originals(place):
        # a mirror may lack Debian's own part, which is not wanted
        apt(state, "source", "--download-only", name, cwd=place, check=False)
    if not originals(place):
        raise ValueError("no mirror has its sources")
    return originals(place)


def unpack(archive, target):
    if archive.suffix in (".zip", ".whl"):
        with zipfile.ZipFile(archive) as file:
            file.extractall(target)
    else:
        with tarfile.open(archive) as file:
            file.extractall(target, filter="data")
    for inner in list(target.rglob("*.zip")):  # test data is often packed again
        try:
            with zipfile.ZipFile(inner) as file:
                file.extractall(inner.with_suffix(".unpacked"))
        except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError):
            continue


def sweep_package(kind, name, folder, workers):
    """Counts by result and reason, and the bad ones by their path."""
    archives = (from_index if kind == "pypi" else from_debian)(name, folder)
    counts, bad, files = collections.Counter(), [], 0
    with tempfile.TemporaryDirectory(prefix="tegula-sweep-") as place:
        for archive in archives:
            unpack(archive, pathlib.Path(place))
        paths = sorted(path for path in pathlib.Path(place).rglob("*") if is_data(path))
        for path, results in zip(paths, workers.map(look_at, paths)):
            files += 1
            for dataset, result, why in results:
                counts[result, why] += 1
                if result in BAD:
                    bad.append([str(path.relative_to(place)), dataset, result, why])
    return {
        "files": files,
        "results": [[*key, n] for key, n in sorted(counts.items(), key=str)],
        "bad": bad,
    }


# ---- the whole ----


def packages(only):
    for line in (HERE.parent / "packages.txt").read_text().splitlines():
        words = line.split("#")[0].split()
        if words and (not only or words[1] in only):
            yield words


def totals(table):
    counts = collections.Counter()
    for package in table.values():
        for result, why, n in package.get("results", []):
            counts[result, why] += n
    return counts


def summary(table):
    """Files of each package that has any; outcomes with how many datasets have them."""
    had = {name: package["files"] for name, package in table.items() if package.get("files")}
    return had, [[*key, n] for key, n in sorted(totals(table).items(), key=str)]


def write(path, table):
    had, results = summary(table)
    path.write_text(
        json.dumps({"packages": had, "results": results}, indent=1, sort_keys=True) + "\n"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--file")
    parser.add_argument("--keep")
    parser.add_argument("--only", default="")
    parser.add_argument("--write")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    given = parser.parse_args()
    if given.file:
        return sweep_file(given.file)
    table = {}
    with tempfile.TemporaryDirectory(prefix="tegula-archives-") as scratch:
        folder = pathlib.Path(given.keep or scratch)
        folder.mkdir(exist_ok=True, parents=True)
        with concurrent.futures.ThreadPoolExecutor(given.jobs) as workers:
            for kind, name in packages(set(filter(None, given.only.split(",")))):
                try:
                    found = sweep_package(kind, name, folder, workers)
                except Exception as error:
                    found = {"not had": "%s: %s" % (type(error).__name__, str(error)[:120])}
                table["%s %s" % (kind, name)] = found
                print(kind, name, json.dumps(found)[:300], flush=True)
                if given.write:
                    write(pathlib.Path(given.write), table)
    had, results = summary(table)
    for result, why, n in results:
        print("%8d  %s%s" % (n, result, ": " + why if why else ""))
    print("%d files of %d packages" % (sum(had.values()), len(had)))
    for name, package in table.items():
        for bad in package.get("bad", []):
            print(name, *bad)
    if not had:
        print("skipped: no package can be had")
        return 77
    return 1 if any(package.get("bad") for package in table.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
