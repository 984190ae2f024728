# Damaged files that tests/fuzz/hdf5_mutations.py found: refused by name, at once.
#
# SPDX-License-Identifier: Apache-2.0
import pathlib
import time

import pytest

from probe import check_error

FOLDER = pathlib.Path(__file__).parent / "damaged"
FILES = {
    "chunk_of_no_bytes": ("szip", "corrupt", "has 0 bytes"),
    "chunk_outside": ("deflate", "corrupt", "a chunk outside of the array"),
    # libhdf5 would wait for ever for its writer
    "swmr_checksum": ("reference", "corrupt", "checksum"),
    # libhdf5 walks over all
    "extensible_claims": ("growing", "corrupt", "claims 79164837199881 slots"),
    # libhdf5 would list 71 thousand million
    "implicit_claims": ("d", "corrupt", "more chunks than the file of 3648 bytes can hold"),
    # no suggestions from a group that cannot be read: libhdf5 1.14.6 frees what it never had
    "group_index": ("d_bec16", "corrupt", "d_bec16"),
}


@pytest.mark.parametrize("name", FILES)
def test_damaged_file_is_refused(probe, name):
    dataset, status, text = FILES[name]
    error = probe.refused("open", path=str(FOLDER / (name + ".h5")), dataset=dataset)
    check_error(error, status, [text])  # the probe ends one that takes minutes


def test_swmr_checksums_are_looked_at_again_for_a_while(probe):
    """A writer may be half-way: what does not fit is read 25 times in 34
    ms before it is refused."""
    for _ in range(2):  # the first time libhdf5 is loaded
        began = time.monotonic()
        probe.refused("open", path=str(FOLDER / "swmr_checksum.h5"), dataset="reference")
        seconds = time.monotonic() - began
    assert seconds > 0.03


def test_swmr_file_without_damage_loads(probe, tmp_path):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes this file")
    with h5py.File(tmp_path / "swmr.h5", "w", libver="latest") as file:
        dataset = file.create_dataset("x", (0,), "<i4", chunks=(4,), maxshape=(None,))
        file.swmr_mode = True
        dataset.resize((10,))
        dataset[:] = range(10)
        dataset.flush()
        assert probe.call("open", path=str(tmp_path / "swmr.h5"), dataset="x")["shape"] == [10]
