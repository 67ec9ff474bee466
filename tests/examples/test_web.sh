#!/bin/bash
# Tests build/web/nearfield.html as its user sees it, in headless Chromium: does each scene draw and
# move, do buttons, sliders and the mouse work, and is the console silent? Then build/web/how.html
# (test_web_how.js). Skipped where emcc or chromium is missing (make deps installs both).
#
#   ONLY=how tests/examples/test_web.sh      the page "how it works" only; ONLY=scenes: the other
#   tests/examples/test_web.sh [FOLDER]      FOLDER: keep the screenshots there
#   SLOW=8 tests/examples/test_web.sh        the page on a processor that is 8 times as slow: must
#                                            pass, too
#
# Chromium is led through a pipe (its DevTools protocol), by the script below. Says "FAILED" for
# each check that fails, the times of a step with 10 thousand particles, and "N passed, M failed".
# No check is about time: what moves is given pictures, not seconds, so that a slow or busy machine
# takes longer, and no more.
set -u
export LC_ALL=C
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
shots=${1:-$work}

skip() {
    echo "skipped  the examples in a browser: $1"; echo "0 passed, 0 failed, 1 skipped"; exit 0
}
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
    skip "no chromium"
command -v "${EMCC:-emcc}" >/dev/null || skip "no emcc (emscripten)"
command -v node >/dev/null || skip "no node (nodejs)"
if ! ${MAKE:-make} -s web >"$work/log" 2>&1 </dev/null; then
    grep -q 'Cannot find module' "$work/log" &&
        skip "emcc lacks a module of node ($(grep -m 1 'Cannot find module' "$work/log"))"
    cat "$work/log"; echo "FAILED   web: make web"; echo "0 passed, 1 failed"; exit 1
fi

cat >"$work/drive.js" <<'SOURCE'
'use strict';
const { spawn } = require('child_process'), fs = require('fs');
const [, , chromium, web, profile, shots, only] = process.argv;

// ---- the pipe: JSON and a zero byte, both ways
const browser = spawn(chromium,
                      [
                          '--headless', '--no-sandbox', '--disable-gpu', '--no-first-run',
                          '--disable-dev-shm-usage', '--user-data-dir=' + profile,
                          '--remote-debugging-pipe', '--window-size=1320,980', 'about:blank'
                      ],
                      { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
const waiting = new Map(), complaints = [];
let session, count = 0, rest = Buffer.alloc(0);

function call(method, params = {}) {
    return new Promise((resolve, reject) => {
        waiting.set(++count, { resolve, reject, method });
        browser.stdio[3].write(JSON.stringify({ id: count, method, params, sessionId: session }) +
                               '\0');
    });
}

function heard(message) {
    const { method, params } = message;
    if (message.id) {
        const { resolve, reject, method } = waiting.get(message.id);
        return message.error ? reject(Error(method + ': ' + message.error.message))
                             : resolve(message.result);
    }
    if (method === 'Runtime.exceptionThrown')
        complaints.push(params.exceptionDetails.exception?.description ||
                        params.exceptionDetails.text);
    if (method === 'Runtime.consoleAPICalled' && /error|warning|assert/.test(params.type))
        complaints.push(JSON.stringify(params.args));
    if (method === 'Log.entryAdded' && /error|warning/.test(params.entry.level))
        complaints.push(params.entry.text);
}

browser.stdio[4].on('data', data => {
    rest = Buffer.concat([rest, data]);
    for (let end; (end = rest.indexOf(0)) >= 0; rest = rest.subarray(end + 1))
        heard(JSON.parse(rest.subarray(0, end)));
});
const LIMIT = 1800;     // seconds, for what hangs
setTimeout(() => {
    report(false, 'in time', `no end after ${LIMIT} seconds`);
    finish();
}, 1000 * LIMIT).unref();
browser.on('exit', (code, signal) => {
    report(false, 'chromium goes on', `it ended: ${signal || code}`);
    finish();
});

// ---- checks
let passed = 0, failed = 0;
function report(good, name, seen = '') {
    if (good) passed++;
    else { failed++; console.log(`FAILED   web: ${name}: ${seen}`); }
}
function finish() {
    console.log(`${passed} passed, ${failed} failed`);
    browser.removeAllListeners('exit');
    browser.kill('SIGKILL');
    process.exit(failed ? 1 : 0);
}
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));

async function value(expression) {
    const answer =
        await call('Runtime.evaluate', { expression, returnByValue: true, awaitPromise: true });
    if (answer.exceptionDetails)
        throw Error(expression + ': ' + answer.exceptionDetails.exception?.description);
    return answer.result.value;
}

// Tries until it holds: for 600 pictures of the page, which is ten seconds of a fast machine.
async function holds(name, expression) {
    const end = await value('pictures') + 600;
    let seen;
    while ((seen = await value(expression)) !== true && await value('pictures') < end)
        await sleep(50);
    report(seen === true, name, expression + ' is ' + seen);
}

// Waits until the page has drawn so many more.
async function pictures(count) {
    const end = await value('pictures') + count;
    while (await value('pictures') < end) await sleep(20);
}

async function mouse(type, x, y, buttons = 0) {
    await call(
        'Input.dispatchMouseEvent',
        { type, x, y, buttons, button: type === 'mouseMoved' ? 'none' : 'left', clickCount: 1 });
}
// A place on an element, in parts of its width and height.
async function place(id, x = 0.5, y = 0.5) {
    const box = await value('(({ left, top, width, height }) => [left, top, width, height])' +
                            `(byId('${id}').getBoundingClientRect())`);
    return [box[0] + x * box[2], box[1] + y * box[3]];
}
async function click(id) {
    const [x, y] = await place(id);
    await mouse('mousePressed', x, y, 1);
    await mouse('mouseReleased', x, y);
}
async function key(id, name) {
    const code = { Home: 36, End: 35, ArrowRight: 39 }[name];
    await value(`byId('${id}').focus()`);
    for (const type of ['keyDown', 'keyUp'])
        await call('Input.dispatchKeyEvent',
                   { type, key: name, code: name, windowsVirtualKeyCode: code });
}
async function shot(name) {
    const { data } = await call('Page.captureScreenshot', { format: 'png' });
    fs.writeFileSync(`${shots}/${name}.png`, Buffer.from(data, 'base64'));
}

// Run in the page: what share of the canvas is not of its commonest color (around (x, y), in canvas
// pixels, as far as `reach`)?
const helpers = `
    function lit(x = 640, y = 360, reach = 2000) {
        const data = new Uint32Array(context.getImageData(0, 0, WIDE, HIGH).data.buffer);
        const often = new Map();
        for (const p of data) often.set(p, (often.get(p) || 0) + 1);
        const ground = [...often].reduce((a, b) => b[1] > a[1] ? b : a)[0];
        let all = 0, some = 0;
        data.forEach((p, i) => {
            if (Math.hypot(i % WIDE - x, Math.floor(i / WIDE) - y) < reach) {
                all++;
                some += p !== ground;
            }
        });
        return some / all;
    }
    let seen;
    function look() {
        seen = new Uint32Array(context.getImageData(0, 0, WIDE, HIGH).data.buffer);
        return pictures;
    }
    function points() {
        const p = new Float32Array(Module.HEAPF32.buffer, Module._web_points(), 4 * n);
        return Array.from({ length: n }, (_, k) => p.slice(4 * k, 4 * k + 4));
    }
    // do the birds within a sixteenth of the canvas's width around the mouse fly away from it? 1:
    // all do, or hardly any are left
    function flight() {
        const near = points().filter(([x, y]) => Math.hypot(x - mouse.x, y - mouse.y) < 1.6);
        const away = ([x, y, vx, vy]) => (vx * (x - mouse.x) + vy * (y - mouse.y)) /
            Math.hypot(vx, vy) / Math.hypot(x - mouse.x, y - mouse.y);
        return near.length < 5 ? 1 : near.reduce((sum, p) => sum + away(p), 0) / near.length;
    }
    // how far bodies are from (12, 6.75), in the middle
    function distance() {
        const all = points().map(([x, y]) => Math.hypot(x - 12, y - 6.75));
        return all.sort((a, b) => a - b)[n >> 1];
    }
    function right() { return points().reduce((most, [x]) => Math.max(most, x), 0); }
    // points whose mark is not what the query box says (those at its edge: never)
    function wrongly() {
        const inside = ([x, y]) =>
            Math.max(Math.abs(x - mouse.x), Math.abs(y - mouse.y)) - (0.2 + 1.3 * setting);
        return points().filter(
            p => Math.abs(inside(p)) > 1e-3 && (p[2] > 0) !== (inside(p) < 0)).length;
    }
    // pairs of boxes, as they were given to the world, that overlap
    function together() {
        const b = new Float32Array(Module.HEAPF32.buffer, Module._web_box_data(), 8 * n);
        let count = 0;
        for (let i = 0; i < 8 * n; i += 8)
            for (let j = 0; j < i; j += 8)
                count += b[i] <= b[j + 2] && b[j] <= b[i + 2] && b[i + 1] <= b[j + 3] &&
                    b[j + 1] <= b[i + 3];
        return count;
    }
    // is the mouse in the picked triangle?
    function inside() {
        const [hit, ...c] = points().slice(0, 4);
        const left = (p, q) => Math.sign((q[0] - p[0]) * (mouse.y - p[1]) -
                                         (q[1] - p[1]) * (mouse.x - p[0]));
        return hit[0] >= 0 &&
            Math.abs(left(c[0], c[1]) + left(c[1], c[2]) + left(c[2], c[0])) === 3;
    }
    function changed() {
        const now = new Uint32Array(context.getImageData(0, 0, WIDE, HIGH).data.buffer);
        return now.some((p, i) => p !== seen[i]);
    }
    0`;

async function rests(name) {
    await value('new Promise(requestAnimationFrame)');
    const at = await value('look()');
    await holds(name + ': pictures go on', `pictures > ${at + 5}`);
    report(await value('!changed()'), name + ': nothing moves');
}
async function moves(name) { await value('look()'); await holds(name + ': it moves', 'changed()'); }

const scenes =
    ['boids', 'dam', 'galaxy', 'tree', 'fluid', 'tablets', 'things', 'picking'];

async function scene(k) {
    const name = scenes[k];
    await click('scene_' + k);
    await holds(name + ': chosen', `number === ${k} && byId('scene_${k}').className === 'on'`);
    if (k >= 3) await key('count', 'End');
    const many = k < 3 ? 10000 : await value(`scenes[${k}].most`);
    await holds(`${name}: ${many}`, `n === ${many} && byId('n').textContent === '${many}'`);
    await moves(name);
    report(await value('lit()') > 0.03, name + ': it draws', await value('lit()'));
    await pictures(20);
    console.log(
        `${name}: ${many}, ` +
        await value(
            '`${mean.ms.toFixed(2)} ms a step, ${mean.draw.toFixed(1)} to draw, ' +
            '${mean.rate.toFixed(0)} frames per second`'));
    report(await value('mean.ms > 0'), name + ': milliseconds', await value('mean.ms'));
    await holds(
        name + ': figures are shown',
        `byId('ms').textContent > 0 && byId('rate').textContent >= 0 && ` +
        `byId('figure').textContent >= 0`);
    await shot(name);
    await click('pause'); await rests(name + ', pause');
    await click('pause'); await moves(name + ', go on');
    await key('count', 'Home');
    await holds(name + ': fewer particles', `n === 10 && byId('n').textContent === '10'`);
    await click('scene_' + k);
    const words = await value(`byId('setting_is').textContent`);
    await key('setting', 'End');
    await holds(name + ': the second slider',
                `byId('setting_is').textContent !== '${words}' && setting === 1`);
    await key('speed', 'ArrowRight');
    await holds(name + ': the third slider', `speed === scenes[${k}].speed[1] + 1`);
    await click('scene_' + k);
}

// The mouse at a place of the canvas, in parts of its width and height.
async function mice() {
    let at;
    await click('scene_0');
    at = await place('canvas', 0.4, 0.5);
    await mouse('mouseMoved', ...at);
    await pictures(30);
    let flight = 0;
    for (let k = 0; k < 10; k++) { flight += await value('flight()') / 10; await pictures(2); }
    report(flight > 0.6, 'boids flee from the mouse', flight);
    await shot('boids_mouse');
    await click('scene_1');
    await key('speed', 'End');
    await holds('the dam breaks', 'right() > 9');
    await click('pause');       // or it breaks again while we look
    await click('again');
    report(await value('right() < 7.5'), 'start again', await value('right()'));
    await click('pause');
    at = await place('canvas', 0.2, 0.8);
    await mouse('mousePressed', ...at, 1);
    await holds('discs are pushed', 'mouse.down === 1 && lit(256, 576, 50) < 0.3');
    await shot('dam_mouse');
    await mouse('mouseReleased', ...at);
    await holds('and come back', 'mouse.down === 0 && lit(256, 576, 50) > 0.5');
    await click('scene_2');
    await key('speed', 'End');
    at = await place('canvas', 0.75, 0.25);
    await value('var before = distance()');
    await mouse('mousePressed', ...at, 1);
    await holds('bodies fall to the mass', 'distance() < 0.9 * before');
    await shot('galaxy_mouse');
    await mouse('mouseReleased', ...at);
    await click('scene_3');
    await holds('nothing found without the mouse', `byId('figure').textContent === '0'`);
    at = await place('canvas', 0.5, 0.5);
    await mouse('mouseMoved', ...at);
    await holds('points found', `byId('figure').textContent > 0`);
    report(await value('wrongly() === 0'), 'the query finds what is in its box',
           await value('wrongly()'));
    await key('speed', 'End');
    await key('speed', 'Home');
    for (let k = 0; k < 5; k++) await key('speed', 'ArrowRight');
    await holds('a level is shown', 'shown === 4 && Module._web_boxes() === 16');
    await shot('tree_mouse');
    await click('scene_4');
    await key('speed', 'End');
    await holds('the fluid flows', 'right() > 9');
    report(await value('points().every(([x, y]) => x > 0 && x < 16 && y > 0)'),
           'the fluid stays in its box', await value('right()'));
    await shot('fluid_mouse');
    await click('scene_5');
    await key('speed', 'End');
    await holds('tablets fall', 'points().reduce((sum, p) => sum + p[1], 0) / n < 1.9');
    report(await value('points().every(([x, y]) => Math.hypot(x - 8, y - 4.5) < 4.2)'),
           'tablets stay in the drum', await value('JSON.stringify(points().slice(0, 9))'));
    await shot('tablets_mouse');
    await thrown();
    await picked();
}

async function thrown() {
    await click('scene_6');
    await key('speed', 'End');
    await pictures(60);
    const lines = await value('Module._web_lines()'), pairs = await value('together()');
    report(lines > 50 && Math.abs(lines - pairs) < 3 + 0.1 * pairs,
           'pairs that touch are lit', `${lines} lines, ${pairs} pairs`);
    await value('var at = points().reduce((a, b) => a[1] > b[1] ? a : b)');
    let [x, y] = await place('canvas', await value('at[0] / 16'), await value('1 - at[1] / 9'));
    await mouse('mousePressed', x, y, 1);
    await holds('a box is held', 'points().some(p => p[3] === 1)');
    for (let k = 0; k < 5; k++) await mouse('mouseMoved', x, y -= 40, 1), await pictures(2);
    await holds('it follows', 'points().some(p => p[3] === 1 && p[1] > at[1] + 1)');
    await shot('things_mouse');
    await mouse('mouseReleased', x, y);
    await holds('it is let go', 'points().every(p => p[3] === 0)');
}

async function picked() {
    await click('scene_7');
    await key('speed', 'Home');
    await click('again');       // as it stands at the start
    await mouse('mouseMoved', ...await place('canvas', 0.02, 0.9));
    await holds('nothing is picked beside the knot', 'points()[0][0] === -1');
    for (const [x, y] of [[0.35, 0.55], [0.5, 0.72], [0.75, 0.5]]) {
        await mouse('mouseMoved', ...await place('canvas', x, y));
        await holds(`the triangle at ${x} ${y}`, 'inside()');
    }
    await shot('picking_mouse');
    await value('look()');
    await mouse('mousePressed', ...await place('canvas', 0.5, 0.5), 1);
    await mouse('mouseMoved', ...await place('canvas', 0.6, 0.5), 1);
    await holds('it is turned by hand', 'changed()');
    await mouse('mouseReleased', ...await place('canvas', 0.6, 0.5));
}

// On phones and a small screen: all is in view, the canvas has more than half of it, what a finger
// meets stands apart, and the address says which scene.
async function screens() {
    for (const [width, height] of [[390, 844], [844, 390], [1280, 800]]) {
        const name = `${width} x ${height}`, mobile = width !== 1280;
        await call('Emulation.setDeviceMetricsOverride',
                   { width, height, mobile, deviceScaleFactor: 1 });
        await call('Emulation.setTouchEmulationEnabled', { enabled: mobile });
        await open('nearfield.html?' + width + '#galaxy');
        await holds(name + ': #galaxy', 'number === 2 && location.hash === "#galaxy"');
        report(await value(`(() => {
                   const { left, top, right, bottom } = canvas.getBoundingClientRect();
                   return left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight &&
                       (right - left) * (bottom - top) > 0.5 * innerWidth * innerHeight &&
                       document.documentElement.scrollHeight <= innerHeight &&
                       document.documentElement.scrollWidth <= innerWidth;
               })()`), name + ': the canvas is whole, and has half of the screen');
        report(await value(`(() => {
                   const box = [...document.querySelectorAll('button, select')]
                       .map(e => e.getBoundingClientRect()).filter(b => b.width > 0);
                   return box.length > 3 && box.every((a, i) => box.every((b, j) => i === j ||
                       Math.max(a.left - b.right, b.left - a.right, a.top - b.bottom,
                                b.top - a.bottom) >= 4));
               })()`), name + ': buttons stand apart');
        report(await value(`(scenes[0].hint.includes('HAND') && choose(0),
                             byId('hint').textContent.includes('finger'))`) === mobile,
               name + ': the hint speaks of what is there');
        await shot('screen_' + width);
    }
    await click('full');
    await holds('full screen', 'document.fullscreenElement === byId("stage")');
    await click('leave');
    await holds('no full screen', 'document.fullscreenElement === null');
    await call('Emulation.clearDeviceMetricsOverride');
    await call('Emulation.setTouchEmulationEnabled', { enabled: false });
}

async function open(page) {
    await call('Page.navigate', { url: `file://${web}/${page}` });
    while (!await value('typeof ready === "boolean" && ready && pictures > 0').catch(() => false))
        await sleep(100);
}

async function allScenes() {
    await open('nearfield.html');
    await value(helpers);
    for (let k = 0; k < scenes.length; k++) await scene(k);
    await mice();
    await screens();
    report(await value(`byId('wrong').textContent`) === '', 'no complaint on the page',
           await value(`byId('wrong').textContent`));
}

(async () => {
    const { targetId } = await call('Target.createTarget', { url: 'about:blank' });
    session = (await call('Target.attachToTarget', { targetId, flatten: true })).sessionId;
    for (const what of ['Page', 'Runtime', 'Log']) await call(what + '.enable');
    if (process.env.SLOW)
        await call('Emulation.setCPUThrottlingRate', { rate: Number(process.env.SLOW) });
    if (only !== 'how') await allScenes();
    if (only !== 'scenes')
        await require(process.cwd() + '/tests/examples/test_web_how.js')(
            { open, value, report, mouse, place, click, shot, call });
    report(complaints.length === 0, 'a silent console', complaints.slice(0, 5).join('; '));
    finish();
})().catch(error => { report(false, 'led to the end', error.stack); finish(); });
SOURCE

mkdir -p "$shots"
node "$work/drive.js" "$chromium" "$PWD/build/web" "$work/profile" "$(realpath "$shots")" \
    "${ONLY:-}"
