/* options.h - the command line of an example: a table of options, read by getopt_long, which is
   also what --help prints.
   SPDX-License-Identifier: MIT OR Unlicense */

#ifndef EXAMPLES_OPTIONS_H
#define EXAMPLES_OPTIONS_H

#include "base.h"

#include <getopt.h>

/* One option. name: "-n" or "--steps"; value: what --help calls its value ("X Y": two values,
   stored one after another), NULL for a flag. kind: type at `to`; a flag is an int32_t that
   becomes 1. */
typedef enum option_kind { OPTION_END, OPTION_FLAG, OPTION_INT, OPTION_FLOAT, OPTION_DOUBLE,
                           OPTION_TEXT } option_kind;
typedef struct option_line {
    const char *name, *value, *help;
    option_kind kind;
    void *to;
    double least, most; /* of a number */
} option_line;

#define FLAG(name, to, help) {name, NULL, help, OPTION_FLAG, to, 0, 0}
#define INT(name, value, to, least, most, help) {name, value, help, OPTION_INT, to, least, most}
#define FLOAT(name, value, to, least, most, help) {name, value, help, OPTION_FLOAT, to, least, most}
#define DOUBLE(name, value, to, least, most, help) \
    {name, value, help, OPTION_DOUBLE, to, least, most}
#define TEXT(name, value, to, help) {name, value, help, OPTION_TEXT, (void *)(to), 0, 0}
#define OPTIONS_END {NULL, NULL, NULL, OPTION_END, NULL, 0, 0}

enum { OPTIONS_MOST = 40 };

static inline void options_help(const option_line *table, const char *purpose, const char *example)
{
    char usage[64];
    int wide = 0, k;
    if (program_is_silent) PROGRAM_EXIT(0);
    printf("usage: %s [options]\n\n%s Options:\n\n", PROGRAM, purpose);
    for (k = 0; table[k].name; k++) {
        int const length = snprintf(usage, sizeof usage, "%s %s", table[k].name,
                                    table[k].value ? table[k].value : "");
        if (length > wide && length < 20) wide = length;
    }
    for (k = 0; table[k].name; k++) {
        snprintf(usage, sizeof usage, "%s %s", table[k].name, table[k].value ? table[k].value : "");
        printf("  %-*s  %s\n", wide, usage, table[k].help);
    }
    printf("  %-*s  this text\n", wide, "--help");
    if (example) printf("\nexample: %s %s\n", PROGRAM, example);
    PROGRAM_EXIT(0);
}

static inline void option_store(const option_line *o, int index, const char *text)
{
    char *end;
    double value;
    if (o->kind == OPTION_TEXT) {
        ((const char **)o->to)[index] = text;
        return;
    }
    value = strtod(text, &end);
    if (end == text || *end || !(value >= o->least && value <= o->most))
        stop(2, "%s %s: a number from %g to %g is needed", o->name, text, o->least, o->most);
    if (o->kind == OPTION_INT && value != floor(value))
        stop(2, "%s %s: a whole number is needed", o->name, text);
    if (o->kind == OPTION_INT) ((int32_t *)o->to)[index] = (int32_t)value;
    if (o->kind == OPTION_FLOAT) ((float *)o->to)[index] = (float)value;
    if (o->kind == OPTION_DOUBLE) ((double *)o->to)[index] = value;
}

/* getopt_long has taken the first value; others follow in argv. */
static inline void option_take(const option_line *o, int argc, char **argv)
{
    const char *space = o->value;
    int index = 0;
    if (!o->value) {
        *(int32_t *)o->to = 1;
        return;
    }
    option_store(o, index, optarg);
    while ((space = strchr(space, ' ')) != NULL) {
        if (optind >= argc) stop(2, "%s needs more values: %s", o->name, o->value);
        option_store(o, ++index, argv[optind++]);
        space++;
    }
}

/* What getopt_long did not take. */
static inline void option_refuse(const option_line *table, int got, const char *argument)
{
    int k;
    for (k = 0; table[k].name; k++) {
        size_t const length = strlen(table[k].name);
        if (strncmp(table[k].name, argument, length) != 0) continue;
        if (got == ':') stop(2, "%s needs a value: %s", argument, table[k].value);
        if (argument[length] == '=') stop(2, "%s takes no value", table[k].name);
    }
    stop(2, "unknown option %s (--help lists them)", argument);
}

/* Reads the command line into what `table` points at. Returns the argument that is no option, or
   NULL; `operand` says what it is, NULL: there is none. `purpose`, `example`: for --help. */
static inline const char *options_read(int argc, char **argv, const option_line *table,
                                       const char *operand, const char *purpose,
                                       const char *example)
{
    struct option names[OPTIONS_MOST + 2];
    char letters[2 * OPTIONS_MOST + 3] = "-:";
    const char *found = NULL;
    int k, got, count = 0;
    memset(names, 0, sizeof names);
    for (k = 0; table[k].name; k++) {
        if (table[k].name[1] != '-') {
            char const letter[3] = {table[k].name[1], table[k].value ? ':' : '\0', '\0'};
            strcat(letters, letter);
            continue;
        }
        names[count].name = table[k].name + 2;
        names[count].has_arg = table[k].value ? required_argument : no_argument;
        names[count++].val = 256 + k;
    }
    names[count].name = "help";
    names[count].val = 255;
    opterr = 0;
    optind = 1;
    while ((got = getopt_long(argc, argv, letters, names, NULL)) != -1) {
        if (got == 255) options_help(table, purpose, example);
        if (got == '?' || got == ':') option_refuse(table, got, argv[optind - 1]);
        if (got == 1 && !operand) stop(2, "unknown argument %s (--help lists options)", optarg);
        if (got == 1 && found) stop(2, "%s and %s: one %s is enough", found, optarg, operand);
        if (got == 1) found = optarg;
        for (k = 0; got > 1 && table[k].name; k++)
            if (got == 256 + k || (table[k].name[1] != '-' && got == table[k].name[1]))
                option_take(&table[k], argc, argv);
    }
    return found;
}

/* A value that is one of several names. */
typedef struct option_name {
    const char *name;
    int value;
} option_name;

static inline int option_find(const option_name *names, const char *option, const char *name)
{
    int k;
    for (k = 0; names[k].name; k++)
        if (strcmp(names[k].name, name) == 0) return names[k].value;
    stop(2, "%s %s: there is no such name (--help lists them)", option, name);
}

#endif /* EXAMPLES_OPTIONS_H */
