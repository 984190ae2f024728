"""Virtual datasets, against h5py's read of the same file.

SPDX-License-Identifier: Apache-2.0
"""

import os
import resource

import h5py
import numpy as np
import pytest

from described import Refused, assemble, dump, same, values

rng = np.random.default_rng(11)
FORMAT = ("v110", "v110")  # what every libhdf5 can read that has virtual datasets


def write(path, **arrays):
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "a") as f:
        for name, data in arrays.items():
            f[name] = data


def virtual(path, name, shape, dtype, mappings, fill=None, **options):
    """mappings: (selection in the virtual dataset, file, dataset,
    shape of the source, selection in it)."""
    layout = h5py.VirtualLayout(shape, dtype, **options)
    for to, file, dataset, source_shape, at in mappings:
        source = h5py.VirtualSource(str(file), dataset, shape=source_shape, dtype=dtype)
        layout[to] = source[at] if at is not None else source
    with h5py.File(path, "a", libver=FORMAT) as f:
        f.create_virtual_dataset(name, layout, fillvalue=fill)


def h5py_reads(path, name):
    here = os.getcwd()
    os.chdir(path.parent)  # where libhdf5 looks too
    try:
        with h5py.File(path) as f:
            return f[name][()]
    finally:
        os.chdir(here)


def agree(path, library, name="v"):
    out = dump(path, name, library=library)
    assert same(assemble(out), h5py_reads(path, name))
    return out


def test_stacked_frames_and_contiguous_chunked_and_missing_storage(tmp_path, library):
    frames = rng.integers(0, 99, (4, 6, 5)).astype("<i4")
    for k in range(4):
        with h5py.File(tmp_path / f"s{k}.h5", "w") as f:
            if k == 3:
                f.create_dataset("d", (6, 5), "<i4", fillvalue=-9)  # never written
            else:
                f.create_dataset(
                    "d",
                    data=frames[k],
                    chunks=(4, 2) if k % 2 else None,
                    compression="gzip" if k % 2 else None,
                )
    virtual(
        tmp_path / "v.h5",
        "v",
        (5, 6, 5),
        "<i4",
        [(k, f"s{k}.h5", "d", (6, 5), None) for k in range(4)],
        fill=7,
    )
    out = agree(tmp_path / "v.h5", library)
    assert sorted(part["kind"] for part in out["parts"]) == [
        "chunked",
        "dense",
        "dense",
        "fill",
        "fill",
    ]
    want = np.full((5, 6, 5), 7, "i4")
    want[:3], want[3] = frames[:3], -9
    assert same(assemble(out), want)


def test_tiles_with_their_selections(tmp_path, library):
    data = rng.integers(0, 999, (12, 10)).astype(">f8")
    write(tmp_path / "s.h5", d=data)
    s = np.s_
    mappings = [
        (s[0:6, 0:5], "s.h5", "d", (12, 10), s[6:12, 5:10]),
        (s[6:12, 0:5], "s.h5", "d", (12, 10), s[0:6, 0:5]),
        (s[0:6, 5:10], "s.h5", "d", (12, 10), s[3:9, 2:7]),
        (s[6:12, 5:10], "s.h5", "d", (12, 10), s[1:12:2, 0:10:2]),
    ]
    virtual(tmp_path / "v.h5", "v", (12, 10), ">f8", mappings)
    out = agree(tmp_path / "v.h5", library)
    assert out["described_opens"] == 2


@pytest.mark.parametrize("chunks", [None, (5, 3)])
def test_strides_on_both_sides(tmp_path, library, chunks):
    with h5py.File(tmp_path / "s.h5", "w") as f:
        f.create_dataset("a", data=np.arange(120).reshape(12, 10), chunks=chunks)
        f.create_dataset("b", data=-np.arange(120).reshape(12, 10), chunks=chunks)
    s = np.s_
    virtual(
        tmp_path / "v.h5",
        "v",
        (24, 10),
        "<i8",
        [(s[0::2], "s.h5", "a", (12, 10), None), (s[1::2], "s.h5", "b", (12, 10), None)],
    )
    virtual(
        tmp_path / "v.h5",
        "w",
        (4, 9),
        "<i8",
        [(s[:, 0:8:2], "s.h5", "a", (12, 10), s[0::3, 1:9:2])],
        fill=1,
    )
    agree(tmp_path / "v.h5", library)
    agree(tmp_path / "v.h5", library, "w")


def blocks(path, name, shape, mappings, dtype=h5py.h5t.STD_I64LE):
    """Mappings from low-level spaces: (space of the virtual dataset, file,
    dataset, space of the source)."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    for to, file, dataset, at in mappings:
        plist.set_virtual(to, file.encode(), dataset.encode(), at)
    with h5py.File(path, "a", libver=FORMAT) as f:
        space = shape if isinstance(shape, h5py.h5s.SpaceID) else h5py.h5s.create_simple(shape)
        h5py.h5d.create(f.id, name.encode(), dtype, space, plist)


def selected(shape, *boxes):
    """A space in which the boxes (start, count, stride, block) are selected."""
    space = h5py.h5s.create_simple(shape)
    space.select_none()
    for start, count, stride, block in boxes:
        space.select_hyperslab(start, count, stride, block, op=h5py.h5s.SELECT_OR)
    return space


def test_irregular_selections_and_other_shapes(tmp_path, library):
    write(
        tmp_path / "s.h5",
        d=np.arange(60).reshape(6, 10),
        flat=np.arange(100, 124),
        deep=np.arange(24).reshape(2, 3, 4),
    )
    one = ((1, 1), (1, 1), (1, 1))
    # 12 + 20 - 4 = 28
    cross = selected((6, 10), ((0, 4), (1, 1), (1, 1), (6, 2)), ((2, 0), (1, 1), (1, 1), (2, 10)))
    # 24 + 4
    boxes = selected(
        (6, 10),
        ((0, 0), (2, 2), (3, 5), (2, 3)),
        ((5, 9), *one),
        ((4, 9), *one),
        ((2, 3), *one),
        ((2, 4), *one),
    )
    blocks(tmp_path / "v.h5", "irregular", (6, 10), [(cross, "s.h5", "d", boxes)])
    flat, deep = (
        selected((24,), ((0,), (1,), (1,), (24,))),
        selected((2, 3, 4), ((0, 0, 0), (1, 1, 1), (1, 1, 1), (2, 3, 4))),
    )
    blocks(
        tmp_path / "v.h5",
        "rows",
        (4, 6),
        [(selected((4, 6), ((0, 0), (1, 1), (1, 1), (4, 6))), "s.h5", "flat", flat)],
    )
    blocks(tmp_path / "v.h5", "mixed", (24,), [(flat, "s.h5", "deep", deep)])
    blocks(
        tmp_path / "v.h5",
        "block",
        (20, 2),
        [(selected((20, 2), ((1, 0), (4, 1), (5, 1), (3, 2))), "s.h5", "flat", flat)],
    )
    for name in ("irregular", "rows", "mixed", "block"):
        agree(tmp_path / "v.h5", library, name)


def test_axes_of_length_one_come_and_go(tmp_path, library):
    write(tmp_path / "s.h5", d=np.arange(60).reshape(3, 4, 5))
    with h5py.File(tmp_path / "s.h5", "a") as f:
        f.create_dataset("c", data=f["d"][()], chunks=(2, 3, 2))
    s = np.s_
    for name in "dc":
        mappings = [(s[k, 0, :], "s.h5", name, (3, 4, 5), s[k, :, k + 1]) for k in range(3)]
        virtual(tmp_path / "v.h5", name, (3, 1, 4), "<i8", mappings)
        agree(tmp_path / "v.h5", library, name)


def test_the_later_of_two_mappings_wins(tmp_path, library):
    for k in range(6):
        write(tmp_path / f"s{k}.h5", d=np.full((5, 5), k))
    for case in range(12):
        corners = rng.integers(0, 8, (6, 2))
        mappings = [
            (np.s_[i : i + 5, j : j + 5], f"s{k}.h5", "d", (5, 5), None)
            for k, (i, j) in enumerate(corners)
        ]
        virtual(tmp_path / "v.h5", f"v{case}", (13, 12), "<i8", mappings, fill=-1)
        agree(tmp_path / "v.h5", library, f"v{case}")


def test_source_in_the_same_file_and_virtual_sources_of_virtual_datasets(tmp_path, library):
    data = rng.integers(0, 99, (8, 6))
    write(tmp_path / "v.h5", d=data)
    virtual(
        tmp_path / "v.h5", "inner", (8, 7), "<i8", [(np.s_[:, 1:], ".", "d", (8, 6), None)], fill=5
    )
    mappings = [
        (0, ".", "inner", (8, 7), np.s_[0:8:2]),
        (1, "v.h5", "/inner", (8, 7), np.s_[1:8:2]),
    ]
    virtual(tmp_path / "v.h5", "v", (2, 4, 7), "<i8", mappings)
    agree(tmp_path / "v.h5", library)


def test_a_virtual_dataset_that_is_a_source_of_itself(tmp_path, library):
    virtual(tmp_path / "a.h5", "v", (4,), "<i8", [(np.s_[:], "b.h5", "v", (4,), None)])
    virtual(tmp_path / "b.h5", "v", (4,), "<i8", [(np.s_[:], "a.h5", "v", (4,), None)])
    with pytest.raises(Refused, match=r"corrupt.*is a source of itself"):
        dump(tmp_path / "a.h5", "v", library=library)


def test_byte_order_and_type_of_sources(tmp_path, library):
    write(
        tmp_path / "s.h5",
        big=np.arange(4, dtype=">f4"),
        small=np.arange(4, dtype="i2"),
        text=np.array([b"ab"] * 4),
    )
    for name in ("big", "small", "text"):
        virtual(tmp_path / "v.h5", name, (4,), "<f4", [(np.s_[:], "s.h5", name, (4,), None)])
    assert agree(tmp_path / "v.h5", library, "big")["parts"][0]["order"] == ">"
    assert agree(tmp_path / "v.h5", library, "small")["parts"][0]["kind"] == "reader"
    with pytest.raises(Refused) as refused:
        dump(tmp_path / "v.h5", "text", library=library)
    assert (
        refused.value.status == "mismatch"
        and "<f4" in refused.value.message
        and "|S2" in refused.value.message
    )


@pytest.mark.parametrize(
    "stored, fits", [({"A": 0, "B": 9}, True), ({"A": 1, "B": 0}, False), (None, False)]
)
@pytest.mark.parametrize("order", "<>")
def test_enumerations_as_sources(tmp_path, library, stored, fits, order):
    """libhdf5 converts them by their names,
    so the numbers of another enumeration are not those to load."""
    base, data = (
        order + "i2",
        np.array([0, 9, 0, 9], "i2") if fits else np.array([0, 1, 1, 0], "i2"),
    )
    with h5py.File(tmp_path / "s.h5", "w") as f:
        f.create_dataset(
            "d", data=data, dtype=h5py.enum_dtype(stored, basetype=base) if stored else base
        )
    kind = h5py.h5t.py_create(h5py.enum_dtype({"A": 0, "B": 9}, basetype="<i2"), logical=True)
    whole = h5py.h5s.create_simple((4,))
    blocks(tmp_path / "v.h5", "v", (4,), [(whole, "s.h5", "d", whole)], kind)
    if fits:
        agree(tmp_path / "v.h5", library)
    else:
        with pytest.raises(Refused, match="enumeration") as caught:
            dump(tmp_path / "v.h5", "v", library=library)
        assert caught.value.status == "mismatch"


def test_case_14_lost_sources_are_told_apart(tmp_path, library):
    write(tmp_path / "s0.h5", d=np.arange(3))
    (tmp_path / "s2.h5").write_text("this is no HDF5 file")
    write(tmp_path / "s3.h5", other=np.arange(3))
    write(tmp_path / "s4.h5", d=np.arange(3))
    (tmp_path / "s4.h5").write_bytes((tmp_path / "s4.h5").read_bytes()[:-8])
    virtual(
        tmp_path / "v.h5",
        "v",
        (5, 3),
        "<i8",
        [(k, f"s{k}.h5", "d", (3,), None) for k in range(5)],
        fill=6,
    )
    out = dump(tmp_path / "v.h5", "v", library=library)
    lost = {part["lo"][0]: part for part in out["parts"] if part["kind"] == "lost"}
    assert {k: part["status"] for k, part in lost.items()} == {
        1: "not_found",
        2: "corrupt",
        3: "not_found",
        4: "short_file",
    }
    for k, part in lost.items():
        assert (
            f"s{k}.h5" in part["text"]
            and '"d"' in part["text"]
            and part["hi"] == [k + 1, 3]
            and "\n" not in part["text"]
        )
        assert np.frombuffer(bytes.fromhex(part["fill"]), "i8") == 6
    assert "other" in lost[3]["text"]
    want = np.full((5, 3), 6)
    want[0] = np.arange(3)
    assert same(assemble(out, lost=6), want)


@pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root to become somebody who may not read a file"
)
def test_case_14_a_source_that_may_not_be_read(tmp_path, library):
    write(tmp_path / "s.h5", d=np.arange(3))
    virtual(tmp_path / "v.h5", "v", (3,), "<i8", [(np.s_[:], "s.h5", "d", (3,), None)])
    os.chmod(tmp_path / "s.h5", 0)
    for folder in (tmp_path, *tmp_path.parents[:2]):
        os.chmod(folder, 0o755)
    try:
        out = dump(tmp_path / "v.h5", "v", library=library, preexec_fn=lambda: os.setuid(65534))
    except (AssertionError, PermissionError, Refused):
        pytest.skip("the build or the library cannot be read by another user")
    assert [part["status"] for part in out["parts"]] == ["permission"]


def test_case_15_thousands_of_sources_under_a_limit_of_64_open_files(tmp_path, library):
    for k in range(200):
        write(tmp_path / f"s{k}.h5", d=np.arange(2 * k, 2 * k + 2))
    virtual(
        tmp_path / "v.h5",
        "v",
        (200, 2),
        "<i8",
        [(k, f"s{k}.h5", "d", (2,), None) for k in range(200)],
        fill=-1,
    )
    out = dump(
        tmp_path / "v.h5",
        "v",
        library=library,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)),
    )
    assert same(assemble(out), np.arange(400).reshape(200, 2))
    assert out["most_open"] == 2 and out["described_opens"] == 201


def test_case_16_a_decoy_is_never_taken(tmp_path, library):
    tree = tmp_path / "V"
    write(tree / "tiles" / "s.h5", d=np.full(3, 1))
    virtual(tree / "relative.h5", "v", (3,), "<i8", [(np.s_[:], "tiles/s.h5", "d", (3,), None)])
    virtual(
        tree / "absolute.h5",
        "v",
        (3,),
        "<i8",
        [(np.s_[:], tree / "tiles" / "s.h5", "d", (3,), None)],
    )
    write(tree / "s.h5", d=np.full(3, 2))  # beside the virtual file
    write(tmp_path / "cwd" / "tiles" / "s.h5", d=np.full(3, 3))  # under the working directory
    for name in ("relative.h5", "absolute.h5"):
        assert same(values(tree / name, "v", library=library, cwd=tmp_path / "cwd"), np.full(3, 1))
    os.symlink(tree / "relative.h5", tmp_path / "cwd" / "linked.h5")
    os.rename(tmp_path / "cwd" / "tiles", tmp_path / "cwd" / "no")
    assert same(values(tmp_path / "cwd" / "linked.h5", "v", library=library), np.full(3, 1))
    os.rename(tmp_path / "cwd" / "no", tmp_path / "cwd" / "tiles")
    moved = tmp_path / "W"
    os.rename(tree, moved)
    assert same(
        values(moved / "relative.h5", "v", library=library, cwd=tmp_path / "cwd"), np.full(3, 1)
    )
    (part,) = dump(moved / "absolute.h5", "v", library=library, cwd=tmp_path / "cwd")["parts"]
    assert (
        part["status"] == "not_found"
        and "was not taken" in part["text"]
        and str(moved / "s.h5") in part["text"]
    )
    os.remove(moved / "tiles" / "s.h5")
    (part,) = dump(moved / "relative.h5", "v", library=library, cwd=tmp_path / "cwd")["parts"]
    assert part["status"] == "not_found" and "was not taken" in part["text"]


def test_case_18_a_mapping_that_claims_more_than_its_source_has(tmp_path, library):
    write(tmp_path / "s.h5", d=np.arange(4).reshape(2, 2), flat=np.arange(9))
    virtual(tmp_path / "v.h5", "large", (3, 3), "<i8", [(np.s_[:, :], "s.h5", "d", (3, 3), None)])
    virtual(tmp_path / "v.h5", "rank", (3, 3), "<i8", [(np.s_[:, :], "s.h5", "flat", (3, 3), None)])
    for name, found in (("large", "(2, 2)"), ("rank", "(9)")):
        with pytest.raises(Refused) as refused:
            dump(tmp_path / "v.h5", name, library=library)
        assert (
            refused.value.status == "mismatch"
            and "(3, 3)" in refused.value.message
            and found in refused.value.message
        )
        assert "s.h5" in refused.value.message


# ---- ends that depend on the sources ----


def unlimited(shape, largest, start, count, stride, block):
    space = h5py.h5s.create_simple(shape, largest)
    space.select_hyperslab(start, count, stride, block)
    return space


def endless(extent, start, step=1, block=1, rows=3):
    """All of axis 1, and along axis 0 blocks without end."""
    return unlimited(
        (extent, rows),
        (h5py.h5s.UNLIMITED, rows),
        (start, 0),
        (h5py.h5s.UNLIMITED, 1),
        (step, rows),
        (block, rows),
    )


@pytest.mark.parametrize("names", [("s%b.h5", "d"), ("all.h5", "d%b"), ("s%b.h5", "e%b")])
def test_numbered_sources_are_counted(tmp_path, library, names):
    for k in range(3):
        write(tmp_path / f"s{k}.h5", d=np.full((2, 3), k), **{f"e{k}": np.full((2, 3), 10 + k)})
        write(tmp_path / "all.h5", **{f"d{k}": np.full((2, 3), 20 + k)})
    write(tmp_path / "s4.h5", d=np.zeros((2, 3)))  # behind a gap: not counted
    to = endless(2, 0, 2, 2)
    blocks(tmp_path / "v.h5", "v", to, [(to, *names, h5py.h5s.create_simple((2, 3)))])
    out = agree(tmp_path / "v.h5", library)
    assert out["shape"] == [6, 3]


@pytest.mark.parametrize("rows", [1, 4, 7])
def test_selections_without_end_reach_as_far_as_the_source(tmp_path, library, rows):
    with h5py.File(tmp_path / "s.h5", "w") as f:
        f.create_dataset(
            "a", data=np.arange(3 * rows).reshape(rows, 3), maxshape=(None, 3), chunks=(2, 3)
        )
        f.create_dataset(
            "b", data=-np.arange(3 * rows).reshape(rows, 3), maxshape=(None, 3), chunks=(2, 3)
        )
    source = endless(rows, 0)
    blocks(tmp_path / "v.h5", "v", endless(1, 0), [(endless(1, 0), "s.h5", "a", source)])
    blocks(
        tmp_path / "v.h5",
        "two",
        endless(2, 0),
        [(endless(2, 0, 2), "s.h5", "a", source), (endless(2, 1, 2), "s.h5", "b", source)],
    )
    agree(tmp_path / "v.h5", library)
    agree(tmp_path / "v.h5", library, "two")


def test_a_selection_without_end_needs_its_source(tmp_path, library):
    blocks(tmp_path / "v.h5", "v", endless(1, 0), [(endless(1, 0), "gone.h5", "a", endless(1, 0))])
    with pytest.raises(Refused, match=r"not_found.*gone.h5"):
        dump(tmp_path / "v.h5", "v", library=library)


@pytest.mark.parametrize("libver", ["v112", "v114", "latest"])
def test_newer_formats_are_read_or_refused_by_old_libraries(tmp_path, library, libver, monkeypatch):
    monkeypatch.setitem(globals(), "FORMAT", libver)
    write(tmp_path / "s.h5", d=np.arange(12).reshape(3, 4))
    virtual(
        tmp_path / "v.h5", "v", (6, 4), "<i8", [(np.s_[::2], "s.h5", "d", (3, 4), None)], fill=-1
    )
    try:
        agree(tmp_path / "v.h5", library)
    except Refused as refused:
        assert (
            "103" in library
            and "bad version number" in refused.message
            and "TEGULA_HDF5_LIBRARY" in refused.hint
        )
        assert refused.status == "unsupported" and "newer HDF5" in refused.hint
