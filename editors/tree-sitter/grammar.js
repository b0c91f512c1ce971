/// <reference types="tree-sitter-cli/dsl" />
// @ts-check
// The syntax is that of core/src/syntax/grammar.lalrpop. A contextual word is a keyword where it is in place, and an
// `identifier` in every other place: `_name` has both readings wherever both can stand.

// These words are never names.
const KEYWORDS = ["algorithm", "as", "else", "false", "for", "if", "in", "let", "pub", "true"];

// Operators that group to the left, the loosest first. Comparisons do not chain, and stand apart.
const LOGICAL = [["||"], ["&&"]];
const ARITHMETIC = [["|"], ["^"], ["&"], ["<<", ">>"], ["+", "-"], ["*", "/", "%"]];
const COMPARISONS = ["==", "!=", "<", "<=", ">", ">="];
const UNARY = ARITHMETIC.length + 1;

/** @param {RuleOrLiteral} rule */
const commas = (rule) => seq(repeat(seq(rule, ",")), optional(rule));

/** @param {string[]} words */
const among = (words) => (words.length > 1 ? choice(...words) : words[0]);

/** @param {string[][]} levels @param {RuleOrLiteral} operand */
const grouped = (levels, operand) =>
    choice(
        ...levels.map((operators, i) =>
            prec.left(i + 1, seq(field("left", operand), field("operator", among(operators)), field("right", operand))),
        ),
    );

// Forms behind a value. A value that is a statement does not begin with `if`, so each form has two rules: one for
// values that begin with `if`, and one for all others.
/** @type {Record<string, ($: GrammarSymbols<string>, base: Rule) => RuleOrLiteral>} */
const POSTFIX = {
    member: ($, base) => seq(field("value", base), ".", field("field", $.identifier)),
    index: ($, base) => seq(field("value", base), "[", field("index", choice($._expression, $.range)), "]"),
};

const postfix = Object.fromEntries(
    Object.entries(POSTFIX).flatMap(([name, rule]) => [
        [name, ($) => rule($, $._effect)],
        [`_if_${name}`, ($) => rule($, $._if_value)],
    ]),
);

export default grammar({
    name: "coll",

    word: ($) => $.identifier,
    reserved: { global: () => KEYWORDS },
    externals: ($) => [$.comment, $.doc_comment, $.string_content, $.rust_code, $.unit, $._binary_unit, $._recovery],
    extras: ($) => [/[ \t\r\n\f]/, $.comment],

    // The call `within(a, b);` differs from `within (a, b) { … }` only behind the bracket, and the call `like(a)` in a
    // slot count from `like (a);` at its end.
    conflicts: ($) => [
        [$._name, $.within_statement],
        [$._name, $.scratch_statement],
    ],

    rules: {
        source_file: ($) => seq(repeat($.use_declaration), repeat(choice($.algorithm, $.executor))),

        use_declaration: ($) => seq("use", field("path", $.string), ";"),

        algorithm: ($) =>
            seq(
                optional($._docs),
                optional($._attributes),
                optional("pub"),
                "algorithm",
                field("name", $.identifier),
                field("parameters", $.parameters),
                "->",
                field("collective", alias($.identifier, $.type)),
                field("body", $.block),
            ),

        executor: ($) =>
            seq(
                optional($._docs),
                optional($._attributes),
                optional("pub"),
                "executor",
                field("name", $.identifier),
                "for",
                field("collective", alias($.identifier, $.type)),
                "{",
                repeat($.setting),
                repeat($.class),
                "}",
            ),

        _docs: ($) => repeat1($.doc_comment),
        _attributes: ($) => repeat1($.attribute),

        setting: ($) =>
            seq(
                field("name", choice($.identifier, alias(choice("when", "otherwise"), $.identifier))),
                ":",
                field("value", $._setting_value),
                ";",
            ),
        _setting_value: ($) => choice($._expression, $.quantity, $.size),
        size: ($) => seq($.integer, alias($.identifier, $.unit)),

        class: ($) => seq(choice($._when, "otherwise"), "=>", field("call", $._expression), ";"),
        _when: ($) =>
            seq(
                "when",
                field("measure", $.identifier),
                field("operator", choice(...COMPARISONS)),
                field("limit", $._setting_value),
            ),

        attribute: ($) =>
            seq("#", "[", field("name", $.identifier), optional(seq("(", commas($._attribute_item), ")")), "]"),
        _attribute_item: ($) => choice($._attribute_value, alias($.attribute_argument, $.named_argument)),
        attribute_argument: ($) => seq(field("name", $._name), "=", field("value", $._attribute_value)),
        _attribute_value: ($) => choice($._expression, alias($.attribute_range, $.range), $.string),
        attribute_range: ($) => seq(field("start", $._expression), choice("..", "..="), field("end", $._expression)),

        parameters: ($) => seq("(", commas($.parameter), ")"),
        parameter: ($) =>
            seq(field("name", $.identifier), $._typed, optional(seq("=", field("default", $._expression)))),
        _typed: ($) => seq(":", field("type", choice(alias($.identifier, $.type), $.list_type))),
        list_type: ($) => seq("[", alias($.identifier, $.type), "]"),

        block: ($) => seq("{", repeat($._statement), "}"),

        _statement: ($) =>
            choice(
                $.let_statement,
                $.view_statement,
                $.for_statement,
                $.parallel_statement,
                $.if_statement,
                $.require_statement,
                $.scratch_statement,
                $.step_statement,
                $.fifo_statement,
                $.within_statement,
                $.run_statement,
                $.expression_statement,
            ),

        let_statement: ($) =>
            seq("let", field("name", $.identifier), optional($._typed), "=", field("value", $._expression), ";"),
        view_statement: ($) => seq("view", field("name", $._binder), "=", field("value", $._expression), ";"),
        for_statement: ($) => seq("for", field("variable", $.identifier), $._over),
        parallel_statement: ($) => seq("parallel", field("variable", $._binder), $._over),
        _over: ($) => seq("in", field("over", choice($._expression, $.range)), field("body", $.block)),
        range: ($) => seq(field("start", $._expression), "..", field("end", $._expression)),
        if_statement: ($) =>
            seq(
                "if",
                field("condition", $._expression),
                field("then", $.block),
                optional(seq("else", field("else", choice($.block, $.if_statement)))),
            ),
        require_statement: ($) =>
            seq("require", field("condition", $._expression), ",", field("message", $.string), ";"),
        scratch_statement: ($) =>
            seq(
                "scratch",
                field("name", $._binder),
                ":",
                optional(field("count", $._expression)),
                "like",
                field("like", $._expression),
                optional(seq("as", field("as", alias($.identifier, $.type)))),
                ";",
            ),
        step_statement: ($) =>
            seq("step", field("name", $._binder), field("parameters", $.parameters), field("body", $.block)),
        fifo_statement: ($) => seq("fifo", "like", field("like", $._expression), repeat(seq(",", $.option)), ";"),
        option: ($) => seq(field("name", $.identifier), "=", field("value", $._expression)),
        within_statement: ($) => seq("within", field("group", $._expression), field("body", $.block)),
        run_statement: ($) => seq(field("call", $._closed), "on", "(", commas($._expression), ")", ";"),
        expression_statement: ($) => seq($._effect, ";"),

        _expression: ($) => choice($._operand, alias($.logical, $.binary), alias($.comparison, $.binary)),
        logical: ($) => grouped(LOGICAL, $._expression),
        comparison: ($) =>
            seq(field("left", $._operand), field("operator", choice(...COMPARISONS)), field("right", $._operand)),
        _operand: ($) => choice($.binary, $.unary, $._effect, $._if_value),
        binary: ($) => grouped(ARITHMETIC, $._operand),
        unary: ($) => prec(UNARY, seq(field("operator", choice("-", "!")), field("operand", $._operand))),

        _effect: ($) => choice($._closed, $._name, $.integer, $.boolean, $.list, $.rust_escape, $.member, $.index),
        // Values that end in a bracket, as the call before `on` does.
        _closed: ($) => choice($.call, $.without, $.group, alias($._empty, $.list)),
        call: ($) => seq(field("function", choice($._name, $.scoped_name, $.member)), field("arguments", $.arguments)),
        _if_call: ($) => seq(field("function", alias($._if_member, $.member)), field("arguments", $.arguments)),
        scoped_name: ($) => seq(field("scope", $._name), "::", field("name", $.identifier)),
        ...postfix,
        without: ($) => seq(field("value", $._effect), "without", "(", $._expression, ",", $._expression, ")"),
        group: ($) => seq("(", $._expression, ")"),
        _empty: () => seq("(", ")"),
        list: ($) => seq("[", commas($._expression), "]"),
        rust_escape: ($) => seq("rust", "{", optional($.rust_code), "}"),

        _if_value: ($) =>
            choice(
                $.conditional,
                alias($._if_call, $.call),
                ...Object.keys(POSTFIX).map((name) => alias($[`_if_${name}`], $[name])),
            ),
        conditional: ($) =>
            seq("if", field("condition", $._expression), field("then", $._braced), "else", field("else", $._else)),
        _else: ($) => choice($._braced, $.conditional),
        _braced: ($) => seq("{", $._expression, "}"),

        arguments: ($) => seq("(", commas($._argument), ")"),
        _argument: ($) => choice($._expression, $.quantity, $.rate, $.string, $.named_argument),
        named_argument: ($) => seq(field("name", $._name), choice(":", "="), field("value", $._expression)),
        rate: ($) => seq($.quantity, "/", alias($.identifier, $.unit)),

        _name: ($) =>
            choice(
                $.identifier,
                alias(choice("within", "like"), $.identifier),
                prec(
                    -1,
                    alias(
                        choice("fifo", "parallel", "require", "rust", "scratch", "step", "view", "without"),
                        $.identifier,
                    ),
                ),
            ),
        // After the first word of a statement, `without` is a name.
        _binder: ($) => choice($.identifier, alias("without", $.identifier)),

        identifier: () => /[A-Za-z_][A-Za-z0-9_]*/,
        boolean: () => choice("true", "false"),
        integer: ($) => seq(choice($._digits, $._radix), optional(alias($._binary_unit, $.unit))),
        quantity: ($) => seq(choice($._digits, /[0-9][0-9_]*\.[0-9][0-9_]*/), $.unit),
        _digits: () => /[0-9][0-9_]*/,
        _radix: () => /0x[0-9A-Fa-f_]+|0b[01_]+/,
        string: ($) => seq('"', repeat(choice($.string_content, $.escape_sequence)), token.immediate('"')),
        escape_sequence: () => token.immediate(/\\([nrt0\\"']|x[0-7][0-9A-Fa-f]|u\{[0-9A-Fa-f_]+\})/),
    },
});
