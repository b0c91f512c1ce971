// @ts-check
// The calls of the command for what the editor shows beside a program. Apart from the editor's own interface, so that
// they are tested without it.

/**
 * @typedef {{ nranks: number, topology: string, bytes: string }} Settings
 * @typedef {keyof typeof VIEWS} View
 * @typedef {{ name: string, line: number }} Header
 */

/** What can be shown beside a program: its title, and the arguments of the command. */
export const VIEWS = {
    picture: {
        title: "Picture",
        args: (/** @type {string} */ file, /** @type {Settings} */ { nranks, topology, bytes }) => {
            const machine = topology || `full_mesh(${nranks}, 25GB/s, 2us)`;
            const ranks = topology ? [] : ["--nranks", String(nranks)];
            return ["simulate", file, "--topology", machine, ...ranks, "--bytes", bytes, "--svg", "-"];
        },
    },
    steps: {
        title: "Steps",
        args: (/** @type {string} */ file, /** @type {Settings} */ { nranks }) => {
            return ["emit", "steps", file, "--nranks", String(nranks)];
        },
    },
    kernel: {
        title: "Kernel",
        args: (/** @type {string} */ file, /** @type {Settings} */ { nranks }) => {
            return ["emit", "cuda", file, "--nranks", String(nranks)];
        },
    },
    run: {
        title: "Run",
        args: (/** @type {string} */ file, /** @type {Settings} */ { nranks }) => {
            return ["run", file, "--nranks", String(nranks)];
        },
    },
};

/**
 * Returns the arguments of the command for a view of a file, or of one algorithm of it.
 * @param {View} view
 * @param {string} file
 * @param {Settings} settings
 * @param {string} [algorithm]
 */
export function call(view, file, settings, algorithm) {
    return [...VIEWS[view].args(file, settings), ...(algorithm ? ["--algorithm", algorithm] : [])];
}

/**
 * Returns the name of the algorithm that a line belongs to: the last that begins above it, or else the first.
 * @param {Header[]} headers
 * @param {number} line
 */
export function around(headers, line) {
    const ordered = headers.toSorted((a, b) => a.line - b.line);
    return (ordered.findLast((header) => header.line <= line) ?? ordered[0])?.name;
}
