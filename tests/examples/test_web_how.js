// test_web_how.js - the page "how it works", for test_web.sh: are the numbers of each step those
// that brute force finds, and do buttons, keys and the mouse do what the page says?
// SPDX-License-Identifier: MIT OR Unlicense

'use strict';

// Run in the page. Each check returns '' or what is wrong; `must` collects.
const oracles = `
    let faults;
    function must(good, what) { if (!good && faults.length < 5) faults.push(what); }
    const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
    const range = n => Array.from({ length: n }, (_, k) => k);
    const far2 = (p, q) => (p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2;
    // to the picture of stage s, step k
    function to(s, k = 0) { goStage(s, k); return arrays; }

    function checkGrid() {
        const a = arrays, n = gridTopic.points.length, p = gridTopic.points, q = gridTopic.query;
        const cell = p.map(([x, y]) => Math.floor(y) * 6 + Math.floor(x));
        must(same(a.cell, cell), 'cells');
        const sorted = range(n).sort((i, j) => cell[i] - cell[j] || i - j);
        must(same(a.order, sorted), 'order');
        must(same(a.start, range(25).map(c => cell.filter(d => d < c).length)), 'start');
        must(sorted.every((i, place) => a.inverse[i] === place), 'inverse');
        // what the page makes between the header's arrays ends at them
        must(same(countsAfter(a, n), range(24).map(c => a.start[c + 1] - a.start[c])), 'counts');
        must(same(endsAfter(a, 24), a.start.slice(1)), 'ends');
        must(same(scatterAfter(a, n), { start: a.start.slice(0, 24), order: a.order }), 'scatter');
        must(same(scatterAfter(a, 0).start, a.start.slice(1)), 'before the scatter');
        const near = range(n).filter(i => far2(p[i], [q.x, q.y]) <= RADIUS ** 2);
        must(same([...a.hit].sort((i, j) => i - j), near), 'hits ' + a.hit + ' for ' + near);
        // a strip: the columns and the row that the circle's square overlaps
        const [left, right] = [q.x - RADIUS, q.x + RADIUS].map(
            x => Math.max(0, Math.min(5, Math.floor(x))));
        const [low, high] = [q.y - RADIUS, q.y + RADIUS].map(
            y => Math.max(0, Math.min(3, Math.floor(y))));
        must(same(a.strip_first, range(high - low + 1).map(r => (low + r) * 6 + left)), 'strips');
        must(a.strip_cells.every(w => w === right - left + 1), 'widths of strips');
        must(a.strip_first.every((c, s) => a.strip_begin[s] === a.start[c] &&
                                           a.strip_end[s] === a.start[c + a.strip_cells[s]]),
             'ranges of strips');
    }

    // Codes from the positions in double; a coordinate may be off by one lattice cell.
    function checkCodes(a, p) {
        const low = [0, 1].map(c => Math.min(...p.map(x => x[c])));
        const edge = Math.max(...p.flatMap(x => [x[0] - low[0], x[1] - low[1]]));
        a.id.forEach((i, k) => [0, 1].forEach(c => {
            let lattice = 0;
            for (let b = c; b < 30; b += 2) lattice = 2 * lattice + (a.code[k] >>> (29 - b) & 1);
            const expected = edge > 0 ? (p[i][c] - low[c]) / edge * 2 ** 15 : 0;
            must(Math.abs(Math.min(expected, 2 ** 15 - 1) - lattice - 0.5) <= 1.6,
                 'code of point ' + i + ': ' + lattice + ' for ' + expected);
        }));
        must(a.code.every((code, k) => k === 0 || a.code[k - 1] <= code), 'codes ascend');
        for (let k = 1; k < a.id.length; k++) {
            const bits = range(30).findIndex(b => bitOf(a.code[k - 1], b) !== bitOf(a.code[k], b));
            must(bits < 0 ? common(a, k) >= 30 : common(a, k) === bits, 'prefix ' + k);
        }
    }

    // A node's range, from the prefixes alone: it ends where fewer bits are shared than within.
    function checkTree() {
        const a = arrays, p = treeTopic.points, n = p.length, q = treeTopic.query;
        must(same([...a.id].sort((i, j) => i - j), range(n)), 'every point once');
        checkCodes(a, p);
        must(n < 2 || (a.first[0] === 0 && a.last[0] === n - 1), 'the root holds all');
        for (let v = 0; v < n - 1; v++) {
            const [f, l, m] = [a.first[v], a.last[v], a.last[a.left[v]]];
            must(a.first[a.left[v]] === f && a.first[a.right[v]] === m + 1 &&
                 a.last[a.right[v]] === l, 'children of node ' + v);
            const inside = range(l - f).map(k => a.prefix[f + 1 + k]);
            must(a.prefix[m + 1] === Math.min(...inside), 'split of node ' + v);
            must(a.prefix[f] < Math.min(...inside) && a.prefix[l + 1] < Math.min(...inside),
                 'border of node ' + v);
        }
        for (let v = 0; v < 2 * n - 1; v++) {
            const held = range(a.last[v] - a.first[v] + 1).map(k => p[a.id[a.first[v] + k]]);
            const box = [0, 1].map(c => Math.min(...held.map(x => x[c]))).concat(
                [0, 1].map(c => Math.max(...held.map(x => x[c])))).map(Math.fround);
            must(same(a.box.slice(4 * v, 4 * v + 4), box), 'box of node ' + v);
        }
        const inBox = ([x, y]) => Math.abs(x - q.x) <= HALF && Math.abs(y - q.y) <= HALF;
        const found = range(n).filter(i => inBox(p[i]));
        must(same([...a.found].sort((i, j) => i - j), found), 'found');
        const hits = a.visited.filter((v, k) => a.met[k] && a.left[v] < 0)
            .map(v => a.id[a.first[v]]);
        must(same(hits, a.found), 'leaves of the walk');
        must(new Set(a.visited).size === a.visited.length, 'no node twice');
        a.visited.forEach((v, k) => {
            const overlaps = a.box[4 * v] <= q.x + HALF && a.box[4 * v + 2] >= q.x - HALF &&
                             a.box[4 * v + 1] <= q.y + HALF && a.box[4 * v + 3] >= q.y - HALF;
            must(!!a.met[k] === overlaps, 'walk at node ' + v);
        });
        // the order in which nodes are made: children first, every node once
        const made = madeOrder(a);
        must(made.length === n - 1 && made.every((v, k) => [a.left[v], a.right[v]].every(
            c => a.left[c] < 0 || made.indexOf(c) < k)), 'order of the nodes');
    }

    function checkBodies() {
        const a = arrays, p = single(bodiesTopic.points), n = p.length;
        const inside = c => { const e = 4 / 2 ** a.level[c]; return range(n).filter(i =>
            Math.floor(p[i][0] / e) === a.x[c] && Math.floor(p[i][1] / e) === a.y[c]); };
        a.level.forEach((l, c) => {
            const ids = a.id.slice(a.first[c], a.first[c] + a.count[c]).sort((i, j) => i - j);
            must(same(ids, inside(c)), 'bodies of cell ' + c);
            if (l < FIRST) return;
            must(Math.abs(massOf(a, c) - ids.length) < 1e-4 * ids.length, 'mass of cell ' + c);
            // and the first moment: three points carry it exactly
            const moment = d => sum(pointsOf(a).map(k => massAt(a, c, k) * nodeAt(a, c, k)[d]));
            for (const d of [0, 1])
                must(Math.abs(moment(d) - sum(ids.map(i => p[i][d]))) < 1e-3, 'centre of ' + c);
        });
        must(LEVELS === Math.max(...a.level) + 1, 'levels');
        // every body acts once: far cells of all levels, and near ones
        const all = a.actor.flatMap(c => inside(c)).sort((i, j) => i - j);
        must(same(all, range(n)), 'every body acts once: ' + all);
        must(a.chain.every((c, l) => a.level[c] === l && inside(c).includes(chosen)), 'chain');
        a.actor.forEach((c, j) => {
            const l = Math.min(a.on[j], LEAVES), d = a.chain[l];
            const apart = Math.max(Math.abs(a.x[c] - a.x[d]), Math.abs(a.y[c] - a.y[d]));
            must(a.level[c] === l && (a.on[j] === LEVELS ? apart <= 1 : apart > 1 && apart <= 3),
                 'cell ' + c + ' acts at ' + a.on[j]);
        });
        checkForces(a, p, inside);
    }

    // Forces at the points of the cells around the body, beside the bodies of their far cells.
    function checkForces(a, p, inside) {
        let off = 0, all = 0;
        for (let l = FIRST; l < LEVELS; l++) {
            const c = a.chain[l];
            const far = a.actor.filter((_, j) => a.on[j] <= l).flatMap(inside).map(i => p[i]);
            const above = a.actor.filter((_, j) => a.on[j] < l).flatMap(inside).map(i => p[i]);
            pointsOf(a).forEach(k => {
                for (const [list, passed] of [[far, false], [above, true]]) {
                    const f = forceAt(a, c, k, passed), e = directSum(list, nodeAt(a, c, k));
                    off += (f[0] - e[0]) ** 2 + (f[1] - e[1]) ** 2;
                    all += e[0] ** 2 + e[1] ** 2;
                }
            });
        }
        must(off <= 0.05 ** 2 * all, 'forces at nodes: ' + Math.sqrt(off / all));
        let worst = 0;
        p.forEach((_, i) => worst = Math.max(worst, bodyError(a, i).off));
        must(worst < 0.2 && bodyError(a, chosen).off < 0.1, 'errors of bodies: ' + worst);
    }

    function checkList() {
        const p = listTopic.points, n = p.length;
        let before = new Map();
        for (let t = 0; t < TIMES; t++) {
            const list = arrays.list[t], here = p.map(x => placeAt(x, t).map(Math.fround));
            const pairs = [], seen = list.partner.map((j, e) => [ownerOf(list, e), j]);
            for (let i = 0; i < n; i++)
                for (let j = i + 1; j < n; j++) if (far2(here[i], here[j]) <= 1) pairs.push([i, j]);
            const sorted = l => l.map(x => x.join('-')).sort();
            must(same(sorted(seen), sorted(pairs)), 'pairs at time ' + t);
            const now = new Map(), name = ([i, j]) => i + '-' + j;
            seen.forEach((x, e) => {
                const old = before.get(name(x));
                must(list.steps[e] === (old ? old.steps + 1 : 1), 'steps of ' + x + ' at ' + t);
                must(list.was[e] === (old ? old.entry : -1), 'old entry of ' + x + ' at ' + t);
                now.set(name(x), { entry: e, steps: list.steps[e] });
            });
            const was = [...before.keys()], is = [...now.keys()];
            const event = kind => sorted(pairsOf(list[kind]));
            must(same(event('began'), is.filter(x => !before.has(x)).sort()), 'began at ' + t);
            must(same(event('persisted'), is.filter(x => before.has(x)).sort()), 'persist ' + t);
            must(same(event('ended'), was.filter(x => !now.has(x)).sort()), 'ended at ' + t);
            before = now;
        }
    }

    const checks = { grid: checkGrid, tree: checkTree, bodies: checkBodies, contacts: checkList };
    function check() { faults = []; checks[topic.name](); return faults.join('; '); }

    // All steps of a topic, forwards: each has words, code with a marked line, of its whole width
    // and without #if, and its own picture.
    // strict: a picture of its own; else, as with no contacts at all, the words may do.
    function walkThrough(strict) {
        faults = [];
        go(0);
        let before = '';
        for (const one of steps()) {
            const picture = planeCanvas.toDataURL() + arrayCanvas.toDataURL() +
                            (strict ? '' : byId('text').textContent);
            const where = topic.name + ', ' + one.stage.name + ' ' + one.k;
            must(byId('text').textContent.length > 30, where + ': text');
            must(!/undefined|NaN|Infinity/.test(byId('text').textContent), where + ': ' +
                 byId('text').textContent);
            must(document.querySelectorAll('#code pre').length > 0 &&
                 document.querySelectorAll('#code mark').length > 0, where + ': code');
            must([...document.querySelectorAll('#code pre')].every(
                pre => pre.scrollWidth <= pre.clientWidth && !/^ *#/m.test(pre.textContent)),
                 where + ': code that is cut, or a line of the preprocessor');
            must(picture !== before, where + ': a picture of its own');
            before = picture;
            go(at + 1);
        }
        return faults.join('; ');
    }
    // The text of the header beside the step.
    function shownCode() {
        return [...document.querySelectorAll('#code pre')].map(e => e.textContent);
    }
    0`;

const topicNames = ['grid', 'tree', 'bodies', 'contacts'];

module.exports = async tools => {
    const { open, value, report, mouse, place, click, shot, call } = tools;
    const fs = require('fs');
    const says = async (name, expression, expected) => {
        const seen = await value(expression);
        report(seen === expected, 'how: ' + name, `${expression} is ${seen}, not ${expected}`);
    };
    const press = async key => {
        for (const type of ['keyDown', 'keyUp'])
            await call('Input.dispatchKeyEvent', { type, key, code: key });
    };
    const screen = (width, height, mobile = false) => call(
        'Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile });
    // A place of the plane, in the units of the topic's points.
    const onPlane = async (x, y) => {
        const [u, v] = await value(`[px(${x}), py(${y})]`);
        const [left, top] = await place('plane', 0, 0);
        return [left + u, top + v];
    };
    const drag = async (from, to) => {
        await mouse('mousePressed', ...from, 1);
        await mouse('mouseMoved', ...to, 1);
        await mouse('mouseReleased', ...to);
    };

    await screen(1280, 900);
    await open('how.html');
    await value(oracles);
    for (let k = 0; k < topicNames.length; k++) {
        await value(`[...byId('topics').children][${k}].click(), 0`);
        await says(`${topicNames[k]} is chosen`, 'topic.name', topicNames[k]);
        await says(`${topicNames[k]}: numbers`, 'check()', '');
        await says(`${topicNames[k]}: steps`, 'walkThrough(true)', '');
        for (let s = 0; s < await value('topic.stages.length'); s++) {
            await value(`to(${s}, Math.floor(topic.stages[${s}].count(arrays) * 0.6)), 0`);
            await shot(`how_${topicNames[k]}_${s + 1}`);
        }
    }

    // forwards and back: buttons, keys, the stages' buttons, the address
    await value('choose(0)');
    await click('forward');
    await says('a step forward', 'at', 1);
    await press('ArrowRight');
    await says('a key forward', 'at', 2);
    await press('ArrowLeft');
    await click('back');
    await says('back again', 'at', 0);
    await says('the first step has none before it', `byId('back').disabled`, true);
    await press('ArrowDown');
    await says('a stage forward', 'step().stage.name', 'count');
    await press('End');
    await says('the end', 'at === steps().length - 1 && byId("forward").disabled', true);
    await value(`[...byId('stages').children][2].click(), 0`);
    await says('a stage by its button', 'step().stage.name', 'prefix sum');
    await value('new Promise(done => setTimeout(done, 500))');
    await says('the address', 'location.hash', '#grid/' + (await value('at') + 1));

    // the header's own lines
    const shown = await value('shownCode()');
    const header = fs.readFileSync('ugrid.h', 'utf8');
    report(shown.length === 1 && header.includes('\n' + shown[0] + '\n') &&
               shown[0].includes('ugrid_i_prefix_sum'),
           'how: lines of the header', shown);
    await says('the line is marked', `document.querySelector('mark').textContent.trim()`,
               'for (c = 0; c < cells; c++) count[c] = sum += count[c];');

    // the reader's points: added, moved, removed, in each topic; the numbers hold
    for (let k = 0; k < topicNames.length; k++) {
        const name = topicNames[k];
        await value(`choose(${k}), goStage(topic.stages.length - 1)`);
        const count = await value('topic.points.length');
        const spot = await onPlane(0.35, 3.6), other = await onPlane(2.75, 2.15);
        await drag(spot, spot);
        await says(name + ': a click adds a point', 'topic.points.length', count + 1);
        await says(name + ': with it', 'check()', '');
        await drag(spot, other);
        await says(name + ': a drag moves it',
                   `(([x, y]) => Math.hypot(x - 2.75, y - 2.15) < 0.05)` +
                       `(topic.place ? topic.place(${count}) : topic.points[${count}])`, true);
        await says(name + ': at its new place', 'check()', '');
        await says(name + ': the stage stays', 'step().s === topic.stages.length - 1', true);
        await drag(other, await onPlane(2, -0.18));
        await says(name + ': out of the picture', 'topic.points.length', count);
        await says(name + ': without it', 'check()', '');
        // points of their own: random ones, equal ones, one alone
        for (const n of [16, 5, 2, 1]) {
            await value(`topic.points = range(${n}).map(i => [0.4 + 3.3 * ((i * 0.618) % 1),
                0.3 + 3.4 * ((i * i * 0.367) % 1), 0.05, 0.03 * (i % 3)].slice(0,
                topic.points[0].length)), changed()`);
            await says(`${name}: ${n} points`, 'check()', '');
            await says(`${name}: steps with ${n} points`, 'walkThrough()', '');
        }
        await click('again');
        await says(name + ': the first points', 'topic.points.length', count);
    }
    await value('choose(0), goStage(4)');
    await drag(await onPlane(3.45, 2), await onPlane(1.2, 3.1));
    await says('the cross of the search moves', 'check()', '');
    await value('choose(1), goStage(4)');
    await drag(await onPlane(3.5, 1.2), await onPlane(1.5, 2.5));
    await says('the box of the search moves', 'check()', '');
    await value('choose(3), goStage(2)');
    await drag(await onPlane(...await value('placeAt(topic.points[0], 3)')), await onPlane(5, 3));
    await says('an arrow is dragged', 'Math.abs(placeAt(topic.points[0], 3)[0] - 5) < 0.05', true);
    await says('the list of its way', 'check()', '');

    // a large screen: all of a step at once; a phone: nothing is cut off
    await screen(1920, 1080);
    for (let k = 0; k < topicNames.length; k++) {
        await value(`choose(${k}), goStage(3, 2), 0`);
        await says(topicNames[k] + ': fits a screen',
                   'document.documentElement.scrollHeight <= 1080', true);
        await shot(`how_wide_${topicNames[k]}`);
    }
    await screen(360, 740, true);
    for (let k = 0; k < topicNames.length; k++) {
        await value(`choose(${k}), goStage(topic.stages.length - 1), 0`);
        await says(topicNames[k] + ': fits a phone',
                   'document.documentElement.scrollWidth <= 360', true);
        await shot(`how_phone_${topicNames[k]}`);
    }
    await call('Emulation.clearDeviceMetricsOverride');
    await says('no complaint on the page', `byId('wrong').textContent`, '');
};
