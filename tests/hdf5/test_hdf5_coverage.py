# docs/coverage.md says what is so, for every libhdf5 at hand.
#
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import sys

import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes and judges these files")
pytest.importorskip("hdf5plugin", reason="hdf5plugin is not installed: it brings the filters")

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "coverage.md"
sys.path.insert(0, str(ROOT / "tools"))
import make_coverage  # noqa: E402


def libraries():
    """Of each release one."""
    beside_h5py = sorted((pathlib.Path(h5py.__file__).parent.parent / "h5py.libs").glob("libhdf5-*.so*"))
    system = pathlib.Path("/usr/lib/x86_64-linux-gnu").glob("libhdf5_serial.so.[0-9][0-9][0-9]")
    named = [pathlib.Path(os.environ["TEGULA_HDF5_LIBRARY"])] if "TEGULA_HDF5_LIBRARY" in os.environ else []
    return {make_coverage.release(path): str(path) for path in [*system, *beside_h5py, *named] if path.exists()}


@pytest.mark.parametrize("release, library", libraries().items())
def test_the_table_is_in_step(release, library, capsys):
    told = make_coverage.read_table(DOCUMENT)
    if release not in told:
        pytest.skip("docs/coverage.md has no column for HDF5 %s" % release)
    found = {release: make_coverage.column(library, make_coverage.writable())}
    assert make_coverage.check(DOCUMENT, found) == 0, capsys.readouterr().out


def test_nothing_in_the_table_is_wrong():
    assert "WRONG" not in DOCUMENT.read_text()
