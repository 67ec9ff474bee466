#!/bin/sh
# how_page.sh - puts together the page "how it works": how.html, its scripts, and the text of those
# functions of the headers that the scripts name.
#
#   examples/web/how_page.sh >build/web/how_shell.html
#
# A line "@include FILE" becomes that file, the line "@sources" one line for each function that a
# script names in single quotes ('ugrid_i_prefix_sum'): SOURCE.name = {file, line, text}. The text
# begins with the comment above the function. Fails where a header has no such function.
# SPDX-License-Identifier: MIT OR Unlicense
set -eu
cd "$(dirname "$0")"

source_of() {   # NAME
    header=${1%%_*}.h
    awk -v name="$1" -v header="$header" '
        function quoted(text) {
            gsub(/\\/, "\\\\", text); gsub(/"/, "\\\"", text); gsub(/\n/, "\\n", text)
            gsub(/\t/, "    ", text)
            return "\"" text "\""
        }
        { line[NR] = $0 }
        # a definition: the name at a left margin, and { before any ;
        !at && /^[A-Za-z].*\(/ && $0 ~ "[ *]" name "\\(" { at = NR }
        at && !open && NR >= at && /;[ ]*$/ { at = 0 }
        at && !open && /\{/ { open = 1 }
        open && (/^\}/ || (NR == at && /\}$/)) { end = NR; exit }
        END {
            if (!end) {
                print "how_page.sh: no function " name " in " header >"/dev/stderr"; exit 1
            }
            first = at
            if (line[at - 1] ~ /\*\/$/ && line[at - 1] !~ /^   -----/)
                for (first = at - 1; line[first] !~ /^\/\*/; ) first--
            for (k = first; k <= end; k++) text = text line[k] (k < end ? "\n" : "")
            printf "SOURCE.%s = { file: \"%s\", line: %d, ", name, header, at
            print "text: " quoted(text) " };"
        }' "../../$header"
}

sources() {
    grep -ohE "'(ugrid|lbvh|nbody|nlist)_[a-z0-9_]+'" how_*.js | tr -d "'" | sort -u |
        while read -r name; do source_of "$name" || exit 1; done
}

lines=$(sources)
while IFS= read -r line; do
    case $line in
        @include\ *) cat "${line#@include }" ;;
        @sources) printf '%s\n' "$lines" ;;
        *) printf '%s\n' "$line" ;;
    esac
done <how.html
