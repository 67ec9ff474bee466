// how_start.js - the mouse, the keys, and the beginning of how.html.
// SPDX-License-Identifier: MIT OR Unlicense

// ---- >>mouse: a click adds a point, a drag moves one, a drag out of the plane removes it -------

let held = null;    // what is dragged: {move(x, y), drop(outside)}

function planeAt(event) {
    const corner = planeCanvas.getBoundingClientRect();
    return [(event.clientX - corner.left - left) / scale,
            topic.high - (event.clientY - corner.top - top_) / scale];
}

const outside = (x, y) => x < -0.12 || y < -0.12 || x > topic.wide + 0.12 || y > topic.high + 0.12;
const within = (v, most) => Math.min(Math.max(v, 0.01), most - 0.01);

function changed() {
    const { s, k } = step();
    remake({ s, k });
}

// Everything that can be dragged: {x, y, move, drop}; the nearest to the mouse is taken.
function handles() {
    const all = topic.points.map((p, i) => pointHandle(i));
    if (topic.query) all.push({
        at: [topic.query.x, topic.query.y],
        move: (x, y) => Object.assign(topic.query,
                                      { x: within(x, topic.wide), y: within(y, topic.high) })
    });
    return all.concat(topic.handles ? topic.handles() : []);
}

function pointHandle(i) {
    const place = topic.place ? topic.place(i) : topic.points[i];
    return {
        at: place,
        move: (x, y) => {
            chosen = i;
            topic.move ? topic.move(i, within(x, topic.wide), within(y, topic.high))
                       : topic.points[i] = [within(x, topic.wide), within(y, topic.high)];
        },
        drop: gone => { if (gone && topic.points.length > topic.least) topic.remove(i); }
    };
}

planeCanvas.onpointerdown = event => {
    if (!ready) return;
    const [x, y] = planeAt(event), reach = event.pointerType === 'touch' ? 26 : 15;
    const far = h => Math.hypot(h.at[0] - x, h.at[1] - y) * scale;
    held = handles().reduce((best, h) => far(h) < far(best) ? h : best, { at: [1e9, 1e9] });
    if (far(held) > reach) {
        held = null;
        if (outside(x, y) || topic.points.length >= topic.most) return;
        topic.add(within(x, topic.wide), within(y, topic.high));
        chosen = topic.points.length - 1;
        held = pointHandle(chosen);
    } else {
        held.move(...held.at);
    }
    changed();
};

// (on the window: a drag may leave the plane)
window.onpointermove = event => {
    if (!held) return;
    held.move(...planeAt(event));
    changed();
};

window.onpointerup = window.onpointercancel = event => {
    if (!held) return;
    if (held.drop) held.drop(outside(...planeAt(event)));
    held = null;
    changed();
};

// ---- >>keys -------------------------------------------------------------------------------------

function stageBeside(by) {
    const { s, k } = step();
    if (by < 0 && k > 0) return goStage(s);
    goStage(Math.max(0, Math.min(topic.stages.length - 1, s + by)));
}

const keys = {
    ArrowRight: () => go(at + 1),
    ArrowLeft: () => go(at - 1),
    ArrowDown: () => stageBeside(1),
    ArrowUp: () => stageBeside(-1),
    PageDown: () => go(at + 1),     // what a lecturer's remote control sends
    PageUp: () => go(at - 1),
    Home: () => go(0),
    End: () => go(1e9),
};

document.onkeydown = event => {
    if (!ready || !keys[event.key] || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    keys[event.key]();
};

byId('back').onclick = () => go(at - 1);
byId('forward').onclick = () => go(at + 1);
byId('again').onclick = () => {
    topic.points = topic.beginning.points();
    if (topic.query) topic.query = { ...topic.beginning.query };
    chosen = topic.beginning.chosen || 0;
    changed();
};
window.onresize = () => ready && draw();

// ---- >>start ------------------------------------------------------------------------------------

topics.push(gridTopic, treeTopic, bodiesTopic, listTopic);

for (const one of topics) {
    const points = JSON.stringify(one.points), query = { ...one.query };
    one.beginning = { points: () => JSON.parse(points), query, chosen: one.chosen };
    one.add = one.add || ((x, y) => one.points.push([x, y]));
    one.remove = one.remove || (i => one.points.splice(i, 1));
}

var Module = {
    onRuntimeInitialized() {
        const [name, number] = decodeURIComponent(location.hash.slice(1)).split('/');
        ready = true;
        choose(Math.max(0, topics.findIndex(one => one.name === name)));
        go((parseInt(number, 10) || 1) - 1);
    }
};
