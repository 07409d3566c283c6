// run: n=2,4 timeout=60 abi=one
/* KW_CHECK=1: calls that do not fit together give every rank an error that names both sides, in all three forms; the
 * communicator can be used afterwards, and calls that fit are left alone. */
#include "check.h"

static int rank, size, last; /* the last rank does it wrong */

/* Every rank gets this class, and a sentence with both of these in it. */
static void hears(int code, int class, const char *one, const char *other, int line) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int len;
    if (check_class(code) != class) FAILED("line %d: class %d, not %d", line, check_class(code), class);
    MPI_Error_string(code, text, &len);
    int cut = len == MPI_MAX_ERROR_STRING - 1; // in another ABI
    if (!cut && (!strstr(text, one) || !strstr(text, other))) FAILED("line %d: '%s' lacks '%s' or '%s'", line, text, one, other);
}
#define HEARS(call, class, one, other) hears(call, class, one, other, __LINE__)

static int later(int code, MPI_Request *r) {
    return code == MPI_SUCCESS ? MPI_Wait(r, MPI_STATUS_IGNORE) : code;
}

static void works(MPI_Comm comm) {
    int one = 1, sum = 0;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK_EQ(sum, size);
    OK(MPI_Barrier(comm));
}

static void mismatches(MPI_Comm comm) {
    static int a[4096], b[4096], n[64], at[64];
    char mine[64], zero[64] = "rank 0 calls";
    MPI_Request r;
    snprintf(mine, sizeof mine, "rank %d calls", size - 1);
    for (int i = 0; i < 64; i++) n[i] = 1, at[i] = 0;
    HEARS(MPI_Bcast(a, 4, MPI_INT, last, comm), MPI_ERR_ROOT, "MPI_Bcast of 4 MPI_INT with root 1", "with root 0 on MPI_COMM_WORLD");
    works(comm);
    HEARS(last ? MPI_Reduce(a, b, 1, MPI_INT, MPI_SUM, 0, comm) : MPI_Bcast(a, 4, MPI_INT, 0, comm), MPI_ERR_OTHER, "calls MPI_Reduce", "rank 0 calls MPI_Bcast");
    HEARS(MPI_Bcast(a, 4 + last, MPI_INT, 0, comm), MPI_ERR_COUNT, zero, mine);
    HEARS(MPI_Bcast(a, 4, last ? MPI_FLOAT : MPI_INT, 0, comm), MPI_ERR_TYPE, "of 4 MPI_FLOAT", "of 4 MPI_INT");
    HEARS(MPI_Reduce(a, b, 1, MPI_INT, last ? MPI_MAX : MPI_SUM, 0, comm), MPI_ERR_OP, "by MPI_MAX", "by MPI_SUM");
    HEARS(MPI_Allreduce(last ? MPI_IN_PLACE : a, b, 1, MPI_INT, MPI_SUM, comm), MPI_ERR_BUFFER, "with MPI_IN_PLACE", zero);
    HEARS(MPI_Allreduce(a, b, 1 + last, MPI_INT, MPI_SUM, comm), MPI_ERR_COUNT, "of 2 MPI_INT", "of 1 MPI_INT");
    HEARS(MPI_Scan(a, b, 1, last ? MPI_UNSIGNED : MPI_INT, MPI_SUM, comm), MPI_ERR_TYPE, "MPI_UNSIGNED", "of 1 MPI_INT");
    HEARS(MPI_Gather(a, 1 + last, MPI_INT, b, 1, MPI_INT, 0, comm), MPI_ERR_TRUNCATE, mine, "gives 8 bytes where rank 0 takes 4");
    HEARS(MPI_Scatter(a, 2, MPI_INT, b, 2 - last, MPI_INT, 0, comm), MPI_ERR_TRUNCATE, "rank 0 gives 8 bytes", mine);
    HEARS(MPI_Allgather(a, 1, MPI_INT, b, 1, last ? MPI_FLOAT : MPI_INT, comm), MPI_ERR_TYPE, mine, "the datatypes differ");
    HEARS(MPI_Alltoall(a, 2 - last, MPI_INT, b, 2 - last, MPI_INT, comm), MPI_ERR_TRUNCATE, "gives 8 bytes where", "takes 4");
    if (last) n[0] = 2;
    HEARS(MPI_Alltoallv(a, n, at, MPI_INT, b, n, at, MPI_INT, comm), MPI_ERR_COUNT, "gives 4 bytes where", "takes 8");
    HEARS(MPI_Reduce_scatter(a, b, n, MPI_INT, MPI_SUM, comm), MPI_ERR_COUNT, mine, " MPI_INT by MPI_SUM");
    n[0] = 1;
    HEARS(MPI_Reduce_scatter_block(a, b, 1 + last, MPI_INT, MPI_SUM, comm), MPI_ERR_COUNT, "of 2 MPI_INT", "of 1 MPI_INT");
    works(comm);
    /* Forms do not go together either. */
    HEARS(last ? MPI_Barrier(comm) : later(MPI_Ibarrier(comm, &r), &r), MPI_ERR_OTHER, "MPI_Barrier", "MPI_Ibarrier");
    HEARS(later(MPI_Ibcast(a, 4, MPI_INT, last, comm, &r), &r), MPI_ERR_ROOT, "MPI_Ibcast", "with root 0");
    OK(MPI_Allreduce_init(a, b, 1 + last, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r));
    for (int i = 0; i < 2; i++) {
        OK(MPI_Start(&r));
        HEARS(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_ERR_COUNT, "MPI_Allreduce_init of 2 MPI_INT", zero);
    }
    OK(MPI_Request_free(&r));
    /* One rank's arguments are refused: the others do not wait for it. */
    HEARS(MPI_Bcast(a, last ? -1 : 1, MPI_INT, 0, comm), MPI_ERR_COUNT, "MPI_Bcast: ", "count is -1");
    HEARS(later(MPI_Ibcast(a, rank ? 1 : -1, MPI_INT, 0, comm, &r), &r), MPI_ERR_COUNT, "", "count is -1");
    works(comm);
    /* Refused, and the others never start it. */
    int code = MPI_Bcast_init(a, last ? -1 : 1, MPI_INT, 0, comm, MPI_INFO_NULL, &r);
    CHECK_CLASS(code, last ? MPI_ERR_COUNT : MPI_SUCCESS);
    if (!last) OK(MPI_Request_free(&r));
    works(comm);
}

/* MPI_Comm_create: who is in one group names the same group. Different groups without common members are right, and so is a rank
 * that names a group without itself. */
static void groups(MPI_Comm comm, MPI_Group all) {
    MPI_Group some, own;
    MPI_Comm c;
    int zero = 0;
    OK(MPI_Group_excl(all, 1, &zero, &some));
    OK(MPI_Group_incl(all, 1, &rank, &own));
    HEARS(MPI_Comm_create(comm, last ? all : some, &c), MPI_ERR_GROUP, "MPI_Comm_create with a group of", "no process in common");
    HEARS(MPI_Comm_create(comm, last ? some : all, &c), MPI_ERR_GROUP, "MPI_Comm_create with a group of", "no process in common");
    HEARS(MPI_Comm_create(comm, last ? own : all, &c), MPI_ERR_GROUP, "a group of 1 processes", "no process in common");
    OK(MPI_Comm_create(comm, own, &c));
    OK(MPI_Comm_free(&c));
    OK(MPI_Comm_create(comm, rank ? some : own, &c));
    OK(MPI_Comm_free(&c));
    OK(MPI_Comm_create(comm, some, &c));
    CHECK((c == MPI_COMM_NULL) == (rank == 0));
    if (rank) OK(MPI_Comm_free(&c));
    OK(MPI_Group_free(&some));
    OK(MPI_Group_free(&own));
}

/* Groups without a communicator of their own: who is in the other's group hears that it is another one, and so does rank 0, of which the last
 * rank says nothing. */
static void bare_groups(MPI_Comm comm, MPI_Group all) {
    static const char other[] = "processes (";
    MPI_Group some, turned, own, rest;
    MPI_Comm c = MPI_COMM_NULL;
    int zero = 0, back[64];
    for (int i = 0; i < size; i++) back[i] = size - 1 - i;
    OK(MPI_Group_excl(all, 1, &zero, &some));
    OK(MPI_Group_incl(all, size, back, &turned));
    OK(MPI_Group_incl(all, 1, &zero, &own));
    OK(MPI_Group_difference(all, own, &rest));
    if (size > 2) HEARS(MPI_Comm_create_group(comm, last ? some : all, 3, &c), MPI_ERR_GROUP, "MPI_Comm_create_group with a group of", other);
    HEARS(MPI_Comm_create_group(comm, last ? turned : all, 4, &c), MPI_ERR_GROUP, "(0, 1", ", 0)");
    HEARS(MPI_Comm_create_from_group(last ? turned : all, "five", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c), MPI_ERR_GROUP, "MPI_Comm_create_from_group with", "(0, 1");
    if (size > 2 && rank) HEARS(MPI_Intercomm_create_from_groups(rest, last ? 1 : 0, own, 0, "six", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c), MPI_ERR_ARG, "and local leader 1", "and local leader 0");
    OK(MPI_Comm_create_group(comm, all, 7, &c));
    works(c);
    OK(MPI_Comm_free(&c));
    OK(MPI_Comm_create_from_group(all, "eight", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
    works(c);
    OK(MPI_Comm_free(&c));
    OK(MPI_Intercomm_create_from_groups(rank ? rest : own, 0, rank ? own : rest, 0, "nine", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
    OK(MPI_Barrier(c));
    OK(MPI_Comm_free(&c));
    OK(MPI_Group_free(&some));
    OK(MPI_Group_free(&turned));
    OK(MPI_Group_free(&own));
    OK(MPI_Group_free(&rest));
}

/* Calls that make communicators, change them, or take them away. */
static void makers(MPI_Comm comm) {
    int other = last ? 1 : 0, kind = last ? MPI_COMM_TYPE_SHARED : MPI_COMM_TYPE_HW_GUIDED;
    MPI_Comm c = MPI_COMM_NULL, kept;
    MPI_Request r;
    MPI_Group group;
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Comm_group(comm, &group));
    HEARS(last ? MPI_Comm_dup(comm, &c) : MPI_Barrier(comm), MPI_ERR_OTHER, "MPI_Comm_dup", "MPI_Barrier");
    HEARS(last ? MPI_Comm_dup(comm, &c) : MPI_Comm_split(comm, 0, 0, &c), MPI_ERR_OTHER, "MPI_Comm_dup", "MPI_Comm_split");
    HEARS(last ? later(MPI_Comm_idup(comm, &c, &r), &r) : MPI_Barrier(comm), MPI_ERR_OTHER, "MPI_Comm_idup", "MPI_Barrier");
    HEARS(later(last ? MPI_Comm_idup_with_info(comm, info, &c, &r) : MPI_Comm_idup(comm, &c, &r), &r), MPI_ERR_OTHER, "MPI_Comm_idup_with_info", "MPI_Comm_idup on");
    HEARS(last ? MPI_Comm_set_info(comm, info) : MPI_Comm_dup_with_info(comm, info, &c), MPI_ERR_OTHER, "MPI_Comm_set_info", "MPI_Comm_dup_with_info");
    HEARS(last ? MPI_Comm_create(comm, group, &c) : MPI_Barrier(comm), MPI_ERR_OTHER, "MPI_Comm_create", "MPI_Barrier");
    if (size > 1) groups(comm, group);
    if (size > 1) bare_groups(comm, group);
    HEARS(MPI_Comm_split_type(comm, kind, 0, info, &c), MPI_ERR_ARG, "MPI_Comm_split_type of type", "rank 0");
    HEARS(MPI_Intercomm_create(comm, 0, comm, 1, 5 + other, &c), MPI_ERR_ARG, "with local leader 0 and tag 6", "and tag 5");
    works(comm);
    /* One rank's arguments are refused: the others do not wait for it. */
    HEARS(MPI_Comm_split(comm, last ? -5 : 1, 0, &c), MPI_ERR_ARG, "MPI_Comm_split: ", "color is -5");
    HEARS(MPI_Comm_create(comm, last ? MPI_GROUP_NULL : group, &c), MPI_ERR_GROUP, "MPI_Comm_create: ", "");
    HEARS(MPI_Comm_set_info(comm, last ? MPI_INFO_NULL : info), MPI_ERR_INFO, "MPI_Comm_set_info: ", "");
    HEARS(MPI_Intercomm_create(comm, 0, comm, 1, last ? -9 : 5, &c), MPI_ERR_TAG, "MPI_Intercomm_create: ", "tag is -9");
    works(comm);
    OK(MPI_Comm_dup(comm, &kept));
    HEARS(last ? MPI_Comm_free(&kept) : MPI_Barrier(kept), MPI_ERR_OTHER, "MPI_Comm_free", "MPI_Barrier");
    HEARS(last ? MPI_Comm_free(&kept) : MPI_Comm_disconnect(&kept), MPI_ERR_OTHER, "MPI_Comm_free", "MPI_Comm_disconnect");
    works(kept);
    OK(MPI_Comm_free(&kept));
    OK(MPI_Group_free(&group));
    OK(MPI_Info_free(&info));
}

/* Topologies. */
static void arrangements(MPI_Comm comm) {
    int dims[2] = {last ? 1 : size, 1}, rings[2] = {1, 0}, keep[2] = {1, last ? 1 : 0};
    int index[64], edges[64], left = (rank + size - 1) % size, right = (rank + 1) % size, one = 1;
    char whole[64];
    MPI_Comm c = MPI_COMM_NULL, grid;
    snprintf(whole, sizeof whole, "with dims [%d], periods [true] and reorder 0", size);
    HEARS(MPI_Cart_create(comm, 1, dims, rings, 0, &c), MPI_ERR_ARG, whole, "MPI_Cart_create with dims [1]");
    dims[0] = size;
    HEARS(MPI_Cart_create(comm, 1, dims, rings, last ? 1 : 0, &c), MPI_ERR_ARG, whole, "reorder 1");
    HEARS(MPI_Cart_create(comm, last ? 2 : 1, dims, rings, 0, &c), MPI_ERR_ARG, whole, ", 1], periods [true, false]");
    dims[0] = last ? 0 : size;
    HEARS(MPI_Cart_create(comm, 1, dims, rings, 0, &c), MPI_ERR_DIMS, "MPI_Cart_create: ", "dims[0] is 0");
    dims[0] = size;
    OK(MPI_Cart_create(comm, 2, dims, rings, 0, &grid));
    HEARS(MPI_Cart_sub(grid, keep, &c), MPI_ERR_ARG, "with remain_dims [1, 1]", "with remain_dims [1, 0]");
    OK(MPI_Comm_free(&grid));
    /* A ring in which the last rank forgets its last edge. */
    for (int i = 0; i < size; i++) index[i] = 2 * i + 2, edges[2 * i] = (i + size - 1) % size, edges[2 * i + 1] = (i + 1) % size;
    if (last) edges[2 * size - 1] = rank;
    HEARS(MPI_Graph_create(comm, size, index, edges, 0, &c), MPI_ERR_ARG, "with index [2, 4", "rank 0 calls MPI_Graph_create");
    if (last) edges[0] = size;
    HEARS(MPI_Graph_create(comm, size, index, edges, 0, &c), MPI_ERR_RANK, "MPI_Graph_create: ", "edges[0] is");
    HEARS(MPI_Dist_graph_create(comm, 1, &rank, &one, &right, MPI_UNWEIGHTED, MPI_INFO_NULL, last ? 1 : 0, &c), MPI_ERR_ARG, "reorder 1", "MPI_UNWEIGHTED and reorder 0");
    HEARS(MPI_Dist_graph_create(comm, 1, &rank, &one, &right, last ? &one : MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &c), MPI_ERR_ARG, "with weights", "with MPI_UNWEIGHTED");
    HEARS(MPI_Dist_graph_create(comm, last ? -1 : 1, &rank, &one, &right, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &c), MPI_ERR_ARG, "MPI_Dist_graph_create: ", "is -1");
    HEARS(MPI_Dist_graph_create_adjacent(comm, 1, &left, MPI_UNWEIGHTED, last ? 0 : 1, &right, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &c), MPI_ERR_TOPOLOGY, "names 0 edges to rank 0, which names 1 from it", "rank 0 calls");
    works(comm);
}

/* Along the edges of a ring. */
static void neighbors(MPI_Comm comm) {
    static int a[64], b[64];
    int dims[1] = {size}, rings[1] = {1}, n[2] = {1 + !!last, 1}, ones[2] = {1, 1}, at[2] = {0, 2};
    MPI_Datatype types[2] = {last ? MPI_FLOAT : MPI_INT, MPI_INT}, ints[2] = {MPI_INT, MPI_INT};
    MPI_Comm ring;
    MPI_Request r;
    OK(MPI_Cart_create(comm, 1, dims, rings, 0, &ring));
    HEARS(MPI_Neighbor_allgather(a, 1 + !!last, MPI_INT, b, 1, MPI_INT, ring), MPI_ERR_TRUNCATE, "MPI_Neighbor_allgather of 2 MPI_INT to rank", "gives ");
    HEARS(MPI_Neighbor_allgatherv(a, 1, last ? MPI_FLOAT : MPI_INT, b, ones, at, MPI_INT, ring), MPI_ERR_TYPE, "of 1 MPI_FLOAT", "the datatypes differ");
    HEARS(MPI_Neighbor_alltoall(a, 2 - !!last, MPI_INT, b, 2, MPI_INT, ring), MPI_ERR_COUNT, "gives ", "rank 0 calls MPI_Neighbor_alltoall of 2");
    HEARS(MPI_Neighbor_alltoallv(a, n, at, MPI_INT, b, ones, at, MPI_INT, ring), MPI_ERR_TRUNCATE, "MPI_Neighbor_alltoallv of 2", "gives ");
    HEARS(MPI_Neighbor_alltoallw(a, ones, (MPI_Aint[]){0, 8}, types, b, ones, (MPI_Aint[]){0, 8}, ints, ring), MPI_ERR_TYPE, "of 1 MPI_FLOAT", "the datatypes differ");
    HEARS(last ? MPI_Neighbor_allgather(a, 1, MPI_INT, b, 1, MPI_INT, ring) : MPI_Neighbor_alltoall(a, 1, MPI_INT, b, 1, MPI_INT, ring), MPI_ERR_OTHER, "MPI_Neighbor_allgather", "MPI_Neighbor_alltoall");
    HEARS(later(MPI_Ineighbor_alltoall(a, 1 + !!last, MPI_INT, b, 1, MPI_INT, ring, &r), &r), MPI_ERR_TRUNCATE, "MPI_Ineighbor_alltoall of 2", "gives ");
    HEARS(MPI_Neighbor_allgather(a, last ? -1 : 1, MPI_INT, b, 1, MPI_INT, ring), MPI_ERR_COUNT, "MPI_Neighbor_allgather: ", "is -1");
    OK(MPI_Neighbor_alltoall_init(a, 1 + !!last, MPI_INT, b, 1, MPI_INT, ring, MPI_INFO_NULL, &r));
    OK(MPI_Start(&r));
    HEARS(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE, "MPI_Neighbor_alltoall_init of 2", "gives ");
    OK(MPI_Request_free(&r));
    /* What fits is left alone: other counts along other edges, as long as both ends say the same. */
    OK(MPI_Neighbor_alltoallv(a, (int[]){1, 2}, at, MPI_INT, b, (int[]){2, 1}, at, MPI_INT, ring));
    OK(MPI_Neighbor_alltoallw(a, (int[]){1, 8}, (MPI_Aint[]){0, 8}, (MPI_Datatype[]){MPI_INT, MPI_BYTE}, b, (int[]){8, 1}, (MPI_Aint[]){0, 8}, (MPI_Datatype[]){MPI_BYTE, MPI_INT}, ring));
    works(ring);
    OK(MPI_Comm_free(&ring));
}

/* What the standard allows: other types with the same elements, MPI_PACKED, other handles of the user's operations. */
static void may(void *in, void *inout, int *n, MPI_Datatype *type) {
    for (int i = 0; i < *n; i++) ((int *)inout)[i] += ((int *)in)[i];
}

static void allowed(void) {
    int a[8] = {0}, b[8 * 64], n[64], at[64], sum = 0;
    MPI_Datatype two;
    MPI_Op op, more;
    OK(MPI_Type_contiguous(2, MPI_INT, &two));
    OK(MPI_Type_commit(&two));
    if (last) OK(MPI_Op_create(may, 1, &more));
    OK(MPI_Op_create(may, 1, &op));
    OK(MPI_Bcast(a, last ? 4 : 2, last ? MPI_INT : two, 0, MPI_COMM_WORLD));
    OK(MPI_Bcast(a, last ? 16 : 4, last ? MPI_PACKED : MPI_INT, 0, MPI_COMM_WORLD));
    OK(MPI_Gather(rank ? (void *)a : MPI_IN_PLACE, 2, MPI_INT, b, 1, two, 0, MPI_COMM_WORLD));
    OK(MPI_Allreduce(&check_size, &sum, 1, MPI_INT, op, MPI_COMM_WORLD));
    CHECK_EQ(sum, size * size);
    OK(MPI_Scan(last ? MPI_IN_PLACE : a, b, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    for (int i = 0; i < size; i++) n[i] = i % 3, at[i] = 3 * i;
    OK(MPI_Allgatherv(a, n[rank], MPI_INT, b, n, at, MPI_INT, MPI_COMM_WORLD));
    OK(MPI_Gatherv(a, n[rank], MPI_INT, b, n, at, MPI_INT, size - 1, MPI_COMM_WORLD));
    OK(MPI_Scatterv(b, n, at, MPI_INT, a, n[rank], MPI_INT, size - 1, MPI_COMM_WORLD));
    OK(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, n, at, MPI_INT, MPI_COMM_WORLD));
    OK(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, 1, two, MPI_COMM_WORLD));
    OK(MPI_Op_free(&op));
    if (last) OK(MPI_Op_free(&more));
    OK(MPI_Type_free(&two));
}

static void between_groups(void) {
    MPI_Comm half, inter, c;
    int side = rank % 2, a[4] = {0}, b[256], role;
    OK(MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half));
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 5, &inter));
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    role = side ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    OK(MPI_Bcast(a, 4, MPI_INT, role, inter));
    OK(MPI_Allreduce(a, b, 4, MPI_INT, MPI_SUM, inter));
    OK(MPI_Allgather(a, 1, MPI_INT, b, 1, MPI_INT, inter));
    OK(MPI_Reduce(a, b, 4, MPI_INT, MPI_SUM, role, inter));
    HEARS(MPI_Bcast(a, last ? 3 : 4, MPI_INT, role, inter), MPI_ERR_TRUNCATE, "MPI_ROOT", "gives 16 bytes");
    /* The others' root says that it is none. */
    HEARS(MPI_Bcast(a, 4, MPI_INT, side ? 0 : MPI_PROC_NULL, inter), MPI_ERR_ROOT, "with root 0", "MPI_PROC_NULL");
    OK(MPI_Barrier(inter));
    OK(MPI_Comm_dup(inter, &c));
    OK(MPI_Comm_free(&c));
    if (size > 2) HEARS(MPI_Intercomm_merge(inter, last ? 1 : 0, &c), MPI_ERR_ARG, "MPI_Intercomm_merge with high 1", "with high 0");
    OK(MPI_Intercomm_merge(inter, side, &c));
    works(c);
    OK(MPI_Comm_free(&c));
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&half));
}

int main(int argc, char **argv) {
    setenv("KW_CHECK", "1", 1);
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    rank = check_rank, size = check_size, last = rank == size - 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    allowed();
#if STRICT
    mismatches(MPI_COMM_WORLD);
    makers(MPI_COMM_WORLD);
    arrangements(MPI_COMM_WORLD);
    neighbors(MPI_COMM_WORLD);
    between_groups();
#endif
    return check_end();
}
