#!/bin/sh
# Makes docs/performance.md from performance.template and the CSV files that the benchmarks wrote: no figure is typed.
#
#   tests/bench/performance.sh                  writes docs/performance.md
#   tests/bench/performance.sh --check [FILE]   is it (or FILE) what the template and the CSV files give?
#   tests/bench/performance.sh --take NAME FILE.csv 'machine: ...' 'compiler: ...' 'driver: ...' 'command: ...'
#                                               files the CSV file of a benchmark (its option --csv) as NAME
#
# NAME is PROGRAM.MACHINE: bench_ugrid.cpu, bench_ugrid.gpu. The files are results/csv/NAME.csv; their first lines are
# "# key: value" for machine, compiler, driver, date, command. In the template
#
#   @machine NAME                               one line: what was measured on, when, by which command
#   @table NAME; group=R; workload=R; method=R  a row for each measurement; R are regular expressions (default: all)
#   @matrix NAME; group=R; method=R; workload=R; across=n|workload; show=ms|rate
#                                               methods down, numbers of particles or workloads across
#   @end                                        the lines before it are taken where NAME has no file yet
#
# Columns without any figure are left out. On a GPU bar_ms is the bar and peer_ms the fastest other library. On a CPU
# those are of another machine; there base_ms (the plain form in the same run) and bar_ratio count, where the file has
# these columns.
# Environment: CSV (folder of the files), TEMPLATE.
set -u
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd) || exit 1
csv=${CSV:-$here/results/csv}
template=${TEMPLATE:-$here/performance.template}
page=$here/../../docs/performance.md

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
        # Rows r of the file into f[r, column name], facts into fact[key]. Returns how many rows, -1: no file.
        function load(name,   path, line, n, k, rows, got) {
            path = csv "/" name ".csv"; rows = 0; split("", f); split("", fact); split("", column)
            while ((got = (getline line < path)) > 0) {
                if (line ~ /^# [a-z]+: /) { k = index(line, ": "); fact[substr(line, 3, k - 3)] = substr(line, k + 2); continue }
                if (line ~ /^#/ || line == "") continue
                n = cut_line(line)
                if (line ~ /^program,/) { for (k = 1; k <= n; k++) column[k] = cell[k]; continue }
                rows++
                for (k = 1; k <= n; k++) f[rows, column[k]] = cell[k] ~ /^[0-9.]+(e[-+][0-9]+)?$/ ? cell[k] + 0 : cell[k]
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
            for (k = 2; k <= n; k++) { at = index(part[k], "="); opt[substr(part[k], 1, at - 1)] = substr(part[k], at + 1) }
        }
        function chosen(r) {
            return f[r, "group"] ~ option("group", ".") && f[r, "workload"] ~ option("workload", ".") &&
                   f[r, "method"] ~ option("method", ".") && f[r, "ms"] > 0
        }

        # ---- figures ----

        function number(x) {
            if (x <= 0) return "–"
            return sprintf(x >= 100 ? "%.0f" : x >= 10 ? "%.1f" : x >= 1 ? "%.2f" : "%.3f", x)
        }
        function ratio(x, y) { return x > 0 && y > 0 ? sprintf("%.2f", x / y) : "–" }
        function size(n) {
            if (n >= 1e6 && n % 1e5 == 0) return n / 1e6 "M"
            return n >= 1000 && n % 1000 == 0 ? n / 1000 "k" : n
        }
        function verdict(met) { return met ? "met" : "**missed**" }
        # Times of a GPU only: on the CPU bars and peers were measured on another machine, so ratios count there.
        function of_gpu(x) { return opt["name"] ~ /gpu$/ ? x : 0 }
        function bar(r,   ms) {
            ms = f[r, "ms"]
            if (f[r, "bar_ratio"] > 0 && f[r, "base_ms"] > 0)
                return ratio(f[r, "bar_ratio"], 1) " times " number(f[r, "base_ms"]) ": " verdict(ms <= f[r, "bar_ratio"] * f[r, "base_ms"])
            if (of_gpu(f[r, "bar_ms"]) > 0) return number(f[r, "bar_ms"]) ": " verdict(ms <= f[r, "bar_ms"])
            return "–"
        }

        # ---- tables ----

        function machine(   line) {
            line = fact["machine"]
            if (fact["driver"]) line = line "; driver " fact["driver"]
            if (fact["compiler"]) line = line "; " fact["compiler"]
            if (fact["date"]) line = line "; " fact["date"]
            print line "; `" fact["command"] "`"
        }
        function row_cells(r) {
            out[1] = f[r, "workload"]; out[2] = f[r, "method"]; out[3] = size(f[r, "n"]); out[4] = number(f[r, "ms"])
            out[5] = number(f[r, "M_per_s"]); out[6] = ratio(f[r, "ms"], f[r, "floor_ms"]); out[7] = ratio(f[r, "ms"], f[r, "base_ms"])
            out[8] = bar(r); out[9] = number(of_gpu(f[r, "peer_ms"])); out[10] = ratio(f[r, "ms"], of_gpu(f[r, "peer_ms"]))
            out[11] = f[r, "unit"] == "" ? "–" : f[r, "value"] " " f[r, "unit"]
            return 11
        }
        function print_row(n, used,   k, line) {
            for (k = 1; k <= n; k++) if (k in used) line = line " " out[k] " |"
            print "|" line
        }
        function table(rows,   r, k, n, used) {
            for (r = 1; r <= rows; r++) if (chosen(r)) {
                n = row_cells(r)
                for (k = 1; k <= n; k++) if (out[k] != "–") used[k] = 1
            }
            if (!n) { print "no row: " opt["name"] > "/dev/stderr"; failed = 1; return }
            n = split("workload;method;n;ms;M/s;x floor;x base;bar ms;peer ms;x peer;value", out, ";"); print_row(n, used)
            for (k = 1; k <= n; k++) out[k] = "---"
            print_row(n, used)
            for (r = 1; r <= rows; r++) if (chosen(r)) print_row(row_cells(r), used)
        }
        function matrix(rows,   r, key, down, across, m, n, at, j, k, line) {
            for (r = 1; r <= rows; r++) if (chosen(r)) {
                key = option("across", "n") == "n" ? size(f[r, "n"]) : f[r, "workload"]
                if (!(f[r, "method"] in down)) { down[f[r, "method"]] = ++m; method[m] = f[r, "method"] }
                if (!(key in across)) { across[key] = ++n; head[n] = key }
                at[down[f[r, "method"]], across[key]] = option("show", "ms") == "ms" ? f[r, "ms"] : f[r, "M_per_s"]
            }
            if (!n) { print "no row: " opt["name"] > "/dev/stderr"; failed = 1; return }
            line = "| " (option("show", "ms") == "ms" ? "ms" : "million/s") " |"
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
            if (/^@machine/) machine(); else if (/^@table/) table(rows); else matrix(rows)
            next
        }
        /^@/ { print "unknown: " $0 > "/dev/stderr"; failed = 1; next }
        !skip
        END { exit failed }' "$template"
}

# take NAME FILE FACT...
take() {
    name=$1 from=$2; shift 2
    mkdir -p "$csv" || return
    { for fact in "$@"; do echo "# $fact"; done
      case "$*" in *date:*) ;; *) echo "# date: $(date -u +%Y-%m-%d)" ;; esac
      cat "$from"; } >"$csv/$name.csv"
}

made=$(mktemp) || exit 1
trap 'rm -f "$made"' EXIT
case ${1:-} in
'')      render >"$made" && cat "$made" >"$page" ;;
--check) render >"$made" && diff "${2:-$page}" "$made" ;;
--take)  if [ $# -lt 4 ]; then sed -n '2,25s/^# \{0,1\}//p' "$0"; exit 2; fi; shift; take "$@" ;;
*)       sed -n '2,25s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
