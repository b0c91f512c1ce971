// @ts-check
// The facts of a program in a page: its file, its text, and the command that the page shows for it.

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
 * Returns the flags of the first check of `name` that the page shows below the program, before the next program.
 * @param {Element} block
 * @param {string} name
 */
function shown(block, name) {
    const all = [...document.querySelectorAll("code.language-coll:not(.fragment), code.language-console")];
    for (const code of all.slice(all.indexOf(block) + 1)) {
        if (!code.classList.contains("language-console")) break;
        for (const command of commands(code.textContent ?? "")) {
            const [tool, subcommand, file, ...args] = words(command);
            if (tool === "roundelay" && subcommand === "check" && file === name) return flags(args);
        }
    }
    return flags([]);
}

/**
 * Returns the program of a block of code.
 * @param {HTMLElement} block
 * @param {URL} root the book's root
 */
export function program(block, root) {
    const pre = /** @type {HTMLElement} */ (block.parentElement);
    const [kind, info, path] = directive(pre);
    const text = block.textContent ?? "";
    let file = "program.coll";
    if (kind === "include" && info === "coll") file = path;
    if (kind === "wrong") file = `${info}.coll`;
    const name = file.split("/").pop() ?? file;
    // The path below the book's root; a file outside of the book is not fetched, and so its folder does not matter.
    const inside = new URL(file, location.href).href.replace(root.href, "");
    const folder = kind === "include" && !inside.includes(":") ? inside.split("/").slice(0, -1).join("/") : "";
    return { text, name, folder, ...shown(block, name) };
}

/** Returns the path `name` from a folder, without `..`. */
function joined(folder, name) {
    return new URL(name, `file:///${folder ? `${folder}/` : ""}`).pathname.slice(1);
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
        const path = joined(folder, name);
        if (path in files || missing.has(path) || !path.endsWith(".coll")) continue;
        const response = await fetch(new URL(path, root));
        if (!response.ok) {
            missing.add(path);
            continue;
        }
        files[path] = await response.text();
        await fetchUsed(files[path], path.split("/").slice(0, -1).join("/"), files, root);
    }
}
