#!/bin/sh
# Makes docs/performance.md and docs/performance-gpu.md from the templates of their names and the
# CSV files of the benchmarks, so that no figure is typed by hand.
#
#   tests/bench/performance.sh                  writes both pages
#   tests/bench/performance.sh --check PAGE [FILE]  is the page performance or performance-gpu (or
#                                               FILE) what template and CSV files give?
#   tests/bench/performance.sh --figures FILE   is every time in the table "Numbers" of FILE
#                                               (README.md) in one of the pages, too?
#   tests/bench/performance.sh --take NAME FILE.csv 'machine: ...' 'compiler: ...' 'command: ...'
#                                               files the CSV file of a benchmark (--csv) as NAME
#
# NAME is PROGRAM.MACHINE: bench_ugrid.cpu, bench_ugrid.gpu; PROGRAM.threads for many cores. The
# files are results/csv/NAME.csv.
# Their first lines are "# key: value" for machine, compiler, driver, date, command. In the template
#
#   @machine NAME    one line: what was measured on, when, by which command
#   @table NAME; group=R; workload=R; method=R; n=R; row=R; columns=NAME,NAME; peer=TEXT; bars=ms
#                    a row for each measurement. R are regular expressions (default: all), that of
#                    row is for "group: workload: method"; columns are those of the head (default:
#                    all); TEXT stands for "peer ms"; bars=ms: bar_ms is a bar on this CPU
#   @matrix NAME; group=R; workload=R; method=R; n=R; across=n|workload; show=ms|rate
#                    methods down, numbers of particles or workloads across
#   @end             the lines before it are taken where NAME has no file yet
#
# Columns without any figure are left out. On a GPU bar_ms is the bar and peer_ms the fastest other
# library. On a CPU those are of another machine; there base_ms (the plain form in the same run) and
# bar_ratio count, where the file has these columns.
# Environment: CSV (folder of the files), TEMPLATES (folder).
set -u
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd) || exit 1
csv=${CSV:-$here/results/csv}
templates=${TEMPLATES:-$here}
docs=$here/../../docs
pages='performance performance-gpu'

# render PAGE
render() {
    awk -v csv="$csv" '
        # ---- a CSV file ----

        # One line into cell[1] ..; quotes around cells with commas.
        function cut_line(line,   k, c, quoted, n) {
            n = 1; cell[1] = ""
            for (k = 1; k <= length(line); k++) {
                c = substr(line, k, 1)
                if (c == "\"") quoted = !quoted
                else if (c == "," && !quoted) cell[++n] = ""
                else cell[n] = cell[n] c
            }
            return n
        }
        function value_of(text) { return text ~ /^[0-9.]+(e[-+][0-9]+)?$/ ? text + 0 : text }
        # Rows r of the file into f[r, column name], facts into fact[key]. Returns the number of
        # rows, -1: no file.
        function load(name,   path, line, n, k, rows, got) {
            path = csv "/" name ".csv"; rows = 0
            split("", f); split("", fact); split("", column)
            while ((got = (getline line < path)) > 0) {
                if (line ~ /^# [a-z]+: /) {
                    k = index(line, ": ")
                    fact[substr(line, 3, k - 3)] = substr(line, k + 2)
                }
                if (line ~ /^#/ || line == "") continue
                n = cut_line(line)
                if (line ~ /^program,/) { for (k = 1; k <= n; k++) column[k] = cell[k]; continue }
                rows++
                for (k = 1; k <= n; k++) f[rows, column[k]] = value_of(cell[k])
            }
            close(path)
            return got < 0 ? -1 : rows
        }

        # ---- a directive: its name and options ----

        function option(key, otherwise) { return (key in opt) ? opt[key] : otherwise }
        function read_options(line,   n, k, part, at) {
            split("", opt)
            n = split(line, part, /; */)
            opt["name"] = part[1]; sub(/^@[a-z]+ */, "", opt["name"])
            for (k = 2; k <= n; k++) {
                at = index(part[k], "=")
                opt[substr(part[k], 1, at - 1)] = substr(part[k], at + 1)
            }
        }
        function fits(r, key) { return f[r, key] ~ option(key, ".") }
        function chosen(r) {
            f[r, "row"] = f[r, "group"] ": " f[r, "workload"] ": " f[r, "method"]
            return fits(r, "group") && fits(r, "workload") && fits(r, "method") && fits(r, "n") &&
                   fits(r, "row") && f[r, "ms"] > 0
        }

        # ---- figures ----

        function number(x) {
            if (x <= 0) return "–"
            if (x >= 99.95) return sprintf("%.0f", x)
            return sprintf(x >= 9.995 ? "%.1f" : x >= 0.9995 ? "%.2f" : "%.3f", x)
        }
        function ratio(x, y) { return x > 0 && y > 0 ? sprintf("%.2f", x / y) : "–" }
        function size(n) {
            if (n >= 1e6 && n % 1e5 == 0) return n / 1e6 "M"
            return n >= 1000 && n % 1000 == 0 ? n / 1000 "k" : n
        }
        function verdict(met) { return met ? "met" : "**missed**" }
        # Times of a GPU only: on the CPU bars and peers were measured on another machine, so ratios
        # count there.
        function of_gpu(x) { return opt["name"] ~ /gpu$/ ? x : 0 }
        function bar(r,   ms, most) {
            ms = f[r, "ms"]
            most = f[r, "bar_ratio"] * f[r, "base_ms"]
            if (most > 0)
                return ratio(f[r, "bar_ratio"], 1) " times " number(f[r, "base_ms"]) ": " \
                       verdict(ms <= most)
            if ((option("bars", "") == "ms" ? f[r, "bar_ms"] : of_gpu(f[r, "bar_ms"])) > 0)
                return number(f[r, "bar_ms"]) ": " verdict(ms <= f[r, "bar_ms"])
            return "–"
        }

        # ---- tables ----

        function machine(   line) {
            line = fact["machine"]
            if (fact["driver"]) line = line "; driver " fact["driver"]
            print line (fact["compiler"] || fact["date"] ? ";" : "; `" fact["command"] "`")
            if (!fact["compiler"] && !fact["date"]) return
            line = fact["compiler"]
            if (fact["date"]) line = line (line ? "; " : "") fact["date"]
            if (length(line fact["command"]) < 96) print line "; `" fact["command"] "`"
            else { print line ";"; print "`" fact["command"] "`" }
        }
        function row_cells(r) {
            out["workload"] = f[r, "workload"]
            out["method"] = f[r, "method"]
            out["n"] = size(f[r, "n"])
            out["ms"] = number(f[r, "ms"])
            out["M/s"] = number(f[r, "M_per_s"])
            out["x floor"] = ratio(f[r, "ms"], f[r, "floor_ms"])
            out["x base"] = ratio(f[r, "ms"], f[r, "base_ms"])
            out["speed-up"] = ratio(f[r, "base_ms"], f[r, "ms"])
            out["bar ms"] = bar(r)
            out["peer ms"] = number(of_gpu(f[r, "peer_ms"]))
            out["x peer"] = ratio(f[r, "ms"], of_gpu(f[r, "peer_ms"]))
            out["value"] = f[r, "unit"] == "" ? "–" : f[r, "value"] " " f[r, "unit"]
        }
        # The columns of the table into name[1] ..: those asked for that have a figure.
        function choose_columns(rows,   all, usual, n, k, r, m, used) {
            n = split("workload;method;n;ms;M/s;x floor;x base;speed-up;bar ms;peer ms;x peer;" \
                      "value", all, ";")
            for (r = 1; r <= rows; r++) if (chosen(r)) {
                row_cells(r)
                for (k = 1; k <= n; k++) if (out[all[k]] != "–") used[k] = 1
            }
            usual = "workload,method,n,ms,M/s,x floor,x base,bar ms,peer ms,x peer,value"
            for (k = 1; k <= n; k++)
                if ((k in used) && index("," option("columns", usual) ",", "," all[k] ","))
                    name[++m] = all[k]
            return m
        }
        function print_row(m,   k, line) {
            for (k = 1; k <= m; k++) line = line " " out[name[k]] " |"
            print "|" line
        }
        function table(rows,   r, k, m) {
            m = choose_columns(rows)
            if (!m) { print "no row: " $0 > "/dev/stderr"; failed = 1; return }
            for (k = 1; k <= m; k++) out[name[k]] = name[k]
            out["peer ms"] = option("peer", "peer ms")
            print_row(m)
            for (k = 1; k <= m; k++) out[name[k]] = "---"
            print_row(m)
            for (r = 1; r <= rows; r++) if (chosen(r)) { row_cells(r); print_row(m) }
        }
        function matrix(rows,   r, key, what, show, down, across, m, n, at, j, k, line) {
            show = option("show", "ms") == "ms" ? "ms" : "M_per_s"
            for (r = 1; r <= rows; r++) if (chosen(r)) {
                key = option("across", "n") == "n" ? size(f[r, "n"]) : f[r, "workload"]
                what = f[r, "method"]
                if (!(what in down)) { down[what] = ++m; method[m] = what }
                if (!(key in across)) { across[key] = ++n; head[n] = key }
                at[down[what], across[key]] = f[r, show]
            }
            if (!n) { print "no row: " $0 > "/dev/stderr"; failed = 1; return }
            line = "| " (show == "ms" ? "ms" : "million/s") " |"
            for (k = 1; k <= n; k++) line = line " " head[k] " |"
            print line; gsub(/[^|]+/, "---", line); print line
            for (j = 1; j <= m; j++) {
                line = "| " method[j] " |"
                for (k = 1; k <= n; k++) line = line " " number(at[j, k]) " |"
                print line
            }
        }

        # ---- the template ----

        /^@end$/ { skip = 0; next }
        /^@(machine|table|matrix) / {
            read_options($0)
            rows = load(opt["name"])
            skip = rows >= 0
            if (rows < 0) next
            if (/^@machine/) machine()
            else if (/^@table/) table(rows)
            else matrix(rows)
            next
        }
        /^@/ { print "unknown: " $0 > "/dev/stderr"; failed = 1; next }
        !skip
        END { exit failed }' "$templates/$1.template"
}

# figures FILE: the times of its table "Numbers" (columns 2 and 3) that the page does not have.
figures() {
    awk -F ' *[|] *' '/^## / { here = $0 == "## Numbers" }
                      here && /^[|]/ { print $3; print $4 }' "$1" |
        grep -oE '[0-9]+\.[0-9]+|[0-9]{3,}' | grep -vx '20[0-9][0-9]' | sort -u |
        while read -r figure; do
            grep -qE "[| ]$figure( |:|$)" "$docs"/performance*.md ||
                echo "$figure is not in docs/performance.md or performance-gpu.md"
        done | { ! grep .; }
}

# take NAME FILE FACT...
take() {
    name=$1 from=$2; shift 2
    mkdir -p "$csv" || return
    { for fact in "$@"; do echo "# $fact"; done
      case "$*" in *date:*) ;; *) echo "# date: $(date -u +%Y-%m-%d)" ;; esac
      cat "$from"; } >"$csv/$name.csv"
}

usage() { sed -n '2,29s/^# \{0,1\}//p' "$0"; exit 2; }

made=$(mktemp) || exit 1
trap 'rm -f "$made"' EXIT
case ${1:-} in
'')      for p in $pages; do render "$p" >"$made" && cat "$made" >"$docs/$p.md" || exit; done ;;
--check) if [ $# -lt 2 ]; then usage; fi
         render "$2" >"$made" && diff "${3:-$docs/$2.md}" "$made" ;;
--figures) figures "$2" ;;
--take)  if [ $# -lt 4 ]; then usage; fi; shift; take "$@" ;;
*)       usage ;;
esac
