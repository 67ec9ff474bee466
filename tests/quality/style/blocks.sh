#!/bin/bash
# Headers share no file, so some blocks are copies: are they those of their master texts?
#
#   tests/quality/style/blocks.sh [TREE]     prints what differs: nothing, where all is well
#
# A master text is blocks/NAME.txt. Its first line names the headers that have it, "# in: ugrid
# lbvh"; further lines with # say why others have not. Then comes the text, with @name@ and @NAME@
# for the header's name. A rule of dashes may be of any length, and so may the blanks in front.
# SPDX-License-Identifier: MIT OR Unlicense
set -u
cd "$(dirname "$0")/../../.." || exit 1
tree=${1:-.}

# copy MASTER HEADER: the text that this header has to have
copy() {
    awk '!text && /^# / { next } { text = 1; print }' "$1" | sed "s/@name@/$2/g; s/@NAME@/$(echo "$2" | tr a-z A-Z)/g"
}

# Where a copy leaves its text: at the line behind the longest beginning that the header has.
differs() {     # differs NAME HEADER
    copy "tests/quality/style/blocks/$1.txt" "$2" | awk -v name="$1" -v file="$2.h" '
        { gsub(/-----+/, "-----"); sub(/^ +/, " ") }
        NR == FNR { want[++most] = $0; next }
        { has[++lines] = $0 }
        END {
            for (n = 1; n <= lines; n++) {
                for (k = 1; k <= most && has[n + k - 1] == want[k]; k++);
                if (k > most) found++
                if (k > best) { best = k; at = n + k - 1 }
            }
            if (found == 1 && most > 0) exit
            if (found) print file ": " name ": " found " copies"
            else print file ":" at ": " name ": not: " want[best]
        }' - "$tree/$2.h"
}

for master in tests/quality/style/blocks/*.txt; do
    name=$(basename "$master" .txt)
    for header in $(sed -n '1s/^# in: //p' "$master"); do differs "$name" "$header"; done
done
