# The HDF5 plugin, through a host that prints what it is told (tests/support/hdf5_dump.c), with
# every libhdf5 at hand; with one of them under a sanitizer, which is a matter of time.
#
# SPDX-License-Identifier: Apache-2.0
#
# Files are made by h5py; without it, or without the plugin, everything here is skipped.
import os

import pytest

import described

pytest.importorskip(
    "h5py", reason="h5py is not installed: the HDF5 files of these tests are made with it"
)


def pytest_collection_modifyitems(items):
    if not described.DUMP.exists() or not described.PLUGIN.exists():
        for item in items:
            if "plugin_hdf5" in str(item.path):
                item.add_marker(
                    pytest.mark.skip(reason=f"{described.DUMP} or {described.PLUGIN} is not built")
                )


def pytest_generate_tests(metafunc):
    if "library" in metafunc.fixturenames:
        most = 1 if os.environ.get("TEGULA_SANITIZER") else None
        metafunc.parametrize(
            "library", described.libraries()[:most], ids=lambda path: path.rsplit("/", 1)[1]
        )
