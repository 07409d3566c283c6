/* Operations on star forests (PetscSF) whose results do not depend on the order in which ranks come: what this prints must be the same
   for every -sf_type, -sf_window_sync and -sf_window_flavor. Rank r has 3 + r roots; each root of rank r has leaves on several ranks,
   and on the last rank, if there are several, there are no leaves. */
#include <petscsf.h>

enum { ROUNDS = 3, WIDE = 3, MOST = 64 };

static PetscMPIInt rank, size;

static PetscInt roots_of(PetscMPIInt r) { return 3 + r; }

/* Leaves are apart from one another, and not in the order of their roots. */
static PetscErrorCode forest(PetscSF *sf, PetscInt *leaves, PetscInt *room) {
    PetscInt    n = 0, *local;
    PetscSFNode *remote;
    PetscFunctionBeginUser;
    PetscCall(PetscMalloc1(MOST, &local));
    PetscCall(PetscMalloc1(MOST, &remote));
    for (PetscMPIInt r = size - 1; r >= 0 && (rank < size - 1 || size == 1); r--) {
        for (PetscInt i = 0; i < roots_of(r); i++) {
            if ((i + r + rank) % 3 == 2) continue;
            local[n]          = 2 * n + 1;
            remote[n].rank    = r;
            remote[n++].index = (i + rank) % roots_of(r);
        }
    }
    *leaves = n;
    *room   = 2 * n + 1;
    PetscCall(PetscSFCreate(PETSC_COMM_WORLD, sf));
    PetscCall(PetscSFSetFromOptions(*sf));
    PetscCall(PetscSFSetGraph(*sf, roots_of(rank), n, local, PETSC_OWN_POINTER, remote, PETSC_OWN_POINTER));
    PetscCall(PetscSFSetUp(*sf));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode show(const char *what, PetscInt n, const PetscInt *values) {
    PetscFunctionBeginUser;
    PetscCall(PetscSynchronizedPrintf(PETSC_COMM_WORLD, "[%d] %s:", rank, what));
    for (PetscInt i = 0; i < n; i++) PetscCall(PetscSynchronizedPrintf(PETSC_COMM_WORLD, " %" PetscInt_FMT, values[i]));
    PetscCall(PetscSynchronizedPrintf(PETSC_COMM_WORLD, "\n"));
    PetscCall(PetscSynchronizedFlush(PETSC_COMM_WORLD, PETSC_STDOUT));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Elements of `wide` integers each. */
static PetscErrorCode operations(PetscSF sf, PetscInt wide, PetscInt room, PetscInt round) {
    PetscInt     root[WIDE * MOST], leaf[WIDE * MOST], update[WIDE * MOST], sum[2] = {0, 0}, all[2];
    PetscInt     roots = wide * roots_of(rank), leaves = wide * room;
    MPI_Datatype unit = MPIU_INT;
    PetscFunctionBeginUser;
    if (wide > 1) {
        PetscCallMPI(MPI_Type_contiguous((PetscMPIInt)wide, MPIU_INT, &unit));
        PetscCallMPI(MPI_Type_commit(&unit));
    }
    for (PetscInt i = 0; i < roots; i++) root[i] = 1000 * (rank + 1) + 10 * i + round;
    for (PetscInt i = 0; i < leaves; i++) leaf[i] = -1;
    PetscCall(PetscSFBcastBegin(sf, unit, root, leaf, MPI_REPLACE));
    PetscCall(PetscSFBcastEnd(sf, unit, root, leaf, MPI_REPLACE));
    PetscCall(show("broadcast", leaves, leaf));
    if (wide == 1) {
        for (PetscInt i = 0; i < leaves; i++) leaf[i] = i + rank;
        PetscCall(PetscSFReduceBegin(sf, unit, leaf, root, MPI_SUM));
        PetscCall(PetscSFReduceEnd(sf, unit, leaf, root, MPI_SUM));
        PetscCall(show("sum", roots, root));
        PetscCall(PetscSFReduceBegin(sf, unit, leaf, root, MPI_MAX));
        PetscCall(PetscSFReduceEnd(sf, unit, leaf, root, MPI_MAX));
        PetscCall(show("maximum", roots, root));
        /* all leaves add the same: which of them comes first does not change what they find together */
        for (PetscInt i = 0; i < leaves; i++) leaf[i] = 7, update[i] = 0;
        PetscCall(PetscSFFetchAndOpBegin(sf, unit, root, leaf, update, MPI_SUM));
        PetscCall(PetscSFFetchAndOpEnd(sf, unit, root, leaf, update, MPI_SUM));
        PetscCall(show("fetched from", roots, root));
        for (PetscInt i = 1; i < leaves; i += 2) sum[0] += update[i];
    }
    sum[1] = round;
    PetscCallMPI(MPI_Allreduce(sum, all, 2, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD));
    PetscCall(show("found together", 2, all));
    if (wide > 1) PetscCallMPI(MPI_Type_free(&unit));
    PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv) {
    PetscSF         sf;
    PetscInt        leaves, room;
    const PetscInt *degree;
    PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
    PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
    PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
    PetscCall(forest(&sf, &leaves, &room));
    PetscCall(PetscSFComputeDegreeBegin(sf, &degree));
    PetscCall(PetscSFComputeDegreeEnd(sf, &degree));
    PetscCall(show("degrees", roots_of(rank), degree));
    for (PetscInt round = 0; round < ROUNDS; round++) {
        PetscCall(operations(sf, 1, room, round));
        PetscCall(operations(sf, WIDE, room, round));
    }
    PetscCall(PetscSFDestroy(&sf));
    PetscCall(PetscFinalize());
    return 0;
}
