/* Messages that do not lie in one piece: one JSON line a layout, way and size.
 *
 *     layouts [--ms BUDGET] [--sizes LIST]
 *
 * Layouts: contiguous; blocks of 8, 64 and 1024 bytes with gaps as long (MPI_Type_vector); irregular
 * blocks of 8 to 56 bytes (MPI_Type_indexed); structures of an int, a double and three chars.
 * Ways: "type" gives the library the datatype; "hand" has the program copy into one piece, send that
 * and copy it out again, by loops over the blocks: what a datatype must beat. Half a round trip
 * between ranks 0 and 1, both sides with the same layout; bytes are those of the data, a multiple of
 * what a layout repeats. The data are checked once. BUDGET: milliseconds for a cell (default 40);
 * batches as in measure.h. */
#define PROGRAM "layouts"
#include "measure.h"
#include "options.h"

#define BATCHES 15
#define LIST 16
#define LARGEST (16 << 20)
#define UNIT 1024 /* bytes of data that sizes are multiples of */
#define MOST_BLOCKS 64

static int rank;
static char *memory, *packed;
static const MPI_Comm all = MPI_COMM_WORLD;

/* A layout as blocks that repeat every `extent` bytes. */
struct layout {
    const char *name;
    int count, extent, at[MOST_BLOCKS], length[MOST_BLOCKS];
    int data; /* bytes of the blocks */
    MPI_Datatype one;
};

static void add(struct layout *l, int at, int length) { l->at[l->count] = at, l->length[l->count++] = length, l->data += length; }

static void make(struct layout *l, MPI_Datatype plain)
{
    MPI_Type_create_resized(plain, 0, l->extent, &l->one);
    MPI_Type_commit(&l->one);
    if (plain != MPI_CHAR)
        MPI_Type_free(&plain);
}

static struct layout contiguous(void)
{
    struct layout l = {.name = "contiguous", .extent = 1};
    add(&l, 0, 1);
    make(&l, MPI_CHAR);
    return l;
}

static struct layout blocks(const char *name, int length)
{
    struct layout l = {.name = name, .extent = 2 * length};
    MPI_Datatype plain;
    add(&l, 0, length);
    MPI_Type_vector(1, length, 2 * length, MPI_CHAR, &plain);
    make(&l, plain);
    return l;
}

/* Thirty-two blocks of 8 to 56 bytes, 32 on average. */
static struct layout irregular(void)
{
    struct layout l = {.name = "irregular"};
    MPI_Datatype plain;
    for (int i = 0, at = 0; i < 32; i++) {
        int length = 8 * (1 + i * 5 % 7);
        if (l.data + length > UNIT || i == 31)
            length = UNIT - l.data;
        if (length)
            add(&l, at, length);
        at += length + 8 * (1 + i % 3);
        l.extent = at;
    }
    MPI_Type_indexed(l.count, l.length, l.at, MPI_CHAR, &plain);
    make(&l, plain);
    return l;
}

/* An int, a double and three chars, as a compiler lays them out: sixty-four of them are four units. */
static struct layout structures(void)
{
    struct record { int number; double value; char word[4]; } example;
    struct layout l = {.name = "structures", .extent = sizeof example};
    MPI_Datatype plain;
    add(&l, 0, 4);
    add(&l, (int)((char *)&example.value - (char *)&example), 8);
    add(&l, (int)((char *)&example.word - (char *)&example), 4);
    MPI_Aint at[] = {l.at[0], l.at[1], l.at[2]};
    MPI_Type_create_struct(3, (int[]){1, 1, 4}, at, (MPI_Datatype[]){MPI_INT, MPI_DOUBLE, MPI_CHAR}, &plain);
    make(&l, plain);
    return l;
}

/* Copies `count` repetitions into one piece, or out of it. */
static void copy(const struct layout *l, int count, int out)
{
    char *piece = packed, *from = memory;
    for (int i = 0; i < count; i++, from += l->extent)
        for (int b = 0; b < l->count; b++, piece += l->length[b - 1])
            out ? memcpy(from + l->at[b], piece, l->length[b]) : memcpy(piece, from + l->at[b], l->length[b]);
}

static void send(const struct layout *l, int count, int by_hand)
{
    if (by_hand) {
        copy(l, count, 0);
        MPI_Send(packed, count * l->data, MPI_CHAR, 1 - rank, 1, all);
    } else
        MPI_Send(memory, count, l->one, 1 - rank, 1, all);
}

static void receive(const struct layout *l, int count, int by_hand)
{
    if (by_hand) {
        MPI_Recv(packed, count * l->data, MPI_CHAR, 1 - rank, 1, all, MPI_STATUS_IGNORE);
        copy(l, count, 1);
    } else
        MPI_Recv(memory, count, l->one, 1 - rank, 1, all, MPI_STATUS_IGNORE);
}

static double batch(const struct layout *l, int count, int by_hand, int iterations)
{
    MPI_Barrier(all);
    if (rank > 1)
        return 0;
    double begin = MPI_Wtime();
    for (int i = 0; i < iterations; i++)
        rank ? receive(l, count, by_hand), send(l, count, by_hand) : (send(l, count, by_hand), receive(l, count, by_hand));
    return (MPI_Wtime() - begin) * 1e6 / iterations / 2;
}

/* Rank 1 gets what rank 0 has, in the blocks and nowhere else, when one sends a type and the other
 * receives by hand. */
static void check(const struct layout *l, int count)
{
    for (size_t i = 0; i < (size_t)count * l->extent; i++)
        memory[i] = rank ? -1 : (char)(i % 100);
    if (rank == 0)
        send(l, count, 0);
    if (rank != 1)
        return;
    receive(l, count, 1);
    for (int i = 0; i < count; i++)
        for (int b = 0; b < l->count; b++)
            for (int k = 0; k < l->length[b]; k++) {
                size_t at = (size_t)i * l->extent + l->at[b] + k;
                if (memory[at] != (char)(at % 100))
                    give_up("wrong data of layout", l->name);
            }
}

static void cell(const struct layout *l, int bytes, int by_hand, double budget_us)
{
    struct batches us = {.count = BATCHES};
    int count = bytes / l->data, iterations = 1, telling = 0;
    double took;
    do {
        took = 2 * batch(l, count, by_hand, iterations) * iterations;
        MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, all);
    } while (!are_enough(&iterations, took, budget_us / BATCHES, &telling));
    for (int b = 0; b < BATCHES; b++)
        us.us[b] = batch(l, count, by_hand, iterations);
    slowest(&us, all);
    if (rank)
        return;
    printf("{\"bench\": \"layouts\", \"op\": \"%s\", \"mode\": \"%s\", \"bytes\": %d, \"ranks\": 2, \"iterations\": %d, ", l->name, by_hand ? "hand" : "type", bytes, iterations);
    print_times("us", &us);
    printf("}\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int sizes[LIST] = {1 << 10, 1 << 15, 1 << 20}, size_count = 3, largest = 0, ranks;
    double budget_ms = 40;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &ranks);
    if (ranks != 2)
        give_up("wants 2 ranks, not", "others");
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc)
            give_up("an option without a value:", argv[i]);
        else if (strcmp(argv[i], "--ms") == 0)
            budget_ms = atof(argv[i + 1]);
        else if (strcmp(argv[i], "--sizes") == 0)
            size_count = parse_sizes(argv[i + 1], sizes, LIST, UNIT, UNIT, LARGEST, "sizes are multiples of 1024 up to 16 MB, not");
        else
            give_up("there is no option", argv[i]);
    }
    for (int s = 0; s < size_count; s++)
        largest = sizes[s] > largest ? sizes[s] : largest;
    memory = calloc(3, largest), packed = calloc(1, largest);
    if (!memory || !packed)
        give_up("no memory for messages of", "the largest size");
    struct layout layouts[] = {contiguous(), blocks("blocks of 8", 8), blocks("blocks of 64", 64), blocks("blocks of 1024", 1024), irregular(), structures()};
    int count = sizeof layouts / sizeof layouts[0];
    for (int l = 0; l < count; l++)
        for (int s = 0; s < size_count; s++) {
            check(&layouts[l], sizes[s] / layouts[l].data);
            for (int by_hand = 0; by_hand < 2 && (l || !by_hand); by_hand++)
                cell(&layouts[l], sizes[s], by_hand, budget_ms * 1e3);
        }
    for (int l = 0; l < count; l++)
        MPI_Type_free(&layouts[l].one);
    MPI_Finalize();
    return 0;
}
