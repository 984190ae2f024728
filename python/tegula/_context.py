"""Contexts (threads, plugins, settings of the environment)
and what belongs to a single call: time limit, progress.

SPDX-License-Identifier: Apache-2.0

Nothing happens at import.  The first call makes a context, for each number of threads one;
a forked child makes its own.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from . import _core
from ._arguments import number
from ._errors import Error

_contexts: dict[tuple[int, int, int], _core.Context] = {}
_MOST_NESTED = 8


_background: list[_core.Operation | _Together] = []
_failed: list[Error] = []  # of operations that have ended
_background_generation = 0


def _candidates() -> str | None:
    """The libhdf5 of an installed h5py, which is not imported for it."""
    from importlib.util import find_spec

    try:
        found = find_spec("h5py")
    except (ImportError, ValueError):
        found = None
    if found is None or found.origin is None:
        return None
    folder = os.path.join(os.path.dirname(os.path.dirname(found.origin)), "h5py.libs")
    try:
        names = sorted(
            name for name in os.listdir(folder) if name.startswith("libhdf5-") and ".so" in name
        )
    except OSError:
        return None
    return ":".join(os.path.join(folder, name) for name in names if ":" not in folder) or None


def plugin_path() -> str:
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "plugins")
    return ":".join(part for part in (os.environ.get("TEGULA_PLUGIN_PATH"), own) if part)


def _threads_of_environment() -> int:
    text = os.environ.get("TEGULA_THREADS", "")
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 4096):
        raise ValueError(f"TEGULA_THREADS: expected a whole number from 1 to 4096, found {text!r}")
    return int(text)


@contextmanager
def reading() -> Iterator[None]:
    """A reader's function runs: what it reads through us belongs to another context, because it may
    not wait for workers and memory of the call that it is part of."""
    if _core.depth() == _MOST_NESTED:
        raise RecursionError(f"readers call each other more than {_MOST_NESTED} deep")
    _core.deepen(1)
    try:
        yield
    finally:
        _core.deepen(-1)


def place() -> tuple[int, int]:
    """What handles belong to: this process, and how deep in readers."""
    return _core.generation(), _core.depth()


class Group:
    """Processes that make calls together, with the context that they share (_ranks.py)."""

    context: _core.Context
    core: _core.Comm
    size: int

    def together(self) -> AbstractContextManager[None]:
        """A call that all of them make."""
        raise NotImplementedError


def _number_of(threads: int | None) -> int:
    if threads is None:
        return _threads_of_environment()
    return number("threads", threads, 1, 4096)


def context_on(comm: _core.Comm | None, threads: int | None) -> _core.Context:
    """A new context, of this process alone or on ranks."""
    number = _number_of(threads)
    library = os.environ.get("TEGULA_HDF5_LIBRARY") or None
    return _core.Context(number, plugin_path(), library, None if library else _candidates(), comm)


def context(threads: int | Group | None = None) -> _core.Context:
    if isinstance(threads, Group):
        return threads.context
    key = *place(), _number_of(threads)
    found = _contexts.get(key)
    if found is None:
        made = context_on(None, threads)
        for old in list(_contexts):
            if old[0] != key[0]:
                _contexts.pop(old, None)  # of the process that this one was forked from
        found = _contexts.setdefault(key, made)
    return found


def timeout() -> float:
    """Seconds of TEGULA_TIMEOUT; 0: no limit."""
    text = os.environ.get("TEGULA_TIMEOUT", "")
    if not text:
        return 0.0
    if not text.replace(".", "", 1).isdigit() or not 0 < float(text) <= 1e9:
        raise ValueError(f"TEGULA_TIMEOUT: expected seconds above 0, found {text!r}")
    return float(text)


# ---- operations in the background ----


class _Together:
    """A save of several ranks, which wait for it together."""

    def __init__(self, operation: _core.Operation, group: Group) -> None:
        self.operation, self.group = operation, group

    def wait(self, seconds: float) -> bool:
        with self.group.together():
            return self.operation.wait(seconds, self.group.core)

    def ended(self) -> bool:
        return self.operation.ended()


def later(operation: _core.Operation, group: Group | None = None) -> None:
    """Remembers an operation for :func:`fence`; one that nobody waits for is waited for at the end
    of the program.  With a group all its ranks are here."""
    global _background_generation
    if _background_generation != _core.generation():
        import atexit

        _background.clear()
        _failed.clear()
        if _background_generation == 0:
            atexit.register(fence_at_exit, fence)
        _background_generation = _core.generation()
    before = list(_background)
    _background.append(operation if group is None else _Together(operation, group))
    for earlier in before:
        if not isinstance(earlier, _Together) or earlier.group is group:
            _look_at(earlier, 0.0)


def _look_at(operation: _core.Operation | _Together, seconds: float) -> None:
    """Takes it out of the list when it has ended; what it failed with is kept."""
    failure = None
    try:
        if not operation.wait(seconds):
            return
    except Error as error:
        # ranks made different calls: it is still to be waited for
        if isinstance(operation, _Together) and not operation.ended():
            raise
        failure = error
    try:
        _background.remove(operation)
    except ValueError:  # another thread saw it end, too
        return
    if failure is not None:
        _failed.append(failure)


def waiting() -> bool:
    return bool(_background) and _background_generation == _core.generation()


def fence() -> None:
    """Waits until every ``save(..., block=False)`` has ended.

    Afterwards the files are visible to every program, and the memory that was saved may be changed.
    With such saves of arrays of several ranks all of these call it, and what they wait for is the
    same.

    Raises:
        Error: of the first save that failed; call it again for the next one.
    """
    while waiting():
        for first in _background[:1]:
            _look_at(first, 0.05)  # signals are heard in between
    if _background_generation == _core.generation():
        raise_first(_failed)


def raise_first(failed: list[Error]) -> None:
    """Raises the first of what saves in the background failed with,
    and takes it out of the list."""
    if not failed:
        return
    error = failed.pop(0)
    if failed:
        error.add_note(f"{len(failed)} more saves failed: call fence() again")
    try:
        raise error
    finally:
        del error  # or the exception would hold itself, and what its frames hold


def fence_at_exit(wait: Callable[[], None]) -> None:
    """What `wait`, a fence, raises when nobody is left to hear it is printed."""
    while True:
        try:
            return wait()
        except Error as error:
            print(f"tegula: a save in the background failed: {error}", file=sys.stderr)


# ---- progress ----

Report = Callable[[int, int], object]


def _bar(target: Any) -> Report:
    """An object like tqdm's: total and update()."""

    def report(done: int, total: int) -> None:
        if target.total != total:
            target.total = total
        target.update(done - target.n)

    return report


def _line(done: int, total: int) -> None:
    end = "\n" if done == total else ""
    print(f"\r{done / 1e9:.2f} of {total / 1e9:.2f} GB", end=end, file=sys.stderr, flush=True)


@contextmanager
def progress_of(progress: Any) -> Iterator[Report | None]:
    """What the extension calls with (bytes done, bytes in all), some twenty times a second."""
    if progress is None or progress is False:
        yield None
    elif progress is True or isinstance(progress, type):
        made = _make_bar(None if progress is True else progress)
        try:
            yield _line if made is None else _bar(made)
        finally:
            if made is not None:
                made.close()
    elif hasattr(progress, "update") and hasattr(progress, "total"):
        yield _bar(progress)
    elif callable(progress):
        yield progress
    else:
        raise TypeError(
            "progress: expected a bool, a function (done, total) or a tqdm bar, found "
            f"{type(progress).__name__}"
        )


def _make_bar(kind: Any) -> Any:
    if kind is None:
        try:
            kind = importlib.import_module("tqdm").tqdm
        except ImportError:
            return None
    made = kind(unit="B", unit_scale=True) if hasattr(kind, "update") else None
    if made is None or not hasattr(made, "total"):
        raise TypeError(
            "progress: expected a bool, a function (done, total) or a tqdm bar, found the type "
            f"{kind.__name__}"
        )
    return made
