# Lists the places of a C or CUDA file where one thing can be changed, and, for each, what it
# becomes.
#
#   awk -f sites.awk LINES FILE       LINES: numbers of the lines that the compiler sees, one a line
#
# One row per mutant, separated by tabs: line, column, kind, before, after. Comments, strings,
# preprocessor lines and sizes of arrays are left alone. It counts on how the headers are written:
# spaces around binary operators, one statement a line.
# Kinds: compare logic arith bits const float flow minmax statement.

function row(col, kind, before, after) { print FNR "\t" col "\t" kind "\t" before "\t" after }

# The line with comments, strings and characters blanked; in_comment goes on to the next line.
function masked(text,    out, i, c, two, quote) {
    out = ""; quote = ""
    for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1); two = substr(text, i, 2)
        if (in_comment) { if (two == "*/") { in_comment = 0; out = out " "; i++ } out = out " ";
            continue }
        if (quote != "") { if (c == "\\") { out = out " "; i++ } else if (c == quote) quote = "";
            out = out " "; continue }
        if (two == "/*") { in_comment = 1; out = out "  "; i++; continue }
        if (two == "//") break
        if (c == "\"" || c == "'") { quote = c; out = out " "; continue }
        out = out c
    }
    return out
}

function depth_of(text,    i, c, d) {
    d = 0
    for (i = 1; i <= length(text); i++) { c = substr(text, i, 1); d += (c == "(") - (c == ")") }
    return d
}

# Is the number at `at` the size of an array in a declaration?
function is_size(code, at,    left, name) {
    left = substr(code, 1, at - 1)
    if (left !~ /\[$/) return 0
    sub(/\[$/, "", left)
    while (left ~ /\[[^\[\]]*\]$/) sub(/\[[^\[\]]*\]$/, "", left)
    if (left !~ /[A-Za-z_0-9]$/) return 0
    sub(/[A-Za-z_0-9]+$/, "", left)
    if (left ~ /(return|else|case) $/) return 0
    if (left ~ /[A-Za-z_0-9] +\**$/) return 1                          # type name[
    return left ~ /, *\**$/ && declares(code) && depth_of(left) == 0    # type a, name[
}

function declares(code) {
    if (code ~ /^ *(return|else|case|goto|break|continue)/) return 0
    sub(/^ *((const|static|unsigned|struct|union|enum) +)*/, "", code)
    sub(/^[A-Za-z_][A-Za-z_0-9]* +(const +)?\**(const +)?/, "declared ", code)
    return code ~ /^declared [A-Za-z_][A-Za-z_0-9]*( *=|\[|,|;)/
}

function number(col, t) {
    if (t ~ /^[0-9]+[uUlL]*$/ && t + 0 < 1000000000) {
        if (t + 0 == 0) row(col, "const", t, "1")
        else if (t + 0 == 1) { row(col, "const", t, "0"); row(col, "const", t, "2") }
        else { suffix = t; gsub(/[0-9]/, "", suffix); row(col, "const", t, (t + 1) suffix) }
    } else if (t ~ /^0[xX]/ || t ~ /^[0-9]+[uUlL]*$/) row(col, "const", t, "(" t " + 1)")
    else if (t ~ /^0\.5f?$/) { suffix = t; sub(/0\.5/, "0.25", suffix);
        row(col, "float", t, suffix) }
    else if (t + 0 != 0) row(col, "float", t, "(" t " / 2)")
}

function name(col, t) {
    if (t == "min") row(col, "minmax", t, "max")
    else if (t == "max") row(col, "minmax", t, "min")
    else if (t ~ /(^|_)min(_|$)/) { other = t; sub(/min/, "max", other);
        row(col, "minmax", t, other) }
    else if (t ~ /(^|_)max(_|$)/) { other = t; sub(/max/, "min", other);
        row(col, "minmax", t, other) }
    else if ((t == "break" || t == "continue") && substr(code, col + length(t), 1) == ";")
        row(col, "flow", t ";", ";")
    else if (t == "return" && substr(code, 1, col - 1) ~ /(\) |else )$/ &&
        match(substr(code, col), /^return[^;]*;/))
        row(col, "flow", substr($0, col, RLENGTH), ";")
}

# A statement that is a line of its own: an assignment, a call, a loop or an `if` with what it does.
function statement(code,    text, col) {
    if (last !~ /[;{})]$/ && last !~ /else$/) return
    if (code !~ /; *$/ || depth_of(code) != 0 || code ~ /[{}]/) return
    text = code; sub(/ +$/, "", text)
    match(text, /^ */); col = RLENGTH + 1
    text = substr($0, col, length(text) - RLENGTH)
    if (text ~ /^(return|else|do|while|case|default|break|continue|goto)/) return
    if (text ~ /^(typedef|struct|enum|static|const|extern)/) return
    if (declares(code) && text !~ /^[A-Za-z_0-9]+ [-+*\/|&^<>]*= /) return
    if (text ~ /^[A-Za-z_0-9]+ \**[A-Za-z_0-9]+[;,\[]/ ||
        text ~ /^[A-Za-z_0-9]+( const)? +\**(const )?[A-Za-z_0-9]+ = /) return
    if (text !~ /^(if|for) \(|^\(void\)|[^=!<>]=[^=]|^\**[A-Za-z_0-9<>:.\[\]-]+\(|\+\+|--/) return
    row(col, "statement", text, ";")
}

FILENAME == ARGV[1] { live[$1] = 1; next }
{
    directive = 0
    if (!in_comment && (goes_on || $0 ~ /^[ \t]*#/)) directive = 1
    goes_on = directive && $0 ~ /\\$/
    code = masked($0)
    if (directive || code ~ /^ *static_assert\(/) next
    if (match(code, /__launch_bounds__\([^()]*\)/))
        code = substr(code, 1, RSTART - 1) sprintf("%" RLENGTH "s", "") substr(code,
            RSTART + RLENGTH)
    if (!(FNR in live)) { if (code ~ /[^ ]/) { last = code; sub(/ +$/, "", last) } next }
    if (code ~ /^ *$/) next
    statement(code)
    last = code; sub(/ +$/, "", last)
    for (i = 1; i <= length(code); i++) {
        rest = substr(code, i)
        if (match(rest, /^[A-Za-z_][A-Za-z_0-9]*/)) { n = RLENGTH; name(i, substr(rest, 1, n));
            i += n - 1; continue }
        if (match(rest, /^[0-9][A-Za-z_0-9.]*([eE][-+][0-9]+[fF]?)?/) ||
            match(rest, /^\.[0-9][0-9]*f?/)) {
            n = RLENGTH
            if (!is_size(code, i)) number(i, substr(rest, 1, n))
            i += n - 1; continue
        }
        three = substr(rest, 1, 3); two = substr(rest, 1, 2); c = substr(rest, 1, 1)
        spaced = i > 1 && substr(code, i - 1, 1) == " "
        if (two == "->") { i++; continue }
        if (three == "<<=") { row(i, "bits", three, ">>="); i += 2; continue }
        if (three == ">>=") { row(i, "bits", three, "<<="); i += 2; continue }
        if (two in swap) { row(i, kind[two], two, swap[two]); i++; continue }
        if (c == "!") { row(i, "logic", "!", ""); continue }
        if (spaced && substr(code, i + 1, 1) == " " && c in swap &&
            substr(code, 1, i - 1) ~ /[A-Za-z_0-9)\]] +$/)
            row(i, kind[c], c, swap[c])
        else if (spaced && c in swap && i == length(code)) row(i, kind[c], c, swap[c])
    }
}

BEGIN {
    FS = "\t"
    swap["<"] = "<="; swap["<="] = "<"; swap[">"] = ">="; swap[">="] = ">"; swap["=="] = "!=";
        swap["!="] = "=="
    swap["&&"] = "||"; swap["||"] = "&&"
    swap["+"] = "-"; swap["-"] = "+"; swap["*"] = "/"; swap["/"] = "*"
    swap["+="] = "-="; swap["-="] = "+="; swap["*="] = "/="; swap["/="] = "*="; swap["++"] = "--";
        swap["--"] = "++"
    swap["&"] = "|"; swap["|"] = "&"; swap["^"] = "&"; swap["<<"] = ">>"; swap[">>"] = "<<"
    swap["|="] = "&="; swap["&="] = "|="; swap["^="] = "|="
    for (op in swap) {
        kind[op] = "arith"
        if (index(" < <= > >= == != ", " " op " ")) kind[op] = "compare"
        if (op == "&&" || op == "||") kind[op] = "logic"
        if (index(" & | ^ << >> |= &= ^= ", " " op " ")) kind[op] = "bits"
    }
}
