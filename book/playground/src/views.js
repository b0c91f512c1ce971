// @ts-check
// The views of a program's results: the verdict, the steps and the picture of a run.
import { LIMIT } from "./commands.js";
import { element } from "./dom.js";

/** The words for a command that was stopped. */
export const STOPPED = `stopped after ${LIMIT / 1000} s`;
const REMEDY =
    "Choose fewer ranks, or make the program smaller: the browser gives a command less time than a terminal.";

/** Returns the text of an outcome, with a word on the way in which the command ended where it is not by itself. */
export function printed(result) {
    if (result.stopped) return `${STOPPED}\n${REMEDY}\n`;
    const lines = result.text.split("\n").map((line) => line.trimEnd());
    const text = lines.join("\n").replace(/\n+$/, "\n");
    return result.trap ? `${text}the command ended unexpectedly: ${result.trap}\n` : text;
}

/** Returns the kind of an outcome: `proved`, `refused` or `stopped`. */
export function kind(result) {
    if (result.stopped || result.trap) return "stopped";
    return result.code === 0 ? "proved" : "refused";
}

/** Returns the line of a verdict that says most: that of the proof or of the first error, else the first line. */
export function summary(result, text) {
    const lines = text.split("\n").map((line) => line.trim());
    const telling = result.code === 0 ? /^proved / : /^error/;
    return lines.find((line) => telling.test(line)) ?? lines.find(Boolean) ?? "";
}

/**
 * Draws a text as the command prints it; codes of diagnostics lead to their pages.
 * @param {string} text
 * @param {URL} [root] the book's root; without it nothing is a link
 */
export function transcript(text, root) {
    const parts = text.split(/\b([EW]\d{4})\b/).map((part, i) => {
        if (i % 2 === 0 || !root) return part;
        return element("a", { href: new URL(`errors/${part}.html`, root).href }, part);
    });
    return element("pre", { class: "coll-transcript" }, ...parts);
}

/** Draws the picture of a run above its text. */
export function picture(result, label) {
    const begin = result.out.indexOf("<svg");
    if (result.code !== 0 || begin < 0) return transcript(printed(result));
    // Its style must not reach the page, and a pointer on it must: an image would show no texts and ways.
    const drawing = element("div", { class: "coll-picture", role: "img", "aria-label": label });
    const svg = result.out.slice(begin, result.out.indexOf("</svg>") + "</svg>".length);
    const fits = "<style>svg { display: block; margin: auto; max-width: 100%; height: auto; }</style>";
    drawing.attachShadow({ mode: "open" }).innerHTML = fits + svg;
    return element(
        "figure",
        { class: "coll-figure" },
        element("div", { class: "coll-scroll" }, drawing),
        element("figcaption", {}, transcript(result.err.trim() ? result.err : "")),
    );
}
