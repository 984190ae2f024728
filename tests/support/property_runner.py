# Runs seeded random cases and names the seed of the one that failed.
#
# SPDX-License-Identifier: Apache-2.0
#
# TEGULA_PROPERTY_CASES: how many cases all property tests have together (default below);
# TEGULA_PROPERTY_SEED: run just this one.
import os
import pathlib
import shutil
import tempfile

import numpy

DEFAULT_CASES = 4000
GROUPS = 8  # pytest items per property, so that a report is more than one dot


def cases(share):
    """How many cases one group of a property with this share of all cases runs."""
    total = int(os.environ.get("TEGULA_PROPERTY_CASES") or DEFAULT_CASES)
    return max(1, round(total * share / GROUPS))


def run(property_number, group, share, case):
    """Calls case(rng, folder) for each seed of the group, each with an empty folder."""
    first = (property_number * GROUPS + group) * 10_000_000
    seeds = range(first, first + cases(share))
    if os.environ.get("TEGULA_PROPERTY_SEED"):
        seeds = [
            seed
            for seed in [int(os.environ["TEGULA_PROPERTY_SEED"])]
            if first <= seed < first + 10_000_000
        ]
    with tempfile.TemporaryDirectory(prefix="tegula-property-") as root:
        for seed in seeds:
            folder = pathlib.Path(root, "case")
            folder.mkdir()
            try:
                case(numpy.random.default_rng(seed), folder)
            except BaseException as error:
                error.add_note(
                    "this was seed %d: TEGULA_PROPERTY_SEED=%d runs it alone" % (seed, seed)
                )
                raise
            shutil.rmtree(folder)
