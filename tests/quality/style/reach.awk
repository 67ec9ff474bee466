# What has a reader of one function to read? All the functions that it reaches in its header, but
# not those behind a seam, where the text goes over to its faster forms.
#
#   awk -f tests/quality/style/reach.awk tests/quality/style/reach.txt
#
# Reads a list of roots, and prints it with the figures of now: "ROOT FILE SEAMS FUNCTIONS LINES".
# FILE: several, with commas. SEAMS: likewise, * for any letters; - none. They are counted, and not
# followed. Variables (-v): list=ROOT also prints the functions of that root, nearest first;
# dir=FOLDER of the headers.
# A text is looked at, nothing is compiled: a function is what begins at the left margin, above a
# line "{", with a name and parameters, and ends with a line "}". It reaches every function whose
# name stands in it outside of comments and strings. The first function of a name counts.
# SPDX-License-Identifier: MIT OR Unlicense

# A function's head begins behind the last empty line, directive, comment or statement.
function head_of(at,   k) {
    k = at - 1
    while (k > 1 && line[k] ~ /[^ \t]/ && line[k - 1] ~ /[^ \t]/ && line[k - 1] !~ /^#/ &&
           line[k - 1] !~ /(;|}|\*\/)[ \t]*$/) k--
    return k
}

# The first word in small letters that a bracket follows: the name. "" where there is none.
function name_of(head,   rest, word) {
    if (head !~ /^[A-Za-z_]/) return ""
    rest = substr(head, 2)
    if (match(rest, /^[A-Za-z0-9_]+/)) rest = substr(rest, RLENGTH + 1)
    while (match(rest, /[A-Za-z0-9_]+/)) {
        word = substr(rest, RSTART, RLENGTH)
        rest = substr(rest, RSTART + RLENGTH)
        if (word ~ /^[a-z]/ && rest ~ /^[ \t\n]*\(/) return word
    }
    return ""
}

# A text without its comments and strings.
function code_of(text,   out, end) {
    out = ""
    while (match(text, /\/\*|\/\/|"/)) {
        out = out substr(text, 1, RSTART - 1)
        text = substr(text, RSTART)
        if (text ~ /^\/\*/ && (end = index(substr(text, 3), "*/"))) end += 3
        else if (text ~ /^\/\//) end = match(text, /\n/) ? RSTART - 1 : length(text)
        else if (match(text, /^"(\\.|[^"\\])*"/)) end = RLENGTH
        else { out = out substr(text, 1, 1); text = substr(text, 2); continue }
        out = out " "
        text = substr(text, end + 1)
    }
    return out text
}

# Reads a file's functions: tall[file, name] has their lines, words[file, name] the names in them.
function read(file,   n, k, at, name, text, path, line_) {
    if (file in known) return
    known[file] = 1
    path = (dir == "" ? "." : dir) "/" file
    n = 0
    while ((getline line_ < path) > 0) line[++n] = line_
    close(path)
    name = ""
    for (at = 1; at <= n; at++) {
        if (line[at] == "{") {
            k = head_of(at)
            text = ""
            for (; k < at; k++) text = text (text == "" ? "" : "\n") line[k]
            k = head_of(at)
            name = name_of(text)
        } else if (line[at] == "}" && name != "") {
            if (!((file, name) in tall)) {
                tall[file, name] = at + 1 - k
                text = ""
                for (; k <= at; k++) text = text line[k] "\n"
                words[file, name] = words_of(code_of(text))
            }
            name = ""
        }
    }
}

# Each word in it once, with blanks between.
function words_of(text,   out, word, seen) {
    out = ""
    while (match(text, /[a-z][A-Za-z0-9_]*/)) {
        word = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        if (!(word in seen)) { seen[word] = 1; out = out " " word }
    }
    return out
}

# Where a function stands: the first of these files that has it.
function place_of(name, files, count,   k) {
    for (k = 1; k <= count; k++) if ((files[k], name) in tall) return files[k]
    return ""
}

# Counts what a root reaches: sets functions and lines; prints them where list names it.
function reach(root, paths, seams,   files, count, stop, parts, queue, depth, next_, last, k, n,
               name, file, word) {
    count = split(paths, files, ",")
    for (k = 1; k <= count; k++) read(files[k])
    n = split(seams, parts, ",")
    for (k = 1; k <= n; k++) {
        if (parts[k] !~ /\*/ && parts[k] != "-" && place_of(parts[k], files, count) == "")
            missing = missing " " parts[k]
        gsub(/\*/, ".*", parts[k])
        stop = stop (k > 1 ? "|" : "") parts[k]
    }
    stop = "^(" stop ")$"
    functions = lines = 0
    if (place_of(root, files, count) == "") { missing = missing " " root; return }
    queue[last = 1] = root
    depth[root] = 0
    for (next_ = 1; next_ <= last; next_++) {
        name = queue[next_]
        file = place_of(name, files, count)
        functions++
        lines += tall[file, name]
        if (root == list)
            printf "%2d %4d lines  %s  %s\n", depth[name], tall[file, name], file, name
        if (name ~ stop) continue
        n = split(words[file, name], parts, " ")
        for (k = 1; k <= n; k++) {
            word = parts[k]
            if (!(word in depth) && place_of(word, files, count) != "") {
                depth[word] = depth[name] + 1
                queue[++last] = word
            }
        }
    }
}

/^#/ || !NF { print; next }
{
    missing = ""
    reach($1, $2, $3)
    if (missing != "") printf "%s %s: no such function:%s\n", $1, $2, missing
    else printf "%-22s %-10s %-20s %9d %6d\n", $1, $2, $3, functions, lines
}
