// A rank that dies of a program error: crash HOW. The last rank does so, the others wait for it.
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int *volatile nowhere = (int *)0x10;
static volatile int zero;

__attribute__((noinline)) static void innermost(void) { *nowhere = 1; }

__attribute__((noinline)) static void inner(void) {
    innermost();
    zero = 0;
}

__attribute__((noinline)) static int deeper(volatile char *above) {
    volatile char here[4096];
    here[0] = above[0];
    return deeper(here) + here[1];
}

static void *in_a_thread(void *unused) {
    inner();
    return unused;
}

static void mine(int number) {
    (void)number;
    static const char text[] = "my own handler\n";
    if (write(2, text, sizeof text - 1) > 0) _exit(3);
}

// A stack for handlers as small as Python's faulthandler and Rust's runtime make it, above memory that may not be touched.
static void give_a_small_stack(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 8192 + getauxval(AT_MINSIGSTKSZ);
    size_t whole = (size + page - 1) / page * page;
    char *memory = mmap(NULL, page + whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + page, whole, PROT_READ | PROT_WRITE)) exit(4);
    stack_t stack = {.ss_sp = memory + page, .ss_size = whole};
    if (sigaltstack(&stack, NULL)) exit(4);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    if (!strcmp(how, "handler")) signal(SIGSEGV, mine);
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == size - 1) {
        if (!strcmp(how, "segv") || !strcmp(how, "handler")) inner();
        if (!strcmp(how, "abort")) abort();
        if (!strcmp(how, "small")) give_a_small_stack(), abort();
        if (!strcmp(how, "divide")) zero = 100 / zero;
        if (!strcmp(how, "deep")) zero = deeper((volatile char *)how);
        if (!strcmp(how, "sent")) raise(SIGSEGV);
        if (!strcmp(how, "thread")) {
            pthread_t other;
            pthread_create(&other, NULL, in_a_thread, NULL);
            pthread_join(other, NULL);
        }
        if (!strcmp(how, "child")) {
            int status = 0;
            pid_t child = fork();
            if (child == 0) inner();
            waitpid(child, &status, 0);
            printf("the child was killed by %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
        }
    }
    if (!strcmp(how, "foreign")) MPI_Comm_size((MPI_Comm)0x44000000, &size);
    if (!strcmp(how, "finalized")) {
        MPI_Finalize();
        if (rank == size - 1) inner();
        return 0;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
