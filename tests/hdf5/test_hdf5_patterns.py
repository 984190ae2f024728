# Several datasets of one file as one array: those that a pattern of names matches, in the order of
# their numbers. h5py is the judge.
#
# SPDX-License-Identifier: Apache-2.0
import json
import sys

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes and judges these files")

from pathlib import Path  # noqa: E402

import generate_arrays as gen  # noqa: E402
from files import check_equal, load_all  # noqa: E402
from probe import check_error  # noqa: E402
from reference_hash import content_hash  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from command import refused, report  # noqa: E402

LENGTHS = (100, 100, 37)
FRAME = (8, 6)


def frames(dtype="<u4"):
    return numpy.random.default_rng(11).integers(0, 250, (sum(LENGTHS), *FRAME)).astype(dtype)


def parts(data, lengths=LENGTHS):
    return numpy.split(data, numpy.cumsum(lengths)[:-1])


def master(folder, data, **options):
    """As EIGER detectors write it: the master has numbered links to what lies
    in data files beside it."""
    folder.mkdir(exist_ok=True)
    with h5py.File(folder / "x_master.h5", "w") as file:
        for number, part in enumerate(parts(data), 1):
            name = "x_data_%06d.h5" % number
            with h5py.File(folder / name, "w") as beside:
                beside.create_dataset("entry/data/data", data=part, chunks=(1, *FRAME), **options)
            file["entry/data/data_%06d" % number] = h5py.ExternalLink(name, "/entry/data/data")
        file["entry/instrument/name"] = numpy.arange(3)
    return folder / "x_master.h5"


def by_h5py(path, names):
    with h5py.File(path) as file:
        return numpy.concatenate([file[name][()] for name in names])


@pytest.mark.parametrize(
    "options", [{}, {"compression": "gzip"}, {"compression": "lzf", "shuffle": True}]
)
def test_the_links_of_a_master_are_one_stack(probe, tmp_path, options):
    data = frames()
    path = master(tmp_path / "run", data, **options)
    names = ["/entry/data/data_%06d" % number for number in (1, 2, 3)]
    expected = by_h5py(path, names)
    check_equal(expected, data)
    for pattern in (
        "/entry/data/data_*",
        "entry/data/data_00000?",
        "//entry//data/data_00000[0-9]/",
        "/entry/d*a/data_*",
    ):
        got, info, _ = load_all(probe, tmp_path, path, tiles=5, dataset=pattern)
        check_equal(got, expected)
        assert info["files"] == 4 and info["format"] == "hdf5"


def test_every_command_takes_a_pattern(tmp_path):
    data = frames()
    path = master(tmp_path / "run", data, compression="gzip")
    numpy.save(tmp_path / "all.npy", data)
    named = ["--dataset", "/entry/data/data_*"]
    assert report("load", path, *named, "--hash")["hash"] == content_hash(data)
    assert report("compare", path, tmp_path / "all.npy", *named)["equal"]
    assert report("verify", path, *named)["problems"] == []
    info = report("info", path, *named, "--manifest", tmp_path / "run.json")
    assert [(found["name"], found["shape"]) for found in info["datasets"]] == [
        ("/entry/data/data", list(data.shape))
    ]
    assert report("compare", tmp_path / "run.json", tmp_path / "all.npy")["equal"]
    report("copy", path, tmp_path / "copy.h5", *named)
    check_equal(by_h5py(tmp_path / "copy.h5", ["/entry/data/data"]), data)
    report("copy", path, tmp_path / "copy.npy", *named)
    check_equal(numpy.load(tmp_path / "copy.npy"), data)
    with h5py.File(tmp_path / "run" / "x_data_000002.h5", "r+") as file:
        file["entry/data/data"][3, 4, 5] += 1
    found = report("compare", path, tmp_path / "all.npy", *named, status=3)
    assert found["index"] == [103, 4, 5]


def test_datasets_of_one_file(probe, tmp_path):
    """Of any layout side by side, of either byte order, with none and with one row, in numeric
    order; aliases are names, too."""
    data = numpy.random.default_rng(3).integers(-99, 99, (41, 5)).astype("<i2")
    lengths = (7, 0, 1, 12, 3, 2, 2, 2, 2, 2, 8)
    with h5py.File(tmp_path / "s.h5", "w") as file:
        for number, part in enumerate(parts(data, lengths)):
            options = (
                {"chunks": (3, 5), "compression": "gzip", "maxshape": (None, 5)}
                if number % 3 == 1
                else {}
            )
            file.create_dataset(
                "g/part_%d" % number, data=part, dtype=">i2" if number % 2 else "<i2", **options
            )
        file["other"] = numpy.arange(4)
        file["g/last"] = h5py.SoftLink("/g/part_10")
        for number in range(3):
            file["alias/x%d" % number] = (
                file["g/part_0"] if number == 1 else h5py.SoftLink("/g/part_3")
            )
    names = ["/g/part_%d" % number for number in range(11)]
    check_equal(by_h5py(tmp_path / "s.h5", names), data)
    got, info, _ = load_all(probe, tmp_path, tmp_path / "s.h5", tiles=4, dataset="/g/part_*")
    check_equal(got, data)
    assert info["files"] == 1
    got, _, _ = load_all(probe, tmp_path, tmp_path / "s.h5", dataset="/g/part_[1-3]")
    check_equal(got, data[7:20])
    got, _, _ = load_all(probe, tmp_path, tmp_path / "s.h5", dataset="/*/x?")
    check_equal(got, by_h5py(tmp_path / "s.h5", ["/alias/x0", "/alias/x1", "/alias/x2"]))
    got, _, _ = load_all(probe, tmp_path, tmp_path / "s.h5", dataset="/g/la?t")
    check_equal(got, data[33:])


def test_a_part_in_the_middle(probe, tmp_path):
    data = numpy.arange(60, dtype="f8").reshape(12, 5)
    with h5py.File(tmp_path / "m.h5", "w") as file:
        for number, part in enumerate(parts(data, (4, 3, 5)), 8):
            file["run_%02d/image" % number] = part
            file["run_%02d/dark" % number] = part + 1
        file["run_11/dark"] = data[:2]
        file["run_12"] = data
    got, _, _ = load_all(probe, tmp_path, tmp_path / "m.h5", dataset="/run_*/image")
    check_equal(got, data)
    got, _, _ = load_all(probe, tmp_path, tmp_path / "m.h5", dataset="run_*/dark")
    check_equal(got, numpy.concatenate([data + 1, data[:2]]))
    error = probe.refused("open", path=str(tmp_path / "m.h5"), dataset="/run_*")
    check_error(error, "invalid_argument", ["/run_08", "is a group"], path=tmp_path / "m.h5")


def test_a_name_as_it_stands_wins(probe, tmp_path):
    with h5py.File(tmp_path / "l.h5", "w") as file:
        for number, name in enumerate(
            ("T [K]", "T K", "a*", "a1", "a2", "b\\*", "b*", "b1", "g*/x", "g1/x")
        ):
            file[name] = numpy.full((2, 3), number, "i4")

    def value(name):
        return load_all(probe, tmp_path, tmp_path / "l.h5", dataset=name)[0][:, 0].tolist()

    assert value("/T [K]") == [0, 0] and value("T \\[K]") == [0, 0] and value("T ?K]") != [1, 1]
    assert (
        value("a*") == [2, 2]
        and value("a\\*") == [2, 2]
        and value("a[*]") == [2, 2]
        and value("a?"[:1] + "[0-9]") == [3, 3, 4, 4]
    )
    assert value("b\\*") == [5, 5] and value("b[*]") == [6, 6] and value("b[0-9]") == [7, 7]
    assert value("g*/x") == [8, 8] and value("g[1]/x") == [9, 9]


def bad_file(path):
    """The names, and what is wrong with the datasets that have them."""
    with h5py.File(path, "w") as file:
        for name in (
            "hole/x0",
            "hole/x1",
            "hole/x3",
            "twice/x1",
            "twice/x01",
            "pad/x001",
            "pad/x02",
            "two/a1b1",
            "two/a2b2",
            "two/a2b3",
            "foreign/x1",
            "foreign/x2",
            "foreign/y3",
            "dtype/x1",
            "shape/x1",
            "axes/x1",
            "scalar/x1",
            "refused/x1",
            "group/x1",
        ):
            file[name] = numpy.zeros((4, 3), "f4")
        file["dtype/x2"] = numpy.zeros((4, 3), "f8")
        file["shape/x2"] = numpy.zeros((4, 2), "f4")
        file["axes/x2"] = numpy.zeros((4, 3, 1), "f4")
        file["scalar/x2"] = numpy.float32(1)
        file["refused/x2"] = ["of any", "length"]
        file.create_group("group/x2")
        file["nowhere/x1"] = h5py.ExternalLink("absent.h5", "/x")
        file["nowhere/x2"] = h5py.ExternalLink("absent.h5", "/x")


@pytest.mark.parametrize(
    "pattern, status, names, hint",
    [
        ("/hole/x*", "incomplete", ["/hole/x*", "number 2", "/hole/x1", "/hole/x3"], "[ ]"),
        ("/twice/x*", "mismatch", ["/twice/x1", "/twice/x01", "the same number"], "pattern"),
        (
            "/pad/x*",
            "mismatch",
            ["/pad/x001", "/pad/x02", "pad their numbers differently"],
            "pattern",
        ),
        ("/two/*", "mismatch", ["/two/a", "more than one number"], "pattern"),
        (
            "/foreign/*",
            "mismatch",
            ["no sequence of datasets", "/foreign/y3", "/foreign/x"],
            "pattern",
        ),
        (
            "/dtype/x*",
            "mismatch",
            ['the dtype of "/dtype/x2"', "<f8", "/dtype/x1", "<f4"],
            "same dtype",
        ),
        ("/shape/x*", "mismatch", ["/shape/x2", "(2,)", "/shape/x1", "(3,)"], "same shape"),
        ("/axes/x*", "mismatch", ["/axes/x2", "(3, 1)", "/axes/x1", "(3,)"], ""),
        ("/scalar/x*", "mismatch", ["/scalar/x2", "scalar"], ""),
        ("/refused/x*", "unsupported", ["/refused/x2"], ""),
        ("/group/x*", "invalid_argument", ["/group/x2", "group"], ""),
        ("/nowhere/x*", "not_found", ["absent.h5"], "external link"),
        ("/hole/y*", "not_found", ["no dataset in", "/hole/y*"], "/hole/x0"),
        ("/whole/x*", "not_found", ["/whole"], "/hole/x0"),
        ("/hole/x0/y*", "invalid_argument", ["/hole/x0", "no group"], ""),
    ],
)
def test_what_does_not_fit_is_refused_by_name(probe, tmp_path, pattern, status, names, hint):
    bad_file(tmp_path / "b.h5")
    error = probe.refused("open", path=str(tmp_path / "b.h5"), dataset=pattern)
    check_error(error, status, names)
    assert "b.h5" in error["message"] or "absent.h5" in error["message"]
    assert hint in error.get("hint", "")


def test_a_changed_dtype_and_options_of_raw_files(probe, tmp_path):
    bad_file(tmp_path / "b.h5")
    path = str(tmp_path / "b.h5")
    check_error(
        probe.refused("open", path=path, dataset="/hole/x[01]", dtype="f8"),
        "mismatch",
        ["<f4", "<f8"],
    )
    check_error(
        probe.refused("open", path=path, dataset="/hole/x[01]", offset=8),
        "invalid_argument",
        ["b.h5"],
    )
    probe.call("open", path=path, dataset="/hole/x[01]", dtype="f4")


def test_several_files_each_with_a_pattern(probe, tmp_path):
    """The datasets of each file in order, then the files; also where the files lie behind links."""
    data = numpy.random.default_rng(5).integers(0, 99, (60, 4)).astype("i4")
    pieces = parts(data, (5, 7, 8, 9, 1, 30))
    (tmp_path / "set").mkdir()
    for number in range(3):
        with h5py.File(tmp_path / "set" / ("f_%d.h5" % number), "w") as file:
            file["x_1"], file["x_2"] = pieces[2 * number], pieces[2 * number + 1]
            file["n"] = number
    files = [tmp_path / "set" / ("f_%d.h5" % number) for number in range(3)]
    for where in (tmp_path / "set", tmp_path / "set" / "f_*.h5", files):
        got, info, _ = load_all(probe, tmp_path, where, tiles=3, dataset="/x_*")
        check_equal(got, data)
        assert info["files"] == 3
    got, _, _ = load_all(probe, tmp_path, [files[2], files[0]], dataset="/x_*")
    check_equal(got, numpy.concatenate([data[29:], data[:12]]))
    with h5py.File(files[1], "r+") as file:
        del file["x_2"]
        file["x_2"] = numpy.zeros((2, 5), "i4")
    check_error(
        probe.refused("open", path=str(tmp_path / "set"), dataset="/x_*"),
        "mismatch",
        ["f_1.h5", "/x_2", "(5,)", "(4,)"],
    )


def test_virtual_datasets_of_a_pattern(probe, tmp_path):
    """Over more sources than are opened at once: they are met when a load wants them."""
    data = numpy.random.default_rng(6).integers(0, 99, (2, 300, 4)).astype("i4")
    with h5py.File(tmp_path / "v.h5", "w") as file:
        for number in range(2):
            layout = h5py.VirtualLayout((300, 4), "i4")
            for row in range(300):
                name = "s_%d_%d.h5" % (number, row)
                with h5py.File(tmp_path / name, "w") as beside:
                    beside["x"] = data[number, row : row + 1]
                layout[row] = h5py.VirtualSource(name, "x", (1, 4))[0]
            file.create_virtual_dataset("v%d" % number, layout)
    whole = data.reshape(600, 4)
    check_equal(by_h5py(tmp_path / "v.h5", ["v0", "v1"]), whole)
    probe.call("open", path=str(tmp_path / "v.h5"), dataset="/v*")
    for low, high in ((0, 3), (298, 303), (597, 600)):
        probe.call(
            "read",
            dtype="<i4",
            box=[[low, high], [0, 4]],
            layout={"axes": [0, 1]},
            path=str(tmp_path / "box"),
        )
        check_equal(numpy.fromfile(tmp_path / "box", "<i4").reshape(-1, 4), whole[low:high])
    got, _, _ = load_all(probe, tmp_path, tmp_path / "v.h5", dataset="/v*")
    check_equal(got, whole)


def test_what_libhdf5_reads_and_what_is_absent(probe, tmp_path):
    """Filters that only libhdf5 undoes, chunks that were never written with another fill
    value in each dataset."""
    data = numpy.zeros((40, 6), "f4")
    with h5py.File(tmp_path / "r.h5", "w") as file:
        for number in range(4):
            part = numpy.random.default_rng(number).integers(0, 50, (10, 6)).astype("f4")
            x = file.create_dataset(
                "x%d" % number,
                (10, 6),
                "f4",
                chunks=(4, 6),
                fillvalue=number + 0.5,
                scaleoffset=2 if number % 2 else None,
            )
            x[: 4 + number] = part[: 4 + number]
            data[10 * number : 10 * number + 10] = x[()]
    got, _, _ = load_all(probe, tmp_path, tmp_path / "r.h5", tiles=3, dataset="/x*")
    check_equal(got, data)


def test_a_copy_takes_along_what_the_first_has(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for number in range(2):
            file["x_%d" % number] = numpy.arange(6.0).reshape(2, 3) + number
            file["x_%d" % number].attrs["unit"] = "K%d" % number
        file["time"] = numpy.arange(2.0)
        file["time"].make_scale()
        file["x_0"].dims[0].attach_scale(file["time"])
    copied = report("copy", tmp_path / "a.h5", tmp_path / "b.h5", "--dataset", "/x_*")
    # the scale of the first is not as long as the whole
    assert "axis 0" in json.dumps(copied["dropped"])
    with h5py.File(tmp_path / "b.h5") as file:
        assert (
            file["x"].shape == (4, 3)
            and dict(file["x"].attrs) == {"unit": "K0"}
            and list(file) == ["x"]
        )
    told = report("info", tmp_path / "a.h5", "--dataset", "/x_*", "--attributes")["datasets"][0][
        "attributes"
    ]
    assert [attribute["value"] for attribute in told if attribute["name"] == "unit"] == ["K0"]
    refused(
        "copy",
        tmp_path / "a.h5",
        tmp_path / "a.h5",
        "--dataset",
        "/x_*",
        "--to-dataset",
        "x_0",
        status="exists",
    )


@pytest.mark.parametrize("number", [0, 1])
def test_a_copy_replaces_no_source_of_what_it_copies(tmp_path, number):
    with h5py.File(tmp_path / "v.h5", "w") as file:
        for k in range(2):
            file["s%d" % k] = numpy.full((3, 2), k + 1.0)
            layout = h5py.VirtualLayout((3, 2), "f8")
            layout[:] = h5py.VirtualSource(".", "s%d" % k, (3, 2))
            file.create_virtual_dataset("v%d" % k, layout)
    before = (tmp_path / "v.h5").read_bytes()
    words = [
        "copy",
        tmp_path / "v.h5",
        tmp_path / "v.h5",
        "--dataset",
        "/v*",
        "--overwrite",
        "--to-dataset",
    ]
    refused(
        *words,
        "s%d" % number,
        status="invalid_argument",
        says=["/v%d" % number, "/s%d" % number],
        exit_status=2,
    )
    assert (tmp_path / "v.h5").read_bytes() == before
    report(*words, "all")
    check_equal(by_h5py(tmp_path / "v.h5", ["all"]), numpy.repeat([1.0, 2.0], 6).reshape(6, 2))


def test_a_file_of_numbered_datasets_names_the_pattern(probe, tmp_path):
    bad_file(tmp_path / "b.h5")
    error = probe.refused("open", path=str(tmp_path / "b.h5"))
    check_error(error, "invalid_argument", ["datasets"])
    assert "pattern" in error["hint"]


@pytest.mark.parametrize("seed", range(40))
def test_random_sequences(probe, tmp_path, seed):
    rng = numpy.random.default_rng([77, seed])
    data = gen.random_array(
        rng,
        gen.random_shape(rng, axes=3),
        numpy.dtype(rng.choice(["<f4", ">i2", "u1", "<c16", "?"])),
    )
    cuts = gen.random_cuts(rng, len(data))
    pieces = numpy.split(data, cuts) if len(cuts) else [data]
    start, width, group = (
        int(rng.integers(0, 12)),
        int(rng.integers(1, 5)),
        rng.choice(["", "g/", "g/h.5/"]),
    )
    order = rng.permutation(len(pieces))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for k in order:
            chunks = rng.integers(0, 2) and pieces[k].size
            file.create_dataset(
                "%sn_%0*d_z" % (group, width, start + k),
                data=pieces[k],
                chunks=True if chunks else None,
                maxshape=(None, *data.shape[1:]) if chunks else None,
            )
        file[group + "another"] = 1
    names = ["%sn_%0*d_z" % (group, width, start + k) for k in range(len(pieces))]
    got, info, _ = load_all(
        probe,
        tmp_path,
        tmp_path / "x.h5",
        tiles=int(rng.integers(1, 5)),
        dataset="/%sn_*_z" % group,
    )
    check_equal(got, by_h5py(tmp_path / "x.h5", names).astype(got.dtype))
    assert json.dumps(info)
