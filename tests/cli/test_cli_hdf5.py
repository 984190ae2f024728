# Containers on the command line: what info lists and refuses, names, batches of a dataset.
#
# SPDX-License-Identifier: Apache-2.0
import os

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes the files")

import hdf5_files as h5  # noqa: E402
from command import refused, report, tegula  # noqa: E402
from reference_hash import content_hash  # noqa: E402

ENV = {
    key: value
    for key, value in os.environ.items()
    if key in ("TEGULA_HDF5_LIBRARY", "TEGULA_PLUGIN_PATH")
}
KEYS = {"name", "shape", "dtype", "chunks", "codecs", "files", "bytes", "stored_bytes"}
data = numpy.arange(42, dtype=">i4").reshape(7, 6)


@pytest.fixture
def container(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["run/temperature"] = data
        file.create_dataset(
            "run/pressure",
            data=data,
            chunks=(3, 4),
            compression="gzip",
            compression_opts=6,
            shuffle=True,
        )
        file.create_dataset("growing", (0, 5), "<f8", maxshape=(None, 5), chunks=(2, 5))
        file["scalar"] = 3.5
        file["texts"] = ["a", "bc"]
        file["alias"] = h5py.SoftLink("/run/temperature")
        file["loop"] = file["/"]
    h5.filtered(path, "odd", 40000)
    return path


def test_info_lists_every_dataset_once(container):
    answer = report("info", container, env=ENV)
    assert answer["format"] == "hdf5"
    listed = {entry["name"]: entry for entry in answer["datasets"]}
    assert (
        list(listed)
        == sorted(listed)
        == ["/growing", "/odd", "/run/pressure", "/run/temperature", "/scalar", "/texts"]
    )
    assert all(set(entry) >= KEYS for entry in listed.values())
    with h5py.File(container) as file:
        stored = {name: file[name].id.get_storage_size() for name in listed}
    for name, shape, dtype, chunks, codecs in [
        ("/run/temperature", [7, 6], "<i4", None, []),
        ("/run/pressure", [7, 6], "<i4", [3, 4], ["shuffle", "deflate:6"]),
        ("/growing", [0, 5], "<f8", [2, 5], []),
        ("/scalar", [], "<f8", None, []),
    ]:
        entry = listed[name]
        assert [entry[key] for key in ("shape", "dtype", "chunks", "codecs")] == [
            shape,
            dtype,
            chunks,
            codecs,
        ]
        assert (
            entry["bytes"] == int(numpy.prod(shape)) * numpy.dtype(dtype).itemsize
            and entry["stored_bytes"] == stored[name]
        )
        assert "refused" not in entry
    assert listed["/texts"]["dtype"] is None and "variable length" in listed["/texts"]["refused"]
    assert listed["/odd"]["codecs"] == ["filter-40000"]


def test_info_for_people(container):
    run = tegula("info", container, env=ENV)
    assert run.returncode == 0 and run.stderr == ""
    assert run.stdout.splitlines()[0] == "format  hdf5, 6 datasets"
    for text in (
        "/run/pressure: shape (7, 6), dtype <i4, chunks (3, 4), shuffle,deflate:6",
        "/scalar: shape (), dtype <f8",
        "/texts: shape (",
        "cannot be loaded: ",
    ):
        assert text in run.stdout
    assert tegula("info", "--quiet", container, env=ENV).stdout == ""


def test_a_shape_that_nobody_knows_is_not_that_of_a_scalar(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["null"] = h5py.Empty("f4")
        file["text"] = "one"
    null, text = report("info", path, env=ENV)["datasets"]
    assert null["shape"] is None and "no shape" in null["refused"] and text["shape"] == []
    assert "dataset /null: shape ?, dtype -" in tegula("info", path, env=ENV).stdout


def test_compare_by_names(container, tmp_path):
    """Each side has its name; an array without one is meant whatever the other is called."""
    numpy.save(tmp_path / "a.npy", data)
    data.tofile(tmp_path / "a.bin")
    equal = {"equal": True, "index": None, "a": None, "b": None, "reason": None}
    names = "--dataset", "/run/pressure", "--to-dataset", "/run/temperature"
    assert report("compare", container, container, *names, env=ENV) == equal
    for words in (
        [container, tmp_path / "a.npy"],
        [tmp_path / "a.npy", container],
        [tmp_path / "a.bin", container, "--dtype", ">i4", "--row-shape", "6"],
    ):
        assert report("compare", *words, "--dataset", "/run/pressure", env=ENV) == equal
    assert (
        report("compare", tmp_path / "a.npy", container, "--to-dataset", "/run/pressure", env=ENV)
        == equal
    )
    assert (
        report(
            "compare",
            container,
            container,
            "--dataset",
            "/run/pressure",
            "--to-dataset",
            "/scalar",
            status=3,
            env=ENV,
        )["equal"]
        is False
    )
    for size in (0, 4, 9):  # shorter than what other formats begin with
        (tmp_path / "short.bin").write_bytes(bytes(size))
        assert (
            report(
                "compare", tmp_path / "short.bin", tmp_path / "short.bin", "--dtype", "u1", env=ENV
            )
            == equal
        )
    raw = "--dtype", ">i4", "--row-shape", "6"
    for words in (
        [container, tmp_path / "a.npy"],
        [tmp_path / "a.npy", container],
        [container, container],
        [container, tmp_path / "a.bin", *raw],
    ):
        refused(
            "compare", *words, "--dataset", "/none", status="not_found", says=["/none"], env=ENV
        )


@pytest.mark.parametrize("name", ["/run/pressure", "run/pressure"])
def test_info_of_one_dataset(container, name):
    (entry,) = report("info", container, "--dataset", name, env=ENV)["datasets"]
    assert (
        set(entry) >= KEYS
        and entry["shape"] == [7, 6]
        and entry["chunks"] == [3, 4]
        and entry["codecs"] == ["shuffle", "deflate:6"]
    )
    assert entry["bytes"] == data.nbytes


# ---- --chunks ----


def chunk_list(path, name):
    (entry,) = report("info", path, "--dataset", name, "--chunks", env=ENV)["datasets"]
    return entry, sorted(entry["chunk_list"], key=lambda piece: piece["box"])


def h5py_chunks(path, name):
    """The same, as h5py has it."""
    with h5py.File(path) as file:
        dataset, found = file[name], []
        dataset.id.chunk_iter(found.append)
        return sorted(
            (
                {
                    "box": [
                        [at, min(at + length, end)]
                        for at, length, end in zip(one.chunk_offset, dataset.chunks, dataset.shape)
                    ],
                    "offset": one.byte_offset,
                    "length": one.size,
                    "mask": one.filter_mask,
                    "file": str(path),
                }
                for one in found
            ),
            key=lambda piece: piece["box"],
        )


@pytest.mark.parametrize("libver", ["earliest", "v108", "latest"])
def test_chunks_are_those_of_h5py(tmp_path, libver):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver) as file:
        file.create_dataset(
            "packed",
            data=numpy.arange(700, dtype="<i4").reshape(7, 10, 10),
            chunks=(3, 4, 10),
            compression="gzip",
            shuffle=True,
        )
        growing = file.create_dataset(
            "growing", (50, 40), "<f8", maxshape=(None, 40), chunks=(7, 9)
        )
        growing[8:20, 10:30], growing[49, 39] = 1, 2
        tree = file.create_dataset("tree", (90, 90), "u1", maxshape=(None, None), chunks=(4, 4))
        tree[5, 5] = tree[89, 0] = tree[44:52, 13] = 1
        masked = file.create_dataset(
            "masked", (8,), "<i4", chunks=(4,), compression="gzip", shuffle=True
        )
        masked[:] = 5
        masked.id.write_direct_chunk((4,), numpy.arange(4, dtype="<i4").tobytes(), 3)
        file.create_dataset("none", (8, 8), "<i4", chunks=(4, 4))
    for name, count in (("packed", 9), ("growing", 7), ("tree", 4), ("masked", 2), ("none", 0)):
        entry, found = chunk_list(path, name)
        assert found == h5py_chunks(path, name) and len(found) == count, name
        assert sum(piece["length"] for piece in found) == entry["stored_bytes"]
    assert [piece["mask"] for piece in chunk_list(path, "masked")[1]] == [0, 3]


def test_few_chunks_of_a_huge_array_are_listed_at_once(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        sparse = file.create_dataset(
            "x", (2**40, 2**20), "u1", maxshape=(None, None), chunks=(8, 8)
        )
        for row in (3, 2**33, 2**40 - 1):
            sparse[row, 2**19 + row % 100] = 1
    found = chunk_list(path, "x")[1]
    assert len(found) == 3 and found == h5py_chunks(path, "x")


def test_chunks_without_chunks(tmp_path):
    values, path = numpy.arange(24, dtype="<u2").reshape(4, 6), tmp_path / "a.h5"
    with h5py.File(path, "w", userblock_size=1024) as file:
        file["dense"] = values
        file.create_dataset("gone", (3,), "<i4")
    h5.low_level(path, "compact", "<i4", (3,), h5.compact, numpy.arange(3))
    (piece,) = chunk_list(path, "dense")[1]
    assert piece == {
        "box": [[0, 4], [0, 6]],
        "offset": piece["offset"],
        "length": 48,
        "mask": 0,
        "file": str(path),
    }
    assert path.read_bytes()[piece["offset"] :][:48] == values.tobytes()
    assert chunk_list(path, "compact")[1] == [
        {"box": [[0, 3]], "offset": None, "length": None, "mask": 0, "file": None}
    ]
    assert chunk_list(path, "gone")[1] == []
    for number in (0, 1):
        numpy.save(tmp_path / f"part_{number}.npy", values)
    (entry,) = report("info", tmp_path / "part_*.npy", "--chunks", env=ENV)["datasets"]
    assert [(piece["box"], piece["length"], piece["file"]) for piece in entry["chunk_list"]] == [
        ([[4 * number, 4 * number + 4], [0, 6]], 48, str(tmp_path / f"part_{number}.npy"))
        for number in (0, 1)
    ]
    for piece in entry["chunk_list"]:
        with open(piece["file"], "rb") as file:
            assert file.read()[piece["offset"] :][:48] == values.tobytes()


def test_chunks_of_a_virtual_dataset(tmp_path):
    with h5py.File(tmp_path / "source.h5", "w") as file:
        file.create_dataset("x", data=numpy.arange(100, dtype="u1").reshape(10, 10), chunks=(4, 5))
    path = tmp_path / "v.h5"
    h5.virtual(
        path, "v", (6, 12), "u1", [(numpy.s_[:, 2:], "source.h5", "x", (10, 10), numpy.s_[3:9])]
    )
    found = chunk_list(path, "v")[1]
    stored = {
        (piece["box"][0][0], piece["box"][1][0]): piece
        for piece in h5py_chunks(tmp_path / "source.h5", "x")
    }
    assert [piece["box"] for piece in found] == [
        [rows, columns] for rows in ([0, 1], [1, 5], [5, 6]) for columns in ([2, 7], [7, 12])
    ]
    for piece in found:
        (row, _), (column, _) = piece["box"]
        source = stored[(row + 3) // 4 * 4, (column - 2) // 5 * 5]
        assert (piece["offset"], piece["length"]) == (
            source["offset"],
            source["length"],
        ) and os.path.samefile(piece["file"], source["file"])


def test_a_contiguous_source_in_slices_has_no_chunks(tmp_path):
    """That its bytes are read slice by slice,
    because every column is wanted somewhere else, is nobody's business."""
    array = numpy.arange(600000, dtype="<f4").reshape(5000, 120)
    with h5.h5py.File(tmp_path / "s.h5", "w") as file:
        file["d"] = array
        start = file["d"].id.get_offset()
    layout, source = (
        h5.h5py.VirtualLayout(array.shape, "<f4"),
        h5.h5py.VirtualSource("s.h5", "d", array.shape),
    )
    for k in range(120):
        layout[:, k] = source[:, 119 - k]
    with h5.h5py.File(tmp_path / "v.h5", "w") as file:
        file.create_virtual_dataset("v", layout)
    shown = report("info", tmp_path / "v.h5", "--chunks", "--manifest", tmp_path / "m.json")[
        "datasets"
    ][0]
    assert (shown["chunks"], shown["codecs"], shown["stored_bytes"]) == (None, [], array.nbytes)
    assert [(entry["box"], entry["offset"], entry["length"]) for entry in shown["chunk_list"]] == [
        ([[0, 5000], [k, k + 1]], start + 4 * (119 - k), 4999 * 480 + 4) for k in range(120)
    ]
    loaded = report("load", tmp_path / "m.json", "--hash")
    assert loaded["hash"] == content_hash(array[:, ::-1])
    assert loaded["bytes_read"] < array.nbytes + (1 << 20), "the manifest keeps what is read once"
    assert report("info", tmp_path / "m.json")["datasets"][0]["chunks"] is None


def test_chunks_for_people(container):
    run = tegula("info", container, "--dataset", "run/pressure", "--chunks", env=ENV)
    lines = [line for line in run.stdout.splitlines() if line.startswith("chunk ")]
    assert run.returncode == 0 and run.stderr == ""
    assert lines == [
        'chunk   [{}]: {} bytes at {} of "{}"'.format(
            ",".join(f"{lo}:{hi}" for lo, hi in piece["box"]),
            piece["length"],
            piece["offset"],
            container,
        )
        for piece in h5py_chunks(container, "run/pressure")
    ]
    assert (
        tegula(
            "info", container, "--dataset", "run/pressure", "--chunks", "--quiet", env=ENV
        ).stdout
        == ""
    )
    error = refused(
        "info", container, "--chunks", status="invalid_argument", exit_status=2, env=ENV
    )
    assert "/run/pressure" in error["message"] + (error["hint"] or "")


# ---- --attributes ----


def number(value):
    """An element as numpy has it: text stands for what JSON has no number for."""
    return (
        complex(*map(number, value))
        if isinstance(value, list)
        else int(value)
        if str(value).isdigit()
        else float(value)
        if isinstance(value, str)
        else value
    )


def elements(value, ndim):
    return [one for part in value for one in elements(part, ndim - 1)] if ndim > 0 else [value]


def check_attribute(shown, attributes):
    """Is it what h5py reads?"""
    want = attributes[shown["name"]]
    stored = attributes.get_id(shown["name"])
    if isinstance(want, h5py.Empty):
        assert shown["shape"] is None and shown["value"] is None
        return
    assert shown["shape"] == list(stored.shape) and "omitted" not in shown
    found = (
        elements(shown["value"], len(stored.shape))
        if want is not None and 0 not in stored.shape
        else []
    )
    if shown["dtype"] == "str" or shown["dtype"].startswith("|S"):
        texts = [
            text.decode() if isinstance(text, bytes) else text
            for text in numpy.asarray(want).ravel().tolist()
        ]
        assert found == texts
        return
    native = h5.native(numpy.asarray(want))
    assert shown["dtype"] == native.dtype.str
    assert (
        numpy.array([number(one) for one in found], native.dtype).tobytes() == native.tobytes()
    ), shown


NUMBERS = {
    "i1": numpy.array([-128, 127], "i1"),
    "u8": numpy.array([0, 2**64 - 1, 2**63], "<u8"),
    "i8": numpy.int64(-(2**63)),
    "be": numpy.array([[1, -2], [3, 4]], ">i4"),
    "f2": numpy.array([0, -0.0, 5.96e-8, 65504, numpy.inf, 0.1], "<f2"),
    "f4": numpy.float32(0.1),
    "f8": numpy.array([numpy.pi, 5e-324, -numpy.inf, 1e308], ">f8"),
    "nan": numpy.float64("nan"),
    "yes": numpy.array([True, False]),
    "one": numpy.True_,
    "c8": numpy.complex64(1.5 - 0.1j),
    "c16": numpy.array([1j, numpy.pi], "<c16"),
    "cube": numpy.arange(24, dtype="<u2").reshape(2, 3, 4),
    "none": numpy.zeros((0, 5), "<f4"),
    "long": numpy.arange(100000, dtype="<f8") / 7,
}
TEXTS = {
    "text": 'K, Grad, \u03a9 "x"\n',
    "fixed": numpy.bytes_("abc"),
    "fixed two": numpy.array([b"a", b"bcd", b""]),
    "texts": ["a", "", "\u00e9" * 300],
    "empty text": "",
    "0": h5py.Empty("<f4"),
    "00": h5py.Empty("S3"),
    "a \u00e9/\n": 1,
}


@pytest.mark.parametrize("libver", ["earliest", "v108", "latest"])
def test_attributes_are_those_of_h5py(tmp_path, libver):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver) as file:
        file["g/x"], file["y"], file["bare"] = data, [1.5], 3
        file["g"].attrs["of the group"] = 1
        for name, value in (*NUMBERS.items(), *TEXTS.items()):
            if name != "long" or libver != "earliest":  # 64 KiB and more need dense storage
                file["g/x"].attrs[name] = value
        for count in range(60):
            file["y"].attrs[f"number {count}"] = count
        file.attrs["title"] = "all of it"
    answer = report("info", path, "--attributes", env=ENV)
    listed = {entry["name"]: entry["attributes"] for entry in answer["datasets"]}
    with h5py.File(path) as file:
        for name, shown in ("/", answer["attributes"]), *listed.items():
            assert sorted(one["name"] for one in shown) == sorted(file[name].attrs)
            for one in shown:
                check_attribute(one, file[name].attrs)
    assert list(listed) == ["/bare", "/g/x", "/y"] and len(listed["/y"]) == 60
    for extra in ([], ["--chunks"]):
        alone = report("info", path, "--attributes", "--dataset", "g/x", *extra, env=ENV)
        assert alone["datasets"][0]["attributes"] == listed["/g/x"] and "attributes" not in alone
    assert all("attributes" not in entry for entry in report("info", path, env=ENV)["datasets"])


def test_attributes_that_are_not_shown(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver="latest") as file:
        dataset = file.create_dataset("x", data=[1])
        dataset.attrs["record"] = numpy.zeros(2, [("a", "<i4"), ("b", "<f8")])
        dataset.attrs["to"] = dataset.ref
        dataset.attrs["ragged"] = numpy.array(
            [numpy.arange(3), numpy.arange(2)], dtype=h5py.vlen_dtype("<i4")
        )
        dataset.attrs["bytes"] = numpy.void(b"abc")
        kind = h5py.h5t.array_create(h5py.h5t.NATIVE_INT32, (3,))
        h5py.h5a.create(dataset.id, b"array", kind, h5py.h5s.create_simple((2,)))
        dataset.attrs["much"] = numpy.zeros((1 << 17) + 1)
        dataset.attrs["many"] = ["a"] * 4097
        dataset.attrs["enough"] = numpy.zeros(1 << 17)
        dataset.attrs["color"] = numpy.array(2, dtype=h5py.enum_dtype({"RED": 1, "BLUE": 2}, "<i2"))
    shown = {
        one["name"]: one
        for one in report("info", path, "--chunks", "--attributes", env=ENV)["datasets"][0][
            "attributes"
        ]
    }
    for name, dtype in (
        ("record", "compound"),
        ("to", "reference"),
        ("ragged", "sequence of variable length"),
        ("bytes", "opaque"),
        ("array", "array"),
        ("much", "<f8"),
        ("many", "str"),
    ):
        assert (shown[name]["dtype"], shown[name]["value"]) == (dtype, None) and shown[name][
            "omitted"
        ], name
    assert (
        shown["much"]["shape"] == [(1 << 17) + 1]
        and "1 MiB" in shown["much"]["omitted"]
        and "4,096" in shown["many"]["omitted"]
    )
    assert shown["enough"]["value"] == [0] * (1 << 17)
    assert (shown["color"]["dtype"], shown["color"]["value"]) == ("<i2", 2)


def test_attributes_of_odd_numbers(tmp_path):
    """Integers with padding, complex numbers of halves."""
    path = tmp_path / "a.h5"
    big = h5py.h5t.STD_I16BE.copy()
    big.set_precision(12)
    pair = numpy.array([(1.5, -2)], [("r", "<f2"), ("i", "<f2")])
    with h5py.File(path, "w") as file:
        for name, kind, values in (
            (b"big", big, numpy.array([-2, 2047], "<i4")),
            (b"pair", h5py.h5t.py_create(pair.dtype), pair),
        ):
            h5py.h5a.create(file.id, name, kind, h5py.h5s.create_simple(values.shape)).write(values)
    shown = {
        one["name"]: (one["dtype"], one["value"])
        for one in report("info", path, "--attributes", env=ENV)["attributes"]
    }
    assert shown == {"big": ("<i2", [-2, 2047]), "pair": ("<c8", [[1.5, -2]])}


def test_attributes_for_people(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["x"], file["y"] = data, data
        file.attrs["title"] = "T\u00e4st"
        file["x"].attrs["scale"], file["x"].attrs["text"] = [1.5, 0.1], "\u00e9" * 300
        file["x"].attrs["none"], file["x"].attrs["record"] = (
            h5py.Empty("<f4"),
            numpy.zeros(1, [("a", "<i4")]),
        )
    run = tegula("info", path, "--attributes", env=ENV)
    lines = run.stdout.splitlines()
    assert (
        run.returncode == 0
        and run.stderr == ""
        and lines[1] == 'attr    "title": str = "T\u00e4st"'
    )
    assert lines[2].startswith("dataset /x: ") and lines[3] == 'attr    "none": <f4, empty'
    assert lines[4] == 'attr    "record": compound [1]; values of this type are not shown'
    assert lines[5] == 'attr    "scale": <f8 [2] = [1.5, 0.10000000000000001]' and lines[
        7
    ].startswith("dataset /y: ")
    assert lines[6] == 'attr    "text": str = "' + "\u00e9" * 99 + "..."
    assert lines[3] in tegula("info", path, "--attributes", "--dataset", "x", env=ENV).stdout
    assert tegula("info", path, "--attributes", "--quiet", env=ENV).stdout == ""


def test_attributes_that_cannot_be_read(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["x"] = data
        file["x"].attrs["units"] = "kelvin"
    content = path.read_bytes()
    assert content.count(b"GCOL") == 1
    path.write_bytes(content.replace(b"GCOL", b"GONE"))
    refused("info", path, "--attributes", status="corrupt", says=["units", "/x", "a.h5"], env=ENV)
    assert report("info", path, env=ENV)["datasets"][0]["name"] == "/x"
    at = content.index(b"units\0")
    # the version of the attribute's message
    path.write_bytes(content[: at - 8] + b"\x09" + content[at - 7 :])
    refused(
        "info",
        path,
        "--attributes",
        status="unsupported",
        says=["attributes of", "/x", "bad version number"],
        env=ENV,
    )
    # libhdf5 says nothing of its own at the end
    assert len(tegula("info", path, "--attributes", env=ENV).stderr.splitlines()) == 2
    refused("info", path, "--attributes", "--dataset", "z", status="not_found", says=["z"], env=ENV)
    for number in (0, 1):
        numpy.save(tmp_path / f"part_{number}.npy", data)
    refused(
        "info",
        tmp_path / "part_0.npy",
        "--attributes",
        status="unsupported",
        says=["part_0.npy", "attributes", "npy"],
        env=ENV,
    )
    refused(
        "info",
        tmp_path / "part_*.npy",
        "--attributes",
        status="invalid_argument",
        exit_status=2,
        says=["one file", "2"],
        env=ENV,
    )


def test_a_file_that_a_program_has_open_for_writing(container, tmp_path):
    """For every command; --allow-locked takes it as it is, sources of a virtual dataset too."""
    h5.virtual(
        tmp_path / "v.h5",
        "v",
        (7, 6),
        ">i4",
        [((slice(None), slice(None)), "a.h5", "run/temperature", (7, 6), None)],
    )
    with h5py.File(tmp_path / "link.h5", "w") as f:
        f["own"] = numpy.arange(3)
        f["link"] = h5py.ExternalLink("a.h5", "/run/temperature")
    with h5py.File(container, "r+"):
        for words in (
            ["info", container],
            ["info", container, "--attributes"],
            ["load", container, "--dataset", "alias"],
            ["plan", container, "--dataset", "alias"],
            ["load", tmp_path / "v.h5"],
        ):
            error = refused(
                *words, status="unsupported", says=["a.h5", "locked by another program"], env=ENV
            )
            assert "--allow-locked" in error["hint"]
        for words in (
            ["info", container],
            ["load", container, "--dataset", "alias"],
            ["load", tmp_path / "v.h5"],
        ):
            report(*words, "--allow-locked", env=ENV)
        assert report("load", tmp_path / "v.h5", "--hash", "--allow-locked", env=ENV)[
            "hash"
        ] == content_hash(data)
        listed = {
            entry["name"]: entry.get("refused")
            for entry in report("info", tmp_path / "link.h5", env=ENV)["datasets"]
        }
        assert listed["/own"] is None and "locked by another program" in listed["/link"]
        # /own is not the only one
        refused("load", tmp_path / "link.h5", status="invalid_argument", exit_status=2, env=ENV)
    assert report("load", tmp_path / "v.h5", "--hash", env=ENV)["hash"] == content_hash(data)


def test_what_is_said_of_a_file_must_be_so(container):
    """A dtype that it has not, and options that only raw files need, are not passed over."""
    report("load", container, "--dataset", "run/temperature", "--dtype", "i4", env=ENV)
    report("load", container, "--dataset", "run/temperature", "--dtype", ">i4", env=ENV)
    for dtype in ("u4", "f4", "i8"):
        refused(
            "load",
            container,
            "--dataset",
            "run/temperature",
            "--dtype",
            dtype,
            status="mismatch",
            says=["i4", dtype, "a.h5"],
            env=ENV,
        )
    for words in (
        ["--shape", "42"],
        ["--row-shape", "6"],
        ["--offset", "8"],
        ["--row-gap", "1"],
        ["--order", "F"],
        ["--byte-order", "<"],
    ):
        refused(
            "load",
            container,
            "--dataset",
            "run/temperature",
            *words,
            status="invalid_argument",
            exit_status=2,
            says=[words[0][2:].replace("-", "_"), "raw", "a.h5"],
            env=ENV,
        )


def test_datasets_of_a_group_have_names_that_lead_there(tmp_path):
    """By whatever name the group was called: a second hard link, one in another file, the root."""
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["g/x"] = numpy.arange(5)
        f["g/deep/y"] = numpy.arange(3)
        f["again"] = f["g"]
        f["soft"] = h5py.SoftLink("/g/deep")
        f["out"] = h5py.ExternalLink("b.h5", "/q")
    with h5py.File(tmp_path / "b.h5", "w") as f:
        f["q/r"] = numpy.arange(4)
        f["q/s"] = h5py.SoftLink("/z")
        f["z"] = numpy.arange(2)
    for group, names in (
        ("again", ["/again/x", "/again/deep/y"]),
        ("g/", ["/g/x", "/g/deep/y"]),
        ("/soft", ["/soft/y"]),
        ("out", ["/out/r", "/out/s"]),
        (".", ["/again/x", "/again/deep/y", "/out/r", "/out/s"]),
    ):
        error = refused(
            "load",
            tmp_path / "a.h5",
            "--dataset",
            group,
            status="invalid_argument",
            exit_status=2,
            says=["is a group"],
            env=ENV,
        )
        hinted = error["hint"].split(": ")[1].split(", ")
        assert sorted(hinted) == sorted('"%s"' % name for name in names), error
        for name in names:
            report("load", tmp_path / "a.h5", "--dataset", name, env=ENV)


@pytest.mark.parametrize("command", ["info", "load"])
def test_names_that_are_no_datasets(container, command):
    error = refused(
        command,
        container,
        "--dataset",
        "run/temprature",
        status="not_found",
        says=["run/temprature"],
        env=ENV,
    )
    assert "/run/temperature" in error["message"] + (error["hint"] or "")
    error = refused(
        command,
        container,
        "--dataset",
        "run",
        status="invalid_argument",
        says=["group"],
        exit_status=2,
        env=ENV,
    )
    assert "pressure" in error["message"] + (error["hint"] or "")
    refused(
        command,
        container,
        "--dataset",
        "texts",
        status="unsupported",
        says=["texts", "variable length"],
        env=ENV,
    )
    refused(
        command, container, "--dataset", "odd", status="unsupported", says=["odd", "40000"], env=ENV
    )


def test_load_wants_a_name_where_there_are_several(container):
    error = refused("load", container, status="invalid_argument", exit_status=2, env=ENV)
    assert "/run/pressure" in error["message"] + (error["hint"] or "")


@pytest.mark.parametrize("name", ["run/temperature", "run/pressure", "alias", "loop/run/pressure"])
def test_load_by_name(container, name):
    answer = report("load", container, "--dataset", name, "--hash", "--tiles", "3", env=ENV)
    assert (answer["format"], answer["shape"], answer["dtype"], answer["hash"]) == (
        "hdf5",
        [7, 6],
        "<i4",
        content_hash(data),
    )
    assert (
        report("load", container, "--dataset", name, "--box", "2:5,1:", env=ENV)["bytes"]
        == 3 * 5 * 4
    )


def test_batches_in_c_order_and_clipped(probe, container, tmp_path):
    for name in ("run/temperature", "run/pressure"):
        probe.call("open", path=str(container), dataset=name)
        probe.call("batches", chunk=[3, 4])
        boxes = probe.call("pieces", path=str(tmp_path / "pieces"))["boxes"]
        assert boxes == [
            [[i, min(i + 3, 7)], [j, min(j + 4, 6)]] for i in (0, 3, 6) for j in (0, 4)
        ]
        want = b"".join(
            data[tuple(slice(lo, hi) for lo, hi in box)].astype("<i4").tobytes() for box in boxes
        )
        assert (tmp_path / "pieces").read_bytes() == want
    for chunk, says in (
        ([3], ["1", "2"]),
        ([3, 4, 1], ["3", "2"]),
        ([3, 0], ["0"]),
        ([-1, 2], ["-1"]),
    ):
        error = probe.refused("batches", chunk=chunk)
        assert error["status"] == "invalid_argument" and all(
            text in error["message"] for text in says
        ), error


# ---- demonstration shards ----


@pytest.mark.parametrize("dtype", ["<f4", ">i2", "?", "<c16", "bfloat16"])
def test_write_load_clean(tmp_path, dtype):
    """The same values as in npy files; h5py reads them."""
    common = ["--num-shards", 5, "--shape", "40,6", "--dtype", dtype, "--seed", 3]
    answer = report("write", tmp_path / "h", "--format", "hdf5", *common, env=ENV)
    report("write", tmp_path / "n", *common, *(["--format", "raw"] if dtype == "bfloat16" else []))
    assert answer["files"] == 5 and answer["shape"] == [40, 6]
    parts = sorted((tmp_path / "h").glob("shard_000?.h5"))
    found = []
    for part in parts:
        with h5py.File(part) as file:
            assert list(file) == ["data"] and (file["data"].dtype == dtype or dtype == "bfloat16")
            found.append(file["data"][...])
    rows = [len(part) for part in found]
    assert sum(rows) == 40 and len(set(rows)) > 1
    if dtype == "bfloat16":
        wanted = (
            numpy.concatenate(
                [numpy.fromfile(part, "<u2") for part in sorted((tmp_path / "n").glob("*.raw"))]
            ).astype("<u4")
            << 16
        )
        assert numpy.array_equal(
            numpy.concatenate(found).astype("<f4").reshape(-1).view("<u4"), wanted
        )
    else:
        wanted = [numpy.load(part) for part in sorted((tmp_path / "n").glob("*.npy"))]
        assert (
            rows == [len(part) for part in wanted]
            and numpy.concatenate(found).tobytes() == numpy.concatenate(wanted).tobytes()
        )
    loaded = report("load", tmp_path / "h", "--check-seed", 3, env=ENV)
    assert loaded["format"] == "hdf5" and loaded["shape"] == [40, 6] and loaded["files"] == 5
    refused("load", tmp_path / "h", "--check-seed", 4, status="mismatch", exit_status=3, env=ENV)
    assert report("clean", tmp_path / "h") == {
        "dir": str(tmp_path / "h"),
        "removed": 5,
        "left": [],
        "folder_kept": None,
    }
    assert not (tmp_path / "h").exists()


def test_clean_takes_no_other_suffix(tmp_path):
    report(
        "write", tmp_path / "h", "--format", "hdf5", "--num-shards", 2, "--shape", "4,2", env=ENV
    )
    note = tmp_path / "h" / ".tegula-write.json"
    note.write_text(note.read_text().replace('"shard_0001.h5"', '"shard_0001.npy"'))
    refused("clean", tmp_path / "h", status="corrupt", says=["shard_0001.npy"])
    assert len(list((tmp_path / "h").iterdir())) == 3
