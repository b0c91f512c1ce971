// @ts-check
// The calls are those of the command, which COMMAND names; without it, their form alone is looked at.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { page, VIEWS } from "../src/calls.js";

const command = process.env.COMMAND ?? "";
const skip = command ? false : "COMMAND names no command";
const settings = { nranks: 3, topology: "", bytes: "64K" };
const ring = path.resolve(import.meta.dirname, "../../../examples/ring.coll");

test("every view is made by the command", { skip }, () => {
    for (const [name, { args }] of Object.entries(VIEWS)) {
        const { status, stdout, stderr } = spawnSync(command, args(ring, settings), { encoding: "utf8" });
        assert.equal(status, 0, `${name}: ${stderr}`);
        const shown = page({ code: 0, out: stdout, err: stderr });
        assert.equal(shown.includes("<svg"), name === "picture");
        assert.ok(shown.includes("<pre>") && !shown.includes("<script"), name);
    }
    const there = VIEWS.picture.args(ring, { ...settings, topology: "ring(5, 25GB/s, 2us)" });
    assert.match(execFileSync(command, there, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }), /5 ranks/);
});

test("a refused program is told in the page, and nothing of it is HTML", { skip }, () => {
    const file = path.join(mkdtempSync(path.join(os.tmpdir(), "coll-")), "wrong.coll");
    writeFileSync(file, "algorithm A() -> AllReduce { copy(<b>, local.output); }");
    const { status, stdout, stderr } = spawnSync(command, VIEWS.steps.args(file, settings), { encoding: "utf8" });
    const shown = page({ code: status ?? 1, out: stdout, err: stderr });
    assert.match(shown, /error\[E0003\]/);
    assert.ok(shown.includes("&lt;b&gt;") && !shown.includes("<b>"), shown);
});

test("the manifest has every view as a command, and each setting that is read", () => {
    const manifest = JSON.parse(readFileSync(path.resolve(import.meta.dirname, "../package.json"), "utf8"));
    const commands = manifest.contributes.commands.map(({ command }) => command);
    assert.deepEqual(commands, Object.keys(VIEWS).map((name) => `roundelay.${name}`));
    const source = readFileSync(path.resolve(import.meta.dirname, "../src/extension.js"), "utf8");
    const read = [...source.matchAll(/setting\("(\w+)"\)/g)].map(([, name]) => `roundelay.${name}`);
    const known = Object.keys(manifest.contributes.configuration.properties);
    assert.deepEqual([...new Set(read)].sort(), known.sort());
});
