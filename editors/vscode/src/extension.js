// @ts-check
// The extension: starts the language server, and shows the picture, the steps or the kernel of the program at hand.
import { execFile } from "node:child_process";
import * as vscode from "vscode";
import { LanguageClient } from "vscode-languageclient/node";
import { page, VIEWS } from "./calls.js";

/** @type {LanguageClient | undefined} */
let client;

function setting(/** @type {string} */ name) {
    return vscode.workspace.getConfiguration("roundelay").get(name);
}

function command() {
    return String(setting("command") ?? "roundelay");
}

/** Runs the command; the result of one that does not start is its error. */
function run(/** @type {string[]} */ args) {
    return new Promise((resolve) => {
        execFile(command(), args, { timeout: 60_000, maxBuffer: 64 << 20 }, (error, out, err) => {
            const code = error ? (typeof error.code === "number" ? error.code : 1) : 0;
            resolve({ code, out, err: err || (error && code === 1 && !out ? `${error.message}\n` : err) });
        });
    });
}

/** Shows a view beside the program, and again whenever the program is saved. */
async function show(/** @type {keyof VIEWS} */ name) {
    const document = vscode.window.activeTextEditor?.document;
    if (document?.languageId !== "coll") {
        vscode.window.showInformationMessage("Roundelay shows this for a .coll file: open one.");
        return;
    }
    await document.save();
    const { title, args } = VIEWS[name];
    const file = document.uri.fsPath;
    const label = `${title} of ${document.uri.path.split("/").at(-1)}`;
    const panel = vscode.window.createWebviewPanel(`roundelay.${name}`, label, vscode.ViewColumn.Beside);
    const draw = async () => {
        const settings = {
            nranks: Number(setting("nranks") ?? 4),
            topology: String(setting("topology") ?? ""),
            bytes: String(setting("bytes") ?? "1M"),
        };
        panel.webview.html = page(await run(args(file, settings)));
    };
    const saved = vscode.workspace.onDidSaveTextDocument(({ uri }) => {
        if (uri.fsPath === file) draw();
    });
    panel.onDidDispose(() => saved.dispose());
    await draw();
}

export async function activate(/** @type {vscode.ExtensionContext} */ context) {
    for (const name of /** @type {(keyof VIEWS)[]} */ (Object.keys(VIEWS))) {
        context.subscriptions.push(vscode.commands.registerCommand(`roundelay.${name}`, () => show(name)));
    }
    const executable = { command: command(), args: ["lsp"] };
    const selector = [{ language: "coll" }];
    client = new LanguageClient("roundelay", "Roundelay", executable, { documentSelector: selector });
    try {
        await client.start();
    } catch {
        const what = `\`${command()} lsp\` does not start: install the command, or set roundelay.command to its path.`;
        vscode.window.showErrorMessage(what);
    }
}

export function deactivate() {
    return client?.stop();
}
