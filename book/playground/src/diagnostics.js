// @ts-check
// Diagnostics of `check --format json` as marks of the editor.
import { element } from "./dom.js";

/**
 * @typedef {{ line: number, column: number, end_line?: number, end_column?: number }} Place
 * @typedef {Place & { label: string, file?: string }} Label
 * @typedef {Place & { code: string, severity: string, title: string, file: string, nranks: number | null,
 *     label: string, others: Label[], notes: string[], help: string | null }} Report
 */

/** Returns the position of a line and column; the command counts letters from 1, the editor counts UTF-16 units. */
function position(doc, line, column) {
    if (line > doc.lines) return doc.length;
    const { from, text } = doc.line(Math.max(1, line));
    return (
        from +
        Array.from(text)
            .slice(0, column - 1)
            .join("").length
    );
}

/** Returns the ends of a place, at least one letter apart where the line has one. */
function ends(doc, place) {
    const from = position(doc, place.line, place.column);
    const line = doc.lineAt(from);
    let to = place.end_line ? position(doc, place.end_line, place.end_column) : line.from + line.text.trimEnd().length;
    if (to <= from) to = Math.min(from + 1, line.to);
    return to > from ? { from, to } : { from: Math.max(line.from, from - 1), to: from };
}

/** Returns the place of `use "FILE"` for a report of another file than the editor's. */
function usePlace(doc, file) {
    const name = file.split("/").pop() ?? file;
    for (let number = 1; number <= doc.lines; number++) {
        const { text } = doc.line(number);
        if (/^\s*use\s*"/.test(text) && text.includes(name)) {
            return { line: number, column: 1, end_line: number, end_column: text.length + 1 };
        }
    }
    return { line: 1, column: 1 };
}

/** Draws the whole message of a report, with a link to the page of its code. */
function message(report, root) {
    const link = element("a", { href: new URL(`errors/${report.code}.html`, root).href }, report.code);
    const notes = report.notes.map((note) => element("li", {}, note));
    if (report.nranks) notes.push(element("li", {}, `at nranks = ${report.nranks}`));
    return element(
        "div",
        { class: "coll-message" },
        element("p", {}, link, `: ${report.title}`),
        ...(report.label ? [element("p", {}, report.label)] : []),
        ...(notes.length ? [element("ul", {}, ...notes)] : []),
        ...(report.help ? [element("p", {}, `help: ${report.help}`)] : []),
    );
}

/**
 * Returns the marks of reports in a program.
 * @param {import("@codemirror/state").Text} doc
 * @param {string} file the program's name
 * @param {Report[]} reports
 * @param {URL} root the book's root
 * @returns {import("@codemirror/lint").Diagnostic[]}
 */
export function marks(doc, file, reports, root) {
    const made = /** @type {import("@codemirror/lint").Diagnostic[]} */ ([]);
    for (const report of reports) {
        const own = report.file === file;
        // A report without a place is about the whole program: its mark is the first line.
        const place = own && report.line ? report : usePlace(doc, report.file ?? "");
        const severity = report.severity === "warning" ? "warning" : "error";
        const text = `${report.code}: ${report.title}`;
        made.push({ ...ends(doc, place), severity, message: text, renderMessage: () => message(report, root) });
        for (const other of own ? report.others : []) {
            if (other.file && other.file !== file) continue;
            made.push({ ...ends(doc, other), severity: "info", message: `${report.code}: ${other.label}` });
        }
    }
    return made.sort((a, b) => a.from - b.from || a.to - b.to);
}
