# docs/coverage.md says what is so, for every libhdf5 at hand.
#
# SPDX-License-Identifier: Apache-2.0
#
# What it says of others is kept in coverage.json. TEGULA_OTHER_H5PY: a folder with a newer h5py,
# which writes newer files.
import os
import pathlib
import sys

import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: it writes and judges these files")
pytest.importorskip("hdf5plugin", reason="hdf5plugin is not installed: it brings the filters")

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import make_coverage  # noqa: E402

OTHER = os.environ.get("TEGULA_OTHER_H5PY") or None


def libraries():
    """Of each release one."""
    folders = [pathlib.Path(h5py.__file__).parent.parent, *([pathlib.Path(OTHER)] if OTHER else [])]
    wheels = [
        path for folder in folders for path in sorted((folder / "h5py.libs").glob("libhdf5-*.so*"))
    ]
    system = pathlib.Path("/usr/lib/x86_64-linux-gnu").glob("libhdf5_serial.so.[0-9][0-9][0-9]")
    named = (
        [pathlib.Path(os.environ["TEGULA_HDF5_LIBRARY"])]
        if "TEGULA_HDF5_LIBRARY" in os.environ
        else []
    )
    return {
        make_coverage.release(path): str(path)
        for path in [*system, *named, *wheels]
        if path.exists()
    }


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """What each h5py at hand wrote."""
    return make_coverage.write_files(tmp_path_factory.mktemp("coverage"), OTHER)


@pytest.mark.parametrize("release, library", libraries().items())
def test_the_table_is_so(folders, sanitizer, release, library):
    if sanitizer and library != os.environ.get("TEGULA_HDF5_LIBRARY"):
        pytest.skip("sanitizers look at one libhdf5")
    if release not in make_coverage.read_table()[0]:
        pytest.skip("docs/coverage.md has no HDF5 %s" % release)
    wrong = make_coverage.check({release: make_coverage.column(library, folders)})
    assert not wrong, "\n".join(wrong[:20])


def test_the_document_shows_the_table():
    assert make_coverage.DOCUMENT.read_text() == make_coverage.document(), (
        "python3 tools/make_coverage.py writes it"
    )


def test_nothing_in_the_table_is_wrong():
    assert "WRONG" not in make_coverage.TABLE.read_text()
