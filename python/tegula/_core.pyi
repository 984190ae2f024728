# The extension module: private, see core/core.h. SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Any

_Lengths = tuple[int, ...]
_Report = Callable[[int, int], object] | None

class Comm:
    def __new__(cls, address: int, size: int, plugin_path: str | None, seconds: float) -> Comm: ...
    def rank(self) -> int: ...
    def size(self) -> int: ...
    def broken(self) -> bool: ...
    def deadline(self, seconds: float) -> None: ...
    def fail(self, message: str) -> None: ...
    def abort(self, code: int) -> None: ...

class Context:
    def __new__(
        cls,
        threads: int,
        plugin_path: str | None,
        hdf5_library: str | None,
        hdf5_candidates: str | None,
        comm: Comm | None = None,
    ) -> Context: ...
    def threads(self) -> int: ...

class Tiling:
    def __new__(
        cls, shape: _Lengths, tile: _Lengths | None, axis: int, tiles: int, ranks: int = 1
    ) -> Tiling: ...
    def boxes(self) -> list[tuple[_Lengths, _Lengths]]: ...

class Array:
    @staticmethod
    def create(context: Context, dtype: str, tiling: Tiling) -> Array: ...
    @staticmethod
    def wrap(
        context: Context,
        dtype: str,
        tiling: Tiling,
        owner: object,
        address: int,
        strides: _Lengths,
        read_only: bool,
    ) -> Array: ...
    def hash(self) -> str: ...
    def tiles(self) -> list[tuple[_Lengths, _Lengths, Tile]]: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

class Tile:
    def __buffer__(self, flags: int, /) -> memoryview: ...

class Exporter: ...

class Dataset:
    def info(
        self,
    ) -> tuple[str, str | None, _Lengths, str, str, int, int, int, int, _Lengths | None, str]: ...
    def file(self, index: int) -> str: ...
    def to_json(self) -> str: ...
    def explain(self, tiling: Tiling) -> str: ...
    def read(
        self,
        address: int,
        lo: _Lengths,
        hi: _Lengths,
        step: _Lengths | None,
        strides: _Lengths,
        missing: int,
        bytes: int,
        progress: _Report | Flag,
        timeout: float,
    ) -> None: ...
    def prepare(self, empty: Callable[..., Any], dtype: Any, missing: int, /) -> None: ...
    def quick(self, key: object, /) -> Any: ...
    def select(
        self, lo: _Lengths, hi: _Lengths, step: _Lengths | None, field: str | None, timeout: float
    ) -> Dataset: ...
    def load(
        self, array: Array, origin: _Lengths | None, missing: int, progress: _Report, timeout: float
    ) -> None: ...
    def hash(self, missing: int, progress: _Report, timeout: float) -> str: ...

class Batches:
    def __new__(cls, dataset: Dataset, chunk: _Lengths, missing: int) -> Batches: ...
    def next(self, timeout: float, /) -> tuple[Array, _Lengths, _Lengths] | None: ...
    def close(self) -> None: ...

class Flag:
    def set(self) -> None: ...
    def is_set(self) -> bool: ...

class Operation:
    def wait(self, seconds: float, comm: Comm | None = None, /) -> bool: ...
    def ended(self) -> bool: ...
    def cancel(self) -> None: ...

class Saving:
    def tile(self, address: int, lo: _Lengths, hi: _Lengths, strides: _Lengths, /) -> None: ...
    def to_json(self) -> str: ...
    def commit(self) -> None: ...
    def abandon(self) -> None: ...

def generation() -> int: ...
def depth() -> int: ...
def deepen(by: int, /) -> None: ...
def version() -> str: ...
def open(
    context: Context,
    paths: tuple[bytes, ...],
    format: str | None,
    dataset: str | None,
    field: str | None,
    dtype: str | None,
    shape: _Lengths | None,
    row_shape: _Lengths | None,
    offset: int,
    row_gap: int,
    order: str,
    byte_order: str,
    expect_files: int,
    expect_rows: int,
    locked: bool,
    settings: tuple[tuple[str, str], ...],
    defer: bool,
    timeout: float,
) -> Dataset: ...
def from_reader(
    context: Context,
    fill: Callable[..., None],
    name: str,
    dtype: str,
    shape: _Lengths,
    chunk: _Lengths | None,
    cost: int,
) -> Dataset: ...
def attributes(
    context: Context, path: bytes, dataset: str | None
) -> list[tuple[str, str, _Lengths | None, Any, str | None]]: ...
def save(
    array: Array,
    path: bytes,
    target: tuple[Any, ...],
    described: tuple[Any, ...],
    block: bool,
    progress: _Report,
    timeout: float,
) -> Operation | None: ...
def save_group(
    members: list[tuple[Array, tuple[Any, ...], str | None]],
    path: bytes,
    target: tuple[Any, ...],
    progress: _Report,
    timeout: float,
) -> None: ...
def save_begin(
    context: Context,
    dtype: str,
    tiling: Tiling,
    path: bytes,
    target: tuple[Any, ...],
    described: tuple[Any, ...],
    stop: Flag | None = None,
) -> Saving: ...
def save_tile_from(
    context: Context,
    json: str,
    dtype: str,
    address: int,
    lo: _Lengths,
    hi: _Lengths,
    strides: _Lengths,
) -> None: ...
def dlpack(
    owner: object,
    address: int,
    shape: _Lengths,
    strides: _Lengths,
    code: int,
    bits: int,
    versioned: bool,
    flags: int,
) -> object: ...
