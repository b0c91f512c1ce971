// @ts-check
// A bench as a reader uses it: edit, break, reset, share, stop; and the sizes of the files.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { BOOK, checked, opened, panel, served, skip } from "./browser.mjs";

const world = served();

/** Opens the program of a page whose text holds `part`. */
async function edited(name, part) {
    const page = await world.context.newPage();
    await page.goto(world.address + name);
    await page.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)));
    await page.locator("pre", { hasText: part }).locator(".coll-edit").first().click();
    const bench = page.locator(".coll-bench").first();
    const state = await checked(bench);
    return { page, bench, state };
}

/** Returns the text of the editor, which is drawn whole where it is short. */
function text(bench) {
    return bench.locator(".cm-content").evaluate((content) => {
        return [...content.querySelectorAll(".cm-line")].map((line) => line.textContent).join("\n");
    });
}

/** Puts a text in place of the program, as a reader who pastes it. */
async function write(page, bench, program) {
    await bench.locator(".cm-content").focus();
    await page.keyboard.press("Control+A");
    await page.keyboard.insertText(program);
}

test("a program is broken, reset and shared", { skip, timeout: 60_000 }, async (t) => {
    const { page, bench, state } = await edited("tutorial/one_ring.html", "algorithm FirstRing");
    assert.equal(state, "proved");
    const whole = await text(bench);

    // The last line of the second loop goes.
    const began = Date.now();
    await bench.locator(".cm-line", { hasText: "right.RxDataSignal();" }).last().click();
    await page.keyboard.press("Control+Shift+K");
    assert.equal(await checked(bench), "refused");
    t.diagnostic(`verdict ${Date.now() - began} ms after a key, of which 300 ms are a pause`);
    assert.equal(await bench.locator(".cm-lintRange-error").first().textContent(), "left.TxDataSignal();");
    assert.match(await panel(bench), /^error\[E0303\]: rank \d posts TxDataSignal/);

    await bench.locator(".cm-lintRange-error").first().hover();
    const link = page.locator(".cm-tooltip .coll-message a");
    await link.waitFor();
    assert.match((await link.getAttribute("href")) ?? "", /\/errors\/E0303\.html$/);
    assert.match(await page.locator(".cm-tooltip").innerText(), /help: /);
    await page.mouse.move(0, 0);

    await bench.getByRole("button", { name: "Reset" }).click();
    assert.equal(await checked(bench), "proved");
    assert.equal(await text(bench), whole);

    await bench.getByLabel("Ranks").fill("3");
    assert.equal(await checked(bench), "proved");
    assert.match(await panel(bench), /for nranks 3:/);
    await bench.getByRole("tab", { name: "Steps" }).click();
    await bench.locator(".coll-panel", { hasText: "step 3" }).waitFor();
    await page.keyboard.press("ArrowRight");
    await bench.locator(".coll-panel .coll-picture svg").waitFor();

    await bench.getByRole("button", { name: "Link" }).click();
    await bench.locator(".coll-said", { hasText: "copied" }).waitFor();
    const address = await page.evaluate(() => navigator.clipboard.readText());
    const other = await world.context.newPage();
    await other.goto(address);
    const shared = other.locator(".coll-bench").first();
    assert.equal(await checked(shared), "proved");
    assert.equal(await text(shared), whole);
    assert.equal(await shared.getByLabel("Ranks").inputValue(), "3");
});

test("the keyboard enters a program and leaves it", { skip, timeout: 60_000 }, async () => {
    const { page, bench } = await edited("tutorial/one_ring.html", "algorithm FirstRing");
    const focused = () => page.evaluate(() => document.activeElement?.className ?? "");
    assert.match(await focused(), /cm-content/);
    const before = await text(bench);
    await page.keyboard.press("Tab");
    assert.notEqual(await text(bench), before);
    // Keys of the book, which turn pages and open the search, are letters and moves here.
    const address = page.url();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.type("s?/");
    assert.match(await text(bench), /s\?\//);
    await page.waitForTimeout(200);
    assert.equal(page.url(), address);
    await page.keyboard.press("Escape");
    assert.match(await focused(), /coll-ranks/);
    await page.keyboard.press("Tab");
    assert.match(await focused(), /coll-button/);
    await bench.getByRole("button", { name: "Close" }).press("Enter");
    assert.match(await focused(), /coll-edit/);
});

test("a machine is drawn beside the run", { skip, timeout: 60_000 }, async () => {
    const { bench } = await edited("tutorial/one_ring.html", "algorithm FirstRing");
    await bench.locator(".coll-topology summary").click();
    await bench.getByLabel("Topology").fill("full_mesh(6, 25GB/s, 2us)");
    assert.equal(await checked(bench), "proved");
    assert.match(await panel(bench), /for nranks 6:/);
    await bench.getByRole("tab", { name: "Picture" }).click();
    await bench.locator(".coll-panel .coll-picture svg").nth(1).waitFor();
    assert.match(await panel(bench), /on 6 ranks of full_mesh\(6, 25GB\/s, 2us\)/);
});

test("a program is formatted", { skip, timeout: 60_000 }, async () => {
    const { page, bench } = await edited("tutorial/one_ring.html", "algorithm FirstRing");
    const whole = await text(bench);
    await write(page, bench, whole.replaceAll("    ", " "));
    assert.equal(await checked(bench), "proved");
    await bench.getByRole("button", { name: "Format" }).click();
    await bench.locator(".coll-said", { hasText: "formatted" }).waitFor();
    assert.equal(await text(bench), whole);
});

test("a listing finds the files that it uses", { skip, timeout: 60_000 }, async () => {
    const { bench } = await edited("tutorial/groups.html", "algorithm ThreeLevels");
    assert.match(await panel(bench), /proved ThreeLevels \(AllReduce\) for nranks 8:/);
});

/** An algorithm with many operations. */
const slow = (name) => `algorithm ${name}(ring: Ring) -> AllReduce {
    let left = ring.left;
    let right = ring.right;
    let me = ring.position;
    view slice = output.split(300);

    copy(local.input, local.output);

    for s in 0..300 {
        view block = slice[s].split(nranks);
        for round in 0..nranks - 1 {
            let b = (me - round - 1) % nranks;
            right.TxAck();
            left.RxAck();
            reduce(left.block[b], local.block[b]);
            left.TxDataSignal();
            right.RxDataSignal();
        }
        for round in 0..nranks - 1 {
            let b = (me - round) % nranks;
            right.TxAck();
            left.RxAck();
            copy(left.block[b], local.block[b]);
            left.TxDataSignal();
            right.RxDataSignal();
        }
    }
}
`;

test("a command that takes long is stopped, and the page lives on", { skip, timeout: 90_000 }, async () => {
    const { page, bench } = await edited("tutorial/one_ring.html", "algorithm FirstRing");
    const whole = await text(bench);
    await bench.getByLabel("Ranks").fill("64");
    assert.equal(await checked(bench), "proved");
    await write(page, bench, ["A", "B", "C", "D", "E", "F", "G", "H"].map(slow).join("\n"));
    assert.equal(await checked(bench), "stopped");
    assert.match(await panel(bench), /^stopped after 10 s\nChoose fewer ranks/);
    // A newer text stops the run of the older one at once.
    await page.keyboard.press("Control+End");
    await page.keyboard.type("\n");
    await page.waitForTimeout(1000);
    const began = Date.now();
    await bench.getByRole("button", { name: "Reset" }).click();
    assert.equal(await checked(bench), "proved");
    assert.ok(Date.now() - began < 5000, `${Date.now() - began} ms`);
    assert.equal(await text(bench), whole);
});

test("without JavaScript, or without the playground, the page is as it is", { skip }, async () => {
    const still = await opened({ javaScriptEnabled: false });
    const page = await still.context.newPage();
    await page.goto(`${still.address}tutorial/one_ring.html`);
    assert.equal(await page.locator(".coll-edit, .coll-try").count(), 0);
    await page.goto(`${still.address}playground.html`);
    assert.match(await page.locator("#playground-editor").innerText(), /needs JavaScript/);
    await still.end();

    const plain = await opened();
    await plain.context.route("**/playground.js", (route) => route.fulfill({ status: 404, body: "not found" }));
    const other = await plain.context.newPage();
    await other.goto(`${plain.address}tutorial/one_ring.html`);
    await other.locator("code.language-coll .hljs-keyword").first().waitFor();
    assert.equal(await other.locator(".coll-edit, .coll-try").count(), 0);
    assert.deepEqual(plain.errors, []);
    await plain.end();
});

test("no page asks for anything outside of the book", { skip }, () => {
    assert.deepEqual(world.outside, []);
    assert.deepEqual(world.errors, []);
});

test("the files are small", { skip: BOOK ? false : "BOOK names no folder of a built book" }, async (t) => {
    const sizes = /** @type {Record<string, number>} */ ({});
    for (const name of ["playground.js", "editor.js", "worker.js", "playground.css", "museum.json", "roundelay.wasm"]) {
        const bytes = await readFile(`${BOOK}/${name}`);
        sizes[name] = gzipSync(bytes, { level: 9 }).length;
        t.diagnostic(`${name}: ${bytes.length} bytes, ${sizes[name]} compressed`);
        if (name === "playground.js") assert.ok(bytes.length <= 10_240, `${bytes.length} bytes`);
    }
    assert.ok(sizes["editor.js"] <= 160_000);
    const most = 1_048_576;
    if (sizes["roundelay.wasm"] > most) {
        t.skip(`the module is larger than ${most} bytes compressed: ${sizes["roundelay.wasm"]}`);
    }
});
