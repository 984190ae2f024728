# Virtual datasets over more than 256 files: described from their mappings alone, each source opened
# when a load first meets it.
#
# SPDX-License-Identifier: Apache-2.0
#
# h5py judges the values. The library counts what it opens;
# once the files that it must not need are not there.
import itertools
import json
import os
import pathlib
import resource
import shutil
import subprocess

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes and judges these files")

import hdf5_files as h5  # noqa: E402
from probe import check_error  # noqa: E402
from reference_hash import content_hash  # noqa: E402

COUNT = 260  # sources; 256 are still opened at once
ROWS, COLUMNS = 4, 12
KINDS = [
    "contiguous",
    "gzip",
    "big",
    "compact",
    "scaleoffset",
    "floats",
    "unwritten",
    "nested",
    "many",
]


def write_source(path, number, data):
    """ "d" holds the data, stored in one of many ways."""
    kind = KINDS[number % len(KINDS)]
    with h5py.File(path, "w") as file:
        if kind == "gzip":
            file.create_dataset("d", data=data, chunks=(3, 5), compression="gzip", shuffle=True)
        elif kind == "big":
            file.create_dataset("d", data=data.astype(">i4"))
        elif kind == "scaleoffset":
            file.create_dataset("d", data=data, chunks=(2, 12), scaleoffset=0)
        elif kind == "floats":
            file.create_dataset("d", data=data.astype("<f8"), chunks=(2, 12))
        elif kind == "unwritten":
            file.create_dataset("d", shape=data.shape, dtype="<i4", chunks=(1, 12), fillvalue=-5)[
                1:
            ] = data[1:]
        elif kind == "nested":
            layout = h5py.VirtualLayout(data.shape, "<i4")
            layout[:2] = h5py.VirtualSource(".", "below", data.shape)[2:]
            layout[2:] = h5py.VirtualSource(".", "below", data.shape)[:2]
            file["below"] = numpy.roll(data, 2, 0)
            file.create_virtual_dataset("d", layout)
        elif kind == "many":
            file.create_dataset(
                "d", data=data, maxshape=(None, None), chunks=(2, 5), compression="lzf"
            )
        elif kind == "contiguous":
            file["d"] = data
        file["e"] = -data
    if kind == "compact":
        h5.low_level(path, "d", "<i4", data.shape, h5.compact, data)


def write_virtuals(path):
    shape = (ROWS, COLUMNS)
    stack = [
        (numpy.s_[ROWS * k : ROWS * k + ROWS], f"s{k}.h5", "d", shape, None) for k in range(COUNT)
    ]
    h5.virtual(path, "stack", (COUNT * ROWS, COLUMNS), "<i4", stack)
    h5.virtual(
        path,
        "dealt",
        (COUNT * ROWS, COLUMNS),
        "<i4",
        [(numpy.s_[k::COUNT], *rest) for k, (_, *rest) in enumerate(stack)],
    )
    tiles = [
        (
            numpy.s_[
                ROWS * (k // 20) : ROWS * (k // 20) + ROWS,
                COLUMNS * (k % 20) : COLUMNS * (k % 20) + COLUMNS,
            ],
            *rest,
        )
        for k, (_, *rest) in enumerate(stack)
    ]
    h5.virtual(path, "tiles", (ROWS * (COUNT // 20), COLUMNS * 20), "<i4", tiles)
    frames = [(numpy.s_[k], f"s{k}.h5", "d", shape, None) for k in range(COUNT)]
    h5.virtual(path, "frames", (COUNT, ROWS, COLUMNS), "<i4", frames)
    gaps = [
        (numpy.s_[5 * k : 5 * k + 2, 1:], f"s{k}.h5", "d", shape, numpy.s_[1:3, :11])
        for k in range(COUNT)
    ]
    h5.virtual(path, "gaps", (5 * COUNT, COLUMNS), "<i4", gaps, fill=-7)
    with h5py.File(path, "a") as file:
        file["own"] = numpy.arange(2 * COLUMNS, dtype="<i4").reshape(2, COLUMNS)
    mixed = [
        (numpy.s_[6 * k : 6 * k + 4], f"s{k}.h5", "de"[k % 2], shape, None) for k in range(COUNT)
    ]
    mixed += [
        (
            numpy.s_[6 * k + 4 : 6 * k + 6],
            *(
                (f"s{k}.h5", "e", shape, numpy.s_[:2])
                if k % 3
                else (".", "own", (2, COLUMNS), None)
            ),
        )
        for k in range(COUNT)
    ]
    h5.virtual(path, "mixed", (6 * COUNT, COLUMNS), "<i4", mixed)
    h5.virtual(path, "big", (COUNT * ROWS, COLUMNS), ">i4", stack)


NAMES = ["stack", "dealt", "tiles", "frames", "gaps", "mixed", "big"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("late")
    data = numpy.random.default_rng(5).integers(-1000, 1000, (COUNT, ROWS, COLUMNS)).astype("<i4")
    for k in range(COUNT):
        write_source(folder / f"s{k}.h5", k, data[k])
    write_virtuals(folder / "v.h5")
    return folder


@pytest.fixture
def own(made, tmp_path):
    """A copy that a test may change."""
    shutil.copytree(made, tmp_path / "own", copy_function=os.link)
    return tmp_path / "own"


def rewrite(path, action):
    """Changes a file that has other names: `action` gets the path of a copy,
    which then takes its place."""
    shutil.copy(path, path.with_suffix(".new"))
    action(path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


def opened(probe, path, name, **options):
    info = probe.call("open", path=str(path), dataset=name, **options)
    assert (info["files"], info["sources"]) == (1, COUNT) and info["statistics"]["opens"] <= 3, info
    return info


def rows(lo, hi):
    return [[lo, hi], [0, COLUMNS]]


def read(probe, tmp_path, info, lo, hi, **options):
    answer = probe.call(
        "read",
        dtype=info["dtype"],
        box=[list(ends) for ends in zip(lo, hi)],
        path=str(tmp_path / "box"),
        **options,
    )
    shape = [b - a for a, b in zip(lo, hi)]
    return numpy.fromfile(tmp_path / "box", info["dtype"]).reshape(shape), answer["statistics"]


@pytest.mark.parametrize("name", NAMES)
def test_everything(probe, tmp_path, made, name):
    h5.check_load(probe, tmp_path, made / "v.h5", name, tiles=1 + NAMES.index(name) % 3)
    if name in ("stack", "mixed"):
        opened(probe, made / "v.h5", name)
        assert probe.call("hash", of="dataset")["hash"] == content_hash(
            h5.read(made / "v.h5", name)
        )


@pytest.mark.parametrize("name", NAMES)
def test_random_boxes(probe, tmp_path, made, name):
    want, rng = h5.read(made / "v.h5", name), numpy.random.default_rng(NAMES.index(name))
    info = opened(probe, made / "v.h5", name)
    for _ in range(15):
        ends = [sorted(rng.integers(0, n + 1, 2).tolist()) for n in want.shape]
        lo, hi = [a for a, _ in ends], [b for _, b in ends]
        got, _ = read(probe, tmp_path, info, lo, hi)
        assert numpy.array_equal(got, want[tuple(slice(a, b) for a, b in ends)]), (lo, hi)


def test_a_small_box_opens_what_it_meets_once(probe, tmp_path, made):
    """Two opens for each file: to describe it, and to read; none when nothing new is met."""
    want, info = h5.read(made / "v.h5", "stack"), opened(probe, made / "v.h5", "stack")
    for span, sources in (
        ((9, 15), 2),
        ((9, 15), 0),
        ((10, 11), 0),
        ((10, 17), 3),
        ((8, 9), 0),
        ((1039, 1040), 1),
        ((5, 5), 0),
    ):
        got, statistics = read(probe, tmp_path, info, [span[0], 0], [span[1], COLUMNS])
        assert numpy.array_equal(got, want[slice(*span)])
        assert statistics["opens"] <= 2 * sources, span
        assert statistics["opens"] > 0 or sources == 0


def test_the_other_sources_need_not_be_there(tmp_path, made, probe):
    for name in ("v.h5", "s7.h5", "s8.h5"):
        shutil.copy(made / name, tmp_path / name)
    info = opened(probe, tmp_path / "v.h5", "stack")
    got, _ = read(probe, tmp_path, info, [29, 2], [36, 9])
    assert numpy.array_equal(got, h5.read(made / "v.h5", "stack")[29:36, 2:9])


def test_up_to_256_files_are_opened_at_once(probe, tmp_path, made):
    for count in (256, 257):
        mappings = [
            (numpy.s_[k], made / f"s{k}.h5", "d", (ROWS, COLUMNS), None) for k in range(count)
        ]
        h5.virtual(
            tmp_path / "v.h5", f"v{count}", (count, ROWS, COLUMNS), "<i4", mappings + mappings[:50]
        )
        info = probe.call("open", path=str(tmp_path / "v.h5"), dataset=f"v{count}")
        assert info["sources"] == (0 if count == 256 else count) and (info["files"] > 1) == (
            count == 256
        )
        assert probe.call("hash", of="dataset")["hash"] == content_hash(
            h5.read(tmp_path / "v.h5", f"v{count}")
        )


# ---- numbered and endless sources ----


def endless(path, file, name=b"d"):
    """One mapping without an end: a row of the first axis for each number."""
    plist, unlimited = h5py.h5p.create(h5py.h5p.DATASET_CREATE), h5py.h5s.UNLIMITED
    source, target = (
        h5py.h5s.create_simple((ROWS, COLUMNS)),
        h5py.h5s.create_simple((0, ROWS, COLUMNS), (unlimited, ROWS, COLUMNS)),
    )
    target.select_hyperslab((0, 0, 0), (unlimited, 1, 1), (1, 1, 1), (1, ROWS, COLUMNS))
    plist.set_virtual(target, str(file).encode(), name, source)
    with h5py.File(path, "w", libver="v110") as out:
        h5py.h5d.create(out.id, b"v", h5py.h5t.NATIVE_INT32, target, plist)


def test_numbered_files_are_counted_by_their_names(probe, tmp_path, made):
    """How long the dataset is depends on which are there."""
    endless(tmp_path / "v.h5", made / "s%b.h5")
    info = probe.call("open", path=str(tmp_path / "v.h5"), dataset="v")
    assert (
        info["shape"] == [COUNT, ROWS, COLUMNS]
        and (info["files"], info["sources"]) == (1, COUNT)
        and info["statistics"]["opens"] <= 5
    )
    got, statistics = read(probe, tmp_path, info, [7, 1, 2], [9, 3, 12])
    assert (
        numpy.array_equal(got, h5.read(tmp_path / "v.h5", "v")[7:9, 1:3, 2:12])
        and statistics["opens"] <= 4
    )
    h5.check_load(probe, tmp_path, tmp_path / "v.h5", "v")


@pytest.mark.parametrize("left", [0, 256, 257])
def test_numbers_end_where_a_file_is_not_there(probe, tmp_path, own, left):
    endless(own / "n.h5", "s%b.h5")
    (own / f"s{left}.h5").unlink()
    info = probe.call("open", path=str(own / "n.h5"), dataset="v")
    assert info["shape"] == [left, ROWS, COLUMNS] and info["sources"] == (left if left > 256 else 0)
    h5.check_load(probe, tmp_path, own / "n.h5", "v")


@pytest.mark.parametrize("lacks", [0, 100, COUNT - 1])
def test_a_numbered_file_without_the_dataset(probe, tmp_path, own, lacks):
    """Where it is the first or the last it ends the row, as in libhdf5; else it is lost: nothing
    gets shorter without a word."""
    endless(own / "n.h5", "s%b.h5")
    without(own / f"s{lacks}.h5")
    info = probe.call("open", path=str(own / "n.h5"), dataset="v")
    if lacks != 100:
        assert info["shape"][0] == lacks
        h5.check_load(probe, tmp_path, own / "n.h5", "v")
        return
    assert info["shape"][0] == COUNT
    h5.load_refused(probe, own / "n.h5", "v", "not_found", ["s100.h5"])
    got, statistics = read(probe, tmp_path, info, [99, 0, 0], [102, ROWS, COLUMNS], missing="fill")
    assert statistics["missing"] == 1 and not got[1].any() and got[0].any() and got[2].any()


def test_numbered_datasets_are_looked_at(probe, tmp_path, made):
    with h5py.File(tmp_path / "s.h5", "w") as file:
        for k in range(300):
            file[f"d{k}"] = numpy.full((ROWS, COLUMNS), k, "<i4")
    endless(tmp_path / "v.h5", "s.h5", b"d%b")
    info = probe.call("open", path=str(tmp_path / "v.h5"), dataset="v")
    assert info["shape"][0] == 300 and info["sources"] == 0 and info["statistics"]["opens"] <= 4
    h5.check_load(probe, tmp_path, tmp_path / "v.h5", "v")


# ---- a source that is itself virtual, over very many ----


def over(path, inner, name, shape, dtype="<i4", fill=2):
    """Two pieces of the dataset `name`, and a gap: "o"."""
    half = shape[0] // 2
    pieces = [
        (numpy.s_[:half, 1:], inner, name, shape, numpy.s_[:half]),
        (numpy.s_[half + 3 :, :-1], inner, name, shape, numpy.s_[half:]),
    ]
    h5.virtual(path, "o", (shape[0] + 3, shape[1] + 1), dtype, pieces, fill=fill, libver="v110")


@pytest.mark.parametrize("name", ["stack", "mixed", "gaps"])
def test_below_another_one(probe, tmp_path, made, name):
    shape = h5.read(made / "v.h5", name).shape
    over(tmp_path / "o.h5", made / "v.h5", name, shape)
    over(tmp_path / "p.h5", "o.h5", "o", (shape[0] + 3, shape[1] + 1), fill=4)
    for path in (tmp_path / "o.h5", tmp_path / "p.h5"):
        info, want = probe.call("open", path=str(path), dataset="o"), h5.read(path, "o")
        assert info["sources"] >= COUNT and info["statistics"]["opens"] <= 4, info
        got, statistics = read(probe, tmp_path, info, [13, 0], [17, 9])
        assert numpy.array_equal(got, want[13:17, :9]) and statistics["opens"] <= 10
        h5.check_load(probe, tmp_path, path, "o", want, tiles=3)


def test_below_another_one_what_is_between_may_not_change(probe, tmp_path, own):
    over(own / "o.h5", "v.h5", "stack", (COUNT * ROWS, COLUMNS))
    info = probe.call("open", path=str(own / "o.h5"), dataset="o")
    read(probe, tmp_path, info, [0, 0], [4, COLUMNS])
    rewrite(own / "v.h5", appended)
    check_error(
        probe.refused(
            "read", dtype=info["dtype"], box=[[8, 9], [0, 5]], path=str(tmp_path / "box")
        ),
        "changed",
        ["v.h5"],
    )


def test_below_another_one_in_a_circle(probe, tmp_path, own):
    """Found out by whoever meets it."""
    over(own / "o.h5", "v.h5", "stack", (COUNT * ROWS, COLUMNS))
    (own / "s20.h5").unlink()
    h5.virtual(
        own / "s20.h5",
        "d",
        (ROWS, COLUMNS),
        "<i4",
        [(numpy.s_[:], "o.h5", "o", (COUNT * ROWS + 3, COLUMNS + 1), numpy.s_[:ROWS, 1:])],
    )
    info = probe.call("open", path=str(own / "o.h5"), dataset="o")
    read(probe, tmp_path, info, [0, 0], [80, COLUMNS])
    error = probe.refused(
        "read", dtype=info["dtype"], box=[[80, 81], [1, 3]], path=str(tmp_path / "box")
    )
    check_error(error, "corrupt", ["is a source of itself"])


def test_below_another_one_lost_sources(probe, tmp_path, own):
    """Its own fill value, in the type of the outermost."""
    h5.virtual(
        own / "g.h5",
        "g",
        (COUNT, ROWS, COLUMNS),
        "<i4",
        [(k, f"s{k}.h5", "e", (ROWS, COLUMNS), None) for k in range(COUNT)],
        fill=-9,
    )
    h5.virtual(
        own / "g.h5",
        "o",
        (COUNT, ROWS, COLUMNS),
        ">f8",
        [(numpy.s_[:], ".", "g", (COUNT, ROWS, COLUMNS), None)],
        fill=5,
    )
    (own / "s20.h5").unlink()
    want = h5.read(own / "g.h5", "o")
    assert (want[20] == -9).all()
    h5.load_refused(probe, own / "g.h5", "o", "not_found", ["s20.h5"])
    assert h5.check_load(probe, tmp_path, own / "g.h5", "o", want, missing="fill")["missing"] == 1


def test_a_folder_of_such(probe, tmp_path, made):
    (tmp_path / "shards").mkdir()
    for k in range(2):
        over(
            tmp_path / "shards" / f"o_{k}.h5",
            made / "v.h5",
            "stack",
            (COUNT * ROWS, COLUMNS),
            fill=k,
        )
    want = numpy.concatenate([h5.read(tmp_path / "shards" / f"o_{k}.h5", "o") for k in range(2)])
    info = probe.call("open", path=str(tmp_path / "shards"), dataset="o")
    got, _ = read(probe, tmp_path, info, [COUNT * ROWS, 0], [COUNT * ROWS + 9, 7])
    assert numpy.array_equal(got, want[COUNT * ROWS : COUNT * ROWS + 9, :7])
    h5.check_load(probe, tmp_path, tmp_path / "shards", "o", want)


# ---- what is wrong with a source is said by the load that meets it ----


def lost(path):
    path.unlink()


def shorter(path):
    rewrite(path, lambda new: write_source(new, 0, numpy.zeros((2, COLUMNS), "<i4")))


def text(path):
    with h5py.File(path.with_suffix(".new"), "w") as file:
        file["d"] = numpy.zeros((ROWS, COLUMNS), "S3")
    os.replace(path.with_suffix(".new"), path)


def damaged(path):
    rewrite(path, lambda new: new.write_bytes(b"no HDF5 file at all, but a text"))


def without(path):
    def take(new):
        with h5py.File(new, "a") as file:
            del file["d"]

    rewrite(path, take)


WRONG = {
    lost: "not_found",
    shorter: "mismatch",
    text: "mismatch",
    damaged: "corrupt",
    without: "not_found",
}


@pytest.mark.parametrize("how", WRONG)
def test_errors_name_source_and_dataset(probe, tmp_path, own, how):
    how(own / "s20.h5")
    want, info = (
        h5.read(own / "v.h5", "stack") if how in (lost, without) else None,
        opened(probe, own / "v.h5", "stack"),
    )
    read(probe, tmp_path, info, [84, 0], [1040, COLUMNS])
    for _ in range(2):
        error = probe.refused("read", dtype="<i4", box=rows(83, 84), path=str(tmp_path / "box"))
        check_error(
            error, WRONG[how], ["s20.h5", '"/stack"' if how is not text else "virtual dataset"]
        )
    if want is not None:
        for missing in ("error", "strict"):
            probe.refused(
                "read", dtype="<i4", box=rows(83, 84), path=str(tmp_path / "box"), missing=missing
            )
        got, statistics = read(probe, tmp_path, info, [76, 0], [90, COLUMNS], missing="fill")
        assert (
            numpy.array_equal(got, want[76:90])
            and not got[4:8].any()
            and statistics["missing"] == 1
        )
    problems = probe.call("verify", level=1)["problems"]
    assert [problem["status"] for problem in problems] == [WRONG[how]] and "s20.h5" in problems[0][
        "message"
    ]


def test_a_source_that_comes_later_is_found(probe, tmp_path, own):
    os.rename(own / "s20.h5", own / "away")
    info = opened(probe, own / "v.h5", "stack")
    os.rename(own / "away", own / "s20.h5")
    got, _ = read(probe, tmp_path, info, [70, 0], [90, COLUMNS])
    assert numpy.array_equal(got, h5.read(own / "v.h5", "stack")[70:90])


# ---- files that change ----


def other_values(path):
    write_source(path, 0, numpy.full((ROWS, COLUMNS), 9, "<i4"))


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_source_that_was_met_may_not_change(probe, tmp_path, own, elsewhere):
    info = opened(probe, own / "v.h5", "stack")
    read(probe, tmp_path, info, [0, 0], [4, COLUMNS])
    if elsewhere:
        read(probe, tmp_path, info, [40, 0], [41, COLUMNS])  # the file is no longer open
    rewrite(own / "s0.h5", other_values)
    if not elsewhere:
        probe.call("close")
        probe.call("context", threads=2)
        info = opened(probe, own / "v.h5", "stack")
        assert (read(probe, tmp_path, info, [0, 0], [4, COLUMNS])[0] == 9).all()
        return
    check_error(
        probe.refused("read", dtype="<i4", box=rows(0, 4), path=str(tmp_path / "box")),
        "changed",
        ["s0.h5"],
    )
    check_error(probe.refused("hash", of="dataset"), "changed", ["s0.h5"])
    read(probe, tmp_path, info, [8, 0], [12, COLUMNS])


def appended(path):
    with h5py.File(path, "a") as file:
        file["more"] = 1


@pytest.mark.parametrize("change", [appended, lambda path: None])
def test_the_virtual_file_may_not_change(probe, tmp_path, own, change):
    info = opened(probe, own / "v.h5", "stack")
    read(probe, tmp_path, info, [0, 0], [4, COLUMNS])
    rewrite(own / "v.h5", change)
    check_error(
        probe.refused("read", dtype="<i4", box=rows(8, 9), path=str(tmp_path / "box")),
        "changed",
        ["v.h5"],
    )


# ---- what looks at all of a dataset ----


def test_plans_verify_and_compare(probe, made):
    opened(probe, made / "v.h5", "tiles")
    probe.call("tiling", kind="grid", shape=[52, 240], tile=[8, 24])
    plan = probe.call("explain")["plan"]
    assert plan["files"] > 150 and sum(tile["bytes"] for tile in plan["tiles"]) == 52 * 240 * 4
    assert probe.call("verify", level=2)["status"] == "ok"
    probe.call("open", path=str(made / "v.h5"), dataset="tiles", other=True)
    assert probe.call("compare")["equal"]


def test_batches(probe, tmp_path, made):
    want = h5.read(made / "v.h5", "stack")
    opened(probe, made / "v.h5", "stack")
    probe.call("batches", chunk=[50, 7])
    boxes = probe.call("pieces", path=str(tmp_path / "pieces"))["boxes"]
    at, stored = 0, (tmp_path / "pieces").read_bytes()
    for box in boxes:
        piece = want[tuple(slice(*ends) for ends in box)]
        assert stored[at : at + piece.nbytes] == piece.tobytes()
        at += piece.nbytes
    assert at == len(stored) == want.nbytes


@pytest.mark.parametrize("name", ["tiles", "gaps"])
def test_a_manifest_has_everything(probe, tmp_path, made, name):
    """Without sources that libhdf5 must read: those cannot be written down."""
    kinds = ("contiguous", "gzip", "big", "unwritten", "nested", "many")
    plain = [k for k in range(COUNT) if KINDS[k % len(KINDS)] in kinds]
    mappings = [
        (numpy.s_[i], made / f"s{k}.h5", "d", (ROWS, COLUMNS), None)
        for i, k in enumerate(itertools.islice(itertools.cycle(plain), COUNT))
    ]
    for k in range(300 - len(plain)):
        os.link(made / "s1.h5", tmp_path / f"m{k}.h5")
        mappings.append((numpy.s_[COUNT + k], f"m{k}.h5", "d", (ROWS, COLUMNS), None))
    h5.virtual(
        tmp_path / "v.h5", "v", (COUNT + 310 - len(plain), ROWS, COLUMNS), "<i4", mappings, fill=3
    )
    assert probe.call("open", path=str(tmp_path / "v.h5"), dataset="v")["sources"] >= 257
    (tmp_path / "m.json").write_text(probe.call("to_json", folder=str(tmp_path))["text"])
    info = probe.call("open", path=str(tmp_path / "m.json"))
    assert info["sources"] == 0 and info["files"] > 257
    assert probe.call("hash", of="dataset")["hash"] == content_hash(h5.read(tmp_path / "v.h5", "v"))


def test_a_folder_of_virtual_shards(probe, tmp_path, made):
    (tmp_path / "shards").mkdir()
    want = []
    for number in range(2):
        mappings = [
            (
                numpy.s_[ROWS * k : ROWS * k + ROWS],
                made / f"s{(k + number) % COUNT}.h5",
                "d",
                (ROWS, COLUMNS),
                None,
            )
            for k in range(COUNT)
        ]
        h5.virtual(
            tmp_path / "shards" / f"v_{number}.h5",
            "v",
            (COUNT * ROWS + number, COLUMNS),
            "<i4",
            mappings,
            fill=8,
        )
        want.append(h5.read(tmp_path / "shards" / f"v_{number}.h5", "v"))
    want = numpy.concatenate(want)
    info = probe.call(
        "open", path=str(tmp_path / "shards"), dataset="v", expect_files=2 + 2 * COUNT
    )
    assert (info["files"], info["sources"]) == (2, 2 * COUNT)
    got, statistics = read(probe, tmp_path, info, [1038, 0], [1046, COLUMNS])
    assert numpy.array_equal(got, want[1038:1046]) and statistics["opens"] <= 8
    h5.check_load(probe, tmp_path, tmp_path / "shards", "v", want)


# ---- limits, the shell ----


def tegula(*arguments, status=0, **options):
    done = subprocess.run(
        [os.environ["TEGULA_BIN"], *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=100,
        **options,
    )
    assert done.returncode == status, done.stderr
    return done.stdout


def test_few_open_files(made):
    few = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))}
    for name in ("dealt", "mixed"):
        report = json.loads(
            tegula("load", made / "v.h5", "--dataset", name, "--hash", "--json", **few)
        )
        assert (
            report["hash"] == content_hash(h5.read(made / "v.h5", name)) and report["sources"] == 0
        )


def test_four_handles(new_probe, tmp_path, made):
    probe = new_probe()
    probe.call("context", threads=3, max_open_files=4)
    h5.check_load(probe, tmp_path, made / "v.h5", "dealt")


def test_in_the_shell(tmp_path, made):
    file, want = made / "v.h5", h5.read(made / "v.h5", "stack")
    info = json.loads(tegula("info", file, "--dataset", "stack", "--json"))["datasets"][0]
    assert (info["files"], info["sources"], info["shape"]) == (1, COUNT, [COUNT * ROWS, COLUMNS])
    assert "260 sources not opened yet" in tegula("info", file, "--dataset", "stack")
    assert (
        len(
            json.loads(tegula("info", file, "--dataset", "stack", "--chunks", "--json"))[
                "datasets"
            ][0]["chunk_list"]
        )
        > COUNT
    )
    part = json.loads(
        tegula("load", file, "--dataset", "stack", "--box", "1:7,:", "--hash", "--json")
    )
    assert (
        part["opens"] <= 8
        and part["sources"] == COUNT
        and part["hash"] == content_hash(want[1:7])
        and part["missing_list"] == []
    )
    assert "0 problems" in tegula("verify", file, "--dataset", "stack", "--level", "decode")
    tegula("copy", file, tmp_path / "c.npy", "--dataset", "stack", "--verify")
    assert numpy.array_equal(numpy.load(tmp_path / "c.npy"), want)
    tegula("copy", file, tmp_path / "c.h5", "--dataset", "stack")
    tegula("compare", tmp_path / "c.h5", file, "--dataset", "stack")
    tegula("plan", file, "--dataset", "stack", "--ranks", "4")
    tegula("verify", file, "--dataset", "stack", "--write", tmp_path / "sums.json")
    tegula("verify", file, "--dataset", "stack", "--against", tmp_path / "sums.json")
    assert len(json.loads(pathlib.Path(tmp_path / "sums.json").read_text())["files"]) > 150
