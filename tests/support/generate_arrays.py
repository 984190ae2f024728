# Random arrays, shards, tilings and memory layouts for the property tests.
#
# SPDX-License-Identifier: Apache-2.0
#
# Everything follows from the numpy Generator that is given, so a seed names a case. Files are
# written by hand from numpy's bytes (npy header text after NEP 1), because numpy.save cannot write
# all that is legal; numpy.load checks the writer.
import numpy

LIMITS = [0, 0, 65536, 65536, 200000]
UNITS = [
    "",
    "[Y]",
    "[M]",
    "[W]",
    "[D]",
    "[h]",
    "[m]",
    "[s]",
    "[ms]",
    "[us]",
    "[ns]",
    "[ps]",
    "[fs]",
    "[as]",
    "[25s]",
    "[7D]",
]
PLAIN = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]


def random_dtype(rng, structured=True):
    """A dtype in native byte order."""
    choice = rng.random()
    if choice < 0.7:
        return numpy.dtype(PLAIN[rng.integers(len(PLAIN))])
    kind = ["M8", "m8", "S", "U", "V", "record"][rng.integers(6 if structured else 5)]
    if kind in ("M8", "m8"):
        return numpy.dtype(kind + UNITS[rng.integers(len(UNITS))])
    if kind == "record":
        return random_record(rng)
    return numpy.dtype("%s%d" % (kind, rng.integers(1, 20)))


def random_record(rng, depth=0):
    fields = []
    for number in range(rng.integers(1, 5)):
        name = ["x%d", "a b%d", "'quote%d", "{shape%d}", "fortran_order%d: True"][
            rng.integers(5)
        ] % number
        inner = (
            random_record(rng, depth + 1)
            if depth < 2 and rng.random() < 0.2
            else random_dtype(rng, structured=False)
        )
        if rng.random() < 0.3 and inner.names is None:
            inner = inner.newbyteorder(">")
        fields.append((name, inner, (2, 3)) if rng.random() < 0.2 else (name, inner))
    return numpy.dtype(fields, align=bool(rng.random() < 0.3))


def random_shape(rng, largest=3000, axes=None):
    if axes is None:
        axes = int(
            rng.choice([0, 1, 2, 3, 4, 5, 9, 20], p=[0.05, 0.25, 0.3, 0.2, 0.12, 0.05, 0.02, 0.01])
        )
    shape = []
    room = largest
    for _ in range(axes):
        most = max(2, int(room ** rng.uniform(0.3, 1.0)) + 1)
        length = int(rng.integers(0, 3)) if rng.random() < 0.08 else int(rng.integers(1, most))
        shape.append(length)
        room = max(1, room // max(1, length))
    return [shape[i] for i in rng.permutation(axes)]


def random_array(rng, shape, dtype):
    """Random bytes: NaNs with payloads, negative zeros and the largest
    numbers come by themselves."""
    count = int(numpy.prod(shape, dtype="i8"))
    if dtype.kind == "b":
        return rng.integers(0, 2, count).astype(bool).reshape(shape)
    data = rng.integers(0, 256, count * dtype.itemsize, dtype="u1").tobytes()
    return numpy.frombuffer(data, dtype).reshape(shape)


def swapped(array):
    """The same values stored in the other byte order."""
    if array.dtype.names is not None or array.dtype.str[0] == "|":
        return array
    return array.byteswap().view(array.dtype.newbyteorder())


def plain_bytes(array, order="C"):
    """The bytes of the elements; numpy's tobytes may leave out what lies between
    the fields of a record."""
    if array.dtype.names is not None:
        array = array.view("V%d" % array.dtype.itemsize)
    return array.tobytes(order)


def dtype_text(dtype):
    """The text that tegula gives for a dataset: native order, records as opaque bytes."""
    return "|V%d" % dtype.itemsize if dtype.names is not None else dtype.newbyteorder("<").str


def npy_header(descr, fortran_order, shape, version=(1, 0)):
    text = "{'descr': %r, 'fortran_order': %r, 'shape': %r, }" % (
        descr,
        fortran_order,
        tuple(shape),
    )
    return npy_frame(text, version)


def npy_frame(text, version=(1, 0), pad=True):
    """Magic, version, length, and the header's text padded so that the data
    begins at a multiple of 64."""
    data = (
        text if isinstance(text, bytes) else text.encode("utf-8" if version[0] == 3 else "latin1")
    )
    width = 2 if version[0] == 1 else 4
    if pad:
        data += b" " * (-(8 + width + len(data) + 1) % 64) + b"\n"
    return b"\x93NUMPY" + bytes(version) + len(data).to_bytes(width, "little") + data


def npy_file(path, array, order="C", version=(1, 0)):
    descr = numpy.lib.format.dtype_to_descr(array.dtype)
    path.write_bytes(
        npy_header(descr, order == "F", array.shape, version) + plain_bytes(array, order)
    )


def raw_file(path, array, order="C", offset=0, row_gap=0, gap_at_end=False):
    """`offset` bytes of another program's header, the rows, and `row_gap` bytes between them."""
    data = array.tobytes(order)
    if row_gap and len(array):
        size = len(data) // len(array)
        gap = b"\xee" * row_gap
        data = gap.join(data[i * size : (i + 1) * size] for i in range(len(array))) + (
            gap if gap_at_end else b""
        )
    path.write_bytes(b"\xdd" * offset + data)


def random_cuts(rng, rows, most=8):
    """Borders of shards along axis 0; some shards may be empty."""
    inner = sorted(int(n) for n in rng.integers(0, rows + 1, rng.integers(0, most)))
    return [0, *inner, rows]


def even_boxes(shape, axis, tiles):
    if not shape or 0 in shape:  # an array without elements has one empty tile
        return [[[0, n] for n in shape]]
    step = -(-shape[axis] // tiles)
    boxes = []
    for index in range(-(-shape[axis] // step)):
        box = [[0, n] for n in shape]
        box[axis] = [index * step, min((index + 1) * step, shape[axis])]
        boxes.append(box)
    return boxes


def grid_boxes(shape, tile):
    if 0 in shape:
        return [[[0, n] for n in shape]]
    boxes = [[]]
    for length, step in zip(shape, tile):
        cuts = [[i * step, min((i + 1) * step, length)] for i in range(-(-length // step))]
        boxes = [[*box, cut] for box in boxes for cut in cuts]
    return boxes


def split_boxes(rng, shape):
    """Any disjoint boxes that cover the shape, in any order."""
    done = []
    todo = [[[0, n] for n in shape]]
    while todo:
        box = todo.pop()
        axes = [k for k, (lo, hi) in enumerate(box) if hi - lo > 1]
        if not axes or len(done) + len(todo) > 12 or rng.random() < 0.25:
            done.append(box)
            continue
        axis = axes[rng.integers(len(axes))]
        cut = int(rng.integers(box[axis][0] + 1, box[axis][1]))
        for part in ([box[axis][0], cut], [cut, box[axis][1]]):
            todo.append([*box[:axis], part, *box[axis + 1 :]])
    return [done[i] for i in rng.permutation(len(done))]


def random_tiling(rng, shape, from_dataset=True):
    """A tiling command and the boxes it must give (None for from_dataset,
    which is checked by its own rule)."""
    kind = ["even", "even", "grid", "custom", "from_dataset"][
        rng.integers(5 if from_dataset else 4)
    ]
    command = {"do": "tiling", "kind": kind, "list": True, "shape": list(shape)}
    if kind == "even":
        command["axis"] = int(rng.integers(len(shape))) if shape else 0
        command["tiles"] = int(rng.integers(1, 9))
        return command, even_boxes(shape, command["axis"], command["tiles"])
    if kind == "grid":
        command["tile"] = [int(rng.integers(max(1, n // 4), n + 2)) for n in shape]
        return command, grid_boxes(shape, command["tile"])
    if kind == "custom":
        command["boxes"] = split_boxes(rng, shape)
        return command, command["boxes"]
    command["tiles"] = int(rng.integers(1, 9))
    return command, None


def random_layout(rng, axes):
    """Strides of the caller's memory: any order of axes, gaps, backwards, unaligned."""
    style = rng.random()
    layout = {"axes": list(range(axes))}
    if style < 0.25:
        return layout
    if style < 0.4:
        return {"axes": list(range(axes))[::-1]}
    layout["axes"] = (
        [int(k) for k in rng.permutation(axes)] if rng.random() < 0.5 else layout["axes"]
    )
    padded = rng.permutation(axes)[:3]  # gaps on many axes multiply to more memory than there is
    layout["pad"] = [int(rng.integers(0, 3)) if k in padded else 0 for k in range(axes)]
    layout["negative"] = [k for k in range(axes) if rng.random() < 0.3]
    layout["shift"] = int(rng.integers(0, 8))
    return layout


def random_box(rng, shape):
    box = []
    for length in shape:
        lo, hi = sorted(int(n) for n in rng.integers(0, length + 1, 2))
        box.append([lo, hi] if rng.random() < 0.75 else [0, length])
    return box


def in_box(array, box):
    return array[(*(slice(lo, hi) for lo, hi in box), ...)]


def context_command(rng):
    return {
        "do": "context",
        "threads": int(rng.integers(1, 5)),
        "staging_bytes": LIMITS[rng.integers(len(LIMITS))],
        "max_open_files": int(rng.choice([0, 0, 1, 2, 4])),
    }


def array_command(rng, array):
    command = {"do": "array", "dtype": dtype_text(array.dtype)}
    how = rng.random()
    if how < 0.4:
        return command
    if how < 0.55:
        return {**command, "separate": True}
    return {**command, "wrap": True, "layouts": [random_layout(rng, array.ndim) for _ in range(3)]}
