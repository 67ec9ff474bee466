/* emu.h - what a test program can ask of the CUDA emulator beyond CUDA itself.
   SPDX-License-Identifier: MIT

   Plain C, so that tests written in C can use it as well. Every option is also an environment
   variable (README.md has the table), read once at the start of the program. */
#ifndef EMU_H
#define EMU_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum emu_order { EMU_FORWARD, EMU_REVERSE, EMU_RANDOM };

struct emu_options {
    enum emu_order order;    /* EMU_ORDER=forward|reverse|random: of threads and of blocks */
    unsigned long long seed; /* EMU_SEED: all that is random follows from it */
    /* EMU_PREEMPT=n: turn to another thread at one in n atomics and fences; 0 = never */
    int preempt;
    int lazy;                /* EMU_LAZY=1: streams run only when they are waited for */
    int blocks;              /* EMU_BLOCKS=n: blocks in flight at the same time, interleaved */
    int tsan_blocks;         /* EMU_TSAN_BLOCKS=1: to ThreadSanitizer a block is one thread */
    int leaks;               /* EMU_LEAKS=0: say nothing about what was never freed */
    int quiet;               /* EMU_QUIET=1: no summary at exit */
};

/* Changes count from the next launch on. */
struct emu_options *emu_options(void);

/* The n-th allocation of device memory from now on fails (1 = the next one); 0 = none. */
void emu_fail_alloc(long n);

/* The n-th kernel launch from now on fails with cudaErrorLaunchOutOfResources; 0 = none. */
void emu_fail_launch(long n);

long emu_allocations(void);      /* of device memory, since the start of the program */
long emu_live_allocations(void); /* of device or pinned memory, not freed yet */
size_t emu_live_bytes(void);

long emu_launches(void);                /* kernels that ran, those of graphs included */
int emu_kernel_count(void);             /* kernels in this program, launched or not */
const char *emu_kernel_name(int i);     /* for example "scatter" or "sum<float>" */
long emu_kernel_launches(int i);

#ifdef __cplusplus
}
#endif
#endif
