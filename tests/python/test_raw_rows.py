# Raw files whose rows have bytes around them. numpy's tobytes writes, numpy judges.
#
# SPDX-License-Identifier: Apache-2.0
import itertools
import json
import os
import subprocess

import numpy
import pytest
import tegula

PAIRS = list(itertools.product((0, 4, 512), repeat=2))
ARRAY = numpy.arange(50 * 33, dtype="<f4").reshape(50, 33)
BIN = os.environ.get("TEGULA_BIN", "build/bin/tegula")


def framed(array, prefix, suffix, last_suffix=True, behind=b""):
    rows = [b"\xee" * prefix + row.tobytes() + b"\xdd" * suffix for row in array]
    if not last_suffix and suffix:
        rows[-1] = rows[-1][:-suffix]
    return b"".join(rows) + behind


def same(found, expected):
    return found.dtype == expected.dtype and numpy.array_equal(found, expected)


@pytest.mark.parametrize("prefix, suffix", PAIRS)
@pytest.mark.parametrize("last", (True, False))
def test_every_pair_of_prefix_and_suffix_loads(tmp_path, prefix, suffix, last):
    path = tmp_path / "x.bin"
    path.write_bytes(b"head" + framed(ARRAY, prefix, suffix, last))
    around = {"dtype": "<f4", "row_shape": (33,), "offset": 4}
    loaded = tegula.load(path, **around, row_prefix=prefix, row_suffix=suffix)
    assert same(numpy.asarray(loaded), ARRAY)
    said = {"raw.row_prefix": prefix, "raw.row_suffix": str(suffix)}
    ds = tegula.open(path, **around, settings=said)
    assert same(ds[7:9, ::3], ARRAY[7:9, ::3]) and same(ds[-1], ARRAY[-1])


def test_a_file_that_does_not_fit_is_refused(tmp_path):
    path = tmp_path / "x.bin"
    around = {"dtype": "<f4", "row_shape": (33,), "row_prefix": 4, "row_suffix": 8}
    for cut in (1, 7, 9, 8 + 33 * 4):
        path.write_bytes(framed(ARRAY, 4, 8)[:-cut])
        with pytest.raises(tegula.CorruptError):
            tegula.open(path, **around)
    path.write_bytes(framed(ARRAY, 4, 8) + b"x")
    with pytest.raises(tegula.CorruptError, match="9 bytes too many"):
        tegula.open(path, **around)


def test_trailing_bytes_are_said_and_never_guessed(tmp_path):
    path = tmp_path / "x.bin"
    path.write_bytes(ARRAY.tobytes() + bytes(2880))
    how = {"dtype": "<f4", "row_shape": (33,)}
    for bad in (2879, 2881, 2880 + 132 + 1):
        with pytest.raises(tegula.Error):
            tegula.open(path, **how, trailing_bytes=bad)
    assert same(numpy.asarray(tegula.load(path, **how, trailing_bytes=2880)), ARRAY)
    with pytest.raises((tegula.Error, ValueError), match="does not follow"):
        tegula.open(path, **how, trailing_bytes="any")
    loaded = tegula.load(path, dtype="<f4", shape=(50, 33), trailing_bytes="any")
    assert same(numpy.asarray(loaded), ARRAY)
    with pytest.raises(tegula.Error, match="too short"):
        tegula.open(path, dtype="<f4", shape=(5000, 33), trailing_bytes="any")


def test_settings_that_make_no_sense_are_named(tmp_path):
    path = tmp_path / "x.bin"
    path.write_bytes(framed(ARRAY, 4, 4))
    how = {"dtype": "<f4", "row_shape": (33,)}
    for settings, words in (
        ({"raw.row_prefx": 4}, ("raw.row_prefx", "raw.row_prefix")),
        ({"raw.row_prefix": "x"}, ("raw.row_prefix", "whole number", '"x"')),
        ({"raw.row_prefix": -1}, ("raw.row_prefix", "-1")),
        ({"raw.row_prefix": 2**64}, ("raw.row_prefix",)),
        ({"raw.trailing_bytes": "some"}, ("any", "some")),
    ):
        with pytest.raises((tegula.Error, ValueError)) as caught:
            tegula.open(path, **how, settings=settings)
        assert all(word in f"{caught.value} {caught.value.hint}" for word in words)
    with pytest.raises((tegula.Error, ValueError), match="twice"):
        tegula.open(path, **how, row_prefix=4, settings={"raw.row_prefix": 8})
    numpy.save(tmp_path / "x.npy", ARRAY)
    with pytest.raises((tegula.Error, ValueError), match="is for raw files"):
        tegula.open(tmp_path / "x.npy", row_prefix=4)
    with pytest.raises(TypeError, match="mapping"):
        tegula.open(path, **how, settings=[1])
    with pytest.raises((tegula.Error, ValueError), match="not for saving"):
        tegula.save(ARRAY, tmp_path / "y.raw", settings={"raw.row_prefix": 4})


def test_shards_and_a_side_file_know_them(tmp_path):
    for i, part in enumerate(numpy.split(ARRAY, [3, 20])):
        (tmp_path / f"part_{i}.bin").write_bytes(framed(part, 4, 8, i != 1, bytes(5)))
    meta = {"dtype": "<f4", "row_shape": [33], "row_prefix": 4, "row_suffix": 8}
    side = tmp_path / "shard_meta.json"
    side.write_text(json.dumps({**meta, "trailing_bytes": 5}))
    assert same(numpy.asarray(tegula.load(tmp_path, tiles=3)), ARRAY)
    with pytest.raises(tegula.MismatchError, match="row_prefix"):
        tegula.open(tmp_path, row_prefix=8)
    for wrong in ("some", 5.0, -1, None):
        side.write_text(json.dumps({**meta, "trailing_bytes": wrong}))
        with pytest.raises(tegula.CorruptError, match="trailing_bytes"):
            tegula.open(tmp_path)


def test_the_shell_takes_flags_and_settings(tmp_path):
    path, target = tmp_path / "x.bin", tmp_path / "x.npy"
    path.write_bytes(framed(ARRAY, 4, 4, behind=b"end"))
    flags = ["--row-prefix", "4", "--row-suffix=4", "--trailing-bytes", "3"]
    sets = ["--set", "raw.row_prefix=4", "--set=raw.row_suffix=4", "--set", "raw.trailing_bytes=3"]
    for said in (flags, sets):
        run = [BIN, "copy", path, target, "--dtype", "<f4", "--row-shape", "33", "--overwrite"]
        subprocess.run([*run, *said], check=True, capture_output=True)
        assert same(numpy.load(target), ARRAY)
    for said, words in (
        (["--set", "raw.row_prefix"], "KEY=VALUE"),
        (["--set", "raw.nothing=1"], "raw.trailing_bytes"),
        (["--row-prefix", "many"], "whole number"),
    ):
        run = [BIN, "info", path, "--dtype", "<f4", "--row-shape", "33", *said]
        failed = subprocess.run(run, capture_output=True, text=True)
        assert failed.returncode in (1, 2) and words in failed.stderr
