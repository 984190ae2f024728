# One process in which tegula, Legate and h5py all read HDF5, in the order given. Run by
# test_legate_hdf5.py in Legate's environment.
#
# SPDX-License-Identifier: Apache-2.0
#
# usage: beside.py FILE.h5 STEP...
#
# STEP is tegula, legate or h5py, each loaded at its first turn. FILE.h5 has a dataset NAME for each
# FILE.h5.NAME.npy beside it: the same numbers, written by numpy. TEGULA_LIB is libtegula.so;
# BESIDE_HDF5 the libhdf5 that tegula copies. Prints the libhdf5s that are mapped in the end, and
# "right" last.
import ctypes
import glob
import os
import sys

import numpy

FILE = sys.argv[1]
EXPECTED = {
    path[len(FILE) + 1 : -4]: numpy.load(path) for path in sorted(glob.glob(FILE + ".*.npy"))
}
MAX_DIMS, HOST = 64, 1


class Error(ctypes.Structure):
    _fields_ = [
        ("status", ctypes.c_int),
        ("os_errno", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("offset", ctypes.c_int64),
        ("message", ctypes.c_char * 1024),
        ("hint", ctypes.c_char * 512),
        ("path", ctypes.c_char * 1024),
    ]


class ContextOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("threads", ctypes.c_int32),
        ("max_open_files", ctypes.c_int32),
        ("staging_bytes", ctypes.c_int64),
        ("io_threads", ctypes.c_int32),
        ("reserved", ctypes.c_uint32),
        ("io", ctypes.c_char_p),
        ("plugin_path", ctypes.c_char_p),
        ("hdf5_library", ctypes.c_char_p),
        ("hdf5_candidates", ctypes.c_char_p),
    ]


class OpenOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("format", ctypes.c_char_p),
        ("dataset", ctypes.c_char_p),
        ("rest", ctypes.c_char * 256),
    ]


class Dtype(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_uint8),
        ("order", ctypes.c_uint8),
        ("unit", ctypes.c_uint8),
        ("reserved", ctypes.c_uint8),
        ("unit_count", ctypes.c_uint32),
        ("item_size", ctypes.c_uint32),
    ]


class Box(ctypes.Structure):
    _fields_ = [
        ("ndim", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("lo", ctypes.c_int64 * MAX_DIMS),
        ("hi", ctypes.c_int64 * MAX_DIMS),
    ]


class View(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("flags", ctypes.c_uint32),
        ("dtype", Dtype),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("box", Box),
        ("stride_bytes", ctypes.c_int64 * MAX_DIMS),
    ]


class Tegula:
    def __init__(self):
        self.library = ctypes.CDLL(os.environ["TEGULA_LIB"])
        options = ContextOptions()
        self.library.tegula_context_options_init(ctypes.byref(options))
        options.hdf5_library = os.environ["BESIDE_HDF5"].encode()
        options.threads = 2
        self.context = ctypes.c_void_p()
        self.call("context_create", ctypes.byref(options), None, ctypes.byref(self.context))

    def call(self, name, *arguments):
        error = Error()
        if getattr(self.library, "tegula_" + name)(*arguments, ctypes.byref(error)) != 0:
            raise SystemExit("tegula_%s: %s" % (name, error.message.decode()))

    def read(self, name):
        options, dataset = OpenOptions(), ctypes.c_void_p()
        self.library.tegula_open_options_init(ctypes.byref(options))
        options.dataset = name.encode()
        self.call(
            "dataset_open",
            self.context,
            FILE.encode(),
            ctypes.byref(options),
            ctypes.byref(dataset),
        )
        out = numpy.empty_like(EXPECTED[name])
        view = View(data=out.ctypes.data, device_type=HOST)
        self.call("dtype_parse", out.dtype.str.encode(), ctypes.byref(view.dtype))
        view.box.ndim = out.ndim
        view.box.hi[: out.ndim] = out.shape
        view.stride_bytes[: out.ndim] = out.strides
        self.call("dataset_read", dataset, ctypes.byref(view), None)
        self.library.tegula_dataset_close(dataset)
        return out


class Legate:
    def __init__(self):
        import cupynumeric
        from legate.io.hdf5 import from_file

        self.from_file, self.asarray = from_file, cupynumeric.asarray
        assert float(cupynumeric.arange(10).sum()) == 45

    def begin(self, name):
        return self.asarray(self.from_file(FILE, name))

    def read(self, name):
        return numpy.asarray(self.begin(name))


class H5py:
    def __init__(self):
        import h5py

        self.module = h5py

    def read(self, name):
        with self.module.File(FILE) as file:
            return file[name][()]


def check(who, name, got):
    if got.dtype != EXPECTED[name].dtype or not numpy.array_equal(got, EXPECTED[name]):
        raise SystemExit("%s reads other numbers of %s" % (who, name))


def main():
    made = {}
    for step in sys.argv[2:]:
        made[step] = {"tegula": Tegula, "legate": Legate, "h5py": H5py}[step]()
        for name in EXPECTED:
            check(step, name, made[step].read(name))
    for step in reversed(sys.argv[2:]):  # and again with all of them there
        for name in EXPECTED:
            check(step, name, made[step].read(name))
    if "legate" in made and "tegula" in made:  # while Legate's own threads are at it
        begun = {name: made["legate"].begin(name) for name in EXPECTED}
        for name in EXPECTED:
            check("tegula", name, made["tegula"].read(name))
        for name in EXPECTED:
            check("legate", name, numpy.asarray(begun[name]))
    with open("/proc/self/maps") as maps:
        print(
            "mapped:",
            *sorted(
                {
                    line.split("/", 1)[1].strip()
                    for line in maps
                    if "libhdf5" in line and " r-xp " in line
                }
            ),
        )
    print("right")


main()
