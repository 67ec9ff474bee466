// how_bodies.js - a fast multipole method: cells, up, M2L and down, at the body. Arrays:
// how_bodies.h.
// SPDX-License-Identifier: MIT OR Unlicense

const LEVELS = 5, FIRST = 2;        // far cells act from level FIRST on
const LEAVES = LEVELS - 1;

const ofLevel = (a, l) => a.level.flatMap((one, c) => one === l ? [c] : []);
const acting = (a, l) => a.actor.filter((_, j) => a.on[j] === l);
const sum = list => list.reduce((all, v) => all + v, 0);
const bodiesIn = (a, list) => sum(list.map(c => a.count[c]));

// Point (i, j) of a cell, on the plane.
function nodeAt(a, c, p) {
    const edge = bodiesTopic.high / 2 ** a.level[c], side = a.node.length;
    return [edge * (a.x[c] + a.node[p % side]), edge * (a.y[c] + a.node[Math.floor(p / side)])];
}

const pointsOf = a => Array.from({ length: a.node.length ** 2 }, (_, p) => p);
const massAt = (a, c, p) => a.mass[c * a.node.length ** 2 + p] * a.unit[1];
const massOf = (a, c) => sum(pointsOf(a).map(p => massAt(a, c, p)));

// The acceleration at a point of a cell: of all far cells so far, or what its parent passed on.
function forceAt(a, c, p, passed) {
    const k = c * a.node.length ** 2 + p;
    return passed ? [a.down[2 * k] * a.unit[2], a.down[2 * k + 1] * a.unit[2]]
                  : [a.force_x[k] * a.unit[2], a.force_y[k] * a.unit[2]];
}

// ---- the oracle of the page: every body, one by one, in double precision

function directSum(list, [x, y]) {
    const out = [0, 0];
    for (const [u, v] of list) {
        const dx = u - x, dy = v - y, d2 = dx * dx + dy * dy + 0.02 * 0.02;
        if (dx === 0 && dy === 0) continue;
        out[0] += dx / (d2 * Math.sqrt(d2));
        out[1] += dy / (d2 * Math.sqrt(d2));
    }
    return out;
}

// Points that the C side has, in single precision.
const single = list => list.map(p => p.map(Math.fround));

function bodyError(a, i) {
    const points = single(bodiesTopic.points), exact = directSum(points, points[i]);
    const off = Math.hypot(a.acc[2 * i] - exact[0], a.acc[2 * i + 1] - exact[1]);
    return { exact, off: off / (Math.hypot(...exact) || 1) };
}

// ---- the plane

function cellBox(a, c, fill, edge, wide = 1.5) {
    const size = bodiesTopic.high / 2 ** a.level[c];
    box(size * a.x[c], size * a.y[c], size * (a.x[c] + 1), size * (a.y[c] + 1), fill, edge, wide);
}

function levelGrid(a, l, fill = () => null, edge = PALE) {
    box(0, 0, 4, 4, null, '#b5b9c2', 1.5);
    ofLevel(a, l).forEach(c => cellBox(a, c, fill(c), edge));
}

// Small dots: ids would hide the cells.
function bodyDots(color = () => INK) {
    bodiesTopic.points.forEach((p, i) => {
        disc(px(p[0]), py(p[1]), i === chosen ? em * 0.45 : em * 0.27,
             i === chosen ? NOW : color(i), '#fff', 1);
    });
}

// Masses at the points of a cell: areas; a negative one is a ring.
function masses(a, c, color) {
    pointsOf(a).forEach(p => {
        const m = massAt(a, c, p), [x, y] = nodeAt(a, c, p);
        const radius = Math.min(1.2 + em * 0.32 * Math.sqrt(Math.abs(m)), em * 1.2);
        disc(px(x), py(y), radius, m >= 0 ? color : '#fff', color, 1.2);
    });
}

// Arrows at the points of a cell, the longest `most` pixels long.
function forces(a, c, passed, color, most) {
    const all = pointsOf(a).map(p => forceAt(a, c, p, passed));
    const longest = Math.max(...all.map(f => Math.hypot(...f)), 1e-9);
    pointsOf(a).forEach(p => {
        const [x, y] = nodeAt(a, c, p), [fx, fy] = all[p];
        disc(px(x), py(y), 2.5, color);
        arrow(px(x), py(y), px(x) + most * fx / longest, py(y) - most * fy / longest, color, 2);
    });
}

function arrowsFrom(a, cells, c) {
    const middle = d => { const e = 4 / 2 ** a.level[d]; return [e * (a.x[d] + 0.5),
                                                                 e * (a.y[d] + 0.5)]; };
    const [x, y] = middle(c);
    for (const d of cells) {
        const [u, v] = middle(d), short = 0.8;
        arrow(px(u), py(v), px(u + short * (x - u)), py(v + short * (y - v)), '#e8935f', 1.3);
    }
}

// ---- below: what acts at each level, and how many bodies that is

function tally(a, level, final) {
    const levels = Array.from({ length: LEVELS - FIRST }, (_, k) => k + FIRST);
    const columns = levels.concat(final ? [LEVELS] : []);
    const { bottom } = table({
        y: em * 0.4,
        names: ['cells', 'bodies'],
        count: columns.length,
        index: k => columns[k] === LEVELS ? 'near' : `level ${columns[k]}`,
        mark: k => columns[k] === level,
        cell: (row, k) => {
            if (columns[k] > level) return null;
            const list = acting(a, columns[k]), value = row ? bodiesIn(a, list) : list.length;
            return columns[k] === level ? now(value) : done(value);
        }
    });
    const seen = sum(columns.filter(l => l <= level).map(l => bodiesIn(a, acting(a, l))));
    font(0.9);
    write(`${seen} of ${a.id.length} bodies have acted on the orange one`, 0, bottom + em * 0.6,
          INK, 'left');
    return bottom + 1.6 * em;
}

// ---- the stages

const bodiesCells = {
    name: 'cells',
    title: 'The square is divided, level by level',
    count: () => LEVELS,
    text: (a, k) => `Level <b>${k}</b> has ${4 ** k} squares, and cells for the
        <b>${ofLevel(a, k).length}</b> of them that hold bodies. The bodies are sorted so that those
        of a cell are one range.`,
    code: () => ['nbody_i_divides', 'nbody_i_divide', 'nbody_i_child'],
    mark: () => /nbody_i_quarters(_of)?\(|sim->cell\[\(\*end\)\+\+\]|return cell->count > /,
    plane: (a, k) => { levelGrid(a, k, () => '#eef3fc', '#7ea6e0'); bodyDots(); },
    rows: (a, k) => {
        const list = ofLevel(a, k);
        return table({
            y: 0, names: ['first', 'count'], count: list.length, index: j => list[j],
            cell: (row, j) => plain(row ? a.count[list[j]] : a.first[list[j]])
        }).bottom;
    }
};

const bodiesUp = {
    name: 'up',
    title: 'Up: a few masses stand for the bodies of a cell',
    count: () => LEVELS - FIRST,
    text: (a, k) => k === 0
        ? `P2M: in each leaf, the bodies are replaced by masses at 3 x 3 fixed points (Chebyshev).
           Each body is shared out by polynomials; rings are negative masses. The sum stays.`
        : `M2M: the masses of the children become masses at the points of their parent, on level
           <b>${LEAVES - k}</b>. So far cells need no bodies.`,
    code: (a, k) => k === 0 ? ['nbody_i_mass_of_bodies', 'nbody_i_polynomials']
                            : ['nbody_i_mass_of_child'],
    mark: () => /\(double\)sim->acts\[b\]|rule\.to_child|sum \+= /,
    plane: (a, k) => {
        levelGrid(a, LEAVES - k, () => null, '#b9bdc7');
        bodyDots(() => '#c3c7cf');
        ofLevel(a, LEAVES - k).forEach(c => masses(a, c, DONE));
    },
    rows: (a, k) => {
        const list = ofLevel(a, LEAVES - k);
        return table({
            y: 0, names: ['bodies', 'mass'], count: list.length, index: j => list[j],
            cell: (row, j) => plain(row ? +massOf(a, list[j]).toFixed(2) : a.count[list[j]])
        }).bottom;
    }
};

// Step k of the way down: [level, true: L2L, false: M2L]. Level FIRST has no L2L.
function downStep(k) {
    return k === 0 ? [FIRST, false] : [FIRST + Math.ceil(k / 2), k % 2 === 1];
}

const bodiesDown = {
    name: 'M2L, down',
    title: 'Across and down: far cells act on points',
    count: () => 2 * (LEVELS - FIRST) - 1,
    text: (a, k) => {
        const [l, passed] = downStep(k), list = acting(a, l);
        return passed
            ? `L2L: what acts on the parent is interpolated to the 3 x 3 points of its child on
               level <b>${l}</b>, the one that holds the orange body.`
            : `M2L on level <b>${l}</b>: the masses of <b>${list.length}</b> far cells act on the
               cell of the orange body. They do not touch it, but their parents touch its parent:
               farther ones have acted on the level above. Every cell has such a list.`;
    },
    code: (a, k) => downStep(k)[1] ? ['nbody_i_l2l'] : ['nbody_next_far', 'nbody_i_add_table'],
    mark: () => /!nbody_i_touch\(|row\[b \* nbody|sum \+= nbody_i_times\(wy/,
    plane: (a, k) => {
        const [l, passed] = downStep(k), c = a.chain[l], list = acting(a, l);
        levelGrid(a, l, d => passed ? null : list.includes(d) ? TINT : null);
        acting(a, l - 1).forEach(d => cellBox(a, d, '#f3f3f1', PALE));
        bodyDots(() => '#c3c7cf');
        if (passed) cellBox(a, a.parent[c], null, '#7ea6e0', 2.5);
        cellBox(a, c, BLUE, DONE, 2.5);
        if (!passed) {
            list.forEach(d => masses(a, d, NOW));
            arrowsFrom(a, list, c);
        } else {
            forces(a, a.parent[c], false, '#8fb0e6', em * 1.6);
        }
        forces(a, c, passed, DONE, em * 2.2);
    },
    rows: (a, k) => tally(a, downStep(k)[1] ? downStep(k)[0] - 1 : downStep(k)[0])
};

const bodiesEnd = {
    name: 'at the body',
    title: 'At the body: interpolate, and add what is near',
    count: () => 3,
    text: (a, k) => {
        const near = bodiesIn(a, acting(a, LEVELS)), { off } = bodyError(a, chosen);
        return [
            `L2P: the acceleration at the orange body is interpolated from the points of its leaf.
             That is all far cells together.`,
            `P2P: <b>${near}</b> bodies are in its leaf and the cells that touch it, itself among
             them. These act one by one.`,
            `Done: every body has acted exactly once. Beside the direct sum over all bodies, made by
             this page in double precision, the error is <b>${off.toExponential(1)}</b>. Touch
             another body to look at it.`
        ][k];
    },
    code: (a, k) => [['nbody_i_l2p', 'nbody_i_l2p_by'], ['nbody_i_add_near', 'nbody_next_near'],
                     ['nbody_i_body']][k],
    mark: (a, k) => [/nbody_i_(between|interpolate)\(/, /nbody_i_add_run/,
                     /nbody_i_l2p|nbody_i_add_near/][k],
    plane: (a, k) => {
        const leaf = a.chain[LEAVES], near = acting(a, LEVELS), p = bodiesTopic.points[chosen];
        levelGrid(a, LEAVES, d => k > 0 && near.includes(d) ? TINT : null);
        cellBox(a, leaf, BLUE, DONE, 2.5);
        bodyDots(i => k === 1 && near.some(d => bodyIn(a, d, i)) ? NOW : '#9aa0ac');
        if (k === 0) forces(a, leaf, false, DONE, em * 2.2);
        if (k < 2) return;
        const f = [a.acc[2 * chosen], a.acc[2 * chosen + 1]], long = Math.hypot(...f) || 1;
        arrow(px(p[0]), py(p[1]), px(p[0]) + 6 * em * f[0] / long,
              py(p[1]) - 6 * em * f[1] / long, NOW, 4);
    },
    rows: (a, k) => {
        const bottom = tally(a, k === 0 ? LEAVES : LEVELS, true);
        const { exact } = bodyError(a, chosen), digits = v => v.toPrecision(6);
        font(0.9);
        if (k < 2) return bottom;
        write(`nbody_accelerations: ${digits(a.acc[2 * chosen])}, ` +
              digits(a.acc[2 * chosen + 1]), 0, bottom + em * 0.3, NOW, 'left');
        write(`direct sum: ${digits(exact[0])}, ${digits(exact[1])}`, 0, bottom + em * 1.8, INK,
              'left');
        return bottom + em * 2.8;
    }
};

const bodyIn = (a, c, i) => {
    const place = a.id.indexOf(i);
    return place >= a.first[c] && place < a.first[c] + a.count[c];
};

// A disc that is dense in the middle, one clump, and some bodies anywhere; the same each time.
function galaxy(n) {
    let state = 7;
    const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
    return Array.from({ length: n }, (_, i) => {
        const turn = 2 * Math.PI * random(), far = i % 4 === 3 ? 0 : 0.15 + 1.1 * random() ** 1.6;
        const [x, y] = i % 4 === 3 ? [0.2 + 3.6 * random(), 0.2 + 3.6 * random()]
            : i % 4 === 2 ? [3.1 + 0.3 * far * Math.cos(turn), 0.9 + 0.3 * far * Math.sin(turn)]
                          : [1.5 + far * Math.cos(turn), 2.4 + far * Math.sin(turn)];
        return [x, y].map(v => Math.round(1000 * v) / 1000);
    });
}

const bodiesTopic = {
    name: 'bodies',
    hint: 'Click: a body. Drag: move it; out of the picture: remove it. The body touched last is ' +
          'the orange one. Keys: left and right for steps, up and down for stages.',
    wide: 4,
    high: 4,
    most: 60,
    least: 1,
    points: galaxy(48),
    chosen: 4,
    make() {
        putPoints(this.points);
        return read(Module._how_bodies(this.points.length, chosen));
    },
    stages: [bodiesCells, bodiesUp, bodiesDown, bodiesEnd]
};
