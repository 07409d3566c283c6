// run: n=2,4 timeout=60
/* Ports and names of services (MPI 5.0, 11.9): halves of the job connect to each other as jobs do
 * that were started apart; what is refused. */
#include "check.h"
#include <unistd.h>

static void connects(MPI_Comm half, int serves, const char *service) {
    char port[MPI_MAX_PORT_NAME] = "";
    int rank, sum = 0, one = 1, remote, size, round;
    MPI_Comm inter, all;
    OK(MPI_Comm_rank(half, &rank));
    OK(MPI_Comm_size(half, &size));
    if (serves && rank == 0) {
        OK(MPI_Open_port(MPI_INFO_NULL, port));
        OK(MPI_Publish_name(service, MPI_INFO_NULL, port));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (!serves && rank == 0) OK(MPI_Lookup_name(service, MPI_INFO_NULL, port));
    for (round = 0; round < 3; round++) {
        if (serves) OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter));
        else OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter));
        OK(MPI_Comm_remote_size(inter, &remote));
        OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter));
        CHECK_EQ(sum, remote);
        OK(MPI_Intercomm_merge(inter, serves, &all));
        OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all));
        CHECK_EQ(sum, remote + size);
        OK(MPI_Comm_free(&all));
        OK(MPI_Comm_disconnect(&inter));
    }
    if (serves && rank == 0) {
        OK(MPI_Unpublish_name(service, MPI_INFO_NULL, port));
        OK(MPI_Close_port(port));
    }
}

static void refused(int rank) {
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm inter;
    if (rank != 0) return;
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    CHECK_CLASS(MPI_Comm_connect("no port", MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT);
    CHECK(inter == MPI_COMM_NULL);
    CHECK_CLASS(MPI_Comm_accept("no port", MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT);
    OK(MPI_Open_port(MPI_INFO_NULL, port));
    OK(MPI_Close_port(port));
    CHECK_CLASS(MPI_Close_port(port), MPI_ERR_PORT);
    CHECK_CLASS(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT);
    CHECK_CLASS(MPI_Lookup_name("this was never published", MPI_INFO_NULL, port), MPI_ERR_NAME);
    CHECK_CLASS(MPI_Unpublish_name("this was never published", MPI_INFO_NULL, port), MPI_ERR_SERVICE);
    CHECK_CLASS(MPI_Comm_accept(port, MPI_INFO_NULL, 7, MPI_COMM_SELF, &inter), MPI_ERR_ROOT);
}

int main(int argc, char **argv) {
    int rank, size, id = 0;
    char service[64];
    MPI_Comm half;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    check_rank = rank;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0) id = (int)getpid();
    OK(MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD));
    snprintf(service, sizeof service, "ports test %d", id);
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, rank, &half));
    connects(half, rank < size / 2, service);
    OK(MPI_Comm_free(&half));
    refused(rank);
    return check_result();
}
