# What is saved is what numpy reads back, whole or not at all, and nothing is left beside it.
#
# SPDX-License-Identifier: Apache-2.0
import io
import json
import os
import shutil

import numpy
import pytest

import generate_arrays as gen
import property_runner
from generate_arrays import array_command, context_command
from probe import check_error
from reference_hash import content_hash


def save_command(rng, array, folder, raw):
    command = {
        "do": "save",
        "path": str(folder / ("new/deep/target" if rng.random() < 0.2 else "target")),
        "progress": True,
    }
    shards = int(rng.integers(1, 7)) if array.ndim and rng.random() < 0.5 else 0
    if shards:
        command["shards"] = shards
    if raw or rng.random() < 0.3:
        command["format"] = "raw" if raw else "npy"
    if not shards and rng.random() < 0.5:
        command["path"] += ".raw" if raw else ".npy"
    if rng.random() < 0.4:
        command["order"] = "F"
    if rng.random() < 0.4:
        command["byte_order"] = [">", "<"][rng.integers(2)]
    if array.dtype.names is not None and not raw:
        command["descr"] = repr(numpy.lib.format.dtype_to_descr(array.dtype))
    if rng.random() < 0.03:
        command["durable"] = True
    return command


def stored_dtype(array, command):
    order = command.get("byte_order", "<")
    if array.dtype.names is not None:
        return array.dtype if "descr" in command else numpy.dtype("V%d" % array.dtype.itemsize)
    return array.dtype.newbyteorder(order)


def target_files(command):
    path = command["path"]
    if not command.get("shards"):
        assert os.path.isfile(path)
        return [path]
    names = sorted(os.listdir(path))
    suffix = ".raw" if command.get("format") == "raw" else ".npy"
    if suffix == ".raw":
        names.remove("shard_meta.json")
    assert names == ["shard_%04d%s" % (i, suffix) for i in range(len(names))]
    return [os.path.join(path, name) for name in names]


def check_side_file(array, command, paths):
    """What lies beside raw shards says what they hold."""
    with open(os.path.join(command["path"], "shard_meta.json"), encoding="utf-8") as file:
        said = json.load(file)
    item = array.dtype.itemsize * int(numpy.prod(array.shape[1:], dtype="i8"))
    rows = {
        os.path.basename(path): os.path.getsize(path) // item if item else None for path in paths
    }
    assert numpy.dtype(said["dtype"]) == (
        stored_dtype(array, command) if array.dtype.names is None else "V%d" % array.dtype.itemsize
    )
    assert said["row_shape"] == list(array.shape[1:]) and said["order"] == command.get("order", "C")
    assert list(said["rows"]) == list(rows) and sum(said["rows"].values()) == len(array)
    assert not item or said["rows"] == rows


def check_npy(array, command, paths):
    pieces = [numpy.load(path) for path in paths]
    assert all(piece.dtype == stored_dtype(array, command) for piece in pieces), pieces[0].dtype
    if array.ndim == 0:
        assert pieces[0].shape == ()
    assert all(piece.shape[1:] == array.shape[1:] for piece in pieces)
    native = b"".join(
        gen.plain_bytes(gen.swapped(piece) if piece.dtype.str[0] == ">" else piece)
        for piece in pieces
    )
    assert native == gen.plain_bytes(array)
    assert array.ndim == 0 or sum(len(piece) for piece in pieces) == len(array)
    if command.get("order") == "F" and array.ndim > 1:
        assert all(piece.flags.f_contiguous for piece in pieces)
    if len(paths) == 1 and not command.get("shards"):
        check_same_file_as_numpy(array, command, paths[0])


def check_same_file_as_numpy(array, command, path):
    """Byte-equal to numpy.save, where numpy has a say in the order of axes."""
    if command.get("order") == "F" and (array.ndim < 2 or array.flags.f_contiguous):
        return
    dtype = stored_dtype(array, command)
    stored = (
        gen.swapped(array)
        if dtype.str[0] == ">" and array.dtype.names is None
        else array.view(dtype)
    )
    file = io.BytesIO()
    numpy.save(file, numpy.asarray(stored, order=command.get("order", "C")))
    # numpy may not write what is between fields
    size = file.tell() - (array.nbytes if array.dtype.names is not None else 0)
    with open(path, "rb") as saved:
        assert saved.read(size) == file.getvalue()[:size]


def check_raw(array, command, paths):
    dtype = stored_dtype(array, command)
    row = array.shape[1:]
    order = command.get("order", "C")
    native = []
    for path in paths:
        flat = numpy.fromfile(path, dtype)
        piece = flat if array.ndim == 0 or 0 in row else flat.reshape((-1, *row), order=order)
        native.append((gen.swapped(piece) if dtype.str[0] == ">" else piece).tobytes())
    assert b"".join(native) == array.tobytes()


def check_clean(folder, command, existing):
    """Nothing but the target, the values and the folders on the way to it."""
    top = os.path.relpath(command["path"], folder).split(os.sep)[0]
    assert sorted(os.listdir(folder)) == sorted({"values", top})
    for base, _, names in os.walk(folder):
        assert not [name for name in names if name.startswith((".", "tmp")) or "tegula" in name], (
            base
        )
    assert existing is None or os.path.exists(command["path"])


def snapshot(path):
    if os.path.isdir(path):
        return {name: snapshot(os.path.join(path, name)) for name in os.listdir(path)}
    with open(path, "rb") as file:
        return file.read()


def put_something(rng, path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if rng.random() < 0.5:
        with open(path, "wb") as file:
            file.write(b"something else")
    else:
        os.mkdir(path)
        with open(os.path.join(path, "shard_0000.npy"), "wb") as file:
            file.write(b"an old shard")


def make_replaceable(probe, command, existing):
    """A folder is not given up for a file, not even on request:
    a save that is refused for that leaves it as it is."""
    if command.get("shards") or not os.path.isdir(command["path"]):
        return
    check_error(probe.refused(**command), "exists", path=command["path"])
    assert snapshot(command["path"]) == existing
    shutil.rmtree(command["path"])


def run_case(probe, rng, folder):
    raw = bool(rng.random() < 0.3)
    dtype = gen.random_dtype(rng, structured=not raw)
    array = gen.random_array(rng, gen.random_shape(rng), dtype)
    tiling, boxes = gen.random_tiling(rng, list(array.shape), from_dataset=False)
    (folder / "values").write_bytes(
        b"".join(gen.plain_bytes(gen.in_box(array, box)) for box in boxes)
    )
    command = save_command(rng, array, folder, raw)
    probe.batch(
        [
            context_command(rng),
            tiling,
            array_command(rng, array),
            {"do": "fill", "path": str(folder / "values")},
        ]
    )
    existing = None
    if rng.random() < 0.3:
        put_something(rng, command["path"])
        existing = snapshot(command["path"])
        check_error(probe.refused(**command), "exists", path=command["path"])
        assert snapshot(command["path"]) == existing
        command["overwrite"] = True
        make_replaceable(probe, command, existing)
    if rng.random() < 0.1:
        check_cancelled(probe, command)
    probe.call(**command)
    paths = target_files(command)
    assert len(paths) <= max(1, len(array) if array.ndim else 1, 1) and len(paths) <= max(
        1, command.get("shards", 1)
    )
    (check_raw if raw else check_npy)(array, command, paths)
    if raw and command.get("shards"):
        check_side_file(array, command, paths)
    check_clean(folder, command, existing)
    if not raw:
        opened, hashed = probe.batch(
            [{"do": "open", "path": command["path"]}, {"do": "hash", "of": "dataset"}]
        )
        assert opened["shape"] == list(array.shape)
        assert hashed["hash"] == content_hash(array)


def check_cancelled(probe, command):
    """A save that is stopped leaves what was there;
    one without a byte to write may end before it can be stopped."""
    before = snapshot(command["path"]) if os.path.exists(command["path"]) else None
    answer = probe.ask({**command, "cancel_after": 0})
    if "error" in answer:
        check_error(answer["error"], "cancelled")
        assert (snapshot(command["path"]) if os.path.exists(command["path"]) else None) == before
    else:
        command["overwrite"] = True


@pytest.mark.parametrize("group", range(property_runner.GROUPS))
def test_saves_are_read_back_by_numpy(shared_probe, group):
    property_runner.run(4, group, 0.3, lambda rng, folder: run_case(shared_probe, rng, folder))
