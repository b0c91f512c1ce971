// @ts-check
// The command serves the book that is packed into it, each file as it was built.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { once } from "node:events";
import { test } from "node:test";
import { BOOK } from "./browser.mjs";

const command = process.env.COMMAND ?? "";
const skip = command ? false : "COMMAND names no command with the book";

test("the command serves the book", { skip, timeout: 30_000 }, async () => {
    const server = spawn(command, ["book"], { stdio: ["ignore", "pipe", "inherit"] });
    try {
        const [line] = await once(server.stdout, "data");
        const address = String(line).trim();
        assert.match(address, /^http:\/\/127\.0\.0\.1:\d+\/$/);
        for (const [page, type] of [
            ["index.html", "text/html; charset=utf-8"],
            ["tutorial/one_ring.html", "text/html; charset=utf-8"],
            ["playground.js", "text/javascript; charset=utf-8"],
            ["roundelay.wasm", "application/wasm"],
        ]) {
            const answer = await fetch(address + page);
            assert.equal(answer.status, 200, page);
            assert.equal(answer.headers.get("content-type"), type);
            const bytes = Buffer.from(await answer.arrayBuffer());
            assert.ok(bytes.equals(await readFile(path.join(BOOK, page))), `${page} is another file`);
        }
        const root = await (await fetch(`${address}?theme=navy`)).text();
        assert.equal(root, await readFile(path.join(BOOK, "index.html"), "utf8"));
        assert.equal((await fetch(`${address}../Cargo.toml`)).status, 404);
        assert.equal((await fetch(`${address}none.html`)).status, 404);
    } finally {
        server.kill();
    }
});
