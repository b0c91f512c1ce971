// @ts-check
// The commands that a bench gives for its program, as lists of words.

/**
 * @typedef {{ text: string, name: string, folder: string, nranks: string, topology: string, rest: string[],
 *     files?: Record<string, string> }} Program a program, and the flags of the command that checks it
 */

/** The rank count of a picture where nothing says another. */
const DRAWN = 4;
/** The size of a run that is drawn. */
const BYTES = "1MiB";
/** Flags of `check` that the other subcommands take too; each has a value. */
const COMMON = ["--set", "--algorithm", "--allow", "--deny"];

/** @param {Program} program */
export function check(program) {
    const { name, nranks, topology, rest } = program;
    const words = ["check", name, ...rest];
    if (nranks) words.push("--nranks", nranks);
    if (topology) words.push("--topology", topology);
    return words;
}

/** Returns the flags that all subcommands take. */
function common(program, report) {
    const words = [];
    program.rest.forEach((word, i) => {
        if (COMMON.includes(word)) words.push(word, program.rest[i + 1] ?? "");
    });
    const names = (report?.algorithms ?? []).map((algorithm) => algorithm.name);
    // A file may hold several algorithms: the last one is built of those above it.
    if (names.length > 1 && !words.includes("--algorithm")) words.push("--algorithm", names[names.length - 1]);
    return words;
}

/**
 * Returns the rank count to draw: the one that the reader gives, else the count nearest to 4 that is proved.
 * @param {Program} program
 * @param {any} report the report of the last check
 */
export function drawnRanks(program, report) {
    if (/^\d+$/.test(program.nranks)) return Number(program.nranks);
    const last = report?.algorithms?.[report.algorithms.length - 1];
    const counts = last?.proved?.length ? last.proved : (last?.nranks ?? []);
    const usable = counts.filter((count) => count >= 2);
    const far = (count) => Math.abs(count - DRAWN);
    return usable.length ? usable.reduce((best, count) => (far(count) < far(best) ? count : best)) : DRAWN;
}

/** @param {Program} program */
export function steps(program, report) {
    const words = ["emit", "steps", program.name, ...common(program, report)];
    words.push("--nranks", String(drawnRanks(program, report)));
    if (program.topology) words.push("--topology", program.topology);
    return words;
}

/** Returns the machine of a run: the one that the reader gives, else a full mesh. */
export function machine(program, report) {
    return program.topology || `full_mesh(${Math.max(2, drawnRanks(program, report))}, 25GB/s, 2us)`;
}

/**
 * Returns the command that draws a run.
 * @param {Program} program
 * @param {"--svg" | "--links"} drawing the ranks over time, or the load of the topology's links
 */
export function picture(program, report, drawing) {
    const words = ["simulate", program.name, ...common(program, report)];
    words.push("--nranks", String(drawnRanks(program, report)), "--topology", machine(program, report));
    return [...words, "--bytes", BYTES, drawing, "-"];
}

/**
 * Returns the command of an export.
 * @param {Program} program
 * @param {string} form `coll`, `steps`, `cuda`, `mpi` or `hccl-cpp`
 */
export function exported(program, report, form) {
    if (form === "steps") return steps(program, report);
    if (form === "coll" || form === "hccl-cpp") return ["emit", form, program.name];
    const words = ["emit", form, program.name, ...common(program, report)];
    words.push("--nranks", String(drawnRanks(program, report)));
    if (program.topology) words.push("--topology", program.topology);
    return words;
}

/** The forms of an export: the text of the button, and the extension of the file. */
export const FORMS = [
    { form: "coll", says: ".coll", extension: "coll" },
    { form: "steps", says: "Steps", extension: "txt" },
    { form: "cuda", says: "CUDA text", extension: "cu" },
    { form: "mpi", says: "MPI C", extension: "c" },
    { form: "hccl-cpp", says: "Contest C++", extension: "cc" },
];
