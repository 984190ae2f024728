"""Scopes that stream (``ParallelPolicy(streaming_mode=...)``):
Legate holds the tasks in them back until they end.

SPDX-License-Identifier: Apache-2.0

A RELAXED scope may be cut: our tasks stand in a scope of their own within, and are launched at its
end.  A STRICT one may not: whatever waits in it makes Legate drop all tasks of the scope.  There
arrays are read by the caller, and saves end after the scope.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from legate.core import ParallelPolicy, Scope, StreamingMode, get_legate_runtime

from .._errors import InternalError, UnsupportedError
from . import _tasks
from ._held import Held


def strict() -> bool:
    return bool(Scope.parallel_policy().streaming_mode == StreamingMode.STRICT)


def launching() -> AbstractContextManager[None]:
    """Tasks that are submitted within have been launched when it ends,
    but for those of a STRICT scope."""
    if Scope.parallel_policy().streaming_mode != StreamingMode.RELAXED:
        return nullcontext()
    scope: AbstractContextManager[None] = Scope(
        parallel_policy=ParallelPolicy(streaming_mode=StreamingMode.OFF)
    )
    return scope


def check_may_wait() -> None:
    """Raises what Legate raises, but drops no tasks."""
    if strict():
        raise ValueError(
            "a scope of StreamingMode.STRICT holds its tasks back: what they write can be used "
            "when it has ended"
        )


def check_one_process(what: str) -> None:
    if get_legate_runtime().node_count > 1 or _tasks.pretend_elsewhere:
        raise UnsupportedError(
            f"several processes cannot {what} within a scope of StreamingMode.STRICT",
            hint="use RELAXED",
        )


def settle_all() -> None:
    """Also loads whose tasks Legate has dropped: their memory is given back."""
    for run in list(_tasks.runs.values()):
        if isinstance(run, Held) and not strict():
            settle(run)


def settle(held: Held) -> None:
    """Waits for tasks that a scope held back."""
    if held.ended.is_set():
        return
    check_may_wait()
    get_legate_runtime().issue_execution_fence(block=True)
    if not held.ended.is_set():
        held.lose(
            InternalError(
                "Legate has dropped the tasks of a scope of StreamingMode.STRICT, and with them "
                "this save"
            )
        )
