/* state_file.h - the state of a run in a file: bytes with a checksum, written or read by the same
   calls.
   SPDX-License-Identifier: MIT OR Unlicense

   Machines must have the same order of bytes. */

#ifndef EXAMPLES_STATE_FILE_H
#define EXAMPLES_STATE_FILE_H

#include "base.h"

#include <errno.h>

typedef struct state_file {
    FILE *file;
    const char *path;
    int writes;
    uint64_t sum;       /* of the bytes so far: FNV-1a (G. Fowler, L. C. Noll, K.-P. Vo) */
    out_file out;       /* while it is written */
} state_file;

static inline void state_bytes(state_file *f, void *bytes, size_t size)
{
    const unsigned char *at = (const unsigned char *)bytes;
    size_t const done =
        f->writes ? fwrite(bytes, 1, size, f->file) : fread(bytes, 1, size, f->file);
    size_t k;
    if (done != size)
        stop(1, "%s: could not be %s: %s", f->path, f->writes ? "written" : "read",
             ferror(f->file) ? strerror(errno) : "it is too short");
    for (k = 0; k < size; k++) f->sum = (f->sum ^ at[k]) * 1099511628211u;
}

static inline state_file state_open(const char *path, int writes)
{
    state_file f;
    memset(&f, 0, sizeof f);
    f.path = path;
    f.writes = writes;
    f.sum = 14695981039346656037u;
    if (writes) {
        f.out = create_file(path);
        f.file = f.out.file;
    } else f.file = fopen(path, "rb");
    if (!f.file) stop(1, "%s: %s", path, strerror(errno));
    return f;
}

/* Writes the checksum, or compares it. */
static inline void state_close(state_file *f)
{
    uint64_t const sum = f->sum;
    uint64_t told = sum;
    state_bytes(f, &told, sizeof told);
    if (f->writes) {
        close_file(&f->out);
        return;
    }
    fclose(f->file);
    if (told != sum) stop(1, "%s: the file is damaged: its checksum is wrong", f->path);
}

#endif /* EXAMPLES_STATE_FILE_H */
