"""Which libhdf5 is opened, and that it stays the plugin's own.

SPDX-License-Identifier: Apache-2.0
"""

import ctypes
import os
import re
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest

import described
from described import DUMP, PLUGIN, Refused, dump

not_sanitized = pytest.mark.skipif(
    bool(described.os.environ.get("TEGULA_SANITIZER")),
    reason="a sanitizer must be first in its process",
)


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
    reasons = {
        tmp_path / "no.so": "file too short|invalid ELF header",
        tmp_path / "gone.so": "cannot open",
        libc: "no libhdf5",
    }
    for name, text in reasons.items():
        with pytest.raises(Refused, match=f"unsupported.*cannot use.*({text})") as refused:
            dump(path, library=name)
        assert (
            "pip install h5py" in refused.value.hint and "TEGULA_HDF5_LIBRARY" in refused.value.hint
        )
    good = described.libraries()[0]
    assert version(dump(path, candidate=[tmp_path / "no.so", good]))


def fake(folder, name, version):
    """A library that only says which libhdf5 it is."""
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler: it makes a library that is no whole libhdf5")
    source = (
        f"int H5get_libversion(unsigned *a, unsigned *b, unsigned *c) {{ *a = {version[0]}; *b = "
        f"{version[1]}; *c = {version[2]}; return 0; }}"
    )
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(folder / name)],
        input=source,
        text=True,
        check=True,
    )
    return folder / name


def test_a_library_that_lacks_something_is_passed_over(path, tmp_path, library):
    """Older or newer than the good one, alone or between others, in any order."""
    old, new = fake(tmp_path, "old.so", (1, 8, 22)), fake(tmp_path, "new.so", (99, 0, 0))
    (tmp_path / "text.so").write_text("INPUT(libhdf5.so)\n")
    odd = [old, new, tmp_path / "text.so", tmp_path, tmp_path / "gone.so", path]
    for order in ([*odd, library], [library, *odd], [new, library, old]):
        assert version(dump(path, candidate=order)) >= version(dump(path, library=library))
    for name, number in ((old, "1.8.22"), (new, "99.0.0")):
        with pytest.raises(
            Refused,
            match=f"unsupported.*cannot use.*HDF5 {number} has no H5.*: 1.10.5 or newer is needed",
        ):
            dump(path, library=name)


@not_sanitized
def test_libraries_of_the_system_that_cannot_be_newer_are_not_loaded(path, tmp_path):
    """Those that may be are."""
    newest = max(described.libraries(), key=lambda name: version(dump(path, library=name)))
    for number, (name, told) in {
        "old": ("libhdf5.so.103", (1, 10, 99)),
        "plain": ("libhdf5.so", (99, 0, 0)),
        "new": ("libhdf5.so.320", (99, 0, 0)),
    }.items():
        (tmp_path / number).mkdir()
        fake(tmp_path / number, name, told)
    code = """
context = context(candidates=sys.argv[3].encode())
assert not isinstance(opened(context, sys.argv[2]), Error)
loaded = {folder for folder in sys.argv[4:] if folder in open("/proc/self/maps").read()}
assert loaded == {folder for folder in sys.argv[4:] if folder.endswith("new")}, loaded
print("fine")
"""
    for folders in (("old", "plain"), ("old", "plain", "new")):
        places = [str(tmp_path / folder) for folder in folders]
        use_contexts(code, path, newest, *places, LD_LIBRARY_PATH=":".join(places))


CONTEXTS = """
import ctypes, sys, threading
lib = ctypes.CDLL(sys.argv[1])
class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("threads", ctypes.c_int32), ("files", ctypes.c_int32),
                ("staging", ctypes.c_int64), ("io_threads", ctypes.c_int32),
                ("reserved", ctypes.c_uint32), ("io", ctypes.c_char_p),
                ("plugins", ctypes.c_char_p), ("library", ctypes.c_char_p),
                ("candidates", ctypes.c_char_p)]
class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("numbers", ctypes.c_int32 * 3),
                ("offset", ctypes.c_int64), ("message", ctypes.c_char * 1024),
                ("hint", ctypes.c_char * 512), ("path", ctypes.c_char * 1024)]
class Dtype(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint8), ("order", ctypes.c_uint8), ("unit", ctypes.c_uint16),
                ("count", ctypes.c_uint32), ("item", ctypes.c_uint32)]
class Box(ctypes.Structure):
    _fields_ = [("ndim", ctypes.c_int32), ("reserved", ctypes.c_int32),
                ("lo", ctypes.c_int64 * 64), ("hi", ctypes.c_int64 * 64)]
class View(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("flags", ctypes.c_uint32), ("dtype", Dtype),
                ("device", ctypes.c_int32 * 2), ("box", Box), ("strides", ctypes.c_int64 * 64)]

def context(library=None, candidates=None):
    options, out, error = Options(), ctypes.c_void_p(), Error()
    lib.tegula_context_options_init(ctypes.byref(options))
    options.library, options.candidates, options.threads = library, candidates, 2
    given = ctypes.byref(options), None, ctypes.byref(out), ctypes.byref(error)
    assert lib.tegula_context_create(*given) == 0, error.message
    return out

def opened(context, path):
    out, error = ctypes.c_void_p(), Error()
    given = context, path.encode(), None, ctypes.byref(out), ctypes.byref(error)
    return out if lib.tegula_dataset_open(*given) == 0 else error

def load(context, path, count=600):
    dataset, data, error = opened(context, path), (ctypes.c_int32 * count)(), Error()
    assert not isinstance(dataset, Error), dataset.message
    dtype = Dtype(ord("i"), ord("<"), 0, 0, 4)
    view = View(data=ctypes.addressof(data), dtype=dtype, box=Box(ndim=1))
    view.box.hi[0], view.strides[0] = count, 4
    status = lib.tegula_dataset_read(dataset, ctypes.byref(view), None, ctypes.byref(error))
    assert status == 0, (error.message, error.hint)
    lib.tegula_dataset_close(dataset)
    return list(data)

def library_of(context, damaged):
    return opened(context, damaged).hint.decode()
"""


def use_contexts(code, *arguments, **environment):
    """Runs the code behind the functions above."""
    lib = os.path.abspath(os.environ.get("TEGULA_LIB", "build/lib/libtegula.so"))
    run = subprocess.run(
        [sys.executable, "-c", CONTEXTS + code, lib, *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (run.returncode, run.stdout) == (0, "fine\n"), (
        run.returncode,
        run.stdout,
        run.stderr[-3000:],
    )


@pytest.fixture
def three(tmp_path):
    """0, 1, ... 599 in chunks that tegula decodes, in numbers that libhdf5 must convert, and in
    the header; and a damaged file."""
    numbers = np.arange(600, dtype="<i4")
    with h5py.File(tmp_path / "chunks.h5", "w") as f:
        f.create_dataset("x", data=numbers, chunks=(7,), compression="gzip", shuffle=True)
    odd = h5py.h5t.STD_I32LE.copy()
    odd.set_precision(20)
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(h5py.h5d.COMPACT)
    for name, kind, how in (("odd.h5", odd, None), ("compact.h5", h5py.h5t.STD_I32LE, plist)):
        with h5py.File(tmp_path / name, "w") as f:
            h5py.h5d.create(f.id, b"x", kind, h5py.h5s.create_simple((600,)), how).write(
                h5py.h5s.ALL, h5py.h5s.ALL, numbers
            )
    content = (tmp_path / "chunks.h5").read_bytes()
    (tmp_path / "damaged.h5").write_bytes(content[:96] + b"\xff" * 1000 + content[1096:])
    return [tmp_path / name for name in ("chunks.h5", "odd.h5", "compact.h5", "damaged.h5")]


@not_sanitized
def test_libraries_that_were_only_looked_at_do_no_harm(three, tmp_path):
    """Threads that searched end, contexts that searched are gone: nobody jumps into a library
    that is not there any more."""
    (tmp_path / "text.so").write_text("no library")
    names = [str(tmp_path / "text.so"), *described.libraries(), str(tmp_path / "gone.so")]
    use_contexts(
        """
files, names = sys.argv[2:6], sys.argv[6:]
def work(order):
    one = context(candidates=":".join(order).encode())
    for path in files[:3]:
        assert load(one, path) == list(range(600)), path
    lib.tegula_context_destroy(one)
for turn in range(len(names)):
    orders = names[turn:] + names[:turn], names[::-1]
    threads = [threading.Thread(target=work, args=(order,)) for order in orders]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
work(names)
print("fine")
""",
        *three,
        *names,
    )


@not_sanitized
def test_contexts_with_different_libraries_in_one_process(three):
    """Each takes its own, in turns and at the same time."""
    names = described.libraries()
    if len(names) < 2:
        pytest.skip("there is only one libhdf5 here")
    use_contexts(
        """
files, names = sys.argv[2:6], sys.argv[6:]
contexts = [context(library=name.encode()) for name in names]
bad = []
def work(one, name):
    for turn in range(5):
        for path in files[:3]:
            if load(one, path) != list(range(600)): bad.append((name, path))
        found = library_of(one, files[3])
        if f"({name})" not in found: bad.append((name, found))
for pair in zip(contexts, names): work(*pair)
threads = [threading.Thread(target=work, args=pair) for pair in zip(contexts, names)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not bad, bad
for one in contexts: lib.tegula_context_destroy(one)
print("fine")
""",
        *three,
        *names,
    )


@not_sanitized
def test_another_libhdf5_of_the_process_is_left_alone(path, library):
    """With another libhdf5 in front of everything, the plugin's calls still reach its own."""
    for other in described.libraries():
        probe = subprocess.run(
            [sys.executable, "-c", "0"], env={"LD_PRELOAD": other}, capture_output=True, text=True
        )
        if other == library or probe.stderr:
            continue  # a wheel's library needs its neighbours, which preloading does not find
        out = dump(path, library=library, env={"LD_PRELOAD": other})
        assert f"({library})" in out["library"] and version(out) == version(
            dump(path, library=library)
        )
        assert out["grids"] == dump(path, library=library)["grids"]


@not_sanitized
def test_the_file_of_the_library_is_not_what_is_mapped(path, library):
    """A copy of its own: h5py in the same process keeps its library, and its lock, to itself."""
    trace = subprocess.run(["ldd", str(PLUGIN)], capture_output=True, text=True).stdout
    assert "hdf5" not in trace.replace("libtegula_hdf5", "")
    code = f"""
import ctypes, sys
sys.path.insert(0, {str(described.__file__).rsplit("/", 1)[0]!r})
first = {"h5py" in library!r}
if first: import h5py
class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("library", ctypes.c_char_p),
                ("candidates", ctypes.c_void_p)]
Open = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)
class Plugin(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("version", ctypes.c_int32),
                ("reserved", ctypes.c_int32), ("name", ctypes.c_char_p), ("open", Open)]
handle = ctypes.CDLL({str(PLUGIN)!r})
handle.tegula_plugin_entry.restype = ctypes.POINTER(Plugin)
plugin = handle.tegula_plugin_entry(0).contents
host, state = ctypes.create_string_buffer(512), ctypes.c_void_p()
options = Options(24, {library!r}.encode(), None)
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
    names = subprocess.run(
        ["nm", "-D", "--defined-only", str(PLUGIN)], capture_output=True, text=True, check=True
    ).stdout.split()[2::3]
    assert names == ["tegula_plugin_entry"]
    entry = ctypes.CDLL(str(PLUGIN)).tegula_plugin_entry
    entry.restype = ctypes.c_void_p
    assert entry(0) and entry(99) is None
    assert DUMP.exists()
