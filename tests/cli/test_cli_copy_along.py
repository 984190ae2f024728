# tegula copy: what goes along with a dataset, as it is stored: attributes of every type, dimension
# scales. Judged by h5py and h5dump.
#
# SPDX-License-Identifier: Apache-2.0
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it judges the files")

from command import refused, report  # noqa: E402
from test_cli_copy import ENV, leftovers  # noqa: E402

LIBRARIES = {"h5py's": ENV.get("TEGULA_HDF5_LIBRARY")}
LIBRARIES.update(
    {os.path.basename(path): path for path in glob.glob("/usr/lib/*/libhdf5_serial.so.103")}
)
data = numpy.random.default_rng(5).integers(-99, 99, (6, 10)).astype("<i4")


def copy(*arguments, library=None, **options):
    env = {**ENV, **({"TEGULA_HDF5_LIBRARY": library} if library else {})}
    answer = report("copy", *arguments, env=env, **options)
    return [(one["what"], one["name"]) for one in answer["dropped"]]


# ---- attributes ----


def every_attribute(file):
    """Types that h5py makes, and those that only the low level makes."""
    found = file.create_dataset("x", data=data)
    letters = (
        h5py.string_dtype("ascii", 5),
        h5py.string_dtype("utf-8", 7),
        h5py.string_dtype("ascii"),
        h5py.string_dtype("utf-8"),
    )
    for number, dtype in enumerate(letters):
        found.attrs.create(f"text{number}", numpy.array(["ab", "c"], object), dtype=dtype)
        found.attrs.create(f"one{number}", "abc", dtype=dtype)
    for padding in (h5py.h5t.STR_NULLTERM, h5py.h5t.STR_NULLPAD, h5py.h5t.STR_SPACEPAD):
        for charset in (h5py.h5t.CSET_ASCII, h5py.h5t.CSET_UTF8):
            kind = h5py.h5t.C_S1.copy()
            kind.set_size(6)
            kind.set_strpad(padding)
            kind.set_cset(charset)
            name = b"padded%d%d" % (padding, charset)
            h5py.h5a.create(found.id, name, kind, h5py.h5s.create_simple((2,))).write(
                numpy.array([b"a\0b  ", b"c \0d e"]), kind
            )
    found.attrs["color"] = numpy.array([1, 0], h5py.enum_dtype({"red": 0, "green": 1}, "i2"))
    found.attrs.create("flags", numpy.array([True, False]))
    found.attrs["pairs"] = numpy.array([(1.5, -2)], [("a", "<f4"), ("b", ">i8")])
    found.attrs["nested"] = numpy.zeros(2, [("a", "<f4", (2, 3)), ("s", "S3")])
    found.attrs["complex"] = 1 - 2j
    found.attrs["half"] = numpy.float16(0.5)
    found.attrs["big"] = numpy.array([1, 2], ">u4")
    found.attrs.create(
        "sequences",
        numpy.array([numpy.arange(3, dtype="i4"), numpy.arange(1, dtype="i4")], object),
        dtype=h5py.vlen_dtype("i4"),
    )
    found.attrs["opaque"] = numpy.array([b"abcd"], "V4")
    found.attrs["arrays"] = numpy.zeros((2,), numpy.dtype(("<i2", (3,))))
    found.attrs["nothing"] = h5py.Empty("f8")
    found.attrs["no rows"] = numpy.zeros((0, 3))
    found.attrs["é"] = 3
    bits = h5py.h5t.STD_B16BE.copy()
    h5py.h5a.create(found.id, b"bits", bits, h5py.h5s.create(h5py.h5s.SCALAR)).write(
        numpy.array(0x0102, ">u2"), bits
    )


def dumped_attributes(path, name):
    tool = shutil.which("h5dump") or pytest.skip("h5dump is not installed (hdf5-tools)")
    text = subprocess.run(
        [tool, "-d", name, path], capture_output=True, check=True, text=True
    ).stdout
    return [part.split("\n   }\n")[0] for part in re.split(r"\n   (?=ATTRIBUTE)", text)[1:]]


@pytest.mark.parametrize("library", LIBRARIES)
def test_attributes_stay_what_they_are(tmp_path, library):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        every_attribute(file)
        count = len(file["x"].attrs)
    for target, how in (
        ("b.h5", ()),
        ("c.h5", ("--codec", "deflate")),
        ("d.h5", ("--layout", "virtual")),
    ):
        assert (
            copy(tmp_path / "a.h5", tmp_path / target, "--strict", *how, library=LIBRARIES[library])
            == []
        )
        before, after = (dumped_attributes(tmp_path / name, "x") for name in ("a.h5", target))
        assert len(before) == count and after == before
        with h5py.File(tmp_path / "a.h5") as old, h5py.File(tmp_path / target) as new:
            assert list(old["x"].attrs) == list(new["x"].attrs)
            for name in old["x"].attrs:  # h5dump does not show where a text ends
                a, b = (file["x"].attrs.get_id(name) for file in (old, new))
                assert (
                    a.get_type() == b.get_type()
                    and a.get_space().get_simple_extent_type()
                    == b.get_space().get_simple_extent_type()
                ), name
                assert (
                    a.get_type().get_class() != h5py.h5t.STRING
                    or a.get_type().get_strpad() == b.get_type().get_strpad()
                ), name


def comment_of(path, name):
    tool = shutil.which("h5dump") or pytest.skip("h5dump is not installed (hdf5-tools)")
    text = subprocess.run(
        [tool, "-H", "-d", name, path], stdout=subprocess.PIPE, check=True, text=True
    ).stdout
    found = re.search(r'COMMENT "(.*)"', text)
    return found and found[1]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("order", [0, 1, 3], ids=["none", "tracked", "indexed"])
def test_order_of_attributes_and_comment_stay(tmp_path, order, library):
    """In order of creation, DIMENSION_LIST in its place;
    with enough attributes for both ways of storing them."""
    names = [*"zebra", *(f"n{k}" for k in range(12, 0, -1))]
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, some in (("few", names[:4]), ("many", names)):
            how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            how.set_attr_creation_order(order)
            h5py.h5d.create(
                file.id, name.encode(), h5py.h5t.STD_I32LE, h5py.h5s.create_simple((6, 10)), how
            )
            found = file[name]
            found[...] = data
            for k, attribute in enumerate(some):
                found.attrs[attribute] = k
                if k == 2:
                    file[f"scale of {name}"] = numpy.arange(6.0)
                    file[f"scale of {name}"].make_scale("s")
                    found.dims[0].attach_scale(file[f"scale of {name}"])
        h5py.h5o.set_comment(file["few"].id, "measured at 4 °C".encode())
    for how in ((), ("--codec", "deflate"), ("--layout", "virtual")):
        for name, said in (("few", "measured at 4 °C"), ("many", None)):
            target = tmp_path / "b.h5"
            assert (
                copy(
                    tmp_path / "a.h5",
                    target,
                    "--dataset",
                    name,
                    "--strict",
                    "--overwrite",
                    *how,
                    library=LIBRARIES[library],
                )
                == []
            )
            with h5py.File(tmp_path / "a.h5") as old, h5py.File(target) as new:
                assert list(new[name].attrs) == list(old[name].attrs)
                assert order == 0 or list(new[name].attrs)[:5] == [*"zeb", "DIMENSION_LIST", "r"]
                assert dict(new[name].attrs)["z"] == 0 and new[name].dims[0][0][()].tolist() == [
                    *range(6)
                ]
                assert new[name].id.get_create_plist().get_attr_creation_order() == order
            assert comment_of(target, name) == comment_of(tmp_path / "a.h5", name) == said
            target.unlink()


def test_a_format_without_comments(tmp_path):
    """What is listed is of the dataset, also of one that is not named:
    nothing of the file's root."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = data
        file.attrs["root"] = file["x"].attrs["unit"] = "K"
        h5py.h5o.set_comment(file["x"].id, b"a note")
    assert copy(tmp_path / "a.h5", tmp_path / "b.npy") == [("attribute", "unit"), ("comment", None)]
    refused(
        "copy",
        tmp_path / "a.h5",
        tmp_path / "c.npy",
        "--strict",
        env=ENV,
        status="mismatch",
        exit_status=3,
        says=["unit"],
    )
    (listed,) = report("info", tmp_path / "a.h5", "--dataset", "x", "--attributes", env=ENV)[
        "datasets"
    ]
    assert [one["name"] for one in listed["attributes"]] == ["unit"]


def test_what_cannot_go_along_is_listed_by_name(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        found = file.create_dataset("x", data=data)
        found.attrs["where"] = file.ref
        found.attrs["part"] = found.regionref[:2]
        found.attrs.create("links", numpy.array([file.ref, found.ref]), dtype=h5py.ref_dtype)
        found.attrs.create(
            "within", numpy.array([(file.ref, 1)], [("at", h5py.ref_dtype), ("n", "i4")])
        )
        found.attrs["long"] = numpy.zeros(9000)
        found.attrs["unit"] = "K"
    names = ["links", "long", "part", "where", "within"]
    assert copy(tmp_path / "a.h5", tmp_path / "b.h5") == [("attribute", name) for name in names]
    with h5py.File(tmp_path / "b.h5") as file:
        assert dict(file["x"].attrs) == {"unit": "K"}
    error = refused(
        "copy",
        tmp_path / "a.h5",
        tmp_path / "c.h5",
        "--strict",
        env=ENV,
        status="mismatch",
        exit_status=3,
        says=["links", "refers"],
    )
    assert error["path"] == str(tmp_path / "c.h5") and sorted(
        path.name for path in tmp_path.iterdir()
    ) == ["a.h5", "b.h5"]


def test_attributes_behind_an_external_link(tmp_path):
    with h5py.File(tmp_path / "there.h5", "w") as file:
        file["y"] = data
        file["y"].attrs["unit"] = "K"
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = h5py.ExternalLink("there.h5", "/y")
        file["y"] = 1
    assert copy(tmp_path / "a.h5", tmp_path / "b.h5", "--dataset", "x", "--to-dataset", "z") == []
    with h5py.File(tmp_path / "b.h5") as file:
        assert dict(file["z"].attrs) == {"unit": "K"}


# ---- over what is read ----


def sources(folder, **how):
    """inner.h5 /v over s.h5 /g/x, outer.h5 /w over that, both upside down; s.h5 has links to
    /g/x, and another name."""
    with h5py.File(folder / "s.h5", "w") as file:
        file.create_dataset("g/x", data=data, **how)
        file["hard"], file["soft"], file["other"] = file["g/x"], h5py.SoftLink("/g/x"), data + 1
        file["folder"] = h5py.SoftLink("/g")
    (folder / "link.h5").symlink_to("s.h5")
    for name, source, path, inside in (
        ("inner", "s.h5", "v", "g/x"),
        ("outer", "link/inner.h5", "w", "v"),
    ):
        layout = h5py.VirtualLayout(data.shape, data.dtype)
        for row in range(6):
            layout[row] = h5py.VirtualSource(source, inside, data.shape)[5 - row]
        with h5py.File(folder / f"{name}.h5", "w") as file:
            file.create_virtual_dataset(path, layout)
    (folder / "link").symlink_to(".")


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


STORED = {"contiguous": {}, "read by libhdf5": {"chunks": (4, 4), "scaleoffset": 0}}


@pytest.mark.parametrize("stored", STORED)
def test_sources_of_a_virtual_dataset_are_not_replaced(tmp_path, stored):
    """Under whatever name, and over however many virtual datasets:
    they would give other values without a word."""
    sources(tmp_path, **STORED[stored])
    os.link(tmp_path / "s.h5", tmp_path / "again.h5")
    before = content(tmp_path)
    over = [
        ("inner.h5", "s.h5", "--to-dataset", name) for name in ("g/x", "hard", "soft", "folder/x")
    ]
    over += [
        ("outer.h5", "s.h5", "--to-dataset", "g/x"),
        ("outer.h5", "inner.h5", "--to-dataset", "v"),
        ("inner.h5", "link.h5", "--to-dataset", "g/x"),
    ]
    for source, target, *words in over:
        error = refused(
            "copy",
            tmp_path / source,
            tmp_path / target,
            "--overwrite",
            *words,
            env=ENV,
            status="invalid_argument",
            exit_status=2,
            says=["that would replace a source of what is copied"],
        )
        assert error["hint"]
    for target, *words in (
        ("s.h5", "--format", "npy"),
        ("again.h5", "--format", "raw"),
        ("s.h5", "--format", "npy", "--shards", "2"),
        ("link.h5", "--format", "npy"),
    ):
        refused(
            "copy",
            tmp_path / "outer.h5",
            tmp_path / target,
            "--overwrite",
            *words,
            env=ENV,
            status="invalid_argument",
            exit_status=2,
            says=["that would replace what is copied"],
        )
    assert content(tmp_path) == before


@pytest.mark.parametrize("stored", STORED)
def test_beside_its_sources_a_virtual_dataset_can_be_copied(tmp_path, stored):
    sources(tmp_path, **STORED[stored])
    for source, target, name in (
        ("inner.h5", "s.h5", "new"),
        ("outer.h5", "s.h5", "other"),
        ("outer.h5", "inner.h5", "w"),
        ("outer.h5", "outer.h5", "w"),
    ):
        with h5py.File(tmp_path / source) as file:
            want = file["v" if source == "inner.h5" else "w"][()]
        assert copy(tmp_path / source, tmp_path / target, "--to-dataset", name, "--overwrite") == []
        with h5py.File(tmp_path / target) as file:
            assert (file[name][()] == want).all() and not file[name].is_virtual
    with h5py.File(tmp_path / "inner.h5") as file:
        assert (file["v"][()] == data[::-1]).all()


# ---- scales ----


def write_scales(path, units="days"):
    """/g/x and /g/y over /time and scales beside them; /square over one scale on both axes."""
    with h5py.File(path, "w") as file:
        file["time"] = numpy.arange(6.0)
        file["time"].attrs["units"] = units
        file.create_dataset(
            "g/lon",
            data=numpy.arange(10, dtype=">f4"),
            chunks=(4,),
            compression="gzip",
            shuffle=True,
        )
        file["g/names"] = numpy.array([*"abcdefghi", "é"], object)
        for name, title in (("time", "the time"), ("g/lon", "longitude"), ("g/names", "")):
            file[name].make_scale(title)
        for name in ("g/x", "g/y", "square"):
            file[name] = data if name != "square" else numpy.eye(6)
            file[name].dims[0].attach_scale(file["time"])
            file[name].dims[1].attach_scale(file["time" if name == "square" else "g/lon"])
        file["g/x"].dims[1].attach_scale(file["g/names"])
        file["g/x"].dims[0].label = "t"


def scales(path, name):
    """For each axis the scales: what they are called, where they are, their type,
    values and attributes."""
    with h5py.File(path) as file:
        found = []
        for axis in file[name].dims:
            assert all(
                h5py.h5ds.is_attached(file[name].id, scale.id, number)
                for number, dim in enumerate(file[name].dims)
                for scale in dim.values()
            )
            found.append(
                [
                    (
                        title,
                        scale.name,
                        scale.dtype,
                        scale.chunks,
                        scale.compression,
                        scale[()].tolist(),
                        {
                            key: value
                            for key, value in scale.attrs.items()
                            if key != "REFERENCE_LIST"
                        },
                    )
                    for title, scale in axis.items()
                ]
            )
        return found


def users(path, name):
    with h5py.File(path) as file:
        listed = file[name].attrs["REFERENCE_LIST"]
        assert all(listed["dataset"]), "none leads to nowhere"
        return sorted((file[one].name, int(axis)) for one, axis in listed)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    "how",
    [(), ("--codec", "deflate"), ("--layout", "virtual", "--tiles", "2")],
    ids=["plain", "chunked", "virtual"],
)
def test_scales_go_along(tmp_path, library, how):
    write_scales(tmp_path / "a.h5")
    assert (
        copy(
            tmp_path / "a.h5",
            tmp_path / "b.h5",
            "--dataset",
            "g/x",
            "--strict",
            *how,
            library=LIBRARIES[library],
        )
        == []
    )
    assert scales(tmp_path / "b.h5", "g/x") == scales(tmp_path / "a.h5", "g/x")
    assert users(tmp_path / "b.h5", "time") == [("/g/x", 0)] and users(
        tmp_path / "b.h5", "g/names"
    ) == [("/g/x", 1)]
    with h5py.File(tmp_path / "b.h5") as file:
        found = file["g/x"]
        assert (
            found.dims[0].label == "t"
            and found.dims[1].label == ""
            and numpy.array_equal(found[...], data)
        )
        assert found.dims[0][0] == file["time"] and found.dims[1]["longitude"] == file["g/lon"]
        assert sorted(file["g"]) == ["lon", "names", "x"]
    tool = shutil.which("h5dump") or pytest.skip("h5dump is not installed (hdf5-tools)")
    assert (
        subprocess.run(
            [tool, tmp_path / "b.h5"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ).returncode
        == 0
    )
    with h5py.File(tmp_path / "b.h5", "r+") as file:  # libhdf5_hl can work with what we attached
        file["g/x"].dims[1].detach_scale(file["g/lon"])
        file["g/x"].dims[1].attach_scale(file["time"])
    assert [one[0] for one in scales(tmp_path / "b.h5", "g/x")[1]] == ["", "the time"]


def test_scales_are_shared(tmp_path):
    """A second dataset uses the scales that are there already;
    one scale may be that of several axes."""
    write_scales(tmp_path / "a.h5")
    for name in ("g/x", "g/y", "square"):
        assert copy(tmp_path / "a.h5", tmp_path / "b.h5", "--dataset", name, "--strict") == []
    for name in ("g/x", "g/y", "square"):
        assert scales(tmp_path / "b.h5", name) == scales(tmp_path / "a.h5", name)
    assert users(tmp_path / "b.h5", "time") == users(tmp_path / "a.h5", "time")
    assert (
        copy(
            tmp_path / "a.h5",
            tmp_path / "b.h5",
            "--dataset",
            "square",
            "--overwrite",
            "--chunks",
            "2,2",
        )
        == []
    )
    assert users(tmp_path / "b.h5", "time") == users(tmp_path / "a.h5", "time")


def test_scales_keep_their_place_beside_the_dataset(tmp_path):
    write_scales(tmp_path / "a.h5")
    assert (
        copy(tmp_path / "a.h5", tmp_path / "b.h5", "--dataset", "g/x", "--to-dataset", "k/z/y")
        == []
    )
    assert [[one[1] for one in axis] for axis in scales(tmp_path / "b.h5", "k/z/y")] == [
        ["/time"],
        ["/k/z/lon", "/k/z/names"],
    ]


@pytest.mark.parametrize("other", ["values", "units", "title", "group", "number", "itself"])
def test_another_one_of_the_name_stays(tmp_path, other):
    write_scales(tmp_path / "a.h5")
    write_scales(tmp_path / "b.h5", units="hours" if other == "units" else "days")
    with h5py.File(tmp_path / "b.h5", "r+") as file:
        del file["g"], file["square"], file["time"].attrs["REFERENCE_LIST"]
        if other == "values":
            file["time"][2] = 99
        elif other == "title":
            file["time"].attrs["NAME"] = numpy.bytes_("hours")
        elif other != "units":
            del file["time"]
            if other == "group":
                file.create_group("time")
            elif other == "number":
                file["time"] = 3
    name = "time" if other == "itself" else "g/x"
    if other == "itself":
        with h5py.File(tmp_path / "b.h5", "r+") as file:
            assert "time" not in file
    dropped = copy(tmp_path / "a.h5", tmp_path / "b.h5", "--dataset", "g/x", "--to-dataset", name)
    assert dropped == [("dimension scale", "/time")]
    with h5py.File(tmp_path / "b.h5") as file:
        assert [len(axis) for axis in file[name].dims] == [0, 2]
        assert other != "values" or file["time"][2] == 99
    refused(
        "copy",
        tmp_path / "a.h5",
        tmp_path / "b.h5",
        "--dataset",
        "g/x",
        "--to-dataset",
        name,
        "--overwrite",
        "--strict",
        env=ENV,
        status="mismatch",
        exit_status=3,
        says=["dimension scale", "/time"],
    )
    assert leftovers(tmp_path) == []


def test_scales_that_cannot_go_along(tmp_path):
    write_scales(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        layout = h5py.VirtualLayout((6,), "<f8")
        layout[:] = h5py.VirtualSource("a.h5", "time", (6,))
        file.create_virtual_dataset("mapped", layout)
        file["gone"] = numpy.arange(6.0)
        file["g/lon"].attrs["where"] = file.ref
        for name in ("mapped", "gone"):
            file[name].make_scale(name)
            file["g/x"].dims[0].attach_scale(file[name])
        del file["gone"]
    dropped = report("copy", tmp_path / "a.h5", tmp_path / "b.h5", "--dataset", "g/x", env=ENV)[
        "dropped"
    ]
    assert [(one["what"], one["name"]) for one in dropped] == [
        ("dimension scale", "/mapped"),
        ("dimension scale", "of axis 0"),
        ("attribute", "where"),
    ]
    assert "other files" in dropped[0]["reason"] and "/g/lon" in dropped[2]["reason"]
    assert [[one[1] for one in axis] for axis in scales(tmp_path / "b.h5", "g/x")] == [
        ["/time"],
        ["/g/lon", "/g/names"],
    ]
    # cut along the first axis, whose scale is that of the whole
    assert copy(
        tmp_path / "a.h5",
        tmp_path / "shards",
        "--dataset",
        "g/y",
        "--format",
        "hdf5",
        "--shards",
        2,
    ) == [("dimension scale", "/time"), ("attribute", "where")]
    for part in sorted((tmp_path / "shards").iterdir()):
        assert [[one[1] for one in axis] for axis in scales(part, "g/y")] == [[], ["/g/lon"]]
    assert ("attribute", "DIMENSION_LIST") in copy(
        tmp_path / "a.h5", tmp_path / "b.npy", "--dataset", "g/x"
    )


# ---- a dataset in the place of another ----


def test_a_copy_onto_itself_keeps_its_scales(tmp_path):
    write_scales(tmp_path / "a.h5")
    before = scales(tmp_path / "a.h5", "g/x"), users(tmp_path / "a.h5", "time")
    assert (
        copy(
            tmp_path / "a.h5",
            tmp_path / "a.h5",
            "--dataset",
            "g/x",
            "--overwrite",
            "--codec",
            "shuffle,deflate",
            "--strict",
        )
        == []
    )
    assert (scales(tmp_path / "a.h5", "g/x"), users(tmp_path / "a.h5", "time")) == before


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_scale_in_its_own_place(tmp_path, library):
    """Those whose scale it is find the new one."""
    write_scales(tmp_path / "a.h5")
    before = users(tmp_path / "a.h5", "time")
    assert (
        copy(
            tmp_path / "a.h5",
            tmp_path / "a.h5",
            "--dataset",
            "time",
            "--overwrite",
            "--chunks",
            "2",
            "--strict",
            library=LIBRARIES[library],
        )
        == []
    )
    assert users(tmp_path / "a.h5", "time") == before
    for name in ("g/x", "g/y", "square"):
        assert [one[1:5] for one in scales(tmp_path / "a.h5", name)[0]] == [
            ("/time", numpy.dtype("f8"), (2,), None)
        ]


def test_what_is_no_scale_in_the_place_of_one(tmp_path):
    """No reference is left that leads to what is no more, or to what took its place."""
    write_scales(tmp_path / "a.h5")
    numpy.save(tmp_path / "n.npy", numpy.arange(6.0))
    copy(tmp_path / "n.npy", tmp_path / "a.h5", "--to-dataset", "time", "--overwrite")
    numpy.save(tmp_path / "n.npy", data)
    copy(tmp_path / "n.npy", tmp_path / "a.h5", "--to-dataset", "g/x", "--overwrite")
    with h5py.File(tmp_path / "a.h5") as file:
        assert [len(axis) for axis in file["g/y"].dims] == [0, 1] and "DIMENSION_LIST" not in file[
            "square"
        ].attrs
        assert (
            "REFERENCE_LIST" not in file["time"].attrs
            and "REFERENCE_LIST" not in file["g/names"].attrs
        )
    assert users(tmp_path / "a.h5", "g/lon") == [("/g/y", 1)]


def test_a_dataset_with_another_name_keeps_its_scales(tmp_path):
    """Replacing one of two names leaves the object, and what is attached to it."""
    write_scales(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["same"], file["soft"] = file["g/x"], h5py.SoftLink("/g/y")
    numpy.save(tmp_path / "n.npy", data)
    for name in ("same", "soft"):
        copy(tmp_path / "n.npy", tmp_path / "a.h5", "--to-dataset", name, "--overwrite")
    assert users(tmp_path / "a.h5", "time") == [
        ("/g/x", 0),
        ("/g/y", 0),
        ("/square", 0),
        ("/square", 1),
    ]
    assert [len(axis) for axis in scales(tmp_path / "a.h5", "g/x")] == [1, 2]


def test_the_copy_of_a_scale(tmp_path):
    write_scales(tmp_path / "a.h5")
    assert copy(tmp_path / "a.h5", tmp_path / "b.h5", "--dataset", "time") == [
        ("attribute", "REFERENCE_LIST")
    ]
    with h5py.File(tmp_path / "b.h5", "r+") as file:
        assert file["time"].is_scale and file["time"].attrs["units"] == "days"


def test_scales_into_every_kind_of_file(tmp_path):
    """User blocks, paged files, the newest formats: references count from other places there. Not
    those with shorter addresses: libhdf5 would write beyond its memory (H5Ocopy, all releases)."""
    write_scales(tmp_path / "a.h5")
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "hdf5"))
    from test_hdf5_save_into import KINDS

    assert len(KINDS) >= 14
    for name, make in KINDS.items():
        path = tmp_path / name / "b.h5"
        path.parent.mkdir()
        make(path)
        if name.startswith("offsets_of"):
            dropped = report("copy", tmp_path / "a.h5", path, "--dataset", "g/x", env=ENV)[
                "dropped"
            ]
            assert [one["name"] for one in dropped] == ["/time", "/g/lon", "/g/names"] and all(
                "width" in one["reason"] for one in dropped
            )
            continue
        for dataset in ("g/x", "square"):
            assert (
                copy(
                    tmp_path / "a.h5",
                    path,
                    "--dataset",
                    dataset,
                    "--to-dataset",
                    "new/" + dataset,
                    "--strict",
                )
                == []
            ), name
        found = scales(path, "new/g/x")
        assert [[one[1] for one in axis] for axis in found] == [
            ["/time"],
            ["/new/g/lon", "/new/g/names"],
        ], name
        assert [[one[5] for one in axis] for axis in found] == [
            [one[5] for one in axis] for axis in scales(tmp_path / "a.h5", "g/x")
        ], name
        assert users(path, "time") == [("/new/g/x", 0)] and users(path, "new/time") == [
            ("/new/square", 0),
            ("/new/square", 1),
        ], name
        assert [one[1] for axis in scales(path, "new/square") for one in axis] == [
            "/new/time"
        ] * 2, name


@pytest.mark.parametrize("source", ["shards", "shards/part_*.h5", "m.json"])
def test_attributes_of_a_set_are_those_of_the_first_file(tmp_path, source):
    """A manifest has none."""
    (tmp_path / "shards").mkdir()
    for number, rows in enumerate(numpy.split(data, [2])):
        with h5py.File(tmp_path / "shards" / f"part_{number}.h5", "w") as file:
            file["x"], file["col"], file["row"] = (
                rows,
                numpy.arange(10.0),
                numpy.arange(float(len(rows))),
            )
            file["x"].attrs["number"] = number
            for axis, name in enumerate(("row", "col")):
                file[name].make_scale(name)
                file["x"].dims[axis].attach_scale(file[name])
    report(
        "info", tmp_path / "shards", "--dataset", "x", "--manifest", tmp_path / "m.json", env=ENV
    )
    dropped = copy(
        tmp_path / source, tmp_path / "b.h5", *([] if source == "m.json" else ["--dataset", "x"])
    )
    assert dropped == (
        [("attributes", None)] if source == "m.json" else [("dimension scale", "/row")]
    )
    with h5py.File(tmp_path / "b.h5") as file:
        assert numpy.array_equal(file["x"][...], data)
        assert source == "m.json" or (
            file["x"].attrs["number"] == 0
            and file["x"].dims[1]["col"].shape == (10,)
            and len(file["x"].dims[0]) == 0
        )


@pytest.mark.parametrize("library", LIBRARIES.values(), ids=LIBRARIES)
def test_within_one_file_scales_stay_whatever_they_are(tmp_path, library):
    """Attributes of sequences and elements of more than 64 MiB are not compared; it need not be."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = data
        scale = file.create_dataset("rows", data=numpy.arange(6.0))
        scale.attrs.create(
            "sequences",
            numpy.array([numpy.arange(3, dtype="i4"), numpy.arange(1, dtype="i4")], object),
            dtype=h5py.vlen_dtype("i4"),
        )
        scale.make_scale("rows")
        file["x"].dims[0].attach_scale(scale)
    assert (
        copy(
            "a.h5",
            "a.h5",
            "--dataset",
            "x",
            "--overwrite",
            "--codec",
            "zstd:3",
            library=library,
            cwd=tmp_path,
        )
        == []
    )
    assert (
        copy("a.h5", "a.h5", "--dataset", "x", "--to-dataset", "y", library=library, cwd=tmp_path)
        == []
    )
    with h5py.File(tmp_path / "a.h5") as file:
        users = {
            (file[reference].name, int(axis))
            for reference, axis in file["rows"].attrs["REFERENCE_LIST"]
        }
        assert users == {("/x", 0), ("/y", 0)} and len(file["rows"].attrs["REFERENCE_LIST"]) == 2
        assert file["x"].dims[0][0] == file["rows"] == file["y"].dims[0][0]


def test_a_scale_that_cannot_forget_what_is_replaced_refuses_it(tmp_path):
    """Its list would lead to whatever takes the old one's place in the file."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"], file["rows"], file["fine"] = data, numpy.arange(6.0), data
        file["rows"].make_scale("rows")
        for name in ("x", "fine"):
            file[name].dims[0].attach_scale(file["rows"])
        users = [(file["x"].ref, 0)] + [(file["fine"].ref, 0)] * 3950
        del file["rows"].attrs["REFERENCE_LIST"]
        kind = numpy.dtype([("dataset", h5py.ref_dtype), ("dimension", "u4")])
        file["rows"].attrs.create("REFERENCE_LIST", numpy.array(users, kind))
    save = ["a.h5", "a.h5", "--dataset", "x", "--overwrite", "--layout", "contiguous"]
    copy(*save, cwd=tmp_path)  # it forgets the old one, and is a scale of the new one
    with h5py.File(tmp_path / "a.h5") as file:
        found = [file[reference].name for reference, _ in file["rows"].attrs["REFERENCE_LIST"]]
        assert found == ["/fine"] * 3950 + ["/x"] and len(file["x"].dims[0]) == 1
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        del file["rows"].attrs["REFERENCE_LIST"]
        file["rows"].attrs["REFERENCE_LIST"] = "no list"
    before = (tmp_path / "a.h5").read_bytes()
    refused("copy", *save, status="unsupported", env=ENV, cwd=tmp_path, says=["dimension scales"])
    assert (tmp_path / "a.h5").read_bytes() == before and leftovers(tmp_path) == []


# ---- how far it may grow ----


@pytest.mark.parametrize("library", LIBRARIES.values(), ids=LIBRARIES)
def test_a_chunked_copy_may_grow_as_the_original(tmp_path, library):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=data, chunks=(4, 5), maxshape=(None, 10), compression="gzip")
        file.create_dataset("y", data=data, chunks=(4, 5), maxshape=(6, 30))
        file.create_dataset("z", data=data, chunks=(4, 5))
    ways = {"same": [], "zstd": ["--codec", "zstd:3"], "flat": ["--layout", "contiguous"]}
    for name in "xyz":
        for way, arguments in ways.items():
            copy("a.h5", f"{way}.h5", "--dataset", name, *arguments, library=library, cwd=tmp_path)
    copy(
        "a.h5",
        "cut",
        "--dataset",
        "x",
        "--shards",
        "2",
        "--format",
        "hdf5",
        library=library,
        cwd=tmp_path,
    )
    expected = {"x": (None, 10), "y": (6, 30), "z": (6, 10)}
    for way in ways:
        with h5py.File(tmp_path / f"{way}.h5") as file:
            assert {name: file[name].maxshape for name in "xyz"} == (
                dict.fromkeys("xyz", (6, 10)) if way == "flat" else expected
            ), way
    with h5py.File(tmp_path / "cut/shard_0001.h5") as file:
        assert file["x"].maxshape == (None, 10) and (file["x"][:] == data[3:]).all()
    with h5py.File(tmp_path / "same.h5", "r+") as file:
        file["x"].resize(9, axis=0)
        file["x"][6:] = 7
        assert (file["x"][:6] == data).all() and (file["x"][6:] == 7).all()
    assert report("load", "same.h5", "--dataset", "x", env=ENV, cwd=tmp_path)["shape"] == [9, 10]


# ---- scales with very many users ----

AXES = 30


def write_users(path, count, libver):
    """/s is the scale of all axes of /d0, /d1, ...: what libhdf5_hl would write one by one."""
    entry = numpy.dtype([("dataset", h5py.ref_dtype), ("dimension", "<u4")], align=True)
    with h5py.File(path, "w", libver=libver) as file:
        file["s"] = numpy.array([1.0])
        file["s"].make_scale("s")
        users = numpy.zeros((count, AXES), entry)
        for k in range(count):
            found = file.create_dataset(f"d{k}", data=numpy.full((1,) * AXES, k))
            axes = numpy.empty(AXES, object)
            axes[:] = [numpy.array([file["s"].ref], h5py.ref_dtype)] * AXES
            found.attrs.create("DIMENSION_LIST", axes, dtype=h5py.vlen_dtype(h5py.ref_dtype))
            users[k] = [(found.ref, axis) for axis in range(AXES)]
        file["s"].attrs.create("REFERENCE_LIST", users.ravel(), dtype=entry)


def used_by(path, name="s"):
    """The datasets and axes that the scale says, each of which has it."""
    with h5py.File(path) as file:
        names = {h5py.h5o.get_info(file[one].id).addr: "/" + one for one in file}
        users = [
            (h5py.h5r.dereference(dataset, file.id), axis)
            for dataset, axis in file[name].attrs["REFERENCE_LIST"]
        ]
        found = [(names[h5py.h5o.get_info(dataset).addr], axis) for dataset, axis in users]
        for dataset, axis in found[::97]:
            assert [one.name for one in file[dataset].dims[axis].values()] == ["/" + name]
        assert len(set(found)) == len(found)
        return found


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_scale_of_more_axes_than_a_header_of_64_kib_can_tell(tmp_path, library):
    """Its users are replaced, it gets more, and it is replaced itself."""
    write_users(tmp_path / "a.h5", 150, ("v108", "v108"))
    library = LIBRARIES[library]
    every = {(f"/d{k}", axis) for k in range(150) for axis in range(AXES)}
    assert set(used_by(tmp_path / "a.h5")) == every and len(every) == 4500
    assert (
        copy(
            tmp_path / "a.h5",
            tmp_path / "a.h5",
            "--dataset",
            "d7",
            "--to-dataset",
            "d9",
            "--overwrite",
            library=library,
        )
        == []
    )
    assert (
        copy(
            tmp_path / "a.h5",
            tmp_path / "a.h5",
            "--dataset",
            "d7",
            "--to-dataset",
            "new",
            library=library,
        )
        == []
    )
    every |= {("/new", axis) for axis in range(AXES)}
    assert set(used_by(tmp_path / "a.h5")) == every
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["t"] = numpy.array([5.0])
        file["t"].make_scale("t")
    assert (
        copy(
            tmp_path / "other.h5",
            tmp_path / "a.h5",
            "--to-dataset",
            "s",
            "--overwrite",
            library=library,
        )
        == []
    )
    assert set(used_by(tmp_path / "a.h5")) == every
    with h5py.File(tmp_path / "a.h5") as file:
        assert (
            file["s"][()] == 5
            and file["s"].attrs["NAME"] == b"t"
            and set(file["s"].attrs) == {"CLASS", "NAME", "REFERENCE_LIST"}
        )
        assert (
            (file["d9"][()] == 7).all()
            and (file["new"][()] == 7).all()
            and (file["d149"][()] == 149).all()
        )


def test_where_the_header_has_no_room_a_scale_gets_no_more_users(tmp_path):
    """In files of the earliest form 4,095: the list of those that it has stays."""
    write_users(tmp_path / "a.h5", 136, None)
    before = used_by(tmp_path / "a.h5")
    assert len(before) == 4080
    dropped = copy(tmp_path / "a.h5", tmp_path / "a.h5", "--dataset", "d7", "--to-dataset", "new")
    assert set(dropped) == {("dimension scale", "/s")}
    after = used_by(tmp_path / "a.h5")
    assert after[:4080] == before and len(after) == 4080 + AXES - len(dropped) <= 4095
    with h5py.File(tmp_path / "a.h5") as file:
        assert sum(len(axis) for axis in file["new"].dims) == len(after) - 4080
