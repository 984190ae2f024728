# clean removes what write made and nothing else, whatever the list in the folder says.
#
# SPDX-License-Identifier: Apache-2.0
import json
import os
import shutil
import subprocess
import tempfile

import pytest

from command import BIN, refused, report, tegula, usage_error


@pytest.fixture
def written(tmp_path):
    report("write", tmp_path / "s", "--num-shards", 3, "--shape", "30,2")
    return tmp_path / "s"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def listed(folder):
    return json.loads((folder / ".tegula-write.json").read_text())


def set_list(folder, files):
    (folder / ".tegula-write.json").write_text(json.dumps(dict(listed(folder), files=files)))


def test_round_trip(written):
    report("load", written, "--check-seed", 0)
    assert report("clean", written) == {
        "dir": str(written),
        "removed": 3,
        "left": [],
        "folder_kept": None,
    }
    assert not written.exists()


def test_for_people(written):
    run = tegula("clean", str(written) + "/")
    assert run.returncode == 0 and "3 files" in run.stdout
    assert not written.exists()


def test_a_changed_file_stays(written):
    with open(written / "shard_0001.npy", "ab") as file:
        file.write(b"x")
    answer = report("clean", written, status=1)
    assert answer["removed"] == 2 and answer["left"] == [
        {"name": "shard_0001.npy", "reason": "its size changed"}
    ]
    assert "shard_0001.npy" in answer["error"]["message"]
    assert names(written) == [".tegula-write.json", "shard_0001.npy"]


def test_clean_can_be_repeated(written):
    path = written / "shard_0001.npy"
    note, size = listed(written), path.stat().st_size
    with open(path, "ab") as file:
        file.write(b"x")
    report("clean", written, status=1)
    assert listed(written) == dict(note, files=[{"name": "shard_0001.npy", "size": size}])
    (written / "shard_0000.npy").write_bytes(b"mine")
    assert report("clean", written, status=1)["removed"] == 0
    os.truncate(path, size)
    answer = report("clean", written, status=1)
    assert answer["removed"] == 1 and answer["left"] == [
        {"name": "shard_0000.npy", "reason": "not made by tegula write"}
    ]
    assert names(written) == ["shard_0000.npy"]


@pytest.mark.parametrize("name", [".", "./", "../s/."])
def test_the_working_folder_stays_empty(written, name):
    answer = report("clean", name, cwd=written)
    assert answer["removed"] == 3 and answer["left"] == [] and answer["folder_kept"]
    assert names(written) == []


@pytest.mark.parametrize("end", ["", "/"])
def test_a_folder_behind_a_link_stays_empty(written, tmp_path, end):
    (tmp_path / "link").symlink_to(written)
    run = tegula("clean", str(tmp_path / "link") + end)
    assert (
        run.returncode == 0
        and run.stdout.count("\n") == 1
        and "removed 3 files" in run.stdout
        and "link" in run.stdout
    )
    assert names(written) == [] and (tmp_path / "link").is_symlink()


def as_nobody():
    os.setgid(65534)
    os.setuid(65534)


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user, which only root may")
def test_a_folder_that_cannot_be_written_names_each_file_once():
    folder = tempfile.mkdtemp(dir="/tmp")
    try:
        os.chmod(folder, 0o755)
        report("write", os.path.join(folder, "s"), "--num-shards", 3, "--shape", "30,2")
        binary = os.path.join(folder, "tegula")
        shutil.copy(BIN, binary)
        answer = subprocess.run(
            [binary, "clean", "--json", os.path.join(folder, "s")],
            stdout=subprocess.PIPE,
            preexec_fn=as_nobody,
            check=False,
        )
        left = [entry["name"] for entry in json.loads(answer.stdout)["left"]]
        assert answer.returncode == 1 and sorted(left) == [
            "shard_%04d.npy" % number for number in range(3)
        ]
        assert report("clean", os.path.join(folder, "s"))["removed"] == 3
    finally:
        shutil.rmtree(folder)


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


# names that lead elsewhere, and names of files in the folder that write does not make
ELSEWHERE = [
    "notes.txt",
    "shard_0001.raw",
    "shard_1.npy",
    "shard_0001.npy.bak",
    "shard_.npy",
    "shard_00x1.npy",
    "Shard_0001.npy",
    "../victim",
    "..",
    ".",
    "/etc/hostname",
    "sub/victim",
    "./shard_0000.npy",
    "",
    ".tegula-write.json",
    None,
    7,
]


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_name_that_leads_elsewhere_voids_the_list(written, tmp_path, name):
    (tmp_path / "victim").write_bytes(b"1234")
    (written / "sub").mkdir()
    (written / "sub" / "victim").write_bytes(b"1234")
    (written / "notes.txt").write_bytes(b"1234")
    before = names(written)
    set_list(written, listed(written)["files"] + [{"name": name, "size": 4}])
    refused("clean", written, status="corrupt", says=[".tegula-write.json"])
    assert names(written) == before
    assert (
        (written / "notes.txt").exists()
        and (tmp_path / "victim").exists()
        and (written / "sub" / "victim").exists()
    )


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        "[" * 100000,
        "\xff",
        '{"files": []}',
        '{"format": "npy", "files": 3}',
        '{"format": "npy", "files": [3]}',
        '{"format": "txt", "files": [{"name": "shard_0001.txt", "size": 4}]}',
        '{"format": "npy", "files": [{"name": "shard_0001.npy"}]}',
        '{"format": "npy", "files": [{"name": "shard_0001.npy", "size": "4"}]}',
        '{"format": "npy", "files": [{"name": "shard_0001.npy\\u0000b", "size": 4}]}',
        '{"format": "npy", "files": [{"name": "shard_0001.npy", "size": 99999999999999999999}]}',
    ],
)
def test_a_damaged_list_is_refused(written, content):
    before = names(written)
    (written / ".tegula-write.json").write_bytes(content.encode("latin1"))
    refused("clean", written, status="corrupt", says=[".tegula-write.json", written])
    assert names(written) == before


def test_links_and_folders_are_not_removed(written, tmp_path):
    (tmp_path / "victim").write_bytes(b"1234")
    link, folder = written / "shard_0007.npy", written / "shard_0008.npy"
    os.symlink(tmp_path / "victim", link)
    folder.mkdir()
    files = [{"name": link.name, "size": size} for size in (4, os.lstat(link).st_size)]
    files.append({"name": folder.name, "size": os.lstat(folder).st_size})
    set_list(written, listed(written)["files"] + files)
    answer = report("clean", written, status=1)
    assert {entry["name"] for entry in answer["left"]} == {link.name, folder.name} and answer[
        "removed"
    ] == 3
    assert (tmp_path / "victim").read_bytes() == b"1234"
    assert names(written) == [".tegula-write.json", link.name, folder.name]


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
