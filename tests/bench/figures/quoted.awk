# quoted.awk - do pages quote what was measured? Reads results/quoted.txt, which says how; by the
# variable `root` the CSV files and pages of tests/bench/results. Prints what is wrong; less than
# `least` figures are wrong, too.
#
#   awk -v root=. -f quoted.awk results/quoted.txt

# ---- what was measured ----

# A page's tables: cell["PAGE", row, column]; rows by their first cell, and by the first two. A
# slash between blanks divides, so there are no blanks around those of a table.
function read_page(page,   file, line, n, k, heads, first) {
    if (page in pages) return
    pages[page]
    file = root "/tests/bench/results/" page ".md"
    while ((getline line < file) > 0) {
        if (line !~ /^\|/) { heads = 0; continue }
        if (line ~ /^\|[-:|]*$/) continue
        n = split(line, part, "|")
        for (k = 2; k < n; k++) { gsub(/^ +| +$/, "", part[k]); gsub(/ \/ /, "/", part[k]) }
        if (!heads) { heads = n; for (k = 2; k < n; k++) head[k] = part[k]; continue }
        for (k = 2; k < n; k++) {
            cell[page, part[2], head[k]] = part[k]
            cell[page, part[2] "|" part[3], head[k]] = part[k]
        }
    }
    close(file)
}

# A CSV file: value of "group,workload,method,n" and of the same with ",rate" or ",value".
function read_csv(name,   file, line, n, a, b, key) {
    if (name in files) return
    files[name]
    file = root "/tests/bench/results/csv/" name ".csv"
    while ((getline line < file) > 0) {
        if (line ~ /^#|^program,/) continue
        split(line, part, "\"")
        split(part[1], a, ","); split(part[3], b, ",")
        key = a[2] "," a[3] "," part[2] "," b[2]
        measured[name, key] = b[3]
        measured[name, key ",rate"] = b[4]
        measured[name, key ",value"] = b[8]
        keys[name] = keys[name] key "\n"
    }
    close(file)
}

# ---- terms: PAGE[row][column] or NAME{group,workload,method,n} ----

function complain(what) { print "quoted.txt:" said_at ": " what; wrong++ }

function term(text,   at, name, inner, both, value) {
    if (text ~ /^[0-9.]+$/) return text + 0
    if (text ~ /\{/) {
        at = index(text, "{"); name = substr(text, 1, at - 1)
        inner = substr(text, at + 1, length(text) - at - 1)
        read_csv(name)
        if (!((name, inner) in measured)) { complain("not measured: " text); return 0 }
        return measured[name, inner] + 0
    }
    at = index(text, "["); name = substr(text, 1, at - 1)
    inner = substr(text, at + 1, length(text) - at - 1)
    read_page(name)
    split(inner, both, /\]\[/)
    if (!((name, both[1], both[2]) in cell)) { complain("no such cell: " text); return 0 }
    value = cell[name, both[1], both[2]]
    return value + 0
}

# Terms with + and - between blanks, then * and / from left to right: enough for what pages quote.
function product(text,   n, k, word, result) {
    n = split(text, word, / [*\/] /)
    result = term(word[1])
    for (k = 2; k <= n; k++) {
        at_sign = index(text, word[k - 1]) + length(word[k - 1])
        other = term(word[k])
        if (substr(text, at_sign + 1, 1) == "*") result *= other
        else result = other ? result / other : 0
        text = substr(text, at_sign + 3)
    }
    return result
}
function sum(text,   n, k, word, result) {
    n = split(text, word, / \+ /)
    for (k = 1; k <= n; k++) result += product(word[k])
    return result
}

# least A / B, most A / B: over all measurements whose keys match A, with * for what differs; B has
# the same there.
function extreme(which, text,   word, name, at, pattern, n, k, list, key, stars, b, parts, m, ratio,
                 best, found) {
    split(text, word, / \/ /)
    at = index(word[1], "{"); name = substr(word[1], 1, at - 1)
    read_csv(name)
    pattern = substr(word[1], at + 1, length(word[1]) - at - 1)
    split(pattern, parts, "*")
    n = split(keys[name], list, "\n")
    for (k = 1; k < n; k++) {
        if (!matches(list[k], pattern)) continue
        b = fill(substr(word[2], at + 1, length(word[2]) - at - 1))
        if (!((name, b) in measured) || measured[name, b] + 0 == 0) continue
        ratio = measured[name, list[k]] / measured[name, b]
        if (!found || (which == "least" ? ratio < best : ratio > best)) best = ratio
        found = 1
    }
    if (!found) complain("nothing matches " text)
    return best
}
# Does the key match, with * for anything? What they stand for: star[1], star[2] ...
function matches(key, pattern,   n, k, parts, rest, at) {
    n = split(pattern, parts, "*")
    if (substr(key, 1, length(parts[1])) != parts[1]) return 0
    rest = substr(key, length(parts[1]) + 1)
    for (k = 2; k <= n; k++) {
        if (k == n && parts[k] == "") { star[k - 1] = rest; return 1 }
        at = index(rest, parts[k])
        if (!at) return 0
        star[k - 1] = substr(rest, 1, at - 1)
        rest = substr(rest, at + length(parts[k]))
    }
    return rest == ""
}
function fill(pattern,   n, k, parts, text) {
    n = split(pattern, parts, "*")
    text = parts[1]
    for (k = 2; k <= n; k++) text = text star[k - 1] parts[k]
    return text
}

function worth(text) {
    if (text ~ /^(least|most) /) return extreme(substr(text, 1, index(text, " ") - 1),
                                                substr(text, index(text, " ") + 1))
    return sum(text)
}

# ---- the pages that quote ----

function text_of(page,   file, line, text) {
    if (page in texts) return texts[page]
    file = root "/" page
    while ((getline line < file) > 0) text = text " " line
    close(file)
    gsub(/[ \t]+/, " ", text)
    return texts[page] = text
}

# Half a unit of the last digit that the page shows, and a little.
function room(figure,   digits, at) {
    gsub(/,/, "", figure)
    at = index(figure, ".")
    if (at) return 0.51 * 10 ^ -(length(figure) - at)
    digits = 0
    while (digits < length(figure) - 1 && substr(figure, length(figure) - digits, 1) == "0")
        digits++
    return 0.51 * 10 ^ digits
}

/^#/ || /^$/ { next }
/^page / { page = substr($0, 6); next }
/^text / {
    said_at = FNR; said = substr($0, 6); plain = said; count = 0; used = 0
    while (match(said, /<[^>]*>/)) {
        figure[++count] = substr(said, RSTART + 1, RLENGTH - 2)
        said = substr(said, RSTART + RLENGTH)
    }
    gsub(/[<>]/, "", plain)
    if (!index(text_of(page), plain)) complain(page " does not say: " plain)
    next
}
/^is / {
    wanted = figure[++used]; gsub(/,/, "", wanted)
    got = worth(substr($0, 4))
    far = got - wanted; if (far < 0) far = -far
    if (used > count) complain("more values than figures")
    else if (far > room(figure[used])) complain(page " says " figure[used] ", measured: " got)
    checked++
    next
}
{ print "quoted.txt:" FNR ": " $0; wrong++ }
END { if (checked < least) print "only " checked " figures" }
