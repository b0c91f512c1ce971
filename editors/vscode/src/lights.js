// @ts-check
// The lights of the proofs: the server's notice of a text, as decorations of its lines. Apart from the editor's own
// interface, so that it is tested without it.

/**
 * @typedef {{ line: number, character: number }} Position
 * @typedef {{ start: Position, end: Position }} Range
 * @typedef {{ nranks: number, proved: boolean | null }} Count
 * @typedef {{ name: string, range: Range, state: State, title: string, counts: Count[] }} Verdict
 * @typedef {{ uri: string, version: number, algorithms: Verdict[] }} Proof
 * @typedef {{ range: Range, after: string, hover: string }} Light
 * @typedef {keyof STATES} State
 */

/** The states of a proof, each with the theme's color of the text behind the header; each has an icon of its name. */
export const STATES = {
    proving: "descriptionForeground",
    every: "charts.green",
    some: "charts.yellow",
    refused: "charts.red",
    broken: "descriptionForeground",
};

/** The editor cuts a range that ends behind the last character of its line. */
const END = 0x7fff_ffff;

/**
 * Returns the rank counts of one outcome that follow each other.
 * @param {Count[]} counts
 */
function runs(counts) {
    const runs = /** @type {{ first: number, last: number, proved: boolean | null }[]} */ ([]);
    for (const { nranks, proved } of counts) {
        const run = runs.at(-1);
        if (run?.proved === proved && run.last + 1 === nranks) run.last = nranks;
        else runs.push({ first: nranks, last: nranks, proved });
    }
    return runs;
}

/**
 * Returns what is shown of each run of rank counts.
 * @param {Count[]} counts
 * @param {(ranks: string, proved: boolean | null) => string} shown
 */
function each(counts, shown) {
    return runs(counts).map(({ first, last, proved }) => {
        return shown(first === last ? `${first}` : `${first}–${last}`, proved);
    });
}

/** Returns the light of a rank count's outcome. */
function dot(/** @type {boolean | null} */ proved) {
    return proved === null ? "◌" : proved ? "●" : "○";
}

/** Returns the words for a rank count's outcome. */
function told(/** @type {boolean | null} */ proved) {
    return proved === null ? "not tried" : proved ? "proved" : "refused";
}

/**
 * Returns the lights of a text by their states; every state has its list, so that old lights go out.
 * @param {Proof | undefined} proof
 */
export function lights(proof) {
    const lists = Object.keys(STATES).map((state) => [state, /** @type {Light[]} */ ([])]);
    const all = /** @type {Record<State, Light[]>} */ (Object.fromEntries(lists));
    for (const { range, state, title, counts } of proof?.algorithms ?? []) {
        // From the name on: the server itself answers for the name.
        const rest = { start: range.end, end: { line: range.end.line, character: END } };
        const after = each(counts, (ranks, proved) => `${ranks}${dot(proved)}`).join(" ");
        const ranks = each(counts, (ranks, proved) => `${dot(proved)} nranks ${ranks}: ${told(proved)}`);
        all[state]?.push({ range: rest, after, hover: [title, ...ranks].join("\n") });
    }
    return all;
}
