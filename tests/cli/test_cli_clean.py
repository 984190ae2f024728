# clean removes what write made and nothing else, whatever the list in the folder says.
#
# SPDX-License-Identifier: Apache-2.0
import json
import os

import pytest

from command import refused, report, tegula, usage_error


@pytest.fixture
def written(tmp_path):
    report("write", tmp_path / "s", "--num-shards", 3, "--shape", "30,2")
    return tmp_path / "s"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def listed(folder):
    return json.loads((folder / ".tegula-write.json").read_text())


def set_list(folder, files):
    (folder / ".tegula-write.json").write_text(json.dumps({"files": files}))


def test_round_trip(written):
    report("load", written, "--check-seed", 0)
    assert report("clean", written) == {"dir": str(written), "removed": 3, "left": []}
    assert not written.exists()


def test_for_people(written):
    run = tegula("clean", str(written) + "/")
    assert run.returncode == 0 and "3 files" in run.stdout
    assert not written.exists()


def test_a_changed_file_stays(written):
    with open(written / "shard_0001.npy", "ab") as file:
        file.write(b"x")
    answer = report("clean", written, status=1)
    assert answer["removed"] == 2 and answer["left"] == [{"name": "shard_0001.npy", "reason": "its size changed"}]
    assert "shard_0001.npy" in answer["error"]["message"]
    assert names(written) == ["shard_0001.npy"]


def test_a_stranger_stays(written):
    (written / "notes.txt").write_text("mine")
    (written / "sub").mkdir()
    answer = report("clean", written, status=1)
    assert sorted(entry["name"] for entry in answer["left"]) == ["notes.txt", "sub"]
    assert names(written) == ["notes.txt", "sub"]


def test_a_file_that_is_gone_is_no_failure(written):
    (written / "shard_0002.npy").unlink()
    assert report("clean", written)["removed"] == 2
    assert not written.exists()


def test_a_folder_without_list_is_refused(tmp_path):
    (tmp_path / "shard_0000.npy").write_bytes(b"x")
    refused("clean", tmp_path, status="not_found", says=[".tegula-write.json", tmp_path])
    refused("clean", tmp_path / "gone", status="not_found", says=["gone"])
    refused("clean", tmp_path / "shard_0000.npy", status="not_found")
    assert names(tmp_path) == ["shard_0000.npy"]


ELSEWHERE = ["../victim", "..", ".", "/etc/hostname", "sub/victim", "./shard_0000.npy", "", ".tegula-write.json", None, 7]


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_name_that_leads_elsewhere_voids_the_list(written, tmp_path, name):
    (tmp_path / "victim").write_bytes(b"1234")
    (written / "sub").mkdir()
    (written / "sub" / "victim").write_bytes(b"1234")
    before = names(written)
    set_list(written, listed(written)["files"] + [{"name": name, "size": 4}])
    refused("clean", written, status="corrupt", says=[".tegula-write.json"])
    assert names(written) == before
    assert (tmp_path / "victim").exists() and (written / "sub" / "victim").exists()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"files": 3}', '{"files": [3]}', '{"files": [{"name": "a"}]}', "[" * 100000,
                                     '{"files": [{"name": "a", "size": "4"}]}', '{"files": [{"name": "a\\u0000b", "size": 4}]}',
                                     '{"files": [{"name": "a", "size": 99999999999999999999}]}', "\xff"])
def test_a_damaged_list_is_refused(written, content):
    before = names(written)
    (written / ".tegula-write.json").write_bytes(content.encode("latin1"))
    refused("clean", written, status="corrupt", says=[".tegula-write.json", written])
    assert names(written) == before


def test_links_and_folders_are_not_removed(written, tmp_path):
    (tmp_path / "victim").write_bytes(b"1234")
    os.symlink(tmp_path / "victim", written / "link")
    (written / "folder").mkdir()
    size = os.lstat(written / "folder").st_size
    link_size = os.lstat(written / "link").st_size
    files = [{"name": "link", "size": 4}, {"name": "link", "size": link_size}, {"name": "folder", "size": size}]
    set_list(written, listed(written)["files"] + files)
    answer = report("clean", written, status=1)
    assert {entry["name"] for entry in answer["left"]} == {"link", "folder"} and answer["removed"] == 3
    assert (tmp_path / "victim").read_bytes() == b"1234"
    assert names(written) == ["folder", "link"]


def test_a_list_that_is_a_link_or_a_pipe_is_refused(written, tmp_path):
    (written / ".tegula-write.json").rename(tmp_path / "list.json")
    os.symlink(tmp_path / "list.json", written / ".tegula-write.json")
    refused("clean", written, status=("io", "corrupt"), says=[".tegula-write.json"])
    (written / ".tegula-write.json").unlink()
    os.mkfifo(written / ".tegula-write.json")
    refused("clean", written, status="corrupt", says=[".tegula-write.json"])
    assert len(names(written)) == 4 and (tmp_path / "list.json").exists()


def test_usage(written):
    usage_error("clean", written, written, says=["one path"])
    assert len(names(written)) == 4
