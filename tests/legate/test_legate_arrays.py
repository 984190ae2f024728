# tegula.legate with the real Legate and cuPyNumeric: the checks of checks_*.py,
# each process with other processors.
#
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import re
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
TWO = "--cpus 2 --sysmem 800"


def checks(module, *configs):
    names = re.findall(r"^def (check_\w+)", (HERE / module).read_text(), re.MULTILINE)
    return [
        pytest.param(
            module, name, config, id=f"{name[len('check_') :]}[{config.split(' --sysmem')[0]}]"
        )
        for config in configs
        for name in names
    ]


# the wheel on PyPI has no OpenMP, so there are no groups of cores (--omps) to try
LOADS = checks("checks_load.py", "--cpus 1 --sysmem 800", TWO, "--cpus 4 --sysmem 800")
SAVES = checks("checks_save.py", TWO, "--cpus 4 --sysmem 800")
OTHERS = [
    one
    for module in ("hdf5", "interrupt", "device", "streaming", "theirs")
    for one in checks(f"checks_{module}.py", TWO)
]
# which cut axes that were broadcast
OTHERS += checks("checks_streaming.py", "--cpus 4 --sysmem 800")


@pytest.mark.parametrize(("module", "name", "config"), LOADS + SAVES + OTHERS)
def test_legate(checked, module, name, config):
    checked(module, name, config)


def test_documentation(run_legate):
    done = run_legate(HERE / "examples.py", HERE.parents[1] / "docs/legate.md")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


IMPORTS = {
    "tegula first": "import tegula.legate, legate.io.hdf5, h5py",
    "Legate first": "import legate.io.hdf5, h5py, tegula.legate",
    "h5py first": "import h5py, tegula.legate, legate.io.hdf5",
}
PROGRAM = """
import sys
import cupynumeric, numpy
{imports}
for _ in range(2):
    path = sys.argv[1] + "/plain.h5"
    arrays = [numpy.asarray(cupynumeric.asarray(module.from_file(path, "gzip")))
              for module in (tegula.legate, legate.io.hdf5)]
    with h5py.File(path) as file:
        arrays.append(file["gzip"][()])
    assert all(numpy.array_equal(array, numpy.load(sys.argv[1] + "/rows.npy")) for array in arrays)
with open("/proc/self/maps") as maps:
    assert "memfd:tegula-libhdf5" in maps.read()
print("right")
"""


@pytest.mark.parametrize("order", IMPORTS)
def test_import_orders(run_legate, legate_files, order):
    done = run_legate("-c", PROGRAM.format(imports=IMPORTS[order]), legate_files)
    assert done.returncode == 0 and "right" in done.stdout.splitlines(), done.stderr[-4000:]


UNNOTICED = """
import sys
import cupynumeric, tegula.legate
tegula.legate.save(cupynumeric.zeros(3), sys.argv[1], block=False)
"""


def test_the_end_of_the_program_waits_and_tells(run_legate, tmp_path):
    for said in ("", "a save in the background failed"):
        done = run_legate("-c", UNNOTICED, tmp_path / "x.npy")
        assert (
            done.returncode == 0
            and (tmp_path / "x.npy").exists()
            and (said in done.stderr)
            and bool(said) == ("tegula:" in done.stderr)
        )


NEWER = """
import sys
import legate.core
del legate.core.LogicalArray, legate.core.as_logical_array
def as_logical_store(given):
    return next(iter(given.__legate_data_interface__["data"].values()))
legate.core.as_logical_store = as_logical_store
import h5py, numpy, tegula.legate
from legate.core import LogicalStore

class Wrapped:
    def __init__(self, store):
        self.__legate_data_interface__ = {"version": 2, "data": {"x": store}}

runtime = legate.core.get_legate_runtime()
store = runtime.create_store(legate.core.types.int64, (3, 4))
store.fill(7)
for given in (store, Wrapped(store)):
    tegula.legate.to_file(obj=given, path=sys.argv[1], dataset_name="x")
    with h5py.File(sys.argv[1]) as file:
        assert numpy.array_equal(file["x"][()], numpy.full((3, 4), 7))
pieces = [piece for piece, _ in tegula.legate.from_file_batched(sys.argv[1], "x", (3, 2))]
loaded = [load(sys.argv[1], "x") for load in (tegula.legate.load, tegula.legate.from_file)]
for found in (*loaded, *pieces):
    assert isinstance(found, LogicalStore), type(found)
    assert (numpy.asarray(found.get_physical_store()) == 7).all()
print("right")
"""


def test_a_legate_that_has_only_stores(run_legate, tmp_path):
    """As versions behind 26.6, by their sources."""
    done = run_legate("-c", NEWER, tmp_path / "x.h5")
    assert done.returncode == 0 and "right" in done.stdout.splitlines(), done.stderr[-4000:]


def test_without_legate_it_says_what_is_missing(package):
    program = "import sys; sys.modules['legate'] = None; import tegula.legate"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": package},
    )
    assert done.returncode == 1 and done.stderr.splitlines()[-1].startswith(
        "ImportError: tegula.legate needs Legate (pip install legate"
    )
