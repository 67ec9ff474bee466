# Read by the test scripts: units of work, JOBS (2) at a time, shown in the order of their start.
#
#   unit COMMAND...   starts one, as a process of its own. It counts in $passed, $failed and
#                     $skipped, as if it were alone.
#   all_units         waits for all of them and adds up what they counted
#   $same_addresses   before a command: no random addresses, where the system allows that. With many
#                     random bits (vm.mmap_rnd_bits = 32) a program of an older sanitizer now and
#                     then does not start
#   keep LOG NAME     of what failed: all of its log, beside the log of its group (tests/run_all.sh
#                     sets LOGS)
#
# $units is a folder for their files; it goes away when the script ends.
# SPDX-License-Identifier: MIT OR Unlicense

units=$(mktemp -d) || exit 1
trap 'rm -rf "$units"' EXIT
units_started=0 units_shown=0
same_addresses=$(setarch -R true 2>/dev/null && echo setarch -R)
passed=0 failed=0 skipped=0

unit() {
    while (( $(jobs -rp | wc -l) >= ${JOBS:-2} )); do wait -n; done
    units_started=$((units_started + 1))
    run_unit "$units/$units_started" "$@" &
    show_units
}

# A unit that ends without a sum has died: that is shown by all_units.
run_unit() {
    local file=$1; shift
    passed=0 failed=0 skipped=0
    "$@" >"$file" 2>&1 </dev/null
    echo "$passed $failed $skipped" >"$file.now"
    mv "$file.now" "$file.sums"     # there, or not there
}

# What has ended, up to the first one that has not.
show_units() {
    local p f s
    while [ -f "$units/$((units_shown + 1)).sums" ]; do
        units_shown=$((units_shown + 1))
        cat "$units/$units_shown"
        read -r p f s <"$units/$units_shown.sums"
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    done
}

all_units() {
    local i
    wait
    for ((i = 1; i <= units_started; i++)); do
        if [ ! -s "$units/$i.sums" ]; then
            echo "FAILED   a unit of this test ended early" >>"$units/$i"
            echo "0 1 0" >"$units/$i.sums"
        fi
    done
    show_units
}

keep() {
    local to
    [ "${LOGS:-}" ] && [ -s "$1" ] || return 0
    to=$(printf %s "$2" | tr -c 'A-Za-z0-9._-' _ | cut -c 1-100).log
    cp "$1" "$LOGS/$to" && echo "    | all of it: $to, beside the log of this group"
}
