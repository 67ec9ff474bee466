# Read by the tests of examples with a window: a screen to look at, Xvfb's, which is a file.
# SPDX-License-Identifier: MIT OR Unlicense
#
#   start_screen WIDTHxHEIGHT     sets display and server; fails where there is none
#   stop_screen
#   eventually COMMAND...         tries it again and again, until it holds. Its limit is for what
#                                 hangs: no check is about time
#   screen_is_empty, screen_shows_it, screen_changes, screen_rests; gone PID
#
# $work is a folder for their files. Keys are not repeated (-r), however long a busy machine holds
# them down.

start_screen() {
    mkdir -p "$work/screen"
    : >"$work/display"
    Xvfb -r -displayfd 3 -screen 0 "$1x24" -fbdir "$work/screen" -nolisten tcp 3>"$work/display" \
        >/dev/null 2>&1 &
    server=$!
    eventually screen_is_there && [ -s "$work/display" ] || return 1
    display=$(cat "$work/display") empty=$(screen_colors)
}

stop_screen() { kill $server 2>/dev/null; wait $server 2>/dev/null; }

# (or never will be)
screen_is_there() { [ -s "$work/display" ] || gone $server; }

eventually() {
    local end=$((SECONDS + 300))
    until "$@"; do [ $SECONDS -lt $end ] || return 1; sleep 0.1; done
}

# How many different words the screen has, almost all of them pixels. `empty`: without a window.
screen_colors() { od -An -v -tx4 -w4 "$work/screen/Xvfb_screen0" | sort -u | wc -l; }
screen_shows_it() { [ "$(screen_colors)" -gt $((empty + 100)) ]; }
screen_is_empty() { ! screen_shows_it; }
screen_changes() {
    cp "$work/screen/Xvfb_screen0" "$work/shot"; sleep 0.3
    ! cmp -s "$work/screen/Xvfb_screen0" "$work/shot"
}
screen_rests() { ! screen_changes; }
gone() { ! kill -0 "$1" 2>/dev/null; }
