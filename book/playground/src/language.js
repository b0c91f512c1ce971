// @ts-check
// Colors of `.coll` programs in the editor. The words are those of book/coll.js, and a test compares them.
import { HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { tags } from "@lezer/highlight";

/** The words of the language by their kind. */
export const WORDS = {
    keyword: "algorithm else for if in let pub",
    literal: "true false",
    type: "Groups Rank Ring Rings Topology Tree Trees bool int region",
    built_in:
        "AllGather AllReduce AllToAll Broadcast Gather Reduce ReduceScatter Scatter " +
        "copy reduce send recv recv_copy_send recv_reduce recv_reduce_copy recv_reduce_copy_send recv_reduce_send " +
        "TxAck RxAck TxDataSignal RxDataSignal",
};

/** Words that are keywords only before some other text. */
export const CONTEXTUAL = [
    /^(?:fifo|parallel|scratch|step|view|when)\b(?=\s+(?!in\b|for\b|if\b|else\b|let\b)[A-Za-z_])/,
    /^executor\b(?=\s+\w+\s+for\b)/,
    /^(?:require|within)\b(?!\s*(?:[=.,:;)\]}]|$))/,
    /^otherwise\b(?=\s*=>)/,
    /^use\b(?=\s*")/,
    /^like\b(?=\s+[A-Za-z_])/,
    /^(?:without|on)\b(?=\s*\()/,
];

const NUMBERS = [
    /^\d[\d_]*(?:\.\d[\d_]*)?(?:\s?[KMGT]iB|(?:[kKMGT]i?B|[MGT]b|B)(?:\/s|ps)?|ns|us|ms|s)\b/,
    /^(?:0x[\da-fA-F_]+|0o[0-7_]+|0b[01_]+|\d[\d_]*)\b/,
];

/** The kind of each word. */
const KINDS = new Map(Object.entries(WORDS).flatMap(([kind, words]) => words.split(" ").map((word) => [word, kind])));

/** @typedef {{ comment: number, attribute: number }} State the depth of comments, and of an attribute's brackets */

/** Reads on in a comment, which may hold other comments. */
function comment(stream, state) {
    while (!stream.eol()) {
        if (stream.match("/*")) state.comment += 1;
        else if (stream.match("*/")) {
            state.comment -= 1;
            if (state.comment === 0) break;
        } else stream.next();
    }
    return "comment";
}

/** Reads on in an attribute, up to its last bracket or a string. */
function attribute(stream, state) {
    if (stream.match(/^"(?:[^"\\]|\\.)*"?/)) return "string";
    while (!stream.eol() && stream.peek() !== '"') {
        const next = stream.next();
        if (next === "[") state.attribute += 1;
        if (next === "]") {
            state.attribute -= 1;
            if (state.attribute === 0) break;
        }
    }
    return "meta";
}

function token(stream, state) {
    if (state.comment > 0) return comment(stream, state);
    if (state.attribute > 0) return attribute(stream, state);
    if (stream.eatSpace()) return null;
    if (stream.match("//")) {
        stream.skipToEnd();
        return "comment";
    }
    if (stream.match("/*")) {
        state.comment = 1;
        return comment(stream, state);
    }
    if (stream.match(/^#(?=\[)/)) {
        stream.next();
        state.attribute = 1;
        return attribute(stream, state);
    }
    if (stream.match(/^"(?:[^"\\]|\\.)*"?/)) return "string";
    if (NUMBERS.some((number) => stream.match(number))) return "number";
    if (CONTEXTUAL.some((word) => stream.match(word))) return "keyword";
    const word = stream.match(/^[A-Za-z_]\w*/);
    if (word) return KINDS.get(word[0]) ?? null;
    stream.next();
    return null;
}

const coll = StreamLanguage.define({
    name: "coll",
    startState: () => ({ comment: 0, attribute: 0 }),
    copyState: (state) => ({ ...state }),
    token,
    indent: (_, after, context) => indentation(after, context),
    tokenTable: {
        keyword: tags.keyword,
        literal: tags.bool,
        type: tags.typeName,
        built_in: tags.standard(tags.name),
        comment: tags.comment,
        string: tags.string,
        meta: tags.meta,
        number: tags.number,
    },
    languageData: {
        commentTokens: { line: "//", block: { open: "/*", close: "*/" } },
        indentOnInput: /^\s*\}$/,
    },
});

/** The indentation of a line: that of the last line with text, one level more behind `{`, one less before `}`. */
function indentation(after, context) {
    let line = context.state.doc.lineAt(context.pos);
    let above = "";
    while (line.number > 1 && !above.trim()) {
        line = context.state.doc.line(line.number - 1);
        above = line.text;
    }
    const blanks = above.length - above.trimStart().length;
    const opened = /[{([]\s*$/.test(above) ? context.unit : 0;
    const closed = /^\s*[})\]]/.test(after) ? context.unit : 0;
    return Math.max(0, blanks + opened - closed);
}

/** The classes of the book's highlighter, so that programs have the same colors in each theme. */
const colors = HighlightStyle.define([
    { tag: tags.keyword, class: "hljs-keyword" },
    { tag: tags.bool, class: "hljs-literal" },
    { tag: tags.typeName, class: "hljs-type" },
    { tag: tags.standard(tags.name), class: "hljs-built_in" },
    { tag: tags.comment, class: "hljs-comment" },
    { tag: tags.string, class: "hljs-string" },
    { tag: tags.meta, class: "hljs-meta" },
    { tag: tags.number, class: "hljs-number" },
]);

export const language = [coll, syntaxHighlighting(colors)];
