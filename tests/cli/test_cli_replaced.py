# A folder of shards is exchanged for another while commands read it: they see one of the two,
# or fail with `changed`.
#
# SPDX-License-Identifier: Apache-2.0
import contextlib
import json
import os
import subprocess

import numpy
import pytest

import replacing
from command import BIN

ROUNDS = 2000 if os.environ.get("TEGULA_FAULT_ALL") == "1" else 30
FILES = 64


@pytest.fixture
def folder(tmp_path):
    """Folders a and b: 64 shards of ones, of twos. Nothing else is ever in them."""
    for name, value in (("a", 1), ("b", 2)):
        (tmp_path / name).mkdir()
        for i in range(FILES):
            numpy.save(
                tmp_path / name / f"part_{i:02}.npy",
                numpy.full((2 + (i + value) % 3, 5), value, "i4"),
            )
    return tmp_path


@contextlib.contextmanager
def exchanging(folder, pause=0.003):
    with replacing.running("exchange", folder / "a", folder / "b", pause):
        yield


def run(*arguments):
    """(exit status, the JSON object)"""
    done = subprocess.run(
        [BIN, *map(str, arguments), "--json"], capture_output=True, text=True, timeout=120
    )
    report = json.loads(done.stdout)
    if done.returncode == 1:
        assert report["error"]["status"] == "changed", report["error"]
    return done.returncode, report


def rounds(folder, one):
    """Calls `one`, which gives what it saw; None: it failed with `changed`."""
    seen = [one(i) for i in range(ROUNDS)]
    assert set(seen) & {1, 2}, "no call has come through"
    assert set(seen) <= {1, 2, None}


def test_hashes_are_those_of_one_of_the_two(folder):
    hashes = {
        run("load", folder / name, "--hash")[1]["hash"]: value
        for name, value in (("a", 1), ("b", 2))
    }

    def load(_):
        status, report = run("load", folder / "a", "--hash")
        return hashes.get(report["hash"], "a mixture") if status == 0 else None

    with exchanging(folder):
        rounds(folder, load)


@pytest.mark.parametrize("format", ["npy", "hdf5"])
def test_copies_are_those_of_one_of_the_two(folder, format):
    target = folder / ("copy." + {"npy": "npy", "hdf5": "h5"}[format])

    def copy(_):
        status, _ = run("copy", folder / "a", target, "--overwrite")
        if status != 0:
            return None
        if format == "npy":
            array = numpy.load(target)
        else:
            with pytest.importorskip("h5py").File(target) as file:
                array = file["data"][:]
        return int(array[0, 0]) if (array == array[0, 0]).all() else "a mixture"

    with exchanging(folder):
        rounds(folder, copy)


def test_manifests_and_sums_are_those_of_one_of_the_two(folder):
    sizes = {}
    for name, value in (("a", 1), ("b", 2)):
        sizes[tuple(path.stat().st_size for path in sorted((folder / name).iterdir()))] = value

    def describe(i):
        status, _ = run("info", folder / "a", "--manifest", folder / f"{i}.json")
        if status != 0:
            return None
        files = json.loads((folder / f"{i}.json").read_text())["files"]
        return sizes.get(tuple(file["size"] for file in files), "a mixture")

    def sum_up(i):
        status, _ = run("verify", folder / "a", "--write", folder / f"sums_{i}.json")
        if status != 0:
            return None
        files = json.loads((folder / f"sums_{i}.json").read_text())["files"]
        return sizes.get(tuple(file["size"] for file in files), "a mixture")

    with exchanging(folder):
        rounds(folder, describe)
        rounds(folder, sum_up)


def test_comparisons_are_with_one_of_the_two(folder):
    numpy.save(
        folder / "ones.npy", numpy.full((sum(2 + (i + 1) % 3 for i in range(FILES)), 5), 1, "i4")
    )

    def compare(_):
        status, report = run("compare", folder / "a", folder / "ones.npy")
        if status == 1:
            return None
        if report["equal"]:
            return 1
        return 2 if report["index"] in (None, [0, 0]) else "a mixture"

    with exchanging(folder):
        rounds(folder, compare)


def test_a_folder_that_other_programs_write_to_is_read(folder):
    """Other names come and go in it all the time; its own files stay."""
    with replacing.running("touch", folder / "a"):
        for _ in range(ROUNDS):
            assert run("load", folder / "a/part_*.npy")[0] == 0


def test_a_pattern_over_many_folders_sees_one_of_two_parents(folder):
    """More folders than are held open: all are reached from the one above them."""
    hashes = {}
    for name, value in (("c", 1), ("d", 2)):
        for i in range(40):
            (folder / name / f"run_{i:02}").mkdir(parents=True)
            numpy.save(folder / name / f"run_{i:02}/x.npy", numpy.full((2, 5), value, "i4"))
        hashes[run("load", folder / name / "run_*/x.npy", "--hash")[1]["hash"]] = value

    def load(_):
        status, report = run("load", folder / "c/run_*/x.npy", "--hash")
        return hashes.get(report["hash"], "a mixture") if status == 0 else None

    with replacing.running("exchange", folder / "c", folder / "d", 0.0005):
        rounds(folder, load)


def test_few_descriptors_are_left_to_the_files(folder):
    for i in range(40):
        (folder / f"run_{i:02}").mkdir()
        numpy.save(folder / f"run_{i:02}/x.npy", numpy.full((2, 5), i, "i4"))
    command = ["sh", "-c", f'ulimit -n 16 && exec "{BIN}" load "$0" --json', folder / "run_*/x.npy"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout


def test_what_is_wrong_in_a_folder_that_others_write_to_is_said(folder):
    """A failure that comes twice is none of the change."""
    (folder / "a/part_07.npy").unlink()
    with replacing.running("touch", folder / "a"):
        for _ in range(ROUNDS):
            done = subprocess.run(
                [BIN, "load", folder / "a/part_*.npy", "--json"], capture_output=True, text=True
            )
            assert json.loads(done.stdout)["error"]["status"] == "incomplete"


def test_a_side_file_that_comes_with_another_raw_file_counts(folder):
    """The old file is little-endian and stands alone; the new one is big-endian,
    and its side file says so."""
    for name, order in (("c", "<"), ("d", ">")):
        (folder / name).mkdir()
        numpy.arange(1000, dtype=f"{order}i4").tofile(folder / name / "x.bin")
    (folder / "d/shard_meta.json").write_text('{"dtype": ">i4", "row_shape": [5]}')
    expected = run(
        "load",
        folder / "c/x.bin",
        "--format",
        "raw",
        "--dtype",
        "<i4",
        "--row-shape",
        "5",
        "--hash",
    )[1]["hash"]
    with replacing.running("exchange", folder / "c", folder / "d", 0.0003):
        for _ in range(ROUNDS):
            command = [
                BIN,
                "load",
                folder / "c/x.bin",
                "--format",
                "raw",
                "--dtype",
                "<i4",
                "--row-shape",
                "5",
                "--hash",
                "--json",
            ]
            report = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
            assert report.get("hash") == expected or report["error"]["status"] in (
                "changed",
                "mismatch",
                "invalid_argument",
            )
