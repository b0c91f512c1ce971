// @ts-check
// The loader: gives the programs of a page their buttons. The editor and the command load when a reader uses them.

// The build puts the slugs of the exercises here, by their pages.
/* global EXERCISES */

const root = new URL(".", import.meta.url);

/** @returns {Promise<any>} */
function editor() {
    if (!document.getElementById("coll-style")) {
        const style = document.createElement("link");
        style.id = "coll-style";
        style.rel = "stylesheet";
        style.href = new URL("playground.css", root).href;
        document.head.append(style);
    }
    return import(new URL("editor.js", root).href);
}

/**
 * Makes a button that loads the editor and then acts.
 * @param {string} text
 * @param {(editor: any, button: HTMLButtonElement) => void} act
 */
function button(text, act) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.addEventListener("click", async () => {
        made.disabled = true;
        try {
            act(await editor(), made);
        } catch (error) {
            made.title = `The editor did not load: ${error}`;
        }
        made.disabled = false;
    });
    return made;
}

/** Gives a program its button, beside those of the book. The command in the browser takes no executors. */
function addEdit(code) {
    if (!/\balgorithm\s+\w/.test(code.textContent)) return;
    const pre = code.parentElement;
    let row = pre.querySelector(".buttons");
    if (!row) {
        row = document.createElement("div");
        row.className = "buttons";
        pre.prepend(row);
    }
    const made = button("Edit", (loaded, edit) => loaded.open(code, root, edit));
    made.className = "coll-edit";
    made.title = "Edit this program, and check it here";
    made.setAttribute("aria-label", "Edit this program");
    row.prepend(made);
}

/** Gives an exercise its button, behind the text that asks and before the solution. */
function addTry(page, slug) {
    const heading = document.getElementById(slug);
    if (!heading) return;
    let last = heading;
    for (let next = last.nextElementSibling; next && !/^(H[123]|DETAILS)$/.test(next.tagName);) {
        last = /** @type {HTMLElement} */ (next);
        next = next.nextElementSibling;
    }
    const place = document.createElement("div");
    place.className = "coll-exercise";
    const made = button("Try it", (loaded, tried) => loaded.attempt(page, slug, place, root, tried));
    made.className = "coll-try";
    made.setAttribute("aria-label", `Try it: ${heading.textContent?.trim()}`);
    place.append(made);
    last.after(place);
}

function start() {
    const page = location.href.replace(/[?#].*/, "").replace(root.href, "");
    // A browser gives no worker to a page that is opened as a file, and the page of all pages is for paper.
    if (location.protocol === "file:" || page === "print.html") return;
    const style = document.createElement("style");
    style.textContent = STYLE;
    document.head.append(style);
    document.querySelectorAll("pre > code.language-coll:not(.fragment)").forEach(addEdit);
    // @ts-ignore The build defines the name.
    for (const slug of EXERCISES[page] ?? []) addTry(page, slug);
    const place = document.getElementById("playground-editor");
    if (place) editor().then((loaded) => loaded.playground(place, root));
}

/** The style of the buttons, which are there before the rest of the style. A program ends in a short line: the buttons
 * lie there, and not over its first line. */
const STYLE = `
pre > .buttons button.coll-edit { font: inherit; font-size: 1.3rem; line-height: 20px; padding: 1px 8px;
    vertical-align: bottom; color: var(--links); }
pre > .buttons:has(.coll-edit) { visibility: visible; opacity: 1; top: auto; bottom: 2px; }
.coll-try { font: inherit; color: var(--links); background: var(--quote-bg); border: 1px solid var(--quote-border);
    border-radius: 4px; padding: 4px 14px; cursor: pointer; }
.coll-try:hover, .coll-try:focus-visible { border-color: var(--links); }`;

start();
