// Ranks that share a CPU sleep often: none of them may make the kernel fence all CPUs for that. From now on, a rank that calls
// membarrier(2) is killed; then all ranks sleep, waiting for messages, in shared-memory collectives and for probes.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int forbid_membarrier(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}

int main(int argc, char **argv) {
    int rank, size, token = 0, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    if (forbid_membarrier()) {
        printf("no filter: %d\n", errno);
        MPI_Finalize();
        return 0;
    }
    for (int i = 0; i < 300; i++) {
        MPI_Comm split;
        if (rank == i % size) usleep(1000);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Comm_split(MPI_COMM_WORLD, i % 2, rank, &split);
        MPI_Comm_free(&split);
        if (rank) MPI_Probe(rank - 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank) MPI_Recv(&token, 1, MPI_INT, rank - 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        token = rank ? token + 1 : 1;
        sum += token;
        if (rank + 1 < size) MPI_Ssend(&token, 1, MPI_INT, rank + 1, 5, MPI_COMM_WORLD);
    }
    if (rank == size - 1 && sum == 300 * size) printf("fences: ok\n");
    MPI_Finalize();
    return 0;
}
