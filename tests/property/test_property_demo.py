# Demonstration values equal an independent implementation for any box, memory and byte order, and a
# changed byte is found.
#
# SPDX-License-Identifier: Apache-2.0
import re

import numpy
import pytest

import generate_arrays as gen
import property_runner
from probe import check_error
from reference_demo import demo_values

DTYPES = [
    "?",
    "i1",
    "i2",
    "i4",
    "i8",
    "u1",
    "u2",
    "u4",
    "u8",
    "f2",
    "f4",
    "f8",
    "c8",
    "c16",
    "bfloat16",
]


def demo_command(rng, folder, shape, name, big):
    box = gen.random_box(rng, shape)
    order = ">" if big else "<"
    return {
        "do": "demo",
        "shape": shape,
        "box": box,
        "seed": str(int(rng.integers(0, 2**64, dtype="u8"))),
        "ramp": bool(rng.random() < 0.3),
        "dtype": order + name if name != "?" else "|b1",
        "layout": gen.random_layout(rng, len(shape)),
        "path": str(folder / "values"),
    }


def run_case(probe, rng, folder):
    shape = gen.random_shape(rng)
    name = DTYPES[rng.integers(len(DTYPES))]
    big = bool(rng.random() < 0.3)
    command = demo_command(rng, folder, shape, name, big)
    expected = gen.in_box(
        demo_values(shape, name, int(command["seed"]), command["ramp"]), command["box"]
    )
    stored = expected.view("u2") if name == "bfloat16" else expected
    _, answer = probe.batch([{"do": "context", "threads": int(rng.integers(1, 5))}, command])
    assert (folder / "values").read_bytes() == (gen.swapped(stored) if big else stored).tobytes()
    assert answer["stray"] == 0
    if expected.size and name != "?":
        check_changed_byte(probe, rng, command, expected)


def check_changed_byte(probe, rng, command, expected):
    """Two bytes are changed in plain C-ordered memory: the first place in C order is reported."""
    places = sorted(int(n) for n in rng.integers(0, expected.nbytes, 2))
    error = probe.refused(
        **{**command, "layout": {}, "poke": places[:1] if places[0] == places[1] else places}
    )
    check_error(error, "mismatch")
    index = numpy.unravel_index(places[0] // expected.itemsize, expected.shape)
    found = re.findall(r"\d+", error["message"])
    for position, (lo, _) in zip(index, command["box"]):
        assert str(position + lo) in found, (error["message"], index, command["box"])


@pytest.mark.parametrize("group", range(property_runner.GROUPS))
def test_values_equal_the_definition(shared_probe, group):
    property_runner.run(5, group, 0.08, lambda rng, folder: run_case(shared_probe, rng, folder))


def test_published_first_values(probe, tmp_path):
    for name, expected in [("<u8", 16294208416658607535), ("<f4", 0.8833108)]:
        probe.call(
            "demo", shape=[5], box=[[0, 5]], seed="0", dtype=name, path=str(tmp_path / "values")
        )
        first = numpy.fromfile(tmp_path / "values", name)[0]
        assert first == expected if name == "<u8" else abs(float(first) - expected) < 5e-8


@pytest.mark.parametrize("dtype", ["<M8[s]", "<m8[ns]", "|S4", "<U3", "|V8"])
def test_other_kinds_are_refused(probe, tmp_path, dtype):
    error = probe.refused(
        "demo", shape=[5], box=[[0, 5]], seed="0", dtype=dtype, path=str(tmp_path / "values")
    )
    check_error(error, "unsupported")
