/* table.h - numbers from a text file: a line for each row, blanks between the numbers, "#" begins
   a comment. Everything else is refused, with file and line.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef EXAMPLES_TABLE_H
#define EXAMPLES_TABLE_H

#include "base.h"

enum { TABLE_LINE = 512 };

typedef struct table {
    int32_t rows, columns, room;
    double *value;      /* [rows * columns] */
    long *line;         /* [rows] where they stand in the file */
} table;

/* Reads a line without its end and cuts off a comment. 0 at the end of the file; -1 when it is too
   long. */
static inline int table_line(FILE *file, char line[TABLE_LINE])
{
    int length = 0, any = 0, comment = 0, c;
    while ((c = getc(file)) != EOF && c != '\n') {
        any = 1;
        if (c == '#') comment = 1;
        if (comment) continue;
        if (length == TABLE_LINE - 1) return -1;
        line[length++] = c ? (char)c : '?'; /* a zero byte is no end of line */
    }
    line[length] = 0;
    return any || c == '\n';
}

static inline const char *table_blanks(const char *text)
{
    while (*text == ' ' || *text == '\t' || *text == '\r') text++;
    return text;
}

/* So many finite numbers and nothing else? */
static inline int table_parse(const char *text, int columns, double *row)
{
    int k;
    for (k = 0; k < columns; k++) {
        char *end;
        row[k] = strtod(text, &end);
        if (end == text || !(fabs(row[k]) <= 3e38)) return 0;
        if (*end && table_blanks(end) == end) return 0; /* "1.5x" */
        text = end;
    }
    return *table_blanks(text) == 0;
}

static inline void table_grow(table *t)
{
    int32_t const more = t->room ? 2 * t->room : 1024;
    size_t const numbers = (size_t)more * (size_t)t->columns;
    double *value = t->rows < INT32_MAX / 4
                        ? (double *)realloc(t->value, numbers * sizeof(double)) : NULL;
    long *line = value ? (long *)realloc(t->line, (size_t)more * sizeof(long)) : NULL;
    if (!line) stop(1, "out of memory after %ld lines", (long)t->rows);
    t->value = value;
    t->line = line;
    t->room = more;
}

/* `what`: "three finite numbers x y z"; `thing`: what a row is. */
static inline table table_read(const char *name, int columns, const char *what, const char *thing)
{
    FILE *file = fopen(name, "r");
    table t = {0, columns, 0, NULL, NULL};
    char line[TABLE_LINE];
    long number = 0;
    int got;
    if (!file) stop(1, "%s: %s", name, strerror(errno));
    while ((got = table_line(file, line)) != 0) {
        number++;
        if (got < 0)
            stop(1, "%s:%ld: the line is longer than %d characters", name, number, TABLE_LINE - 1);
        if (*table_blanks(line) == 0) continue;
        if (t.rows == t.room) table_grow(&t);
        if (!table_parse(line, columns, t.value + (size_t)columns * (size_t)t.rows))
            stop(1, "%s:%ld: \"%.40s\" is not %s", name, number, line, what);
        t.line[t.rows++] = number;
    }
    if (ferror(file)) stop(1, "%s: %s", name, strerror(errno));
    fclose(file);
    if (t.rows == 0) stop(1, "%s: holds no %s", name, thing);
    return t;
}

static inline const double *table_row(const table *t, int32_t row)
{
    return t->value + (size_t)t->columns * (size_t)row;
}

static inline void table_free(table *t)
{
    free(t->value);
    free(t->line);
    memset(t, 0, sizeof *t);
}

#endif /* EXAMPLES_TABLE_H */
