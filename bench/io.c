/* Access to files: one JSON line a kind.
 *
 *     io [--turns N] [--kinds LIST] [--hint KEY=VALUE]... [FILE]
 *
 * FILE (default: one in $TMPDIR, or /tmp) is made, overwritten and deleted. Kinds (default: all but
 * overlap, view, shared_apart, those with gaps or on the device, and blocks by the system's calls):
 *     open          MPI_File_open and MPI_File_close of a file that is there
 *     write_at, read_at            16 MB a rank in pieces of 1 MB, each rank its own part of the file
 *     write_at_apart, read_at_apart    the same, and a barrier, which is in the time: what the ranks take
 *                   together
 *     write_at_all, read_at_all    the same with one call: to be compared with write_at_apart
 *     write64, read64              blocks of 64 bytes of the ranks in turn, 1 MB a rank, one collective call
 *     write1k, read1k              blocks of 1 KB, 16 MB a rank
 *     write64k, read64k            blocks of 64 KB, 16 MB a rank
 *     write_sparse, read_sparse    blocks of 1 KB with 15 KB between them, 4 MB a rank
 *     shared        1,000 writes of 64 bytes at the shared file pointer by each rank
 *     shared_apart  the same, and a barrier, which is in the time
 *     ordered       100 ordered writes of 64 bytes
 *     pwrite, pread 16 MB a rank in pieces of 1 MB by the system's calls alone: what there is to reach
 *     pwrite1k, pread1k, pwrite64k, pread64k    the same in blocks of the ranks in turn, and a barrier
 *     view          MPI_File_set_view with a datatype of 10^6 blocks at irregular distances, and the memory
 *                   of the datatype and the view for each block
 *     pwrite_device, write_at_device, write1k_device    pwrite, write_at and write1k, and until the data
 *                   are on the device: fsync, MPI_File_sync
 *     overlap       how much of an MPI_File_iwrite_all of 64 MB a rank passes while the program
 *                   computes: 1 - (both - computation) / the write alone
 *
 * Time is the slowest rank's for the whole kind, from when it has left a barrier; N turns (default
 * 11) follow one that is not counted. What a rank does that has left the barrier late is not in the
 * time of others: where ranks share processors, only collective kinds tell what all of it takes.
 * But for those on the device the file stays in the page cache; nothing is synchronized. */
#define PROGRAM "io"
#include "clock.h"
#include "measure.h"
#include "options.h"
#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#define MEGABYTE (1 << 20)
#define PART (16 * MEGABYTE)
#define PIECES (PART / MEGABYTE)
#define LONG_PART (64 * MEGABYTE)

static int rank, size;
static char *data;
static const char *path;
static MPI_File file;
static int descriptor;

static void check(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    if (code == MPI_SUCCESS)
        return;
    MPI_Error_string(code, text, &length);
    give_up(what, text);
}

static void open_close(void)
{
    MPI_File other;
    check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &other), "MPI_File_open");
    check(MPI_File_close(&other), "MPI_File_close");
}

static MPI_Offset mine(int piece) { return (MPI_Offset)rank * PART + (MPI_Offset)piece * MEGABYTE; }

static void write_at(void)
{
    for (int i = 0; i < PIECES; i++)
        check(MPI_File_write_at(file, mine(i), data + i * MEGABYTE, MEGABYTE, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_write_at");
}

static void read_at(void)
{
    for (int i = 0; i < PIECES; i++)
        check(MPI_File_read_at(file, mine(i), data + i * MEGABYTE, MEGABYTE, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_read_at");
}

static void write_at_apart(void)
{
    write_at();
    MPI_Barrier(MPI_COMM_WORLD);
}

static void read_at_apart(void)
{
    read_at();
    MPI_Barrier(MPI_COMM_WORLD);
}

static void write_at_all(void)
{
    check(MPI_File_write_at_all(file, mine(0), data, PART, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_write_at_all");
}

static void read_at_all(void)
{
    check(MPI_File_read_at_all(file, mine(0), data, PART, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_read_at_all");
}

static int bytes_of_call;

static void write_all(void)
{
    check(MPI_File_seek(file, 0, MPI_SEEK_SET), "MPI_File_seek");
    check(MPI_File_write_all(file, data, bytes_of_call, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_write_all");
}

static void read_all(void)
{
    check(MPI_File_seek(file, 0, MPI_SEEK_SET), "MPI_File_seek");
    check(MPI_File_read_all(file, data, bytes_of_call, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_read_all");
}

static void shared(void)
{
    for (int i = 0; i < 1000; i++)
        check(MPI_File_write_shared(file, data, 64, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_write_shared");
}

static void shared_apart(void)
{
    shared();
    MPI_Barrier(MPI_COMM_WORLD);
}

static void ordered(void)
{
    for (int i = 0; i < 100; i++)
        check(MPI_File_write_ordered(file, data, 64, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_write_ordered");
}

static void system_write(void)
{
    for (int i = 0; i < PIECES; i++)
        if (pwrite(descriptor, data + i * MEGABYTE, MEGABYTE, mine(i)) != MEGABYTE)
            give_up("pwrite", "moved fewer bytes");
}

static void system_read(void)
{
    for (int i = 0; i < PIECES; i++)
        if (pread(descriptor, data + i * MEGABYTE, MEGABYTE, mine(i)) != MEGABYTE)
            give_up("pread", "moved fewer bytes");
}

static int block_of_call;

/* The position in the file of a block of this rank. */
static MPI_Offset block_at(int block) { return ((MPI_Offset)block * size + rank) * block_of_call; }

static void system_write_blocks(void)
{
    for (int i = 0; i < bytes_of_call / block_of_call; i++)
        if (pwrite(descriptor, data + i * block_of_call, block_of_call, block_at(i)) != block_of_call)
            give_up("pwrite", "moved fewer bytes");
    MPI_Barrier(MPI_COMM_WORLD);
}

static void system_read_blocks(void)
{
    for (int i = 0; i < bytes_of_call / block_of_call; i++)
        if (pread(descriptor, data + i * block_of_call, block_of_call, block_at(i)) != block_of_call)
            give_up("pread", "moved fewer bytes");
    MPI_Barrier(MPI_COMM_WORLD);
}

static void pwrite_device(void)
{
    system_write();
    if (fsync(descriptor))
        give_up("fsync", "failed");
    MPI_Barrier(MPI_COMM_WORLD);
}

static void write_at_device(void)
{
    write_at();
    check(MPI_File_sync(file), "MPI_File_sync");
}

static void write_all_device(void)
{
    write_all();
    check(MPI_File_sync(file), "MPI_File_sync");
}

static double write_beside(double computation)
{
    MPI_Request request;
    static volatile double work;
    double begin = now();
    check(MPI_File_iwrite_at_all(file, (MPI_Offset)rank * LONG_PART, data, LONG_PART, MPI_BYTE, &request), "MPI_File_iwrite_at_all");
    while (now() - begin < computation)
        for (int i = 0; i < 1000; i++)
            work = work * 0.5 + i;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return now() - begin;
}

static void overlap(int turns)
{
    struct batches shares = {.count = turns};
    double alone = 0, both;
    check(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), "MPI_File_set_view");
    for (int turn = -1; turn < turns; turn++) {
        MPI_Barrier(MPI_COMM_WORLD);
        alone = write_beside(0);
        MPI_Barrier(MPI_COMM_WORLD);
        both = write_beside(1.5 * alone);
        if (turn >= 0)
            shares.us[turn] = 1 - (both - 1.5 * alone) / alone;
    }
    if (rank == 0) {
        printf("{\"bench\": \"io\", \"op\": \"overlap\", \"ranks\": %d, \"bytes\": %d, ", size, LONG_PART);
        print_times("overlap", &shares);
        printf("}\n");
        fflush(stdout);
    }
}

/* Bytes of allocated memory; 0 where the C library does not say. */
static double allocated(void)
{
#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 33)
    struct mallinfo2 info = mallinfo2();
    return (double)info.uordblks + (double)info.hblkhd;
#endif
#endif
    return 0;
}

static void view(int turns)
{
    enum { BLOCKS = 1000000, BLOCK = 4 };
    struct batches times = {.count = turns};
    MPI_Aint *at = malloc(BLOCKS * sizeof *at);
    MPI_Datatype type;
    for (int i = 0; i < BLOCKS; i++)
        at[i] = ((MPI_Aint)i * 5 + i * 7 % 3) * BLOCK * size + rank * BLOCK;
    check(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), "MPI_File_set_view");
    double before = allocated();
    MPI_Type_create_hindexed_block(BLOCKS, BLOCK, at, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    for (int turn = -1; turn < turns; turn++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        check(MPI_File_set_view(file, 0, MPI_BYTE, type, "native", MPI_INFO_NULL), "MPI_File_set_view");
        double took = MPI_Wtime() - start;
        if (turn >= 0)
            times.us[turn] = took * 1e6;
    }
    double memory = (allocated() - before) / BLOCKS;
    MPI_Type_free(&type);
    free(at);
    slowest(&times, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("{\"bench\": \"io\", \"op\": \"view\", \"ranks\": %d, \"bytes\": %d, \"bytes_a_block\": %.2f, ", size,
               BLOCKS * BLOCK, memory);
        print_times("us", &times);
        printf("}\n");
        fflush(stdout);
    }
}

struct kind {
    const char *name;
    void (*run)(void);
    int block; /* bytes of a rank's blocks in the file; 0: a view of bytes */
    int bytes; /* of a rank's data */
    int asked; /* only where it is asked for */
    int spread; /* bytes of the file for each byte of data; 0: 1 */
};

static const struct kind kinds[] = {
    {"open", open_close, 0, 0},
    {"pwrite", system_write, 0, PART},
    {"write_at", write_at, 0, PART},
    {"write_at_apart", write_at_apart, 0, PART},
    {"write_at_all", write_at_all, 0, PART},
    {"pread", system_read, 0, PART},
    {"read_at", read_at, 0, PART},
    {"read_at_apart", read_at_apart, 0, PART},
    {"read_at_all", read_at_all, 0, PART},
    {"write64", write_all, 64, MEGABYTE},
    {"read64", read_all, 64, MEGABYTE},
    {"write1k", write_all, 1 << 10, PART},
    {"read1k", read_all, 1 << 10, PART},
    {"write64k", write_all, 64 << 10, PART},
    {"read64k", read_all, 64 << 10, PART},
    {"write_sparse", write_all, 1 << 10, 4 * MEGABYTE, 1, 16},
    {"read_sparse", read_all, 1 << 10, 4 * MEGABYTE, 1, 16},
    {"shared", shared, 0, 64 * 1000},
    {"shared_apart", shared_apart, 0, 64 * 1000, 1},
    {"ordered", ordered, 0, 64 * 100},
    {"pwrite1k", system_write_blocks, 1 << 10, PART, 1},
    {"pread1k", system_read_blocks, 1 << 10, PART, 1},
    {"pwrite64k", system_write_blocks, 64 << 10, PART, 1},
    {"pread64k", system_read_blocks, 64 << 10, PART, 1},
    {"pwrite_device", pwrite_device, 0, PART, 1},
    {"write_at_device", write_at_device, 0, PART, 1},
    {"write1k_device", write_all_device, 1 << 10, PART, 1},
};

static void set_view(const struct kind *kind)
{
    MPI_Datatype type;
    bytes_of_call = kind->bytes;
    block_of_call = kind->block;
    if (kind->block == 0) {
        check(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), "MPI_File_set_view");
        return;
    }
    int place = kind->block * (kind->spread ? kind->spread : 1);
    MPI_Type_vector(kind->bytes / kind->block, kind->block, size * place, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    check(MPI_File_set_view(file, (MPI_Offset)rank * place, MPI_BYTE, type, "native", MPI_INFO_NULL), "MPI_File_set_view");
    MPI_Type_free(&type);
}

static void measure(const struct kind *kind, int turns)
{
    struct batches times = {.count = turns};
    for (int turn = -1; turn < turns; turn++) {
        set_view(kind);
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        kind->run();
        double took = MPI_Wtime() - start;
        if (turn >= 0)
            times.us[turn] = took * 1e6;
    }
    slowest(&times, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("{\"bench\": \"io\", \"op\": \"%s\", \"ranks\": %d, \"bytes\": %d, ", kind->name, size, kind->bytes);
        print_times("us", &times);
        printf("}\n");
        fflush(stdout);
    }
}

/* A name that all ranks have, of rank 0's making. */
static const char *own_file(void)
{
    static char name[4096];
    const char *directory = getenv("TMPDIR");
    snprintf(name, sizeof name, "%s/kw-io-%d", directory && *directory ? directory : "/tmp", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    return name;
}

/* Refuses an unknown word of the list. */
static void check_kinds(const char *list)
{
    char *words = strdup(list);
    for (char *word = strtok(words, ","); word; word = strtok(NULL, ",")) {
        int known = !strcmp(word, "overlap") || !strcmp(word, "view");
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
            known |= !strcmp(word, kinds[i].name);
        if (!known)
            give_up("unknown kind", word);
    }
    free(words);
}

static int is_wanted(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += length)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == 0))
            return 1;
    return *list == 0;
}

static void add_hint(MPI_Info *info, char *word)
{
    char *value = strchr(word, '=');
    if (!value)
        give_up("a hint must be KEY=VALUE, not", word);
    *value = 0;
    if (*info == MPI_INFO_NULL)
        MPI_Info_create(info);
    MPI_Info_set(*info, word, value + 1);
}

int main(int argc, char **argv)
{
    int turns = 11;
    const char *wanted = "";
    MPI_Info hints = MPI_INFO_NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--turns") && i + 1 < argc)
            turns = whole_number(argv[++i], 1, MOST_BATCHES, "turns must be a number from 1 to 101, not");
        else if (!strcmp(argv[i], "--kinds") && i + 1 < argc)
            wanted = argv[++i];
        else if (!strcmp(argv[i], "--hint") && i + 1 < argc)
            add_hint(&hints, argv[++i]);
        else if (argv[i][0] == '-' || path)
            give_up("unknown argument", argv[i]);
        else
            path = argv[i];
    }
    check_kinds(wanted);
    if (!path)
        path = own_file();
    data = malloc(LONG_PART);
    memset(data, 'a' + rank % 26, LONG_PART);
    check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, hints, &file),
          "MPI_File_open");
    descriptor = open(path, O_RDWR);
    if (descriptor < 0)
        give_up("cannot open", path);
    write_at();
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (is_wanted(wanted, kinds[i].name) && (*wanted || !kinds[i].asked))
            measure(&kinds[i], turns);
    if (*wanted && is_wanted(wanted, "overlap"))
        overlap(turns);
    if (*wanted && is_wanted(wanted, "view"))
        view(turns);
    close(descriptor);
    check(MPI_File_close(&file), "MPI_File_close");
    free(data);
    if (hints != MPI_INFO_NULL)
        MPI_Info_free(&hints);
    MPI_Finalize();
    return 0;
}
