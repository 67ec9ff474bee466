// how_list.js - a contact's life: rows, carry of history, events, time after time. Arrays:
// how_list.h.
// SPDX-License-Identifier: MIT OR Unlicense

const TIMES = 5;

// Where point i is at a time.
const placeAt = (p, t) => [p[0] + t * p[2], p[1] + t * p[3]];

// The point of an entry's row.
const ownerOf = (list, e) => list.start.findIndex((_, i) => e < list.start[i + 1]);
const pairsOf = flat => flat.filter((_, k) => k % 2 === 0).map((i, k) => [i, flat[2 * k + 1]]);

// Step k of a time: the search, one step for each entry of the new list, then the events.
function listPart(a, t, k) {
    const entries = a.list[t].partner.length;
    return k === 0 ? 'search' : k <= entries ? 'carry' : 'events';
}

// ---- the plane: a contact is where two discs of diameter 1 overlap

function contactLine(list, e, t, color) {
    const [p, q] = [ownerOf(list, e), list.partner[e]].map(i => placeAt(listTopic.points[i], t));
    line(px(p[0]), py(p[1]), px(q[0]), py(q[1]), color, 2 + 2 * list.steps[e]);
}

function listPlane(a, t, k) {
    const list = a.list[t], part = listPart(a, t, k), e = k - 1;
    listTopic.points.forEach(p => {
        const [x, y] = placeAt(p, t);
        disc(px(x), py(y), 0.5 * scale, '#eef1f688', '#cbd0da', 1.5);
    });
    list.partner.forEach((_, j) => contactLine(
        list, j, t, part === 'carry' && j === e ? NOW : part === 'carry' && j > e ? '#c3c7cf'
                                                                                  : DONE));
    if (part === 'events')
        for (const [i, j] of pairsOf(list.ended)) {
            const [p, q] = [i, j].map(b => placeAt(listTopic.points[b], t));
            pen.setLineDash([4, 5]);
            line(px(p[0]), py(p[1]), px(q[0]), py(q[1]), NOW, 2);
            pen.setLineDash([]);
        }
    listTopic.points.forEach((p, i) => {
        const here = placeAt(p, t), [x, y] = placeAt(p, t + 1);
        arrow(px(here[0]), py(here[1]), px(x), py(y), GREY, 2);
        dot(here, i);
    });
}

// ---- below: the old list, the new list, and what one entry takes over

function listTable(list, y, names, cell) {
    return table({
        y, names, count: list.partner.length, index: e => e,
        mark: e => cell(0, e).fill === TINT, cell
    });
}

const entryText = (list, row, e) =>
    [ownerOf(list, e), list.partner[e], list.steps[e]][row];

function listRows(a, t, k) {
    const list = a.list[t], old = t > 0 ? a.list[t - 1] : null, part = listPart(a, t, k), e = k - 1;
    const names = ['row', 'partner', 'steps'];
    let y = em * 1.2, before = null;
    if (old) {
        const kept = new Set(list.was.slice(0, part === 'search' ? 0 : k));
        font(0.85, 600);
        write(`the old list, time ${t - 1}`, 0, em * 0.6, GREY, 'left');
        before = listTable(old, y, names, (row, j) => {
            const text = entryText(old, row, j);
            return part === 'carry' && j === list.was[e] ? now(text)
                : kept.has(j) ? done(text) : part === 'events' ? { text, color: NOW } : plain(text);
        });
        y = before.bottom + em * 2.6;
    }
    font(0.85, 600);
    write(`the new list, time ${t}`, 0, y - em * 0.6, GREY, 'left');
    const after = listTable(list, y, names, (row, j) => {
        const carried = part === 'events' || (part === 'carry' && j <= e);
        const text = row === 2 && !carried ? '' : entryText(list, row, j);
        return part === 'carry' && j === e ? now(text) : carried ? done(text) : plain(text);
    });
    if (part === 'carry' && list.was[e] >= 0 && before) {
        const [x0, y0] = before.place(2, list.was[e]), [x1, y1] = after.place(0, e);
        arrow(x0, y0 + em * 0.9, x1, y1 - em * 1.65, NOW, 2.5);
    }
    return after.bottom;
}

// ---- the stages: one for each time

function listText(a, t, k) {
    const list = a.list[t], part = listPart(a, t, k), e = k - 1;
    const names = flat => pairsOf(flat).map(pair => pair.join('-')).join(', ') || 'none';
    if (part === 'search')
        return `Time ${t}: all pairs within a distance of 1, each once, in the row of its lower id.
            The list is new, beside the old one, and remembers nothing yet:
            <b>${list.partner.length}</b> entries.`;
    if (part === 'events')
        return `Began: <b>${names(list.began)}</b>. Persist: ${names(list.persisted)}. Ended:
            <b>${names(list.ended)}</b>. What is not in the new list is forgotten.`;
    const pair = `${ownerOf(list, e)}-${list.partner[e]}`;
    return list.was[e] < 0
        ? `Contact <b>${pair}</b> is not in the old row of ${ownerOf(list, e)}: it is new. Its
           history begins with zeros; at the end of the step it has lasted for 1.`
        : `Contact <b>${pair}</b> was entry <b>${list.was[e]}</b> of the old list. Its bytes are
           copied, a friction spring for example; here they count steps: <b>${list.steps[e]}</b>.`;
}

const listCode = {
    search: ['nlist_i_receive_row', 'nlist_i_lay_out'],
    carry: ['nlist_i_carry_row', 'nlist_i_match'],
    events: ['nlist_i_add_ended', 'nlist_i_add_event']
};
const listMark = {
    search: /nlist_i_test_candidate|memcpy\(rows->partner/,
    carry: /nlist_i_match\(&matcher, e\.id|memcpy\(e\.history|memset\(e\.history|return e\.entry/,
    events: /NLIST_ENDED, i, e\.id|event_count\[kind\]\+\+/
};

const listStage = t => ({
    name: `time ${t}`,
    title: t === 0 ? 'The first list: every contact begins' : 'A new list finds what it remembers',
    count: a => a.list[t].partner.length + 2,
    text: (a, k) => listText(a, t, k),
    code: (a, k) => listCode[listPart(a, t, k)],
    mark: (a, k) => listMark[listPart(a, t, k)],
    plane: (a, k) => listPlane(a, t, k),
    rows: (a, k) => listRows(a, t, k)
});

const listTopic = {
    name: 'contacts',
    hint: 'Click: a disc. Drag: move it; out of the picture: remove it. Drag the tip of an ' +
          'arrow: how it moves until the next time. Keys: left and right, up and down for times.',
    wide: 6,
    high: 4,
    most: 16,
    least: 1,
    // x, y at time 0, and what is added each time
    points: [
        [0.7, 1.0, 0.9, 0.05], [2.3, 1.8, 0, 0], [3.1, 2.2, 0, 0], [3.9, 1.7, 0, 0],
        [2.7, 3.6, 0, -0.18], [4.9, 2.9, -0.12, -0.12], [1.5, 2.2, -0.12, 0.1]
    ],
    stages: Array.from({ length: TIMES }, (_, t) => listStage(t)),
    // One list, built again and again: a.list[t] is what it was at time t.
    make() {
        return {
            list: Array.from({ length: TIMES }, (_, t) => {
                putPoints(this.points.map(p => placeAt(p, t)));
                return read(Module._how_list(this.points.length, t === 0));
            })
        };
    },
    time() { return arrays.list ? step().s : 0; },
    place(i) { return placeAt(this.points[i], this.time()); },
    move(i, x, y) {
        const p = this.points[i], t = this.time();
        [p[0], p[1]] = [x - t * p[2], y - t * p[3]];
    },
    add(x, y) {
        this.points.push([x - this.time() * 0.3, y, 0.3, 0]);
    },
    // The tips of the arrows.
    handles() {
        return this.points.map((p, i) => ({
            at: placeAt(p, this.time() + 1),
            move: (x, y) => {
                const [u, v] = this.place(i), t = this.time();
                [p[2], p[3]] = [x - u, y - v];
                [p[0], p[1]] = [u - t * p[2], v - t * p[3]];
            }
        }));
    }
};
