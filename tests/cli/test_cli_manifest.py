# `tegula info --manifest` and the file that it writes, as a path of every command; raw files with a
# side file and no options.
#
# SPDX-License-Identifier: Apache-2.0
import json
import os

import numpy

from command import refused, report, tegula, usage_error


def write_shards(folder, **options):
    report("write", folder, "--shape", "1000,16", "--num-shards", "4", *options)


def test_a_manifest_loads_like_the_files(tmp_path):
    write_shards(tmp_path / "s")
    out = tmp_path / "s.json"
    answer = report("info", tmp_path / "s", "--manifest", out)
    assert answer["manifest"] == str(out)
    assert (
        answer["datasets"] == report("info", out)["datasets"]
        and report("info", out)["format"] == "npy"
    )
    files, manifest = (
        report("load", tmp_path / "s", "--hash"),
        report("load", out, "--hash", "--tiles", 3, "--check-seed", 0),
    )
    assert manifest["hash"] == files["hash"] and manifest["files"] == 4
    assert report("bench", out)["ratio"] > 0
    assert sorted(os.listdir(tmp_path)) == ["s", "s.json"], "no temporary file stays"
    run = tegula("info", out, "-v")
    assert run.stdout.count("shard_000") == 4


def test_the_text_form_says_what_was_written(tmp_path):
    write_shards(tmp_path / "s")
    run = tegula("info", "s", "--manifest", "s.json", cwd=tmp_path)
    assert run.returncode == 0 and run.stdout.endswith("wrote   s.json\n")
    assert json.loads((tmp_path / "s.json").read_text())["files"][0]["path"] == "s/shard_0000.npy"
    assert tegula("load", "s.json", cwd=tmp_path).returncode == 0
    assert tegula("info", "s", "--manifest", "s.json", "--quiet", cwd=tmp_path).stdout == ""


def test_only_a_manifest_is_replaced(tmp_path):
    write_shards(tmp_path / "s")
    out = tmp_path / "s.json"
    report("info", tmp_path / "s", "--manifest", out)
    os.utime(tmp_path / "s" / "shard_0002.npy")
    error = refused("load", out, status="changed", says=["shard_0002.npy"])
    assert "--manifest" in error["hint"]
    report("info", tmp_path / "s", "--manifest", out)
    report("load", out, "--check-seed", 0)
    shard = tmp_path / "s" / "shard_0000.npy"
    before = shard.read_bytes()
    refused("info", tmp_path / "s", "--manifest", shard, status="exists", says=["shard_0000.npy"])
    assert shard.read_bytes() == before
    (tmp_path / "empty").write_bytes(b"")
    refused("info", tmp_path / "s", "--manifest", tmp_path / "empty", status="exists")
    refused("info", tmp_path / "s", "--manifest", tmp_path, status=("exists", "io"))
    refused("info", tmp_path / "s", "--manifest", tmp_path / "none" / "x.json", status="not_found")
    assert sorted(os.listdir(tmp_path)) == ["empty", "s", "s.json"]


def test_expected_files_are_those_of_the_manifest(tmp_path):
    write_shards(tmp_path / "s")
    out = tmp_path / "s.json"
    report("info", tmp_path / "s", "--manifest", out)
    report("load", out, "--expect-files", 4, "--expect-rows", 1000)
    refused("load", out, "--expect-files", 5, status="mismatch", says=[4, 5], exit_status=3)


def test_raw_options_do_not_go_with_a_manifest(tmp_path):
    write_shards(tmp_path / "s")
    out = tmp_path / "s.json"
    report("info", tmp_path / "s", "--manifest", out)
    usage_error("load", out, "--format", "manifest", "--offset", 3, says=["--offset", "manifest"])
    refused("load", out, "--offset", 3, status="invalid_argument", says=["s.json"], exit_status=2)
    refused(
        "load", tmp_path / "s", "--format", "manifest", status="corrupt", says=["shard_0000.npy"]
    )


def test_raw_files_with_a_side_file_need_no_options(tmp_path):
    array = numpy.arange(60, dtype=">i2").reshape(15, 4)
    for number, (lo, hi) in enumerate([(0, 6), (6, 15)]):
        (tmp_path / ("p%d.bin" % number)).write_bytes(b"HD" + array[lo:hi].tobytes())
    (tmp_path / "shard_meta.json").write_text(
        json.dumps({"dtype": ">i2", "trailing_shape": [4], "rows": [6, 9], "header_bytes": 2})
    )
    answer = report("load", tmp_path)
    assert (answer["format"], answer["shape"], answer["files"]) == ("raw", [15, 4], 2)
    assert report("load", tmp_path, "--format", "raw", "--row-shape", "4")["shape"] == [15, 4]
    error = refused(
        "load", tmp_path, "--offset", 3, status="mismatch", says=["shard_meta.json", 2, 3]
    )
    assert error["path"].endswith("shard_meta.json")
    (tmp_path / "shard_meta.json").unlink()
    error = refused(
        "load",
        tmp_path,
        "--format",
        "raw",
        status="invalid_argument",
        says=["dtype"],
        exit_status=2,
    )
    assert "dtype" in error["hint"]
    assert "shard_meta.json" in error["hint"]
    error = refused("info", tmp_path, "--offset", 2, status="unsupported", says=["p0.bin"])
    assert "dtype" in error["hint"]
