"""Ranks: what a communicator of mpi4py stands for, and calls that all of them make together.

SPDX-License-Identifier: Apache-2.0

A communicator is duplicated once, and its contexts are kept as an attribute of it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import _core
from ._context import Group, context_on, plugin_path, timeout
from ._errors import Error

_GRACE = 0.5  # seconds after the deadline of a rank's own work
_keyval: int | None = None


class Ranks(Group):
    """The ranks of a communicator, and a context on them."""

    def __init__(self, core: _core.Comm, threads: int | None) -> None:
        self.core, self.threads = core, threads
        self.rank, self.size = core.rank(), core.size()
        with self.together():
            self.context = context_on(core, threads)

    @contextmanager
    def checking(self) -> Iterator[None]:
        """Arguments are looked at: a rank that refuses them tells the others,
        which would wait for it."""
        try:
            yield
        except Exception as error:
            if self.size > 1:
                self.core.fail(str(error))
            raise

    @contextmanager
    def together(self) -> Iterator[None]:
        """A call of all ranks.  When ranks are missing nothing can be done any more:
        it is said, and the job is ended."""
        limit = timeout()
        self.core.deadline(limit + _GRACE if limit > 0 else 0.0)
        try:
            yield
        except Error as error:
            if self.core.broken():
                time.sleep(0.1 * min(self.rank, 30))  # one says it
                print(f"tegula: {error}", file=sys.stderr, flush=True)
                self.core.abort(1)
            raise

    def __reduce__(self) -> Any:
        raise TypeError("a dataset on several ranks cannot be pickled: open it without comm")


def _join(mpi: Any, comm: Any) -> _core.Comm:
    limit = timeout()
    try:
        return _core.Comm(
            mpi._addressof(comm),
            mpi._sizeof(comm),
            plugin_path(),
            limit + _GRACE if limit > 0 else 0.0,
        )
    except Error as error:
        if error.status == "timeout":  # what was begun cannot be taken back: as in Ranks.together
            time.sleep(0.1 * min(comm.rank, 30))
            print(f"tegula: {error}", file=sys.stderr, flush=True)
            comm.Abort(1)
        raise


def ranks_of(comm: Any, threads: int | None) -> Ranks:
    """All ranks call it with a communicator of mpi4py.

    Raises:
        TypeError: for what is none.
        Error: for MPIs that cannot be used.
    """
    global _keyval
    mpi: Any = sys.modules.get("mpi4py.MPI")  # who has a communicator has imported it
    if mpi is None or not isinstance(comm, mpi.Intracomm):
        raise TypeError(
            "comm: expected a communicator of mpi4py (mpi4py.MPI.Intracomm), found "
            f"{type(comm).__name__}"
        )
    if _keyval is None:
        _keyval = mpi.Comm.Create_keyval()
    made: dict[int | None, Ranks] | None = comm.Get_attr(_keyval)
    if made is None:
        made = {}
        comm.Set_attr(_keyval, made)
    if threads not in made:
        core = next(iter(made.values())).core if made else _join(mpi, comm)
        made[threads] = Ranks(core, threads)
    return made[threads]
