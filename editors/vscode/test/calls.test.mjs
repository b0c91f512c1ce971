// @ts-check
// The calls are those of the command, which COMMAND names; without it, their form alone is looked at.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { around, call, VIEWS } from "../src/calls.js";
import { page } from "../src/page.js";

const command = process.env.COMMAND ?? "";
const skip = command ? false : "COMMAND names no command";
const settings = { nranks: 3, topology: "", bytes: "64K" };
const root = path.resolve(import.meta.dirname, "../../..");
const views = /** @type {import("../src/calls.js").View[]} */ (Object.keys(VIEWS));

test("every view is made by the command, of a file and of one algorithm of several", { skip }, () => {
    const [one, several] = ["examples", "stdlib/library"].map((folder) => path.join(root, folder, "ring.coll"));
    for (const view of views) {
        for (const args of [call(view, one, settings), call(view, several, settings, "RingAllGather")]) {
            const { status, stdout, stderr } = spawnSync(command, args, { encoding: "utf8" });
            assert.equal(status, 0, `${view}: ${stderr}`);
            const shown = page({ code: 0, out: stdout, err: stderr }, undefined, "n");
            assert.equal(shown.includes("<svg"), view === "picture");
            assert.equal(shown.includes(":where(body.vscode-dark"), view === "picture");
        }
    }
    const there = call("picture", several, { ...settings, topology: "ring(5, 25GB/s, 2us)" }, "RingAllReduce");
    assert.match(execFileSync(command, there, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }), /5 ranks/);
});

test("a line belongs to the algorithm above it", () => {
    const headers = [{ name: "B", line: 20 }, { name: "A", line: 3 }];
    const names = [0, 3, 19, 20, 99].map((line) => around(headers, line));
    assert.deepEqual(names, ["A", "A", "A", "B", "B"]);
    assert.equal(around([], 3), undefined);
});

test("the manifest has every view as a command, and each setting that is read", () => {
    const manifest = JSON.parse(readFileSync(path.resolve(import.meta.dirname, "../package.json"), "utf8"));
    const commands = manifest.contributes.commands.map((/** @type {{ command: string }} */ it) => it.command);
    assert.deepEqual(commands, views.map((view) => `roundelay.${view}`));
    const folder = path.resolve(import.meta.dirname, "../src");
    const sources = readdirSync(folder).map((file) => readFileSync(path.join(folder, file), "utf8"));
    const read = [...sources.join("").matchAll(/setting\("(\w+)"\)/g)].map(([, name]) => name);
    const known = Object.keys(manifest.contributes.configuration.properties).map((name) => name.split(".")[1]);
    assert.deepEqual([...new Set(read)].sort(), [...new Set(known)].sort());
});
