# Random selections of the dataset that a probe has open, judged by numpy.
#
# SPDX-License-Identifier: Apache-2.0
import generate_arrays as gen
from reference_hash import content_hash


def random_steps(rng, shape):
    """A command that selects, and the same as slices."""
    box = gen.random_box(rng, shape)
    step = [int(rng.choice([1, 1, 2, 3, 5, 16, 250])) for _ in shape]
    key = tuple(slice(lo, hi, k) for (lo, hi), k in zip(box, step))
    command = {"do": "select", "ndim": len(shape), "step": step}
    if any(pair != [0, n] for pair, n in zip(box, shape)) or rng.random() < 0.5:
        command["lo"], command["hi"] = [lo for lo, _ in box], [hi for _, hi in box]
    return command, key


def random_field(rng, array):
    """The name of a field, and its values in native byte order."""
    names = []
    while array.dtype.names is not None and (not names or rng.random() < 0.7):
        names.append(array.dtype.names[rng.integers(len(array.dtype.names))])
        array = array[names[-1]]
    if array.dtype.str[0] == ">":
        array = array.byteswap().view(array.dtype.newbyteorder())
    return ".".join(names), array


def check_selection(probe, rng, folder, want):
    """A selection, or one of another, also of a field: tiles, both hashes, a box in memory of any
    strides, and what its manifest describes."""
    for _ in range(int(rng.integers(1, 3))):
        command, key = random_steps(rng, want.shape)
        want = want[(*key, ...)]
        if want.dtype.names is not None and rng.random() < 0.7:
            command["field"], want = random_field(rng, want)
        dtype = gen.dtype_text(want.dtype)
        info = probe.call(**command)
        assert (info["shape"], info["dtype"]) == (list(want.shape), dtype), command
    check_open(probe, rng, folder, want)
    if rng.random() < 0.3:
        manifest = probe.ask({"do": "to_json", "folder": str(folder)})
        if "error" in manifest:  # libhdf5 undoes a filter
            assert manifest["error"]["status"] == "unsupported", manifest
            return
        (folder / "selected.json").write_text(manifest["text"])
        probe.call("open", path=str(folder / "selected.json"), format="manifest")
        assert probe.call("hash", of="dataset")["hash"] == content_hash(want)


def check_open(probe, rng, folder, want):
    tiling, _ = gen.random_tiling(rng, list(want.shape))
    box = gen.random_box(rng, want.shape)
    _, _, _, dump, of_array, of_dataset, read = probe.batch(
        [
            tiling,
            gen.array_command(rng, want),
            {"do": "load", "progress": True},
            {"do": "dump", "path": str(folder / "selected")},
            {"do": "hash", "of": "array"},
            {"do": "hash", "of": "dataset"},
            {
                "do": "read",
                "dtype": gen.dtype_text(want.dtype),
                "box": box,
                "layout": gen.random_layout(rng, want.ndim),
                "path": str(folder / "selected_box"),
            },
        ]
    )
    data, position = (folder / "selected").read_bytes(), 0
    for tile in dump["tiles"]:
        expected = gen.plain_bytes(gen.in_box(want, tile["box"]))
        assert data[position : position + tile["bytes"]] == expected, "tile %s" % tile["box"]
        position += tile["bytes"]
    assert position == len(data) == want.nbytes and dump["stray"] == read["stray"] == 0
    assert (folder / "selected_box").read_bytes() == gen.plain_bytes(gen.in_box(want, box))
    assert of_array["hash"] == of_dataset["hash"] == content_hash(want)
