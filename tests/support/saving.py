# Saves through the probe: arrays of numpy put into it, and what others find in the files.
#
# SPDX-License-Identifier: Apache-2.0
import h5py
import numpy

import generate_arrays as gen


def put(probe, folder, array, tiling=None, boxes=None, how=None, dtype=None):
    """The array becomes that of the probe, cut as `tiling` says (whole by default). `dtype`:
    what it is called, where numpy has no name."""
    array = numpy.asarray(array)
    if tiling is None:
        tiling, boxes = (
            {
                "do": "tiling",
                "kind": "custom",
                "shape": list(array.shape),
                "boxes": [[[0, n] for n in array.shape]],
            },
            None,
        )
    boxes = boxes or [[[0, n] for n in array.shape]]
    native = gen.swapped(array) if array.dtype.str[0] == ">" else array
    (folder / "values").write_bytes(
        b"".join(gen.plain_bytes(gen.in_box(native, box)) for box in boxes)
    )
    command = how or {"do": "array", "dtype": dtype or gen.dtype_text(array.dtype)}
    probe.batch([tiling, command, {"do": "fill", "path": str(folder / "values")}])
    (folder / "values").unlink()


def even(shape, axis, tiles):
    return {
        "do": "tiling",
        "kind": "even",
        "shape": list(shape),
        "axis": axis,
        "tiles": tiles,
    }, gen.even_boxes(list(shape), axis, tiles)


def grid(shape, tile):
    return {
        "do": "tiling",
        "kind": "grid",
        "shape": list(shape),
        "tile": list(tile),
    }, gen.grid_boxes(list(shape), list(tile))


def keep_all(probe, folder, arrays):
    """For a group: the arrays are kept in this order."""
    for array in arrays:
        put(probe, folder, array)
        probe.call("keep")


def stored(array, order="<"):
    """As it is to stand in the file."""
    array = numpy.asarray(array)
    return array if array.dtype.str[0] == "|" or array.dtype.str[0] == order else gen.swapped(array)


def check(dataset, array, order="<"):
    """h5py finds the same dtype, shape and bytes."""
    expected = stored(array, order)
    assert dataset.shape == expected.shape
    assert dataset.dtype == expected.dtype, (dataset.dtype, expected.dtype)
    got = numpy.asarray(dataset[()], dataset.dtype)
    assert got.tobytes() == expected.tobytes()


def check_file(path, arrays, order="<"):
    with h5py.File(path) as file:
        for name, array in arrays.items():
            check(file[name], array, order)


def attribute(name, value, kind=None):
    """As the probe takes it. Text of any length is a str or a list of them."""
    if value is None:
        return {"name": name, "type": kind or "<f4", "shape": None}
    texts = numpy.asarray(value)
    if kind == "str" or texts.dtype.kind == "S":
        flat = [text if isinstance(text, str) else text.decode() for text in texts.ravel().tolist()]
        return {
            "name": name,
            "type": kind or texts.dtype.str,
            "shape": list(texts.shape),
            "texts": flat,
        }
    return {
        "name": name,
        "type": texts.dtype.str,
        "shape": list(texts.shape),
        "values": texts.tobytes().hex(),
    }


def left(folder):
    """Everything below it, whatever it is called."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))
