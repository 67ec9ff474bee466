#!/bin/sh
# how_page.sh - puts together the page "how it works": how.html, its scripts, and the text of those
# functions of the headers that the scripts name.
#
#   examples/web/how_page.sh >build/web/how_shell.html
#
# A line "@include FILE" becomes that file, the line "@sources" one line for each function that a
# script names in single quotes ('ugrid_i_prefix_sum'): SOURCE.name = {file, line, text}. The text
# begins with the comment above the function. What stands in it only where a macro is defined (#if,
# #ifdef) is left out. Fails where neither the header nor its parts have such a function, and names
# all that are missing.
# SPDX-License-Identifier: MIT OR Unlicense
set -eu
cd "$(dirname "$0")"

source_in() {   # NAME FILE: fails where the file has no such function
    awk -v name="$1" -v file="${2#../../}" '
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
            if (!end) exit 1
            first = at
            if (line[at - 1] ~ /\*\/$/ && line[at - 1] !~ /^   -----/)
                for (first = at - 1; line[first] !~ /^\/\*/; ) first--
            for (k = first; k <= end; k++) {
                if (line[k] ~ /^#[ ]*if/) left_out[++depth] = line[k] !~ /^#[ ]*ifndef/
                else if (line[k] ~ /^#[ ]*else/) left_out[depth] = !left_out[depth]
                hidden = line[k] ~ /^#/
                for (d = 1; d <= depth; d++) if (left_out[d]) hidden = 1
                if (!hidden) text = text (k > first ? "\n" : "") line[k]
                if (line[k] ~ /^#[ ]*endif/) depth--
            }
            printf "SOURCE.%s = { file: \"%s\", line: %d, ", name, file, at
            print "text: " quoted(text) " };"
        }' "$2"
}

# From the header, or else from one of its parts.
source_of() {   # NAME
    for file in "../../${1%%_*}.h" ../../more/"${1%%_*}"_*.h; do
        [ ! -e "$file" ] || ! source_in "$1" "$file" || return 0
    done
    echo "how_page.sh: $(grep -l "'$1'" how_*.js | tr '\n' ' ')names a function $1, which" \
        "${1%%_*}.h and its parts do not have" >&2
    return 1
}

sources() {
    grep -ohE "'(ugrid|lbvh|nbody|nlist)_[a-z0-9_]+'" how_*.js | tr -d "'" | sort -u |
        { missing=0
          while read -r name; do source_of "$name" || missing=1; done
          return $missing; }
}

lines=$(sources)
while IFS= read -r line; do
    case $line in
        @include\ *) cat "${line#@include }" ;;
        @sources) printf '%s\n' "$lines" ;;
        *) printf '%s\n' "$line" ;;
    esac
done <how.html
