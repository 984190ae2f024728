# Storage that likes large blocks (st_blksize):
# the pieces in which threads write end at its multiples.
#
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import subprocess

import numpy
import pytest

BIN = pathlib.Path(os.environ.get("TEGULA_BIN", "build/bin/tegula")).resolve()
MACHINES = BIN.parent.parent / "tests" / "machines.so"
STRIPE = 1 << 20


@pytest.mark.parametrize("target", ["y.npy", "y.raw"])
def test_pieces_end_at_stripes(tmp_path, sanitizer, target):
    if sanitizer:
        pytest.skip("a sanitizer must come first in the process")
    data = numpy.arange(3_000_001)
    numpy.save(tmp_path / "x.npy", data)
    environment = dict(
        os.environ, LD_PRELOAD=str(MACHINES), TEGULA_STRIPE=f"{STRIPE} {tmp_path / 'log'}"
    )
    words = [BIN, "copy", tmp_path / "x.npy", tmp_path / target, "--threads", "2", "--quiet"]
    subprocess.run(words, env=environment, check=True, timeout=60)
    offsets = sorted(map(int, (tmp_path / "log").read_text().split()))
    first, *others = offsets
    assert first < 4096 and len(others) >= 3 and all(offset % STRIPE == 0 for offset in others), (
        offsets
    )
    written = (
        numpy.load(tmp_path / target)
        if target.endswith("npy")
        else numpy.fromfile(tmp_path / target, "<i8")
    )
    assert (written == data).all()
