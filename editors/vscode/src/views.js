// @ts-check
// The views beside a program: a panel for each view of each file, made anew at each save.
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import { around, call, VIEWS } from "./calls.js";
import { page } from "./page.js";
import { command, setting } from "./settings.js";

/**
 * @typedef {import("./page.js").Result} Result
 * @typedef {{ panel: vscode.WebviewPanel, draw: (algorithm: string | undefined) => Promise<void> }} Open
 */

/** The panels that are open, by their views and files. */
const panels = /** @type {Map<string, Open>} */ (new Map());

/**
 * Runs the command; the result of one that does not start is its error.
 * @param {string[]} args
 * @param {AbortSignal} signal
 * @returns {Promise<Result>}
 */
function run(args, signal) {
    return new Promise((resolve) => {
        execFile(command(), args, { signal, timeout: 60_000, maxBuffer: 64 << 20 }, (error, out, err) => {
            const code = error ? (typeof error.code === "number" ? error.code : 1) : 0;
            resolve({ code, out, err: err || (error && code === 1 && !out ? `${error.message}\n` : err) });
        });
    });
}

/** Returns the algorithm at the cursor of an editor, if its program has several. */
async function chosen(/** @type {vscode.TextEditor} */ { document, selection }) {
    const symbols = /** @type {vscode.DocumentSymbol[] | undefined} */ (
        await vscode.commands.executeCommand("vscode.executeDocumentSymbolProvider", document.uri)
    );
    const algorithms = (symbols ?? []).filter(({ kind }) => kind === vscode.SymbolKind.Function);
    const headers = algorithms.map(({ name, range }) => ({ name, line: range.start.line }));
    return headers.length > 1 ? around(headers, selection.active.line) : undefined;
}

/**
 * Shows a view of an algorithm of a program, or of the one at the cursor, and again whenever the program is saved.
 * @param {import("./calls.js").View} view
 * @param {string} [uri]
 * @param {string} [algorithm]
 */
export async function show(view, uri, algorithm) {
    const editor = vscode.window.activeTextEditor;
    const document = uri ? await vscode.workspace.openTextDocument(vscode.Uri.parse(uri)) : editor?.document;
    if (document?.languageId !== "coll") {
        vscode.window.showInformationMessage("Roundelay shows this for a .coll file: open one.");
        return;
    }
    const one = algorithm ?? (editor?.document === document ? await chosen(editor) : undefined);
    await document.save();
    const file = document.uri.fsPath;
    const key = `${view} ${file}`;
    const open = panels.get(key) ?? opened(view, file, () => panels.delete(key));
    panels.set(key, open);
    open.panel.title = `${VIEWS[view].title} of ${one ?? document.uri.path.split("/").at(-1)}`;
    open.panel.reveal(undefined, true);
    await open.draw(one);
}

/**
 * Opens the panel of a view of a file.
 * @param {import("./calls.js").View} view
 * @param {string} file
 * @param {() => void} closed
 * @returns {Open}
 */
function opened(view, file, closed) {
    const beside = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
    const panel = vscode.window.createWebviewPanel(`roundelay.${view}`, "", beside, { enableScripts: true });
    /** The algorithm that was drawn last. */
    let drawn = /** @type {string | undefined} */ (undefined);
    /** The last result that was no error. */
    let last = /** @type {Result | undefined} */ (undefined);
    let running = new AbortController();
    async function draw(/** @type {string | undefined} */ algorithm) {
        running.abort();
        const { signal } = (running = new AbortController());
        if (algorithm !== drawn) last = undefined;
        drawn = algorithm;
        const settings = {
            nranks: Number(setting("nranks") ?? 4),
            topology: String(setting("topology") ?? ""),
            bytes: String(setting("bytes") ?? "1M"),
        };
        const result = await run(call(view, file, settings, algorithm), signal);
        if (signal.aborted) return;
        panel.webview.html = page(result, last, randomUUID());
        if (result.code === 0) last = result;
    }
    const saved = vscode.workspace.onDidSaveTextDocument(({ uri }) => {
        if (uri.fsPath === file) draw(drawn);
    });
    panel.onDidDispose(() => {
        saved.dispose();
        running.abort();
        closed();
    });
    return { panel, draw };
}
