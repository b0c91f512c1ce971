// @ts-check
// Programs in addresses: JSON, compressed, as letters that an address may have behind its `#`.

/** Passes bytes through a stream that compresses or decompresses. */
async function through(bytes, transform) {
    const stream = new Blob([bytes]).stream().pipeThrough(transform);
    return new Uint8Array(await new Response(stream).arrayBuffer());
}

/**
 * Returns the fragment of an address for a shared program.
 * @param {object} shared
 */
export async function encode(shared) {
    const json = new TextEncoder().encode(JSON.stringify(shared));
    const bytes = await through(json, new CompressionStream("deflate-raw"));
    const letters = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
    return `#program=${btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")}`;
}

/**
 * Returns the program of a fragment; `null` where the fragment has none, or holds something else.
 * @param {string} fragment
 */
export async function decode(fragment) {
    const found = /^#program=([\w-]+)$/.exec(fragment);
    if (!found) return null;
    try {
        const letters = atob(found[1].replaceAll("-", "+").replaceAll("_", "/"));
        const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
        const json = await through(bytes, new DecompressionStream("deflate-raw"));
        const shared = JSON.parse(new TextDecoder().decode(json));
        return typeof shared?.text === "string" ? shared : null;
    } catch {
        return null;
    }
}
