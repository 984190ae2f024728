# Where the package that is tested lies.
#
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib

PACKAGE = pathlib.Path(
    os.environ.get("TEGULA_PYTHON", pathlib.Path(__file__).parents[2] / "build/python")
)
