#!/bin/bash
# Builds a source distribution and from it a wheel, installs that into an empty environment, and
# uses it with the repository out of sight.
#
#   tests/python/wheel.sh [TORCH]     TORCH: a python that has torch, for nearfield.torch
#
# Needs pip and the packages named below from PyPI (ase, scipy, vesin and matscipy where they can
# be had). The last line is "N passed, M failed[, K skipped]".
# SPDX-License-Identifier: MIT OR Unlicense
set -u
export LC_ALL=C
cd "$(dirname "$0")/../.." || exit 1
root=$PWD work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
torch=${1:-}
passed=0 failed=0 skipped=0
unset PYTHONPATH NEARFIELD_LIBRARY NEARFIELD_MODULE CFLAGS CC

report() {      # report STATUS NAME [WHAT WAS SEEN]
    if [ "$1" -eq 0 ]; then passed=$((passed + 1)); echo "ok       wheel: $2"; return; fi
    failed=$((failed + 1)); echo "FAILED   wheel: $2: ${3:-}"
}
skip() { skipped=$((skipped + 1)); echo "skipped  wheel: $1"; }
finish() {
    echo "$passed passed, $failed failed$([ $skipped -eq 0 ] || echo ", $skipped skipped")"
    [ $failed -eq 0 ]; exit
}
last() { tail -n 3 "$work/log"; }
quietly() { timeout 1800 "$@" >"$work/log" 2>&1 </dev/null; }

# A build in a copy of what git knows: nothing else may be needed.
make_wheel() {
    quietly python3 -m venv "$work/build" && quietly "$work/build/bin/pip" install build ||
        { skip "everything: no venv, or pip cannot get build ($(last))"; finish; }
    mkdir "$work/clone"
    git ls-files -z --cached --others --exclude-standard |
        xargs -0 cp --parents -t "$work/clone" 2>/dev/null
    (cd "$work/clone" && quietly "$work/build/bin/python" -m build --outdir "$work/dist" .)
    report $? "build makes the sdist, and from it the wheel" "$(last)"
    [ $failed -eq 0 ] || finish
    tar -tzf "$work"/dist/*.tar.gz >"$work/names"
    local name
    for name in ugrid.h lbvh.h nlist.h nbody.h cuda/nlist.cu more/nlist_boxes.h LICENSE \
        packaging/python/nearfield/py.typed; do
        grep -q "^nearfield-[0-9.]*/$name$" "$work/names"; report $? "the sdist has $name"
    done
    ! grep -q '/tests/\|/examples/' "$work/names"; report $? "and neither tests nor examples"
}

# use WHAT PYTHON SCRIPT...: away from the repository
use() {
    local what=$1 python=$2; shift 2
    (cd "$work/away" && quietly "$python" "$@"); report $? "$what" "$(last)"
    grep '^FAILED' "$work/log"
}

make_wheel
mkdir "$work/away" && cp tests/python/*_checks.py tests/python/bench_python.py "$work/away/"
quietly python3 -m venv "$work/v" && quietly "$work/v/bin/pip" install "$work"/dist/*.whl
report $? "the wheel installs into an empty environment" "$(last)"
version=$(sed -n 's/^project(nearfield VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
use "it is of version $version, and not of the repository" "$work/v/bin/python" -c "
import nearfield
assert nearfield.__version__ == '$version' and '$root' not in nearfield.__file__"
use "it has no dependency but NumPy" "$work/v/bin/python" -c "
from importlib.metadata import requires
assert [r for r in requires('nearfield') if 'extra' not in r] == ['numpy>=1.21']"
for package in scipy ase vesin matscipy mypy pyright; do
    quietly "$work/v/bin/pip" install --quiet $package || skip "no $package from PyPI"
done
site=$("$work/v/bin/python" -c 'import nearfield, os; print(os.path.dirname(nearfield.__file__))')
export NEARFIELD_MODULE=$(dirname "$site")
use "the checks of the package" "$work/v/bin/python" python_checks.py
use "the calculator of ASE" "$work/v/bin/python" ase_checks.py
for module in _neighbors _objects _queries _worlds freud ase; do
    use "the examples in the docstrings of $module" "$work/v/bin/python" -c "
import doctest, importlib, sys
result = doctest.testmod(importlib.import_module('nearfield.$module'))
sys.exit(result.failed or not result.attempted)"
done
cat >"$work/away/typed.py" <<'END'
import numpy as np
import nearfield
reveal_type(nearfield.Grid(np.zeros((1, 3)), cell=0.1).count_pairs(0.1))
nearfield.Grid(cell=1.0).build(0, 0)
nearfield.Grid(sell=1.0)
END
(cd "$work/away" && quietly "$work/v/bin/mypy" --strict typed.py)
grep -q 'Revealed type is "\(builtins.\)\?int"' "$work/log" &&
    grep -q 'Too many arguments' "$work/log" && grep -q 'argument "sell"' "$work/log" &&
    ! grep -q 'py.typed\|missing library stubs' "$work/log"
report $? "mypy sees the types of the installed package" "$(last)"
mkdir "$work/only" && cp -r "$site" "$work/only/"
(cd "$work/only" && quietly "$work/v/bin/mypy" --strict --ignore-missing-imports \
    --no-warn-return-any --disable-error-code=untyped-decorator nearfield)
report $? "mypy --strict" "$(head -n 4 "$work/log")"
if [ "$torch" ]; then
    export PYTHONPATH=$work/only
    use "nearfield.torch" "$torch" torch_checks.py
    (cd "$work/only" && quietly "$work/v/bin/pyright" --pythonpath "$torch" nearfield)
    report $? "pyright" "$(grep -m 4 error "$work/log")"
else skip "nearfield.torch: no python with torch was named"; fi
finish
