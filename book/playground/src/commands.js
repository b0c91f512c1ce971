// @ts-check
// Commands of `roundelay` in workers: in a line one after another, each with a time limit. A command that is stopped
// takes its worker along, and the next command begins with a new worker and the module that is compiled already.

/** The longest time of a command, in milliseconds. */
export const LIMIT = 10_000;

/**
 * @typedef {{ args: string[], files?: Record<string, string>, folder?: string, stdin?: string }} Command
 * @typedef {{ code: number, out: string, err: string, text: string, trap: string, ms: number, stopped?: boolean }} Result
 */

const base = new URL(".", import.meta.url);

/** The compiled module, which all workers share. */
let module = /** @type {WebAssembly.Module | undefined} */ (undefined);

/** A command that is not needed any more, because a newer text of its program is there. */
export class Superseded extends Error {}

/** A line of commands, and the worker that runs the first of them. */
export class Line {
    /** @param {number} limit the longest time of a command, in milliseconds */
    constructor(limit = LIMIT) {
        this.limit = limit;
        this.queue = /** @type {any[]} */ ([]);
        this.serial = 0;
        this.worker = /** @type {Worker | undefined} */ (undefined);
    }

    /**
     * Runs a command; `signal` drops it, whether it waits or runs.
     * @param {Command} command
     * @param {AbortSignal} [signal]
     * @returns {Promise<Result>}
     */
    run(command, signal) {
        return new Promise((resolve, reject) => {
            if (signal?.aborted) {
                reject(new Superseded());
                return;
            }
            this.serial += 1;
            const job = { id: this.serial, command, resolve, reject, timer: /** @type {any} */ (0), sent: false };
            signal?.addEventListener("abort", () => this.drop(job));
            this.queue.push(job);
            this.send();
        });
    }

    /** Gives the first command to the worker. */
    send() {
        const [job] = this.queue;
        if (!job || job.sent) return;
        job.sent = true;
        this.started().postMessage({ id: job.id, ...job.command });
    }

    /** Returns the worker, which is made where it is missing. */
    started() {
        if (this.worker) return this.worker;
        const made = new Worker(new URL("worker.js", base), { type: "module" });
        made.onmessage = ({ data }) => made === this.worker && this.take(data);
        made.onerror = (event) => made === this.worker && this.lose(event.message || "the worker did not start");
        made.postMessage(module ? { module } : { wasm: new URL("roundelay.wasm", base).href });
        this.worker = made;
        return made;
    }

    /** Takes a message of the worker. */
    take(data) {
        if (data.module) {
            module = data.module;
        } else if (data.failed) {
            this.lose(data.failed);
        } else if (data.began) {
            // The time that the download of the module takes does not count.
            const [job] = this.queue;
            job.timer = setTimeout(() => this.stop(), this.limit);
        } else {
            this.finish().resolve(data);
        }
    }

    /** Takes the first command out of the line, and begins the next one. */
    finish() {
        const job = this.queue.shift();
        clearTimeout(job.timer);
        this.send();
        return job;
    }

    /** Ends the worker. */
    end() {
        this.worker?.terminate();
        this.worker = undefined;
    }

    /** Stops the first command, whose time is over. */
    stop() {
        this.end();
        const empty = { out: "", err: "", text: "", trap: "" };
        this.finish().resolve({ code: 124, ...empty, ms: this.limit, stopped: true });
    }

    /** Drops a command that is not needed any more. */
    drop(job) {
        const at = this.queue.indexOf(job);
        if (at < 0) return;
        if (at > 0) {
            this.queue.splice(at, 1);
        } else if (module) {
            this.end();
            this.finish();
        } else {
            // The worker still loads the module: the worker stays, and its answer is not used.
            job.resolve = () => {};
        }
        job.reject(new Superseded());
    }

    /** Tells the first command why its worker is lost. */
    lose(why) {
        this.end();
        if (this.queue.length) this.finish().reject(new Error(why));
    }
}

const line = new Line();

/**
 * Runs a command in the line of the page.
 * @param {Command} command
 * @param {AbortSignal} [signal]
 */
export function run(command, signal) {
    return line.run(command, signal);
}
