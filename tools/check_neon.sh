#!/usr/bin/env bash
# The kernels for AArch64: src/kernel and its unit tests are cross-compiled and run under qemu.
#
# SPDX-License-Identifier: Apache-2.0
#
# usage: bash tools/check_neon.sh FOLDER (for what is built). Ends with 77 where there is no cross compiler or no qemu-aarch64, and on
# an AArch64 machine, where the ordinary unit tests say all this.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=${1:?usage: bash tools/check_neon.sh FOLDER}
compiler=aarch64-linux-gnu-gcc

skip() { echo "skipped: $*"; exit 77; }
[ "$(uname -m)" != aarch64 ] || skip "this is an AArch64 machine: the unit tests run here"
for command in $compiler qemu-aarch64; do
  command -v $command >/dev/null || skip "no $command (Debian: gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user)"
done
echo 'int main(void) { return 0; }' | $compiler -x c -o /dev/null -static - 2>/dev/null ||
  skip "$compiler has no C library (Debian: libc6-dev-arm64-cross)"

mkdir -p "$folder"
flags=(-std=c17 -D_GNU_SOURCE -O2 -ffunction-sections -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror
       -Iinclude -Isrc -Itests/cross -Itests/unit)
objects=()
for source in src/kernel/*.c src/base/shape.c; do
  objects+=("$folder/$(basename "$source" .c).o")
  $compiler "${flags[@]}" -c "$source" -o "${objects[-1]}"
done
cat >"$folder/selected.c" <<'END'
#include <stdio.h>
#include "kernel/kernel.h"
int main(void) { return puts(tegula__kernel_select()->name) < 0; }
END
for source in "$folder/selected.c" tests/unit/test_kernel_*.c; do
  $compiler "${flags[@]}" -static -Wl,--gc-sections "$source" "${objects[@]}" -o "$folder/$(basename "$source" .c)"
done

selected=$(qemu-aarch64 "$folder/selected")
[ "$selected" = neon ] || { echo "the kernels for AArch64 are \"$selected\", expected \"neon\"" >&2; exit 1; }
for source in tests/unit/test_kernel_*.c; do qemu-aarch64 "$folder/$(basename "$source" .c)"; done
