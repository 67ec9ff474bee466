#!/bin/bash
# Draws what measure.sh has measured: tests/bench/figures/draw.sh DATA RESULTS
#
# DATA: a folder with figures.csv, or with the CSV files of the groups. RESULTS gets, for each
# figure, NAME.png (gnuplot; without it, or with PICTURES=no, only tables) and NAME.md with the
# numbers, and README.md, which lists them. What was not measured is left out and listed in
# README.md. A line "# remark NAME: TEXT" of the data puts TEXT on the page NAME: what is true of
# these measurements alone.
set -u
if [ $# -ne 2 ]; then sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2; fi
data=$1 results=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir -p "$results" || exit 1
rows=$work/rows index=$work/index missing=$work/missing
: >"$index"; : >"$missing"
pictures=0 status=0

# ---- the data: a line for each measurement, fields between tabs ----
# 1 machine  2 program  3 group  4 workload  5 method  6 n  7 ms  8 M/s  9 the source's ms  10 value
# 11 unit

read_data() {
    awk -F '"' -v OFS='\t' '
        /^# remark / { next }
        /^# / { machine = substr($0, 3); sub(/; [a-z]+$/, "", machine); next }
        /^program,/ || NF < 3 { next }
        { split($1, a, ","); split($3, b, ","); print machine, a[1], a[2], a[3], $2, b[2], b[3],
            b[4], b[7], b[8], b[9] }' "$@"
}

files=$data/figures.csv
[ -f "$files" ] || files=$(ls "$data"/*.csv 2>/dev/null)
# shellcheck disable=SC2086
[ ! "$files" ] || read_data $files >"$rows"
if [ ! -s "$rows" ]; then
    echo "no measurements in $data: there should be CSV files that measure.sh has written"; exit 1
fi
have_gnuplot() { [ "${PICTURES:-yes}" = yes ] && command -v gnuplot >/dev/null 2>&1; }

# select FILTER WHAT: of the rows that an awk expression over the names below holds for, what
# another says.
select_rows() {
    awk -F '\t' "{ machine = \$1; program = \$2; group = \$3; workload = \$4; method = \$5; n = \$6 + 0; ms = \$7 + 0
                   rate = \$8 + 0; peer = \$9 + 0; value = \$10 + 0; unit = \$11 }
                 ($1) { print $2 }" "$rows"
}
any() { [ "$(select_rows "$1" 1 | head -n 1)" ]; }
machine_of() { select_rows "$1" machine | sort -u | paste -sd '|' | sed 's/|/; /g'; }

# ---- one figure: begin, curve..., draw ----

# begin NAME TITLE XLABEL YLABEL AXES: AXES are n (x: numbers of particles, both logarithmic), or
# gnuplot commands.
begin() {
    name=$1 title=$2 xlabel=$3 ylabel=$4 axes=$5
    curves=0 all="" notes=""
    rm -f "$work"/curve.*
}

# curve LABEL STYLE FILTER X Y: STYLE is ours, theirs (dashed, the source) or cpu (dotted); theirs:2
# has the colour of the second curve.
curve() {
    local file=$work/curve.$((curves + 1)).dat
    select_rows "$3" "$4, $5" | sort -g -u -k 1,1 >"$file"
    if [ ! -s "$file" ]; then rm -f "$file"; return; fi
    curves=$((curves + 1))
    printf '%s\n' "$1" >"$work/curve.$curves.label"
    printf '%s\n' "$2" >"$work/curve.$curves.style"
    all="${all:+$all || }($3)"
}

# points LABEL 'X Y'...: numbers that the source's text gives.
points() {
    local label=$1; shift
    curves=$((curves + 1))
    printf '%s\n' "$label" >"$work/curve.$curves.label"
    echo points >"$work/curve.$curves.style"
    printf '%s\n' "$@" >"$work/curve.$curves.dat"
}

# source_is TEXT...: where it comes from, its axes, its GPU. note TEXT...: what else there is to
# say.
source_is() { from=$*; }
note() { notes=$notes$'\n\n'$*; }

axes_of() {
    if [ "$axes" != n ]; then echo "$axes"; return; fi
    echo 'set logscale xy
set xtics ("1k" 1e3, "10k" 1e4, "100k" 1e5, "1M" 1e6, "10M" 1e7, "100M" 1e8, "1000M" 1e9)'
}

style_of() {
    local style color
    style=$(cat "$work/curve.$1.style")
    case $style in *:*) color=${style#*:} ;; *) color=$((($1 - 1) % 10 + 1)) ;; esac
    case ${style%:*} in
    theirs) echo "with linespoints dashtype 2 linecolor $color pointtype 6 linewidth 1.5" ;;
    cpu)    echo "with linespoints dashtype 3 linecolor $color pointtype 4 linewidth 1.5" ;;
    points) echo "with points linecolor rgb 'black' pointtype 2 pointsize 1.6 linewidth 2" ;;
    *)
        echo "with linespoints linecolor $color pointtype $((5 + 2 * (($1 - 1) % 5))) linewidth 1.5" ;;
    esac
}

plot_lines() {
    local k
    for ((k = 1; k <= curves; k++)); do
        printf "%s '%s' %s title '%s'" "$([ "$k" -eq 1 ] && echo plot || echo ', \
    ')" "$work/curve.$k.dat" "$(style_of "$k")" "$(cat "$work/curve.$k.label")"
    done
    echo
}

# picture: one look for all.
picture_head() {
    cat <<GNUPLOT
set terminal pngcairo noenhanced size 900,520 font 'DejaVu Sans,10'
set output '$results/$name.png'
set title "$title\n$(machine_of "${all:-1}")"
set xlabel '$xlabel'
set format y '%g'
set ylabel '$ylabel'
set key outside right top samplen 2 spacing 1.1
set grid linetype 1 linewidth 0.5 linecolor rgb '#cccccc'
set border linecolor rgb '#666666'
set linetype 1 linecolor rgb '#0072b2'
set linetype 2 linecolor rgb '#d55e00'
set linetype 3 linecolor rgb '#009e73'
set linetype 4 linecolor rgb '#cc79a7'
set linetype 5 linecolor rgb '#e69f00'
set linetype 6 linecolor rgb '#56b4e9'
set linetype 7 linecolor rgb '#7f3b08'
set linetype 8 linecolor rgb '#555555'
set linetype 9 linecolor rgb '#332288'
set linetype 10 linecolor rgb '#999933'
$(axes_of)
GNUPLOT
}

# x down, curves across.
number_text='function text(v) {
    return v >= 1e6 ? sprintf("%d", v) : v >= 100 ? sprintf("%.0f", v) : v >= 10 ? sprintf("%.1f",
        v) \
           : v >= 1 ? sprintf("%.2f", v) : sprintf("%.3g", v) }'
table() {
    local k
    {
        printf '| %s ' "$xlabel"
        for ((k = 1; k <= curves; k++)); do printf '| %s ' "$(cat "$work/curve.$k.label")"; done
        printf '|\n|---:'
        for ((k = 1; k <= curves; k++)); do printf '|---:'; done
        printf '|\n'
        for ((k = 1; k <= curves; k++)); do sed "s/^/$k /" "$work/curve.$k.dat"; done |
            awk -v curves="$curves" "$number_text"'
                { x[$2 + 0] = $2; y[$1, $2 + 0] = $3 }
                END { for (k in x) { line = "| " k " "
                      for (c = 1; c <= curves;
                          c++) line = line "| " ((c, k) in y ? text(y[c, k]) : "–") " "
                      print k "\t" line "|" } }' | sort -g | cut -f 2
    }
}

# page [TABLE COMMAND]: the text, the picture, the numbers.
page() {
    {
        echo "# $title"
        echo
        echo "Source: $from"
        echo
        echo "Ours: $(machine_of "${all:-1}"). ${ylabel:+Shown: $ylabel.}$notes"
        # shellcheck disable=SC2086
        sed -n "s/^# remark $name: //p" $files | sed 's/^/\n/'
        if [ -f "$results/$name.png" ]; then echo; echo "![$title]($name.png)"; fi
        echo
        "$@"
        echo
        echo "Generated by tests/bench/figures/draw.sh."
    } >"$results/$name.md"
    local shown=table
    [ ! -f "$results/$name.png" ] || shown="[picture]($name.png)"
    echo "| [$name]($name.md) | $title | $shown |" >>"$index"
}

# draw: what begin and curve have collected. Figures without data are left out.
draw() {
    rm -f "$results/$name.png" "$results/$name.md"
    if [ "$curves" -eq 0 ] || [ ! "$all" ]; then echo "- $title" >>"$missing"; return; fi
    { picture_head; plot_lines; } >"$work/plot.gnuplot"
    plot
    page table
}

plot() {
    have_gnuplot || return 0
    if gnuplot "$work/plot.gnuplot" 2>"$work/errors" && [ -s "$results/$name.png" ]; then
        pictures=$((pictures + 1)); return
    fi
    echo "gnuplot could not draw $name:"; cat "$work/errors"; status=1
}

heading() { printf '\n## %s\n\n| | | |\n|---|---|---|\n' "$1" >>"$index"; }

# shellcheck source=/dev/null
. "$here/sources.sh"

# ---- the list of all ----
{
    echo '# The sources'"'"' figures, measured again'
    echo
    echo 'Generated by `make figures` (tests/bench/figures). Each page has the source, its axes and its GPU, ours, and the numbers.'
    echo 'Measured on:'
    echo
    cut -f 1 "$rows" | sort -u | sed 's/^/- /'
    cat "$index"
    if [ -s "$missing" ]; then echo; echo '## Not measured in this run'; echo; cat "$missing"; fi
} >"$results/README.md"
have_gnuplot || echo "no gnuplot, or PICTURES=no: tables only (tests/deps.sh figures installs it)"
echo "$(grep -c '^| \[' "$index") figures and tables, $pictures pictures, in $results"
exit $status
