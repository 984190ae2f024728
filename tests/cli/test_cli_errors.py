# What bad input gets from the shell: one message that names the file, what was expected and what
# was found, and the right status.
#
# SPDX-License-Identifier: Apache-2.0
#
# `load` is used throughout; a report with an error object has no numbers in it,
# so nothing was handed over.
import os
import pathlib
import struct
import tempfile

import numpy
import pytest

from command import BIN, refused, report, start


def save(folder, pieces, name="shard_%04d.npy"):
    folder.mkdir(exist_ok=True)
    for number, piece in enumerate(pieces):
        numpy.save(folder / (name % number), piece)
    return folder


def good(count=4):
    return [numpy.ones((5, 3), "f4")] * count


def npy(header, data=b"", length=None):
    """An npy 1.0 file with this text as header."""
    text = header.encode("latin1")
    return (
        b"\x93NUMPY\x01\x00"
        + struct.pack("<H", len(text) if length is None else length)
        + text
        + data
    )


def test_missing_folder(tmp_path):
    error = refused("load", tmp_path / "gone", status="not_found", says=[tmp_path / "gone"])
    assert error["path"] == str(tmp_path / "gone") and error["errno"] in (None, 2)
    refused("load", str(tmp_path / "gone_*.npy"), status="not_found", says=["gone_*.npy"])


def test_empty_folder(tmp_path):
    refused("load", tmp_path, status="not_found", says=[tmp_path])


def test_hole(tmp_path):
    save(tmp_path, good(5))
    (tmp_path / "shard_0002.npy").unlink()
    refused("load", tmp_path, status="incomplete", says=["2"])


def test_duplicate_number(tmp_path):
    save(tmp_path, good(3), "part_%d.npy")
    numpy.save(tmp_path / "part_01.npy", good()[0])
    refused("load", tmp_path, status="mismatch", says=["part_01.npy"])


def test_mixed_padding(tmp_path):
    save(tmp_path, good(3), "part_%02d.npy")
    (tmp_path / "part_02.npy").rename(tmp_path / "part_2.npy")
    refused("load", tmp_path, status="mismatch", says=["part_2.npy"])


def test_foreign_file_and_sub_folder(tmp_path):
    save(tmp_path / "a", good())
    (tmp_path / "a" / "notes.txt").write_text("x")
    refused("load", tmp_path / "a", status="mismatch", says=["notes.txt"])
    save(tmp_path / "b", good())
    (tmp_path / "b" / "shard_0004.npy").mkdir()
    refused(
        "load",
        tmp_path / "b",
        status=("mismatch", "unsupported", "invalid_argument"),
        says=["shard_0004.npy"],
    )


def test_dtypes_differ(tmp_path):
    save(tmp_path, [*good(2), numpy.ones((5, 3), "f8")])
    error = refused("load", tmp_path, status="mismatch", says=["shard_0002.npy", "f8", "f4"])
    assert error["path"] == str(tmp_path / "shard_0002.npy")


def test_trailing_axes_differ(tmp_path):
    save(tmp_path, [*good(2), numpy.ones((5, 4), "f4")])
    refused("load", tmp_path, status="mismatch", says=["shard_0002.npy", "3", "4"])
    save(tmp_path, [*good(2), numpy.ones((5, 3, 1), "f4")])
    refused("load", tmp_path, status="mismatch", says=["shard_0002.npy"])


def test_scalar_shard(tmp_path):
    save(tmp_path, [*good(1), numpy.float32(1)])
    refused("load", tmp_path, status=("mismatch", "unsupported"), says=["shard_0001.npy"])


def test_truncated_data(tmp_path):
    save(tmp_path, good(3))
    path = tmp_path / "shard_0001.npy"
    os.truncate(path, path.stat().st_size - 30)
    error = refused("load", tmp_path, status="short_file", says=["shard_0001.npy", 188, 158])
    assert error["path"] == str(path)


@pytest.mark.parametrize("size", [0, 3, 6, 9, 20, 100])
def test_truncated_header(tmp_path, size):
    save(tmp_path, good(2))
    os.truncate(tmp_path / "shard_0001.npy", size)
    refused(
        "load", tmp_path, status=("short_file", "corrupt", "unsupported"), says=["shard_0001.npy"]
    )


HOSTILE = {
    "length 2^63": (
        "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,), }",
        ("corrupt",),
    ),
    "length 2^63-1": (
        "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,), }",
        ("corrupt", "short_file"),
    ),
    "product": (
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4), }",
        ("corrupt", "short_file"),
    ),
    "negative": ("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 3), }", ("corrupt",)),
    "65 axes": (
        "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }" % ("1, " * 65),
        ("limit_exceeded",),
    ),
    "unknown dtype": (
        "{'descr': '<q4', 'fortran_order': False, 'shape': (3,), }",
        ("unsupported", "corrupt"),
    ),
    "object": ("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }", ("unsupported",)),
    "code": (
        "{'descr': __import__('os').getcwd(), 'fortran_order': False, 'shape': (3,), }",
        ("corrupt",),
    ),
    "no shape": ("{'descr': '<f4', 'fortran_order': False, }", ("corrupt",)),
    "nesting": (
        "{'descr': %s, 'fortran_order': False, 'shape': (3,), }" % ("[" * 3000),
        ("corrupt", "limit_exceeded"),
    ),
    "not closed": ("{'descr': '<f4', 'fortran_order': False, 'shape': (3,", ("corrupt",)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_header(tmp_path, name):
    header, statuses = HOSTILE[name]
    (tmp_path / "h.npy").write_bytes(npy(header + " \n", bytes(64)))
    refused("load", tmp_path / "h.npy", status=statuses, says=["h.npy"])


def test_header_longer_than_the_file(tmp_path):
    (tmp_path / "h.npy").write_bytes(npy("{}", length=65535))
    refused("load", tmp_path / "h.npy", status="short_file", says=["h.npy"])


def test_braces_and_key_words_inside_field_names(tmp_path):
    array = numpy.zeros(
        4, [("}, 'shape': (9,)", "<i4"), ("{'descr'", "<f8"), ("fortran_order': True", "u1")]
    )
    numpy.save(tmp_path / "r.npy", array)
    answer = report("load", tmp_path / "r.npy")
    assert answer["shape"] == [4] and answer["dtype"] == "|V13"


def test_raw_size_is_no_multiple_of_the_row(tmp_path):
    (tmp_path / "a.bin").write_bytes(bytes(4097))
    load = ["load", tmp_path / "a.bin", "--format", "raw", "--dtype", "i4"]
    refused(*load, "--row-shape", 2, status="corrupt", says=["a.bin", "1 byte"])
    refused(*load, "--shape", "2000", status="short_file", says=["a.bin", 8000, 4097])


def test_several_paths_must_be_files(tmp_path):
    save(tmp_path / "a", good())
    save(tmp_path / "b", good())
    file = tmp_path / "b" / "shard_0000.npy"
    for other in (tmp_path / "a", tmp_path / "a" / "*.npy"):
        for paths in ((other, file), (file, other)):
            error = report("load", *paths, status=1)["error"]
            assert error["path"] == str(other) and "alone" in error["hint"]
    assert "alone" not in (
        report("load", file, tmp_path / "gone.npy", status=1)["error"]["hint"] or ""
    )


def test_raw_without_dtype_is_not_guessed(tmp_path):
    (tmp_path / "a.bin").write_bytes(bytes(64))
    error = refused("load", tmp_path / "a.bin", status="unsupported", says=["a.bin"])
    assert error["hint"] is not None


def test_unreadable_file(tmp_path):
    if os.getuid() == 0:
        pytest.skip("root reads every file; test_unreadable_file_as_another_user covers it")
    save(tmp_path, good())
    os.chmod(tmp_path / "shard_0001.npy", 0)
    refused("load", tmp_path, status="permission", says=["shard_0001.npy"])


def test_unreadable_file_as_another_user():
    if os.getuid() != 0:
        pytest.skip("only root can start a program as another user")
    with tempfile.TemporaryDirectory() as name:
        folder = save(pathlib.Path(name), good())
        os.chmod(folder, 0o755)
        os.chmod(folder / "shard_0001.npy", 0)
        for above in [*folder.parents, *pathlib.Path(BIN).resolve().parents]:
            if not above.stat().st_mode & 1:
                pytest.skip("another user cannot reach %s" % above)
        error = refused(
            "load",
            folder,
            status="permission",
            says=["shard_0001.npy"],
            user=65534,
            group=65534,
            extra_groups=[],
        )
    assert error["errno"] == 13


def test_no_memory_is_said_before_reading(tmp_path):
    header = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (8796093022208,), }\n")
    path = tmp_path / "huge.npy"
    path.write_bytes(header)
    try:
        os.truncate(path, len(header) + 8796093022208)
    except OSError as reason:
        pytest.skip("no sparse file of 8 TiB here: %s" % reason)
    refused("load", path, status="out_of_memory", says=[8796093022208])


def test_special_files_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.npy")
    refused(
        "load",
        tmp_path / "pipe.npy",
        status=("unsupported", "not_found", "io"),
        says=["pipe.npy"],
        exit_status=1,
    )


def test_zero_row_shards_are_fine(tmp_path):
    save(tmp_path / "a", [numpy.ones((2, 4)), numpy.ones((0, 4)), numpy.ones((3, 4))])
    assert report("load", tmp_path / "a")["shape"] == [5, 4]
    save(tmp_path / "b", [numpy.ones((0, 4))] * 3)
    assert report("load", tmp_path / "b", "--tiles", 4)["shape"] == [0, 4]


def test_a_file_that_shrinks_while_it_is_read(tmp_path):
    """Cut again and again during repeated loads:
    each load is right or says what happened; it never crashes."""
    path = tmp_path / "a.npy"
    numpy.save(path, numpy.ones(4 << 20, "f4"))
    whole = path.stat().st_size
    process = start("load", path, "--repeat", 100000, "--json")
    while process.poll() is None:
        os.truncate(path, whole // 2)
        os.truncate(path, whole)
    out, err = process.communicate()
    assert process.returncode == 1 and "a.npy" in err
    assert any('"status": "%s"' % status in out for status in ("changed", "short_file"))
