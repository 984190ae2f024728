# A manifest stands for its files: the same array without opening them, wherever both are moved
# together, and refused when one changed.
#
# SPDX-License-Identifier: Apache-2.0
#
# Expected values come from numpy; the text itself is read by Python's json.
import json
import os
import shutil

import numpy
import pytest

import generate_arrays as gen
import property_runner
from files import check_equal, load_all, save_shards
from probe import check_error

FULL = numpy.arange(60, dtype="i4").reshape(15, 4) * 1000003


def write_manifest(probe, folder, path, name="m.json", **options):
    probe.call("open", path=str(path), **options)
    text = probe.call("to_json", folder=str(folder))["text"]
    (folder / name).write_text(text)
    return folder / name


def change(path, **fields):
    """Rewrites members of the manifest, as somebody with an editor would."""
    manifest = json.loads(path.read_text())
    manifest.update(fields)
    path.write_text(json.dumps(manifest, indent=3))


def test_the_text_is_the_documented_one(probe, tmp_path):
    paths = save_shards(tmp_path / "s", [FULL[:7], numpy.asfortranarray(FULL[7:].astype(">i4"))])
    path = write_manifest(probe, tmp_path, tmp_path / "s")
    assert path.read_text().startswith('{"tegula_manifest": 1')
    files = [
        {"path": "s/" + p.name, "size": p.stat().st_size, "mtime_ns": p.stat().st_mtime_ns}
        for p in paths
    ]
    offsets = [p.stat().st_size - n * 16 for p, n in zip(paths, (7, 8))]
    assert json.loads(path.read_text()) == {
        "tegula_manifest": 1,
        "format": "npy",
        "name": "data",
        "dtype": "<i4",
        "shape": [15, 4],
        "files": files,
        "parts": [
            {
                "file": 0,
                "offset": offsets[0],
                "lo": [0, 0],
                "hi": [7, 4],
                "strides": [16, 4],
                "order": "<",
            },
            {
                "file": 1,
                "offset": offsets[1],
                "lo": [7, 0],
                "hi": [15, 4],
                "strides": [4, 32],
                "order": ">",
            },
        ],
    }
    # absolute
    assert (
        probe.call("to_json")["text"].count('"path": "%s/' % os.path.realpath(tmp_path / "s")) == 2
    )


def random_shards(rng, folder):
    """npy or raw shards of random dtype, shape and order; gives what opens them,
    the options and the expected array."""
    dtype = numpy.dtype(rng.choice(["<f4", ">f8", "|u1", ">c8", "<i2", "|S3", "<U2", "<M8[s]"]))
    row = tuple(int(n) for n in rng.integers(1, 5, int(rng.integers(0, 3))))
    lengths = [int(n) for n in rng.integers(0, 9, int(rng.integers(1, 6)))]
    full = gen.random_array(rng, (sum(lengths), *row), dtype)
    ends = numpy.cumsum(lengths)
    pieces = [full[end - n : end] for n, end in zip(lengths, ends)]
    order = "F" if rng.integers(2) else "C"
    if rng.integers(2):
        save_shards(folder, [numpy.asarray(piece, order=order) for piece in pieces])
        return full, {}
    folder.mkdir()
    gap = int(rng.integers(1, 9)) if order == "C" and rng.integers(2) else 0
    for number, piece in enumerate(pieces):
        # an element alone loses its dtype
        rows = (
            [piece[i : i + 1].tobytes() for i in range(len(piece))]
            if gap
            else [piece.tobytes(order)]
        )
        (folder / ("p%d" % number)).write_bytes(b"head" + (b"\xee" * gap).join(rows))
    return full, {
        "format": "raw",
        "dtype": dtype.str,
        "row_shape": list(row),
        "offset": 4,
        "row_gap": gap,
        "order": order,
    }


@pytest.mark.parametrize("group", range(property_runner.GROUPS))
def test_random_shards_load_the_same(shared_probe, group):
    def case(rng, folder):
        shared_probe.batch([{"do": "close"}, {"do": "context", "threads": int(rng.integers(1, 5))}])
        full, options = random_shards(rng, folder / "s")
        place = folder / ["", "s/_", "other", "a/b"][rng.integers(4)]
        place.mkdir(parents=True, exist_ok=True)
        path = write_manifest(shared_probe, place, folder / "s", **options)
        shutil.move(folder, folder.with_name("moved"))
        moved = folder.with_name("moved")
        path = moved / path.relative_to(folder)
        tiles = int(rng.integers(1, 7))
        got, info, _ = load_all(shared_probe, moved, path, tiles=tiles)
        check_equal(got, full)
        assert info["statistics"]["opens"] == 1, "the manifest alone"
        again = shared_probe.call("to_json", folder=str(path.parent))["text"]
        assert again == path.read_text()
        shutil.move(moved, folder)

    property_runner.run(40, group, 0.05, case)


def test_nothing_is_opened_until_it_is_read(probe, tmp_path):
    paths = save_shards(tmp_path / "s", [FULL[:5], FULL[5:9], FULL[9:]])
    path = write_manifest(probe, tmp_path, tmp_path / "s")
    paths[2].unlink()
    statistics = probe.call("open", path=str(path))["statistics"]
    assert (statistics["opens"], statistics["stats"]) == (1, 1)
    listed = probe.call("files", count=3)["files"]
    assert [file["rows"] for file in listed] == [[0, 5], [5, 9], [9, 15]]
    answer = probe.batch(
        [
            {
                "do": "tiling",
                "kind": "custom",
                "shape": [15, 4],
                "boxes": [[[0, 9], [0, 4]], [[9, 15], [0, 4]]],
            },
            {"do": "array", "dtype": "<i4"},
        ]
    )
    assert answer[0]["count"] == 2
    error = check_error(probe.refused("load"), "not_found", ["shard_0002.npy"], path=paths[2])
    assert "manifest" in error["hint"]


@pytest.mark.parametrize("what", ["longer", "shorter", "touched", "replaced"])
def test_a_file_that_changed_is_refused(probe, tmp_path, what):
    paths = save_shards(tmp_path / "s", [FULL[:5], FULL[5:9], FULL[9:]])
    path = write_manifest(probe, tmp_path, tmp_path / "s")
    stat = paths[1].stat()
    if what == "longer":
        numpy.save(paths[1], FULL[5:10])
    elif what == "shorter":
        os.truncate(paths[1], stat.st_size - 16)
    elif what == "touched":
        os.utime(paths[1], ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    else:
        numpy.save(tmp_path / "other.npy", FULL[4:8])
        os.rename(tmp_path / "other.npy", paths[1])
    probe.call("open", path=str(path))
    probe.batch(
        [
            {"do": "tiling", "kind": "even", "shape": [15, 4], "tiles": 2},
            {"do": "array", "dtype": "<i4"},
        ]
    )
    for _ in range(2):
        error = check_error(probe.refused("load"), "changed", ["shard_0001.npy"], path=paths[1])
        assert "--manifest" in error["hint"]
    path = write_manifest(probe, tmp_path, tmp_path / "s") if what != "shorter" else None
    if path:
        load_all(probe, tmp_path, path)


def test_a_copy_that_keeps_its_times_is_the_same_file(probe, tmp_path):
    (tmp_path / "a").mkdir()
    save_shards(tmp_path / "a" / "s", [FULL[:5], FULL[5:]])
    write_manifest(probe, tmp_path / "a", tmp_path / "a" / "s")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    shutil.rmtree(tmp_path / "a")
    check_equal(load_all(probe, tmp_path, tmp_path / "b" / "m.json")[0], FULL)


def test_manifests_join_with_each_other_and_with_files(probe, tmp_path):
    first = save_shards(tmp_path / "s", [FULL[:3], FULL[3:6]])
    save_shards(tmp_path / "t", [FULL[6:9], FULL[9:12]])
    numpy.save(tmp_path / "last.npy", FULL[12:])
    one = write_manifest(probe, tmp_path, tmp_path / "s", "one.json")
    two = write_manifest(probe, tmp_path, tmp_path / "t", "two.json")
    got, info, _ = load_all(probe, tmp_path, [one, two, tmp_path / "last.npy"], tiles=4)
    check_equal(got, FULL)
    assert info["files"] == 5
    got, _, _ = load_all(probe, tmp_path, [tmp_path / "last.npy", two])
    check_equal(got, FULL[[12, 13, 14, 6, 7, 8, 9, 10, 11]])
    probe.call("open", paths=[str(one), str(two)], expect_files=4, expect_rows=12)
    check_error(probe.refused("open", path=str(one), expect_files=1), "mismatch", [1, 2])
    text = probe.call("to_json", folder=str(tmp_path))["text"]
    (tmp_path / "all.json").write_text(text)
    check_equal(load_all(probe, tmp_path, tmp_path / "all.json")[0], FULL[:12])
    os.utime(first[1])
    probe.call("open", paths=[str(one), str(tmp_path / "last.npy")])
    probe.batch(
        [
            {"do": "tiling", "kind": "even", "shape": [9, 4], "tiles": 1},
            {"do": "array", "dtype": "<i4"},
        ]
    )
    check_error(probe.refused("load"), "changed", ["shard_0001.npy"])
    numpy.save(tmp_path / "wide.npy", numpy.zeros((2, 5), "i4"))
    check_error(
        probe.refused("open", paths=[str(one), str(tmp_path / "wide.npy")]),
        "mismatch",
        ["wide.npy", "(5,)", "(4,)"],
    )


def test_a_manifest_by_hand_may_speak_of_several_parts_of_one_file(probe, tmp_path):
    """Rows of two arrays in one big file, in another order, with a header in between;
    and white space in front."""
    (tmp_path / "big").write_bytes(
        b"HEAD" + FULL[5:].tobytes() + b"xyz" + FULL[:5].astype(">i4").tobytes("F")
    )
    stat = (tmp_path / "big").stat()
    manifest = {
        "tegula_manifest": 1,
        "format": "raw",
        "name": "data",
        "dtype": "<i4",
        "shape": [15, 4],
        "files": [{"path": "big", "size": stat.st_size, "mtime_ns": stat.st_mtime_ns}],
        "parts": [
            {
                "file": 0,
                "offset": 4 + 160 + 3,
                "lo": [0, 0],
                "hi": [5, 4],
                "strides": [4, 20],
                "order": ">",
            },
            {"file": 0, "offset": 4, "lo": [5, 0], "hi": [15, 4], "strides": [16, 4], "order": "<"},
        ],
        "_made": "by hand",
    }
    (tmp_path / "m.json").write_text("\n \t" + json.dumps(manifest, indent=4))
    for tiles in (1, 4):
        got, info, _ = load_all(probe, tmp_path, tmp_path / "m.json", tiles=tiles)
        check_equal(got, FULL)
        assert info["files"] == 1 and info["chunks"] == 2
    assert probe.call("files", count=1)["files"][0]["rows"] == [0, 15]


def test_options_are_checked_against_it(probe, tmp_path):
    save_shards(tmp_path / "s", [FULL])
    path = write_manifest(probe, tmp_path, tmp_path / "s")
    probe.call(
        "open", path=str(path), dtype="i4", dataset="data", format="manifest", expect_rows=15
    )
    check_error(
        probe.refused("open", path=str(path), dtype="f4"), "mismatch", ["m.json", "<i4", "<f4"]
    )
    check_error(
        probe.refused("open", path=str(path), dataset="other"), "not_found", ["other", "m.json"]
    )
    check_error(
        probe.refused("open", path=str(path), dtype="i4", row_shape=[4]),
        "invalid_argument",
        ["m.json"],
    )
    check_error(probe.refused("open", path=str(path), format="npy"), "corrupt", ["m.json"])
    # its bytes, when the user says so
    got, _, _ = load_all(probe, tmp_path, path, format="raw", dtype="u1")
    assert got.tobytes() == path.read_bytes()
    probe.batch(
        [
            {"do": "tiling", "kind": "even", "shape": [3], "tiles": 1},
            {"do": "array", "dtype": "<i4"},
        ]
    )
    check_error(
        probe.refused("save", path=str(tmp_path / "x"), format="manifest"),
        "unsupported",
        ["manifest"],
    )


def test_tampered_manifests_are_refused(probe, tmp_path):
    paths = save_shards(tmp_path / "s", [FULL[:7], FULL[7:]])
    path = write_manifest(probe, tmp_path, tmp_path / "s")
    good = path.read_text()
    manifest = json.loads(good)
    first, second = manifest["parts"]
    rows = [
        ({"parts": [first]}, "corrupt", ["m.json", 7, 15]),
        ({"parts": [second, first]}, "corrupt", ["parts[0]"]),
        (
            {"parts": [first, {**second, "offset": second["offset"] + 1}]},
            "short_file",
            ["shard_0001.npy"],
        ),
        ({"parts": [first, {**second, "strides": [0, 4]}]}, "corrupt", ["parts[1].strides"]),
        ({"files": manifest["files"][:1]}, "corrupt", ["parts[1].file"]),
        ({"files": []}, "corrupt", ["files"]),
        ({"dtype": "<i8"}, "corrupt", ["parts[0].strides"]),
        ({"tegula_manifest": 7}, "unsupported", ["version 7"]),
        ({"shape": [2**62, 2**62]}, "corrupt", ["shape"]),
        ({"chunks": 3}, "corrupt", ["chunks"]),
    ]
    for fields, status, names in rows:
        path.write_text(good)
        change(path, **fields)
        check_error(probe.refused("open", path=str(path)), status, names)
    path.write_text(good[:-10])
    check_error(probe.refused("open", path=str(path)), "corrupt", ["m.json", "JSON"])
    path.write_text(good)
    change(path, files=[{**file, "size": 2**62} for file in manifest["files"]])
    probe.call("open", path=str(path))
    probe.batch(
        [
            {"do": "tiling", "kind": "even", "shape": [15, 4], "tiles": 1},
            {"do": "array", "dtype": "<i4"},
        ]
    )
    check_error(
        probe.refused("load"), "changed", ["shard_0000.npy", 2**62, paths[0].stat().st_size]
    )


def test_names_with_any_bytes(probe, tmp_path):
    names = [
        "sp ace_0.npy",
        'quo"te\\_1.npy',
        "new\nline_0.npy",
        "\u00e4\u4e2d_0.npy",
        "caf\udce9_0.npy",
    ]
    for name in names:
        folder = tmp_path / "s"
        folder.mkdir()
        numpy.save(folder / name, FULL)
        path = write_manifest(probe, tmp_path, folder)
        got, _, _ = load_all(probe, tmp_path, path)
        check_equal(got, FULL)
        files = json.loads(path.read_text())["files"]
        assert files[0].get("path", "") == "s/" + name or bytes.fromhex(
            files[0]["path_hex"]
        ) == os.fsencode("s/" + name)
        shutil.rmtree(folder)


def test_a_folder_that_is_a_link(probe, tmp_path):
    """Names are relative to where the folder really is, because that is what ".." leads out of."""
    (tmp_path / "real" / "deep").mkdir(parents=True)
    save_shards(tmp_path / "real" / "s", [FULL])
    (tmp_path / "link").symlink_to("real/deep")
    path = write_manifest(probe, tmp_path / "link", tmp_path / "real" / "s")
    assert json.loads(path.read_text())["files"][0]["path"] == "../s/shard_0000.npy"
    check_equal(load_all(probe, tmp_path, path)[0], FULL)


def test_records_scalars_and_empty_arrays(probe, tmp_path):
    record = numpy.zeros(3, [("a", "<f4"), ("b", "<i8")])
    record["a"] = [1, 2, 3]
    for number, array in enumerate(
        [record, numpy.float64(3.5), numpy.zeros((0, 4), "i2"), numpy.zeros((3, 0), ">f4")]
    ):
        numpy.save(tmp_path / ("x%d.npy" % number), array)
        path = write_manifest(probe, tmp_path, tmp_path / ("x%d.npy" % number))
        got, info, _ = load_all(probe, tmp_path, path)
        assert got.tobytes() == numpy.asarray(array).tobytes() and tuple(
            info["shape"]
        ) == numpy.shape(array)
        assert info["descr"] == ("[('a', '<f4'), ('b', '<i8')]" if number == 0 else None)
    values = bytes(range(8))
    (tmp_path / "b.raw").write_bytes(values)
    path = write_manifest(probe, tmp_path, tmp_path / "b.raw", dtype="bfloat16")
    got, info, _ = load_all(probe, tmp_path, path)
    assert info["dtype"] == "bfloat16" and got.tobytes() == values
