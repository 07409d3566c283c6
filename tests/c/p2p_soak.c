// run: n=2,4 timeout=120 abi=one
// Random traffic between all pairs: sizes, modes, tags, communicators and completion calls from one seed (argument 1 or
// the clock), every message with a checksum.
#include "check.h"

#define MESSAGES 1500
#define MAXLEN 300000

static int length(uint64_t *g) {
    uint64_t a = rnd(g) % 100;
    if (a < 40) return (int)(rnd(g) % 64);
    if (a < 70) return (int)(rnd(g) % 4096);
    if (a < 90) return (int)(rnd(g) % 70000);
    return (int)(rnd(g) % MAXLEN);
}

// What rank `from` sends to rank `to` as its message number `i`: the same on both sides.
struct plan { int len, tag, comm, mode, wild; uint64_t seed; };
static struct plan plan(uint64_t seed, int from, int to, int i) {
    uint64_t g = seed ^ ((uint64_t)from << 40) ^ ((uint64_t)to << 20) ^ (uint64_t)i;
    struct plan p;
    rnd(&g);
    p.len = length(&g);
    p.tag = (int)(rnd(&g) % 3);
    p.comm = (int)(rnd(&g) % 2);
    p.mode = (int)(rnd(&g) % 3);
    p.wild = (int)(rnd(&g) % 2);
    p.seed = rnd(&g);
    return p;
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : (uint64_t)time(NULL);
    MPI_Comm comm[2] = {MPI_COMM_WORLD, MPI_COMM_NULL};
    int me = check_rank, n = check_size, i, k, p;
    if (me == 0)
        for (i = 1; i < n; i++) MPI_Send(&seed, 8, MPI_BYTE, i, 0, MPI_COMM_WORLD);
    else
        MPI_Recv(&seed, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (me == 0) printf("seed %llu\n", (unsigned long long)seed);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm[1]);
    enum { WINDOW = 24 };
    int per = MESSAGES / n / WINDOW;
    uint64_t mine = seed + (uint64_t)me * 77;
    for (i = 0; i < per; i++) {
        int total = 0, max = 2 * WINDOW * n;
        MPI_Request *r = malloc(max * sizeof *r);
        char **buf = malloc(max * sizeof *buf);
        struct plan *plans = malloc(max * sizeof *plans);
        int recvs = 0;
        int order = (int)(rnd(&mine) % 2);
        for (int pass = 0; pass < 2; pass++) {
            int receiving = pass == order;
            for (p = 0; p < n; p++)
                for (k = 0; k < WINDOW; k++) {
                    struct plan q = receiving ? plan(seed, p, me, i * WINDOW + k) : plan(seed, me, p, i * WINDOW + k);
                    if (!receiving) {
                        buf[total] = malloc(q.len + 1);
                        fill(buf[total], q.len, q.seed);
                        plans[total] = q;
                        plans[total].wild = -1;
                        if (q.mode == 1)
                            OK(MPI_Issend(buf[total], q.len, MPI_BYTE, p, q.tag, comm[q.comm], &r[total]));
                        else
                            OK(MPI_Isend(buf[total], q.len, MPI_BYTE, p, q.tag, comm[q.comm], &r[total]));
                    } else {
                        buf[total] = malloc(q.len + 8);
                        plans[total] = q;
                        plans[total].wild = p;
                        OK(MPI_Irecv(buf[total], q.len + 8, MPI_BYTE, p, q.tag, comm[q.comm], &r[total]));
                        recvs++;
                    }
                    total++;
                }
        }
        int how = (int)(rnd(&mine) % 4), done = 0;
        MPI_Status *s = malloc(total * sizeof *s);
        int *idx = malloc(total * sizeof *idx);
        if (how == 0) {
            OK(MPI_Waitall(total, r, s));
            for (k = 0; k < total; k++) idx[k] = k;
            done = total;
        }
        for (int at = 0; at < total || done > 0;) {
            int got = done;
            done = 0;
            if (!got && how == 1) OK(MPI_Waitsome(total, r, &got, idx, s));
            if (!got && how == 2) { OK(MPI_Waitany(total, r, idx, s)); got = 1; }
            if (!got && how == 3) OK(MPI_Testsome(total, r, &got, idx, s));
            if (got < 0) { FAILED("requests are lost"); break; }
            for (k = 0; k < got; k++) {
                struct plan *q = &plans[idx[k]];
                if (q->wild < 0) continue;
                CHECK_EQ(s[k].MPI_SOURCE, q->wild);
                CHECK_EQ(s[k].MPI_TAG, q->tag);
                CHECK_EQ(count_of(&s[k], MPI_BYTE), q->len);
                CHECK_EQ(differs(buf[idx[k]], q->len, q->seed), -1);
            }
            at += got;
            if (at >= total) break;
        }
        for (k = 0; k < total; k++) free(buf[k]);
        free(r), free(buf), free(plans), free(s), free(idx);
    }
    MPI_Comm_free(&comm[1]);
    if (check_failed) fprintf(stderr, "seed was %llu\n", (unsigned long long)seed);
    return check_end();
}
