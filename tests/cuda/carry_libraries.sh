#!/bin/sh
# Puts the two shared libraries that a machine with a GPU may lack beside the programs, which look
# for them there: tests/cuda/carry_libraries.sh FOLDER PROGRAM...
folder=$1; shift
[ $# -gt 0 ] || exit 0
ldd "$@" | sed -n 's/.*=> \(\/[^ ]*\/lib\(cmocka\|stb\)\.so[^ ]*\) .*/\1/p' | sort -u |
while read -r library; do
    [ "$(dirname "$library")" -ef "$folder" ] || cp "$library" "$folder/" || exit
done
