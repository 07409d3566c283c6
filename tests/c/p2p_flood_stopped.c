// run: n=2 timeout=120 abi=one
/* Half a million messages or more (a million in `make check-all`) to a rank that the system stops for a third of a second, as a busy
 * host does to its processes: what waits meanwhile is bounded by what the kernel takes for one connection and a little, at the sender
 * and, when the other goes on, at the receiver, which has told the sender to pause by then. Nothing is lost. */
#include "check.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define LARGE (4 << 20)

/* Stops this process in a moment, and lets it go on later. */
static pid_t be_stopped(void) {
    pid_t me = getpid(), child = fork();
    if (child) return child;
    usleep(5000);
    kill(me, SIGSTOP);
    usleep(300000);
    kill(me, SIGCONT);
    _exit(0);
}

int main(int argc, char **argv) {
    long i, v, wrong = 0, many = check_flood_messages();
    static char large[LARGE];
    MPI_Request r;
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    memset(large, 1, LARGE);
    meet();
    long before = check_kilobytes("VmHWM");
    if (check_rank == 0) {
        for (i = 0; i < many; i++) OK(MPI_Send(&i, 1, MPI_LONG, 1, 1, MPI_COMM_WORLD));
        OK(MPI_Recv(large, LARGE, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        long long grew = (check_kilobytes("VmHWM") - before) * 1024LL;
        if (STRICT && grew > 2 * check_kernel_bytes("tcp_wmem", 4 << 20) + (16 << 20)) FAILED("the sender's memory grew by %lld bytes", grew);
    } else if (check_rank == 1) {
        // Something goes on, so messages are taken in while this rank computes.
        OK(MPI_Isend(large, LARGE, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &r));
        pid_t child = be_stopped();
        while (waitpid(child, NULL, 0) < 0);
        usleep(2500000); /* all would have come by then */
        for (i = 0; i < many; i++) {
            OK(MPI_Recv(&v, 1, MPI_LONG, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            wrong += v != i;
        }
        OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        CHECK_EQ(wrong, 0);
        long long grew = (check_kilobytes("VmHWM") - before) * 1024LL;
        if (STRICT && grew > check_flood_limit(many)) FAILED("the receiver's memory grew by %lld bytes", grew);
    }
    meet();
    return check_end();
}
