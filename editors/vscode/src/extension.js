// @ts-check
// The extension: starts the language server, lights its proofs, and shows views of the program at hand.
import * as vscode from "vscode";
import { LanguageClient } from "vscode-languageclient/node";
import { VIEWS } from "./calls.js";
import { gutter } from "./gutter.js";
import { command, setting } from "./settings.js";
import { show } from "./views.js";

/** @type {LanguageClient | undefined} */
let client;

export async function activate(/** @type {vscode.ExtensionContext} */ context) {
    for (const view of /** @type {import("./calls.js").View[]} */ (Object.keys(VIEWS))) {
        // The server's lenses name the text and the algorithm.
        const shown = (/** @type {unknown} */ uri, /** @type {unknown} */ algorithm) => {
            return typeof uri === "string" ? show(view, uri, algorithm ? String(algorithm) : undefined) : show(view);
        };
        context.subscriptions.push(vscode.commands.registerCommand(`roundelay.${view}`, shown));
    }
    const executable = { command: command(), args: ["lsp"] };
    client = new LanguageClient("roundelay", "Roundelay", executable, {
        documentSelector: [{ language: "coll" }],
        initializationOptions: { proofs: true, lenses: true, explain: true, hints: setting("hints") },
        synchronize: { configurationSection: "roundelay" },
    });
    gutter(context, client);
    pages(context, client);
    try {
        await client.start();
    } catch {
        const what = `\`${command()} lsp\` does not start: install the command, or set roundelay.command to its path.`;
        vscode.window.showErrorMessage(what);
    }
}

/** Shows the page of a code, such as `roundelay-explain:/E0306.md`, to which the code of each error is a link. */
function pages(/** @type {vscode.ExtensionContext} */ { subscriptions }, /** @type {LanguageClient} */ client) {
    const provideTextDocumentContent = (/** @type {vscode.Uri} */ { path }) => {
        return client.sendRequest("roundelay/explain", { code: path.replace(/^\/|\.md$/g, "") });
    };
    const provider = /** @type {vscode.TextDocumentContentProvider} */ ({ provideTextDocumentContent });
    subscriptions.push(vscode.workspace.registerTextDocumentContentProvider("roundelay-explain", provider));
}

export function deactivate() {
    return client?.stop();
}
