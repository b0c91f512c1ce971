// @ts-check
// The worker: runs one `roundelay` command for each message, on files in memory, and answers with its output.
//
// A message `{ module }` gives the worker a compiled module; a message `{ wasm }` gives it the module's address. The
// worker answers the first command with the compiled module too, so that the next worker need not compile it again.
import { ConsoleStdout, Directory, File, OpenFile, PreopenDirectory, WASI } from "@bjorn3/browser_wasi_shim";
import { resolved } from "./paths.js";

/** The folder of the command: paths are relative to it, and may lead out of it with `..`. */
class Folder extends PreopenDirectory {
    /** @param {Map<string, any>} tree @param {string} inside */
    constructor(tree, inside) {
        super("/", tree);
        this.inside = inside;
    }

    /** @param {string} path */
    full(path) {
        return resolved(this.inside, path) || ".";
    }

    path_open(flags, path, oflags, rights, inheriting, descriptor) {
        return super.path_open(flags, this.full(path), oflags, rights, inheriting, descriptor);
    }

    path_filestat_get(flags, path) {
        return super.path_filestat_get(flags, this.full(path));
    }
}

/** @param {Record<string, string>} files */
function tree(files) {
    const root = new Map();
    for (const [path, text] of Object.entries(files)) {
        const parts = path.split("/");
        const name = parts.pop();
        let folder = root;
        for (const part of parts) {
            if (!folder.has(part)) folder.set(part, new Directory(new Map()));
            folder = folder.get(part).contents;
        }
        folder.set(name, new File(new TextEncoder().encode(text)));
    }
    return root;
}

/** A stream of the command: its text, and a copy of each line in the transcript of both streams. */
function stream(transcript) {
    const decoder = new TextDecoder();
    const kept = { text: "", fd: /** @type {any} */ (null) };
    kept.fd = new ConsoleStdout((bytes) => {
        const part = decoder.decode(bytes, { stream: true });
        kept.text += part;
        transcript.text += part;
    });
    return kept;
}

/** @param {WebAssembly.Module} module */
function run(module, { args, files = {}, folder = "", stdin = "" }) {
    const both = { text: "" };
    const [out, err] = [stream(both), stream(both)];
    const input = new OpenFile(new File(new TextEncoder().encode(stdin)));
    const words = ["roundelay", ...args];
    const wasi = new WASI(words, ["NO_COLOR=1"], [input, out.fd, err.fd, new Folder(tree(files), folder)]);
    // The shim counts the letters of arguments, and their bytes are more where a letter is not ASCII.
    wasi.wasiImport.args_sizes_get = (count, size) => {
        const view = new DataView(/** @type {any} */ (wasi.inst).exports.memory.buffer);
        const bytes = words.map((word) => new TextEncoder().encode(word).length + 1);
        view.setUint32(count, words.length, true);
        view.setUint32(
            size,
            bytes.reduce((a, b) => a + b, 0),
            true,
        );
        return 0;
    };
    const began = performance.now();
    let code = 0;
    let trap = "";
    try {
        const instance = new WebAssembly.Instance(module, { wasi_snapshot_preview1: wasi.wasiImport });
        code = wasi.start(/** @type {any} */ (instance));
    } catch (error) {
        code = 134;
        trap = String(error);
    }
    return { code, out: out.text, err: err.text, text: both.text, trap, ms: performance.now() - began };
}

/** @type {Promise<WebAssembly.Module> | undefined} */
let compiled;

/** @param {string} wasm */
async function compile(wasm) {
    const response = await fetch(wasm);
    if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
    // A server that does not know the type of the file sends it as bytes.
    if (response.headers.get("content-type")?.startsWith("application/wasm")) {
        return WebAssembly.compileStreaming(response);
    }
    return WebAssembly.compile(await response.arrayBuffer());
}

self.onmessage = async ({ data }) => {
    if (data.module) {
        compiled = Promise.resolve(data.module);
    } else if (data.wasm) {
        compiled = compile(data.wasm);
        compiled.then(
            (module) => self.postMessage({ module }),
            (error) => self.postMessage({ failed: String(error) }),
        );
    } else {
        try {
            const module = await /** @type {Promise<WebAssembly.Module>} */ (compiled);
            self.postMessage({ id: data.id, began: true });
            self.postMessage({ id: data.id, ...run(module, data) });
        } catch (error) {
            self.postMessage({ id: data.id, failed: String(error) });
        }
    }
};
