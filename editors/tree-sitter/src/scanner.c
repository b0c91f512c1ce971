// Tokens that nest, or that depend on what stands before them: comments, the text of strings, Rust in `rust { … }`, and
// the unit that is glued to a number.
#include "tree_sitter/parser.h"

#include <string.h>
#include <wctype.h>

enum Token { COMMENT, DOC_COMMENT, STRING_CONTENT, RUST_CODE, UNIT, BINARY_UNIT, RECOVERY };

static const char *const UNITS[] = {"B", "kB", "KB", "MB", "GB", "TB", "Mb", "Gb", "Tb", "ns", "us", "ms", "s"};
static const char *const BINARY_UNITS[] = {"KiB", "MiB", "GiB"};

static void advance(TSLexer *lexer) { lexer->advance(lexer, false); }

static bool eat(TSLexer *lexer, int32_t c) {
    if (lexer->lookahead != c || lexer->eof(lexer)) {
        return false;
    }
    advance(lexer);
    return true;
}

static bool ends_line(TSLexer *lexer) {
    return lexer->eof(lexer) || lexer->lookahead == '\n' || lexer->lookahead == '\r';
}

// Reads a block comment to its end, `depth` comments deep; block comments nest.
static bool block_comment(TSLexer *lexer, unsigned depth) {
    while (depth > 0 && !lexer->eof(lexer)) {
        if (eat(lexer, '*')) {
            depth -= eat(lexer, '/');
        } else if (eat(lexer, '/')) {
            depth += eat(lexer, '*');
        } else {
            advance(lexer);
        }
    }
    return depth == 0;
}

// Reads a comment behind its first slash. Three slashes or `/**` begin a doc comment, and four or `/***` do not.
static bool comment(TSLexer *lexer, const bool *valid) {
    bool doc = false;
    if (eat(lexer, '/')) {
        doc = eat(lexer, '/') && lexer->lookahead != '/';
        while (!ends_line(lexer)) {
            advance(lexer);
        }
    } else if (!eat(lexer, '*')) {
        return false;
    } else if (!eat(lexer, '*')) {
        if (!block_comment(lexer, 1)) {
            return false;
        }
    } else if (!eat(lexer, '/')) {
        doc = lexer->lookahead != '*';
        // The second star of `/***/` may end the comment.
        if (!block_comment(lexer, 1)) {
            return false;
        }
    }
    lexer->mark_end(lexer);
    lexer->result_symbol = doc ? DOC_COMMENT : COMMENT;
    return valid[lexer->result_symbol];
}

static bool is_among(const char *word, const char *const *list, size_t len) {
    for (size_t i = 0; i < len; i++) {
        if (strcmp(word, list[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool unit(TSLexer *lexer, const bool *valid) {
    char word[5] = {0};
    size_t len = 0;
    while (iswalnum((wint_t)lexer->lookahead) || lexer->lookahead == '_') {
        if (len + 1 == sizeof word || lexer->lookahead > 'z') {
            return false;
        }
        word[len++] = (char)lexer->lookahead;
        advance(lexer);
    }
    lexer->mark_end(lexer);
    bool binary = is_among(word, BINARY_UNITS, sizeof BINARY_UNITS / sizeof *BINARY_UNITS);
    lexer->result_symbol = binary ? BINARY_UNIT : UNIT;
    return valid[lexer->result_symbol] && (binary || is_among(word, UNITS, sizeof UNITS / sizeof *UNITS));
}

static bool string_content(TSLexer *lexer) {
    bool any = false;
    while (!lexer->eof(lexer) && lexer->lookahead != '\n' && lexer->lookahead != '"' && lexer->lookahead != '\\') {
        advance(lexer);
        any = true;
    }
    lexer->mark_end(lexer);
    lexer->result_symbol = STRING_CONTENT;
    return any;
}

// Reads a Rust string behind its quote, up to a quote and as many `#` as began it.
static bool rust_string(TSLexer *lexer, bool raw, unsigned hashes) {
    while (!lexer->eof(lexer)) {
        if (eat(lexer, '"')) {
            unsigned closed = 0;
            while (closed < hashes && eat(lexer, '#')) {
                closed++;
            }
            if (closed == hashes) {
                return true;
            }
        } else if (!raw && eat(lexer, '\\')) {
            advance(lexer);
        } else {
            advance(lexer);
        }
    }
    return false;
}

// Reads the text between the braces of `rust { … }`, by Rust's rules for strings, characters and comments.
static bool rust_code(TSLexer *lexer) {
    unsigned depth = 1;
    bool word = false;
    while (!lexer->eof(lexer)) {
        int32_t c = lexer->lookahead;
        if (c == '}' && --depth == 0) {
            lexer->mark_end(lexer);
            lexer->result_symbol = RUST_CODE;
            return true;
        }
        advance(lexer);
        bool in_word = word;
        word = iswalnum((wint_t)c) || c == '_';
        if (c == '{') {
            depth++;
        } else if (c == '/' && eat(lexer, '/')) {
            while (!lexer->eof(lexer) && lexer->lookahead != '\n') {
                advance(lexer);
            }
        } else if (c == '/' && eat(lexer, '*')) {
            if (!block_comment(lexer, 1)) {
                return false;
            }
        } else if (c == '"') {
            if (!rust_string(lexer, false, 0)) {
                return false;
            }
        } else if (c == 'r' && !in_word) {
            unsigned hashes = 0;
            while (eat(lexer, '#')) {
                hashes++;
            }
            if (eat(lexer, '"') && !rust_string(lexer, true, hashes)) {
                return false;
            }
        } else if (c == '\'') {
            if (eat(lexer, '\\')) {
                advance(lexer);
                while (!ends_line(lexer) && !eat(lexer, '\'')) {
                    advance(lexer);
                }
            } else if (lexer->lookahead != '{' && lexer->lookahead != '}') {
                // The letter of a lifetime, or a character and perhaps its closing quote.
                advance(lexer);
                eat(lexer, '\'');
            } else {
                // A brace is a character only if a quote follows it.
                int32_t brace = lexer->lookahead;
                advance(lexer);
                if (!eat(lexer, '\'')) {
                    depth += brace == '{' ? 1 : -1;
                }
            }
        }
    }
    return false;
}

void *tree_sitter_coll_external_scanner_create(void) { return NULL; }

void tree_sitter_coll_external_scanner_destroy(void *payload) { (void)payload; }

unsigned tree_sitter_coll_external_scanner_serialize(void *payload, char *buffer) {
    (void)payload;
    (void)buffer;
    return 0;
}

void tree_sitter_coll_external_scanner_deserialize(void *payload, const char *buffer, unsigned length) {
    (void)payload;
    (void)buffer;
    (void)length;
}

bool tree_sitter_coll_external_scanner_scan(void *payload, TSLexer *lexer, const bool *valid) {
    (void)payload;
    // While the parser recovers from an error, every token is valid, and only a comment is what it looks like.
    if (!valid[RECOVERY]) {
        if (valid[STRING_CONTENT]) {
            return string_content(lexer);
        }
        if (valid[RUST_CODE]) {
            return lexer->lookahead != '}' && rust_code(lexer);
        }
        if ((valid[UNIT] || valid[BINARY_UNIT]) && iswalpha((wint_t)lexer->lookahead)) {
            return unit(lexer, valid);
        }
    }
    while (iswspace((wint_t)lexer->lookahead)) {
        lexer->advance(lexer, true);
    }
    return eat(lexer, '/') && comment(lexer, valid);
}
