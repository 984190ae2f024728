# Small steps that the case tests share: shards made by numpy, whole loads through the probe.
#
# SPDX-License-Identifier: Apache-2.0
import numpy

from generate_arrays import dtype_text, plain_bytes, swapped


def save_shards(folder, pieces, name="shard_%04d.npy"):
    """numpy.save of each piece; gives the paths."""
    folder.mkdir(exist_ok=True)
    paths = []
    for number, piece in enumerate(pieces):
        paths.append(folder / (name % number))
        numpy.save(paths[-1], piece)
    return paths


def load_all(probe, tmp_path, path, tiles=1, axis=0, separate=False, memory=None, **options):
    """Opens and loads everything; gives the array in native order, the answer of open and that of
    load. `memory`: what the probe's command `array` is told besides (wrapped memory and its
    layouts)."""
    where = {"paths": [str(p) for p in path]} if isinstance(path, list) else {"path": str(path)}
    info = probe.call("open", **where, **options)
    dump = tmp_path / "dump"
    commands = [
        {"do": "tiling", "kind": "even", "shape": info["shape"], "axis": axis, "tiles": tiles},
        {"do": "array", "dtype": info["dtype"], "separate": separate, **(memory or {})},
        {"do": "load"},
        {"do": "dump", "path": str(dump)},
    ]
    _, _, moved, dumped = probe.batch(commands)
    dtype = "<u2" if info["dtype"] == "bfloat16" else info["dtype"]
    out = numpy.zeros(info["shape"], dtype)
    data = dump.read_bytes()
    position = 0
    for tile in dumped["tiles"]:
        shape = [hi - lo for lo, hi in tile["box"]]
        piece = numpy.frombuffer(data, dtype, int(numpy.prod(shape, dtype="i8")), position).reshape(
            shape
        )
        out[tuple(slice(lo, hi) for lo, hi in tile["box"])] = piece
        position += tile["bytes"]
    return out, info, moved["statistics"]


def check_equal(got, expected):
    expected = numpy.asarray(expected)
    assert got.shape == expected.shape
    assert got.dtype.str == dtype_text(expected.dtype)
    assert got.tobytes() == plain_bytes(
        swapped(expected) if expected.dtype.str[0] == ">" else expected
    )
