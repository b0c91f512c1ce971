// @ts-check
// A server of the built book on the loopback address, for tests. It ends with the test's process.
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer } from "node:http";
import path from "node:path";

const TYPES = {
    ".css": "text/css",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
    ".woff2": "font/woff2",
};

/**
 * Serves a folder; returns the address and a function that ends the server.
 * @param {string} folder
 */
export async function serve(folder) {
    const root = path.resolve(folder);
    const server = createServer(async (request, response) => {
        const { pathname } = new URL(request.url ?? "/", "http://localhost");
        const file = path.join(root, decodeURIComponent(pathname.endsWith("/") ? `${pathname}index.html` : pathname));
        const found = file.startsWith(root) && (await stat(file).catch(() => null));
        if (!found || !found.isFile()) {
            response.writeHead(404).end("not found");
            return;
        }
        const type = TYPES[path.extname(file)] ?? "text/plain; charset=utf-8";
        response.writeHead(200, { "content-type": type, "cache-control": "no-store" });
        createReadStream(file).pipe(response);
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(null)));
    const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
    return {
        address: `http://127.0.0.1:${port}/`,
        async end() {
            server.closeAllConnections();
            await new Promise((resolve) => server.close(() => resolve(null)));
        },
    };
}
