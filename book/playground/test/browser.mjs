// @ts-check
// The browser of the tests, and the places of a bench on a page.
import { existsSync } from "node:fs";
import { after, before } from "node:test";
import { chromium } from "playwright-core";
import { serve } from "./server.mjs";

/** The folder of the built book, with the playground and `roundelay.wasm` in it. */
export const BOOK = process.env.BOOK ?? "";

/** Why the tests of the browser cannot run here; empty where they can. */
function lacks() {
    if (!BOOK) return "BOOK names no folder of a built book";
    for (const file of ["index.html", "playground.js", "roundelay.wasm"]) {
        if (!existsSync(`${BOOK}/${file}`)) return `${BOOK} has no ${file}`;
    }
    return browser() ? "" : "no Chromium is installed";
}

/** Returns the path of the browser; empty where there is none. */
export function browser() {
    const known = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    return known.find((path) => path && existsSync(path)) ?? "";
}

const why = lacks();
/** The reason that leaves the tests of the browser out; `false` where they run. */
export const skip = why ? `no browser: ${why}` : false;

/** Opens the browser and serves the book for all tests of a file. */
export function served() {
    const world = /** @type {any} */ ({});
    before(async () => {
        if (!skip) Object.assign(world, await opened());
    });
    after(() => world.end?.());
    return world;
}

/**
 * Opens the browser and serves the book.
 * @param {import("playwright-core").BrowserContextOptions} [options]
 */
export async function opened(options = {}) {
    const server = await serve(BOOK);
    const made = await chromium.launch({ executablePath: browser(), args: ["--no-sandbox"] });
    const context = await made.newContext({ permissions: ["clipboard-read", "clipboard-write"], ...options });
    /** The addresses outside of the book that a page asked for. */
    const outside = /** @type {string[]} */ ([]);
    /** The errors of the pages. */
    const errors = /** @type {string[]} */ ([]);
    context.on("request", (request) => {
        const url = request.url();
        if (!url.startsWith(server.address) && !/^(?:data|blob):/.test(url)) outside.push(url);
    });
    context.on("weberror", (error) => errors.push(String(error.error())));
    return {
        context,
        address: server.address,
        outside,
        errors,
        async end() {
            await made.close();
            await server.end();
        },
    };
}

/** Waits until the check of a bench has ended, and returns its state. */
export async function checked(bench) {
    await bench.waitFor();
    const end = Date.now() + 30_000;
    for (;;) {
        const state = await bench.getAttribute("data-state");
        if (state && !["waiting", "running"].includes(state)) return state;
        if (Date.now() > end) throw new Error("no verdict after 30 s");
        await new Promise((resolve) => setTimeout(resolve, 20));
    }
}

/** Returns the text of the panel of results. */
export function panel(bench) {
    return bench.locator(".coll-panel").innerText();
}
