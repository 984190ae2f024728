# Every golden file gives what expected.json says: shape, dtype and content,
# or one of the named refusals.
#
# SPDX-License-Identifier: Apache-2.0
import hashlib
import json
import pathlib

import numpy
import pytest

import generate_arrays as gen
from probe import check_error

FOLDER = pathlib.Path(__file__).resolve().parent
EXPECTED = json.loads((FOLDER / "expected.json").read_text())
GOOD = sorted(name for name, row in EXPECTED.items() if "status" not in row)
HOSTILE = sorted(name for name, row in EXPECTED.items() if "status" in row)


@pytest.mark.parametrize("name", GOOD)
def test_good_file(probe, tmp_path, name):
    row = EXPECTED[name]
    info = probe.call("open", path=str(FOLDER / name))
    assert (info["shape"], info["dtype"]) == (row["shape"], row["dtype"])
    dump = tmp_path / "dump"
    answers = probe.batch(
        [
            {"do": "tiling", "kind": "even", "shape": row["shape"], "tiles": 1},
            {"do": "array", "dtype": row["dtype"]},
            {"do": "load"},
            {"do": "dump", "path": str(dump)},
            {"do": "hash", "of": "dataset"},
        ]
    )
    assert hashlib.sha256(dump.read_bytes()).hexdigest() == row["sha256"]
    assert answers[-1]["hash"] == row["hash"]


@pytest.mark.parametrize("name", GOOD)
def test_every_prefix_of_a_header_is_refused(probe, tmp_path, name):
    data = (FOLDER / name).read_bytes()
    path = tmp_path / "cut.npy"
    probe.call("open", path=str(FOLDER / name))
    start = probe.call("files")["files"][0]["data_offset"]
    for size in range(0, start, max(1, start // 40)):
        path.write_bytes(data[:size])
        check_error(
            probe.refused("open", path=str(path)),
            ("short_file", "corrupt", "unsupported"),
            ["cut.npy"],
            path=path,
        )


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_file(probe, name):
    error = probe.refused("open", path=str(FOLDER / name))
    check_error(error, EXPECTED[name]["status"], [name], path=FOLDER / name)


def test_hostile_file_among_good_shards(probe, tmp_path):
    """The refusal names the shard, whichever comes first."""
    for number in range(5):
        numpy.save(tmp_path / ("s%d.npy" % number), numpy.ones((2, 3), "i2"))
    (tmp_path / "s3.npy").write_bytes((FOLDER / "hostile-shape-negative.npy").read_bytes())
    check_error(
        probe.refused("open", path=str(tmp_path)), "corrupt", ["s3.npy"], path=tmp_path / "s3.npy"
    )


def test_files_are_what_the_generator_makes(tmp_path):
    """The files here are those of generate.py: nobody changed one by hand."""
    import generate

    generate.generate(tmp_path)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    here = {
        path.name: path.read_bytes()
        for path in FOLDER.iterdir()
        if path.suffix in (".npy", ".json")
    }
    assert made.keys() == here.keys()
    assert [name for name in made if made[name] != here[name]] == []


def test_headers_of_a_megabyte(probe, tmp_path):
    """A long header is read to its end; one above the stated limit is refused before it is read."""
    dtype = numpy.dtype([("field_%05d" % i, "<f4") for i in range(40000)])
    array = gen.random_array(numpy.random.default_rng(3), (2,), dtype)
    numpy.save(tmp_path / "long.npy", array)
    assert probe.call("open", path=str(tmp_path / "long.npy"))["dtype"] == "|V160000"
    text = "{'descr': '<i2', 'fortran_order': False, 'shape': (6,), }" + " " * (40 << 20)
    (tmp_path / "longer.npy").write_bytes(gen.npy_frame(text, (2, 0)) + bytes(12))
    check_error(
        probe.refused("open", path=str(tmp_path / "longer.npy")),
        ("limit_exceeded", "corrupt"),
        ["longer.npy"],
    )
