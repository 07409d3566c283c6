/* is: sorting integers: every key's rank, the number of smaller keys, ten times.
 *
 *   make apps && dist/bin/mpiexec -n 4 build/apps/is W
 *
 * A bucket sort. Each rank counts its keys by their leading bits (buckets), MPI_Allreduce adds the
 * counts up, and buckets are dealt out to ranks in order, so that each gets about as many keys as
 * every other. MPI_Alltoall tells how many keys come from each rank, MPI_Alltoallv brings them: nearly
 * all memory goes once around in every iteration. Then each rank counts its keys by value. Before
 * each iteration two keys change, and the ranks of five keys are compared with those that were
 * published for the iteration. At last the keys are sorted indeed. Any number of ranks. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITERATIONS = 10, TESTED = 5, MOST_RANKS = 4096 };

/* A problem of the specification. `place`: of five keys in the sequence; `rank`: theirs, but for
 * what the iteration adds. The first `rising` of them rise by one in every iteration, from `from`
 * on, the others fall. */
struct problem {
    char class;
    int key_bits, bucket_bits;
    int64_t keys;
    int64_t place[TESTED], rank[TESTED];
    int rising, from;
};
static const struct problem problems[] = {
    {'S', 11, 9, 1 << 16, {48427, 17148, 23627, 62548, 4431}, {0, 18, 346, 64917, 65463}, 3, 0},
    {'W', 16, 10, 1 << 20, {357773, 934767, 875723, 898999, 404505}, {1249, 11698, 1039987, 1043896, 1048018}, 2, -2},
    {'A', 19, 10, 1 << 23, {2112377, 662041, 5336171, 3642833, 4250760}, {104, 17523, 123928, 8288932, 8388264}, 3, -1},
};

/* The rank that was published for a tested key in an iteration (1 to ITERATIONS). */
static int64_t published(const struct problem *p, int key, int iteration)
{
    if (key < p->rising) return p->rank[key] + iteration + p->from;
    return p->rank[key] - iteration - (p->class == 'A' ? p->from : 0);
}

/* How many keys are smaller than the one before them. */
static int64_t out_of_order(const int *key, int64_t n)
{
    int64_t wrong = 0;
    for (int64_t i = 1; i < n; i++) wrong += key[i - 1] > key[i];
    return wrong;
}

/* Random numbers: x(k+1) = 5^13 x(k) mod 2^46; the product of the low 64 bits is enough. */
static const uint64_t A = 1220703125, MASK = (UINT64_C(1) << 46) - 1;

static uint64_t ahead(uint64_t x, uint64_t steps)
{
    for (uint64_t square = A; steps > 0; steps /= 2, square = square * square & MASK)
        if (steps % 2) x = x * square & MASK;
    return x;
}

/* What a rank has. Its part of the sequence is keys first to last - 1 of all. */
struct sort {
    const struct problem *p;
    int rank, ranks;
    int64_t first, last;
    int *key;                       /* its part of the sequence */
    int *by_bucket, *received;      /* the same by buckets; what it has been dealt */
    int64_t capacity, n;            /* room in `received`, and how many keys are there */
    int64_t *count, *total;         /* keys of each bucket here, and everywhere; then tested keys */
    int64_t *smaller;               /* of each value from `low` on: keys here that are smaller */
    int low, high;                  /* the values that were dealt to this rank: low to high - 1 */
    int64_t before;                 /* keys on ranks before this one */
    int send[MOST_RANKS], send_at[MOST_RANKS], take[MOST_RANKS], take_at[MOST_RANKS];
};

static void *room(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);
    if (!p) {
        fprintf(stderr, "is has no memory for %zu bytes\n", n * size);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return p;
}

static int64_t cut(const struct problem *p, int rank, int ranks) { return p->keys * rank / ranks; }

/* A key is the mean of four random numbers, times the number of values. */
static void make_keys(struct sort *s)
{
    uint64_t x = ahead(314159265, 4 * (uint64_t)s->first);
    double scale = (double)(1 << s->p->key_bits) / 4 / (double)(MASK + 1);
    for (int64_t i = 0; i < s->last - s->first; i++) {
        double sum = 0;
        for (int k = 0; k < 4; k++) sum += (double)(x = x * A & MASK);
        s->key[i] = (int)(scale * sum);
    }
}

/* Sets a key of the sequence, on the rank that has it. */
static void set_key(struct sort *s, int64_t place, int value)
{
    if (place >= s->first && place < s->last) s->key[place - s->first] = value;
}

static int shift(const struct sort *s) { return s->p->key_bits - s->p->bucket_bits; }

/* Counts keys by bucket, here and everywhere, and sorts the keys here by bucket. A rank that has a tested
 * key tells its value with the counts. */
static void count_buckets(struct sort *s)
{
    int buckets = 1 << s->p->bucket_bits, by = shift(s);
    int64_t n = s->last - s->first, at[1 << 10];
    memset(s->count, 0, sizeof *s->count * (size_t)(buckets + TESTED));
    for (int64_t i = 0; i < n; i++) s->count[s->key[i] >> by]++;
    for (int k = 0; k < TESTED; k++)
        if (s->p->place[k] >= s->first && s->p->place[k] < s->last) s->count[buckets + k] = s->key[s->p->place[k] - s->first];
    MPI_Allreduce(s->count, s->total, buckets + TESTED, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    at[0] = 0;
    for (int b = 1; b < buckets; b++) at[b] = at[b - 1] + s->count[b - 1];
    for (int64_t i = 0; i < n; i++) s->by_bucket[at[s->key[i] >> by]++] = s->key[i];
}

/* Deals buckets out in order: a rank takes them until it and those before have their share. */
static void deal(struct sort *s)
{
    int buckets = 1 << s->p->bucket_bits, to = 0;
    int64_t dealt = 0;
    memset(s->send, 0, sizeof s->send);
    s->before = 0;
    s->low = s->high = 0;
    for (int b = 0; b < buckets; b++) {
        while (to < s->ranks - 1 && dealt >= cut(s->p, to + 1, s->ranks)) to++;
        s->send[to] += (int)s->count[b];
        if (to < s->rank) {
            s->before += s->total[b];
            s->low = s->high = (b + 1) << shift(s);
        } else if (to == s->rank) {
            s->high = (b + 1) << shift(s);
        }
        dealt += s->total[b];
    }
}

/* Sends every key to the rank that its bucket was dealt to. */
static void redistribute(struct sort *s)
{
    MPI_Alltoall(s->send, 1, MPI_INT, s->take, 1, MPI_INT, MPI_COMM_WORLD);
    s->n = s->take[0];
    s->send_at[0] = s->take_at[0] = 0;
    for (int r = 1; r < s->ranks; r++) {
        s->send_at[r] = s->send_at[r - 1] + s->send[r - 1];
        s->take_at[r] = s->take_at[r - 1] + s->take[r - 1];
        s->n += s->take[r];
    }
    if (s->n > s->capacity) {
        free(s->received);
        s->capacity = s->n + s->n / 8;
        s->received = room((size_t)s->capacity, sizeof *s->received);
    }
    MPI_Alltoallv(s->by_bucket, s->send, s->send_at, MPI_INT, s->received, s->take, s->take_at, MPI_INT, MPI_COMM_WORLD);
}

/* Counts, of each value that was dealt here, the keys here that are smaller. */
static void count_smaller(struct sort *s)
{
    int values = s->high - s->low;
    memset(s->smaller, 0, sizeof *s->smaller * (size_t)(values + 1));
    for (int64_t i = 0; i < s->n; i++) s->smaller[s->received[i] - s->low + 1]++;
    for (int v = 1; v <= values; v++) s->smaller[v] += s->smaller[v - 1];
}

/* One iteration of the problem. */
static void rank_keys(struct sort *s, int iteration)
{
    set_key(s, iteration, iteration);
    set_key(s, iteration + ITERATIONS, (1 << s->p->key_bits) - iteration);
    count_buckets(s);
    deal(s);
    redistribute(s);
    count_smaller(s);
}

/* How many tested keys of the values that were dealt here have not the rank that was published. */
static int wrong_ranks(const struct sort *s, int iteration)
{
    const int64_t *value = s->total + (1 << s->p->bucket_bits);
    int wrong = 0;
    for (int k = 0; k < TESTED; k++)
        if (value[k] >= s->low && value[k] < s->high)
            wrong += s->before + s->smaller[value[k] - s->low] != published(s->p, k, iteration);
    return wrong;
}

/* Sorts the keys by their ranks; how many are out of order, lost, or `already` wrong, on all
 * ranks. */
static int64_t all_wrong(struct sort *s, int64_t already)
{
    int *sorted = room((size_t)s->n, sizeof *sorted), last = s->low, previous = -1;
    int64_t wrong[2] = {0, s->n};
    for (int64_t i = 0; i < s->n; i++) sorted[s->smaller[s->received[i] - s->low]++] = s->received[i];
    if (s->n > 0) last = sorted[s->n - 1];
    wrong[0] = already + out_of_order(sorted, s->n);
    MPI_Exscan(&last, &previous, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD); /* the greatest key before */
    if (s->rank > 0 && s->n > 0 && previous > sorted[0]) wrong[0]++;
    MPI_Allreduce(MPI_IN_PLACE, wrong, 2, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    free(sorted);
    return wrong[0] + (wrong[1] != s->p->keys);
}

static void prepare(struct sort *s, const struct problem *p)
{
    int buckets = 1 << p->bucket_bits;
    s->p = p;
    s->first = cut(p, s->rank, s->ranks);
    s->last = cut(p, s->rank + 1, s->ranks);
    size_t n = (size_t)(s->last - s->first);
    s->capacity = (int64_t)n + (int64_t)n / 8;
    s->key = room(n, sizeof *s->key);
    s->by_bucket = room(n, sizeof *s->by_bucket);
    s->received = room((size_t)s->capacity, sizeof *s->received);
    s->count = room((size_t)(buckets + TESTED), sizeof *s->count);
    s->total = room((size_t)(buckets + TESTED), sizeof *s->total);
    s->smaller = room((size_t)(1 << p->key_bits) + 1, sizeof *s->smaller);
}

static void release(struct sort *s)
{
    void *all[] = {s->key, s->by_bucket, s->received, s->count, s->total, s->smaller};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

/* The problem that the arguments ask for; NULL, and a sentence, when there is none. */
static const struct problem *asked_for(int argc, char **argv, const struct sort *s)
{
    const char *why = "is takes the class of the problem as its argument: one of S, W, A";
    for (size_t i = 0; argc == 2 && i < sizeof problems / sizeof *problems; i++)
        if (argv[1][0] == problems[i].class && !argv[1][1]) {
            if (s->ranks <= MOST_RANKS) return &problems[i];
            why = "is goes on at most 4096 ranks";
        }
    if (s->rank == 0) fprintf(stderr, "%s\n", why);
    return NULL;
}

static void report(const struct problem *p, int ranks, double seconds, int64_t wrong)
{
    printf("IS class %c: %lld keys of %d bits, %d iterations\n", p->class, (long long)p->keys, p->key_bits, ITERATIONS);
    printf("ranks  %14d\nseconds%14.6f\n", ranks, seconds);
    printf("Mop/s  %14.2f\n", (double)p->keys * ITERATIONS / seconds / 1e6);
    printf("%s\n", wrong ? "NOT VERIFIED" : "verified");
}

int main(int argc, char **argv)
{
    static struct sort s;
    int64_t wrong = 0;
    double begin, seconds, slowest;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s.ranks);
    const struct problem *p = asked_for(argc, argv, &s);
    if (!p) {
        MPI_Finalize();
        return 2;
    }
    prepare(&s, p);
    make_keys(&s);
    rank_keys(&s, 1); /* not timed: memory and connections come into being */
    MPI_Barrier(MPI_COMM_WORLD);
    begin = MPI_Wtime();
    for (int iteration = 1; iteration <= ITERATIONS; iteration++) {
        rank_keys(&s, iteration);
        wrong += wrong_ranks(&s, iteration);
    }
    seconds = MPI_Wtime() - begin;
    wrong = all_wrong(&s, wrong);

    MPI_Reduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (s.rank == 0) report(p, s.ranks, slowest, wrong);
    release(&s);
    MPI_Finalize();
    return wrong ? 1 : 0;
}
