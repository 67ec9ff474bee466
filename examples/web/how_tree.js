// how_tree.js - a linear BVH: codes, prefixes, tree, walk. Arrays: how_tree.h.
// SPDX-License-Identifier: MIT OR Unlicense

const CODE_BITS = 30, HALF = 0.8;   // HALF: of the query box

const bitOf = (code, b) => code >>> (CODE_BITS - 1 - b) & 1;
// Leading bits that the codes on both sides of border k have in common; those of equal codes go on
// into their places.
const common = (a, k) => a.prefix[k] - 1;
const inner = a => a.id.length - 1;

// As many leading bits as tell all codes apart, and one more.
function shownBits(a) {
    let most = 3;
    for (let k = 1; k < a.id.length; k++) most = Math.max(most, common(a, k) + 2);
    return Math.min(most, 13);
}

const bitsText = count => count === 1 ? '1 bit' : `${count} bits`;

// Inner nodes in the order in which lbvh_i_merge makes them: when their last leaf comes, the
// smallest first.
function madeOrder(a) {
    return Array.from({ length: inner(a) }, (_, v) => v)
        .sort((v, w) => a.last[v] - a.last[w] || a.first[w] - a.first[v]);
}

// By node, how many inner nodes are above it.
function depths(a) {
    const depth = Array(a.left.length).fill(0);
    (function down(v) {
        for (const child of [a.left[v], a.right[v]])
            if (child >= 0) { depth[child] = depth[v] + 1; down(child); }
    })(0);
    return depth;
}

// ---- the plane

function curve(a, color = '#bcd0ee') {
    pen.beginPath();
    a.id.forEach(i => pen.lineTo(px(treeTopic.points[i][0]), py(treeTopic.points[i][1])));
    pen.strokeStyle = color;
    pen.lineWidth = 3;
    pen.stroke();
}

// Boxes are drawn a little larger than they are: those of points on a line have no area.
function nodeBox(a, v, edge, wide = 2, fill = null) {
    const [x0, y0, x1, y1] = a.box.slice(4 * v, 4 * v + 4), more = (em * 0.75) / scale;
    box(x0 - more, y0 - more, x1 + more, y1 + more, fill, edge, wide);
}

function treeDots(color = () => INK) { treeTopic.points.forEach((p, i) => dot(p, i, color(i))); }

// ---- below: bits as columns under their leaves, and the tree

function leafColumns(a) {
    const wide = arrayCanvas.clientWidth, label = em * 4;
    const column = (wide - label - 2) / Math.max(1, a.id.length);
    return { column, x: k => label + (k + 0.5) * column, label };
}

// mark(k): the border that is looked at; upTo: borders that are done.
function drawBits(a, y, upTo, border) {
    const { column, x, label } = leafColumns(a), bits = shownBits(a), high = em * 1.08;
    font(0.8);
    write('id', label - 6, y + high / 2, GREY, 'right');
    write('code', label - 6, y + 1.9 * high, GREY, 'right');
    a.id.forEach((id, k) => {
        font(0.85, 600);
        write(id, x(k), y + high / 2, k === border || k === border - 1 ? NOW : INK);
        for (let b = 0; b < bits; b++) {
            const same = (k === border && b < common(a, k)) ||
                         (k === border - 1 && b < common(a, border));
            const top = y + (b + 1.4) * high, w = Math.min(column - 2, em * 1.9);
            pen.fillStyle = same ? TINT : '#fff';
            pen.fillRect(x(k) - w / 2, top, w, high);
            font(0.8, same ? 600 : '');
            write(bitOf(a.code[k], b), x(k), top + high / 2 + 0.5, same ? NOW : GREY);
        }
    });
    const low = y + (bits + 1.4) * high + em * 0.7;
    font(0.8);
    write('common', label - 6, low, GREY, 'right');
    for (let k = 1; k <= Math.min(upTo, a.id.length - 1); k++) {
        font(0.8, k === border ? 700 : '');
        write(common(a, k), x(k) - column / 2, low, k === border ? NOW : DONE);
    }
    return low + em;
}

// The tree over its leaves; color(v): of a node, or null where it does not exist yet.
function drawTree(a, y, color) {
    const { x } = leafColumns(a), depth = depths(a), deepest = Math.max(...depth, 1);
    const storey = Math.min(em * 2.1, Math.max(em * 1.15, em * 11 / deepest));
    const at = v => [(x(a.first[v]) + x(a.last[v])) / 2,
                     y + em + storey * (a.left[v] < 0 ? deepest : depth[v])];
    for (let v = 0; v < a.left.length; v++)
        for (const child of [a.left[v], a.right[v]])
            if (child >= 0 && color(v)) line(...at(v), ...at(child), '#aab0bc', 1.5);
    for (let v = 0; v < a.left.length; v++) {
        const tone = color(v), leaf = a.left[v] < 0;
        if (!tone) continue;
        disc(...at(v), em * 0.62, tone, '#fff', 1.5);
        font(0.66, 600);
        write(leaf ? a.id[a.first[v]] : v, at(v)[0], at(v)[1] + 0.5, '#fff');
    }
    return y + 2 * em + storey * deepest;
}

// ---- the stages

const treeCodes = {
    name: 'codes',
    title: 'A code for each point: the bits of x and y in turn',
    count: a => Math.min(4, Math.ceil(shownBits(a) / 2)) + 1,
    text: (a, k) => k === 0
        ? `The smallest square around the points is divided into halves again and again. Each
           halving gives a bit.`
        : `Bit ${2 * k - 1} of the code tells the half in x, bit ${2 * k} the half in y. After
           ${2 * k} bits a point is known to lie in one of ${4 ** k} squares.`,
    code: () => ['lbvh_i_coordinate', 'lbvh_i_spread2', 'lbvh_i_interleave'],
    mark: () => /if \(dim == 2\) return/,
    plane: (a, k) => { lattice(a, k); treeDots(); },
    rows: (a, k) => drawCodes(a, 2 * k)
};

// The square of the lattice, and its cells after k halvings of each axis.
function lattice(a, k) {
    const low = [0, 1].map(c => Math.min(...treeTopic.points.map(p => p[c])));
    const edge = Math.max(...treeTopic.points.flatMap(p => [p[0] - low[0], p[1] - low[1]]));
    for (let j = 0; j <= 2 ** k && edge > 0; j++) {
        const at = edge * j / 2 ** k, wide = j % 2 ? 1 : 2;
        pen.save();
        pen.beginPath();
        pen.rect(0, 0, planeCanvas.clientWidth, planeCanvas.clientHeight);
        pen.clip();
        line(px(low[0] + at), py(low[1]), px(low[0] + at), py(low[1] + edge), '#9db9e4', wide);
        line(px(low[0]), py(low[1] + at), px(low[0] + edge), py(low[1] + at), '#9db9e4', wide);
        pen.restore();
    }
}

// By id: the leading bits, the first `bits` of them marked.
function drawCodes(a, bits) {
    const place = a.id.map((_, i) => a.id.indexOf(i)), shown = shownBits(a);
    return table({
        y: 0,
        names: Array.from({ length: shown }, (_, b) => (b % 2 ? 'y' : 'x')),
        count: a.id.length,
        cell: (b, i) => b < bits ? done(bitOf(a.code[place[i]], b)) : null
    }).bottom;
}

const treeSort = {
    name: 'sort',
    title: 'Points in the order of their codes',
    count: () => 1,
    text: () => `Sorted by their codes, the points follow a Z-shaped curve. Neighbours on the curve
        are mostly close to each other. From here on, a point is a <b>leaf</b>, and its place on the
        curve is its number.`,
    code: () => ['lbvh_i_sort'],
    mark: () => /lbvh_i_radix\(/,
    plane: a => { curve(a, '#7ea6e0'); treeDots(); },
    rows: a => drawBits(a, 0, 0, -1)
};

const treePrefixes = {
    name: 'prefixes',
    title: 'How many leading bits do neighbours share?',
    count: a => Math.max(1, inner(a)),
    text: (a, k) => inner(a) < 1 ? 'One leaf has no neighbour, so there is nothing to compare.'
        : `The codes at places <b>${k}</b> and <b>${k + 1}</b> (points ${a.id[k]} and
           ${a.id[k + 1]}) share <b>${bitsText(common(a, k + 1))}</b> at the front. These numbers,
           one for each border, define the whole tree.`,
    code: () => ['lbvh_i_common', 'lbvh_i_make_prefixes'],
    mark: () => /if \(a != b\)|tree->prefix\[k\] = /,
    plane: (a, k) => {
        curve(a);
        if (inner(a) > 0) {
            const [p, q] = [a.id[k], a.id[k + 1]].map(i => treeTopic.points[i]);
            line(px(p[0]), py(p[1]), px(q[0]), py(q[1]), NOW, 4);
        }
        treeDots(i => i === a.id[k] || i === a.id[k + 1] ? NOW : INK);
    },
    rows: (a, k) => drawBits(a, 0, k + 1, k + 1)
};

const treeMerge = {
    name: 'tree',
    title: 'Neighbours that share most bits merge first',
    count: a => Math.max(1, inner(a)),
    text: (a, k) => {
        const v = madeOrder(a)[k];
        if (v === undefined) return 'One leaf is the whole tree: there is nothing to merge.';
        const name = c => a.left[c] < 0 ? `point ${a.id[a.first[c]]}` : `node ${c}`;
        const side = (b, where) => b > 0 && b < a.id.length
            ? `shares ${bitsText(common(a, b))} with its neighbour on the ${where}`
            : `has no neighbour on the ${where}`;
        return `<b>Node ${v}</b> joins ${name(a.left[v])} and ${name(a.right[v])}: places
            ${a.first[v]} to ${a.last[v]}. Its box holds both boxes. ` +
            (v === 0 ? 'It holds all leaves: the root.'
                     : `It ${side(a.first[v], 'left')} and ${side(a.last[v] + 1, 'right')}: it
                        merges with the one with which it shares more.`);
    },
    code: () => ['lbvh_i_merge', 'lbvh_i_is_left', 'lbvh_i_number', 'lbvh_i_left_child'],
    mark: () => /lbvh_i_(widen|unite)\(|prefix\[last \+ 1\] > prefix|while \(top > 0/,
    plane: (a, k) => {
        const made = madeOrder(a).slice(0, k + 1), v = made[k];
        curve(a);
        made.slice(0, -1).forEach(w => nodeBox(a, w, '#8fb0e6', 1.5));
        if (v !== undefined) nodeBox(a, v, NOW, 3, '#ffe3cc66');
        treeDots(i => v !== undefined && below(a, v, i) ? NOW : INK);
    },
    rows: (a, k) => {
        const made = madeOrder(a).slice(0, k + 1);
        return drawTree(a, 0, v => a.left[v] < 0 ? INK : v === made[k] ? NOW
                                                       : made.includes(v) ? DONE : null);
    }
};

const below = (a, v, i) => a.id.indexOf(i) >= a.first[v] && a.id.indexOf(i) <= a.last[v];

const treeWalk = {
    name: 'walk',
    title: 'A search goes down, or skips',
    count: a => a.visited.length,
    text: (a, k) => {
        const v = a.visited[k], leaf = a.left[v] < 0;
        const name = leaf ? `Leaf of point <b>${a.id[a.first[v]]}</b>` : `Node <b>${v}</b>`;
        const next = k + 1 < a.visited.length ? 'on to the next subtree by its skip link'
                                              : 'the walk is at its end';
        return (a.met[k] ? leaf ? `${name}: in the box, a <b>hit</b>; ${next}.`
                                : `${name}: its box touches the query, so on to its left child.`
                         : `${name}: no overlap. All below it is skipped; ${next}.`) +
               ` ${k + 1} of ${a.left.length} nodes looked at so far. No stack is needed. Drag the
               green box.`;
    },
    code: () => ['lbvh_next', 'lbvh_boxes_touch'],
    mark: () => /at = meets \? node\.link : node\.skip|int const meets =/,
    plane: (a, k) => {
        const { x, y } = treeTopic.query, v = a.visited[k];
        box(x - HALF, y - HALF, x + HALF, y + HALF, '#d5f0de66', HIT, 3);
        a.visited.slice(0, k).forEach((w, j) => {
            if (a.left[w] >= 0) nodeBox(a, w, a.met[j] ? '#8fb0e6' : '#c9ccd3', 1.5);
        });
        nodeBox(a, v, NOW, 3);
        line(px(x) - 9, py(y), px(x) + 9, py(y), HIT, 3);
        line(px(x), py(y) - 9, px(x), py(y) + 9, HIT, 3);
        treeDots(i => walkTone(a, k, a.left.length - a.id.length + a.id.indexOf(i)) || INK);
    },
    rows: (a, k) => drawTree(a, 0, v => walkTone(a, k, v) || '#c3c7cf')
};

// Of a node after steps 0 .. k: now, a hit, gone through, skipped with all below it; else null.
function walkTone(a, k, v) {
    const j = a.visited.indexOf(v);
    if (j === k) return a.met[j] && a.left[v] < 0 ? HIT : NOW;
    if (j < 0 || j > k) return null;
    return !a.met[j] ? GREY : a.left[v] < 0 ? HIT : DONE;
}

const treeTopic = {
    name: 'tree',
    hint: gridTopic.hint,
    wide: 5.4,
    high: 4,
    most: 20,
    least: 1,
    points: [
        [1.1, 0.4], [1.75, 1.0], [1.3, 2.5], [2.4, 3.5], [2.3, 2.4], [3.2, 0.5], [3.85, 1.3],
        [3.0, 2.6], [3.5, 3.3], [4.4, 2.8]
    ],
    query: { x: 3.5, y: 1.2 },
    make() {
        const { x, y } = this.query;
        putPoints(this.points, [x - HALF, y - HALF, x + HALF, y + HALF]);
        return read(Module._how_tree(this.points.length));
    },
    stages: [treeCodes, treeSort, treePrefixes, treeMerge, treeWalk]
};
