// how_steps.js - the engine of how.html: steps forwards and back, the reader's points, and the
// parts of a drawing.
// SPDX-License-Identifier: MIT OR Unlicense
//
// A topic is
//     { name, wide, high,          the plane, in the units of the points; y upwards
//       most, least,               points
//       points,                    [[x, y], ...] at the beginning
//       query, or none             {x, y}: a handle that is no point
//       make(),                    calls the C side and returns its arrays by name
//       stages: [{ name, title,
//           count(a),              steps of the stage
//           text(a, k),            what step k does, one or two sentences of HTML
//           code(a, k),            names of functions of the headers
//           mark(a, k),            a pattern: the lines that do it
//           plane(a, k),           draws on the plane
//           rows(a, k) }] }        draws the arrays below it; returns the height in pixels

const byId = id => document.getElementById(id);
const INK = '#23262d', PALE = '#dcdad3', GREY = '#8b909b', NOW = '#d9480f', DONE = '#1b5fc1',
      HIT = '#15803d', TINT = '#ffe3cc', BLUE = '#dbe8fb', GREEN = '#d5f0de';

const topics = [];
let topic, arrays = {}, at = 0;     // at: the step, counted through all stages of the topic
let chosen = 0;                     // the point that was touched last
let ready = false, pictures = 0;

// ---- >>steps ------------------------------------------------------------------------------------

// The steps of all stages, in order: [{stage, k}].
function steps() {
    return topic.stages.flatMap(
        (stage, s) => Array.from({ length: stage.count(arrays) }, (_, k) => ({ s, stage, k })));
}

function step() { return steps()[at]; }

function go(to) {
    at = Math.max(0, Math.min(steps().length - 1, to));
    show();
}

// To the beginning of a stage, or to its step k.
function goStage(s, k = 0) {
    go(steps().findIndex(one => one.s === s) + Math.min(k, topic.stages[s].count(arrays) - 1));
}

function choose(number) {
    topic = topics[number];
    heights.clear();
    remake();
    go(0);
}

// The arrays of the points as they are now. The stage stays, and its step where there is one.
function remake(where) {
    chosen = Math.min(chosen, topic.points.length - 1);
    arrays = topic.make();
    if (where) goStage(where.s, where.k);
}

// What lies in the C side's arrays, copied; `wrong`: what it returned, NULL if all went well.
function read(wrong) {
    const out = {}, M = Module;
    byId('wrong').textContent = wrong ? M.UTF8ToString(wrong) : '';
    for (let k = 0; k < M._how_arrays(); k++) {
        const from = M._how_is_floats(k) ? M.HEAPF32 : M.HEAP32, first = M._how_data(k) / 4;
        out[M.UTF8ToString(M._how_name(k))] =
            Array.from(from.subarray(first, first + M._how_length(k)));
    }
    return out;
}

function putPoints(points, query = []) {
    new Float32Array(Module.HEAPF32.buffer, Module._how_points()).set(points.flat());
    new Float32Array(Module.HEAPF32.buffer, Module._how_query()).set(query);
}

// ---- >>show -------------------------------------------------------------------------------------

const escaped = text =>
    text.replace(/[&<>]/g, c => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[c]);

// A function's text: comments are pale, lines that match are marked.
function codeOf(name, mark) {
    const { file, line, text } = SOURCE[name];
    const body = escaped(text).replace(/\/\*[^]*?\*\//g, comment =>
        comment.split('\n').map(part => `<i>${part}</i>`).join('\n'));
    const plain = text.split('\n');
    const lines = body.split('\n').map((one, k) => mark.test(plain[k]) ? `<mark>${one}</mark>`
                                                                         : one);
    return `<p class="where">${file}, line ${line}</p>` +
           `<pre>${lines.join('\n').replace(/<\/mark>\n/g, '</mark>\n')}</pre>`;
}

function buttons(id, names, on, act) {
    const box = byId(id);
    if (box.children.length !== names.length || box.dataset.of !== names.join()) {
        box.dataset.of = names.join();
        box.replaceChildren(...names.flatMap((name, k) => {
            const button = document.createElement('button');
            button.textContent = name;
            button.onclick = () => act(k);
            return [button, ' '];
        }));
    }
    [...box.querySelectorAll('button')].forEach((b, k) => b.classList.toggle('on', k === on));
}

function show() {
    const { s, stage, k } = step(), all = steps().length;
    buttons('topics', topics.map(one => one.name), topics.indexOf(topic), choose);
    buttons('stages', topic.stages.map((one, i) => `${i + 1} ${one.name}`), s, i => goStage(i));
    byId('count').textContent = `${at + 1} of ${all}`;
    byId('back').disabled = at === 0;
    byId('forward').disabled = at === all - 1;
    byId('title').textContent = stage.title;
    byId('text').innerHTML = stage.text(arrays, k);
    const code = stage.code(arrays, k).map(name => codeOf(name, stage.mark(arrays, k))).join('');
    showCode(code);
    // with a finger: no keys
    byId('hint').textContent = matchMedia('(pointer: coarse)').matches
        ? topic.hint.replace('Click', 'Tap').replace(/ Keys:.*/, '') : topic.hint;
    clearTimeout(later);    // browsers allow no more than a few of these a second
    later = setTimeout(() => history.replaceState(null, '', `#${topic.name}/${at + 1}`), 300);
    draw();
}
let later;

// The first marked line is in sight.
function showCode(code) {
    const panel = byId('code');
    if (panel.dataset.of === code) return;
    panel.dataset.of = code;
    panel.innerHTML = code;
    const mark = panel.querySelector('mark');
    if (mark) panel.scrollTop = Math.max(0, mark.offsetTop - panel.clientHeight / 2);
}

// ---- >>draw: two canvases, in CSS pixels --------------------------------------------------------

const planeCanvas = byId('plane'), arrayCanvas = byId('arrays');
// (willReadFrequently: drawn on the CPU, so that every machine has the same pixels)
let pen = planeCanvas.getContext('2d', { willReadFrequently: true });
const planePen = pen, arrayPen = arrayCanvas.getContext('2d', { willReadFrequently: true });
let scale = 1, left = 0, top_ = 0, em = 16;     // pixels per unit; corner of the plane; font
const heights = new Map();  // of the arrays: what was needed once is kept, so nothing jumps

function size(canvas, high) {
    const ratio = window.devicePixelRatio || 1, wide = canvas.clientWidth;
    canvas.style.height = high + 'px';
    canvas.width = Math.round(wide * ratio);
    canvas.height = Math.round(high * ratio);
    canvas.getContext('2d').setTransform(ratio, 0, 0, ratio, 0, 0);
}

function draw() {
    const { stage, k } = step(), wide = planeCanvas.clientWidth;
    em = parseFloat(getComputedStyle(document.body).fontSize) * (wide < 480 ? 0.85 : 1);
    const high = Math.min(wide * topic.high / topic.wide, Math.max(240, innerHeight * 0.46));
    size(planeCanvas, high);
    scale = Math.min((wide - 24) / topic.wide, (high - 24) / topic.high);
    left = (wide - scale * topic.wide) / 2;
    top_ = (high - scale * topic.high) / 2;
    pen = planePen;
    stage.plane(arrays, k);
    pen = arrayPen;
    const needed = Math.ceil(stage.rows(arrays, k));    // drawn once to see how high it is
    heights.set(wide, Math.max(needed, heights.get(wide) || 0));
    size(arrayCanvas, heights.get(wide));
    stage.rows(arrays, k);
    pictures++;
}

const px = x => left + scale * x, py = y => top_ + scale * (topic.high - y);

function font(part = 1, weight = '') {
    pen.font = `${weight} ${(em * part).toFixed(1)}px system-ui, sans-serif`;
}

function write(text, x, y, color = INK, align = 'center') {
    pen.fillStyle = color;
    pen.textAlign = align;
    pen.textBaseline = 'middle';
    pen.fillText(text, x, y);
}

function line(x0, y0, x1, y1, color = INK, wide = 1.5) {
    pen.beginPath();
    pen.moveTo(x0, y0);
    pen.lineTo(x1, y1);
    pen.strokeStyle = color;
    pen.lineWidth = wide;
    pen.stroke();
}

function arrow(x0, y0, x1, y1, color = INK, wide = 2) {
    const long = Math.hypot(x1 - x0, y1 - y0), head = Math.min(long / 2, 3 + 2 * wide);
    if (long < 0.5) return;
    const c = (x1 - x0) / long, s = (y1 - y0) / long;
    line(x0, y0, x1 - head * c * 0.8, y1 - head * s * 0.8, color, wide);
    pen.beginPath();
    pen.moveTo(x1, y1);
    pen.lineTo(x1 - head * c - head * s / 2, y1 - head * s + head * c / 2);
    pen.lineTo(x1 - head * c + head * s / 2, y1 - head * s - head * c / 2);
    pen.fillStyle = color;
    pen.fill();
}

// A rectangle of the plane, from corner to corner.
function box(x0, y0, x1, y1, fill, edge, wide = 2) {
    const x = px(x0), y = py(y1), w = scale * (x1 - x0), h = scale * (y1 - y0);
    if (fill) { pen.fillStyle = fill; pen.fillRect(x, y, w, h); }
    if (edge) { pen.strokeStyle = edge; pen.lineWidth = wide; pen.strokeRect(x, y, w, h); }
}

function disc(x, y, radius, fill, edge, wide = 2) {
    pen.beginPath();
    pen.arc(x, y, radius, 0, 7);
    if (fill) { pen.fillStyle = fill; pen.fill(); }
    if (edge) { pen.strokeStyle = edge; pen.lineWidth = wide; pen.stroke(); }
}

// A point of the reader's with its id.
function dot([x, y], label, color = INK) {
    const size = Math.max(8, em * 0.66);
    disc(px(x), py(y), size, color, '#fff', 1.5);
    font(0.72, 600);
    write(label, px(x), py(y) + 0.5, '#fff');
}

// ---- >>rows: arrays as boxes in a row, as many rows of them as the width needs -----------------

// table({y, names, count, index, cell(row, k)}): names of the rows; cell returns {text, fill,
// color} or nothing. Returns {bottom, place(row, k)}: the middle of a box.
function table({ y, names, count, index = k => k, cell, mark = () => false }) {
    const wide = arrayCanvas.clientWidth, high = em * 1.5;
    font(0.85);
    const label = Math.max(...names.concat('x').map(n => pen.measureText(n).width)) + em * 0.7;
    const column = Math.max(em * 1.55, Math.min(em * 2.6, (wide - label) / Math.max(count, 1)));
    const each = Math.max(1, Math.floor((wide - label + 0.5) / column));
    const blocks = Math.max(1, Math.ceil(count / each));
    const blockHigh = high * names.length + em * 1.75;
    const corner = (row, k) => [label + k % each * column,
                                y + Math.floor(k / each) * blockHigh + em * 1.1 + row * high];
    for (let b = 0; b < blocks; b++)
        names.forEach((name, row) => {
            font(0.85);
            write(name, label - em * 0.45, corner(row, b * each)[1] + high / 2, GREY, 'right');
        });
    for (let k = 0; k < count; k++) {
        const [x, above] = corner(0, k);
        font(0.68);
        write(index(k), x + column / 2, above - em * 0.42, mark(k) ? NOW : GREY);
        names.forEach((_, row) => {
            const [, top] = corner(row, k), { text = '', fill, color } = cell(row, k) || {};
            pen.fillStyle = fill || '#fff';
            pen.fillRect(x, top, column, high);
            pen.strokeStyle = PALE;
            pen.lineWidth = 1;
            pen.strokeRect(x + 0.5, top + 0.5, column - 1, high - 1);
            font(0.85, fill ? 600 : '');
            write(text, x + column / 2, top + high / 2 + 0.5, color || INK);
        });
    }
    return {
        bottom: y + blocks * blockHigh,
        place: (row, k) => {
            const [x, top] = corner(row, k);
            return [x + column / 2, top + high / 2];
        }
    };
}

const now = text => ({ text, fill: TINT, color: NOW });
const done = text => ({ text, fill: BLUE });
const hit = text => ({ text, fill: GREEN, color: HIT });
const plain = text => ({ text });
