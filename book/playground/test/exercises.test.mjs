// @ts-check
// The exercises: the book's solution of each is called solved, and the program that it begins with is not.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { BOOK, checked, served, skip } from "./browser.mjs";

const world = served();

/** Waits until the asks of an exercise are judged, and returns the text of the judgement and the asks that hold. */
async function judged(place) {
    await place.locator(".coll-solved", { hasText: /solved|judged/ }).waitFor();
    const asks = await place.locator(".coll-asks li").evaluateAll((all) => {
        return all.map((one) => `${one.dataset.holds}: ${one.textContent}`);
    });
    return { text: await place.locator(".coll-solved").textContent(), asks: asks.join("\n") };
}

test("an exercise knows its solution", { skip, timeout: 300_000 }, async (t) => {
    const list = new URL("../exercises.json", import.meta.url);
    const { exercises } = JSON.parse(await readFile(list, "utf8"));
    const page = await world.context.newPage();
    for (const { page: name, slug, solution } of exercises) {
        await page.goto("about:blank");
        await page.goto(`${world.address}${name}#${slug}`);
        const place = page.locator(`#${escaped(slug)} ~ .coll-exercise`).first();
        await place.getByRole("button", { name: "Try it" }).click();
        const bench = place.locator(".coll-bench");
        await checked(bench);
        const first = await judged(place);
        assert.equal(first.text, "not solved yet", `${name}#${slug} begins solved`);

        // The solution is written as a reader pastes it.
        await bench.locator(".cm-content").focus();
        await page.keyboard.press("Control+A");
        await page.keyboard.insertText(await readFile(`${BOOK}/${solution}`, "utf8"));
        await checked(bench);
        const solved = place.locator(".coll-solved", { hasText: /^solved$/ });
        await solved.waitFor({ timeout: 10_000 }).catch(async () => {
            const { asks } = await judged(place);
            const panel = await bench.locator(".coll-panel").innerText();
            assert.fail(`${name}#${slug}: the solution is not called solved\n${asks}\n${panel}`);
        });
    }
    t.diagnostic(`${exercises.length} exercises solved`);
    assert.deepEqual(world.errors, []);
    assert.deepEqual(world.outside, []);
});

/** Returns an id that may begin with a digit as a selector has it. */
function escaped(id) {
    return id.replace(/^\d/, (digit) => `\\3${digit} `);
}
