// @ts-check
// The pages made of the command's output.

/** @typedef {{ code: number, out: string, err: string }} Result */

/** The pixels left and right of a page. */
const MARGIN = 16;

/** Keeps what the reader sees when the page is made anew; a wheel with Ctrl, or a pinch, changes the picture's size. */
const SCRIPT = `
const api = acquireVsCodeApi();
const picture = document.querySelector("svg");
const width = Number(picture?.getAttribute("width"));
let { zoom, x, y } = { zoom: 1, x: 0, y: 0, ...api.getState() };
function keep() { api.setState({ zoom, x: scrollX, y: scrollY }); }
function size(by) {
    zoom = Math.min(8, Math.max(1 / 8, zoom * by));
    const room = document.documentElement.clientWidth - ${2 * MARGIN};
    if (picture) picture.style.width = Math.min(width, room) * zoom + "px";
}
size(1);
addEventListener("resize", () => size(1));
// The editor itself scrolls a page that it has loaded.
addEventListener("load", () => setTimeout(() => {
    scrollTo(x, y);
    addEventListener("scroll", keep);
}));
addEventListener("wheel", (event) => {
    if (!event.ctrlKey || !picture) return;
    event.preventDefault();
    const before = zoom;
    size(Math.exp(-event.deltaY / 400));
    const by = zoom / before;
    scrollTo((scrollX + event.clientX) * by - event.clientX, (scrollY + event.clientY) * by - event.clientY);
    keep();
}, { passive: false });
`;

/** The picture asks for the system's colors; in the editor, the theme has them. */
const [SYSTEM, THEME] = [
    "@media (prefers-color-scheme:dark)",
    ":where(body.vscode-dark, body.vscode-high-contrast:not(.vscode-high-contrast-light))",
];

const STYLE = `
body { margin: 0 ${MARGIN}px; padding: 0; width: max-content; }
svg { display: block; height: auto; }
.failed { position: sticky; top: 0; left: ${MARGIN}px; z-index: 1; margin: 0 0 1em; padding: .5em; overflow: auto;
    box-sizing: border-box; max-width: calc(100vw - ${3 * MARGIN}px); max-height: 50vh; width: max-content;
    color: var(--vscode-editor-foreground); background: var(--vscode-inputValidation-errorBackground);
    border: 1px solid var(--vscode-inputValidation-errorBorder); }
.old { opacity: .4; filter: grayscale(1); }
`;

/** Returns a text as text of a page. */
function escaped(/** @type {string} */ text) {
    return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/**
 * Returns a result that is no error as a part of a page: the picture, if there is one, above the text.
 * @param {Result} result
 */
function shown({ out, err }) {
    const end = out.indexOf("</svg>");
    const drawn = out.startsWith("<svg") && end > 0;
    const picture = drawn ? out.slice(0, end + "</svg>".length).replaceAll(SYSTEM, THEME) : "";
    return `${picture}<pre>${escaped(drawn ? err : out)}</pre>`;
}

/**
 * Returns the page that shows a result; an error stands above the last result that was none.
 * @param {Result} result
 * @param {Result | undefined} last
 * @param {string} nonce
 */
export function page(result, last, nonce) {
    const failed = `<pre class="failed">${escaped(result.err || result.out)}</pre>`;
    const old = last ? `<div class="old">${shown(last)}</div>` : "";
    const body = result.code === 0 ? shown(result) : failed + old;
    // Nothing is fetched, and of the page nothing runs but its own script.
    const policy = `default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-${nonce}'`;
    return `<!DOCTYPE html><html><head><meta http-equiv="Content-Security-Policy" content="${policy}">
<style>${STYLE}</style></head><body>${body}<script nonce="${nonce}">${SCRIPT}</script></body></html>`;
}
