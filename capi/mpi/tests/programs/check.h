/* What the programs have in common: how a mistake is told, and that no program hangs for ever.
 *
 * A program prints one line that begins with `OK` on rank 0 if all was right. Else some rank says on its standard error
 * what was wrong, and the job is aborted. */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What this process does at the moment, for the message of one that hangs. */
static char doing[256] = "nothing yet";
static int world_rank, world_size;

/* Tells what is wrong and ends the job. */
static inline void fail(const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "WRONG: rank %d of %d: %s\n", world_rank, world_size, text);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/* What is to be named if it never ends. */
static inline void now(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(doing, sizeof doing, format, arguments);
    va_end(arguments);
}

static inline void say(const char *text) {
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written;
}

static void ends(int number) {
    say(number == SIGALRM ? "HANGS: " : "CRASHES: ");
    say(doing);
    say("\n");
    _exit(3);
}

/* The process ends by itself after so many seconds, and says what it did; also where it breaks. */
static inline void at_most(unsigned seconds) {
    signal(SIGALRM, ends);
    signal(SIGSEGV, ends);
    signal(SIGBUS, ends);
    alarm(seconds);
}

/* Reads `--seconds N`, the one option that all programs have. */
static inline unsigned seconds_of(int argc, char **argv, unsigned otherwise) {
    for (int i = 1; i + 1 < argc; i++)
        if (!strcmp(argv[i], "--seconds")) return (unsigned)strtoul(argv[i + 1], NULL, 10);
    return otherwise;
}

#endif
