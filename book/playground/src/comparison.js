// @ts-check
// The simulated times of two programs over sizes: curves, and a table with the same numbers.
import { drawnRanks, machine } from "./calls.js";
import { Superseded } from "./commands.js";
import { button, element } from "./dom.js";
import { baseName } from "./paths.js";

/** The sizes of a comparison, as the command reads them. */
const SIZES = ["1KiB", "4KiB", "16KiB", "64KiB", "256KiB", "1MiB", "4MiB", "16MiB", "64MiB"];

const [WIDTH, HEIGHT] = [640, 320];
const MARGIN = { left: 70, right: 20, top: 20, bottom: 40 };

/** Returns a time with its unit. */
function time(seconds) {
    const [value, unit] =
        seconds < 1e-6 ? [seconds * 1e9, "ns"] : seconds < 1e-3 ? [seconds * 1e6, "us"] : [seconds * 1e3, "ms"];
    return `${Number(value.toPrecision(4))} ${unit}`;
}

/** Returns a size with a blank before its unit. */
function spaced(size) {
    return size.replace(/(?=[KM])/, " ");
}

/** Makes an element of a picture. */
function svg(tag, attributes, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
    made.append(...children);
    return made;
}

/**
 * Draws curves of times over sizes, both axes by powers.
 * @param {{ name: string, times: (number | null)[] }[]} curves
 */
function draw(curves) {
    const all = curves.flatMap(({ times }) => times.filter((one) => one !== null));
    const low = Math.floor(Math.log10(Math.min(...all)));
    const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...all))));
    const x = (i) => MARGIN.left + (i * (WIDTH - MARGIN.left - MARGIN.right)) / (SIZES.length - 1);
    const y = (seconds) => {
        const share = (Math.log10(seconds) - low) / (high - low);
        return HEIGHT - MARGIN.bottom - share * (HEIGHT - MARGIN.top - MARGIN.bottom);
    };
    const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "coll-curves" });
    picture.append(svg("title", {}, `Simulated times of ${curves.map(({ name }) => name).join(" and ")} over sizes`));
    for (let power = low; power <= high; power++) {
        const at = y(10 ** power);
        picture.append(svg("line", { x1: MARGIN.left, x2: WIDTH - MARGIN.right, y1: at, y2: at, class: "coll-grid" }));
        picture.append(svg("text", { x: MARGIN.left - 8, y: at + 4, "text-anchor": "end" }, time(10 ** power)));
    }
    SIZES.forEach((size, i) => {
        picture.append(svg("text", { x: x(i), y: HEIGHT - MARGIN.bottom + 22, "text-anchor": "middle" }, spaced(size)));
    });
    curves.forEach(({ times }, which) => {
        const points = times.flatMap((seconds, i) => (seconds === null ? [] : [`${x(i)},${y(seconds)}`]));
        picture.append(svg("polyline", { points: points.join(" "), class: `coll-curve coll-curve-${which}` }));
        for (const point of points) {
            const [cx, cy] = point.split(",");
            picture.append(svg("circle", { cx, cy, r: which === 0 ? 3.5 : 2.5, class: `coll-point-${which}` }));
        }
    });
    return picture;
}

/** Draws the table of the times. */
function table(curves) {
    const heads = ["Size", ...curves.map(({ name }) => name)].map((text) => element("th", { scope: "col" }, text));
    const rows = SIZES.map((size, i) => {
        const cells = curves.map(({ times }) => element("td", {}, times[i] === null ? "–" : time(times[i])));
        return element("tr", {}, element("th", { scope: "row" }, spaced(size)), ...cells);
    });
    const body = element("tbody", {}, ...rows);
    return element(
        "div",
        { class: "coll-scroll" },
        element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body),
    );
}

/** Returns the first diagnostic of a report, else the first line of the errors. */
function told(out, err) {
    try {
        const { code, title, notes } = JSON.parse(out).diagnostics[0];
        return [`${code}: ${title}`, ...notes.slice(0, 1)].join("; ");
    } catch {
        return err.split("\n")[0];
    }
}

/**
 * Makes the comparison of benches.
 * @param {any[]} benches
 */
export function comparison(benches) {
    let current = new AbortController();
    const status = element("p", { class: "coll-status", role: "status", "aria-live": "polite" });
    const place = element("div", {});
    const again = button("Simulate both", measure);
    const section = element(
        "section",
        { class: "coll-comparison", "aria-label": "Simulated times" },
        element("div", { class: "coll-controls" }, again),
        status,
        place,
    );

    /** Returns the simulated times of a bench's program; a size that is refused has none, and the error is told. */
    async function times(bench, on, nranks) {
        const { name } = bench.now();
        const found = [];
        for (const size of SIZES) {
            const args = ["simulate", name, "--topology", on, "--nranks", nranks, "--bytes", size, "--format", "json"];
            const { code, out, err, stopped } = await bench.command(args, current.signal);
            if (code !== 0) throw new Error(`${baseName(name)}: ${stopped ? "stopped after 10 s" : told(out, err)}`);
            found.push(JSON.parse(out).seconds ?? null);
        }
        return found;
    }

    async function measure() {
        current.abort();
        current = new AbortController();
        const program = benches[0].now();
        const on = machine(program, benches[0].report);
        const nranks = String(drawnRanks(program, benches[0].report));
        status.textContent = `simulating ${nranks} ranks on ${on} …`;
        // Times of other programs must not stay beside an error of these.
        place.replaceChildren();
        try {
            const curves = [];
            for (const [i, bench] of benches.entries()) {
                const name = bench.report?.algorithms?.at(-1)?.name ?? baseName(bench.now().name);
                curves.push({
                    name: `${name} (${i === 0 ? "first" : "second"})`,
                    times: await times(bench, on, nranks),
                });
            }
            const keys = curves.map(({ name }, i) => element("span", { class: `coll-key coll-key-${i}` }, name));
            const picture = element("div", { class: "coll-scroll" }, draw(curves));
            place.replaceChildren(element("p", {}, ...keys), picture, table(curves));
            const collectives = new Set(benches.map((bench) => bench.report?.algorithms?.at(-1)?.collective));
            const differ = collectives.size > 1 ? `; the two are different collectives: ${[...collectives].join(", ")}` : "";
            status.textContent = `simulated times of ${nranks} ranks on ${on}, the first program's machine${differ}`;
        } catch (error) {
            if (!(error instanceof Superseded)) status.textContent = String(error).replace(/^Error: /, "");
        }
    }

    return {
        section,
        end() {
            current.abort();
            section.remove();
        },
    };
}
