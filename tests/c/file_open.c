// run: n=1,2,4 timeout=60 paths=one
/* Opening, closing and deleting files, sizes, modes, hints and what is refused (MPI 5.0, 14.2 and 14.7). */
#include "file.h"

/* The headers of other ABIs that apigen writes do not have them. */
MPI_Fint MPI_File_c2f(MPI_File file);
MPI_File MPI_File_f2c(MPI_Fint number);

static MPI_File fh;

/* The call is refused, with no class in particular. */
#define REFUSED(call) do { if ((call) == MPI_SUCCESS) FAILED("%s succeeded", #call); } while (0)

/* Opening fails with this class, on all ranks. */
static void no_open(const char *name, int amode, int class) {
    MPI_File none = MPI_FILE_NULL;
    CHECK_CLASS(MPI_File_open(check_comm, name, amode, MPI_INFO_NULL, &none), class);
    CHECK(none == MPI_FILE_NULL);
}

static void modes(void) {
    const char *name = file_of(1);
    int amode = 0, i, given[] = {MPI_MODE_RDWR, MPI_MODE_RDONLY, MPI_MODE_WRONLY, MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL,
                                 MPI_MODE_RDWR | MPI_MODE_UNIQUE_OPEN};
    no_open(name, MPI_MODE_RDWR, MPI_ERR_NO_SUCH_FILE);
    no_open(name, MPI_MODE_CREATE, MPI_ERR_AMODE);
    no_open(name, MPI_MODE_RDONLY | MPI_MODE_WRONLY, MPI_ERR_AMODE);
    no_open(name, MPI_MODE_RDONLY | MPI_MODE_CREATE, MPI_ERR_AMODE);
    no_open(name, MPI_MODE_RDONLY | MPI_MODE_EXCL, MPI_ERR_AMODE);
    no_open(name, MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL, MPI_ERR_AMODE);
    no_open(name, MPI_MODE_RDWR | 1 << 20, MPI_ERR_AMODE);
    no_open("/no/such/directory/file", MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_ERR_NO_SUCH_FILE);
    OK(MPI_File_open(check_comm, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, MPI_INFO_NULL, &fh));
    OK(MPI_File_get_amode(fh, &amode));
    CHECK_EQ(amode, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL);
    file_close(&fh);
    no_open(name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, MPI_ERR_FILE_EXISTS);
    for (i = 0; i < 5; i++) {
        OK(MPI_File_open(check_comm, name, given[i], MPI_INFO_NULL, &fh));
        OK(MPI_File_get_amode(fh, &amode));
        CHECK_EQ(amode, given[i]);
        file_close(&fh);
    }
    OK(MPI_Barrier(check_comm));
    if (check_rank == 0) OK(MPI_File_delete(name, MPI_INFO_NULL));
    if (check_rank == 0) CHECK_CLASS(MPI_File_delete(name, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
    OK(MPI_Barrier(check_comm));
    fh = file_open(2);
    CHECK(access(file_name, F_OK) == 0);
    file_close(&fh);
    OK(MPI_Barrier(check_comm));
    CHECK(access(file_name, F_OK) != 0);
}

/* What the access mode does not allow. */
static void allowed(void) {
    const char *name = file_of(3);
    int one = 1;
    MPI_Offset at;
    OK(MPI_File_open(check_comm, name, MPI_MODE_WRONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &fh));
    OK(MPI_File_write_at(fh, 4 * check_rank, &one, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK_CLASS(MPI_File_read_at(fh, 0, &one, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ACCESS);
    CHECK_CLASS(MPI_File_read_at_all(fh, 0, &one, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ACCESS);
    file_close(&fh);
    OK(MPI_File_open(check_comm, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &fh));
    OK(MPI_File_read_at(fh, 4 * check_rank, &one, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK_EQ(one, 1);
    CHECK_CLASS(MPI_File_write_at(fh, 0, &one, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY);
    CHECK_CLASS(MPI_File_write_all(fh, &one, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY);
    REFUSED(MPI_File_set_size(fh, 0));
    REFUSED(MPI_File_preallocate(fh, 100));
    file_close(&fh);
    OK(MPI_File_open(check_comm, name, MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &fh));
    CHECK_CLASS(MPI_File_read_at(fh, 0, &one, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK_CLASS(MPI_File_read(fh, &one, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK_CLASS(MPI_File_seek(fh, 0, MPI_SEEK_SET), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK_CLASS(MPI_File_get_position(fh, &at), MPI_ERR_UNSUPPORTED_OPERATION);
    OK(MPI_File_read_shared(fh, &one, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK_EQ(one, 1);
    file_close(&fh);
    OK(MPI_Barrier(check_comm));
    if (check_rank == 0) OK(MPI_File_delete(name, MPI_INFO_NULL));
}

static void sizes(void) {
    MPI_Offset size = -1;
    MPI_Group group, world;
    int same, flag = -1;
    fh = file_open(4);
    OK(MPI_File_get_size(fh, &size));
    CHECK_EQ(size, 0);
    OK(MPI_File_set_size(fh, 1000));
    OK(MPI_File_get_size(fh, &size));
    CHECK_EQ(size, 1000);
    OK(MPI_File_preallocate(fh, 500));
    OK(MPI_File_get_size(fh, &size));
    CHECK_EQ(size, 1000);
    OK(MPI_File_preallocate(fh, 5000));
    OK(MPI_File_get_size(fh, &size));
    CHECK_EQ(size, 5000);
    OK(MPI_File_set_size(fh, 10));
    OK(MPI_File_get_size(fh, &size));
    CHECK_EQ(size, 10);
    CHECK_CLASS(MPI_File_set_size(fh, -1), MPI_ERR_ARG);
    CHECK_CLASS(MPI_File_preallocate(fh, -1), MPI_ERR_ARG);
    if (check_size > 1) CHECK_CLASS(MPI_File_set_size(fh, check_rank), MPI_ERR_NOT_SAME);
    OK(MPI_File_get_group(fh, &group));
    OK(MPI_Comm_group(check_comm, &world));
    OK(MPI_Group_compare(group, world, &same));
    CHECK_EQ(same, MPI_IDENT);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&world));
    OK(MPI_File_get_atomicity(fh, &flag));
    CHECK_EQ(flag, 0);
    OK(MPI_File_set_atomicity(fh, 1));
    OK(MPI_File_get_atomicity(fh, &flag));
    CHECK_EQ(flag, 1);
    if (check_size > 1) CHECK_CLASS(MPI_File_set_atomicity(fh, check_rank == 0), MPI_ERR_NOT_SAME);
    OK(MPI_File_sync(fh));
    file_close(&fh);
}

/* Hints: those that are known are in force, the others are ignored. */
static void hints(void) {
    MPI_Info given, used = MPI_INFO_NULL;
    char value[64] = "";
    int flag = 0, length = sizeof value;
    OK(MPI_Info_create(&given));
    OK(MPI_Info_set(given, "cb_buffer_size", "65536"));
    OK(MPI_Info_set(given, "nobody_knows_this", "5"));
    OK(MPI_File_open(check_comm, file_of(5), MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, given, &fh));
    OK(MPI_File_get_info(fh, &used));
    CHECK(used != MPI_INFO_NULL);
    OK(MPI_Info_get_string(used, "cb_buffer_size", &length, value, &flag));
    CHECK(flag && strcmp(value, "65536") == 0);
    OK(MPI_Info_free(&used));
    OK(MPI_Info_set(given, "cb_buffer_size", "131072"));
    OK(MPI_File_set_info(fh, given));
    OK(MPI_File_get_info(fh, &used));
    length = sizeof value;
    OK(MPI_Info_get_string(used, "cb_buffer_size", &length, value, &flag));
    CHECK(flag && strcmp(value, "131072") == 0);
    OK(MPI_Info_free(&used));
    OK(MPI_Info_free(&given));
    file_close(&fh);
}

/* Ranks that disagree hear of it, all of them. */
static void disagreement(void) {
    MPI_File none = MPI_FILE_NULL;
    int amode = MPI_MODE_CREATE | (check_rank == 0 ? MPI_MODE_RDWR : MPI_MODE_WRONLY);
    const char *name = file_of(6);
    if (check_size == 1) return;
    CHECK_CLASS(MPI_File_open(check_comm, name, amode, MPI_INFO_NULL, &none), MPI_ERR_NOT_SAME);
    CHECK(none == MPI_FILE_NULL);
    OK(MPI_Barrier(check_comm));
    if (check_rank == 0) unlink(name);
}

/* Handles that name no file. */
static void no_file(void) {
    MPI_File none = MPI_FILE_NULL, old;
    MPI_Offset size;
    int one = 1;
    CHECK_CLASS(MPI_File_get_size(MPI_FILE_NULL, &size), MPI_ERR_FILE);
    CHECK_CLASS(MPI_File_write(MPI_FILE_NULL, &one, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_FILE);
    CHECK_CLASS(MPI_File_close(&none), MPI_ERR_FILE);
    fh = file_open(7);
    old = fh;
    file_close(&fh);
    if (STRICT) CHECK_CLASS(MPI_File_get_size(old, &size), MPI_ERR_FILE);
}

/* Each rank alone, two files at once, and a handle as a number. */
static void alone(void) {
    MPI_File both[2];
    char name[2][700];
    int i, value, back = -1;
    file_of(8);
    for (i = 0; i < 2; i++) {
        snprintf(name[i], sizeof name[i], "%s-%d-%d", file_name, check_rank, i);
        OK(MPI_File_open(MPI_COMM_SELF, name[i], MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                         &both[i]));
    }
    for (i = 0; i < 2; i++) {
        value = check_rank * 10 + i;
        CHECK(MPI_File_f2c(MPI_File_c2f(both[i])) == both[i]);
        OK(MPI_File_write_all(both[i], &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    }
    for (i = 0; i < 2; i++) {
        OK(MPI_File_read_at(both[i], 0, &back, 1, MPI_INT, MPI_STATUS_IGNORE));
        CHECK_EQ(back, check_rank * 10 + i);
        file_close(&both[i]);
    }
    CHECK(MPI_File_f2c(MPI_File_c2f(MPI_FILE_NULL)) == MPI_FILE_NULL);
}

int main(int argc, char **argv) {
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    modes();
    allowed();
    sizes();
    hints();
    disagreement();
    no_file();
    alone();
    return check_end();
}
