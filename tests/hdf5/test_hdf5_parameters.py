# Filters whose parameters are missing, too many or wrong: what h5py reads, tegula reads as well;
# what h5py refuses is refused, or comes out as it was before it was encoded.
#
# SPDX-License-Identifier: Apache-2.0
#
# Of streams that end too early the plugins give what was in memory:
# only right values count as read.
#
# libhdf5 sets the parameters of filters that it has when a dataset is made: a process without their
# plugins writes these files, with chunks that this one encoded. Those of libhdf5's own filters are
# changed in the file afterwards.
import json
import struct
import subprocess
import sys

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes and judges these files")
hdf5plugin = pytest.importorskip(
    "hdf5plugin", reason="hdf5plugin is not installed: it brings the filters"
)

import hdf5_files as h5  # noqa: E402
from probe import ProbeError, check_error, check_style  # noqa: E402

DATA = (numpy.arange(64, dtype="<i4") * 77 % 1000).reshape(16, 4)
WRITER = """
import h5py, json, sys
path, todo = sys.argv[1], json.load(sys.stdin)
with h5py.File(path, "w") as file:
    for name, (number, values, stored, mask) in todo.items():
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((16, 4))
        plist.set_filter(number, h5py.h5z.FLAG_OPTIONAL, tuple(values))
        space = h5py.h5s.create_simple((16, 4))
        dataset = h5py.h5d.create(file.id, name.encode(), h5py.h5t.STD_I32LE, space, plist)
        dataset.write_direct_chunk((0, 0), bytes.fromhex(stored), mask)
"""
JUDGE = """
import h5py, hdf5plugin, sys
for pair in sys.stdin.read().splitlines():
    path, name = pair.split(" ", 1)
    with h5py.File(path) as file:
        try:
            print(file[name][()].tobytes().hex(), flush=True)
        except OSError:
            print("refused", flush=True)
"""
# filter: its number, options that encode DATA, parameters in place of the right ones
FILTERS = {
    "zstd": (32015, hdf5plugin.Zstd(), [(), (3, 4, 5), (0,), (4000000000,), (22,) * 32]),
    "lz4": (32004, hdf5plugin.LZ4(), [(), (0,), (1,), (64, 1, 1), (4294967295,), (7,)]),
    "blosc": (
        32001,
        hdf5plugin.Blosc(cname="lz4"),
        [
            (2, 2, 0, 0),
            (2, 2, 8, 256, 9, 1, 1),
            (2, 2, 255, 1, 5, 2, 5, 9),
            (9, 9, 4, 256, 5, 1, 200),
        ],
    ),
    "blosc2": (
        32026,
        hdf5plugin.Blosc2(cname="zstd"),
        [(1,), (2, 2, 8, 256, 9, 1, 1), (9, 9, 0, 0, 0, 0, 0)],
    ),
    "bitshuffle": (
        32008,
        hdf5plugin.Bitshuffle(cname="none"),
        [
            (),
            (0,),
            (0, 4),
            (0, 4, 4),
            (0, 4, 8),
            (0, 4, 4, 8),
            (0, 4, 4, 7),
            (0, 4, 0),
            (9, 9, 4, 0, 0, 1),
            (0, 4, 4, 0, 9),
            (0, 4, 3, 0),
        ],
    ),
    "bitshuffle_lz4": (
        32008,
        hdf5plugin.Bitshuffle(cname="lz4"),
        [
            (),
            (0, 4),
            (0, 4, 4, 0),
            (0, 4, 8, 0, 2),
            (0, 4, 4, 64, 2),
            (0, 4, 4, 0, 3),
            (0, 4, 4, 0, 1),
            (0, 4, 4, 0, 2, 8, 8),
        ],
    ),
    "deflate": (1, {"compression": "gzip"}, [(), (20,), (4, 4), (0,), (4294967295,)]),
    "lzf": (32000, {"compression": "lzf"}, [(), (4,), (9, 9, 9, 9, 9), (4, 261, 8), (4, 261, 300)]),
    "fletcher32": (3, {"fletcher32": True}, [(), (1,), (1, 2, 3)]),
}
# filter: options, parameters of which those in the file are changed; None: the number of them is 0
PATCHED = {
    "shuffle": (
        {"shuffle": True},
        [None, (0,), (1,), (2,), (3,), (8,), (64,), (300,), (4294967295,)],
    ),
    "szip": (
        {"compression": "szip"},
        [
            None,
            (0, 8, 32, 256),
            (141, 0, 32, 256),
            (141, 3, 32, 256),
            (141, 64, 32, 256),
            (141, 8, 0, 256),
            (141, 8, 25, 256),
            (141, 8, 32, 0),
            (141, 8, 32, 5000),
            (4294967295,) * 4,
        ],
    ),
}
# the plugin takes a compressor that it does not know for none
UNKNOWN = ["bitshuffle(0, 4, 4, 0, 9)"]
REFUSED = [
    *UNKNOWN,
    "bitshuffle()",
    "bitshuffle(0,)",
    "bitshuffle(0, 4)",
    "bitshuffle(0, 4, 4, 7)",
    "bitshuffle(0, 4, 0)",
    "bitshuffle_lz4()",
    "shuffle None",
    "shuffle(0,)",
    "szip None",
    "szip(141, 0, 32, 256)",
    "szip(141, 3, 32, 256)",
    "szip(141, 8, 0, 256)",
]


def encoded(options):
    with h5py.File("memory", "w", driver="core", backing_store=False) as file:
        dataset = file.create_dataset("x", data=DATA, chunks=DATA.shape, **options)
        mask, stored = dataset.id.read_direct_chunk((0, 0))
    assert mask == 0
    return stored


def write_odd(path):
    """All of FILTERS, each also with a chunk that skipped the filter: [(path, name)]."""
    todo = {}
    for kind, (number, options, lists) in FILTERS.items():
        stored = encoded(dict(options))
        for values in lists:
            name = kind + str(values)
            todo[name] = number, values, stored.hex(), 0
            todo[name + " skipped"] = number, values, DATA.tobytes().hex(), 1
    subprocess.run(
        [sys.executable, "-c", WRITER, str(path)], input=json.dumps(todo), text=True, check=True
    )
    return [(path, name) for name in todo]


def write_patched(path, kind, options, values):
    """The parameters stand behind the name;
    their number six bytes after the filter's, in front of it."""
    name = kind + str(values) if values else kind + " None"
    with h5py.File(path, "w") as file:
        file.create_dataset(name, data=DATA, chunks=DATA.shape, **options)
    content = bytearray(path.read_bytes())
    at = content.find(kind.encode() + bytes(8 - len(kind)))
    if values:
        content[at + 8 : at + 8 + 4 * len(values)] = struct.pack("<%dI" % len(values), *values)
    else:
        content[at - 2 : at] = bytes(2)
    path.write_bytes(content)
    return path, name


def judge(places):
    """{name: what h5py reads as bytes, or None where it refuses}. It may crash:
    it goes on behind that dataset."""
    found = []
    while len(found) < len(places):
        lines = "\n".join("%s %s" % place for place in places[len(found) :])
        done = subprocess.run(
            [sys.executable, "-c", JUDGE], input=lines, capture_output=True, text=True, check=False
        )
        found += [
            None if line == "refused" else bytes.fromhex(line) for line in done.stdout.split()
        ]
        assert done.returncode <= 0, done.stderr
        found += [None] * (done.returncode < 0)
    return dict(zip([name for _, name in places], found))


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """({name: path}, {name: what h5py reads})"""
    folder = tmp_path_factory.mktemp("odd")
    all_places = write_odd(folder / "odd.h5")
    for kind, (options, lists) in PATCHED.items():
        if kind != "szip" or h5py.h5z.filter_avail(h5py.h5z.FILTER_SZIP):
            all_places += [
                write_patched(folder / ("%s%d.h5" % (kind, k)), kind, options, values)
                for k, values in enumerate(lists)
            ]
    return {name: path for path, name in all_places}, judge(all_places)


@pytest.mark.parametrize("kind", [*FILTERS, *PATCHED])
def test_parameters_that_are_odd(probe, tmp_path, places, kind):
    paths, judged = places
    names = [name for name in paths if name.startswith((kind + "(", kind + " "))]
    for name in names:
        read = judged[name]
        try:
            got = h5.load(probe, tmp_path, paths[name], name)[0].tobytes()
        except ProbeError as refused:
            check_style(refused.error)
            assert refused.error["status"] in ("corrupt", "unsupported"), refused.error
            lacking = name in UNKNOWN or any(
                text in refused.error["message"] for text in ("this build has no", "was found")
            )
            assert read != DATA.tobytes() or lacking, "%s: h5py reads it: %s" % (
                name,
                refused.error["message"],
            )
            continue
        assert got == (DATA.tobytes() if read is None else read), name
        assert name not in REFUSED
    assert names or kind == "szip"


def with_filters(*filters):
    """For low_level: chunks of (4, 4) and (number, parameters) each, all optional."""

    def prepare(plist):
        plist.set_chunk((4, 4))
        for number, values in filters:
            plist.set_filter(number, h5py.h5z.FLAG_OPTIONAL, values)

    return prepare


@pytest.mark.parametrize(
    "filters, masks",
    [
        ([(1, (20,))], {1}),
        ([(1, (4, 4))], {1}),
        ([(2, ()), (1, (10,))], {2}),
        ([(1, (11,)), (2, ()), (1, (5,))], {1}),
        ([(2, ()), (32000, ()), (3, ())], {0, 2}),
        ([(32000, ()), (1, (99,)), (3, ())], {2, 3}),
    ],
)
def test_optional_filters_that_failed_at_writing(probe, tmp_path, filters, masks):
    """deflate with a level that is none; lzf of what it cannot make smaller."""
    data = numpy.random.default_rng(7).integers(-(1 << 31), 1 << 31, (16, 4)).astype("<i4")
    data[8:] = 5
    path = tmp_path / "a.h5"
    h5.low_level(path, "x", "<i4", data.shape, with_filters(*filters), data)
    with h5py.File(path) as file:
        assert {file["x"].id.get_chunk_info(k).filter_mask for k in range(4)} == masks
    assert numpy.array_equal(h5.read(path, "x"), data)
    h5.check_load(probe, tmp_path, path, "x", data)


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_masks_beside_chunks_that_are_missing(probe, tmp_path, libver):
    path = tmp_path / "a.h5"
    want = numpy.full((20, 4), 7, "<i4")
    with h5py.File(path, "w", libver=libver) as file:
        x = file.create_dataset(
            "x",
            (20, 4),
            "<i4",
            chunks=(4, 4),
            maxshape=(None, 4),
            compression="gzip",
            shuffle=True,
            fletcher32=True,
            fillvalue=7,
        )
        x[4:8] = want[4:8] = DATA[4:8]
        x.id.write_direct_chunk((12, 0), DATA[12:16].tobytes(), filter_mask=7)
        want[12:16] = DATA[12:16]
    assert numpy.array_equal(h5.read(path, "x"), want)
    for missing in ("error", "fill"):
        assert h5.check_load(probe, tmp_path, path, "x", want, missing=missing)["missing"] > 0
    check_error(
        h5.load_refused(probe, path, "x", "incomplete", missing="strict"),
        "incomplete",
        ["x", "(0, 0)"],
    )
    for row in (4, 12):  # what is there is not in the way of strictness
        probe.call(
            "read",
            dtype="<i4",
            box=[[row, row + 4], [0, 4]],
            path=str(tmp_path / "rows"),
            missing="strict",
        )
        assert (tmp_path / "rows").read_bytes() == want[row : row + 4].tobytes()
