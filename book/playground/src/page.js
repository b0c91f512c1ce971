// @ts-check
// The page of the playground: one program over the whole width, or two beside each other with their simulated times.
import FIRST_RING from "../../src/listings/one_ring/ring.coll";
import { bench } from "./bench.js";
import { exported, FORMS } from "./calls.js";
import { Line, Superseded, run } from "./commands.js";
import { comparison } from "./comparison.js";
import { button, download, element, keepKeys, unique } from "./dom.js";
import { baseName } from "./paths.js";
import { decode } from "./share.js";

/** The program that the page shows first. */
const FIRST = {
    text: FIRST_RING,
    name: "program.coll",
    ...plain(),
};

/** Returns the flags of a program that has none. */
function plain() {
    return { folder: "", nranks: "", topology: "", rest: /** @type {string[]} */ ([]) };
}

/** Returns the program of the page's address; `null` where it has none. */
async function addressed() {
    const shared = await decode(location.hash);
    if (!shared) return null;
    const { text, name, folder, nranks, topology, rest, files } = shared;
    const words = Array.isArray(rest) ? rest.map(String) : [];
    const known = files && typeof files === "object" ? files : {};
    const flags = { nranks: String(nranks ?? ""), topology: String(topology ?? ""), rest: words };
    return { text, name: String(name ?? "program.coll"), folder: String(folder ?? ""), ...flags, files: known };
}

/** The algorithms of the library, by their collectives. */
let library = /** @type {Promise<Map<string, string[]>> | undefined} */ (undefined);

/** Reads the list of the library: this takes some seconds, and so it has a worker and a limit of its own. */
async function readLibrary() {
    const line = new Line(60_000);
    const { out } = await line.run({ args: ["list", "--format", "json"] });
    line.end();
    const found = new Map();
    for (const { name, collective } of JSON.parse(out)) {
        found.set(collective, [...(found.get(collective) ?? []), name]);
    }
    return found;
}

/** The programs of the museum by their file names. */
let museum = /** @type {Promise<Record<string, string>> | undefined} */ (undefined);

/** Makes the list of programs to begin with; `pick` takes the one that the reader selects. */
function programs(root, pick, label) {
    const name = unique("programs");
    const select = element("select", { id: name, class: "coll-input" }, element("option", { value: "" }, "loading …"));
    const row = element("div", { class: "coll-controls" }, element("label", { for: name }, label), select);

    /** Makes a group of the list; an entry is a value and the text that is shown. */
    function group(label, entries) {
        const options = entries.map(([value, text]) => element("option", { value }, text));
        return element("optgroup", { label }, ...options);
    }

    async function fill() {
        library ??= readLibrary();
        museum ??= fetch(new URL("museum.json", root)).then((response) => response.json());
        const files = Object.keys(await museum);
        const shown = (file) => file.replace(/\.coll$/, "").replaceAll("_", " ");
        const bugs = group(
            "Museum of real bugs",
            files.map((file) => [`museum ${file}`, shown(file)]),
        );
        select.append(bugs);
        try {
            for (const [collective, names] of await library) {
                const entries = names.map((one) => [`library ${one}`, one]);
                select.insertBefore(group(collective, entries), bugs);
            }
        } catch {
            // The museum is there without the library, and the next list tries again.
            library = undefined;
        }
        select.options[0].textContent = "choose a program …";
    }

    select.addEventListener("change", async () => {
        const [kind, chosen] = select.value.split(" ");
        if (kind === "library") {
            const { out } = await run({ args: ["emit", "coll", chosen] });
            pick({ text: out, name: `${chosen}.coll`, ...plain() });
        } else if (kind === "museum") {
            pick({ text: (await /** @type {any} */ (museum))[chosen], name: chosen, ...plain() });
        }
    });
    return { row, fill };
}

/** Makes the buttons that give the reader a form of the program as a file. */
function exportsOf(made) {
    const said = element("span", { class: "coll-said", role: "status", "aria-live": "polite" });
    const error = element("pre", { class: "coll-transcript", hidden: true });
    async function give({ form, says, extension }) {
        const program = made.now();
        try {
            const result = await made.command(exported(program, made.report, form));
            const good = result.code === 0;
            error.hidden = good;
            error.textContent = good ? "" : result.text || "stopped after 10 s\n";
            const file = `${baseName(program.name).replace(/\.coll$/, "")}.${extension}`;
            if (good) download(file, result.out);
            said.textContent = good ? `${file} is ready` : `no ${says}`;
        } catch (why) {
            if (!(why instanceof Superseded)) said.textContent = String(why);
        }
    }
    const buttons = FORMS.map((form) => button(form.says, () => give(form)));
    const row = element("div", { class: "coll-controls" }, element("span", {}, "Export"), ...buttons, said);
    return element("div", {}, row, error);
}

/** Makes a column: the list of programs, the bench and its exports. */
function column(program, root, label) {
    const place = element("div", { class: "coll-column" });
    // The list is read when the first verdict is there.
    let filled = false;
    const checked = () => {
        if (!filled) list.fill();
        filled = true;
    };
    const made = bench(place, program, root, { checked });
    const list = programs(root, (next) => made.load(next), label);
    place.prepend(list.row);
    place.append(exportsOf(made));
    return { place, made };
}

/**
 * Fills the page of the playground.
 * @param {HTMLElement} place
 * @param {URL} root the book's root
 */
export async function playground(place, root) {
    const first = column((await addressed()) ?? FIRST, root, "Program");
    const columns = element("div", { class: "coll-columns" }, first.place);
    const compare = button("Compare with a second program", () => {
        const second = column(FIRST, root, "Second program");
        columns.append(second.place);
        const { section, end } = comparison([first.made, second.made]);
        const less = button("One program", () => {
            end();
            second.made.end();
            second.place.remove();
            less.remove();
            compare.hidden = false;
            compare.focus();
        });
        compare.hidden = true;
        place.append(less, section);
        less.focus();
    });
    place.replaceChildren(columns, compare);
    place.classList.add("coll-playground");
    keepKeys(place);
    window.addEventListener("hashchange", async () => {
        const next = await addressed();
        if (next) first.made.load(next);
    });
}
