/* Point-to-point communication: one JSON line a kind, mode and size.
 *
 *     p2p [--ms BUDGET] [--turns N] [--kinds LIST] [--modes LIST] [--sizes LIST]
 *
 * Kinds (default: pingpong):
 *     pingpong    half a round trip; ranks above 1 hold a connection to both and wait ("latency with k other peers connected")
 *     stream      rank 0 sends, rank 1 receives into posted buffers (expected), 64 messages in flight (of more than 1 MB
 *                 fewer, 64 MB in all), then one short answer; each message is received into memory of its own
 *     unexpected  as stream, but rank 1 posts its receives only when all messages are there
 *     exchange    both send and receive at once
 *     halo        as exchange, but both write what they send before, and read what they have received afterwards, as programs do:
 *                 data that is sent again unchanged stays in the receiver's cache
 *     pipeline    rank 0 sends, one message after the other; rank 1 receives each and adds it up, then asks for the next:
 *                 the sender may be far ahead
 *     raw-pingpong, raw-stream    the same as pingpong and stream over a plain TCP connection, polling: what there is to reach
 * Modes (default: send) say how the sender sends: send, ssend, bsend, rsend, isend, persistent.
 * rsend needs a posted receive, so it is measured in stream, exchange and halo only; bsend not in pipeline.
 *
 * Time is of one message in one direction. Method as in coll.c (also --turns): batches of
 * iterations between two looks at the clock, slower rank's time; order statistics of the
 * batches, never a mean. stream and unexpected also tell the processor time that each side used
 * for a message ("cpu0_us", "cpu1_us"): user and system time of the whole process over the
 * batch. */
#define PROGRAM "p2p"
#include "measure.h"
#include "options.h"
#include "raw.h"
#include <sys/resource.h>

#define BATCHES 21
#define FEWEST_BATCHES 5
#define WINDOW 64
#define LIST 64
#define LARGEST (64 << 20)
#define ROOM (64 << 20) /* bytes in flight, if that is more than one message */
#define LINE 64         /* bytes: where the memory of a message begins */

enum kind { PINGPONG, STREAM, UNEXPECTED, EXCHANGE, HALO, PIPELINE, RAW_PINGPONG, RAW_STREAM, KINDS };
enum mode { SEND, SSEND, BSEND, RSEND, ISEND, PERSISTENT, MODES };
static const char *const kind_names[] = {"pingpong", "stream", "unexpected", "exchange", "halo", "pipeline", "raw-pingpong", "raw-stream"};
static const char *const mode_names[] = {"send", "ssend", "bsend", "rsend", "isend", "persistent"};

static int rank, size;
static char *given, *got, token;
static MPI_Request persistent = MPI_REQUEST_NULL;
static const MPI_Comm all = MPI_COMM_WORLD;

/* Sends one message to `to` in a mode; it is under way or done afterwards, and done when `*request`
 * is. */
static void start_send(enum mode mode, int bytes, int to, MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    switch (mode) {
    case SEND: MPI_Send(given, bytes, MPI_CHAR, to, 1, all); break;
    case SSEND: MPI_Ssend(given, bytes, MPI_CHAR, to, 1, all); break;
    case BSEND: MPI_Bsend(given, bytes, MPI_CHAR, to, 1, all); break;
    case RSEND: MPI_Rsend(given, bytes, MPI_CHAR, to, 1, all); break;
    case ISEND: MPI_Isend(given, bytes, MPI_CHAR, to, 1, all, request); break;
    default: MPI_Start(&persistent), MPI_Wait(&persistent, MPI_STATUS_IGNORE);
    }
}

static void send_one(enum mode mode, int bytes, int to)
{
    MPI_Request request;
    start_send(mode, bytes, to, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void receive_one(int bytes, int from) { MPI_Recv(got, bytes, MPI_CHAR, from, 1, all, MPI_STATUS_IGNORE); }
static void short_send(int to) { MPI_Send(&token, 1, MPI_CHAR, to, 2, all); }
static void short_receive(int from) { MPI_Recv(&token, 1, MPI_CHAR, from, 2, all, MPI_STATUS_IGNORE); }

/* Messages of this size that are in flight. */
static int in_flight(int bytes)
{
    return bytes <= ROOM / WINDOW ? WINDOW : bytes < ROOM ? ROOM / bytes : 1;
}

/* Where the first `i` messages of those in flight end, in what is received; there the next one is. */
static size_t offset(int i, int bytes) { return (size_t)i * ((bytes + LINE - 1) / LINE * LINE); }
static char *place(int i, int bytes) { return got + offset(i, bytes); }

static void post(int bytes, int from, MPI_Request *requests)
{
    for (int i = 0; i < in_flight(bytes); i++)
        MPI_Irecv(place(i, bytes), bytes, MPI_CHAR, from, 1, all, &requests[i]);
}

/* One iteration; the messages in it are counted by messages(). */
static void pingpong(enum mode mode, int bytes)
{
    if (rank == 0)
        send_one(mode, bytes, 1), receive_one(bytes, 1);
    else
        receive_one(bytes, 0), send_one(mode, bytes, 0);
}

static void window_of_sends(enum mode mode, int bytes, int to)
{
    MPI_Request requests[WINDOW];
    int count = in_flight(bytes);
    for (int i = 0; i < count; i++)
        start_send(mode, bytes, to, &requests[i]);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

static void stream(enum mode mode, int bytes)
{
    MPI_Request requests[WINDOW];
    if (rank == 0) {
        short_receive(1);
        window_of_sends(mode, bytes, 1);
        short_receive(1);
    } else {
        post(bytes, 0, requests);
        short_send(0);
        MPI_Waitall(in_flight(bytes), requests, MPI_STATUSES_IGNORE);
        short_send(0);
    }
}

/* The sender cannot wait for its sends where the library has no buffer for them, so they are
 * non-blocking whatever the mode. */
static void unexpected(enum mode mode, int bytes)
{
    MPI_Request requests[WINDOW];
    (void)mode;
    if (rank == 0) {
        for (int i = 0; i < in_flight(bytes); i++)
            MPI_Isend(given, bytes, MPI_CHAR, 1, 1, all, &requests[i]);
        short_send(1); /* comes after the others: all are there, or announced */
    } else {
        short_receive(0);
        post(bytes, 0, requests);
    }
    MPI_Waitall(in_flight(bytes), requests, MPI_STATUSES_IGNORE);
    rank == 0 ? short_receive(1) : short_send(0);
}

static void exchange(enum mode mode, int bytes)
{
    MPI_Request request, sent;
    MPI_Irecv(got, bytes, MPI_CHAR, 1 - rank, 1, all, &request);
    if (mode == RSEND) { /* the other side has posted */
        short_send(1 - rank);
        short_receive(1 - rank);
    }
    start_send(mode == SEND || mode == SSEND ? ISEND : mode, bytes, 1 - rank, &sent);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
}

static volatile unsigned long sum;

static void add_up(int bytes)
{
    unsigned long added = 0;
    for (int i = 0; i < bytes / (int)sizeof added; i++)
        added += ((unsigned long *)got)[i];
    sum = added;
}

static void halo(enum mode mode, int bytes)
{
    static unsigned long step;
    step++;
    for (int i = 0; i < bytes / (int)sizeof step; i++)
        ((unsigned long *)given)[i] = step;
    exchange(mode, bytes);
    add_up(bytes);
}

static void pipeline(enum mode mode, int bytes)
{
    if (rank == 0) {
        send_one(mode, bytes, 1);
        return;
    }
    receive_one(bytes, 0);
    add_up(bytes);
}

static int raw = -1;

static void raw_pingpong(enum mode mode, int bytes)
{
    (void)mode;
    if (rank == 0)
        raw_send(raw, given, bytes, MSG_DONTWAIT), raw_receive(raw, got, bytes);
    else
        raw_receive(raw, got, bytes), raw_send(raw, given, bytes, MSG_DONTWAIT);
}

static void raw_stream(enum mode mode, int bytes)
{
    (void)mode;
    if (rank == 0) {
        raw_receive(raw, &token, 1);
        for (int i = 0; i < in_flight(bytes); i++)
            raw_send(raw, given, bytes, MSG_DONTWAIT);
        raw_receive(raw, &token, 1);
    } else {
        raw_send(raw, &token, 1, MSG_DONTWAIT);
        for (int i = 0; i < in_flight(bytes); i++)
            raw_receive(raw, place(i, bytes), bytes);
        raw_send(raw, &token, 1, MSG_DONTWAIT);
    }
}

static void (*const kinds[])(enum mode, int) = {pingpong, stream, unexpected, exchange, halo, pipeline, raw_pingpong, raw_stream};
static int is_raw(enum kind kind) { return kind == RAW_PINGPONG || kind == RAW_STREAM; }

static int messages(enum kind kind, int bytes)
{
    return kind == PINGPONG || kind == RAW_PINGPONG ? 2 : kind == EXCHANGE || kind == HALO || kind == PIPELINE ? 1 : in_flight(bytes);
}

static double processor_time(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 + u.ru_utime.tv_usec + u.ru_stime.tv_usec;
}

/* Microseconds of a message on this rank, and the processor time it cost. */
static double batch(enum kind kind, enum mode mode, int bytes, int iterations, double *cpu)
{
    double start, before, took;
    MPI_Barrier(all);
    if (rank > 1)
        return *cpu = 0;
    start = MPI_Wtime(), before = processor_time();
    for (int i = 0; i < iterations; i++)
        kinds[kind](mode, bytes);
    took = (MPI_Wtime() - start) * 1e6 / iterations / messages(kind, bytes);
    *cpu = (processor_time() - before) / iterations / messages(kind, bytes);
    return took;
}

/* Iterations that make a batch of a BATCHESth of the budget. Two batches in a row must say so:
 * one may have lost its core. Where one iteration is longer than that, there are fewer batches,
 * but never fewer than FEWEST_BATCHES. */
static int calibrate(enum kind kind, enum mode mode, int bytes, double budget_us, int *batches)
{
    double cpu, mine, took = 0, wanted = budget_us / BATCHES;
    int n = 1, telling = 0;
    for (;; n = n < 1 << 20 ? n * 2 : n) {
        mine = batch(kind, mode, bytes, n, &cpu) * n * messages(kind, bytes);
        MPI_Allreduce(&mine, &took, 1, MPI_DOUBLE, MPI_MAX, all);
        telling = took >= budget_us ? 2 : took * 2 >= wanted || n >= 1 << 20 ? telling + 1 : 0;
        if (telling == 2)
            break;
    }
    took /= n;
    *batches = took <= wanted ? BATCHES : took * FEWEST_BATCHES >= budget_us ? FEWEST_BATCHES : (int)(budget_us / took);
    return took < wanted ? (int)(wanted / took) : 1;
}

/* One kind, mode and size, and what is known of it so far. */
struct cell {
    enum kind kind;
    enum mode mode;
    int bytes, iterations, batches;
    struct batches times, cpu;
};

/* What only this rank's processor spent, for all to know. */
static struct batches spent_by(const struct cell *c, int of)
{
    struct batches out = c->cpu;
    for (int i = 0; i < out.count && rank != of; i++)
        out.us[i] = 0;
    slowest(&out, all);
    return out;
}

/* The part of a cell's batches that belongs to one of `turns` turns, at least one. In the first
 * turn it is found how many iterations make a batch; in the others the cell's memory has gone
 * cold meanwhile. */
static void visit(struct cell *c, int turn, int turns, double budget_us)
{
    double unused;
    if (c->mode == PERSISTENT && rank < 2)
        MPI_Send_init(given, c->bytes, MPI_CHAR, 1 - rank, 1, all, &persistent);
    if (is_raw(c->kind) && raw < 0 && rank < 2)
        raw = raw_connect(rank, 0);
    if (turn == 0)
        c->iterations = calibrate(c->kind, c->mode, c->bytes, budget_us, &c->batches);
    else
        batch(c->kind, c->mode, c->bytes, 1, &unused);
    for (int b = 0; b < (c->batches + turns - 1) / turns; b++) {
        int at = c->times.count++;
        c->times.us[at] = batch(c->kind, c->mode, c->bytes, c->iterations, &c->cpu.us[at]);
    }
    c->cpu.count = c->times.count;
    if (persistent != MPI_REQUEST_NULL)
        MPI_Request_free(&persistent);
}

static void print_cell(struct cell *c)
{
    struct batches cpu0 = spent_by(c, 0), cpu1 = spent_by(c, 1);
    slowest(&c->times, all);
    if (rank)
        return;
    printf("{\"bench\": \"p2p\", \"op\": \"%s\", \"mode\": \"%s\", \"bytes\": %d, \"ranks\": %d, \"iterations\": %d, ", kind_names[c->kind],
           is_raw(c->kind) ? "send" : mode_names[c->mode], c->bytes, size, c->iterations);
    print_times("us", &c->times);
    if (c->kind == STREAM || c->kind == RAW_STREAM || c->kind == UNEXPECTED) {
        printf(", ");
        print_times("cpu0_us", &cpu0);
        printf(", ");
        print_times("cpu1_us", &cpu1);
    }
    printf("}\n");
    fflush(stdout);
}

/* All cells, `turns` times; each is printed in its last turn. */
static void measure(struct cell *cells, int count, int turns, double budget_us)
{
    for (int turn = 0; turn < turns; turn++)
        for (int i = 0; i < count; i++) {
            visit(&cells[i], turn, turns, budget_us);
            if (turn + 1 == turns)
                print_cell(&cells[i]);
            else if (i + 1 == count)
                tell_turn(rank, turn, turns);
        }
}

static int parse_names(char *text, const char *const *names, int count, int *found)
{
    int n = 0;
    for (char *word = strtok(text, ","); word && n < LIST; word = strtok(NULL, ",")) {
        int i = 0;
        while (i < count && strcmp(names[i], word))
            i++;
        if (i == count)
            give_up("there is no kind or mode", word);
        found[n++] = i;
    }
    return n;
}

/* A plain connection has no modes, a ready send wants a posted receive, and a sender far ahead more
 * buffer than was attached. */
static int is_measured(enum kind kind, enum mode mode, int which)
{
    if (is_raw(kind))
        return which == 0;
    return mode == RSEND ? kind == STREAM || kind == EXCHANGE || kind == HALO : mode != BSEND || kind != PIPELINE;
}

static void prepare(int largest, size_t room)
{
    int attached = 2 * (largest < LARGEST / WINDOW ? largest * WINDOW : LARGEST); /* twice what is in flight: libraries leave gaps */
    given = calloc(1, largest + 1);
    got = calloc(1, room + 1);
    attached += 2 * WINDOW * MPI_BSEND_OVERHEAD + largest;
    void *space = malloc(attached);
    if (!given || !got || !space)
        give_up("no memory for buffers of", "the largest size");
    MPI_Buffer_attach(space, attached);
}

/* Ranks above 1 say hello to the two that measure. */
static void connect_others(void)
{
    for (int to = 0; to < 2 && rank > 1; to++)
        short_send(to), short_receive(to);
    for (int from = 2; from < size && rank < 2; from++)
        short_receive(from), short_send(from);
}

int main(int argc, char **argv)
{
    int found_kinds[LIST] = {PINGPONG}, found_modes[LIST] = {SEND}, kind_count = 1, mode_count = 1;
    int sizes[LIST] = {0, 8, 1024, 8192, 65536, 524288, 4194304}, size_count = 7, turns = 1, largest = 0;
    size_t room = 0;
    double budget_ms = 130;
    start_ranks(&argc, &argv, &rank, &size);
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--ms") == 0)
            budget_ms = atof(argv[i + 1]);
        else if (strcmp(argv[i], "--turns") == 0)
            turns = whole_number(argv[i + 1], 1, MOST_BATCHES, "turns go from 1 to 101, not");
        else if (strcmp(argv[i], "--kinds") == 0)
            kind_count = parse_names(argv[i + 1], kind_names, KINDS, found_kinds);
        else if (strcmp(argv[i], "--modes") == 0)
            mode_count = parse_names(argv[i + 1], mode_names, MODES, found_modes);
        else if (strcmp(argv[i], "--sizes") == 0)
            size_count = parse_sizes(argv[i + 1], sizes, LIST, 1, 0, LARGEST, "sizes go from 0 to 64 MB, not");
        else
            give_up("there is no option", argv[i]);
    }
    if (argc % 2 == 0)
        give_up("an option without a value:", argv[argc - 1]);
    for (int s = 0; s < size_count; s++) {
        size_t all_of_them = offset(in_flight(sizes[s]), sizes[s]);
        largest = sizes[s] > largest ? sizes[s] : largest;
        room = all_of_them > room ? all_of_them : room;
    }
    prepare(largest, room);
    connect_others();
    struct cell *cells = calloc((size_t)kind_count * mode_count * size_count, sizeof *cells);
    if (!cells)
        give_up("no memory for the times of", "all cells");
    int count = 0;
    for (int k = 0; k < kind_count; k++)
        for (int m = 0; m < mode_count; m++)
            for (int s = 0; s < size_count; s++)
                if (is_measured(found_kinds[k], found_modes[m], m))
                    cells[count++] = (struct cell){.kind = found_kinds[k], .mode = found_modes[m], .bytes = sizes[s]};
    measure(cells, count, turns, budget_ms * 1e3);
    free(cells);
    MPI_Finalize();
    return 0;
}
