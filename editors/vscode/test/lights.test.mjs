// @ts-check
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { lights, STATES } from "../src/lights.js";

/** @type {(line: number, state: import("../src/lights.js").State, counts?: (boolean | null)[]) => any} */
function verdict(line, state, counts = []) {
    const range = { start: { line, character: 14 }, end: { line, character: 18 } };
    const tried = counts.map((proved, at) => ({ nranks: at + 1, proved }));
    return { name: `A${line}`, range, state, title: `title ${line}`, counts: tried };
}

/** @type {(...algorithms: any[]) => import("../src/lights.js").Proof} */
function proof(...algorithms) {
    return { uri: "file:///a.coll", version: 1, algorithms };
}

test("each algorithm has the light of its state on its header, and the other lights are out", () => {
    const lit = lights(proof(verdict(3, "proving"), verdict(20, "every"), verdict(40, "every")));
    const lines = Object.entries(lit).map(([state, all]) => [state, all.map(({ range }) => range.start.line)]);
    const expected = { proving: [3], every: [20, 40], some: [], refused: [], broken: [] };
    assert.deepEqual(Object.fromEntries(lines), expected);
    assert.deepEqual(lit.proving[0].range.start, { line: 3, character: 18 });
    assert.equal(lit.proving[0].range.end.line, 3);
    assert.equal(lit.proving[0].hover, "title 3");
    assert.equal(lit.proving[0].after, "");
});

test("the rank counts have a light each, and those of one outcome in a row share it", () => {
    const [light] = lights(proof(verdict(0, "refused", [true, true, true, false, null, true]))).refused;
    assert.equal(light.after, "1–3● 4○ 5◌ 6●");
    const told = ["● nranks 1–3: proved", "○ nranks 4: refused", "◌ nranks 5: not tried", "● nranks 6: proved"];
    assert.equal(light.hover, ["title 0", ...told].join("\n"));
    const gap = { ...verdict(0, "some"), counts: [{ nranks: 2, proved: true }, { nranks: 4, proved: true }] };
    assert.equal(lights(proof(gap)).some[0].after, "2● 4●");
});

test("a text without a proof has no lights", () => {
    assert.deepEqual(Object.values(lights(undefined)).flat(), []);
    assert.deepEqual(Object.values(lights(proof({ ...verdict(0, "every"), state: "of a later server" }))).flat(), []);
});

test("every state has an icon", () => {
    for (const state of Object.keys(STATES)) {
        assert.match(readFileSync(path.resolve(import.meta.dirname, `../icons/${state}.svg`), "utf8"), /^<svg/);
    }
});
