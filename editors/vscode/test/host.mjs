// @ts-check
// The extension in VS Code itself: its server on this machine, driven by a browser. COMMAND is the command, CODE_SERVER
// the program `code-server` (or the one of the PATH), CHROMIUM the browser, and SHOTS a folder for pictures of the
// screen.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout } from "node:timers/promises";
import { chromium } from "playwright-core";

/** The time that all of it may take, and each thing that is waited for. */
const [ALL, EACH] = [300_000, 60_000];

const here = path.resolve(import.meta.dirname, "..");
const { COMMAND = "", SHOTS = "" } = process.env;
const onPath = (process.env.PATH ?? "").split(path.delimiter).map((folder) => path.join(folder, "code-server"));
const server = [process.env.CODE_SERVER, ...onPath].find((file) => file && existsSync(file));
const browsers = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const browser = browsers.find((file) => file && existsSync(file));

const ends = /** @type {(() => unknown)[]} */ ([]);
/** @type {Promise<void> | undefined} */
let ending;

/** Ends what was started, the last first; who calls it later waits for the same end. */
function end() {
    return (ending ??= (async () => {
        for (const one of ends.reverse()) await Promise.resolve().then(one).catch(console.error);
    })());
}

/** Starts VS Code's server on a program, with the extension in it, and returns its address. */
async function served(/** @type {string} */ folder, /** @type {string} */ server) {
    const [work, user, vsix] = ["work", "user", "it.vsix"].map((name) => path.join(folder, name));
    mkdirSync(work);
    mkdirSync(path.join(user, "User"), { recursive: true });
    copyFileSync(path.join(here, "../../stdlib/library/ring.coll"), path.join(work, "ring.coll"));
    const settings = {
        "roundelay.command": path.resolve(COMMAND),
        "chat.disableAIFeatures": true,
        "editor.minimap.enabled": false,
        "files.autoSave": "off",
        "telemetry.telemetryLevel": "off",
        "workbench.secondarySideBar.defaultVisibility": "hidden",
        "workbench.startupEditor": "none",
    };
    writeFileSync(path.join(user, "User/settings.json"), JSON.stringify(settings));
    const config = path.join(folder, "config.yaml");
    writeFileSync(config, "");
    execFileSync("npm", ["run", "package", "--", "--out", vsix], { cwd: here, stdio: "ignore" });
    const own = ["--config", config, "--user-data-dir", user, "--extensions-dir", path.join(folder, "extensions")];
    execFileSync(server, [...own, "--install-extension", vsix], { stdio: "ignore", timeout: EACH });
    const alone = ["--auth", "none", "--bind-addr", "127.0.0.1:0", "--disable-telemetry", "--disable-update-check"];
    // A group of its own, so that the processes that it starts end with it.
    const serving = spawn(server, [...own, ...alone, "--disable-workspace-trust"], { detached: true });
    const exit = once(serving, "exit");
    ends.push(async () => {
        if (!serving.pid) return;
        for (const signal of /** @type {const} */ (["SIGTERM", "SIGKILL"])) {
            try {
                process.kill(-serving.pid, signal);
            } catch {
                return; // All of the group are gone.
            }
            await Promise.race([exit, setTimeout(5_000)]);
        }
    });
    const address = await new Promise((resolve, reject) => {
        let said = "";
        const heard = (/** @type {Buffer} */ text) => {
            said += text;
            const [, address] = said.match(/listening on (http:\/\/127\.0\.0\.1:\d+)/) ?? [];
            if (address) resolve(address);
        };
        serving.stdout.on("data", heard);
        serving.stderr.on("data", heard);
        serving.on("error", reject);
        serving.on("exit", () => reject(new Error(`code-server does not start:\n${said}`)));
    });
    return `${address}/?folder=${encodeURIComponent(work)}`;
}

async function main(/** @type {string} */ server, /** @type {string} */ executablePath) {
    const folder = mkdtempSync(path.join(os.tmpdir(), "coll-host-"));
    ends.push(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
    const address = await served(folder, server);
    const signals = { handleSIGINT: false, handleSIGTERM: false, handleSIGHUP: false };
    const made = await chromium.launch({ executablePath, args: ["--no-sandbox"], ...signals });
    ends.push(() => made.close());
    const page = await made.newPage({ viewport: { width: 1500, height: 900 } });
    page.setDefaultTimeout(EACH);
    ends.push(() => SHOTS && page.screenshot({ path: path.join(SHOTS, "end.png") }));
    await page.goto(address);

    /** Tells what was seen, and draws it. */
    async function seen(/** @type {string} */ name) {
        if (SHOTS) await page.screenshot({ path: path.join(SHOTS, `${name}.png`) });
        console.log(`ok: ${name}`);
    }
    /** Picks an entry of the editor's list of files, or of commands. */
    async function pick(/** @type {string} */ keys, /** @type {string} */ text) {
        await page.keyboard.press(keys);
        await page.locator(".quick-input-widget input").first().pressSequentially(text);
        await page.locator(".quick-input-list .monaco-list-row", { hasText: text }).first().waitFor();
        await page.keyboard.press("Enter");
    }
    const command = (/** @type {string} */ text) => pick("F1", text);
    const lens = page.locator(".codelens-decoration", { hasText: /proved/ }).first();

    await page.locator(".monaco-workbench .explorer-folders-view").waitFor();
    await pick("Control+P", "ring.coll");
    await lens.waitFor();
    await page.locator(".view-line", { hasText: /TxAck\(\);\s*[a-z]/ }).first().waitFor();
    await seen("lenses");

    /** Waits until a light is in the gutter: the background of its place. */
    async function lit(/** @type {string} */ state) {
        await page.waitForFunction((icon) => {
            const places = Array.from(document.querySelectorAll(".monaco-editor .cgmr"));
            return places.some((place) => getComputedStyle(place).backgroundImage.includes(icon));
        }, `${state}.svg`);
    }
    await lit("every");
    await seen("lights");

    await command("Roundelay: Show picture");
    const webview = page.frameLocator("iframe.webview").frameLocator("#active-frame");
    const picture = webview.locator("body > svg");
    await picture.waitFor();
    assert.match(await picture.locator("> title").innerHTML(), /^RingAllReduce, 4 ranks/);
    await seen("picture");
    await picture.hover();
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -100);
    await page.keyboard.up("Control");
    const place = () => picture.evaluate((svg) => [svg.getAttribute("style"), scrollX]);
    const before = await place();
    assert.ok(Number(before[1]) > 0);

    const text = page.locator(".monaco-editor .view-lines").first();
    await text.click();
    await page.keyboard.press("Control+End");
    await page.keyboard.type("\nalgorithm Wrong() -> AllReduce {\ncpy(local.input, local.output);");
    await page.locator(".squiggly-error").first().waitFor();
    const told = page.locator(".monaco-hover:visible", { hasText: "E0101" }).first();
    // The editor drops a hover while it still takes in the new text.
    for (const until = Date.now() + EACH; !(await told.isVisible()); ) {
        assert.ok(Date.now() < until, "no hover tells of E0101");
        for (const keys of ["Home", "Control+K", "Control+I"]) await page.keyboard.press(keys);
        await setTimeout(1_000);
    }
    await seen("error");
    await told.locator("a", { hasText: "E0101" }).first().click();
    await page.locator(".tab", { hasText: "E0101.md" }).waitFor();
    await page.locator(".view-line", { hasText: /^#\sE0101:/ }).first().waitFor();
    await seen("page");
    await page.locator(".tab", { hasText: "ring.coll" }).first().click();
    await page.locator(".view-line", { hasText: "cpy(local.input" }).first().waitFor();

    await page.keyboard.press("Control+S");
    await webview.locator(".failed", { hasText: "error[E0101]" }).waitFor();
    await webview.locator(".old svg").waitFor();
    await seen("old-picture");

    await lit("broken");

    await text.click();
    for (let undone = 0; undone < 30; undone++) await page.keyboard.press("Control+Z");
    await page.keyboard.press("Control+Home");
    await page.locator(".codelens-decoration a", { hasText: "simulate" }).first().click();
    await picture.waitFor();
    await setTimeout(500);
    assert.deepEqual(await place(), before);
    assert.equal(await page.locator("iframe.webview").count(), 1);
    await seen("same-picture");

    await lit("every");
    await command("Roundelay: Run on the host");
    await webview.locator("pre", { hasText: "0 of 4,194,304 elements wrong" }).waitFor();
    await seen("run");
}

const lacks = !COMMAND ? "COMMAND names no command" : !server ? "code-server is not on this machine" : "";
const why = lacks || (browser ? "" : "no Chromium is on this machine");
if (why) {
    console.log(`left out: ${why}`);
} else {
    const stop = () => end().finally(() => process.exit(1));
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, stop);
    setTimeout(ALL, undefined, { ref: false }).then(stop);
    try {
        await main(String(server), String(browser));
    } finally {
        await end();
    }
}
