/* standalone.c - runs a fuzzer without libFuzzer: the files of its corpus, then inputs made by a
   generator.
   SPDX-License-Identifier: MIT OR Unlicense

       standalone RUNS FILE...     RUNS: of made inputs; a failing one is in standalone-crash

   The made inputs are the files with some bytes changed, or random bytes. Always the same
   ones. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 4096 };

static uint64_t dice = 88172645463325252u;

static uint32_t roll(uint32_t sides)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return (uint32_t)(dice >> 24) % sides;
}

/* A copy of exactly that length, so that a sanitizer sees one byte too many. */
static void run(const uint8_t *data, size_t size)
{
    uint8_t *copy = (uint8_t *)malloc(size ? size : 1);
    if (!copy) abort();
    memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static size_t read_file(const char *name, uint8_t *data)
{
    FILE *file = fopen(name, "rb");
    size_t size;
    if (!file) {
        fprintf(stderr, "cannot read %s\n", name);
        exit(2);
    }
    size = fread(data, 1, MOST, file);
    fclose(file);
    return size;
}

/* Written before it runs: what is there after a crash is the culprit. */
static void keep(const uint8_t *data, size_t size)
{
    FILE *file = fopen("standalone-crash", "wb");
    if (!file) return;
    fwrite(data, 1, size, file);
    fclose(file);
}

int main(int argc, char **argv)
{
    static uint8_t data[MOST];
    long const runs = argc > 1 ? atol(argv[1]) : 0;
    long k;
    int f;
    for (f = 2; f < argc; f++) {
        size_t const size = read_file(argv[f], data);
        fprintf(stderr, "%s\n", argv[f]);
        run(data, size);
    }
    for (k = 0; k < runs; k++) {
        size_t size, change;
        if (argc > 2 && roll(4)) {
            size = read_file(argv[2 + roll((uint32_t)argc - 2)], data);
            for (change = 1 + roll(6); change > 0 && size > 0; change--)
                data[roll((uint32_t)size)] = (uint8_t)roll(256);
        } else {
            size = roll(200);
            for (change = 0; change < size; change++) data[change] = (uint8_t)roll(256);
        }
        keep(data, size);
        run(data, size);
    }
    remove("standalone-crash");
    printf("%d files, %ld made inputs\n", argc > 2 ? argc - 2 : 0, runs);
    return 0;
}
