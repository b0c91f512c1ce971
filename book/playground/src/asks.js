// @ts-check
// The asks of an exercise: each is judged by the command's reports on the reader's program.

/** @typedef {Record<string, any>} Ask one of the entries of `asks` in exercises.json */

/** Returns the program without its comments. */
function bare(text) {
    return text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/\/\/.*/g, "");
}

/** Returns the rank counts of `8`, `2,4,8`, `2..=9` or `2..9`. */
function counts(spec) {
    return spec.split(",").flatMap((part) => {
        const range = /^(\d+)\.\.(=?)(\d+)$/.exec(part);
        if (!range) return [Number(part)];
        const [first, end] = [Number(range[1]), Number(range[3]) + (range[2] ? 1 : 0)];
        return Array.from({ length: end - first }, (_, i) => first + i);
    });
}

/** Returns the last algorithm of a report: the one that the file is for. */
function last(report) {
    const all = report?.algorithms ?? [];
    return all[all.length - 1];
}

/** Runs a command with `--format json`; `null` where it prints no report. */
async function json(bench, args) {
    const result = await bench.command([...args, "--format", "json"]);
    try {
        return JSON.parse(result.out);
    } catch {
        return null;
    }
}

/** Returns the steps of a rank count, each a list of moves such as `0->1+[2]`. */
async function steps(bench, nranks) {
    const { name } = bench.now();
    const algorithm = last(bench.report)?.name;
    const chosen = algorithm ? ["--algorithm", algorithm] : [];
    const { code, out } = await bench.command(["emit", "steps", name, ...chosen, "--nranks", String(nranks)]);
    if (code !== 0) return null;
    const lines = out.split("\n").filter((line) => line.startsWith("step "));
    return lines.map((line) => line.split(/\s+/).slice(2).filter(Boolean));
}

/** The judges by the key of an ask. */
const JUDGES = {
    collective: async ({ collective }, bench) => last(bench.report)?.collective === collective,
    name: async ({ name }, bench) => last(bench.report)?.name === name,
    async proved({ proved, flags = [] }, bench) {
        const report = await json(bench, ["check", bench.now().name, "--nranks", proved, ...flags]);
        const found = last(report);
        return Boolean(report?.ok && found) && counts(proved).every((count) => found.proved.includes(count));
    },
    async steps({ steps: nranks, most }, bench) {
        const found = await steps(bench, nranks);
        return found !== null && found.length > 0 && found.length <= most;
    },
    async sends({ sends, has = [], lacks = [], reduces }, bench) {
        const found = await steps(bench, sends);
        if (!found) return false;
        const moves = found.flat();
        const any = (begin) => moves.some((move) => move.startsWith(begin));
        const added = !reduces || (moves.every((move) => move.includes("+")) && moves.length === has.length);
        return added && has.every(any) && !lacks.some(any);
    },
    streams: async ({ streams }, bench) => last(bench.report)?.certificates.at(-1)?.streams === streams,
    async inPlace(_, bench) {
        const all = last(bench.report)?.certificates ?? [];
        return all.length > 0 && all.every((certificate) => certificate.in_place);
    },
    uses: async ({ uses }, bench) => uses.every((word) => bare(bench.now().text).includes(word)),
    lacks: async ({ lacks }, bench) => !lacks.some((word) => bare(bench.now().text).includes(word)),
    async time({ time, below, above = 0 }, bench) {
        const report = await json(bench, ["simulate", bench.now().name, ...time]);
        const seconds = report?.seconds ?? Infinity;
        return seconds < below && seconds > above;
    },
};

/** Returns the key of an ask that has a judge. */
function judge(/** @type {Ask} */ ask) {
    return Object.keys(JUDGES).find((key) => key in ask && typeof ask[key] !== "undefined") ?? "";
}

/** Returns an ask in words. */
export function words(/** @type {Ask} */ ask) {
    if (ask.says) return ask.says;
    const flags = ask.flags?.length ? ` with ${ask.flags.join(" ")}` : "";
    const texts = {
        collective: () => `a program for ${ask.collective}`,
        name: () => `the algorithm is called ${ask.name}`,
        proved: () => `proved for nranks ${ask.proved}${flags}`,
        steps: () => `at most ${ask.most} steps at ${ask.steps} ranks`,
        streams: () => `the certificate shows ${ask.streams} streams`,
        inPlace: () => "the certificate says `in place too`",
        uses: () => `the program uses ${ask.uses.map((word) => word.replace(/\($/, "")).join(", ")}`,
        lacks: () => `the program does without ${ask.lacks.join(", ")}`,
    };
    return texts[judge(ask)]();
}

/** Judges an ask by the last check of a bench, and by further commands. */
export async function holds(/** @type {Ask} */ ask, bench) {
    return JUDGES[judge(ask)](ask, bench);
}
