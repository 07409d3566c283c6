/* What the programs of this directory share of reading their arguments. A program that includes it has
 * PROGRAM defined, its name. Errors end the job with one sentence that has the word in it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void give_up(const char *what, const char *word)
{
    fprintf(stderr, PROGRAM ": %s '%s'\n", what, word);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Initializes MPI for at least 2 ranks. */
__attribute__((unused)) static void start_ranks(int *argc, char ***argv, int *rank, int *size)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, size);
    if (*size < 2)
        give_up("wants at least 2 ranks, not", "1");
}

/* A whole number between two others; `what` says which in words. */
__attribute__((unused)) static int whole_number(const char *word, int least, int most, const char *what)
{
    char *end;
    long value = strtol(word, &end, 10);
    if (end == word || *end || value < least || value > most)
        give_up(what, word);
    return (int)value;
}

/* A list of at most `room` sizes (or other whole numbers), multiples of `unit`, between two others;
 * `what` says so in words. How many. */
__attribute__((unused)) static int parse_sizes(char *text, int *sizes, int room, int unit, int least, int most, const char *what)
{
    int n = 0;
    for (char *word = strtok(text, ","); word; word = strtok(NULL, ",")) {
        if (n == room)
            give_up("there are too many sizes; the first beyond the limit is", word);
        sizes[n] = whole_number(word, least, most, what);
        if (sizes[n++] % unit)
            give_up(what, word);
    }
    return n;
}
