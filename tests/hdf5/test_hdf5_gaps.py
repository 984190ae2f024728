# What only libhdf5 can read and was never written, or was lost by a damaged index: absent is told
# from unreadable there too.
#
# SPDX-License-Identifier: Apache-2.0
#
# h5py judges the values; what was written here says what is absent.
import struct

import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes and judges these files")

import hdf5_cases  # noqa: E402
import hdf5_files as h5  # noqa: E402

SHAPE, CHUNK, FILL = (23, 14), (4, 3), -300


def twelve_bits():
    stored = h5py.h5t.STD_I16LE.copy()
    stored.set_precision(12)
    return stored


def wide():
    """A source of another dtype: read by libhdf5 for the virtual dataset over it."""
    return h5py.h5t.STD_I16LE


KINDS = {
    "scaleoffset": (lambda: h5py.h5t.STD_I32LE, True),
    "12 of 16 bits": (twelve_bits, False),
    "source": (wide, False),
}


def write(path, kind, written, libver="latest", fill=FILL, chunk=CHUNK, shape=SHAPE):
    """ "x" holds what is in `written`: a list of chunks, by their numbers."""
    stored, scaled = KINDS[kind]
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if chunk:
        plist.set_chunk(chunk)
    if scaled:
        plist.set_scaleoffset(h5py.h5z.SO_INT, 0)
    if fill is not None:
        plist.set_fill_value(numpy.array(fill, "<i4"))
    else:
        plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        hdf5_cases.call("H5Pset_fill_value", plist.id, h5py.h5t.STD_I32LE.id, 0)
    rng = numpy.random.default_rng(3)
    there = numpy.zeros(shape, bool)
    with h5py.File(path, "w", libver=libver) as file:
        maximum = (h5py.h5s.UNLIMITED,) * len(shape) if libver == "latest" and chunk else shape
        x = h5py.Dataset(
            h5py.h5d.create(file.id, b"s", stored(), h5py.h5s.create_simple(shape, maximum), plist)
        )
        for at in written:
            box = tuple(slice(i * n, min((i + 1) * n, m)) for i, n, m in zip(at, chunk, shape))
            x[box] = rng.integers(-2000, 2000, there[box].shape)
            there[box] = True
    if kind == "source":
        h5.virtual(
            path,
            "x",
            shape,
            "u1",
            [(numpy.s_[:], ".", "s", shape, None)],
            fill=9,
            libver="earliest",
        )
    else:
        with h5py.File(path, "a") as file:
            file["x"] = file["s"]
    return there


def random_chunks(seed, share):
    rng = numpy.random.default_rng(seed)
    return [at for at in numpy.ndindex(6, 5) if rng.random() < share]


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0, 0.5, 0.95, 1])
def test_chunks_that_were_never_written(probe, tmp_path, kind, libver, share):
    path = tmp_path / "a.h5"
    there = write(path, kind, random_chunks(4, share), libver)
    want = h5.read(path, "x")
    for missing in ("error", "fill"):
        assert (
            h5.check_load(probe, tmp_path, path, "x", want, missing=missing)["missing"] > 0
        ) == (not there.all())
    info = probe.call("open", path=str(path), dataset="x")
    rng = numpy.random.default_rng(8)
    for _ in range(12):
        ends = [sorted(rng.choice(n + 1, 2, replace=False).tolist()) for n in SHAPE]
        at = tuple(slice(*end) for end in ends)
        answer = probe.ask(
            {
                "do": "read",
                "dtype": info["dtype"],
                "box": ends,
                "path": str(tmp_path / "box"),
                "missing": "strict",
            }
        )
        if not there[at].all():
            assert answer["error"]["status"] == "incomplete", (at, answer)
            continue
        assert "error" not in answer and (tmp_path / "box").read_bytes() == want[at].tobytes(), at


@pytest.mark.parametrize("kind", ["12 of 16 bits", "source"])
def test_contiguous_and_never_written(probe, tmp_path, kind):
    path = tmp_path / "a.h5"
    write(path, kind, [], chunk=None)
    assert h5.check_load(probe, tmp_path, path, "x")["missing"] > 0
    h5.load_refused(probe, path, "x", "incomplete", ["x"], missing="strict")


@pytest.mark.parametrize("kind", KINDS)
def test_no_fill_value_is_zeros(new_probe, tmp_path, kind):
    path = tmp_path / "a.h5"
    there = write(path, kind, random_chunks(5, 0.5), fill=None)
    probe = new_probe(environment={"MALLOC_PERTURB_": "85"})
    probe.call("context", threads=2)
    got, _ = h5.load(probe, tmp_path, path, "x")
    assert numpy.array_equal(got[there], h5.read(path, "x")[there]) and not got[~there].any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("offset", [0, 4, 36, 400])
def test_a_damaged_index_is_an_error(probe, tmp_path, kind, offset):
    """The key of a chunk in the leaf of a B-tree: libhdf5 finds fewer chunks,
    and gives the fill value for the others."""
    path = tmp_path / "a.h5"
    write(path, kind, [(k,) for k in range(10)], "earliest", chunk=(4,), shape=(40,))
    data = bytearray(path.read_bytes())
    leaf = data.find(b"TREE\x01\x00")
    key = leaf + 8 + 2 * 8 + 5 * (8 + 2 * 8 + 8) + 8
    assert struct.unpack_from("<H", data, leaf + 6) == (10,) and struct.unpack_from(
        "<Q", data, key
    ) == (20,)
    whole = h5.read(path, "x")
    struct.pack_into("<Q", data, key, offset)
    path.write_bytes(data)
    assert not numpy.array_equal(h5.read(path, "x"), whole)
    h5.open_refused(probe, path, "x", "corrupt", ["s" if kind == "source" else "x", str(path)])
