# The content hash "tegula1", written from its definition alone and independent of the library.
#
# SPDX-License-Identifier: Apache-2.0
#
# `content_hash(array)` takes any numpy array; `dtype_text` overrides the text for what numpy cannot
# say ("bfloat16"). Run as a program it checks itself against the fixtures.
import numpy
import xxhash

FIXTURES = [
    (
        lambda: numpy.arange(100000, dtype="<i4").reshape(1000, 100),
        "tegula1:d6d09fb0a9574ab84bb79cc39418d26d",
    ),
    (lambda: numpy.zeros((4096, 1024), "<f4"), "tegula1:4079c42e1386c28cf3b386b099e52e50"),
    (
        lambda: (numpy.arange(70000) % 3 == 0).reshape(7, 10000),
        "tegula1:aed9ff204a1037e16fc10cb8776078ab",
    ),
    (lambda: numpy.zeros((0, 4), "<f4"), "tegula1:4c519d72ff89e088e13e8831d35f3a49"),
    (lambda: numpy.float64(3.5).reshape(()), "tegula1:7c12c993b6b8c21ff93add91baf78844"),
]


def canonical_text(dtype):
    """numpy's little-endian text; structured records count as opaque bytes."""
    if dtype.names is not None:
        return "|V%d" % dtype.itemsize
    return dtype.newbyteorder("<").str


def canonical_bytes(array):
    if array.dtype.names is not None:
        return array.view("V%d" % array.dtype.itemsize).tobytes()
    if array.dtype.str[0] == ">":  # not astype: numpy 2.4.6 does not swap M8 and m8 without a unit
        array = array.byteswap()
    return array.tobytes()


def hash_bytes(data, item_size, dtype_text, shape):
    block = max(1, 65536 // item_size) * item_size
    mixed = 0
    for number, start in enumerate(range(0, len(data), block)):
        mixed ^= xxhash.xxh3_128_intdigest(data[start : start + block], seed=number)
    text = "tegula-content-1 %s %s" % (dtype_text, ",".join(str(n) for n in shape))
    return "tegula1:" + xxhash.xxh3_128_hexdigest(
        text.encode("ascii") + b"\0" + mixed.to_bytes(16, "big"), seed=0
    )


def content_hash(array, dtype_text=None):
    array = numpy.asarray(array)
    return hash_bytes(
        canonical_bytes(array),
        array.dtype.itemsize,
        dtype_text or canonical_text(array.dtype),
        array.shape,
    )


if __name__ == "__main__":
    for make, expected in FIXTURES:
        assert content_hash(make()) == expected, (content_hash(make()), expected)
    print("ok")
