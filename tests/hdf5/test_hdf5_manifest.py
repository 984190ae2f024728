# HDF5 datasets through a manifest as JSON: what is written is read back as h5py reads the file,
# what is damaged is refused, and what only libhdf5 can read is refused when it is written.
#
# SPDX-License-Identifier: Apache-2.0
import json
import os
import subprocess
import zlib

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes these files")

import hdf5_cases  # noqa: E402
import hdf5_files  # noqa: E402
from probe import check_error  # noqa: E402
from reference_hash import content_hash  # noqa: E402


def tegula(*arguments):
    return subprocess.run(
        [os.environ["TEGULA_BIN"], *map(str, arguments)], capture_output=True, text=True, timeout=60
    )


def halves(along):
    """A virtual dataset whose parts follow each other along that axis."""
    layout = h5py.VirtualLayout((8, 8), "<i4")
    for k in range(2):
        to = (
            (slice(4 * k, 4 * k + 4), slice(None))
            if along == 0
            else (slice(None), slice(4 * k, 4 * k + 4))
        )
        source = h5py.VirtualSource(".", "group/square", shape=(8, 8), dtype="<i4")
        layout[to] = source[to]
    return layout


def write(path):
    with h5py.File(path, "w", userblock_size=512) as file:
        file["group/square"] = numpy.arange(64, dtype="<i4").reshape(8, 8)
        file["big"] = numpy.arange(20, dtype=">f8").reshape(4, 5)
        file["scalar"] = 2.5
        file["bool"] = numpy.array([True, False, True])
        file.create_dataset("zeros", (0, 3), "<f4")
        file.create_virtual_dataset("rows", halves(0))
        file.create_virtual_dataset("columns", halves(1))
        file.create_dataset("chunked", data=numpy.arange(6), chunks=(2,))


@pytest.mark.parametrize(
    "name", ["group/square", "big", "scalar", "bool", "zeros", "rows", "columns", "chunked"]
)
def test_what_is_written_is_read_back(tmp_path, name):
    write(tmp_path / "a.h5")
    made = tegula("info", tmp_path / "a.h5", "--dataset", name, "--manifest", tmp_path / "a.json")
    assert made.returncode == 0, made.stderr
    assert json.loads((tmp_path / "a.json").read_text())["name"] == "/" + name
    with h5py.File(tmp_path / "a.h5") as file:
        data = file[name][()]
    want = content_hash(numpy.asarray(data).astype(data.dtype.newbyteorder("=")))
    for options in ([], ["--dataset", name], ["--dataset", "/" + name]):
        loaded = tegula("load", tmp_path / "a.json", "--hash", "--json", *options)
        assert loaded.returncode == 0, loaded.stderr
        assert json.loads(loaded.stdout)["hash"] == want
    other = tegula("load", tmp_path / "a.json", "--dataset", "other")
    assert other.returncode == 1 and 'say "/%s"' % name in other.stderr


ONLY_LIBHDF5 = {
    ("compact", "compact"): "is compact: its data lies in its header",
    ("filters", "scaleoffset"): "the filter scaleoffset",
}


def write_manifest(probe, path, name, to):
    """The manifest of a dataset as a file; gives its members."""
    probe.call("open", path=str(path), dataset=name)
    text = probe.call("to_json", folder=str(to.parent))["text"]
    to.write_text(text)
    return json.loads(text)


@pytest.mark.parametrize("version", ["earliest", "latest"])
@pytest.mark.parametrize("case", hdf5_cases.CASES)
def test_every_kind_of_dataset_through_its_manifest_equals_h5py(probe, tmp_path, case, version):
    if case == "plugin_filters":
        pytest.importorskip(
            "hdf5plugin", reason="hdf5plugin is not installed: it brings the filters"
        )
    rng = numpy.random.default_rng(zlib.crc32((case + version).encode()))
    path, text = tmp_path / "a.h5", tmp_path / "a.json"
    with h5py.File(path, "w", libver=hdf5_cases.VERSIONS[version]) as file:
        datasets = hdf5_cases.CASES[case](file, rng)
    with h5py.File(path) as file:
        for name in [name for name, status in datasets.items() if status is None]:
            if name.startswith("blosc2") and hdf5_files.without_blosc2(probe, path, name):
                continue
            if (case, name) in ONLY_LIBHDF5:
                probe.call("open", path=str(path), dataset=name)
                check_error(
                    probe.refused("to_json"),
                    "unsupported",
                    ["a.h5", "/" + name, ONLY_LIBHDF5[case, name]],
                )
                continue
            write_manifest(probe, path, name, text)
            hdf5_files.compare_opened(
                probe, probe.call("open", path=str(text)), path, name, file[name], rng
            )


def write_parts(folder):
    """A virtual dataset of chunked, dense, absent and lost pieces, and one of external files;
    gives what they hold when what is lost is filled."""
    rng = numpy.random.default_rng(3)
    data = rng.integers(-1000, 1000, (12, 10, 6)).astype(">i4")
    with h5py.File(folder / "c.h5", "w") as file:
        file.create_dataset("x", data=data, chunks=(5, 4, 6), compression="gzip", shuffle=True)
        file["d"] = data[0]
    with h5py.File(folder / "gone.h5", "w") as file:
        file["x"] = data
    want = numpy.full((12, 20, 6), -7, "i4")
    want[1:12, 2:9], want[0, :10] = data[:11, 3:10], data[0]
    hdf5_files.virtual(
        folder / "v.h5",
        "v",
        want.shape,
        ">i4",
        [
            (numpy.s_[1:12, 2:9], "c.h5", "x", data.shape, numpy.s_[:11, 3:10]),
            (numpy.s_[0, :10], "c.h5", "d", data.shape[1:], None),
            (numpy.s_[2:5, 12:15, 1:3], "gone.h5", "x", data.shape, numpy.s_[:3, :3, :2]),
        ],
        fill=-7,
    )
    (folder / "gone.h5").unlink()
    (folder / "e0").write_bytes(b"ab" + data[:2].tobytes())
    segments = [("e0", 2, 2 * 240), ("e1", 0, 240), ("e0", 2, 240)]
    hdf5_files.low_level(folder / "v.h5", "e", ">i4", (4, 10, 6), hdf5_files.external(*segments))
    outside = numpy.concatenate([data[:2], numpy.zeros((1, 10, 6), "i4"), data[:1]]).astype("i4")
    return {"v": want, "e": outside}


@pytest.mark.parametrize("name", ["v", "e"])
def test_parts_of_every_kind_come_back(probe, tmp_path, name):
    want = write_parts(tmp_path)[name]
    parts = write_manifest(probe, tmp_path / "v.h5", name, tmp_path / "m.json")["parts"]
    kinds = {next(key for key in ("file", "grid", "lost", "fill") if key in part) for part in parts}
    assert kinds == ({"file", "grid", "lost", "fill"} if name == "v" else {"file", "lost"})
    got, statistics = hdf5_files.load(probe, tmp_path, tmp_path / "m.json", missing="fill")
    assert got.tobytes() == want.tobytes() and statistics["missing"] > 0
    direct, told = hdf5_files.load(probe, tmp_path, tmp_path / "v.h5", name, missing="fill")
    assert direct.tobytes() == want.tobytes() and told["missing"] == statistics["missing"]
    first = probe.call("to_json", folder=str(tmp_path))["text"]
    probe.call("open", path=str(tmp_path / "m.json"))
    assert probe.call("to_json", folder=str(tmp_path))["text"] == first


@pytest.mark.parametrize("name", ["v", "e"])
def test_a_lost_part_says_why_with_the_errno(tmp_path, name):
    write_parts(tmp_path)
    assert (
        tegula(
            "info", tmp_path / "v.h5", "--dataset", name, "--manifest", tmp_path / "m.json"
        ).returncode
        == 0
    )
    errors = []
    for arguments in ([tmp_path / "v.h5", "--dataset", name], [tmp_path / "m.json"]):
        loaded = tegula("load", *arguments, "--json")
        assert loaded.returncode == 1
        errors.append(json.loads(loaded.stdout)["error"])
    assert errors[0] == errors[1]
    assert (
        errors[0]["errno"] == 2
        and errors[0]["status"] == "not_found"
        and ("gone.h5" if name == "v" else "e1") in errors[0]["message"]
    )


def test_an_hdf5_file_that_changed_is_refused_through_its_manifest(probe, tmp_path):
    write(tmp_path / "a.h5")
    write_manifest(probe, tmp_path / "a.h5", "chunked", tmp_path / "a.json")
    assert hdf5_files.load(probe, tmp_path, tmp_path / "a.json")[0].tolist() == list(range(6))
    stat = (tmp_path / "a.h5").stat()
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["chunked"][3] = 99
    os.utime(tmp_path / "a.h5", ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    hdf5_files.load_refused(probe, tmp_path / "a.json", "/chunked", "changed", ["a.h5"])


def test_info_verify_and_compare_see_the_same_through_a_manifest(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset(
            "x",
            data=numpy.arange(90.0).reshape(9, 10),
            chunks=(4, 4),
            compression="gzip",
            compression_opts=3,
            shuffle=True,
        )
    assert tegula("info", tmp_path / "a.h5", "--manifest", tmp_path / "a.json").returncode == 0
    told = [
        json.loads(tegula("info", tmp_path / path, "--dataset", "/x", "--chunks", "--json").stdout)[
            "datasets"
        ]
        for path in ("a.h5", "a.json")
    ]
    assert (
        told[0] == told[1]
        and told[0][0]["codecs"] == ["shuffle", "deflate:3"]
        and len(told[0][0]["chunk_list"]) == 9
    )
    assert tegula("compare", tmp_path / "a.h5", tmp_path / "a.json").returncode == 0
    assert tegula("verify", tmp_path / "a.json").returncode == 0


@pytest.mark.parametrize("case", ["filters", "plugin_filters"])
def test_codecs_have_the_same_text_everywhere(tmp_path, case):
    if case == "plugin_filters":
        pytest.importorskip(
            "hdf5plugin", reason="hdf5plugin is not installed: it brings the filters"
        )
    with h5py.File(tmp_path / "a.h5", "w") as file:
        names = hdf5_cases.CASES[case](file, numpy.random.default_rng(1))
    listed = {
        entry["name"]: entry["codecs"]
        for entry in json.loads(tegula("info", tmp_path / "a.h5", "--json").stdout)["datasets"]
    }
    known = {
        "gzip": ["deflate:4"],
        "all": ["shuffle", "deflate:4", "fletcher32"],
        "zstd": ["zstd:3"],
        "lz4": ["lz4"],
        "bitshuffle_zstd": ["bitshuffle-zstd:3"],
        "bitshuffle": ["bitshuffle"],
        "blosc_zlib": ["blosc:zlib:5"],
        "bitshuffle_block": ["bitshuffle-lz4:64"],
        "blosc_zstd_bit": ["blosc:zstd:5:bitshuffle"],
    }
    for name in names:
        assert name not in known or listed["/" + name] == known[name], name
        made = tegula(
            "info",
            tmp_path / "a.h5",
            "--dataset",
            name,
            "--manifest",
            tmp_path / "a.json",
            "--json",
        )
        if made.returncode != 0:
            assert "scaleoffset" in made.stdout or "blosc2" in made.stdout, made.stdout
            continue
        assert json.loads(made.stdout)["datasets"][0]["codecs"] == listed["/" + name], name
        assert (
            json.loads(tegula("info", tmp_path / "a.json", "--json").stdout)["datasets"][0][
                "codecs"
            ]
            == listed["/" + name]
        ), name
        (tmp_path / "a.json").unlink()


def test_manifests_of_shards_in_chunks_join(probe, tmp_path):
    whole = numpy.arange(120, dtype="<i2").reshape(20, 6)
    for number, (lo, hi) in enumerate([(0, 7), (7, 20)]):
        with h5py.File(tmp_path / ("p%d.h5" % number), "w") as file:
            file.create_dataset(
                "x",
                data=whole[lo:hi],
                chunks=(4, 4),
                compression="gzip",
                shuffle=True,
                fletcher32=True,
            )
    probe.call("open", paths=[str(tmp_path / "p0.h5"), str(tmp_path / "p1.h5")], dataset="x")
    (tmp_path / "m.json").write_text(probe.call("to_json", folder=str(tmp_path))["text"])
    assert len(json.loads((tmp_path / "m.json").read_text())["grids"]) == 2
    assert hdf5_files.load(probe, tmp_path, tmp_path / "m.json")[0].tobytes() == whole.tobytes()


def by_hand(folder, count, stored):
    """A manifest of `count` int32 in chunks of one, backwards in a raw file;
    gives its members and the array."""
    values = numpy.arange(count, dtype="<i4") * 7919
    (folder / "data").write_bytes(values[::-1].tobytes())
    stat = (folder / "data").stat()
    coordinates = (
        [] if stored == count else [{"coordinates": list(range(0, count, count // stored))}]
    )
    slots = coordinates[0]["coordinates"] if coordinates else range(count)
    grid = {
        "file": 0,
        "chunk_bytes": 4,
        "order": "<",
        "codecs": [],
        "fill": "01000080",
        "slots": count,
        "offsets": [4 * (count - 1 - slot) for slot in slots],
        "lengths": [4] * len(slots),
    }
    for more in coordinates:
        grid.update(more)
    part = {
        "grid": 0,
        "offset": 0,
        "lo": [0],
        "hi": [count],
        "strides": [4],
        "start": [0],
        "chunk": [1],
        "slot": 0,
        "slot_strides": [1],
    }
    members = {
        "tegula_manifest": 1,
        "format": "raw",
        "name": "data",
        "dtype": "<i4",
        "shape": [count],
        "files": [{"path": "data", "size": stat.st_size, "mtime_ns": stat.st_mtime_ns}],
        "grids": [grid],
        "parts": [part],
    }
    want = numpy.full(count, -(2**31) + 1, "<i4")
    want[list(slots)] = values[list(slots)]
    return members, want


def test_a_million_chunks_make_the_round(probe, tmp_path):
    members, want = by_hand(tmp_path, 1000000, 1000000)
    (tmp_path / "m.json").write_text(json.dumps(members))
    assert hdf5_files.load(probe, tmp_path, tmp_path / "m.json")[0].tobytes() == want.tobytes()
    text = probe.call("to_json", folder=str(tmp_path))["text"]
    assert json.loads(text) == members and len(text) < 16 << 20


DAMAGE = [
    ("grids.0.file", 1, "corrupt", "grids[0].file is 1"),
    ("grids.0.chunk_bytes", 0, "corrupt", "grids[0].chunk_bytes is 0"),
    (
        "grids.0.chunk_bytes",
        3,
        "corrupt",
        "parts[0] does not fit grids[0]: its elements lie outside of a decoded chunk",
    ),
    ("grids.0.chunk_bytes", 8, "corrupt", "an unfiltered chunk has 4 bytes, expected 8"),
    ("grids.0.order", "|", "corrupt", "grids[0].order"),
    ("grids.0.codecs", [["deflate"]], "ok", ""),  # opens; its streams are none
    ("grids.0.codecs", [["gzip", 4]], "unsupported", 'codec "gzip" is not known'),
    ("grids.0.codecs", [["shuffle", 0]], "corrupt", "shuffle: an item size of 0"),
    ("grids.0.codecs", [["shuffle", 2**32]], "corrupt", "grids[0].codecs[0][1] is 4294967296"),
    ("grids.0.codecs", [["deflate"] * 6], "corrupt", "grids[0].codecs[0]"),
    ("grids.0.codecs", [["deflate"]] * 33, "corrupt", "grids[0].codecs is a list of 33"),
    ("grids.0.codecs", "deflate", "corrupt", "grids[0].codecs is the text"),
    (
        "grids.0.fill",
        "0100",
        "corrupt",
        'grids[0].fill is the text "0100", expected 8 hexadecimal digits',
    ),
    ("grids.0.fill", "0100008G", "corrupt", "grids[0].fill"),
    ("grids.0.slots", 16, "corrupt", "grids[0].coordinates[4] is 16"),
    ("grids.0.slots", 2**62, "ok", ""),
    ("grids.0.coordinates", None, "corrupt", "grids[0].coordinates is null"),
    (
        "grids.0.coordinates.2",
        4,
        "corrupt",
        "grids[0].coordinates[2] is 4, expected a slot of 5 to 19",
    ),
    ("grids.0.coordinates.4", 20, "corrupt", "grids[0].coordinates[4] is 20"),
    ("grids.0.offsets.1", -1, "corrupt", "grids[0].offsets[1] is -1"),
    ("grids.0.offsets.1", 77, "short_file", "expected 81 bytes, found 80"),
    ("grids.0.offsets.1", 2**63 - 1, "corrupt", "the place of a chunk overflows"),
    ("grids.0.offsets", [0], "corrupt", "grids[0].lengths is a list of 5, expected a list of 1"),
    ("grids.0.lengths.0", 2**32, "corrupt", "grids[0].lengths[0]"),
    (
        "grids.0.lengths.0",
        5,
        "corrupt",
        "a stored chunk has 5 bytes, more than its 4 decoded bytes can need",
    ),
    ("grids.0.masks", [0, 0, 0, 0], "corrupt", "grids[0].masks is a list of 4"),
    ("grids.0.more", 1, "corrupt", "grids[0].more is no key"),
    ("grids", [], "corrupt", "parts[0].grid is 0"),
    ("parts.0.grid", 1, "corrupt", "parts[0].grid is 1"),
    ("parts.0.start", [1], "corrupt", "parts[0] does not fit grids[0]: its slots lie outside"),
    ("parts.0.start", [2**63 - 1], "corrupt", "parts[0] does not fit grids[0]"),
    (
        "parts.0.chunk",
        [0],
        "corrupt",
        "parts[0] does not fit grids[0]: a chunk has a length below 1",
    ),
    ("parts.0.slot", 1, "corrupt", "parts[0] does not fit grids[0]: its slots lie outside"),
    (
        "parts.0.slot_strides",
        [2**62],
        "corrupt",
        "parts[0] does not fit grids[0]: its slots lie outside",
    ),
    ("parts.0.offset", 1, "corrupt", "parts[0] does not fit grids[0]: its elements lie outside"),
    ("parts.0.order", "<", "corrupt", "parts[0].order is no key"),
    ("grids.0.slots", 19, "corrupt", "parts[0] does not fit grids[0]: its slots lie outside"),
    ("parts.0.hi", [19], "corrupt", "the parts hold 19 rows, expected 20"),
    ("parts.0", {"lo": [0], "hi": [20]}, "corrupt", "expected one with file, grid, fill or lost"),
    ("parts.0", {"fill": None, "lo": [0], "hi": [20]}, "ok", ""),
    ("parts.0", {"fill": "zz", "lo": [0], "hi": [20]}, "corrupt", "parts[0].fill"),
    (
        "parts.0",
        {"lost": {"status": "ok", "message": "m", "errno": 0}, "lo": [0], "hi": [20]},
        "corrupt",
        "parts[0].lost.status",
    ),
    (
        "parts.0",
        {"lost": {"status": "io", "errno": 0}, "lo": [0], "hi": [20]},
        "corrupt",
        "parts[0].lost.message is missing",
    ),
    (
        "parts.0",
        {"lost": {"status": "io", "message": "m", "errno": -1}, "lo": [0], "hi": [20]},
        "corrupt",
        "parts[0].lost.errno",
    ),
    ("fill", "0", "corrupt", "fill is the text"),
]


@pytest.mark.parametrize("number", range(len(DAMAGE)))
def test_damaged_tables_are_refused(probe, tmp_path, number):
    way, value, status, says = DAMAGE[number]
    members, want = by_hand(tmp_path, 20, 5)
    (tmp_path / "m.json").write_text(json.dumps(members))
    assert hdf5_files.load(probe, tmp_path, tmp_path / "m.json")[0].tobytes() == want.tobytes()
    at, keys = members, [int(key) if key.isdigit() else key for key in way.split(".")]
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = value
    (tmp_path / "m.json").write_text(json.dumps(members))
    if status == "ok":
        probe.call("open", path=str(tmp_path / "m.json"))
        return
    error = check_error(probe.refused("open", path=str(tmp_path / "m.json")), status, [])
    assert says in error["message"], error


@pytest.mark.parametrize(
    "boxes, says",
    [
        ([([0, 0], [2, 2]), ([0, 2], [2, 4]), ([2, 0], [4, 4])], None),
        (
            [([0, 0], [2, 3]), ([0, 2], [2, 4]), ([2, 0], [4, 3])],
            "parts[0] and parts[1] hold the same elements",
        ),
        (
            [([0, 0], [2, 2]), ([0, 2], [2, 4]), ([2, 0], [4, 3])],
            "do not hold each element of the shape (4, 4) once",
        ),
        ([([0, 2], [2, 4]), ([0, 0], [2, 2]), ([2, 0], [4, 4])], "parts[1] begins before parts[0]"),
        ([([0, 0], [2, 5]), ([2, 0], [4, 4])], "parts[0] holds [0, 5) of axis 1"),
    ],
)
def test_boxes_must_share_the_array_out(probe, tmp_path, boxes, says):
    (tmp_path / "data").write_bytes(bytes(range(16)))
    stat = (tmp_path / "data").stat()
    parts = [
        {
            "file": 0,
            "offset": 4 * lo[0] + lo[1],
            "lo": lo,
            "hi": hi,
            "strides": [4, 1],
            "order": "|",
        }
        for lo, hi in boxes
    ]
    members = {
        "tegula_manifest": 1,
        "format": "raw",
        "name": "data",
        "dtype": "|u1",
        "shape": [4, 4],
        "files": [{"path": "data", "size": 16, "mtime_ns": stat.st_mtime_ns}],
        "parts": parts,
    }
    (tmp_path / "m.json").write_text(json.dumps(members))
    if says is None:
        assert hdf5_files.load(probe, tmp_path, tmp_path / "m.json")[0].tobytes() == bytes(
            range(16)
        )
    else:
        assert (
            says
            in check_error(probe.refused("open", path=str(tmp_path / "m.json")), "corrupt", [])[
                "message"
            ]
        )
