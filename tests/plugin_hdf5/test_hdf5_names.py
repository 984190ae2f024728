"""Finding datasets by name: links of every kind, suggestions, lists.

SPDX-License-Identifier: Apache-2.0
"""

import h5py
import numpy as np
import pytest

from described import Refused, dump, same, values


@pytest.fixture
def path(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["temperature"] = np.arange(3)
        f["run/pressure"] = np.arange(4.0)
        f["run/deep/er/x"] = np.arange(5)
        f["type"] = np.dtype("f4")
        f["soft"] = h5py.SoftLink("/run/deep/er/x")
        f["run/relative"] = h5py.SoftLink("deep/er")
        f["dangling"] = h5py.SoftLink("/nothing")
        f["circle"] = h5py.SoftLink("/circle")
        f["run/up"] = f["/"]
        f["run/again"] = f["temperature"]
    return tmp_path / "a.h5"


def test_the_only_dataset_needs_no_name(tmp_path, library):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["some/where"] = np.arange(3)
        f["link"] = h5py.SoftLink("/some/where")
    out = dump(tmp_path / "a.h5", library=library)
    assert out["name"] == "/some/where" and out["shape"] == [3]


def test_without_a_name_the_datasets_are_listed(path, library):
    with pytest.raises(Refused) as refused:
        dump(path, library=library)
    assert (
        refused.value.status == "invalid_argument" and "holds 3 datasets" in refused.value.message
    )
    assert refused.value.hint == (
        'name one of them, or a numbered sequence by a pattern: "/run/again", '
        '"/run/deep/er/x", "/run/pressure"'
    )


def test_a_file_without_datasets(tmp_path, library):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_group("g")
    with pytest.raises(Refused, match=r"not_found.*holds no datasets"):
        dump(tmp_path / "a.h5", library=library)


@pytest.mark.parametrize(
    "name, shape",
    [
        ("temperature", [3]),
        ("/temperature", [3]),
        ("//run///pressure", [4]),
        ("./run/./pressure", [4]),
        ("soft", [5]),
        ("run/relative/x", [5]),
        ("run/up/run/up/soft", [5]),
    ],
)
def test_names_and_links_lead_to_the_dataset(path, library, name, shape):
    assert dump(path, name, library=library)["shape"] == shape


@pytest.mark.parametrize(
    "name, suggestion",
    [
        ("run/presure", "/run/pressure"),
        ("pressure", "/run/pressure"),
        ("run/X", "/run/deep/er/x"),
    ],
)
def test_near_names_are_suggested(path, library, name, suggestion):
    with pytest.raises(Refused) as refused:
        dump(path, name, library=library)
    assert (
        refused.value.status == "not_found"
        and f'"{name.split("/")[-1]}"'[1:] in refused.value.message
    )
    assert refused.value.hint == f'is it "{suggestion}"?'


def test_where_none_is_near_all_are_named(path, library):
    with pytest.raises(Refused) as refused:
        dump(path, "temperatur", library=library)  # each dataset is known by one of its names
    assert refused.value.hint == 'its datasets are "/run/again", "/run/deep/er/x", "/run/pressure"'


def test_a_group_and_a_type_are_no_datasets(path, library):
    with pytest.raises(Refused) as refused:
        dump(path, "run/deep", library=library)
    assert (
        refused.value.status == "invalid_argument"
        and '"run/deep"' in refused.value.message
        and "is a group" in refused.value.message
    )
    assert refused.value.hint == 'name a dataset in it: "/run/deep/er/x"'
    with pytest.raises(Refused, match="named datatype"):
        dump(path, "type", library=library)
    with pytest.raises(Refused, match=r"not_found.*is no group"):
        dump(path, "temperature/x", library=library)


def test_links_that_lead_nowhere(path, library):
    with pytest.raises(Refused, match=r'not_found.*"/nothing"'):
        dump(path, "dangling", library=library)
    with pytest.raises(Refused, match="round in a circle"):
        dump(path, "circle", library=library)


def test_external_links_count_from_the_folder_of_their_file(tmp_path, library):
    (tmp_path / "other").mkdir()
    (tmp_path / "cwd" / "other").mkdir(parents=True)
    for folder, value in ((tmp_path, 1), (tmp_path / "cwd", 2)):
        with h5py.File(folder / "other" / "b.h5", "w") as f:
            f["g/x"] = np.full(3, value)
            f["back"] = h5py.ExternalLink("../a.h5", "/own")
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["out"] = h5py.ExternalLink("other/b.h5", "g")
        f["there and back"] = h5py.ExternalLink("other/b.h5", "back")
        f["lost"] = h5py.ExternalLink("gone.h5", "x")
        f["own"] = np.arange(2)
    (tmp_path / "cwd" / "gone.h5").write_bytes((tmp_path / "other" / "b.h5").read_bytes())
    out = dump(tmp_path / "a.h5", "out/x", library=library, cwd=tmp_path / "cwd")
    assert out["files"][0] == str(tmp_path / "a.h5") and out["name"] == "/g/x"
    assert same(
        values(tmp_path / "a.h5", "out/x", library=library, cwd=tmp_path / "cwd"), np.full(3, 1)
    )
    assert same(values(tmp_path / "a.h5", "there and back", library=library), np.arange(2))
    with pytest.raises(Refused) as refused:
        dump(tmp_path / "a.h5", "lost", library=library, cwd=tmp_path / "cwd")
    assert (
        refused.value.status == "not_found"
        and "gone.h5" in refused.value.message
        and "external link" in refused.value.hint
    )
    listed = dump(tmp_path / "a.h5", library=library, list=1)["datasets"]
    assert [(d["name"], d["shape"]) for d in listed] == [("/own", [2]), ("/out/x", [3])]


def test_links_to_what_cannot_be_opened_are_listed_with_the_reason(tmp_path, library):
    """Not those that lead nowhere: behind these there may be a dataset,
    so the other one is not the only one."""
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["y"] = np.arange(3)
        f["link"] = h5py.ExternalLink("b.h5", "/x")
    with h5py.File(tmp_path / "b.h5", "w") as f:
        f["x"] = np.arange(5)
    whole = (tmp_path / "b.h5").read_bytes()

    def listed():
        return {
            d["name"]: d["refused"]
            for d in dump(tmp_path / "a.h5", library=library, list=1)["datasets"]
        }

    (tmp_path / "b.h5").write_bytes(whole[:100])
    found = listed()
    assert list(found) == ["/y", "/link"] and found["/y"] is None and "b.h5" in found["/link"], (
        found
    )
    with pytest.raises(Refused) as told:
        dump(tmp_path / "a.h5", library=library)
    assert (
        told.value.status == "invalid_argument"
        and "2 datasets" in told.value.message
        and '"/link"' in told.value.hint
    ), told.value
    (tmp_path / "b.h5").write_bytes(whole)
    assert listed() == {"/y": None, "/link": None}
    (tmp_path / "b.h5").unlink()
    assert listed() == {"/y": None}


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_the_list_has_every_dataset_once(tmp_path, library, libver):
    with h5py.File(tmp_path / "a.h5", "w", libver=libver) as f:
        f.create_dataset(
            "b/c",
            data=np.arange(60).reshape(6, 10),
            chunks=(4, 3),
            compression="gzip",
            shuffle=True,
        )
        f["a"] = np.zeros((2, 3), ">f8")
        f["b/loop"] = f["b"]
        f["text"] = "variable"
        f["z"] = h5py.SoftLink("/b/c")
        for k in range(300):
            f[f"many/{k:03}"] = np.int8(k % 100)
    listed = {d["name"]: d for d in dump(tmp_path / "a.h5", library=library, list=1)["datasets"]}
    assert list(listed) == sorted(["/a", "/b/c", "/text"] + [f"/many/{k:03}" for k in range(300)])
    assert listed["/a"] == {
        "name": "/a",
        "dtype": "<f8",
        "refused": None,
        "codecs": "",
        "stored_bytes": 48,
        "shape": [2, 3],
        "chunk": None,
    }
    entry = listed["/b/c"]
    assert (entry["dtype"], entry["codecs"], entry["chunk"], entry["shape"]) == (
        "<i8",
        "shuffle,deflate:4",
        [4, 3],
        [6, 10],
    )
    assert (
        listed["/text"]["dtype"] is None
        and "strings of variable length" in listed["/text"]["refused"]
    )


def test_groups_in_groups_and_long_circles_end(tmp_path, library):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        group = f
        for k in range(200):
            group = group.create_group(f"g{k}")
            group["root"] = f["/"]
        group["x"] = np.arange(3)
    with h5py.File(tmp_path / "b.h5", "w") as f:
        f["a"] = h5py.ExternalLink("c.h5", "/")
    with h5py.File(tmp_path / "c.h5", "w") as f:
        f["b"] = h5py.ExternalLink("b.h5", "/")
        f["x"] = np.arange(4)
    assert dump(tmp_path / "a.h5", library=library)["shape"] == [3]
    out = dump(tmp_path / "b.h5", library=library)
    assert out["shape"] == [4] and out["most_open"] <= 3


def test_what_an_old_libhdf5_cannot_open_is_listed_with_the_reason(tmp_path, library):
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as f:
        f["complex"] = np.zeros(3, "c16")
        f["plain"] = np.zeros(3)
    listed = {d["name"]: d for d in dump(tmp_path / "a.h5", library=library, list=1)["datasets"]}
    assert listed["/plain"]["dtype"] == "<f8"
    assert (
        listed["/complex"]["dtype"] == "<c16"
        or "bad version number for datatype" in listed["/complex"]["refused"]
    )
