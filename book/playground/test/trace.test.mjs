// @ts-check
// A trace of a run opens in Perfetto, without an error of its reader: ranks, rows, events, details and arrows are there.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { chromium } from "playwright-core";
import { browser } from "./browser.mjs";
import { serve } from "./server.mjs";

const command = process.env.COMMAND ?? "";
/** The folder of Perfetto's pages. */
const viewer = process.env.PERFETTO ?? "";

function lacks() {
    if (!command) return "COMMAND names no command";
    if (!existsSync(`${viewer}/index.html`)) return "PERFETTO names no folder of Perfetto's pages";
    return browser() ? "" : "no Chromium is installed";
}

const why = lacks();
const skip = why ? `no viewer: ${why}` : false;

/** Opens a file in the viewer, and returns the answers to queries of its database. */
async function queried(page, file, queries) {
    await page.waitForSelector("input[type=file]", { state: "attached" });
    await page.setInputFiles("input[type=file]", file);
    await page.waitForFunction(() => /** @type {any} */ (globalThis).app?.trace?.engine);
    return page.evaluate(async (all) => {
        const { engine } = /** @type {any} */ (globalThis).app.trace;
        const answers = [];
        for (const query of all) {
            const result = await engine.query(query);
            const rows = [];
            for (const row = result.iter({}); row.valid(); row.next()) {
                rows.push(result.columns().map((name) => String(row.get(name))));
            }
            answers.push(rows);
        }
        return answers;
    }, queries);
}

test("a trace opens in Perfetto", { skip, timeout: 120_000 }, async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "trace-"));
    const server = await serve(viewer);
    const made = await chromium.launch({ executablePath: browser(), args: ["--no-sandbox"] });
    try {
        const file = path.join(folder, "trace.json");
        const run = ["run", "RingAllReduce", "-n", "3", "--count", "3000", "-O0", "-I", "1", "--callers", "each"];
        execFileSync(command, [...run, "--trace", file], { stdio: "ignore" });
        const page = await made.newPage();
        await page.goto(server.address);
        const [errors, ranks, rows, step, arrows] = await queried(page, file, [
            "select name, value from stats where value > 0 and severity in ('error', 'data_loss')",
            "select name from process where name glob '*rank*' order by name",
            `select distinct thread.name from thread join process using (upid)
             where process.name = 'rank 1' and thread.name is not null order by 1`,
            `select distinct a.key, a.display_value from slice s join args a using (arg_set_id)
             where s.name = 'reduce from 0' and a.key in ('args.line', 'args.peer', 'args.bytes') order by 1`,
            "select count(*) from flow",
        ]);
        assert.deepEqual(errors, []);
        const real = ["rank 0", "rank 1", "rank 2"];
        assert.deepEqual(ranks.flat(), [...real, ...real.map((rank) => `simulated ${rank}`)]);
        assert.deepEqual(rows.flat(), ["calls", "stream 0"]);
        assert.deepEqual(step, [["args.bytes", "4000"], ["args.line", "ring.coll:27"], ["args.peer", "0"]]);
        // Two runs of four steps, with two signals of each of three ranks.
        assert.deepEqual(arrows, [["48"]]);
    } finally {
        await made.close();
        await server.end();
        rmSync(folder, { recursive: true });
    }
});
