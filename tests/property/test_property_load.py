# Loads of random shards, layouts, tilings and memory equal numpy's concatenation, byte by byte;
# so do hashes and boxes.
#
# SPDX-License-Identifier: Apache-2.0
import ast
import itertools

import numpy
import pytest

import generate_arrays as gen
import property_runner
from generate_arrays import array_command, context_command
from reference_hash import content_hash
from selections import check_selection


def shard_names(rng, count, suffix):
    """Numbered names that start anywhere, with or without padding."""
    width = int(rng.choice([1, 3, 6]))
    start = int(rng.integers(0, 9_000_000)) if rng.random() < 0.3 else int(rng.integers(0, 120))
    if rng.random() < 0.3:
        start = max(0, 10**width - int(rng.integers(0, count + 1)))  # the sequence grows a digit
    prefix = ["shard_", "", "run7_", "a-b.c", "x"][rng.integers(5)] if width > 1 else "part_"
    if prefix == "run7_":
        width = max(width, 3)
    return ["%s%0*d%s" % (prefix, width, start + i, suffix) for i in range(count)]


def write_npy(rng, folder, array, alike=False):
    """`alike`: all shards have the order, byte order and version of the first."""
    cuts = gen.random_cuts(rng, len(array)) if array.ndim else [0]
    pieces = [array[a:b] for a, b in itertools.pairwise(cuts)] if array.ndim else [array]
    paths = [folder / name for name in shard_names(rng, len(pieces), ".npy")]
    for number, (path, piece) in enumerate(zip(paths, pieces)):
        if number == 0 or not alike:
            names_ascii = str(array.dtype.names).isascii()
            swapped, order = rng.random() < 0.3, "F" if rng.random() < 0.3 else "C"
            version = [(1, 0), (2, 0), (3, 0)][rng.integers(3)] if names_ascii else (3, 0)
        gen.npy_file(path, gen.swapped(piece) if swapped else piece, order, version)
    for path, piece in zip(paths, pieces):
        if rng.random() < 0.1:
            loaded = numpy.load(path)
            assert gen.plain_bytes(
                gen.swapped(loaded) if loaded.dtype.str[0] == ">" else loaded
            ) == gen.plain_bytes(piece)
    return paths, {}


def write_raw(rng, folder, array):
    """All files of a raw set are described by the same options."""
    options = {"dtype": array.dtype.str, "offset": int(rng.choice([0, 0, 1, 128, 5000]))}
    order = "F" if rng.random() < 0.3 else "C"
    stored = array
    if rng.random() < 0.4:
        stored = gen.swapped(array)
        if rng.random() < 0.5:
            # an order in the text would contradict the other one
            options["dtype"] = array.dtype.str.lstrip("<")
            options["byte_order"] = ">"
        else:
            options["dtype"] = stored.dtype.str
    if order == "F":
        options["order"] = "F"
    row_bytes = array[:1].nbytes if array.ndim and len(array) else 0
    by_rows = array.ndim > 0 and 0 not in array.shape[1:] and rng.random() < 0.6
    gap = int(rng.integers(1, 50)) if order == "C" and row_bytes and rng.random() < 0.3 else 0
    if by_rows:
        options["row_shape"] = list(array.shape[1:])
        cuts = gen.random_cuts(rng, len(array))
    else:
        options["shape"] = list(array.shape)
        cuts = [0, len(array)] if array.ndim else [0, 0]
    if gap:
        options["row_gap"] = gap
    pieces = [stored[a:b] for a, b in itertools.pairwise(cuts)] if array.ndim else [stored]
    paths = [folder / name for name in shard_names(rng, len(pieces), ".bin")]
    for path, piece in zip(paths, pieces):
        gen.raw_file(path, piece, order, options["offset"], gap, bool(rng.random() < 0.5))
    if rng.random() < 0.5:
        options["format"] = "raw"
    return paths, options


def open_command(rng, folder, paths, options):
    how = rng.integers(4)
    if how == 0:
        return {"do": "open", "path": str(folder), **options}
    if how == 1:
        return {"do": "open", "path": str(folder / ("*" + paths[0].suffix)), **options}
    if how == 2 and len(paths) == 1:
        return {"do": "open", "path": str(paths[0]), **options}
    return {
        "do": "open",
        "paths": [str(path) for path in paths],
        "expect_files": len(paths),
        **options,
    }


def check_info(info, array, paths, raw):
    assert info["shape"] == list(array.shape)
    assert info["dtype"] == gen.dtype_text(array.dtype)
    assert (info["files"], info["chunks"]) == (len(paths), len(paths))
    assert (info["bytes"], info["stored_bytes"]) == (array.nbytes, array.nbytes)
    assert (info["format"], info["name"]) == ("raw" if raw else "npy", "data")
    if array.dtype.names is None:
        assert info["descr"] is None
    else:
        assert numpy.lib.format.descr_to_dtype(ast.literal_eval(info["descr"])) == array.dtype


def check_cover(boxes, shape):
    """The boxes are disjoint and leave nothing out."""
    times = numpy.zeros(shape, "i4")
    for box in boxes:
        gen.in_box(times, box)[...] += 1
    assert (times == 1).all()


def check_whole_files(boxes, tiles, files, shape):
    """Tiles from a dataset end where files end, unless there are too few files."""
    if not shape or len(files) < tiles:
        assert boxes == gen.even_boxes(shape, 0, tiles)
        return
    assert len(boxes) <= tiles
    borders = {border for file in files for border in file["rows"]}
    assert all(set(box[0]) <= borders for box in boxes)
    assert all(box[0][0] < box[0][1] for box in boxes) or shape[0] == 0


def check_dump(dump, path, array, boxes):
    data = path.read_bytes()
    assert [tile["box"] for tile in dump["tiles"]] == boxes
    position = 0
    for tile in dump["tiles"]:
        expected = gen.plain_bytes(gen.in_box(array, tile["box"]))
        got = data[position : position + tile["bytes"]]
        assert got == expected, "tile %s differs at byte %d" % (
            tile["box"],
            first_difference(got, expected),
        )
        position += tile["bytes"]
    assert position == len(data) == array.nbytes
    assert dump["stray"] == 0, "%d bytes between the elements were written" % dump["stray"]


def first_difference(a, b):
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def check_move(moved, array, raw):
    statistics = moved["statistics"]
    assert statistics["reader_bytes"] == statistics["missing"] == 0
    assert statistics["bytes_read"] >= array.nbytes
    assert raw or statistics["bytes_read"] <= 2 * array.nbytes + 65536, (
        "the files are read again and again"
    )
    assert statistics["direct_bytes"] <= array.nbytes
    assert statistics["direct_bytes"] + statistics["staged_bytes"] >= array.nbytes
    progress = moved["progress"]
    assert progress["overlaps"] == progress["backwards"] == 0
    assert progress["total"] in (0, array.nbytes)


def run_case(probe, rng, folder, raw, largest):
    dtype = gen.random_dtype(rng, structured=not raw)
    array = gen.random_array(rng, gen.random_shape(rng, largest), dtype)
    data = folder / "data"
    data.mkdir()
    paths, options = (write_raw if raw else write_npy)(rng, data, array)
    tiling, boxes = gen.random_tiling(rng, list(array.shape))
    box = gen.random_box(rng, array.shape)
    layout = gen.random_layout(rng, array.ndim)
    commands = [
        context_command(rng),
        open_command(rng, data, paths, options),
        {"do": "files", "count": len(paths)},
        tiling,
        array_command(rng, array),
        {"do": "load", "progress": True},
        {"do": "dump", "path": str(folder / "tiles")},
        {"do": "hash", "of": "array"},
        {"do": "hash", "of": "dataset"},
        {
            "do": "read",
            "dtype": gen.dtype_text(dtype),
            "box": box,
            "layout": layout,
            "path": str(folder / "box"),
            "readers": int(rng.choice([0, 0, 0, 2])),
        },
    ]
    _, info, files, tiles, _, moved, dump, of_array, of_dataset, read = probe.batch(commands)
    check_info(info, array, paths, raw)
    got_boxes = [tile["box"] for tile in tiles["tiles"]]
    assert all(tile["rank"] == 0 for tile in tiles["tiles"])
    if boxes is None:
        check_whole_files(got_boxes, tiling["tiles"], files["files"], list(array.shape))
    else:
        assert got_boxes == boxes
    check_cover(got_boxes, array.shape)
    check_move(moved, array, raw)
    check_dump(dump, folder / "tiles", array, got_boxes)
    assert of_array["hash"] == of_dataset["hash"] == content_hash(array)
    assert (folder / "box").read_bytes() == gen.plain_bytes(gen.in_box(array, box))
    assert read["stray"] == read["different"] == 0
    if rng.random() < 0.5:
        check_selection(probe, rng, folder, array)


def run_deferred(probe, rng, folder):
    """With deferred headers: right, or a mismatch after which the same files load with all
    headers read. Shards that are alike are right."""
    array = gen.random_array(
        rng, gen.random_shape(rng, 3000), gen.random_dtype(rng, structured=True)
    )
    data = folder / "data"
    data.mkdir()
    alike = bool(rng.random() < 0.5)
    paths, _ = write_npy(rng, data, array, alike)
    where = {"paths": [str(path) for path in paths]} if rng.random() < 0.5 else {"path": str(data)}
    for flags in (2, 0):  # TEGULA_OPEN_DEFER_HEADERS
        _, info = probe.batch([context_command(rng), {"do": "open", "flags": flags, **where}])
        tiling, boxes = gen.random_tiling(rng, info["shape"])
        probe.batch(
            [
                tiling
                if boxes is not None
                else {"do": "tiling", "kind": "even", "shape": info["shape"]},
                array_command(rng, array),
            ]
        )
        answer = probe.ask({"do": "load"})
        if "error" not in answer:
            break
        assert flags == 2 and not alike and answer["error"]["status"] == "mismatch", answer
    check_info(info, array, paths, False)
    check_dump(
        probe.call("dump", path=str(folder / "tiles")),
        folder / "tiles",
        array,
        boxes or [[[0, n] for n in array.shape]],
    )
    assert probe.call("hash", of="dataset")["hash"] == content_hash(array)


@pytest.mark.parametrize("group", range(property_runner.GROUPS))
def test_deferred_headers_change_no_value(shared_probe, group):
    property_runner.run(6, group, 0.15, lambda rng, folder: run_deferred(shared_probe, rng, folder))


@pytest.mark.parametrize("group", range(property_runner.GROUPS))
def test_npy_shards_equal_numpy(shared_probe, group):
    property_runner.run(
        1, group, 0.4, lambda rng, folder: run_case(shared_probe, rng, folder, False, 3000)
    )


@pytest.mark.parametrize("group", range(property_runner.GROUPS))
def test_raw_files_equal_numpy(shared_probe, group):
    property_runner.run(
        2, group, 0.2, lambda rng, folder: run_case(shared_probe, rng, folder, True, 3000)
    )


@pytest.mark.parametrize("group", range(property_runner.GROUPS))
def test_arrays_larger_than_the_staging_equal_numpy(shared_probe, group):
    property_runner.run(
        3,
        group,
        0.02,
        lambda rng, folder: run_case(shared_probe, rng, folder, bool(rng.random() < 0.4), 600000),
    )
