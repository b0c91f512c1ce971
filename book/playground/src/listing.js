// @ts-check
// The facts of a program in a page: its file, its text, and the command that the page shows for it.
import { baseName, folderOf, resolved } from "./paths.js";

/** Returns the words of the comment that stands before an element, such as `include coll ../listings/x/y.coll`. */
function directive(element) {
    let node = element.previousSibling;
    while (node && node.nodeType === Node.TEXT_NODE && !node.textContent?.trim()) node = node.previousSibling;
    return node?.nodeType === Node.COMMENT_NODE ? (node.textContent ?? "").trim().split(/\s+/) : [];
}

/** Returns the words of a command line, of which one in double quotes may hold blanks. */
export function words(line) {
    const parts = line.replace(/^\$ /, "").replaceAll("\\\n", " ").split('"');
    return parts.flatMap((part, i) => (i % 2 ? [part] : part.split(/\s+/).filter(Boolean)));
}

/** Returns the commands of a transcript: a line, and the lines behind it while they end in a backslash. */
export function commands(text) {
    return [...text.matchAll(/^\$ (?:[^\n]*\\\n)*[^\n]*/gm)].map((found) => found[0]);
}

/** Flags that have a control of their own. */
const CONTROLS = new Map([
    ["-n", "nranks"],
    ["--nranks", "nranks"],
    ["--topology", "topology"],
]);

/**
 * Returns the flags of `roundelay check FILE …`: those with controls by their names, and the rest.
 * @param {string[]} args the words behind the file
 */
export function flags(args) {
    const found = { nranks: "", topology: "", rest: /** @type {string[]} */ ([]) };
    for (let i = 0; i < args.length; i++) {
        const name = CONTROLS.get(args[i]);
        if (name) found[name] = args[++i] ?? "";
        else found.rest.push(args[i]);
    }
    return found;
}

/**
 * Returns the file and the flags of the first check of `name` that the page shows below the program, before the next
 * program. A file that the command names by a path has the folder of the console, from which the path leads.
 * @param {Element} block
 * @param {string} name
 */
function shown(block, name) {
    const all = [...document.querySelectorAll("code.language-coll:not(.fragment), code.language-console")];
    for (const code of all.slice(all.indexOf(block) + 1)) {
        if (!code.classList.contains("language-console")) break;
        for (const command of commands(code.textContent ?? "")) {
            const [tool, subcommand, file = "", ...args] = words(command);
            if (tool !== "roundelay" || subcommand !== "check" || baseName(file) !== name) continue;
            const console = directive(code.parentElement)[2] ?? "";
            return { ...(file.includes("/") && { name: file, folder: folderOf(console) }), ...flags(args) };
        }
    }
    return flags([]);
}

/**
 * Returns the program of a block of code.
 * @param {HTMLElement} block
 * @param {URL} root the book's root
 * @returns {import("./calls.js").Program}
 */
export function program(block, root) {
    const [kind, info, path] = directive(block.parentElement);
    const file = kind === "include" ? path : kind === "wrong" ? `${info}.coll` : "program.coll";
    const name = baseName(file);
    const facts = { text: block.textContent ?? "", name, folder: kind === "include" ? folderOf(file) : "" };
    const found = { ...facts, ...shown(block, name) };
    // The folders of directives are named from the page.
    const page = folderOf(location.href.replace(/[?#].*/, "").replace(root.href, ""));
    return { ...found, folder: found.folder && resolved(page, found.folder) };
}

/** Paths that the book does not have; a file that is not there is asked for once. */
const missing = new Set();

/**
 * Fetches the files that a program uses, and those that these files use; `files` gets their texts by their paths.
 * @param {string} text
 * @param {string} folder
 * @param {Record<string, string>} files
 * @param {URL} root
 */
export async function fetchUsed(text, folder, files, root) {
    for (const [, name] of text.matchAll(/^\s*use\s*"([^"\n]+)"/gm)) {
        const path = resolved(folder, name);
        if (path in files || missing.has(path) || !path.endsWith(".coll")) continue;
        const response = await fetch(new URL(path, root));
        if (!response.ok) {
            missing.add(path);
            continue;
        }
        files[path] = await response.text();
        await fetchUsed(files[path], folderOf(path), files, root);
    }
}
