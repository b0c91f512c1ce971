// @ts-check
// TREE_SITTER names tree-sitter's command, and COMMAND that of Roundelay.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";

const folder = path.resolve(import.meta.dirname, "..");
const root = path.resolve(folder, "../..");
const temporary = mkdtempSync(path.join(os.tmpdir(), "coll-"));
// A copy, since the tool writes beside the grammar.
const copy = path.join(temporary, "grammar");
const library = path.join(temporary, "coll.so");
const tool = process.env.TREE_SITTER ?? "tree-sitter";
const version = spawnSync(tool, ["--version"], { encoding: "utf8" }).stdout?.trim() ?? "";
const skip = / (0\.2[6-9]|0\.[3-9]\d|[1-9]\d*)\./.test(version) ? false : `${tool} is no tree-sitter of 0.26 or newer`;
const command = process.env.COMMAND ?? "";

/** @param {string[]} args */
const run = (...args) => spawnSync(tool, args, { cwd: copy, encoding: "utf8", maxBuffer: 1 << 26 });

/** @param {string[]} args */
const ask = (...args) => run(...args, "--lib-path", library, "--lang-name", "coll");

/** @param {string} file */
const read = (file) => readFileSync(path.resolve(folder, file), "utf8");

/** @param {string} name @param {string} text */
const write = (name, text) => {
    const file = path.join(temporary, name);
    writeFileSync(file, text);
    return file;
};

// The last capture of each piece of text that is colored, as `text capture`.
/** @param {string} text */
const colors = (text) => {
    const { stdout } = ask("query", "--captures", "queries/highlights.scm", write("colored.coll", text));
    const form = /capture: \d+ - (\S+), start: (\(.*?\)), end: \(.*?\), text: `(.*)`$/gm;
    const found = [...stdout.matchAll(form)].map(([, capture, start, word]) => [start, `${word} ${capture}`]);
    return [...new Map(/** @type {[string, string][]} */ (found)).values()];
};

before(() => {
    if (skip) return;
    cpSync(folder, copy, { recursive: true, filter: (file) => !file.endsWith("node_modules") });
    // As an editor builds it.
    const sources = ["src/parser.c", "src/scanner.c"];
    const flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I", "src", "-o", library];
    const built = spawnSync(process.env.CC ?? "cc", [...flags, ...sources], { cwd: copy, encoding: "utf8" });
    assert.equal(built.status, 0, built.stderr);
    const generated = run("generate");
    assert.equal(generated.status, 0, generated.stderr);
});

after(() => rmSync(temporary, { recursive: true }));

// Versions of the tool write the same parser in different forms.
const other = skip || (version.includes(" 0.26.") ? false : "src/parser.c is of tree-sitter 0.26");

test("the parser is that of the grammar", { skip: other }, () => {
    const made = readFileSync(path.join(copy, "src/parser.c"), "utf8");
    assert.ok(made === read("src/parser.c"), "run `npm run build`");
});

test("the corpus has the trees that it shows", { skip }, () => {
    const { status, stdout, stderr } = ask("test");
    assert.equal(status, 0, stdout + stderr);
});

test("every file of the repository is taken or refused as the compiler does", { skip }, () => {
    const listed = execFileSync("git", ["ls-files", "*.coll"], { cwd: root, encoding: "utf8" });
    const files = listed.trim().split("\n");
    const paths = write("files", files.map((file) => path.join(root, file)).join("\n"));
    const { stdout, stderr } = ask("parse", "--quiet", "--paths", paths);
    const refused = stdout.split("\n").filter((line) => /\((?:ERROR|MISSING) /.test(line));
    const found = refused.map((line) => path.relative(root, line.split("\t")[0].trim()));
    // A literal out of range, a file without an algorithm and deep nesting are errors in trees that are whole.
    const wrong = files.filter((file) => {
        if (!command) return /\/E000[237]_/.test(file);
        const { stderr } = spawnSync(command, ["fmt", "--check", file], { cwd: root, encoding: "utf8" });
        return /error\[E000[237]\]/.test(stderr);
    });
    assert.ok(files.length > 300 && wrong.length > 10, stderr);
    assert.deepEqual(found, wrong);
});

test("every word of the lexer and of the other grammar is colored", () => {
    const highlights = read("queries/highlights.scm");
    const [, table] = /tokens! \{(.*?)punctuation/s.exec(read("../../core/src/syntax/token.rs")) ?? [];
    const words = [...table.matchAll(/"(\w+)"/g)].map(([, word]) => word);
    const { types, calls } = JSON.parse(read("../coll.tmLanguage.json")).repository;
    const names = [...types.patterns, ...calls.patterns].flatMap(
        ({ match }) => /\(\?:([\w|]+)\)/.exec(match)?.[1].split("|") ?? [],
    );
    assert.ok(words.length > 20 && names.length > 20);
    const missing = [...words, ...names].filter((word) => !highlights.includes(`"${word}"`));
    // Both are one node, whose name stands for them.
    assert.deepEqual(missing, ["false", "true"]);
});

test("contextual words are colored only in their places", { skip }, () => {
    const seen = colors(`algorithm A(view: int) -> AllReduce {
        step on(a: int) { copy(like, a without (0, 1)); }
        for step in 0..2 { view.split(step)[4KiB].TxAck(); Ring(2us, k: step) on (view); }
    }`);
    const words = seen.filter((text) => /^\w/.test(text));
    assert.deepEqual(words, [
        "algorithm keyword",
        "A type",
        "view variable.parameter",
        "int type.builtin",
        "AllReduce type.builtin",
        "step keyword",
        "on function",
        "a variable.parameter",
        "int type.builtin",
        "copy function.builtin",
        "like variable",
        "a variable",
        "without keyword.control",
        "0 constant.numeric.integer",
        "1 constant.numeric.integer",
        "for keyword.control.repeat",
        "step variable",
        "in keyword.control.repeat",
        "0 constant.numeric.integer",
        "2 constant.numeric.integer",
        "view variable",
        "split function.method",
        "step variable",
        "4KiB constant.numeric.integer",
        "KiB type.builtin",
        "TxAck function.builtin",
        "Ring type",
        "2us constant.numeric",
        "us type.builtin",
        "k variable.parameter",
        "step variable",
        "on keyword.control",
        "view variable",
    ]);
});

test("the other queries are queries of this grammar", { skip }, () => {
    const everything = path.join(root, "core/tests/data/everything.coll");
    for (const name of ["folds", "injections", "locals"]) {
        const { status, stdout, stderr } = ask("query", "--captures", `queries/${name}.scm`, everything);
        assert.equal(status, 0, stderr);
        assert.match(stdout, /capture: /, name);
    }
});
