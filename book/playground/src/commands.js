// @ts-check
// Commands of `roundelay` in a worker: one after another, each with a time limit. A command that is stopped takes its
// worker along, and the next command begins with a new worker and the module that is compiled already.

/** The longest time of a command, in milliseconds. */
export const LIMIT = 10_000;

/**
 * @typedef {{ args: string[], files?: Record<string, string>, folder?: string, stdin?: string }} Command
 * @typedef {{ code: number, out: string, err: string, text: string, trap: string, ms: number, stopped?: boolean }} Result
 */

const base = new URL(".", import.meta.url);

/** @type {Worker | undefined} */
let worker;
/** @type {WebAssembly.Module | undefined} */
let module;
/** The commands that wait, in their order; the first is with the worker. */
const queue = /** @type {any[]} */ ([]);
let serial = 0;

/** A command that is not needed any more, because a newer text of its program is there. */
export class Superseded extends Error {}

/**
 * Runs a command; `signal` drops it, whether it waits or runs.
 * @param {Command} command
 * @param {AbortSignal} [signal]
 * @returns {Promise<Result>}
 */
export function run(command, signal) {
    return new Promise((resolve, reject) => {
        if (signal?.aborted) {
            reject(new Superseded());
            return;
        }
        const job = { id: ++serial, command, resolve, reject, timer: 0, sent: false };
        signal?.addEventListener("abort", () => drop(job));
        queue.push(job);
        send();
    });
}

function send() {
    const job = queue[0];
    if (!job || job.sent) return;
    job.sent = true;
    start().postMessage({ id: job.id, ...job.command });
}

/** Returns the worker, which is made where it is missing. */
function start() {
    if (worker) return worker;
    const made = new Worker(new URL("worker.js", base), { type: "module" });
    made.onmessage = ({ data }) => made === worker && take(data);
    made.onerror = (event) => made === worker && lost(event.message || "the worker did not start");
    made.postMessage(module ? { module } : { wasm: new URL("roundelay.wasm", base).href });
    worker = made;
    return made;
}

function take(data) {
    const job = queue[0];
    if (data.module) {
        module = data.module;
    } else if (data.failed) {
        lost(data.failed);
    } else if (data.began) {
        // The time that the download of the module takes does not count.
        job.timer = setTimeout(() => stop(job), LIMIT);
    } else {
        finish(job).resolve(data);
    }
}

function finish(job) {
    clearTimeout(job.timer);
    queue.shift();
    send();
    return job;
}

function end() {
    worker?.terminate();
    worker = undefined;
}

function stop(job) {
    end();
    finish(job).resolve({ code: 124, out: "", err: "", text: "", trap: "", ms: LIMIT, stopped: true });
}

function drop(job) {
    const at = queue.indexOf(job);
    if (at < 0) return;
    if (at > 0) {
        queue.splice(at, 1);
    } else if (module) {
        end();
        finish(job);
    } else {
        // The worker still loads the module: the worker stays, and its answer is not used.
        job.resolve = () => {};
    }
    job.reject(new Superseded());
}

function lost(why) {
    end();
    const lostJob = queue[0];
    if (lostJob) finish(lostJob).reject(new Error(why));
}
