#!/bin/bash
# Tests examples/falling_boxes as its user sees it: figures, the mouse, the picture, the window,
# exit statuses.
#
#   tests/examples/test_falling_boxes.sh [PROGRAM]     default: build/falling_boxes
#
# The pairs of every frame are compared with all pairs of boxes (--check). Window: SDL's dummy driver, which needs no screen.
. "$(dirname "$0")/examples.sh" falling_boxes "${1:-}"
seen() {
    echo "exit status $status; $(head -c 300 "$work/out.txt") $(head -c 300 "$work/err.txt")"
}
holds() { awk "BEGIN { exit !($1) }"; }

run --check --frames 300 --png a.png
report "$status" "it runs" "$(seen)"
[ "$(figure wrong)" = 0 ]; report $? "the pairs of every frame" "$(seen)"
holds "$(figure objects) == 403 && $(figure touching) > 50 && $(figure pairs) >= $(figure touching)"; report $? "they pile up" "$(seen)"
holds "$(figure lowest) > 600 && $(figure lowest) < 642"; report $? "on the floor" "$(seen)"
head -c 8 "$work/a.png" | od -An -tx1 | grep -q '89 50 4e 47'; report $? "a picture" "$(seen)"

run --frames 20 --png early.png
! cmp -s "$work/a.png" "$work/early.png"; report $? "the picture shows the frame" "$(seen)"

# The mouse: a box that falls past is held there; or boxes are deleted.
run --check --frames 300 --hand 400 300 --button 1
holds "$(figure held) >= 3 && $(figure held_y) > 280 && $(figure held_y) < 330 && $(figure wrong) == 0"; report $? "the left button holds a box" "$(seen)"
run --check --frames 300 --hand 400 300 --button 2
holds "$(figure objects) < 403 && $(figure objects) > 300 && $(figure held) == -1 && $(figure wrong) == 0"; report $? "the right button deletes" "$(seen)"
run --check --frames 300 --hand 400 300
holds "$(figure objects) == 403 && $(figure held) == -1"; report $? "no button, no change" "$(seen)"

(cd "$work" && env -u DISPLAY SDL_VIDEODRIVER=dummy "$program" --window --frames 300 --png w.png) >"$work/out.txt" 2>"$work/err.txt"
status=$?
if grep -q 'without SDL2' "$work/err.txt"; then
    [ $status -eq 2 ]; report $? "--window in a program without" "$(seen)"
    skip "the window of falling_boxes: no SDL2 (libsdl2-dev) when it was built"
else
    cmp -s "$work/a.png" "$work/w.png"; report $? "a window changes nothing" "$(seen)"
    (cd "$work" && env -u DISPLAY SDL_VIDEODRIVER=x11 "$program" --window --frames 2) \
        >"$work/out.txt" 2>"$work/err.txt"
    status=$?
    [ $status -eq 1 ] && grep -q '^falling_boxes: --window: .' "$work/err.txt"
    report $? "--window without a screen" "$(seen)"
fi

run --help; [ $status -eq 0 ] && grep -q -- '--hand' "$work/out.txt"; report $? "--help" "$(seen)"
run -n 2000; [ $status -eq 2 ]; report $? "too many boxes are refused" "$(seen)"
run --bogus; [ $status -eq 2 ]; report $? "an unknown option is refused" "$(seen)"
sum_up
