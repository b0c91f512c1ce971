// @ts-check
// The calls of the command for what the editor shows beside a program, and the pages made of their output. Apart from
// the editor's own interface, so that it is tested without it.

/**
 * @typedef {{ nranks: number, topology: string, bytes: string }} Settings
 * @typedef {{ code: number, out: string, err: string }} Result
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
};

/** Returns a text as text of a page. */
function escaped(/** @type {string} */ text) {
    return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/**
 * Returns the page that shows a result: the picture, if there is one, above the text.
 * @param {Result} result
 */
export function page({ code, out, err }) {
    const end = out.indexOf("</svg>");
    const drawn = code === 0 && out.startsWith("<svg") && end > 0;
    const picture = drawn ? out.slice(0, end + "</svg>".length) : "";
    const text = drawn ? err : code === 0 ? out : err || out;
    // Nothing in the page runs, and nothing is fetched.
    const policy = "default-src 'none'; style-src 'unsafe-inline'";
    return `<!DOCTYPE html><html><head><meta http-equiv="Content-Security-Policy" content="${policy}"></head>
<body><div style="overflow-x: auto">${picture}</div><pre>${escaped(text)}</pre></body></html>`;
}
