/*
 * The command `roundelay` as a function, in the library roundelay_command, which has the functions of roundelay.h, too.
 * A program links this library in the place of the library roundelay.
 */
#ifndef ROUNDELAY_COMMAND_H
#define ROUNDELAY_COMMAND_H

#include "roundelay.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Runs the command as a function, with these arguments after its name and `input` (or NULL) on its standard input. The
 * output of `roundelay ARGS` is left in `out` and `err`, and its exit code in `code`; each of the three may be NULL.
 * With `--format json` the output is a document: `check - --format json` has diagnostics and certificates, `simulate`
 * the times, `topo` the bounds. Free both texts by roundelay_free_text. Commands that start processes of themselves are
 * refused (E0507).
 */
int roundelay_command(uint64_t nargs, const char *const *args, const char *input, int *code, char **out, char **err);

/* Frees a text of roundelay_command; NULL is nothing. */
void roundelay_free_text(char *text);

/*
 * Runs the command in the place of this program, and returns its exit code: for programs that are the command by
 * another name. `again` are the program and the first arguments that start it anew. It is called once.
 */
int roundelay_main(uint64_t nagain, const char *const *again, uint64_t nargs, const char *const *args);

#ifdef __cplusplus
}
#endif

#endif
