// @ts-check
// Facts that need no browser: words, flags, shared addresses, and the list of exercises.
import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { words as asked } from "../src/asks.js";
import { CONTEXTUAL, WORDS } from "../src/language.js";
import { commands, flags, words } from "../src/listing.js";
import { decode, encode } from "../src/share.js";

const book = path.join(path.dirname(fileURLToPath(import.meta.url)), "../..");
const read = (name) => readFile(path.join(book, name), "utf8");

/** The words of a text of patterns, without the letters of their escapes. */
function letters(text) {
    return new Set(text.replaceAll(/\\+[bswdW]/g, " ").match(/[A-Za-z_]{2,}/g));
}

test("the editor knows the words of the book's highlighter", async () => {
    const script = (await read("coll.js")).split("document.querySelectorAll")[0];
    const kinds = /keywords: \{([\s\S]*?)\n {4}\}/.exec(script)?.[1] ?? "";
    const known = new Set(Object.values(WORDS).join(" ").split(" "));
    const names = new Set(Object.keys(WORDS));
    for (const word of letters(kinds)) assert.ok(known.has(word) || names.has(word), `the editor lacks ${word}`);
    for (const word of known) assert.match(kinds, new RegExp(`\\b${word}\\b`));

    const contextual = letters(CONTEXTUAL.map((pattern) => pattern.source).join("\n"));
    const calls = [...script.matchAll(/word\("([a-z|]+)"/g)].flatMap((found) => found[1].split("|"));
    assert.ok(calls.length > 10, `${calls.length} words alone`);
    for (const word of calls) assert.ok(contextual.has(word), `the editor lacks ${word}`);
});

test("commands of a transcript are read as words and flags", () => {
    const text =
        '$ roundelay check a.coll --topology "full_mesh(8) without (0, 1)" \\\n    -n 2..=5 --set right=3\n  proved\n';
    const [command, ...more] = commands(text);
    assert.equal(more.length, 0);
    const [, , file, ...rest] = words(command);
    assert.equal(file, "a.coll");
    assert.deepEqual(flags(rest), {
        nranks: "2..=5",
        topology: "full_mesh(8) without (0, 1)",
        rest: ["--set", "right=3"],
    });
});

test("a program survives its address", async () => {
    const shared = { text: "algorithm A() -> AllReduce {} // é 😀\n".repeat(50), name: "a.coll", nranks: "3" };
    const fragment = await encode(shared);
    assert.match(fragment, /^#program=[\w-]+$/);
    assert.ok(fragment.length < 400, `${fragment.length} letters`);
    assert.deepEqual(await decode(fragment), shared);
    assert.equal(await decode("#program=AAAA"), null);
    assert.equal(await decode("#elsewhere"), null);
});

/** The address of a heading as mdBook makes it. */
function slug(heading) {
    const kept = heading.toLowerCase().replaceAll(/[^\p{L}\p{N}\s_-]/gu, "");
    return kept.trim().replaceAll(/\s/g, "-");
}

test("every exercise of the tutorial can be tried, or the list says why not", async () => {
    const { exercises, apart } = JSON.parse(await read("playground/exercises.json"));
    const listed = [...exercises, ...apart].map(({ page, slug }) => `${page}#${slug}`);
    const found = [];
    for (const file of (await readdir(path.join(book, "src/tutorial"))).sort()) {
        const [, part] = (await read(`src/tutorial/${file}`)).split("\n## Exercises\n");
        for (const [, heading] of part.matchAll(/^### (.*)$/gm)) {
            found.push(`tutorial/${file.replace(/md$/, "html")}#${slug(heading)}`);
        }
    }
    assert.deepEqual(listed.sort(), found.sort());
    for (const { why } of apart) assert.ok(why);
    for (const exercise of exercises) {
        assert.ok(exercise.asks.length > 0);
        for (const ask of exercise.asks) assert.ok(asked(ask));
        await read(`src/${exercise.solution}`);
        if (exercise.start) await read(`src/${exercise.start}`);
    }
});
