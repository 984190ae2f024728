# Several arrays in one save, and saves whose tiles come one by one,
# from threads and from other processes.
#
# SPDX-License-Identifier: Apache-2.0
import json
import os

import h5py
import numpy
import pytest

pytest.importorskip("hdf5plugin")

import generate_arrays as gen
from probe import check_error
from saving import attribute, check, check_file, even, grid, keep_all, left, put

DATA = numpy.cumsum(numpy.random.default_rng(3).integers(-3, 4, (24, 16)), axis=-1).astype("<i4")


def test_a_hundred_arrays(probe, tmp_path):
    rng = numpy.random.default_rng(5)
    path = tmp_path / "x.h5"
    members, arrays, orders = [], {}, {}
    for k in range(100):
        array = gen.random_array(
            rng,
            gen.random_shape(rng, 300, int(rng.integers(1, 4))),
            numpy.dtype(["<i4", "<f8", "u1", "?", "S3"][k % 5]),
        )
        name = "g%d/a%d" % (k % 7, k)
        put(probe, tmp_path, array, *gen.random_tiling(rng, list(array.shape), from_dataset=False))
        probe.call("keep")
        how = [
            {},
            {"layout": "chunked"},
            {"chunk": [2] * array.ndim, "codec": "shuffle,deflate:1"},
            {"codec": "lzf,fletcher32"},
        ][k % 4]
        members.append(
            {
                "array": k,
                "dataset": name,
                "byte_order": "<>"[k % 2],
                "attributes": [attribute("k", numpy.array(k))],
                **how,
            }
        )
        arrays[name], orders[name] = array, "<>"[k % 2]
    probe.call("save_group", path=str(path), members=members)
    with h5py.File(path) as file:
        for k, (name, array) in enumerate(arrays.items()):
            check(file[name], array, orders[name])
            assert file[name].attrs["k"] == k
    assert left(tmp_path) == ["x.h5"]


def test_the_file_of_a_hundred_arrays_is_opened_once_to_write_them(probe, tmp_path):
    keep_all(probe, tmp_path, [DATA + k for k in range(4)])
    members = [
        {
            "array": k % 4,
            "dataset": "g%d/a%d" % (k % 3, k),
            **({"fill": "07000000"} if k == 50 else {}),
        }
        for k in range(100)
    ]
    counts = probe.call("save_group", path=str(tmp_path / "x.h5"), members=members)["statistics"]
    assert counts["opens"] == 2, counts  # one makes it
    check_file(tmp_path / "x.h5", {member["dataset"]: DATA + member["array"] for member in members})
    with h5py.File(tmp_path / "x.h5") as file:  # what one dataset is told is not told to the others
        assert [file[member["dataset"]].fillvalue for member in members] == [
            7 if k == 50 else 0 for k in range(100)
        ]


def test_one_array_under_several_names(probe, tmp_path):
    keep_all(probe, tmp_path, [DATA])
    probe.call(
        "save_group",
        path=str(tmp_path / "x.h5"),
        members=[{"array": 0, "dataset": "a"}, {"array": 0, "dataset": "b", "codec": "zstd"}],
    )
    check_file(tmp_path / "x.h5", {"a": DATA, "b": DATA})


@pytest.mark.parametrize(
    "wrong, status",
    [
        ({"dataset": "/a"}, "invalid_argument"),
        ({"dataset": "a/b"}, "exists"),
        ({"dataset": "z", "layout": "virtual"}, "unsupported"),
        ({"dataset": "z", "codec": "lzma"}, "invalid_argument"),
        ({"dataset": "z", "chunk": [1]}, "invalid_argument"),
        ({"dataset": "z", "array": 99}, "invalid_argument"),
        ({"dataset": "z//y"}, "invalid_argument"),
        ({"dataset": "z", "chunk": [0, 1]}, "invalid_argument"),
        (
            {
                "dataset": "z",
                "attributes": [{"name": "n", "type": "compound", "shape": [1], "values": "00"}],
            },
            "unsupported",
        ),
    ],
)
def test_a_member_that_fails_leaves_nothing(probe, tmp_path, wrong, status):
    keep_all(probe, tmp_path, [DATA, DATA * 2])
    members = [
        {"array": 0, "dataset": "a"},
        {"array": 1, "dataset": "b", "codec": "deflate"},
        {"array": 0, **wrong},
    ]
    check_error(
        probe.refused("save_group", path=str(tmp_path / "new" / "x.h5"), members=members), status
    )
    assert left(tmp_path) == []
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["old"] = DATA
    before = (tmp_path / "x.h5").read_bytes()
    check_error(probe.refused("save_group", path=str(tmp_path / "x.h5"), members=members), status)
    assert (tmp_path / "x.h5").read_bytes() == before and left(tmp_path) == ["x.h5"]


def test_other_formats_hold_one_array(probe, tmp_path):
    keep_all(probe, tmp_path, [DATA, DATA])
    for name in ("x.npy", "x.raw"):
        check_error(
            probe.refused(
                "save_group", path=str(tmp_path / name), members=[{"array": 0}, {"array": 1}]
            ),
            "unsupported",
        )
    check_error(
        probe.refused("save_group", path=str(tmp_path / "x.h5"), members=[]), "invalid_argument"
    )
    check_error(
        probe.refused(
            "save_group",
            path=str(tmp_path / "x"),
            format="hdf5",
            shards=2,
            members=[{"array": 0, "dataset": "a"}, {"array": 1, "dataset": "b"}],
        ),
        "invalid_argument",
    )
    assert left(tmp_path) == []


# ---- tile by tile --------------------------------------------------------------------------------


def tiles(folder, array, boxes):
    """What the probe's command save_tiles takes; the values are in files of `folder`."""
    folder.mkdir(exist_ok=True)
    out = []
    for box in boxes:
        path = folder / ("v%d" % len(list(folder.iterdir())))
        path.write_bytes(gen.in_box(array, box).tobytes())
        out.append({"box": box, "values": str(path)})
    return out


def begin(probe, array, path, tiling=None, **options):
    tiling = tiling or even(array.shape, 0, 1)[0]
    probe.batch(
        [
            tiling,
            {
                "do": "save_begin",
                "dtype": gen.dtype_text(array.dtype),
                "path": str(path),
                **options,
            },
        ]
    )


LAYOUTS = {
    "contiguous": {},
    "chunked": {"chunk": [4, 8]},
    "encoded": {"chunk": [4, 8], "codec": "shuffle,deflate"},
    "virtual": {"layout": "virtual"},
    "npy": {"format": "npy"},
    "shards": {"format": "hdf5", "shards": 3, "chunk": [4, 8]},
}


def read(path):
    if path.is_dir():
        return numpy.concatenate([read(shard) for shard in sorted(path.iterdir())])
    if path.read_bytes()[:6] == b"\x93NUMPY":
        return numpy.load(path)
    with h5py.File(path) as file:
        return file["data"][()]


@pytest.mark.parametrize("turn", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_tiles_from_threads(probe, tmp_path, layout, turn):
    folder = tmp_path / "out"
    folder.mkdir()
    path = folder / "x.h5"
    tiling, _ = grid(DATA.shape, (12, 16))
    boxes = grid(DATA.shape, (8, 8))[1] if layout != "virtual" else grid(DATA.shape, (6, 8))[1]
    boxes = [boxes[i] for i in numpy.random.default_rng(1).permutation(len(boxes))]
    begin(probe, DATA, path, tiling, **LAYOUTS[layout])
    assert not path.exists()
    probe.call("save_tiles", dtype="<i4", turn=turn, tiles=tiles(tmp_path / "v", DATA, boxes))
    assert not path.exists()
    probe.call("save_commit")
    assert read(path).tobytes() == DATA.tobytes()
    hidden = [name.split("/")[-1] for name in left(folder) if name.split("/")[-1].startswith(".")]
    assert hidden == ([".tegula-companion", ".tegula-file"] if layout == "virtual" else [])


def test_chunks_stand_in_the_order_in_which_they_came(probe, tmp_path):
    boxes = grid(DATA.shape, (8, 8))[1]
    for order in (boxes, boxes[::-1]):
        path = tmp_path / ("x%d.h5" % len(left(tmp_path)))
        begin(probe, DATA, path, chunk=[8, 8], codec="deflate")
        probe.call("save_tiles", dtype="<i4", turn=True, tiles=tiles(tmp_path / "v", DATA, order))
        probe.call("save_commit")
        check_file(path, {"data": DATA})
        with h5py.File(path) as file:
            places = {
                file["data"].id.get_chunk_info(k).chunk_offset: file["data"]
                .id.get_chunk_info(k)
                .byte_offset
                for k in range(len(boxes))
            }
        found = [places[tuple(lo for lo, _ in box)] for box in order]
        assert found == sorted(found)


def test_a_tile_holds_its_chunks_whole(probe, tmp_path):
    path = tmp_path / "out" / "x.h5"
    begin(probe, DATA[:23, :15], path, chunk=[4, 8], codec="lzf")
    for box in ([[0, 3], [0, 15]], [[2, 6], [0, 8]], [[20, 22], [0, 15]], [[0, 4], [0, 14]]):
        error = probe.refused("save_tiles", dtype="<i4", tiles=tiles(tmp_path / "v", DATA, [box]))
        check_error(error, "invalid_argument", ["in part", path], path)
        assert ".tegula" not in error["message"]
    parts = [[[0, 20], [0, 8]], [[0, 20], [8, 15]], [[20, 23], [0, 15]], [[3, 3], [0, 15]]]
    probe.call("save_tiles", dtype="<i4", tiles=tiles(tmp_path / "v", DATA, parts))
    probe.call("save_commit")
    check_file(path, {"data": DATA[:23, :15]})


@pytest.mark.parametrize(
    "wrong", [[[0, 25], [0, 16]], [[-1, 4], [0, 16]], [[0, 4]], [[0, 4], [0, 17]]]
)
def test_tiles_that_are_none_of_the_array(probe, tmp_path, wrong):
    begin(probe, DATA, tmp_path / "out" / "x.h5")
    value = [{"box": wrong, "values": str(tmp_path / "value")}]
    (tmp_path / "value").write_bytes(bytes(4 * int(numpy.prod([hi - lo for lo, hi in wrong]))))
    check_error(probe.refused("save_tiles", dtype="<i4", tiles=value), "invalid_argument")
    probe.call("save_abandon")
    assert left(tmp_path) == ["value"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("some", [False, True])
def test_abandoned(probe, tmp_path, layout, some):
    begin(
        probe,
        DATA,
        tmp_path / "out" / "deep" / "x.h5",
        grid(DATA.shape, (12, 16))[0],
        **LAYOUTS[layout],
    )
    if some:
        probe.call(
            "save_tiles", dtype="<i4", tiles=tiles(tmp_path / "v", DATA, [[[0, 12], [0, 16]]])
        )
    probe.call("save_abandon")
    assert [name for name in left(tmp_path) if not name.startswith("v")] == []


@pytest.mark.parametrize("layout", LAYOUTS)
def test_committed_without_tiles(probe, tmp_path, layout):
    path = tmp_path / "x.h5"
    begin(probe, DATA, path, grid(DATA.shape, (12, 16))[0], **LAYOUTS[layout])
    probe.call("save_commit")
    got = read(path)
    assert got.shape == DATA.shape and (got == 0).all()


def test_committed_with_some_tiles_and_a_fill_value(probe, tmp_path):
    path = tmp_path / "x.h5"
    begin(
        probe,
        DATA,
        path,
        chunk=[4, 8],
        codec="shuffle,zstd",
        fill=numpy.array(-9, "<i4").tobytes().hex(),
    )
    probe.call("save_tiles", dtype="<i4", tiles=tiles(tmp_path / "v", DATA, [[[4, 12], [8, 16]]]))
    probe.call("save_commit")
    expected = numpy.full_like(DATA, -9)
    expected[4:12, 8:16] = DATA[4:12, 8:16]
    check_file(path, {"data": expected})


def test_a_chunk_that_comes_twice(probe, tmp_path):
    """Each element is to come once; what comes again replaces what came, or is refused, and
    nothing else is touched."""
    path = tmp_path / "x.h5"
    begin(probe, DATA, path, chunk=[4, 8], codec="shuffle,deflate")
    everything = tiles(tmp_path / "v", DATA, [[[0, 24], [0, 16]]])
    probe.call("save_tiles", dtype="<i4", tiles=everything)
    noise = gen.random_array(numpy.random.default_rng(1), DATA.shape, numpy.dtype("<i4"))
    again = probe.ask(
        {
            "do": "save_tiles",
            "dtype": "<i4",
            "tiles": tiles(tmp_path / "v", noise, [[[4, 8], [0, 8]]]),
        }
    )
    expected = DATA.copy()
    if "error" in again:
        check_error(again["error"], "invalid_argument", [], path)
    else:
        expected[4:8, 0:8] = noise[4:8, 0:8]
    probe.call("save_commit")
    check_file(path, {"data": expected})


@pytest.mark.parametrize("layout", ["contiguous", "virtual", "npy"])
def test_tiles_from_other_processes(probe, new_probe, tmp_path, layout):
    path = tmp_path / "out" / "x.h5"
    boxes = grid(DATA.shape, (12, 8))[1]
    begin(probe, DATA, path, grid(DATA.shape, (12, 16))[0], byte_order=">", **LAYOUTS[layout])
    token = probe.call("save_token")["token"]
    json.loads(token)
    others = [new_probe(), new_probe()]
    for other, part in zip(others, (boxes[:1], boxes[1:3])):
        other.call("context", threads=2)
        other.call("save_tiles", dtype="<i4", token=token, tiles=tiles(tmp_path / "v", DATA, part))
    probe.call("save_tiles", dtype="<i4", tiles=tiles(tmp_path / "v", DATA, boxes[3:]))
    probe.call("save_commit")
    assert read(path).astype("<i4").tobytes() == DATA.tobytes()
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    value = tiles(tmp_path / "v", DATA[::-1], boxes[:1])
    for other in (*others, probe):
        error = other.refused("save_tiles", dtype="<i4", token=token, tiles=value)
        check_error(error, "not_found", ["has ended", "not there any more"])
        assert "committed or abandoned" in error["hint"]
    begin(probe, DATA, path, grid(DATA.shape, (12, 16))[0], overwrite=True, **LAYOUTS[layout])
    token = probe.call("save_token")["token"]
    probe.call("save_abandon")
    check_error(
        others[0].refused("save_tiles", dtype="<i4", token=token, tiles=value),
        "not_found",
        ["has ended"],
    )
    assert all(file.read_bytes() == content for file, content in before.items())


@pytest.mark.parametrize("name", ["x.npy", "x.h5"])
def test_the_manifest_of_finished_files_is_no_token(probe, tmp_path, name):
    """A text that describes what is there already must not make it writable."""
    path = tmp_path / name
    begin(probe, DATA, path)
    probe.call("save_tiles", dtype="<i4", tiles=tiles(tmp_path / "v", DATA, [[[0, 24], [0, 16]]]))
    token = probe.call("save_token")["token"]
    probe.call("save_commit")
    text = json.loads(token)
    text["files"][0].update(path=str(path), size=path.stat().st_size)
    error = probe.refused(
        "save_tiles",
        dtype="<i4",
        token=json.dumps(text),
        tiles=tiles(tmp_path / "v", DATA[::-1], [[[0, 24], [0, 16]]]),
    )
    check_error(error, "invalid_argument", ["of no save", name])
    assert read(path).tobytes() == DATA.tobytes()


def test_tokens_that_are_none(probe, tmp_path):
    value = tiles(tmp_path / "v", DATA, [[[0, 24], [0, 16]]])
    begin(probe, DATA, tmp_path / "out" / "x.h5")
    token = probe.call("save_token")["token"]
    for wrong in (
        "",
        "{}",
        "[]",
        token[:-20],
        token.replace("24", "25"),
        token.replace("<i4", "<q9"),
    ):
        error = probe.refused("save_tiles", dtype="<i4", token=wrong, tiles=value)
        check_error(
            error, ("corrupt", "unsupported", "invalid_argument", "limit_exceeded", "short_file")
        )
    probe.call("save_abandon")
    begin(probe, DATA, tmp_path / "out" / "x.h5", chunk=[4, 4])
    check_error(probe.refused("save_token"), "unsupported", ["chunked"], tmp_path / "out" / "x.h5")


def test_other_saves_meanwhile(probe, tmp_path):
    """Two saves into one file: the one that commits last sees that the file
    changed, and loses nothing."""
    path = tmp_path / "x.h5"
    put(probe, tmp_path, DATA)
    probe.call("save", path=str(path), dataset="first")
    begin(probe, DATA, path, dataset="second")
    put(probe, tmp_path, DATA)
    probe.call("save", path=str(path), dataset="third")
    check_error(probe.refused("save_commit"), "changed", [path], path)
    check_file(path, {"first": DATA, "third": DATA})
    assert left(tmp_path) == ["x.h5"]


def test_a_name_that_is_taken_meanwhile(probe, tmp_path):
    path = tmp_path / "x.h5"
    begin(probe, DATA, path)
    path.write_bytes(b"somebody else's")
    check_error(probe.refused("save_commit"), "exists", [path])
    assert path.read_bytes() == b"somebody else's" and os.listdir(tmp_path) == ["x.h5"]
