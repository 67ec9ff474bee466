// how_grid.js - a uniform grid: cells, count, prefix sum, scatter, strip walk. Arrays: how_grid.h.
// SPDX-License-Identifier: MIT OR Unlicense

const RADIUS = 0.9;

// ---- the arrays in the middle of a stage, from those of the header

const cells = a => a.size[0] * a.size[1];

// Points of each cell, of the first k points.
function countsAfter(a, k) {
    const count = Array(cells(a)).fill(0);
    for (let i = 0; i < k; i++) count[a.cell[i]]++;
    return count;
}

// Counts, those up to cell k added up: where each of these cells ends.
function endsAfter(a, k) {
    const sum = countsAfter(a, a.cell.length);
    for (let c = 1; c < k; c++) sum[c] += sum[c - 1];
    return sum;
}

// Ends and ids after k points were put, the last point first.
function scatterAfter(a, k) {
    const n = a.cell.length, start = endsAfter(a, cells(a)), order = Array(n).fill(-1);
    for (let i = n - 1; i >= n - k; i--) order[--start[a.cell[i]]] = i;
    return { start, order };
}

// ---- the plane

function gridPlane(a, fill = () => null) {
    const [wide, high] = a.size;
    for (let c = 0; c < wide * high; c++) {
        const x = c % wide, y = Math.floor(c / wide);
        box(x, y, x + 1, y + 1, fill(c), PALE, 1.5);
        font(0.75);
        write(c, px(x) + em * 0.7, py(y) - em * 0.65, GREY);
    }
}

function gridDots(color = () => INK) {
    gridTopic.points.forEach((p, i) => dot(p, i, color(i)));
}

const cellRow = (a, y, name, values, mark) => table({
    y,
    names: [name],
    count: cells(a),
    mark,
    cell: (_, c) => mark(c) ? now(values[c]) : plain(values[c])
}).bottom;

// ---- the stages

const gridCells = {
    name: 'cells',
    title: 'Each point lies in one cell',
    count: () => 1,
    text: a => `The box is divided into ${a.size[0]} x ${a.size[1]} equal cells. Their edge is
        1, and the radius of the search ${RADIUS}: a search visits the cells around its own. The
        number of a cell follows from its column and row.`,
    code: () => ['ugrid_i_coordinate', 'ugrid_i_number', 'ugrid_cell_at'],
    mark: () => /axis->min\) \* axis->per_cell|axis\[1\]\.cells \+ y\)/,
    plane: a => { gridPlane(a); gridDots(); },
    rows: a => table({
        y: 0, names: ['cell'], count: a.cell.length, index: i => i,
        cell: (_, i) => plain(a.cell[i])
    }).bottom
};

const gridCount = {
    name: 'count',
    title: 'Count the points of each cell',
    count: a => a.cell.length,
    text: (a, k) => `Point <b>${k}</b> lies in cell <b>${a.cell[k]}</b> and adds 1 to its counter:
        count[${a.cell[k]}] becomes <b>${countsAfter(a, k + 1)[a.cell[k]]}</b>. On a GPU every point
        has a thread, and this is an atomic addition.`,
    code: () => ['ugrid_i_count_numbers'],
    mark: () => /start\[numbers\[e\]\]\+\+/,
    plane: (a, k) => {
        const count = countsAfter(a, k + 1);
        gridPlane(a, c => c === a.cell[k] ? TINT : count[c] ? BLUE : null);
        gridDots(i => i === k ? NOW : i < k ? DONE : GREY);
    },
    rows: (a, k) => cellRow(a, 0, 'count', countsAfter(a, k + 1), c => c === a.cell[k])
};

const gridPrefix = {
    name: 'prefix sum',
    title: 'A prefix sum tells where each cell ends',
    count: a => cells(a),
    text: (a, k) => {
        const ends = endsAfter(a, k + 1);
        return `The points of cell <b>${k}</b> and of all cells before it: <b>${ends[k]}</b>. If the
            points are stored cell after cell, those of cell ${k} end before place ${ends[k]}.`;
    },
    code: () => ['ugrid_i_prefix_sum'],
    mark: () => /count\[c\] = sum \+=/,
    plane: (a, k) => {
        gridPlane(a, c => c === k ? TINT : c < k ? BLUE : null);
        gridDots(i => a.cell[i] === k ? NOW : a.cell[i] < k ? DONE : GREY);
    },
    rows: (a, k) => {
        const count = countsAfter(a, a.cell.length), sum = endsAfter(a, k + 1);
        return table({
            y: 0, names: ['count', 'end'], count: cells(a), mark: c => c === k,
            cell: (row, c) => row === 0 ? plain(count[c])
                            : c === k ? now(sum[c]) : c < k ? done(sum[c]) : null
        }).bottom;
    }
};

const gridScatter = {
    name: 'scatter',
    title: 'Each point takes its place',
    count: a => a.cell.length,
    text: (a, k) => {
        const i = a.cell.length - 1 - k;
        return `From the last point to the first: point <b>${i}</b> takes one off the end of cell
            <b>${a.cell[i]}</b> and goes to place <b>${a.inverse[i]}</b>. Ids ascend in each cell,
            and at the end every cell's number is where it starts.`;
    },
    code: () => ['ugrid_i_build_count'],
    mark: () => /--view\.start\[numbers\[e\]\]/,
    plane: (a, k) => {
        const i = a.cell.length - 1 - k;
        gridPlane(a, c => c === a.cell[i] ? TINT : null);
        gridDots(j => j === i ? NOW : j > i ? DONE : GREY);
    },
    rows: (a, k) => {
        const { start, order } = scatterAfter(a, k + 1), i = a.cell.length - 1 - k;
        const y = cellRow(a, 0, 'start', start, c => c === a.cell[i]);
        return table({
            y, names: ['order'], count: order.length, mark: p => p === a.inverse[i],
            cell: (_, p) => p === a.inverse[i] ? now(order[p]) : order[p] < 0 ? null
                                                                              : done(order[p])
        }).bottom;
    }
};

const gridWalk = {
    name: 'strip walk',
    title: 'A search visits strips of cells',
    count: a => a.strip_first.length,
    text: (a, k) => {
        const first = a.strip_first[k], last = first + a.strip_cells[k] - 1;
        const begin = a.strip_begin[k], end = a.strip_end[k];
        const places = begin === end ? 'no point lies in them'
            : begin + 1 === end ? `place <b>${begin}</b> holds its only candidate`
                                : `places <b>${begin} to ${end - 1}</b> hold its candidates`;
        return `Which points are within the circle? Cells <b>${first} to ${last}</b> are adjacent
            along x, so they are one range of places: from start[${first}] to
            start[${last + 1}]; ${places}. Candidates in the circle are hits (green).
            Drag the cross.`;
    },
    code: () => ['ugrid_i_strip', 'ugrid_i_open', 'ugrid_i_next_row'],
    mark: () => /walk->(begin|end) = grid->start|return .*x->width|\+\+walk->y\.turn/,
    plane: (a, k) => {
        const strip = c => a.strip_first.findIndex(
            (first, s) => c >= first && c < first + a.strip_cells[s]);
        const { x, y } = gridTopic.query;
        gridPlane(a, c => strip(c) === k ? TINT : strip(c) >= 0 && strip(c) < k ? BLUE : null);
        pen.setLineDash([6, 4]);
        disc(px(x), py(y), RADIUS * scale, null, HIT);
        pen.setLineDash([]);
        line(px(x) - 9, py(y), px(x) + 9, py(y), HIT, 3);
        line(px(x), py(y) - 9, px(x), py(y) + 9, HIT, 3);
        gridDots(i => walkColor(a, i, k) || GREY);
    },
    rows: (a, k) => {
        const first = a.strip_first[k], behind = first + a.strip_cells[k];
        const y = table({
            y: 0, names: ['start'], count: cells(a) + 1, mark: c => c === first || c === behind,
            cell: (_, c) => c === first || c === behind ? now(a.start[c]) : plain(a.start[c])
        }).bottom;
        return table({
            y, names: ['order'], count: a.order.length,
            mark: p => p >= a.strip_begin[k] && p < a.strip_end[k],
            cell: (_, p) => walkColor(a, a.order[p], k) === HIT ? hit(a.order[p])
                : p >= a.strip_begin[k] && p < a.strip_end[k] ? now(a.order[p])
                                                              : plain(a.order[p])
        }).bottom;
    }
};

// Of a point after strips 0 .. k: a hit, a candidate of this strip, one of those before, or none.
function walkColor(a, i, k) {
    const place = a.inverse[i];
    const strip = a.strip_begin.findIndex((b, s) => place >= b && place < a.strip_end[s]);
    if (strip < 0 || strip > k) return null;
    return a.hit.includes(i) ? HIT : strip === k ? NOW : DONE;
}

const gridTopic = {
    name: 'grid',
    hint: 'Click: a point. Drag: move it; out of the picture: remove it. Keys: left and right, ' +
          'for steps, up and down for stages.',
    wide: 6,
    high: 4,
    most: 40,
    least: 1,
    points: [
        [3.25, 2.25], [3.5, 3.5], [0.75, 1.5], [4.25, 1.75], [1.75, 3.125], [2.5, 1.5],
        [3.3, 0.6], [5.5, 3.6], [3.7, 1.75], [4.7, 2.3], [2.3, 2.7], [5.3, 0.6]
    ],
    query: { x: 3.45, y: 2.0 },
    make() {
        putPoints(this.points, [this.query.x, this.query.y, RADIUS]);
        return read(Module._how_grid(this.points.length));
    },
    stages: [gridCells, gridCount, gridPrefix, gridScatter, gridWalk]
};
