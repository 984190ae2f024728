# Sets that are opened with TEGULA_OPEN_DEFER_HEADERS (tegula load does): what a file holds is
# foretold from its size and the first header.
#
# SPDX-License-Identifier: Apache-2.0
#
# Every way in which a file can be another one than foretold, at every place: the command gives what
# numpy reads or the error that opening with all headers gives; the library never says OK for a
# wrong prediction, whatever is asked of the dataset.
import json
import os
import subprocess

import numpy
import pytest

from files import check_equal, save_shards
from probe import check_error
from reference_hash import content_hash

DEFER = 2  # TEGULA_OPEN_DEFER_HEADERS
LENGTHS, COLUMNS = (5, 9, 4, 7, 6), 16
ROW = COLUMNS * 4  # bytes: as long as the unit in which numpy pads headers


def pieces(dtype="<f4"):
    full = numpy.arange(sum(LENGTHS) * COLUMNS).reshape(-1, COLUMNS)
    return [piece.astype(dtype) for piece in numpy.split(full, numpy.cumsum(LENGTHS)[:-1])]


def header(text, length, version=1):
    """An npy header of exactly so many bytes."""
    size = 2 if version == 1 else 4
    body = text.encode().ljust(length - 8 - size - 1) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + len(body).to_bytes(size, "little") + body


def words(shape, descr="'<f4'", fortran=False):
    return f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {tuple(shape)}, }}"


# ---- files that have the size of the shard `piece`, but are something else ----


def longer_header(piece):
    return header(words((len(piece) - 1, COLUMNS)), 128 + ROW) + piece[1:].tobytes()


def other_dtype(piece):
    return header(words(piece.shape, "'<i4'"), 128) + piece.tobytes()


def fortran(piece):
    return header(words(piece.shape, fortran=True), 128) + piece.T.tobytes()


def big_endian(piece):
    return header(words(piece.shape, "'>f4'"), 128) + piece.astype(">f4").tobytes()


def other_columns(piece):
    return header(words((len(piece) * 2, COLUMNS // 2)), 128) + piece.tobytes()


def more_axes(piece):
    return header(words((len(piece), 2, COLUMNS // 2)), 128) + piece.tobytes()


def flat(piece):
    return (
        header(f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({piece.size},), }}", 128)
        + piece.tobytes()
    )


def truncated(piece):
    return header(words((len(piece) + 1, COLUMNS)), 128) + piece.tobytes()


def bytes_behind(piece):
    return header(words((len(piece) - 2, COLUMNS)), 128) + piece.tobytes()


def no_rows(piece):
    return header(words((0, COLUMNS)), 128) + piece.tobytes()


def scalar(piece):
    return header("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", 128) + piece.tobytes()


def no_header(piece):
    return bytes(128) + piece.tobytes()


def broken_header(piece):
    return header("{'descr': '<f4', 'fortran_order': False, 'shape': (7, }", 128) + piece.tobytes()


def pickled(piece):
    return header(words(piece.shape, "'|O'"), 128) + piece.tobytes()


def record(piece):
    return header(words(piece.shape, "[('a', '<f4')]"), 128) + piece.tobytes()


LOADABLE = {
    longer_header: lambda p: p[1:],
    fortran: lambda p: p,
    big_endian: lambda p: p,
    bytes_behind: lambda p: p[:-2],
    no_rows: lambda p: p[:0],
}
REFUSED = [
    other_dtype,
    other_columns,
    more_axes,
    flat,
    truncated,
    scalar,
    no_header,
    broken_header,
    pickled,
    record,
]
KINDS = [*LOADABLE, *REFUSED]
PLACES = [0, 2, 4]


def name_of(kind):
    return kind.__name__


def make(tmp_path, kinds):
    """The shards, those at the given places of another kind.
    Gives folder and expected values (None: refused)."""
    parts = pieces()
    paths = save_shards(tmp_path / "s", parts)
    good = True
    for place, kind in kinds.items():
        size = paths[place].stat().st_size
        paths[place].write_bytes(kind(parts[place]))
        assert paths[place].stat().st_size == size, "the file has the size that was foretold"
        if kind in LOADABLE:
            parts[place] = LOADABLE[kind](parts[place])
            numpy.testing.assert_array_equal(
                numpy.load(paths[place]), parts[place], "numpy reads what the test expects"
            )
        else:
            good = False
    return tmp_path / "s", numpy.concatenate(parts) if good else None


def run(*arguments):
    done = subprocess.run(
        [os.environ["TEGULA_BIN"], *map(str, arguments), "--json"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, json.loads(done.stdout)


def check_command(folder, expected, *options):
    status, loaded = run("load", folder, "--hash", *options)
    if expected is not None:
        assert status == 0, loaded
        assert loaded["hash"] == content_hash(expected) and loaded["shape"] == list(expected.shape)
        return loaded
    info_status, info = run("info", folder)
    assert (status, loaded) == (info_status, info) and status == 1, (
        "the error of reading all headers first"
    )
    return None


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_command_gives_what_numpy_reads_or_the_usual_error(tmp_path, kind, place):
    folder, expected = make(tmp_path, {place: kind})
    for options in (
        [],
        ["--tiles", 3],
        ["--tiles", 2, "--axis", 1],
        ["--threads", 1],
        ["--io", "direct"],
        ["--io", "io_uring"],
    ):
        check_command(folder, expected, *options)


def test_command_with_several_such_files(tmp_path):
    """The error is that of the first file in order."""
    rng = numpy.random.default_rng(0)
    for number in range(60):
        kinds = {
            int(place): KINDS[rng.integers(len(KINDS))]
            for place in rng.choice(5, rng.integers(2, 5), replace=False)
        }
        folder = tmp_path / str(number)
        folder.mkdir()
        check_command(*make(folder, kinds))


@pytest.mark.parametrize("place", [1, 4])
def test_records_of_another_description_are_refused(tmp_path, place):
    """Of the same size, behind headers of the same length: only the names of the fields differ."""
    folder = tmp_path / "s"
    parts = [piece.reshape(-1).view([("a", "<f4"), ("b", "<f4")]) for piece in pieces()]
    paths = save_shards(folder, parts)
    assert run("load", folder)[0] == 0
    size = paths[place].stat().st_size
    numpy.save(paths[place], parts[place].view([("a", "<f4"), ("c", "<f4")]))
    assert paths[place].stat().st_size == size
    status, loaded = run("load", folder)
    assert (status, loaded) == run("info", folder) and status == 1
    assert loaded["error"]["status"] == "mismatch" and loaded["error"]["path"] == str(paths[place])


def test_expected_rows_count_what_is_there(tmp_path):
    """One row fewer than foretold: the number that is right is taken,
    the foretold one is refused."""
    folder, expected = make(tmp_path, {2: longer_header})
    assert run("load", folder, "--expect-rows", len(expected))[0] == 0
    status, refused = run("load", folder, "--expect-rows", len(expected) + 1)
    assert status == 3 and refused["error"]["status"] == "mismatch"
    assert refused == run("plan", folder, "--expect-rows", len(expected) + 1)[1]


def test_side_file_is_compared_with_what_is_there(tmp_path):
    folder, expected = make(tmp_path, {2: longer_header})
    rows = [len(piece) for piece in pieces()]
    note = {"dtype": "<f4", "rows": rows}
    (folder / "shard_meta.json").write_text(json.dumps(note))
    assert run("load", folder) == run("info", folder), (
        "the foretold rows are those of the side file, but not of the file"
    )
    rows[2] -= 1
    (folder / "shard_meta.json").write_text(json.dumps(note))
    check_command(folder, expected)


# ---- the library ----


def open_deferred(probe, folder, **options):
    return probe.call("open", path=str(folder), flags=DEFER, **options)


def load(probe, info, tiles=2, axis=0):
    probe.batch(
        [
            {"do": "tiling", "kind": "even", "shape": info["shape"], "axis": axis, "tiles": tiles},
            {"do": "array", "dtype": info["dtype"]},
        ]
    )
    return probe.ask({"do": "load"})


def check_mismatch(answer, path):
    assert "error" in answer, answer
    check_error(answer["error"], "mismatch", [path], path=path)
    assert "deferring" in answer["error"]["hint"]


@pytest.mark.parametrize("place", PLACES[1:])
@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_no_call_says_ok_to_a_wrong_prediction(probe, tmp_path, kind, place):
    folder, _ = make(tmp_path, {place: kind})
    path = folder / f"shard_{place:04d}.npy"
    requests = [
        {"do": "files", "count": 1},
        {"do": "to_json"},
        {"do": "hash", "of": "dataset"},
        {"do": "read", "dtype": "<f4", "box": [[0, 1], [0, 1]], "path": str(tmp_path / "box")},
        {
            "do": "read",
            "dtype": "<f4",
            "box": [[30, 31], [0, COLUMNS]],
            "path": str(tmp_path / "box"),
        },
        {
            "do": "read",
            "dtype": "<f4",
            "box": [[3, 3], [0, COLUMNS]],
            "path": str(tmp_path / "box"),
        },
        {"do": "tiling", "kind": "dataset", "tiles": 2},
        {"do": "verify", "level": "sizes"},
        {"do": "verify", "level": "decode"},
    ]
    for request in requests:
        info = open_deferred(probe, folder)
        assert info["shape"] == [sum(LENGTHS), COLUMNS], "what was foretold"
        for _ in range(2):
            check_mismatch(probe.ask(request), path)
    for tiles, axis in ((1, 0), (3, 0), (2, 1)):
        info = open_deferred(probe, folder)
        check_mismatch(load(probe, info, tiles, axis), path)
        check_mismatch(probe.ask({"do": "load", "async": True}), path)
    info = open_deferred(probe, folder)
    probe.call("tiling", kind="even", shape=info["shape"], tiles=3)
    check_mismatch(probe.ask({"do": "explain"}), path)
    probe.call(
        "open",
        path=str(save_shards(tmp_path / "other", [numpy.zeros((3, 2), "f4")])[0]),
        other=True,
    )
    open_deferred(probe, folder)
    check_mismatch(probe.ask({"do": "compare"}), path)


def test_first_wrong_file_is_named(probe, tmp_path):
    folder, _ = make(tmp_path, {4: big_endian, 3: fortran, 1: other_dtype})
    for threads in (1, 2, 8):
        probe.call("context", threads=threads)
        for tiles in (1, 5):
            check_mismatch(
                load(probe, open_deferred(probe, folder), tiles), folder / "shard_0001.npy"
            )


@pytest.mark.parametrize("version", [1, 2, 3])
def test_versions_of_one_length_are_alike(probe, tmp_path, version):
    folder, expected = make(tmp_path, {})
    path = folder / "shard_0002.npy"
    piece = numpy.load(path)
    path.write_bytes(header(words(piece.shape), 128, version) + piece.tobytes())
    loaded = check_command(folder, expected)
    assert (loaded["opens"], loaded["reads"]) == (5, 6)


@pytest.mark.parametrize(
    "dtype", ["<f4", ">f4", "S4", "<M8[s]", [("a", "<i2"), ("b", "<u2")]], ids=str
)
@pytest.mark.parametrize("threads", [1, 2])
def test_right_predictions_cost_one_open_and_one_read(probe, tmp_path, dtype, threads):
    parts = [
        piece.astype("<i4").view(dtype) if isinstance(dtype, list) else piece.astype(dtype)
        for piece in pieces("<i4")
    ]
    save_shards(tmp_path / "s", parts)
    expected = numpy.concatenate(parts)
    probe.call("context", threads=threads)
    for tiles, axis in ((1, 0), (4, 0), (3, 1)):
        info = open_deferred(probe, tmp_path / "s")
        assert (info["statistics"]["opens"], info["statistics"]["reads"]) == (1, 1)
        answer = load(probe, info, tiles, axis)
        assert (
            answer["statistics"]["opens"] == 4
            and answer["statistics"]["bytes_read"] == expected.nbytes + 4 * 128
        )
        assert answer["statistics"]["reads"] == 5 or tiles == 4, (
            "tiles that end within a file can make another step"
        )
        assert probe.call("hash", of="array")["hash"] == content_hash(expected)
        files = probe.call("files", count=5)["files"]
        assert [file["rows"][1] - file["rows"][0] for file in files] == list(LENGTHS)
        assert probe.call("hash", of="dataset")["hash"] == content_hash(expected)


def test_a_part_confirms_all_files(probe, tmp_path):
    folder, expected = make(tmp_path, {})
    open_deferred(probe, folder)
    box = [[6, 8], [3, 9]]
    read = {"dtype": "<f4", "box": box, "path": str(tmp_path / "box")}
    counted = probe.call("read", **read)["statistics"]
    assert counted["opens"] == 4, "the header of each file was read"
    part = numpy.fromfile(tmp_path / "box", "<f4").reshape(2, 6)
    check_equal(part, expected[6:8, 3:9])
    assert probe.call("read", **read)["statistics"]["bytes_read"] < counted["bytes_read"], (
        "but once only"
    )
    assert probe.call("hash", of="dataset")["hash"] == content_hash(expected)


@pytest.mark.parametrize("change", ["other content", "other size", "replaced", "gone"])
def test_files_that_change_before_they_are_opened(probe, tmp_path, change):
    folder, expected = make(tmp_path, {})
    info = open_deferred(probe, folder)
    path = folder / "shard_0003.npy"
    if change == "other content":
        path.write_bytes(path.read_bytes()[:-4] + b"abcd")
        os.utime(path, ns=(1, 1))
    elif change == "other size":
        numpy.save(path, expected[:2])
    elif change == "replaced":
        (folder / "new").write_bytes(path.read_bytes())
        os.replace(folder / "new", path)
    else:
        path.unlink()
    status = "not_found" if change == "gone" else "changed"
    check_error(load(probe, info)["error"], status, [path], path=path)
    check_error(probe.refused("files"), status, [path], path=path)


def test_files_that_do_not_fit_are_described_at_once(probe, tmp_path):
    """Sizes that are no whole rows behind a header of that length, and what is no file."""
    folder, expected = make(tmp_path, {})
    piece = numpy.load(folder / "shard_0002.npy")
    (folder / "shard_0002.npy").write_bytes(header(words(piece.shape), 128 + 16) + piece.tobytes())
    info = open_deferred(probe, folder)
    assert info["statistics"]["opens"] == 2
    load(probe, info)
    assert probe.call("hash", of="array")["hash"] == content_hash(expected)
    (folder / "shard_0002.npy").unlink()
    (folder / "shard_0002.npy").mkdir()
    assert run("load", folder) == run("info", folder)


def test_raw_files_are_opened_once(probe, tmp_path):
    parts = pieces()
    (tmp_path / "s").mkdir()
    for number, piece in enumerate(parts):
        piece.tofile(tmp_path / "s" / f"part_{number}.bin")
    info = open_deferred(probe, tmp_path / "s", format="raw", dtype="<f4", row_shape=[COLUMNS])
    assert (info["statistics"]["opens"], info["statistics"]["reads"]) == (0, 0)
    answer = load(probe, info, 1)
    assert (answer["statistics"]["opens"], answer["statistics"]["reads"]) == (5, 5)
    assert probe.call("hash", of="array")["hash"] == content_hash(numpy.concatenate(parts))
    (tmp_path / "s" / "part_3.bin").write_bytes(bytes(ROW * 3 + 1))
    for flags in (0, DEFER):
        error = probe.refused(
            "open",
            path=str(tmp_path / "s"),
            format="raw",
            dtype="<f4",
            row_shape=[COLUMNS],
            flags=flags,
        )
        check_error(error, "corrupt", ["part_3.bin", "1 bytes too many"])


def test_sets_from_which_nothing_is_foretold(probe, tmp_path):
    """Fortran order, rows without bytes, scalars, a single file: all headers are read,
    and the load is as always."""
    columns = numpy.arange(48, dtype="f4").reshape(12, 4)
    sets = {
        "fortran": [numpy.asfortranarray(columns), numpy.asfortranarray(columns)],
        "empty": [numpy.zeros((3, 0)), numpy.zeros((2, 0))],
        "scalar": [numpy.array(3.5)],
        "one": [columns],
    }
    for name, parts in sets.items():
        paths = save_shards(tmp_path / name, parts)
        info = open_deferred(probe, tmp_path / name)
        assert info["statistics"]["opens"] == len(paths)
        load(probe, info, 1)
        expected = numpy.concatenate(parts) if parts[0].ndim else parts[0]
        assert probe.call("hash", of="array")["hash"] == content_hash(expected)
