# Bad input gets one clear error that names file, place, expected and found,
# before any data is copied.
#
# SPDX-License-Identifier: Apache-2.0
#
# "Before" is proved by the order of calls: open refuses, so there is no dataset that could be
# loaded, and *out is untouched.
import os
import shutil
import socket
import stat
import tempfile

import numpy
import pytest

import generate_arrays as gen
from files import check_equal, load_all, save_shards
from probe import check_error


def refused(probe, path, status, names=(), culprit=None, **options):
    where = {"paths": [str(p) for p in path]} if isinstance(path, list) else {"path": str(path)}
    answer = probe.ask({"do": "open", **where, **options})
    assert "error" in answer, "opened, but must be refused: %s" % answer
    assert answer["out_untouched"]
    error = check_error(answer["error"], status, names, path=culprit)
    with_null = probe.ask({"do": "open", **where, **options, "null_error": True})
    assert with_null["error"]["status"] == error["status"]
    return error


def shards(tmp_path, count=4, name="shard_%04d.npy", shape=(5, 3), dtype="f4"):
    return save_shards(tmp_path / "s", [numpy.ones(shape, dtype)] * count, name)


def test_missing_folder_and_file(probe, tmp_path):
    for name in ("nothing", "nothing.npy", "nothing/below/it", "no*thing_*.npy"):
        refused(probe, tmp_path / name, "not_found", [name], tmp_path / name)
    refused(probe, "", ("invalid_argument", "not_found"))


def test_missing_file_in_a_list(probe, tmp_path):
    paths = shards(tmp_path)
    refused(
        probe,
        [paths[0], tmp_path / "gone.npy", paths[1]],
        "not_found",
        ["gone.npy"],
        tmp_path / "gone.npy",
    )


def test_empty_folder(probe, tmp_path):
    (tmp_path / "s").mkdir()
    refused(probe, tmp_path / "s", "not_found", ["/s"], tmp_path / "s")
    (tmp_path / "s" / ".hidden.npy").write_bytes(b"x")
    (tmp_path / "s" / "_private.npy").write_bytes(b"x")
    refused(probe, tmp_path / "s", "not_found", ["/s"], tmp_path / "s")


def test_empty_list(probe):
    refused(probe, [], "invalid_argument")


def test_hole(probe, tmp_path):
    paths = shards(tmp_path, 6)
    paths[2].unlink()
    refused(probe, tmp_path / "s", "incomplete", ["2"])
    paths[3].unlink()
    refused(probe, tmp_path / "s", "incomplete", ["2"])


def test_a_hole_is_not_looked_for_in_a_list(probe, tmp_path):
    paths = shards(tmp_path, 4)
    got, _, _ = load_all(probe, tmp_path, [paths[3], paths[0]])
    check_equal(got, numpy.ones((10, 3), "f4"))


def test_duplicate_number(probe, tmp_path):
    paths = shards(tmp_path, 3, "part_%d.npy")
    shutil.copy(paths[1], tmp_path / "s" / "part_01.npy")
    refused(probe, tmp_path / "s", ("mismatch", "invalid_argument"), ["part_01.npy"])


def test_mixed_padding(probe, tmp_path):
    shards(tmp_path, 12, "part_%03d.npy")
    (tmp_path / "s" / "part_011.npy").rename(tmp_path / "s" / "part_11.npy")
    refused(probe, tmp_path / "s", ("mismatch", "invalid_argument"), ["part_11.npy"])


def test_several_differing_numbers(probe, tmp_path):
    paths = shards(tmp_path, 2)
    paths[0].rename(tmp_path / "s" / "a1_b1.npy")
    paths[1].rename(tmp_path / "s" / "a2_b2.npy")
    refused(probe, tmp_path / "s", ("mismatch", "invalid_argument"), ["a2_b2.npy"])


def test_foreign_file_and_folder(probe, tmp_path):
    shards(tmp_path, 3)
    (tmp_path / "s" / "README.txt").write_text("hello")
    refused(probe, tmp_path / "s", ("mismatch", "invalid_argument"), ["README.txt"])
    (tmp_path / "s" / "README.txt").unlink()
    (tmp_path / "s" / "more").mkdir()
    refused(probe, tmp_path / "s", ("mismatch", "invalid_argument"), ["more"])


def test_dtype_differs(probe, tmp_path):
    paths = shards(tmp_path)
    numpy.save(paths[2], numpy.ones((5, 3), "f8"))
    refused(probe, tmp_path / "s", "mismatch", ["shard_0002.npy", "<f4", "<f8"], paths[2])


def test_trailing_axes_differ(probe, tmp_path):
    paths = shards(tmp_path)
    numpy.save(paths[2], numpy.ones((5, 4), "f4"))
    refused(probe, tmp_path / "s", "mismatch", ["shard_0002.npy", "3", "4"], paths[2])
    numpy.save(paths[2], numpy.ones((5, 3, 1), "f4"))
    refused(probe, tmp_path / "s", "mismatch", ["shard_0002.npy"], paths[2])


def test_records_differ(probe, tmp_path):
    paths = save_shards(tmp_path / "s", [numpy.zeros(3, [("a", "<f4"), ("b", "<i4")])] * 2)
    numpy.save(paths[1], numpy.zeros(3, [("a", "<f4"), ("c", "<i4")]))
    refused(probe, tmp_path / "s", "mismatch", ["shard_0001.npy"], paths[1])


def test_scalar_shard(probe, tmp_path):
    paths = save_shards(tmp_path / "s", [numpy.float32(1), numpy.float32(2)])
    refused(probe, tmp_path / "s", ("mismatch", "unsupported"), ["shard_000"])
    got, info, _ = load_all(probe, tmp_path, paths[1])
    assert info["shape"] == [] and got == 2


def test_stated_dtype_does_not_agree(probe, tmp_path):
    paths = shards(tmp_path, 2)
    refused(
        probe, tmp_path / "s", "mismatch", ["shard_0000.npy", "<f4", "<f8"], paths[0], dtype="<f8"
    )
    refused(probe, tmp_path / "s", "invalid_argument", dtype="f3")


def test_expected_files_and_rows(probe, tmp_path):
    shards(tmp_path, 4)
    refused(probe, tmp_path / "s", "mismatch", ["4", "5"], expect_files=5)
    refused(probe, tmp_path / "s", "mismatch", ["20", "21"], expect_rows=21)
    probe.call("open", path=str(tmp_path / "s"), expect_files=4, expect_rows=20)


def test_truncated_at_every_length(probe, tmp_path):
    """No prefix of a file is taken for the file."""
    path = tmp_path / "whole.npy"
    numpy.save(path, numpy.arange(6, dtype="i2"))
    data = path.read_bytes()
    for size in range(len(data)):
        path.write_bytes(data[:size])
        error = refused(probe, path, ("short_file", "corrupt", "unsupported"), ["whole.npy"], path)
        assert size < 10 or error["status"] == "short_file", (size, error)


def test_every_byte_of_a_header_changed(probe, tmp_path):
    """A changed header is refused or describes something that the file can hold;
    it never ends the program."""
    path = tmp_path / "changed.npy"
    numpy.save(path, numpy.arange(6, dtype="i2").reshape(2, 3))
    data = bytearray(path.read_bytes())
    text_end = data.index(b"}") + 1
    opened = 0
    for place in range(text_end):
        for change in (0x01, 0x20, 0x80, 0xFF):
            data[place] ^= change
            path.write_bytes(data)
            data[place] ^= change
            answer = probe.ask({"do": "open", "path": str(path)})
            opened += "error" not in answer
            if "error" in answer:
                assert answer["error"]["status"] in (
                    "corrupt",
                    "unsupported",
                    "short_file",
                    "limit_exceeded",
                ), answer
            else:
                assert answer["bytes"] <= 12, answer
    assert opened < text_end


def test_unknown_content(probe, tmp_path):
    path = tmp_path / "noise.npy"
    path.write_bytes(bytes(range(256)) * 4)
    refused(probe, path, ("unsupported", "corrupt"), ["noise.npy"], path)
    refused(probe, path, "corrupt", ["noise.npy"], path, format="npy")
    path.write_bytes(b"")
    refused(probe, path, ("unsupported", "corrupt", "short_file"), ["noise.npy"], path)
    refused(probe, path, ("invalid_argument", "unsupported"), ["hdf6"], format="hdf6")


def test_options_that_make_no_sense(probe, tmp_path):
    paths = shards(tmp_path, 1)
    for options in ({"shape": [5, 3]}, {"row_shape": [3]}, {"offset": 8}, {"row_gap": 4}):
        refused(probe, paths[0], "invalid_argument", **options)
    raw = tmp_path / "raw.bin"
    raw.write_bytes(bytes(64))
    refused(probe, raw, "invalid_argument", format="raw")
    for options in (
        {"offset": -1},
        {"row_gap": -1},
        {"shape": [-1]},
        {"shape": [4], "row_shape": [1]},
        {"row_shape": [0]},
        {"row_shape": [-3]},
        {"order": "X"},
        {"byte_order": "!"},
        {"row_gap": 4, "order": "F", "row_shape": [2]},
        {"shape": [1] * 65},
        {"shape": [2**62, 2**62]},
        {"row_shape": [2**62, 2**62]},
    ):
        statuses = ("invalid_argument", "limit_exceeded", "short_file", "unsupported")
        refused(probe, raw, statuses, format="raw", dtype="<f4", **options)
    refused(probe, raw, "short_file", ["raw.bin", "64"], raw, format="raw", dtype="<f4", offset=65)


def test_raw_gap_that_does_not_fit(probe, tmp_path):
    raw = tmp_path / "raw.bin"
    raw.write_bytes(bytes(3 * 8 + 2 * 5))
    assert probe.call("open", path=str(raw), dtype="<f4", row_shape=[2], row_gap=5)["shape"] == [
        3,
        2,
    ]
    raw.write_bytes(bytes(3 * 8 + 3 * 5))
    assert probe.call("open", path=str(raw), dtype="<f4", row_shape=[2], row_gap=5)["shape"] == [
        3,
        2,
    ]
    raw.write_bytes(bytes(3 * 8 + 2 * 5 + 1))
    refused(
        probe,
        raw,
        ("corrupt", "short_file"),
        ["raw.bin"],
        raw,
        dtype="<f4",
        row_shape=[2],
        row_gap=5,
    )


def test_things_that_are_no_files(probe, tmp_path):
    """A pipe or socket is refused at once: an open would wait for a writer."""
    os.mkfifo(tmp_path / "pipe.npy")
    refused(
        probe,
        tmp_path / "pipe.npy",
        ("unsupported", "invalid_argument", "mismatch"),
        ["pipe.npy"],
        tmp_path / "pipe.npy",
    )
    (tmp_path / "s").mkdir()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.path.relpath(tmp_path / "s" / "a0.npy"))
    refused(probe, tmp_path / "s", ("unsupported", "invalid_argument", "mismatch"), ["a0.npy"])
    listener.close()
    refused(probe, "/dev/null", ("unsupported", "invalid_argument", "mismatch"), ["/dev/null"])


def test_link_that_leads_nowhere(probe, tmp_path):
    paths = shards(tmp_path, 2)
    os.symlink(tmp_path / "gone", tmp_path / "s" / "shard_0002.npy")
    refused(probe, tmp_path / "s", "not_found", ["shard_0002.npy"])
    paths[0].rename(tmp_path / "elsewhere.npy")
    os.symlink(tmp_path / "elsewhere.npy", paths[0])
    (tmp_path / "s" / "shard_0002.npy").unlink()
    got, _, _ = load_all(probe, tmp_path, tmp_path / "s")
    check_equal(got, numpy.ones((10, 3), "f4"))


def test_unreadable_file(new_probe, tmp_path):
    prefix = []
    folder = tempfile.mkdtemp(prefix="tegula-unreadable-")
    try:
        os.chmod(folder, stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
        paths = [os.path.join(folder, "shard_%d.npy" % i) for i in range(3)]
        for path in paths:
            numpy.save(path, numpy.ones((2, 2)))
            os.chmod(path, 0o644)
        os.chmod(paths[1], 0)
        if os.geteuid() == 0:
            if not shutil.which("setpriv"):
                pytest.skip(
                    "root may read everything, and setpriv is missing to become another user"
                )
            prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        if not can_run(prefix):
            pytest.skip("another user may not run the probe from where it was built")
        own = new_probe(prefix=prefix)
        own.call("context", threads=2)
        error = refused(own, folder, "permission", ["shard_1.npy"], paths[1])
        assert error["errno"] == 13
        os.chmod(folder, 0)
        refused(own, folder, "permission", [os.path.basename(folder)])
        os.chmod(folder, 0o755)
    finally:
        os.chmod(folder, 0o755)
        shutil.rmtree(folder)


def can_run(prefix):
    import subprocess

    from probe import program

    return (
        subprocess.run(
            [*prefix, program()], stdin=subprocess.DEVNULL, capture_output=True
        ).returncode
        == 0
    )


def test_names_that_are_not_text_in_any_encoding(probe, tmp_path):
    folder = os.fsencode(tmp_path / "s")
    os.mkdir(folder)
    full = numpy.arange(6, dtype="i4")
    for number in range(2):
        with open(folder + b"/\xff\xfe_%d.npy" % number, "wb") as file:
            numpy.save(file, full[3 * number : 3 * number + 3])
    got, _, _ = load_all(probe, tmp_path, tmp_path / "s")
    check_equal(got, full)


def test_names_with_pattern_characters(probe, tmp_path):
    """A path that exists is never taken for a pattern."""
    path = tmp_path / "run[1]*?.npy"
    numpy.save(path, numpy.arange(3))
    got, _, _ = load_all(probe, tmp_path, path)
    check_equal(got, numpy.arange(3))


def test_several_formats_in_one_set(probe, tmp_path):
    paths = shards(tmp_path, 2)
    paths[1].write_bytes(bytes(60))
    refused(
        probe, tmp_path / "s", ("mismatch", "unsupported", "corrupt"), ["shard_0001.npy"], paths[1]
    )


def test_first_bad_file_is_the_one_reported(probe, tmp_path):
    """The error is the first in the order of files, on every run and with any number of threads."""
    paths = shards(tmp_path, 40)
    for number in (11, 12, 13, 30):
        with open(paths[number], "r+b") as file:
            file.truncate(100)
    for threads in (1, 2, 4, 4, 4, 4):
        probe.call("context", threads=threads)
        refused(probe, tmp_path / "s", "short_file", ["shard_0011.npy"], paths[11])


def test_arguments_of_load_that_do_not_fit(probe, tmp_path):
    shards(tmp_path, 2)
    probe.call("open", path=str(tmp_path / "s"))
    for shape, dtype in (
        ([10, 4], "<f4"),
        ([9, 3], "<f4"),
        ([30], "<f4"),
        ([10, 3], "<f8"),
        ([10, 3], "<i4"),
    ):
        probe.batch(
            [
                {"do": "tiling", "kind": "even", "shape": shape, "tiles": 2},
                {"do": "array", "dtype": dtype},
            ]
        )
        check_error(probe.refused("load"), ("mismatch", "invalid_argument"))
    for box in (
        [[0, 11], [0, 3]],
        [[-1, 3], [0, 3]],
        [[5, 3], [0, 3]],
        [[0, 3], [0, 4]],
        [[0, 3]],
        [[0, 3]] * 3,
    ):
        check_error(
            probe.refused("read", box=box, dtype="<f4", path=str(tmp_path / "x")),
            ("mismatch", "invalid_argument"),
        )
    good_box = {"box": [[0, 3], [0, 3]], "path": str(tmp_path / "x")}
    check_error(probe.refused("read", dtype="<f8", **good_box), ("mismatch", "invalid_argument"))
    check_error(probe.refused("read", dtype="<f4", read_only=True, **good_box), "invalid_argument")
    probe.call("read", dtype="<f4", **good_box)


def test_big_endian_target_gets_values_in_its_order(probe, tmp_path):
    """The memory's own byte order counts: a view may be big-endian."""
    full = numpy.arange(12, dtype="<i4").reshape(4, 3)
    numpy.save(tmp_path / "a.npy", full)
    probe.call("open", path=str(tmp_path / "a.npy"))
    answer = probe.ask(
        {"do": "read", "box": [[1, 3], [0, 3]], "dtype": ">i4", "path": str(tmp_path / "box")}
    )
    if "error" in answer:
        check_error(answer["error"], ("unsupported", "invalid_argument", "mismatch"))
    else:
        assert (tmp_path / "box").read_bytes() == full[1:3].astype(">i4").tobytes()


def test_load_stopped_by_its_progress(probe, tmp_path):
    shards(tmp_path, 4, shape=(40000, 8))
    info = probe.call("open", path=str(tmp_path / "s"))
    probe.batch(
        [
            {"do": "tiling", "kind": "even", "shape": info["shape"], "tiles": 3},
            {"do": "array", "dtype": "<f4"},
        ]
    )
    check_error(probe.refused("load", progress=True, cancel_after=0), "cancelled")
    probe.call("load", progress=True)


def test_generated_files_are_what_numpy_reads(tmp_path):
    """The hand-written npy writer of the property tests is checked by numpy itself."""
    rng = numpy.random.default_rng(7)
    for _ in range(100):
        array = gen.random_array(rng, gen.random_shape(rng, 60), gen.random_dtype(rng))
        gen.npy_file(tmp_path / "a.npy", array, "FC"[rng.integers(2)], (3, 0))
        assert gen.plain_bytes(numpy.load(tmp_path / "a.npy")) == gen.plain_bytes(array)
