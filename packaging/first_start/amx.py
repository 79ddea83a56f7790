"""AMX: whether the compiler generates correct code for this processor's tile registers.

gcc before 13 takes the operand of ``_tile_loadconfig`` for 8 bytes instead of 64 and drops the stores to the rest as
dead: llama.cpp then dies with SIGILL or SIGSEGV in its matrix product. The probe does what llama.cpp does, and checks
the result.
"""

from __future__ import annotations

import subprocess
import tempfile
from enum import Enum
from pathlib import Path

from first_start.machine import Compiler, Family

_GOOD_SINCE = 13
_KNOWN_SINCE = 11
NO_AMX = ("-mno-amx-tile", "-mno-amx-int8", "-mno-amx-bf16")
_OPTIONS = ("-O3", "-mamx-tile", "-mamx-int8", "-mamx-bf16")

_SOURCE = r"""
#include <immintrin.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ARCH_REQ_XCOMP_PERM 0x1023
#define XFEATURE_XTILEDATA 18

struct tile_config {
    uint8_t palette_id, start_row, reserved[14];
    uint16_t colsb[16];
    uint8_t rows[16];
};

static int rows_of(int tile) { return tile < 2 ? 8 : 16; }
static int columns_of(int tile) { return tile == 2 || tile == 3 ? 32 : 64; }

__attribute__((noinline)) static void configure(void) {
    struct tile_config config __attribute__((aligned(64))) = {0};
    config.palette_id = 1;
    for (int tile = 0; tile < 8; tile++) {
        config.rows[tile] = (uint8_t)rows_of(tile);
        config.colsb[tile] = (uint16_t)columns_of(tile);
    }
    _tile_loadconfig(&config);
}

int main(void) {
    struct tile_config seen;
    memset(&seen, 0, sizeof seen);
    if (syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) != 0) return 2;
    configure();
    __asm__ volatile("sttilecfg %0" : "=m"(seen));
    for (int tile = 0; tile < 8; tile++)
        if (seen.rows[tile] != rows_of(tile) || seen.colsb[tile] != columns_of(tile)) return 1;
    return 0;
}
"""


class Amx(Enum):
    """Whether AMX works with a compiler on this processor."""

    ABSENT = "the processor has none"
    WORKS = "works"
    BROKEN = "does not work"
    UNKNOWN = "could not be tried"


def probe(compiler: Compiler) -> Amx:
    """Compile and run a program that configures tiles; a crash of it is an answer too."""
    with tempfile.TemporaryDirectory(prefix="slipstream-amx-") as folder:
        source, program = Path(folder, "probe.c"), Path(folder, "probe")
        source.write_text(_SOURCE, encoding="ascii")
        try:
            built = subprocess.run(
                [compiler.c, *_OPTIONS, str(source), "-o", str(program)], check=False, capture_output=True, timeout=60
            )
            if built.returncode:
                return Amx.UNKNOWN
            ran = subprocess.run([str(program)], check=False, capture_output=True, timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            return Amx.UNKNOWN
    return Amx.WORKS if ran.returncode == 0 else Amx.BROKEN


def flags_for(amx: Amx, compiler: Compiler) -> tuple[str, ...]:
    """Return the compiler flags that AMX needs; decided by the compiler's version if the probe could not run."""
    if amx in (Amx.ABSENT, Amx.WORKS):
        return ()
    if amx is Amx.BROKEN:
        return NO_AMX
    is_bad = compiler.family is Family.GCC and _KNOWN_SINCE <= compiler.major < _GOOD_SINCE
    return NO_AMX if is_bad else ()
