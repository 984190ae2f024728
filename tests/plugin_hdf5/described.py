"""What the HDF5 plugin says of a dataset, and the values that this amounts to: put together with
numpy and zlib, without the library.

SPDX-License-Identifier: Apache-2.0
"""

import json
import os
import pathlib
import subprocess
import sys
import zlib

import numpy as np

BUILD = pathlib.Path(os.environ.get("TEGULA_LIB", "build/lib/libtegula.so")).resolve().parent.parent
DUMP = BUILD / "bin" / "tegula_hdf5_dump"
PLUGIN = BUILD / "lib" / "tegula" / "libtegula_hdf5.so"
SYSTEM = (
    "libhdf5_serial.so.320",
    "libhdf5_serial.so.310",
    "libhdf5_serial.so.103",
    "libhdf5.so.320",
    "libhdf5.so.310",
    "libhdf5.so.103",
)


def wheel_libraries():
    found = []
    for folder in sys.path:
        found += sorted(str(p) for p in pathlib.Path(folder).glob("h5py.libs/libhdf5-*.so*"))
    return found


def libraries():
    """Every libhdf5 at hand: h5py's, the system's,
    and those in TEGULA_TEST_HDF5_LIBRARIES (with ':' between them)."""
    system = [f"/usr/lib/x86_64-linux-gnu/{name}" for name in SYSTEM]
    more = [path for path in os.environ.get("TEGULA_TEST_HDF5_LIBRARIES", "").split(":") if path]
    return list(
        dict.fromkeys(path for path in wheel_libraries() + system + more if os.path.exists(path))
    )


class Refused(Exception):
    def __init__(self, error):
        super().__init__(f"{error['status']}: {error['message']} ({error['hint']})")
        self.status, self.message, self.hint, self.path = (
            error[key] for key in ("status", "message", "hint", "path")
        )


def dump(path, dataset=None, **options):
    """The description as the stub host prints it; Refused where the plugin fails."""
    prefix = options.pop("prefix", [])
    run = {
        key: options.pop(key) for key in ("cwd", "preexec_fn", "timeout", "env") if key in options
    }
    command = [*prefix, str(DUMP), str(PLUGIN), str(path)] + (
        [f"dataset={dataset}"] if dataset is not None else []
    )
    for key, value in options.items():
        command += [
            f"{key}={one}" for one in (value if isinstance(value, (list, tuple)) else [value])
        ]
    done = subprocess.run(command, capture_output=True, text=True, **{"timeout": 120, **run})
    assert done.returncode in (0, 1), (done.returncode, done.stderr[-3000:])
    assert done.stderr == ""
    out = json.loads(done.stdout)
    assert out["left_open"] == 0
    if "error" in out:
        assert "\n" not in out["error"]["message"] and out["error"]["message"]
        raise Refused(out["error"])
    return out


def dtype_of(text):
    return np.dtype("u2") if "E" in text else np.dtype(text)


def filled(hexadecimal, dtype):
    """One element; zeros where no fill value is defined."""
    return (
        np.frombuffer(bytes.fromhex(hexadecimal), dtype)[0]
        if hexadecimal
        else np.zeros(1, dtype)[0]
    )


def undo(data, filters, mask):
    for stage in reversed(range(len(filters))):
        name, *params = filters[stage]
        if mask >> stage & 1:
            continue
        if name == "deflate":
            data = zlib.decompress(data)
        elif name == "shuffle":
            whole = len(data) // params[0] * params[0]
            data = (
                np.frombuffer(data[:whole], "u1").reshape(params[0], -1).T.tobytes() + data[whole:]
            )
        elif name == "fletcher32":
            data = data[:-4]
        else:
            raise AssertionError(f"this test cannot undo {name}")
    return data


def grid_values(out, part, shape, dtype):
    """The elements of one chunked part, by the formula of tegula_plugin_chunked."""
    grid = out["grids"][part["grid"]]
    assert len(grid["chunks"]) == grid["count"] and (
        grid["coordinates"] is not None or grid["count"] == grid["slots"]
    )
    slots = grid["coordinates"] if grid["coordinates"] is not None else range(grid["count"])
    assert list(slots) == sorted(set(slots))
    table = dict(zip(slots, grid["chunks"]))
    values = np.empty(shape, dtype)
    slot = np.full(shape, part["slot_base"], np.int64)
    byte = np.full(shape, part["byte_base"], np.int64)
    for axis, index in enumerate(np.indices(shape, sparse=True)):
        g = index + part["start"][axis]
        slot = slot + g // part["chunk"][axis] * part["slot_stride"][axis]
        byte = byte + g % part["chunk"][axis] * part["byte_stride"][axis]
    content = pathlib.Path(out["files"][grid["file"]]).read_bytes()
    for number in np.unique(slot):
        here = slot == number
        assert 0 <= number < grid["slots"]
        offset, length, mask = table.get(int(number), (0, 0, 0))
        if length == 0:
            values[here] = filled(grid["fill"], dtype)
            continue
        stored = content[offset : offset + length]
        data = undo(stored, grid["filters"], mask)
        assert len(stored) == length and len(data) == grid["chunk_bytes"]
        items = np.lib.stride_tricks.as_strided(
            np.frombuffer(data, dtype.newbyteorder(grid["order"])).view("u1"),
            (len(data), 1),
            (1, 1),
        )
        at = byte[here][:, None] + np.arange(dtype.itemsize)
        values[here] = (
            items[at, 0].copy().view(dtype.newbyteorder(grid["order"]))[:, 0].astype(dtype)
        )
    return values


def part_values(out, part, shape, dtype):
    if part["kind"] == "dense":
        content = np.fromfile(out["files"][part["file"]], "u1")
        last = (
            part["offset"]
            + sum((n - 1) * s for n, s in zip(shape, part["strides"]))
            + dtype.itemsize
        )
        assert part["offset"] >= 0 and last <= len(content) and all(s > 0 for s in part["strides"])
        stored = np.ndarray(
            shape, dtype.newbyteorder(part["order"]), content, part["offset"], part["strides"]
        )
        return stored.astype(dtype)
    if part["kind"] == "chunked":
        return grid_values(out, part, shape, dtype)
    if part["kind"] == "reader":
        return np.frombuffer(bytes.fromhex(part["data"]), dtype).reshape(shape)
    assert part["kind"] == "fill", part
    return np.full(shape, filled(part["fill"], dtype), dtype)


def assemble(out, lost=None):
    """The array that the description amounts to. Every element is told exactly once; what is
    lost becomes `lost`, if that is given."""
    dtype, shape = dtype_of(out["dtype"]), tuple(out["shape"])
    values, told = np.zeros(shape, dtype), np.zeros(shape, "u1")
    for part in out["parts"]:
        assert all(0 <= lo < hi <= n for lo, hi, n in zip(part["lo"], part["hi"], shape))
        box = tuple(slice(lo, hi) for lo, hi in zip(part["lo"], part["hi"]))
        told[box] += 1
        size = tuple(hi - lo for lo, hi in zip(part["lo"], part["hi"]))
        if lost is not None and part["kind"] == "lost":
            values[box] = lost
        else:
            values[box] = part_values(out, part, size, dtype)
    assert (told == 1).all()
    return values


def values(path, dataset=None, lost=None, **options):
    return assemble(dump(path, dataset, **options), lost)


def same(a, b):
    """Equal in every bit, NaN and byte order aside."""
    a, b = np.asarray(a), np.asarray(b)
    native = b.dtype.newbyteorder("=")
    return a.shape == b.shape and a.dtype == native and a.tobytes() == b.astype(native).tobytes()
