"""Which libhdf5 is opened, and that it stays the plugin's own.

SPDX-License-Identifier: Apache-2.0
"""
import ctypes
import re
import subprocess
import sys

import h5py
import numpy as np
import pytest

import described
from described import DUMP, PLUGIN, Refused, dump


not_sanitized = pytest.mark.skipif(bool(described.os.environ.get("TEGULA_SANITIZER")), reason="a sanitizer must be first in its process")


@pytest.fixture
def path(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("x", data=np.arange(100), chunks=(10,), compression="gzip")
    return tmp_path / "a.h5"


def version(out):
    return tuple(int(n) for n in re.match(r"HDF5 (\d+)\.(\d+)\.(\d+) \(", out["library"]).groups())


def test_the_library_that_is_named_is_taken(path, library):
    out = dump(path, library=library)
    assert f"({library})" in out["library"]


def test_of_all_candidates_the_newest_is_taken(path):
    known = {name: version(dump(path, library=name)) for name in described.libraries()}
    for order in (list(known), list(known)[::-1]):
        assert version(dump(path, candidate=order)) == max(known.values())


def test_what_is_no_libhdf5_is_not_taken(path, tmp_path):
    (tmp_path / "no.so").write_bytes(b"no library")
    libc = next(line.split()[-1] for line in open("/proc/self/maps") if "libc.so" in line)
    reasons = {tmp_path / "no.so": "file too short|invalid ELF header", tmp_path / "gone.so": "cannot open", libc: "no libhdf5"}
    for name, text in reasons.items():
        with pytest.raises(Refused, match=f"unsupported.*cannot use.*({text})") as refused:
            dump(path, library=name)
        assert "pip install h5py" in refused.value.hint and "TEGULA_HDF5_LIBRARY" in refused.value.hint
    good = described.libraries()[0]
    assert version(dump(path, candidate=[tmp_path / "no.so", good]))


@not_sanitized
def test_another_libhdf5_of_the_process_is_left_alone(path, library):
    """With another libhdf5 in front of everything, the plugin's calls still reach its own."""
    for other in described.libraries():
        probe = subprocess.run([sys.executable, "-c", "0"], env={"LD_PRELOAD": other}, capture_output=True, text=True)
        if other == library or probe.stderr:
            continue  # a wheel's library needs its neighbours, which preloading does not find
        out = dump(path, library=library, env={"LD_PRELOAD": other})
        assert f"({library})" in out["library"] and version(out) == version(dump(path, library=library))
        assert out["grids"] == dump(path, library=library)["grids"]


@not_sanitized
def test_the_file_of_the_library_is_not_what_is_mapped(path, library):
    """A copy of its own: h5py in the same process keeps its library, and its lock, to itself."""
    trace = subprocess.run(["ldd", str(PLUGIN)], capture_output=True, text=True).stdout
    assert "hdf5" not in trace.replace("libtegula_hdf5", "")
    code = f"""
import ctypes, sys
sys.path.insert(0, {str(described.__file__).rsplit('/', 1)[0]!r})
first = {'h5py' in library!r}
if first: import h5py
class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("library", ctypes.c_char_p), ("candidates", ctypes.c_void_p)]
class Plugin(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("version", ctypes.c_int32), ("reserved", ctypes.c_int32), ("name", ctypes.c_char_p),
                ("open", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p))]
handle = ctypes.CDLL({str(PLUGIN)!r})
handle.tegula_plugin_entry.restype = ctypes.POINTER(Plugin)
plugin = handle.tegula_plugin_entry(0).contents
host, state, options = ctypes.create_string_buffer(512), ctypes.c_void_p(), Options(24, {library!r}.encode(), None)
assert plugin.open(host, ctypes.byref(options), ctypes.byref(state), None) == 0
maps = open("/proc/self/maps").read()
assert "tegula-libhdf5" in maps
import h5py, numpy
with h5py.File({str(path)!r}) as f:
    assert (f["x"][()] == numpy.arange(100)).all()
print("fine")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "fine\n", done.stderr


@not_sanitized
def test_the_plugin_exports_its_entry_only():
    names = subprocess.run(["nm", "-D", "--defined-only", str(PLUGIN)], capture_output=True, text=True, check=True).stdout.split()[2::3]
    assert names == ["tegula_plugin_entry"]
    entry = ctypes.CDLL(str(PLUGIN)).tegula_plugin_entry
    entry.restype = ctypes.c_void_p
    assert entry(0) and entry(99) is None
    assert DUMP.exists()
