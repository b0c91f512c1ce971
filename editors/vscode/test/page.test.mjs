// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { page } from "../src/page.js";

const good = { code: 0, out: `<svg id="good"></svg>`, err: "75 us\n" };
const wrong = { code: 1, out: "", err: "error[E0003]: `<b>` & more\n" };

test("a picture stands above the text of its run", () => {
    const shown = page(good, undefined, "n");
    assert.ok(shown.indexOf(good.out) < shown.indexOf("<pre>75 us"));
    assert.ok(!shown.includes(`class="old"`));
});

test("an error stands above the last picture, which is grey", () => {
    const shown = page(wrong, good, "n");
    const places = ["error[E0003]", `<div class="old">`, good.out].map((part) => shown.indexOf(part));
    assert.ok(places[0] > 0 && places[0] < places[1] && places[1] < places[2], shown);
    assert.ok(!page(wrong, undefined, "n").includes(`<div class="old">`));
    assert.ok(!page(good, good, "n").includes(`<div class="old">`));
});

test("nothing of an output is HTML or runs but its picture, and only the page's own script runs", () => {
    const shown = page(wrong, { code: 0, out: "<script>1</script>", err: "" }, "n");
    assert.ok(shown.includes("&lt;b&gt;` &amp; more") && !shown.includes("<b>"), shown);
    assert.deepEqual(shown.match(/<script[^>]*>/g), [`<script nonce="n">`]);
    assert.match(shown, /default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-n'"/);
});

/** Runs the script of a page in a stand-in for the editor's frame, and returns the frame. */
function frame(/** @type {object | undefined} */ state) {
    const [, script] = page(good, undefined, "n").match(/<script[^>]*>([^]*)<\/script>/) ?? [];
    const picture = { style: { width: "" }, getAttribute: () => "800" };
    const it = { picture, state, at: [0, 0], heard: /** @type {Record<string, (event?: object) => void>} */ ({}) };
    const api = { getState: () => it.state, setState: (/** @type {object} */ kept) => (it.state = kept) };
    const names = {
        acquireVsCodeApi: () => api,
        document: { querySelector: () => picture, documentElement: { clientWidth: 532 } },
        scrollTo: (/** @type {number} */ x, /** @type {number} */ y) => (it.at = [x, y]),
        addEventListener: (/** @type {string} */ name, /** @type {() => void} */ heard) => (it.heard[name] = heard),
        setTimeout: (/** @type {() => void} */ then) => then(),
        scrollX: 30,
        scrollY: 40,
    };
    new Function(...Object.keys(names), script)(...Object.values(names));
    it.heard.load();
    return it;
}

test("a page that is made anew keeps the place and the size", () => {
    const first = frame(undefined);
    assert.deepEqual([first.picture.style.width, ...first.at], ["500px", 0, 0]);
    first.heard.wheel({ ctrlKey: true, deltaY: -400 * Math.LN2, clientX: 10, clientY: 20, preventDefault() {} });
    assert.deepEqual([parseFloat(first.picture.style.width), ...first.at].map(Math.round), [1000, 70, 100]);
    const second = frame(first.state);
    assert.deepEqual([second.picture.style.width, ...second.at], [first.picture.style.width, 30, 40]);
});
