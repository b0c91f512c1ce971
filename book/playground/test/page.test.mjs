// @ts-check
// The page of the playground: programs of the library and the museum, exports, and two programs beside each other.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { checked, panel, served, skip } from "./browser.mjs";

const world = served();

/** Opens the page, whose lists of programs are filled. */
async function playground() {
    const page = await world.context.newPage();
    await page.goto(`${world.address}playground.html`);
    const bench = page.locator(".coll-bench").first();
    assert.equal(await checked(bench), "proved");
    await page.locator("option", { hasText: "RingAllReduce" }).first().waitFor({ state: "attached" });
    return { page, bench };
}

/** Selects a program and waits for its verdict. */
async function select(page, label, value, name) {
    const bench = page.locator(`.coll-bench[aria-label="Program ${name}"]`);
    await page.getByLabel(label, { exact: true }).selectOption(value);
    return { bench, state: await checked(bench) };
}

test("programs of the library and of the museum", { skip, timeout: 60_000 }, async () => {
    const { page } = await playground();
    const groups = await page
        .locator("optgroup")
        .evaluateAll((/** @type {any[]} */ all) => all.map((group) => `${group.label}: ${group.children.length}`));
    assert.ok(groups.length >= 9, groups.join("\n"));
    const ring = await select(page, "Program", "library RingAllReduce", "RingAllReduce.coll");
    assert.equal(ring.state, "proved");
    assert.match(await panel(ring.bench), /proved RingAllReduce \(AllReduce\)/);
    const bug = await select(page, "Program", "museum one_slot.coll", "one_slot.coll");
    assert.equal(bug.state, "refused");
    assert.ok((await bug.bench.locator(".cm-lintRange-error").count()) > 0);
    const mended = await select(page, "Program", "museum one_slot_mended.coll", "one_slot_mended.coll");
    assert.equal(mended.state, "proved");
});

test("forms of a program as files", { skip, timeout: 60_000 }, async () => {
    const { page } = await playground();
    const parts = /** @type {const} */ ([
        [".coll", "program.coll", /^\/\/\/ AllReduce on a ring/],
        ["Steps", "program.txt", /^4 ranks:\nstep 0/],
        ["CUDA text", "program.cu", /ROUNDELAY_WALK\(FirstRing\)/],
        ["MPI C", "program.c", /#include <mpi\.h>/],
    ]);
    for (const [button, file, holds] of parts) {
        const [download] = await Promise.all([
            page.waitForEvent("download"),
            page.getByRole("button", { name: button, exact: true }).click(),
        ]);
        assert.equal(download.suggestedFilename(), file);
        assert.match(await readFile(await download.path(), "utf8"), holds);
    }
    await page.getByRole("button", { name: "Contest C++" }).click();
    await page.locator(".coll-column > div > .coll-transcript", { hasText: "E0506" }).waitFor();
});

test("two programs beside each other", { skip, timeout: 60_000 }, async () => {
    const { page } = await playground();
    await page.getByRole("button", { name: "Compare" }).click();
    await checked(page.locator(".coll-bench").nth(1));
    const name = "RecursiveDoublingAllReduce";
    const second = await select(page, "Second program", `library ${name}`, `${name}.coll`);
    assert.equal(second.state, "proved");
    await page.getByRole("button", { name: "Simulate both" }).click();
    await page.locator(".coll-curves").waitFor();
    assert.equal(await page.locator(".coll-curve").count(), 2);
    const rows = await page.locator(".coll-comparison tbody tr").allInnerTexts();
    assert.equal(rows.length, 9);
    for (const row of rows) assert.match(row, /^\d+ [KM]iB\t[\d.]+ [num]s\t[\d.]+ [num]s$/);
    await page.getByRole("button", { name: "One program" }).click();
    assert.equal(await page.locator(".coll-bench").count(), 1);
});

test("no page asks for anything outside of the book", { skip }, () => {
    assert.deepEqual(world.outside, []);
    assert.deepEqual(world.errors, []);
});
