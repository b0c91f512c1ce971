// @ts-check
// The living listings of all pages: the browser prints the text of the page's console.
import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { test } from "node:test";
import { BOOK, checked, served, skip } from "./browser.mjs";

const world = served();

/** Replaces every decimal fraction: times differ from run to run. */
function withoutMeasurements(text) {
    const fraction = (word) => /^[-+]?(?:\d+\.\d*|\.\d+)$/.test(word);
    const plain = (line) => {
        const words = line.split(/\s+/).filter(Boolean);
        return words.some(fraction) ? words.map((word) => (fraction(word) ? "0.0" : word)).join(" ") : line;
    };
    return text.trimEnd().split("\n").map(plain).join("\n");
}

/** Marks the programs whose console stands right behind them, and returns the consoles by the marks. */
function mark() {
    const found = /** @type {{ id: number, command: string, text: string }[]} */ ([]);
    const made = (node) => (node.nodeType === 8 ? (node.textContent ?? "").trim() : "");
    document.querySelectorAll("pre > code.language-coll:not(.fragment)").forEach((code, id) => {
        const pre = /** @type {HTMLElement} */ (code.parentElement);
        pre.dataset.mark = String(id);
        const directives = /** @type {string[]} */ ([]);
        let node = pre.nextSibling;
        // Behind the program stand the comments that end its part and begin that of the console.
        while (node && node.nodeType !== 1) {
            if (made(node)) directives.push(made(node));
            if (node.nodeType === 3 && node.textContent?.trim()) return;
            node = node.nextSibling;
        }
        const last = directives.at(-1) ?? "";
        const text = /** @type {HTMLElement} */ (node)?.querySelector?.("code.language-console")?.textContent ?? "";
        const commands = text.match(/^\$ /gm) ?? [];
        if (!/^include console [^\s:]+\.console$/.test(last) || commands.length !== 1) return;
        const line = /^\$ (?:[^\n]*\\\n)*[^\n]*\n/.exec(text)?.[0] ?? "";
        if (!/^\$ roundelay check \S+\.coll\b/.test(line)) return;
        found.push({ id, command: line.trim(), text: text.slice(line.length) });
    });
    document.querySelectorAll("details").forEach((details) => (details.open = true));
    return found;
}

test("the browser prints the console of every listing", { skip, timeout: 300_000 }, async (t) => {
    const names = await readdir(BOOK, { recursive: true });
    const pages = names.filter((name) => name.endsWith(".html") && !/^(?:print|404|toc)\.html$/.test(name)).sort();
    const page = await world.context.newPage();
    let compared = 0;
    let programs = 0;
    for (const name of pages) {
        await page.goto(world.address + name);
        const found = await page.evaluate(mark);
        programs += await page.locator("pre[data-mark]").count();
        if (!found.length) continue;
        await page.locator(".coll-edit").first().waitFor({ state: "attached" });
        for (const { id, command, text } of found) {
            await page.locator(`pre[data-mark="${id}"] .coll-edit`).click();
            const bench = page.locator(".coll-bench");
            await checked(bench);
            const shown = await bench.locator(".coll-transcript").textContent();
            assert.equal(withoutMeasurements(shown ?? ""), withoutMeasurements(text), `${name}: ${command}`);
            await bench.getByRole("button", { name: "Close" }).click();
            compared += 1;
        }
    }
    t.diagnostic(`${compared} consoles compared, of ${programs} programs on ${pages.length} pages`);
    assert.ok(compared > 20, `${compared} consoles alone`);
    assert.ok(programs > 100, `${programs} programs alone`);
    assert.deepEqual(world.errors, []);
    assert.deepEqual(world.outside, []);
});
