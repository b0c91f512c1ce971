// @ts-check
// A bench: the editor of one program, its controls, and the views of its results.
import * as calls from "./calls.js";
import { codeEditor } from "./code_editor.js";
import { Superseded, run } from "./commands.js";
import { controls } from "./controls.js";
import { marks } from "./diagnostics.js";
import { element, keepKeys, unique } from "./dom.js";
import { fetchUsed } from "./listing.js";
import { baseName, folderOf, resolved } from "./paths.js";
import { encode } from "./share.js";
import { tabs } from "./tabs.js";
import { kind, picture, printed, summary, transcript } from "./views.js";

/** The time between the last key and the check, in milliseconds. */
const PAUSE = 300;
/** The time after which a check says that it goes on, in milliseconds. */
const SLOW = 500;

const VERDICT = "Verdict";
const STEPS = "Steps";
const PICTURE = "Picture";

/**
 * Makes a bench in `host` and checks its program.
 * @param {HTMLElement} host
 * @param {calls.Program} program
 * @param {URL} root the book's root
 * @param {{ close?: () => void, checked?: (bench: any) => void }} [options] `close` gives the bench a button that
 *     closes it; `checked` is called after each check.
 */
export function bench(host, program, root, { close, checked } = {}) {
    const files = { ...program.files };
    let start = program;
    /** The report of the last check, as `--format json` prints it. */
    let report = /** @type {any} */ (null);
    let newest = new AbortController();
    let timer = /** @type {any} */ (0);

    const hint = element(
        "p",
        { class: "coll-hint", id: unique("hint") },
        "Tab indents. Escape leaves the editor. F8 goes to the next error.",
    );
    const place = element("div", { class: "coll-code hljs" });
    const status = element("p", { class: "coll-status", role: "status", "aria-live": "polite" });
    const says = element("span", { class: "coll-said", role: "status", "aria-live": "polite" });
    const views = tabs([VERDICT, STEPS, PICTURE], (name) => draw(name));
    const fields = controls(program, {
        changed: () => later(),
        actions: [
            ["Format", format],
            ["Reset", reset],
            ["Link", link],
            .../** @type {[string, () => void][]} */ (close ? [["Close", close]] : []),
        ],
    });
    fields.row.append(says);
    const section = element(
        "section",
        { class: "coll-bench", "aria-label": `Program ${baseName(program.name)}` },
        place,
        hint,
        fields.row,
        fields.machine,
        status,
        views.row,
        views.panel,
    );
    keepKeys(section);
    host.append(section);
    const editor = codeEditor(place, {
        text: program.text,
        label: `Program ${baseName(program.name)}`,
        describedBy: hint.id,
        changed: () => later(),
        left: () => fields.ranks.focus(),
    });

    /** Returns the program as it is now. */
    function now() {
        return { ...start, text: editor.text, nranks: fields.nranks, topology: fields.topology, files };
    }

    /** Runs a command on the program as it is now. */
    function command(args, signal = newest.signal) {
        const { folder, name } = start;
        return run({ args, folder, files: { ...files, [resolved(folder, name)]: editor.text } }, signal);
    }

    /** Sets the state, and the line of status where it has a text: a screen reader reads each new line. */
    function tell(state, text) {
        section.dataset.state = state;
        if (text) status.textContent = text;
    }

    function later() {
        clearTimeout(timer);
        newest.abort();
        newest = new AbortController();
        tell("waiting");
        timer = setTimeout(refresh, PAUSE);
    }

    /** The verdict of the last check. */
    let verdict = "";

    async function refresh() {
        clearTimeout(timer);
        newest.abort();
        newest = new AbortController();
        const { signal } = newest;
        if (fields.wrong) {
            tell("refused", "The rank count is a number from 2 to 64.");
            // The results of another rank count would belong to nothing.
            views.panel.replaceChildren();
            return;
        }
        tell("running");
        const slow = setTimeout(() => tell("running", "checking …"), SLOW);
        try {
            await fetchUsed(editor.text, folderOf(resolved(start.folder, start.name)), files, root);
            const args = calls.check(now());
            const result = await command(args, signal);
            verdict = printed(result);
            if (result.stopped) report = null;
            else report = read((await command([...args, "--format", "json"], signal)).out);
            editor.mark(marks(editor.view.state.doc, start.name, report?.diagnostics ?? [], root));
            section.dataset.ms = String(Math.round(result.ms));
            clearTimeout(slow);
            tell(kind(result), summary(result, verdict));
            draw(views.selected);
            checked?.(self);
        } catch (error) {
            failed(error);
        } finally {
            clearTimeout(slow);
        }
    }

    function failed(error) {
        if (error instanceof Superseded) return;
        tell("stopped", "The command did not load.");
        views.panel.replaceChildren(transcript(`${error}\n`));
    }

    /** Fills the panel of results. */
    async function draw(name) {
        const { signal } = newest;
        if (name === VERDICT) {
            views.panel.replaceChildren(transcript(verdict, root));
            return;
        }
        try {
            views.panel.setAttribute("aria-busy", "true");
            const program = now();
            const args = name === STEPS ? calls.steps(program, report) : calls.picture(program, report, "--svg");
            const result = await command(args, signal);
            if (views.selected !== name) return;
            if (name === STEPS) {
                views.panel.replaceChildren(transcript(printed(result)));
                return;
            }
            views.panel.replaceChildren(picture(result, `Run of ${baseName(start.name)}`));
            if (!program.topology) return;
            const links = await command(calls.picture(program, report, "--links"), signal);
            const label = `Load of the links of ${program.topology}`;
            if (views.selected === name && links.code === 0) views.panel.append(picture({ ...links, err: "" }, label));
        } catch (error) {
            failed(error);
        } finally {
            views.panel.removeAttribute("aria-busy");
        }
    }

    async function format() {
        try {
            const result = await run({ args: ["fmt", "-"], stdin: editor.text }, newest.signal);
            if (result.code === 0) {
                editor.text = result.out;
                say("formatted");
            } else {
                say("not formatted: the text has an error");
            }
        } catch (error) {
            failed(error);
        }
    }

    function reset() {
        editor.text = start.text;
        fields.reset();
        say("reset");
        refresh();
    }

    async function link() {
        const { text, name, folder, nranks, topology, rest } = now();
        const fragment = await encode({ text, name, folder, nranks, topology, rest, files });
        const address = new URL(`playground.html${fragment}`, root).href;
        section.dataset.link = address;
        try {
            await navigator.clipboard.writeText(address);
            say("copied");
        } catch {
            // Without the clipboard, the reader copies the address from a prompt.
            window.prompt("Address of this program", address);
        }
    }

    function say(text) {
        says.textContent = text;
        setTimeout(() => {
            if (says.textContent === text) says.textContent = "";
        }, 4000);
    }

    const self = {
        section,
        command,
        now,
        refresh,
        say,
        focus: () => editor.focus(),
        get report() {
            return report;
        },
        /** Takes another program in place of this one. */
        load(/** @type {calls.Program} */ next) {
            if (editor.text !== start.text) say("Undo in the editor brings your program back");
            start = next;
            for (const path of Object.keys(files)) delete files[path];
            Object.assign(files, next.files);
            section.setAttribute("aria-label", `Program ${baseName(next.name)}`);
            editor.text = next.text;
            fields.set(next);
            refresh();
        },
        end() {
            clearTimeout(timer);
            newest.abort();
            editor.view.destroy();
            section.remove();
        },
    };
    refresh();
    return self;
}

/** Reads a report; `null` where the command printed none. */
function read(text) {
    try {
        return JSON.parse(text);
    } catch {
        return null;
    }
}
