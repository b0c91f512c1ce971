// @ts-check
// Builds the playground: `npm run build -- OUT_DIR` writes its files there.
//
// The command's module, `roundelay.wasm`, is put beside them by the caller.
import { build } from "esbuild";
import { mkdir, readFile, readdir, writeFile, copyFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const [out] = process.argv.slice(2);
if (!out) {
    console.error("usage: npm run build -- OUT_DIR");
    process.exit(2);
}
await mkdir(out, { recursive: true });

/** The slugs of the exercises by their pages. */
const { exercises } = JSON.parse(await readFile(path.join(here, "exercises.json"), "utf8"));
/** @type {Record<string, string[]>} */
const slugs = {};
for (const { page, slug } of exercises) (slugs[page] ??= []).push(slug);

const common = {
    bundle: true,
    minify: true,
    format: /** @type {const} */ ("esm"),
    target: "es2022",
    loader: /** @type {const} */ ({ ".coll": "text" }),
    legalComments: /** @type {const} */ ("none"),
    logLevel: /** @type {const} */ ("warning"),
};
const parts = { "playground.js": "loader.js", "editor.js": "editor.js", "worker.js": "worker.js" };
for (const [name, source] of Object.entries(parts)) {
    await build({
        ...common,
        entryPoints: [path.join(here, "src", source)],
        outfile: path.join(out, name),
        define: { EXERCISES: JSON.stringify(slugs) },
    });
}
await copyFile(path.join(here, "playground.css"), path.join(out, "playground.css"));

/** The programs of the museum lie outside of the book. */
const museum = path.join(here, "../../examples/museum");
/** @type {Record<string, string>} */
const programs = {};
for (const name of (await readdir(museum)).sort()) {
    if (name.endsWith(".coll")) programs[name] = await readFile(path.join(museum, name), "utf8");
}
await writeFile(path.join(out, "museum.json"), JSON.stringify(programs));
