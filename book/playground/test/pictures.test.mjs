// @ts-check
// Pictures of the pages in some widths and themes, for a person to look at; no page scrolls sideways.
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { checked, opened, skip } from "./browser.mjs";

const folder = process.env.SHOTS ?? path.join(os.tmpdir(), "playground-shots");

/** Says that a page is no wider than its window. */
async function fits(page, name) {
    const [page_, window_] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(page_ <= window_, `${name} is ${page_} wide in a window of ${window_}`);
}

async function shoot(page, name) {
    await fits(page, name);
    await page.screenshot({ path: path.join(folder, `${name}.png`) });
}

/** A program of a chapter: as it is, opened, broken with its message, and its picture. */
async function listing(page, name) {
    const pre = page.locator("pre", { hasText: "algorithm FirstRing" }).first();
    await pre.scrollIntoViewIfNeeded();
    await shoot(page, `${name}-page`);
    await pre.locator(".coll-edit").click();
    const bench = page.locator(".coll-bench").first();
    await checked(bench);
    await bench.evaluate((section) => section.scrollIntoView());
    await shoot(page, `${name}-opened`);
    await bench.locator(".cm-line", { hasText: "right.RxDataSignal();" }).last().click();
    await page.keyboard.press("Control+Shift+K");
    await checked(bench);
    await bench.locator(".cm-lintRange-error").first().hover();
    await page.locator(".cm-tooltip .coll-message").waitFor();
    await shoot(page, `${name}-broken`);
    await page.mouse.move(0, 0);
    await bench.locator(".coll-topology summary").click();
    await bench.locator(".coll-panel").evaluate((panel) => panel.scrollIntoView({ block: "end" }));
    await shoot(page, `${name}-verdict`);
    await bench.getByRole("button", { name: "Reset" }).click();
    await checked(bench);
    await bench.getByRole("tab", { name: "Picture" }).click();
    await bench.locator(".coll-panel .coll-picture svg").waitFor();
    await bench.locator(".coll-panel").evaluate((panel) => panel.scrollIntoView({ block: "end" }));
    await shoot(page, `${name}-picture`);
}

async function exercise(page, name) {
    const place = page.locator(".coll-exercise").first();
    await place.scrollIntoViewIfNeeded();
    await shoot(page, `${name}-exercise`);
    await place.getByRole("button", { name: "Try it" }).click();
    await checked(place.locator(".coll-bench"));
    await place.locator(".coll-solved", { hasText: "solved" }).waitFor();
    await place.locator(".coll-asks").evaluate((asks) => asks.scrollIntoView({ block: "end" }));
    await shoot(page, `${name}-tried`);
}

async function playground(page, name) {
    await checked(page.locator(".coll-bench").first());
    await page.locator("option", { hasText: "RingAllReduce" }).first().waitFor({ state: "attached" });
    await shoot(page, `${name}-playground`);
    await page.getByRole("button", { name: "Compare" }).click();
    const second = page.locator(".coll-bench").nth(1);
    await checked(second);
    await page.getByLabel("Second program").selectOption("library RecursiveDoublingAllReduce");
    await page.waitForTimeout(500);
    await checked(second);
    await page.locator(".coll-columns").evaluate((columns) => columns.scrollIntoView());
    await shoot(page, `${name}-columns`);
    await page.getByRole("button", { name: "Simulate both" }).click();
    await page.locator(".coll-curves").waitFor({ timeout: 20_000 });
    await page.locator(".coll-comparison").evaluate((section) => section.scrollIntoView());
    await shoot(page, `${name}-curves`);
}

for (const width of [360, 800, 1600]) {
    for (const theme of ["light", "navy"]) {
        test(`pictures of ${width} pixels, ${theme}`, { skip, timeout: 120_000 }, async () => {
            await mkdir(folder, { recursive: true });
            const world = await opened({ viewport: { width, height: 900 } });
            try {
                await world.context.addInitScript((name) => {
                    if (location.protocol === "http:") localStorage.setItem("mdbook-theme", name);
                }, theme);
                const page = await world.context.newPage();
                for (const [at, draw] of /** @type {const} */ ([
                    ["tutorial/one_ring.html", listing],
                    ["tutorial/one_ring.html", exercise],
                    ["playground.html", playground],
                ])) {
                    await page.goto("about:blank");
                    await page.goto(world.address + at);
                    await page.locator(".coll-edit, .coll-bench").first().waitFor({ state: "attached" });
                    await draw(page, `${width}-${theme}`);
                }
                assert.deepEqual(world.errors, []);
                assert.deepEqual(world.outside, []);
            } finally {
                await world.end();
            }
        });
    }
}
