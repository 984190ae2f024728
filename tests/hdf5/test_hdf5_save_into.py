# A dataset is added to files of every kind: everything in them stays, the new one is there, and
# what is in the way is said.
#
# SPDX-License-Identifier: Apache-2.0
import fcntl
import os
import subprocess
import sys
import threading

import h5py
import numpy
import pytest

from probe import check_error
from saving import check, check_file, even, keep_all, left, put

NEW = numpy.cumsum(numpy.random.default_rng(3).integers(-3, 4, (23, 17)), axis=-1).astype("<i4")
OPTIONS = [{}, {"chunk": [7, 5], "codec": "shuffle,deflate"}, {"chunk": [1, 1]}]
KINDS = {}


def kind(function):
    KINDS[function.__name__] = function
    return function


def fill(file, vlen=True):
    """What stands in most files."""
    file.attrs["title"] = "größer"
    file["contiguous"] = numpy.arange(40, dtype=">i4").reshape(8, 5)
    file.create_dataset(
        "packed",
        data=NEW[:9],
        chunks=(4, 5),
        compression="gzip",
        shuffle=True,
        maxshape=(None, None),
        fillvalue=7,
    )
    file["packed"].attrs["scale"] = numpy.array([1.5, 2.5])
    file["group/deep/scalar"] = 3.5
    file["group"].attrs["unit"] = "m"
    file["again"] = file["contiguous"]
    file["soft"] = h5py.SoftLink("/group/deep")
    file["gone"] = h5py.SoftLink("/nowhere")
    if vlen:
        file["texts"] = ["a", "bc", "größer"]
        file.create_dataset("ragged", (3,), h5py.vlen_dtype("<i4"))[1] = [1, 2, 3]
        file.create_dataset("refs", (2,), h5py.ref_dtype)[0] = file["contiguous"].ref
        file["compound"] = numpy.zeros(3, [("a", "<i4"), ("b", "<f8", (2,))])
        file["type"] = numpy.dtype([("x", "<f4"), ("y", "<f4")])
    file.create_dataset("resizable", (0, 4), "<f4", maxshape=(None, 4), chunks=(16, 4))


def simple(path, **options):
    with h5py.File(path, "w", **options) as file:
        fill(file)


for low, high in [
    ("earliest", "latest"),
    ("v108", "v108"),
    ("v110", "v110"),
    ("v112", "v112"),
    ("latest", "latest"),
]:
    KINDS[low] = lambda path, bounds=(low, high): simple(path, libver=bounds)


@kind
def user_block(path):
    simple(path, userblock_size=1024)
    with open(path, "r+b") as file:
        file.write(b"not for HDF5 " * 70)


@kind
def paged(path):
    simple(path, fs_strategy="page", fs_page_size=1024, fs_threshold=1)


@kind
def paged_persisted(path):
    simple(path, fs_strategy="page", fs_page_size=4096, fs_persist=True, fs_threshold=1)
    holes(path)


@kind
def free_space_persisted(path):
    simple(path, fs_strategy="fsm", fs_persist=True, fs_threshold=1)
    holes(path)


@kind
def without_free_space(path):
    simple(path, fs_strategy="none")


@kind
def latest_free_space_persisted(path):
    simple(path, fs_strategy="fsm", fs_persist=True, fs_threshold=1, libver="latest")
    holes(path)


def holes(path):
    with h5py.File(path, "r+") as file:
        for k in range(6):
            file["hole%d" % k] = numpy.zeros(1000, "u1")
    with h5py.File(path, "r+") as file:
        for k in (1, 2, 4):
            del file["hole%d" % k]


@kind
def dense_attributes(path):
    with h5py.File(path, "w", libver="latest") as file:
        fill(file)
        for k in range(300):
            file["packed"].attrs["a%03d" % k] = numpy.arange(k)
            file["group"].attrs["b%03d" % k] = "text %d" % k
            file.attrs["c%03d" % k] = k


@kind
def dense_links(path):
    with h5py.File(path, "w", libver="latest", track_order=True) as file:
        fill(file)
        for k in range(400):
            file["soft%03d" % k] = h5py.SoftLink("/group")
            file.create_group("g%03d" % k)


@kind
def many_groups(path):
    with h5py.File(path, "w") as file:
        fill(file)
        for k in range(600):
            file.create_group("g%d/h%d" % (k % 23, k))


@kind
def written_by_swmr(path):
    with h5py.File(path, "w", libver="latest") as file:
        fill(file, vlen=False)
        file.create_dataset("rows", (0, 3), "<i4", maxshape=(None, 3), chunks=(4, 3))
        file.swmr_mode = True
        for k in range(1, 9):
            file["rows"].resize((k, 3))
            file["rows"][k - 1] = k
            file["rows"].flush()


@kind
def external_links(path):
    simple(path)
    with h5py.File(path.with_name("other.h5"), "w") as file:
        file["x"] = NEW
    with h5py.File(path, "r+") as file:
        file["outside"] = h5py.ExternalLink("other.h5", "/x")
        file["outside_gone"] = h5py.ExternalLink("nowhere.h5", "/x")


@kind
def external_storage(path):
    simple(path)
    with h5py.File(path, "r+") as file:
        file.create_dataset(
            "bytes_outside", data=NEW, external=[(str(path.with_name("bytes.bin")), 0, NEW.nbytes)]
        )


@kind
def virtual_datasets(path):
    for k in range(2):
        with h5py.File(path.with_name("part%d.h5" % k), "w") as file:
            file["x"] = NEW[k]
    simple(path, libver="latest")
    layout = h5py.VirtualLayout((2, 17), "<i4")
    for k in range(2):
        layout[k] = h5py.VirtualSource("part%d.h5" % k, "x", (17,))
    with h5py.File(path, "r+", libver="latest") as file:
        file.create_virtual_dataset("mapped", layout, fillvalue=-1)


def with_sizes(path, size):
    plist = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    plist.set_sizes(size, size)
    with h5py.File(h5py.h5f.create(str(path).encode(), h5py.h5f.ACC_TRUNC, fcpl=plist)) as file:
        fill(file, vlen=size > 2)


@kind
def offsets_of_4_bytes(path):
    with_sizes(path, 4)


@kind
def offsets_of_2_bytes(path):
    with_sizes(path, 2)


@kind
def empty(path):
    with h5py.File(path, "w"):
        pass


# ---- what is in a file ---------------------------------------------------------------------------


def plain(value, file):
    """Something that can be compared, whatever it is."""
    if isinstance(value, h5py.Reference):
        return ("reference", file[value].name if value else None)
    if isinstance(value, h5py.Empty):
        return ("empty", str(value.dtype))
    if isinstance(value, numpy.ndarray) and value.dtype.kind == "O":
        return [plain(item, file) for item in value.ravel()]
    value = numpy.asarray(value)
    return (value.dtype.str, value.shape, value.tobytes())


def contents(path):
    """All links and, for each object, its kind, values, creation properties and attributes."""
    out = {}

    def walk(file, group, name):
        out[name or "/"] = {key: plain(value, file) for key, value in group.attrs.items()}
        for key in group:
            link = group.get(key, getlink=True)
            full = name + "/" + key
            if isinstance(link, h5py.SoftLink):
                out[full] = ("soft", link.path)
            elif isinstance(link, h5py.ExternalLink):
                out[full] = ("external", link.filename, link.path)
            elif isinstance(group[key], h5py.Group):
                walk(file, group[key], full)
            elif isinstance(group[key], h5py.Dataset):
                item = group[key]
                how = (
                    str(item.dtype),
                    item.chunks,
                    item.maxshape,
                    item.compression,
                    item.shuffle,
                    plain(item.fillvalue, file),
                    item.is_virtual,
                )
                out[full] = (
                    plain(item[()], file),
                    how,
                    {k: plain(v, file) for k, v in item.attrs.items()},
                )
            else:
                out[full] = ("type", group[key].dtype)

    with h5py.File(path) as file:
        walk(file, file, "")
    return out


def strategy(path):
    with h5py.File(path) as file:
        plist = file.id.get_create_plist()
        return plist.get_file_space_strategy(), plist.get_userblock(), plist.get_sizes()


@pytest.mark.parametrize("name", KINDS)
def test_everything_stays(probe, tmp_path, name):
    path = tmp_path / "x.h5"
    KINDS[name](path)
    os.chmod(path, 0o640)
    before, how, beside = contents(path), strategy(path), left(tmp_path)
    block = path.read_bytes()[: how[1]]
    put(probe, tmp_path, NEW, *even(NEW.shape, 0, 3))
    for number, options in enumerate(OPTIONS):
        probe.call("save", path=str(path), dataset="new/n%d" % number, **options)
        check_file(path, {"new/n%d" % k: NEW for k in range(number + 1)})
        after = contents(path)
        assert {key: after[key] for key in before} == before
        assert sorted(set(after) - set(before)) == ["/new"] + [
            "/new/n%d" % k for k in range(number + 1)
        ]
        error = probe.refused("save", path=str(path), dataset="new/n%d" % number)
        check_error(error, "exists", ["/new/n%d" % number, path], path)
    assert (
        strategy(path) == how
        and path.read_bytes()[: how[1]] == block
        and path.stat().st_mode & 0o777 == 0o640
    )
    assert left(tmp_path) == beside
    replaced(probe, path, before)
    if name not in ("empty", "offsets_of_2_bytes"):
        still_works(path)


def replaced(probe, path, before):
    """Only the dataset of that name, also one that was there before."""
    for name in ("new/n0", "new/n1"):
        probe.call(
            "save", path=str(path), dataset=name, chunk=[5, 17], codec="deflate:1", overwrite=True
        )
    if "/packed" in before:
        probe.call("save", path=str(path), dataset="packed", overwrite=True)
        check_file(path, {"packed": NEW})
    check_file(path, {"new/n%d" % k: NEW for k in range(3)})
    after = contents(path)
    assert {key: after[key] for key in before if key != "/packed"} == {
        key: before[key] for key in before if key != "/packed"
    }


def still_works(path):
    """h5py goes on writing to it: the records of free space and links are whole."""
    with h5py.File(path, "r+") as file:
        for k in range(30):
            file["later%d" % k] = numpy.full(500, k, "u1")
            file["group"].attrs["later%d" % k] = k
        for k in range(0, 30, 2):
            del file["later%d" % k]
        file["resizable"].resize((40, 4))
        file["resizable"][...] = 5
    with h5py.File(path) as file:
        for k in range(3):
            check(file["new/n%d" % k], NEW)
        assert (
            all((file["later%d" % k][()] == k).all() for k in range(1, 30, 2))
            and (file["resizable"][()] == 5).all()
        )


def test_a_group_into_an_existing_file(probe, tmp_path):
    path = tmp_path / "x.h5"
    KINDS["latest"](path)
    before = contents(path)
    arrays = {"new/a": NEW, "new/b/c": NEW[:3].astype(">f8"), "d": NEW[0]}
    keep_all(probe, tmp_path, arrays.values())
    members = [
        {"array": k, "dataset": name, "chunk": [2] * array.ndim, "byte_order": ">", "codec": "lzf"}
        for k, (name, array) in enumerate(arrays.items())
    ]
    check_error(
        probe.refused(
            "save_group", path=str(path), members=[*members, {"array": 0, "dataset": "again"}]
        ),
        "exists",
        ["again"],
        path,
    )
    assert contents(path) == before and left(tmp_path) == ["x.h5"]
    probe.call("save_group", path=str(path), members=members)
    check_file(path, arrays, ">")
    after = contents(path)
    assert {key: after[key] for key in before} == before


# ---- what is in the way --------------------------------------------------------------------------


@pytest.fixture
def links(tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["real/x"] = NEW
        file["real/y"] = NEW[:2]
        file["to_group"] = h5py.SoftLink("/real")
        file["to_dataset"] = h5py.SoftLink("/real/x")
        file["dangling"] = h5py.SoftLink("/nowhere")
        file["loop"] = h5py.SoftLink("/loop")
        file["loop_a"] = h5py.SoftLink("/loop_b")
        file["loop_b"] = h5py.SoftLink("/loop_a")
        file["outside"] = h5py.ExternalLink("other.h5", "/x")
        file["hard"] = file["real/x"]
        file["type"] = numpy.dtype([("x", "<f4")])
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = NEW
    return path


@pytest.mark.parametrize(
    "name",
    ["dangling", "loop", "loop_a", "to_dataset", "outside", "hard", "real/y", "to_group/y", "type"],
)
def test_overwriting_replaces_just_the_name(probe, tmp_path, links, name):
    before = contents(links)
    put(probe, tmp_path, NEW * 2)
    check_error(probe.refused("save", path=str(links), dataset=name), "exists", ["/" + name], links)
    assert contents(links) == before
    probe.call("save", path=str(links), dataset=name, overwrite=True, chunk=[3, 3], codec="deflate")
    check_file(links, {name: NEW * 2})
    there = "/" + name.replace("to_group", "real")
    after = contents(links)
    assert {key: after[key] for key in before if key != there} == {
        key: before[key] for key in before if key != there
    }
    assert set(after) == set(before)
    with h5py.File(links) as file:
        assert isinstance(file.get(name, getlink=True), h5py.HardLink)
    check_file(tmp_path / "other.h5", {"x": NEW})


def test_a_file_does_not_grow_by_what_is_replaced(probe, tmp_path):
    """Arrays of other lengths, time after time:
    the place of the last one is used again, as h5py does."""
    random = numpy.random.default_rng(5)
    path, other = tmp_path / "x.h5", tmp_path / "other.h5"
    put(probe, tmp_path, numpy.zeros(3_000_001, "u1"))
    probe.call("save", path=str(path), dataset="x")
    for number in range(24):
        array = numpy.full(int(random.integers(1_500_000, 6_000_000)), number, "u1")
        chunk = int(random.integers(1_200_000, array.size)) if number % 2 else None
        put(probe, tmp_path, array)
        probe.call(
            "save",
            path=str(path),
            dataset="x",
            overwrite=True,
            **({"chunk": [chunk]} if chunk else {}),
        )
        check_file(path, {"x": array})
        with h5py.File(other, "a") as file:
            file.pop("x", None)
            file.create_dataset("x", data=array, chunks=(chunk,) if chunk else None)
        assert path.stat().st_size < other.stat().st_size + 16384


@pytest.mark.parametrize(
    "name",
    [
        "real",
        "to_group",
        "dangling/x",
        "loop/x",
        "outside/x",
        "hard/x",
        "real/y/z",
        "to_dataset/z/w",
        "type/x",
    ],
)
def test_what_is_not_replaced(probe, tmp_path, links, name):
    before = links.read_bytes()
    put(probe, tmp_path, NEW)
    for overwrite in (False, True):
        check_error(
            probe.refused("save", path=str(links), dataset=name, overwrite=overwrite),
            "exists",
            [],
            links,
        )
        assert links.read_bytes() == before
    assert left(tmp_path) == ["other.h5", "x.h5"]


def test_through_a_soft_link_in_the_path(probe, tmp_path, links):
    put(probe, tmp_path, NEW)
    probe.call("save", path=str(links), dataset="to_group/deeper/new")
    check_file(links, {"real/deeper/new": NEW})
    with h5py.File(links) as file:
        assert isinstance(file.get("to_group", getlink=True), h5py.SoftLink)


# ---- other programs ------------------------------------------------------------------------------

HOLD = """
import sys, h5py
file = h5py.File(sys.argv[1], sys.argv[2], libver="latest")
if sys.argv[3] == "swmr": file.swmr_mode = True
data = file["x"][()]
print("ready", flush=True)
sys.stdin.readline()
"""


class Holder:
    def __init__(self, path, mode, how=""):
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(path), mode, how],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __enter__(self):
        assert self.process.stdout.readline() == b"ready\n"
        return self

    def __exit__(self, *_):
        self.process.communicate(b"\n", timeout=60)


def test_a_reader_keeps_what_it_has_open(probe, tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["x"] = NEW
    put(probe, tmp_path, NEW)
    with h5py.File(path) as reader:
        probe.call("save", path=str(path), dataset="new")
        check(reader["x"], NEW)
        assert list(reader) == ["x"]
    check_file(path, {"x": NEW, "new": NEW})


@pytest.mark.parametrize("how", ["plain", "swmr", "earliest"])
def test_a_file_that_a_writer_has_open_is_refused(probe, tmp_path, how):
    """By its mark, or, where superblocks have none, by the lock."""
    path = tmp_path / "x.h5"
    with h5py.File(path, "w", libver="earliest" if how == "earliest" else "latest") as file:
        file["x"] = NEW
    put(probe, tmp_path, NEW)
    with Holder(path, "r+", how):
        before = path.read_bytes()
        for more in ({}, {"overwrite": True}):
            error = probe.refused("save", path=str(path), dataset="new", **more)
            check_error(error, "unsupported", ["writing"], path)
        assert path.read_bytes() == before and left(tmp_path) == ["x.h5"]
    probe.call("save", path=str(path), dataset="new")
    check_file(path, {"x": NEW, "new": NEW})


@pytest.mark.parametrize("change", ["written", "replaced", "removed"])
def test_a_file_that_changes_meanwhile_is_not_replaced(probe, tmp_path, change):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["x"] = NEW
    put(probe, tmp_path, NEW)
    probe.call("save_begin", path=str(path), dataset="new", dtype="<i4")
    (tmp_path / "v").write_bytes(NEW.tobytes())
    probe.call(
        "save_tiles",
        dtype="<i4",
        tiles=[{"box": [[0, 23], [0, 17]], "values": str(tmp_path / "v")}],
    )
    (tmp_path / "v").unlink()
    if change == "written":
        with h5py.File(path, "r+") as file:
            file["x"][0, 0] = 77
    elif change == "replaced":
        with h5py.File(tmp_path / "y.h5", "w") as file:
            file["x"] = NEW + 1
        os.utime(tmp_path / "y.h5", ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
        os.rename(tmp_path / "y.h5", path)
    else:
        path.unlink()
    error = probe.refused("save_commit")
    check_error(error, "not_found" if change == "removed" else "changed", [path], path)
    if change == "removed":
        assert left(tmp_path) == []
        return
    with h5py.File(path) as file:
        assert list(file) == ["x"] and file["x"][0, 0] in (77, NEW[0, 0] + 1)
    assert left(tmp_path) == ["x.h5"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_of_two_that_make_a_file_at_once_one_is_told_so(probe, tmp_path, overwrite):
    """The loser of two saves to a free name would take away what the winner saved, which may be
    another dataset: its second try adds to it."""
    path = tmp_path / "x.h5"
    put(probe, tmp_path, NEW)
    probe.call("save_begin", path=str(path), dataset="new", dtype="<i4", overwrite=overwrite)
    with h5py.File(path, "w") as file:
        file["other"] = NEW + 1
    error = probe.refused("save_commit")
    check_error(error, "exists", [path, "another program"], path)
    assert "save again" in error["hint"]
    check_file(path, {"other": NEW + 1})
    probe.call("save", path=str(path), dataset="new", overwrite=overwrite)
    check_file(path, {"other": NEW + 1, "new": NEW})
    assert left(tmp_path) == ["x.h5"]


@pytest.mark.parametrize("name, how", [("x.npy", {}), ("x.h5", {"whole_file": True})])
def test_of_two_that_overwrite_a_whole_file_the_last_one_stays(probe, tmp_path, name, how):
    path = tmp_path / name
    put(probe, tmp_path, NEW)
    probe.call("save_begin", path=str(path), dtype="<i4", overwrite=True, **how)
    (tmp_path / "v").write_bytes(NEW.tobytes())
    probe.call(
        "save_tiles",
        dtype="<i4",
        tiles=[{"box": [[0, 23], [0, 17]], "values": str(tmp_path / "v")}],
    )
    (tmp_path / "v").unlink()
    path.write_bytes(b"of another save")
    probe.call("save_commit")
    if name == "x.npy":
        assert numpy.array_equal(numpy.load(path), NEW)
    else:
        check_file(path, {"data": NEW})
    assert left(tmp_path) == [name]


@pytest.mark.parametrize(
    "how",
    [{"dataset": "new"}, {"dataset": "x", "layout": "virtual", "overwrite": True}],
    ids=["added", "virtual"],
)
def test_the_last_look_and_the_rename_are_one_step(probe, tmp_path, how):
    """Another save has its turn when this one commits, and adds to the file: that is not
    replaced, and what was added not lost."""
    path = tmp_path / "x.h5"
    for name, content in (("x.h5", {"x": NEW}), ("y.h5", {"x": NEW, "other": NEW + 1})):
        with h5py.File(tmp_path / name, "w") as file:
            for key, value in content.items():
                file[key] = value
    put(probe, tmp_path, NEW)
    probe.call("save_begin", path=str(path), dtype="<i4", **how)
    turn = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(turn, fcntl.LOCK_EX)
    errors = []
    commit = threading.Thread(target=lambda: errors.append(probe.refused("save_commit")))
    commit.start()
    commit.join(0.5)
    os.rename(tmp_path / "y.h5", path)
    os.close(turn)
    commit.join()
    check_error(errors[0], "changed", [path], path)
    check_file(path, {"x": NEW, "other": NEW + 1})
    assert left(tmp_path) == ["x.h5"]


def test_somebody_who_keeps_the_folder_locked_does_not_stop_a_save(probe, tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["x"] = NEW
    put(probe, tmp_path, NEW)
    turn = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(turn, fcntl.LOCK_EX)
    probe.call("save", path=str(path), dataset="new")
    os.close(turn)
    check_file(path, {"x": NEW, "new": NEW})


# ---- other formats, whole files ------------------------------------------------------------------


@pytest.mark.parametrize("content", ["npy", "text", "nothing"])
@pytest.mark.parametrize("layout", ["contiguous", "chunked", "virtual"])
def test_a_file_of_another_format(probe, tmp_path, content, layout):
    path = tmp_path / "x.h5"
    if content == "npy":
        with open(path, "wb") as file:
            numpy.save(file, NEW)
    else:
        path.write_bytes(b"hello" if content == "text" else b"")
    before = path.read_bytes()
    put(probe, tmp_path, NEW)
    check_error(probe.refused("save", path=str(path), layout=layout), "exists", [path], path)
    assert path.read_bytes() == before and left(tmp_path) == ["x.h5"]
    probe.call("save", path=str(path), layout=layout, overwrite=True)
    check_file(path, {"data": NEW})


@pytest.mark.parametrize("layout", ["contiguous", "chunked"])
def test_the_whole_file(probe, tmp_path, layout):
    path = tmp_path / "x.h5"
    simple(path)
    before = path.read_bytes()
    put(probe, tmp_path, NEW)
    check_error(
        probe.refused("save", path=str(path), layout=layout, whole_file=True, dataset="new"),
        "exists",
        [path],
        path,
    )
    assert path.read_bytes() == before
    probe.call(
        "save", path=str(path), layout=layout, whole_file=True, dataset="new", overwrite=True
    )
    assert set(contents(path)) == {"/", "/new"}
    check_file(path, {"new": NEW})


def test_a_virtual_dataset_does_not_take_the_place_of_other_datasets(probe, tmp_path):
    path = tmp_path / "x.h5"
    simple(path)
    before = path.read_bytes()
    put(probe, tmp_path, NEW)
    for overwrite in (False, True):
        check_error(
            probe.refused(
                "save", path=str(path), layout="virtual", dataset="new", overwrite=overwrite
            ),
            "exists",
            [path],
            path,
        )
        assert path.read_bytes() == before and left(tmp_path) == ["x.h5"]
    probe.call(
        "save", path=str(path), layout="virtual", dataset="new", overwrite=True, whole_file=True
    )
    check_file(path, {"new": NEW})


def test_a_damaged_file_is_refused(probe, tmp_path):
    path = tmp_path / "x.h5"
    simple(path)
    whole = path.read_bytes()
    put(probe, tmp_path, NEW)
    for damaged in (whole[:100], whole[: len(whole) // 2], whole[:8] + b"\xff" * 40 + whole[48:]):
        path.write_bytes(damaged)
        error = probe.refused("save", path=str(path), dataset="new")
        check_error(error, ("corrupt", "short_file", "unsupported"), [], path)
        assert path.read_bytes() == damaged and left(tmp_path) == ["x.h5"]


def test_more_than_the_offsets_of_the_file_can_tell(probe, tmp_path):
    path = tmp_path / "x.h5"
    with_sizes(path, 2)
    before = path.read_bytes()
    put(probe, tmp_path, numpy.zeros(100000, "u1"))
    for options in ({}, {"chunk": [5000]}, {"chunk": [100]}):
        error = probe.refused("save", path=str(path), dataset="new", **options)
        check_error(error, ("io", "limit_exceeded", "unsupported"), [], path)
        assert path.read_bytes() == before and left(tmp_path) == ["x.h5"]
