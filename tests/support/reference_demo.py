# Demonstration values, written from their definition alone and independent of the library.
#
# SPDX-License-Identifier: Apache-2.0
#
# `demo_values(shape, dtype, seed, ramp)` gives the whole array in native byte order; dtype
# "bfloat16" needs ml_dtypes. Run as a program it checks itself against the two published numbers.
import numpy

MASK = (1 << 64) - 1


def mixed(count, seed):
    """z(i): splitmix64's finaliser of seed * 0xD1342543DE82EF95 + (i + 1) * 0x9E3779B97F4A7C15."""
    step = numpy.arange(1, count + 1, dtype="u8")
    with numpy.errstate(over="ignore"):
        z = numpy.full(count, (seed * 0xD1342543DE82EF95) & MASK, "u8") + step * numpy.uint64(
            0x9E3779B97F4A7C15
        )
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        return z ^ (z >> numpy.uint64(31))


def bfloat16():
    import ml_dtypes

    return numpy.dtype(ml_dtypes.bfloat16)


def from_mixed(z, dtype):
    def shifted(bits, scale, kind):
        return ((z >> numpy.uint64(bits)).astype("f8") * 2.0**-scale).astype(kind)

    if dtype.kind in "iu":
        return z.astype("u%d" % dtype.itemsize).view(dtype)
    if dtype.kind == "b":
        return (z >> numpy.uint64(63)).astype(bool)
    if dtype.name == "bfloat16":
        return shifted(56, 8, dtype)
    bits, scale = {8: (11, 53), 4: (40, 24), 2: (53, 11)}[dtype.itemsize]
    return shifted(bits, scale, dtype)


def demo_values(shape, dtype, seed=0, ramp=False):
    dtype = bfloat16() if dtype == "bfloat16" else numpy.dtype(dtype).newbyteorder("=")
    count = int(numpy.prod(shape, dtype="i8"))
    if ramp:
        with numpy.errstate(all="ignore"):
            return (numpy.arange(count) % 1000).astype(dtype).reshape(shape)
    if dtype.kind == "c":
        half = numpy.dtype("f%d" % (dtype.itemsize // 2))
        return from_mixed(mixed(2 * count, seed), half).view(dtype).reshape(shape)
    return from_mixed(mixed(count, seed), dtype).reshape(shape)


if __name__ == "__main__":
    assert int(demo_values((1,), "u8")[0]) == 16294208416658607535
    assert abs(float(demo_values((1,), "f4")[0]) - 0.8833108) < 5e-8
    print("ok")
