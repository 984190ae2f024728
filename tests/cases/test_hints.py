# What to do next, where a path does not lead to files: folders whose names look like patterns,
# datasets that are written behind the path of their file.
#
# SPDX-License-Identifier: Apache-2.0
import re

import h5py
import numpy
import pytest

from files import check_equal, load_all, save_shards
from probe import check_error

ARRAY = numpy.arange(12, dtype="f4").reshape(4, 3)


@pytest.mark.parametrize("name", ["run[3]", "a\\b[1]", "[[]]", "[a]*?"])
def test_a_folder_that_looks_like_a_pattern(probe, tmp_path, name):
    save_shards(tmp_path / name, [ARRAY, ARRAY])
    got, _, _ = load_all(probe, tmp_path, tmp_path / name)
    check_equal(got, numpy.concatenate([ARRAY, ARRAY]))
    error = probe.refused("open", path=str(tmp_path / name / "shard_*.npy"))
    check_error(error, "not_found", ["nothing matches the pattern"])
    folder, pattern = re.fullmatch(
        'there is a folder "(.*)": in a pattern its name is "(.*)"', error["hint"]
    ).groups()
    assert folder == str(tmp_path / name)
    got, info, _ = load_all(probe, tmp_path, pattern + "/shard_*.npy")
    assert info["shape"] == [8, 3]
    check_equal(got, numpy.concatenate([ARRAY, ARRAY]))


def test_a_pattern_without_such_a_folder(probe, tmp_path):
    for pattern in ("run[3]/x*.npy", "x*.npy", "*/x*.npy"):
        error = probe.refused("open", path=str(tmp_path / pattern))
        check_error(error, "not_found", ["nothing matches the pattern"])
        assert "names that begin with" in error["hint"]


@pytest.mark.parametrize("between", [":", "::", ""])
@pytest.mark.parametrize("dataset", ["/x", "/g/y"])
def test_a_dataset_behind_the_path(probe, tmp_path, between, dataset):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["x"] = ARRAY
        file["g/y"] = ARRAY + 1
        expected = file[dataset][...]
    error = probe.refused("open", path=str(path) + between + dataset)
    check_error(error, ("not_found", "io"))
    named = re.fullmatch('"(.*)" is a file: .*, as dataset "(.*)"', error["hint"]).groups()
    assert named == (str(path), dataset)
    got, _, _ = load_all(probe, tmp_path, named[0], dataset=named[1])
    check_equal(got, expected)


def test_a_colon_with_nothing_behind_it(probe, tmp_path):
    numpy.save(tmp_path / "x.npy", ARRAY)
    error = probe.refused("open", path=str(tmp_path / "x.npy:"))
    check_error(error, "not_found", ["no file or folder"])
    assert error["hint"] == ""


def test_a_path_that_is_not_there(probe, tmp_path):
    for path in ("nothing.h5", "nothing.h5:/x", "nothing/x", ":", "::/x"):
        error = probe.refused("open", path=str(tmp_path / path))
        check_error(error, "not_found", ["no file or folder"])
        assert error["hint"] == ""
