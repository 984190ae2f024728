# What else can be done with HDF5 datasets: destinations with any strides, background loads,
# batches, headers that are put off, plans; chunks of every size; many datasets and odd names. h5py
# and numpy judge.
#
# SPDX-License-Identifier: Apache-2.0
import itertools
import os
import pathlib
import resource
import sys

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes and judges these files")

import generate_arrays as gen  # noqa: E402
import hdf5_files as h5  # noqa: E402
from probe import check_error  # noqa: E402
from reference_hash import content_hash  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from command import refused, report, tegula  # noqa: E402

ENV = {
    key: value
    for key, value in os.environ.items()
    if key in ("TEGULA_HDF5_LIBRARY", "TEGULA_PLUGIN_PATH")
}
DEFER = 2  # TEGULA_OPEN_DEFER_HEADERS
DATA = (numpy.arange(13 * 10 * 7) * 31 % 997).astype("<i4").reshape(13, 10, 7)
KINDS = [
    "contiguous",
    "big_endian",
    "plain_chunks",
    "gzip",
    "holes",
    "compact",
    "scaleoffset",
    "external",
    "virtual",
    "padded",
]


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """One dataset of each kind of storage; the array of each is what h5py reads."""
    folder = tmp_path_factory.mktemp("ways")
    path = folder / "a.h5"
    with h5py.File(path, "w") as a:
        a["contiguous"] = DATA
        a["big_endian"] = DATA.astype(">i4")
        a.create_dataset("plain_chunks", data=DATA, chunks=(5, 4, 3))
        a.create_dataset(
            "gzip", data=DATA.astype(">i4"), chunks=(4, 4, 7), compression="gzip", shuffle=True
        )
        a.create_dataset("holes", DATA.shape, "<i4", chunks=(4, 3, 7), fillvalue=-5)[2:6, 1:4] = (
            DATA[2:6, 1:4]
        )
        a.create_dataset("scaleoffset", data=DATA, chunks=(5, 4, 7), scaleoffset=0)
    h5.low_level(path, "compact", "<i4", DATA.shape, h5.compact, DATA)
    h5.low_level(
        path,
        "external",
        "<i4",
        DATA.shape,
        h5.external((folder / "x.bin", 0, 2000), (folder / "y.bin", 8, DATA.nbytes - 2000)),
        DATA,
    )
    kind = h5py.h5t.STD_I32LE.copy()
    kind.set_precision(24)
    h5.low_level(path, "padded", kind, DATA.shape, None, DATA)
    h5.virtual(
        path,
        "virtual",
        DATA.shape,
        "<i4",
        [
            (numpy.s_[:6], ".", "gzip", DATA.shape, numpy.s_[7:]),
            (numpy.s_[7:], ".", "contiguous", DATA.shape, numpy.s_[:6]),
        ],
        fill=4,
    )
    return path


def layouts(axes):
    orders = list(itertools.permutations(range(axes)))
    for number, order in enumerate(orders):
        negative = [axis for axis in range(axes) if number >> axis & 1]
        yield {
            "axes": list(order),
            "pad": [number % 3, 0, number % 2],
            "negative": negative,
            "shift": number % 4,
        }
    yield {"axes": [2, 1, 0], "negative": [0, 1, 2]}


@pytest.mark.parametrize("kind", KINDS)
def test_destinations_with_any_strides(probe, tmp_path, file, kind):
    """Fortran order, negative strides, gaps, addresses that fit no alignment: by reads of a box
    and by arrays over one's own memory."""
    want = h5.read(file, kind)
    probe.call("open", path=str(file), dataset=kind)
    for layout in layouts(3):
        for box in ([[0, 13], [0, 10], [0, 7]], [[3, 9], [2, 3], [1, 7]]):
            answer = probe.call(
                "read", dtype="<i4", box=box, layout=layout, path=str(tmp_path / "box"), readers=2
            )
            assert (tmp_path / "box").read_bytes() == gen.plain_bytes(gen.in_box(want, box)), (
                layout,
                box,
            )
            assert answer["stray"] == 0 and answer["different"] == 0
        probe.batch(
            [
                {"do": "tiling", "kind": "grid", "shape": list(DATA.shape), "tile": [6, 7, 7]},
                {
                    "do": "array",
                    "dtype": "<i4",
                    "wrap": True,
                    "layouts": [layout, {"axes": [2, 0, 1], "negative": [1]}],
                },
                {"do": "load"},
            ]
        )
        dumped = probe.call("dump", path=str(tmp_path / "dump"))
        assert (
            h5.array_of(tmp_path, dumped, {"shape": DATA.shape, "dtype": "<i4"}).tobytes()
            == want.tobytes()
        )
        assert dumped["stray"] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_background_loads_and_batches(probe, tmp_path, file, kind):
    want = h5.read(file, kind)
    probe.call("open", path=str(file), dataset=kind)
    probe.batch(
        [
            {"do": "tiling", "kind": "even", "shape": list(want.shape), "tiles": 3, "axis": 1},
            {"do": "array", "dtype": "<i4"},
            {"do": "load", "async": True},
        ]
    )
    dumped = probe.call("dump", path=str(tmp_path / "dump"))
    assert (
        h5.array_of(tmp_path, dumped, {"shape": want.shape, "dtype": "<i4"}).tobytes()
        == want.tobytes()
    )
    probe.call("batches", chunk=[4, 10, 3])
    boxes = probe.call("pieces", path=str(tmp_path / "pieces"))["boxes"]
    assert (tmp_path / "pieces").read_bytes() == b"".join(
        gen.plain_bytes(gen.in_box(want, box)) for box in boxes
    )
    assert len(boxes) == 4 * 1 * 3


WIDE = {
    "contiguous": {},
    "chunks": {"chunks": (50, 60)},
    "noise": {"chunks": (64, 300), "compression": "gzip"},
    "small": {"chunks": (20, 5), "shuffle": True},
}


@pytest.mark.parametrize("kind", WIDE)
@pytest.mark.parametrize("tiles", [1, 3])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_plan_foretells_the_reads(probe, tmp_path, kind, tiles, axis, threads):
    data = numpy.random.default_rng(5).random((400, 300))
    with h5py.File(tmp_path / "a.h5", "w") as f:
        x = f.create_dataset("x", data=data, **WIDE[kind])
        for k in range(0, 400, 90):  # what is between chunks that are neighbours in the array
            f.create_dataset("between%d" % k, data=numpy.zeros(30000))
            if kind == "noise":  # moves to the end
                x[k : k + 30] = numpy.round(data[k : k + 30], 3)
    probe.call("context", threads=threads)
    probe.call("open", path=str(tmp_path / "a.h5"), dataset="x")
    probe.batch(
        [
            {
                "do": "tiling",
                "kind": "even",
                "shape": list(data.shape),
                "tiles": tiles,
                "axis": axis,
            },
            {"do": "array", "dtype": "<f8"},
        ]
    )
    plan = probe.call("explain")["plan"]
    statistics = probe.call("load")["statistics"]
    assert (
        plan["reads"] == statistics["reads"]
        and plan["bytes"] == data.nbytes
        and statistics["reader_bytes"] == 0
    )
    assert probe.call("hash", of="array")["hash"] == content_hash(h5.read(tmp_path / "a.h5", "x"))


# ---- folders ----


def test_headers_that_are_put_off(probe, tmp_path):
    """HDF5 files are described when they are opened, whatever is asked:
    one that does not fit is said then."""
    folder = tmp_path / "shards"
    folder.mkdir()
    pieces = [DATA[:4], DATA[4:5], DATA[5:]]
    for number, piece in enumerate(pieces):
        with h5py.File(
            folder / ("part_%d.h5" % number), "w", libver=("earliest", "latest")[number % 2]
        ) as f:
            f.create_dataset(
                "x",
                data=piece,
                chunks=(1, 3, 4) if number else None,
                compression="gzip" if number == 2 else None,
            )
    h5.check_load(probe, tmp_path, folder, "x", DATA, flags=DEFER)
    h5.check_load(probe, tmp_path, folder, "x", DATA, flags=DEFER, tiles=5)
    probe.call("open", path=str(folder), dataset="x", flags=DEFER)
    assert probe.call("hash", of="dataset")["hash"] == content_hash(DATA)
    assert report("load", folder, "--dataset", "x", "--hash", env=ENV)["hash"] == content_hash(DATA)
    for spoil, status in (("y", "not_found"), ("dtype", "mismatch"), ("axes", "mismatch")):
        with h5py.File(folder / "part_1.h5", "w") as f:
            f["y" if spoil == "y" else "x"] = {
                "y": DATA[4:5],
                "dtype": DATA[4:5].astype("<i8"),
                "axes": DATA[4:5, :, :6],
            }[spoil]
        check_error(
            probe.refused("open", path=str(folder), dataset="x", flags=DEFER), status, ["part_1.h5"]
        )


# ---- chunks of every size ----


@pytest.mark.parametrize(
    "rows, budget, options",
    [
        (640, 0, {"shuffle": True}),
        (48, 1 << 20, {"compression": "gzip", "compression_opts": 1}),
    ],
)
def test_a_chunk_larger_than_the_staging_memory(probe, tmp_path, rows, budget, options):
    """80 MiB, where the default is 64; 6 MiB of 1."""
    data = numpy.tile(numpy.arange(1 << 16, dtype="<u2") * 7, (rows, 1))
    data[:, 5] = numpy.arange(rows)
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("x", data=data, chunks=data.shape, **options)
    probe.call("context", threads=2, staging_bytes=budget)
    probe.call("open", path=str(tmp_path / "a.h5"), dataset="x")
    probe.call("read", dtype="<u2", box=[[3, 5], [0, 1 << 16]], path=str(tmp_path / "box"))
    assert (tmp_path / "box").read_bytes() == data[3:5].tobytes()
    probe.batch(
        [
            {"do": "tiling", "kind": "even", "shape": list(data.shape), "tiles": 3},
            {"do": "array", "dtype": "<u2"},
            {"do": "load"},
        ]
    )
    assert probe.call("hash", of="array")["hash"] == content_hash(data)


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_chunks_of_one_element(probe, tmp_path, libver):
    data = (numpy.arange(60 * 50) * 7 % 251).astype("<u1").reshape(60, 50)
    with h5py.File(tmp_path / "a.h5", "w", libver=libver) as f:
        f.create_dataset("plain", data=data, chunks=(1, 1))
        f.create_dataset(
            "gzip",
            data=data,
            chunks=(1, 1),
            maxshape=(None, 50),
            compression="gzip",
            fletcher32=True,
        )
    for name in ("plain", "gzip"):
        h5.check_load(probe, tmp_path, tmp_path / "a.h5", name, data, tiles=3)


# ---- many datasets, odd names ----


def seconds_of_info(path, count):
    """Processor time of the command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    answer = report("info", path, env=ENV)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert len(answer["datasets"]) == count
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_the_list_of_many_datasets_is_linear(probe, tmp_path, libver):
    for count in (1000, 10000):
        with h5py.File(tmp_path / ("%d.h5" % count), "w", libver=libver) as f:
            space, kind = h5py.h5s.create_simple((3,)), h5py.h5t.STD_I32LE
            for k in range(count):
                h5py.h5d.create(f.id, b"d%d" % k, kind, space)
            f["d%d" % (count - 1)][:] = [1, 2, 3]
    few, many = (seconds_of_info(tmp_path / ("%d.h5" % count), count) for count in (1000, 10000))
    assert many < 30 * few + 1, (few, many)
    h5.check_load(probe, tmp_path, tmp_path / "10000.h5", "d9999", numpy.array([1, 2, 3], "<i4"))


NAMES = [
    "new\nline",
    "tab\there",
    "gr\u00fc\u00dfe/\u6d77\u6d0b/\U0001f600",
    "a.b.c",
    ".hidden",
    "..",
    "...",
    "x/..y",
    " spaces ",
    "quote\"'",
    "back\\slash",
    "*?[x]",
    "%b",
    "x:y",
    "x" * 300,
    "-",
    "--json",
    "\x7f\x01",
]


def test_names_of_every_kind(probe, tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as f:
        for number, name in enumerate(NAMES):
            f[name] = numpy.full(number + 1, number, "<i4")
        f.create_group("empty/group")
        f["circle"] = h5py.SoftLink("/circle2")
        f["circle2"] = h5py.SoftLink("/circle")
        f["up/and/down"] = h5py.SoftLink("/up")
        f["gone"] = h5py.ExternalLink("gone.h5", "/x")
        f["no_dataset"] = h5py.ExternalLink("b.h5", "/nothing")
        f["other"] = h5py.ExternalLink("b.h5", "/x\ny")
    with h5py.File(tmp_path / "b.h5", "w") as f:
        f["x\ny"] = numpy.full(99, 99, "<i4")
        f["back"] = h5py.ExternalLink("a.h5", "/back")
    with h5py.File(path, "a") as f:
        f["back"] = h5py.ExternalLink("b.h5", "/back")
    answer = report("info", path, env=ENV)
    listed = {entry["name"]: entry["shape"] for entry in answer["datasets"]}
    assert listed == {"/" + name: [number + 1] for number, name in enumerate(NAMES)} | {
        "/other": [99]
    }
    for number, name in enumerate(NAMES):
        h5.check_load(probe, tmp_path, path, name, numpy.full(number + 1, number, "<i4"))
        (entry,) = report("info", path, "--dataset", name, env=ENV)["datasets"]
        assert entry["shape"] == [number + 1]
    h5.check_load(probe, tmp_path, path, "other", numpy.full(99, 99, "<i4"))
    run = tegula("info", path, env=ENV)
    assert (
        run.returncode == 0
        and run.stdout.count("\n") == 1 + len(listed)
        and not set(run.stdout) & set("\t\x7f\x01")
    ), run.stdout
    assert (
        "dataset /new?line: shape (1,)"
        in tegula("info", path, "--dataset", "new\nline", env=ENV).stdout
    )
    for name, status in (
        ("circle", "corrupt"),
        ("up/and/down/and/down", "invalid_argument"),
        ("gone", "not_found"),
        ("no_dataset", "not_found"),
        ("back", "corrupt"),
        ("empty/group", "invalid_argument"),
        ("empty", "invalid_argument"),
        ("new\nlin", "not_found"),
        (".", "invalid_argument"),
    ):
        h5.open_refused(probe, path, name, status)
        refused(
            "load",
            path,
            "--dataset",
            name,
            status=status,
            exit_status=2 if status == "invalid_argument" else 1,
            env=ENV,
        )


def test_a_virtual_dataset_in_pieces_over_another_in_pieces(tmp_path):
    """Each piece asks the other for its place: what it is made of is found out once."""
    rows = 400
    data = (numpy.arange(rows * 7) % 101).astype("i1")
    with h5py.File(tmp_path / "s.h5", "w") as f:
        f["d"] = data
    h5.virtual(
        tmp_path / "v.h5",
        "inner",
        (rows, 8, 1),
        "i1",
        [(numpy.s_[:, :7, :], "s.h5", "d", data.shape, numpy.s_[:])],
        fill=3,
    )
    h5.virtual(
        tmp_path / "v.h5",
        "outer",
        (4 * rows, 4),
        "i1",
        [(numpy.s_[:, 2:], "v.h5", "inner", (rows, 8, 1), numpy.s_[:, :, :])],
        fill=5,
    )
    inner = numpy.full((rows, 8, 1), 3, "i1")
    inner[:, :7, 0] = data.reshape(rows, 7)
    want = numpy.full((4 * rows, 4), 5, "i1")
    want[:, 2:] = inner.reshape(4 * rows, 2)
    assert (h5.read(tmp_path / "v.h5", "outer") == want).all()
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    answer = report("load", tmp_path / "v.h5", "--dataset", "outer", "--hash", env=ENV)
    assert answer["hash"] == content_hash(want)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 5
