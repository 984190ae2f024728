# Of several errors the same one is told, whatever the number of threads: by part,
# and within a part by place in the file.
#
# SPDX-License-Identifier: Apache-2.0
import numpy
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes and judges these files")

import hdf5_files as h5  # noqa: E402
from probe import check_error  # noqa: E402

ROWS, COLUMNS, CHUNK = 512, 2048, (64, 2048)
DAMAGED = (1, 3, 6)  # chunks


def write_source(path, filters):
    """Its chunks lie backwards in the file. The damaged one that comes first there is found out
    last: its end is damaged. Gives where they are."""
    data = numpy.random.default_rng(4).integers(0, 9, (ROWS, COLUMNS)).astype("<i4")
    with h5py.File(path, "w", libver="v110") as file:
        x = file.create_dataset("d", data.shape, data.dtype, chunks=CHUNK, **filters)
        for k in reversed(range(0, ROWS, CHUNK[0])):
            x[k : k + CHUNK[0]] = data[k : k + CHUNK[0]]
        found = [x.id.get_chunk_info_by_coord((k * CHUNK[0], 0)) for k in DAMAGED]
    with open(path, "r+b") as file:
        for info in found:
            first = info.byte_offset == min(one.byte_offset for one in found)
            file.seek(info.byte_offset + (info.size - 40 if first else 0))
            file.write(b"\xff" * 16)
    return [info.byte_offset for info in found]


@pytest.mark.parametrize(
    "filters", [{"compression": "gzip"}, {"fletcher32": True}], ids=["gzip", "fletcher32"]
)
def test_the_same_error_with_any_number_of_threads(new_probe, tmp_path, filters):
    offsets = [write_source(tmp_path / f"s{k}.h5", filters) for k in range(3)]
    order = (2, 0, 1)  # of their rows: not that of the names, nor of the file table
    h5.virtual(
        tmp_path / "v.h5",
        "v",
        (3 * ROWS, COLUMNS),
        "<i4",
        [
            (numpy.s_[k * ROWS : (k + 1) * ROWS], f"s{order[k]}.h5", "d", (ROWS, COLUMNS), None)
            for k in (1, 0, 2)
        ],
        libver="v110",
    )
    seen = set()
    for threads in (1, 2, 3, 8):
        probe = new_probe()
        probe.call("context", threads=threads)
        info = probe.call("open", path=str(tmp_path / "v.h5"), dataset="v")
        for tiles in (1, 5, 5, 5):
            probe.batch(
                [
                    {"do": "tiling", "kind": "even", "shape": info["shape"], "tiles": tiles},
                    {"do": "array", "dtype": info["dtype"]},
                ]
            )
            error = probe.refused("load")
            check_error(error, "corrupt", ["s2.h5"])
            seen.add((error["path"], error["offset"], error["message"]))
    assert len(seen) == 1 and seen.pop()[1] == min(offsets[2])
