// @ts-check
// The lights of the proofs in the gutter, for every editor that shows a program.
import * as vscode from "vscode";
import { State } from "vscode-languageclient/node";
import { lights, STATES } from "./lights.js";

/** @typedef {import("./lights.js").Proof} Proof */

/**
 * Shows the lights of the notices that a client gets; they go with the extension.
 * @param {vscode.ExtensionContext} context
 * @param {import("vscode-languageclient/node").LanguageClient} client
 */
export function gutter({ extensionUri, subscriptions }, client) {
    const kinds = Object.entries(STATES).map(([state, color]) => {
        const kind = vscode.window.createTextEditorDecorationType({
            gutterIconPath: vscode.Uri.joinPath(extensionUri, "icons", `${state}.svg`),
            gutterIconSize: "contain",
            after: { color: new vscode.ThemeColor(color), margin: "0 0 0 2em" },
        });
        return { state: /** @type {import("./lights.js").State} */ (state), kind };
    });
    /** The last notice of each open text. */
    const proofs = /** @type {Map<string, Proof>} */ (new Map());

    function show(editors = vscode.window.visibleTextEditors) {
        for (const editor of editors) {
            const proof = proofs.get(editor.document.uri.toString());
            // A text that has changed since gets a notice of its own.
            if (proof && proof.version !== editor.document.version) continue;
            const lit = lights(proof);
            for (const { state, kind } of kinds) {
                const decorations = lit[state].map(({ range, after, hover }) => ({
                    range: client.protocol2CodeConverter.asRange(range),
                    hoverMessage: new vscode.MarkdownString().appendText(hover),
                    renderOptions: { after: { contentText: after } },
                }));
                editor.setDecorations(kind, decorations);
            }
        }
    }

    subscriptions.push(
        ...kinds.map(({ kind }) => kind),
        client.onNotification("roundelay/proof", (/** @type {Proof} */ proof) => {
            proofs.set(client.protocol2CodeConverter.asUri(proof.uri).toString(), proof);
            show();
        }),
        client.onDidChangeState(({ newState }) => {
            if (newState !== State.Stopped) return;
            proofs.clear();
            show();
        }),
        vscode.window.onDidChangeVisibleTextEditors(show),
        vscode.workspace.onDidCloseTextDocument(({ uri }) => {
            proofs.delete(uri.toString());
            show();
        }),
    );
}
