# Batches of chunked datasets: whatever the pieces are, each chunk that goes through a codec is
# decoded once where memory allows.
#
# SPDX-License-Identifier: Apache-2.0
import h5py
import numpy
import pytest

from probe import check_error

DATA = numpy.random.default_rng(8).integers(0, 90, (120, 14, 11)).astype("<i4")


@pytest.fixture
def stored(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=DATA, chunks=(20, 6, 11), compression="gzip", shuffle=True)
        return sum(
            file["x"].id.get_chunk_info(k).size for k in range(file["x"].id.get_num_chunks())
        )


def walk(probe, tmp_path, piece, context):
    probe.call("context", **context)
    probe.call("open", path=str(tmp_path / "x.h5"), dataset="x")
    answer = probe.call("batches", chunk=piece)
    boxes = probe.call("pieces", path=str(tmp_path / "pieces"))["boxes"]
    begins = [
        [[lo, min(lo + step, n)] for lo in range(0, n, step)]
        for n, step in zip(DATA.shape, piece, strict=True)
    ]
    assert boxes == [[a, b, c] for a in begins[0] for b in begins[1] for c in begins[2]]
    found = numpy.fromfile(tmp_path / "pieces", "<i4")
    want = numpy.concatenate([DATA[tuple(slice(*ends) for ends in box)].ravel() for box in boxes])
    assert (found == want).all() and found.size == want.size
    return answer["statistics"]


@pytest.mark.parametrize(
    "piece",
    [
        [2, 14, 11],
        [5, 7, 11],
        [7, 14, 11],
        [20, 6, 4],
        [20, 6, 11],
        [40, 14, 3],
        [120, 14, 11],
        [50, 4, 11],
    ],
    ids=str,
)
def test_each_chunk_is_read_once(probe, tmp_path, stored, piece):
    read = walk(probe, tmp_path, piece, {"threads": 2})["bytes_read"]
    straddle = piece[0] % 20 and 20 % piece[0]  # such pieces want chunks of two windows
    assert stored <= read <= (2.5 if straddle else 1.1) * stored


def test_with_too_little_memory_pieces_are_read_by_themselves(probe, tmp_path, stored):
    assert (
        walk(probe, tmp_path, [2, 14, 11], {"threads": 1, "staging_bytes": 10_000})["bytes_read"]
        > 5 * stored
    )


@pytest.mark.parametrize("piece", [[30, 14, 11], [28, 14, 11]], ids=str)
def test_pieces_that_cut_few_chunks_are_read_by_themselves(probe, tmp_path, stored, piece):
    """Windows around them would decode as much, and be copied besides."""
    moved = walk(probe, tmp_path, piece, {"threads": 1})
    assert moved["direct_bytes"] + moved["staged_bytes"] == DATA.nbytes


def test_pieces_before_a_damaged_chunk_come(probe, tmp_path, stored):
    with h5py.File(tmp_path / "x.h5") as file:
        info = file["x"].id.get_chunk_info_by_coord((40, 6, 0))
    with open(tmp_path / "x.h5", "r+b") as file:
        file.seek(info.byte_offset + info.size // 2)
        file.write(bytes(20))
    probe.call("context", threads=8)  # windows of many chunks
    probe.call("open", path=str(tmp_path / "x.h5"), dataset="x")
    check_error(
        probe.refused("batches", chunk=[4, 14, 11]), "corrupt", ["(40, 6, 0)"], tmp_path / "x.h5"
    )
    boxes = probe.call("pieces", path=str(tmp_path / "pieces"))["boxes"]
    assert [box[0] for box in boxes] == [[k, k + 4] for k in range(0, 40, 4)]
    assert (numpy.fromfile(tmp_path / "pieces", "<i4").reshape(40, 14, 11) == DATA[:40]).all()
