// @ts-check
// The settings of the extension.
import * as vscode from "vscode";

export function setting(/** @type {string} */ name) {
    return vscode.workspace.getConfiguration("roundelay").get(name);
}

/** Returns the command that serves the editor. */
export function command() {
    return String(setting("command") ?? "roundelay");
}
