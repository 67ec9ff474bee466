#!/bin/sh
# A corpus is one text file: a line for each input, its name and its bytes in hexadecimal.
#
#   corpus.sh unpack FILE FOLDER     a file for each line
#   corpus.sh pack FOLDER FILE       and back: inputs with names of their own first
# SPDX-License-Identifier: MIT OR Unlicense
set -eu
export LC_ALL=C
case ${1:-} in
unpack)
    mkdir -p "$3"
    perl -ne 'BEGIN { $to = pop } my ($name, $hex) = split; open my $f, ">:raw", "$to/$name" or die; print $f pack "H*", $hex // ""' \
        "$2" "$3" ;;
pack)
    for input in "$2"/*; do
        printf '%s %s\n' "$(basename "$input")" "$(perl -0777 -ne 'print unpack "H*", $_' "$input")"
    done | perl -e 'print sort { ($a =~ /^[0-9a-f]{40} /) <=> ($b =~ /^[0-9a-f]{40} /) || $a cmp $b } <>' >"$3" ;;
*)  sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
