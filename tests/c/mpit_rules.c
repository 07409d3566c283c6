// run: n=1,2 timeout=60 paths=one
/* The tool interface keeps the rules of MPI 5.0, 15.3: initialisation is counted, strings are cut, outputs may be left out,
 * indices and handles are checked, performance variables belong to a session, callbacks to a safety level. */
#include "check.h"

#define SOME 512
#define FINE(call) CHECK_EQ(call, MPI_SUCCESS)

/* 15.3.3: `len` bytes at most, the zero among them; `len` becomes that of the whole. Neither pointer need be there. */
typedef int (*Say)(int index, char *text, int *len);

static int cvar_name(int i, char *t, int *n) { return MPI_T_cvar_get_info(i, t, n, NULL, NULL, NULL, NULL, NULL, NULL, NULL); }
static int cvar_desc(int i, char *t, int *n) { return MPI_T_cvar_get_info(i, NULL, NULL, NULL, NULL, NULL, t, n, NULL, NULL); }
static int pvar_name(int i, char *t, int *n) {
    return MPI_T_pvar_get_info(i, t, n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
}
static int pvar_desc(int i, char *t, int *n) {
    return MPI_T_pvar_get_info(i, NULL, NULL, NULL, NULL, NULL, NULL, t, n, NULL, NULL, NULL, NULL);
}
static int cat_name(int i, char *t, int *n) { return MPI_T_category_get_info(i, t, n, NULL, NULL, NULL, NULL, NULL); }
static int cat_desc(int i, char *t, int *n) { return MPI_T_category_get_info(i, NULL, NULL, t, n, NULL, NULL, NULL); }
static int event_name(int i, char *t, int *n) {
    return MPI_T_event_get_info(i, t, n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
}
static int event_desc(int i, char *t, int *n) {
    return MPI_T_event_get_info(i, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, t, n, NULL);
}
static int source_name(int i, char *t, int *n) { return MPI_T_source_get_info(i, t, n, NULL, NULL, NULL, NULL, NULL, NULL); }
static int source_desc(int i, char *t, int *n) { return MPI_T_source_get_info(i, NULL, NULL, t, n, NULL, NULL, NULL, NULL); }

static MPI_T_enum words = MPI_T_ENUM_NULL; /* of some control variable */

static int enum_name(int i, char *t, int *n) { return MPI_T_enum_get_info(words, NULL, t, n); }
static int item_name(int i, char *t, int *n) { return MPI_T_enum_get_item(words, i, NULL, t, n); }

static void cut(Say say) {
    char whole[4 * SOME], part[4 * SOME];
    int all = sizeof whole, room;
    FINE(say(0, whole, &all));
    CHECK_EQ(all, strlen(whole) + 1);
    const int rooms[] = {1, 2, all - 1, all, all + 1};
    for (int k = 0; k < 5; k++) {
        memset(part, 'x', sizeof part);
        room = rooms[k];
        if (room < 1) continue;
        FINE(say(0, part, &room));
        CHECK_EQ(room, all);
        int kept = rooms[k] < all ? rooms[k] - 1 : all - 1;
        CHECK_EQ(strlen(part), kept);
        CHECK(strncmp(part, whole, kept) == 0 && part[rooms[k]] == 'x');
    }
    /* Only the length is asked for: zero room, or no place. */
    memset(part, 'x', sizeof part);
    room = 0;
    FINE(say(0, part, &room));
    CHECK(room == all && part[0] == 'x');
    room = 7;
    FINE(say(0, NULL, &room));
    CHECK_EQ(room, all);
    /* No length: nothing is written. */
    FINE(say(0, part, NULL));
    CHECK(part[0] == 'x');
    FINE(say(0, NULL, NULL));
}

static void strings(void) {
    static const Say all[] = {cvar_name, cvar_desc, pvar_name, pvar_desc, cat_name, cat_desc, event_name, event_desc,
                              source_name, source_desc, enum_name, item_name};
    int n;
    FINE(MPI_T_cvar_get_num(&n));
    for (int i = 0; i < n && words == MPI_T_ENUM_NULL; i++)
        FINE(MPI_T_cvar_get_info(i, NULL, NULL, NULL, NULL, &words, NULL, NULL, NULL, NULL));
    CHECK(words != MPI_T_ENUM_NULL);
    for (unsigned k = 0; k < sizeof all / sizeof *all; k++) cut(all[k]);
}

/* 15.3.9: the stamp changes only when categories do; an index beyond the last is refused by every function. */
static void categories(void) {
    int before, after, n, again, list[2] = {-5, -5};
    FINE(MPI_T_category_changed(&before));
    FINE(MPI_T_category_get_num(&n));
    FINE(MPI_T_category_get_num(&again));
    CHECK_EQ(n, again);
    FINE(MPI_T_category_changed(&after));
    CHECK_EQ(before, after);
    const int bad[] = {-1, n, 1 << 30};
    for (int k = 0; k < 3; k++) {
        CHECK_EQ(cat_name(bad[k], NULL, NULL), MPI_T_ERR_INVALID_INDEX);
        CHECK_EQ(MPI_T_category_get_num_events(bad[k], &again), MPI_T_ERR_INVALID_INDEX);
        CHECK_EQ(MPI_T_category_get_cvars(bad[k], 2, list), MPI_T_ERR_INVALID_INDEX);
        CHECK_EQ(MPI_T_category_get_pvars(bad[k], 2, list), MPI_T_ERR_INVALID_INDEX);
        CHECK_EQ(MPI_T_category_get_events(bad[k], 2, list), MPI_T_ERR_INVALID_INDEX);
        CHECK_EQ(MPI_T_category_get_categories(bad[k], 2, list), MPI_T_ERR_INVALID_INDEX);
    }
    CHECK(list[0] == -5 && list[1] == -5);
    CHECK_EQ(MPI_T_category_get_index("", &again), MPI_T_ERR_INVALID_NAME);
    /* Names are compared as they are. */
    FINE(MPI_T_category_get_index("kittiwake", &again));
    CHECK_EQ(MPI_T_category_get_index("Kittiwake", &again), MPI_T_ERR_INVALID_NAME);
    /* As many as there is room for, and no more. */
    FINE(MPI_T_category_get_categories(again, 1, list));
    CHECK(list[0] >= 0 && list[1] == -5);
    FINE(MPI_T_category_get_categories(again, 0, NULL));
    CHECK_EQ(MPI_T_category_get_categories(again, -1, list), MPI_T_ERR_INVALID);
    CHECK_EQ(MPI_T_category_get_index(NULL, &again), MPI_T_ERR_INVALID);
    CHECK_EQ(MPI_T_category_changed(NULL), MPI_T_ERR_INVALID);
}

/* 15.3.5: items of an enumeration. */
static void enumerations(void) {
    int n, v, last = -1;
    FINE(MPI_T_enum_get_info(words, &n, NULL, NULL));
    for (int i = 0; i < n; i++) {
        FINE(MPI_T_enum_get_item(words, i, &v, NULL, NULL));
        CHECK(v != last);
        last = v;
    }
    CHECK_EQ(MPI_T_enum_get_item(words, n, &v, NULL, NULL), MPI_T_ERR_INVALID_ITEM);
    CHECK_EQ(MPI_T_enum_get_item(words, -1, &v, NULL, NULL), MPI_T_ERR_INVALID_ITEM);
    CHECK_EQ(MPI_T_enum_get_info(MPI_T_ENUM_NULL, &n, NULL, NULL), MPI_T_ERR_INVALID_HANDLE);
    CHECK_EQ(MPI_T_enum_get_item(MPI_T_ENUM_NULL, 0, &v, NULL, NULL), MPI_T_ERR_INVALID_HANDLE);
}

/* Handles name what they were made for, as long as they live. */
static void handles(void) {
    MPI_T_cvar_handle c, gone;
    MPI_T_pvar_session s;
    MPI_T_pvar_handle p;
    int n, count;
    char value[SOME];
    FINE(MPI_T_cvar_get_num(&n));
    CHECK_EQ(MPI_T_cvar_handle_alloc(n, NULL, &c, &count), MPI_T_ERR_INVALID_INDEX);
    CHECK_EQ(MPI_T_cvar_handle_alloc(-1, NULL, &c, &count), MPI_T_ERR_INVALID_INDEX);
    FINE(MPI_T_cvar_handle_alloc(0, NULL, &c, &count));
    gone = c;
    FINE(MPI_T_cvar_handle_free(&c));
    CHECK(c == MPI_T_CVAR_HANDLE_NULL);
    CHECK_EQ(MPI_T_cvar_read(gone, value), MPI_T_ERR_INVALID_HANDLE);
    CHECK_EQ(MPI_T_cvar_write(gone, value), MPI_T_ERR_INVALID_HANDLE);
    CHECK_EQ(MPI_T_cvar_handle_free(&gone), MPI_T_ERR_INVALID_HANDLE);
    CHECK_EQ(MPI_T_cvar_read(MPI_T_CVAR_HANDLE_NULL, value), MPI_T_ERR_INVALID_HANDLE);
    /* A handle of one kind names nothing of another, whatever its bits say. */
    FINE(MPI_T_pvar_session_create(&s));
    FINE(MPI_T_pvar_get_num(&n));
    CHECK_EQ(MPI_T_pvar_handle_alloc(s, n, NULL, &p, &count), MPI_T_ERR_INVALID_INDEX);
    FINE(MPI_T_pvar_handle_alloc(s, 0, NULL, &p, &count));
    CHECK_EQ(MPI_T_cvar_read((MPI_T_cvar_handle)p, value), MPI_T_ERR_INVALID_HANDLE);
    CHECK_EQ(MPI_T_pvar_read((MPI_T_pvar_session)p, p, value), MPI_T_ERR_INVALID_SESSION);
    CHECK_EQ(MPI_T_pvar_read(s, (MPI_T_pvar_handle)s, value), MPI_T_ERR_INVALID_HANDLE);
    FINE(MPI_T_pvar_session_free(&s));
}

typedef unsigned long long Value;
static MPI_T_pvar_session mine, other;

static MPI_T_pvar_handle counter(MPI_T_pvar_session s) {
    MPI_T_pvar_handle h = MPI_T_PVAR_HANDLE_NULL;
    int index, count;
    FINE(MPI_T_pvar_get_index("self_sent", MPI_T_PVAR_CLASS_COUNTER, &index));
    FINE(MPI_T_pvar_handle_alloc(s, index, NULL, &h, &count));
    CHECK_EQ(count, 1);
    return h;
}

static Value read_of(MPI_T_pvar_session s, MPI_T_pvar_handle h) {
    Value v = 0;
    FINE(MPI_T_pvar_read(s, h, &v));
    return v;
}

static Value once; /* how far a message to myself moves the counter */

static void message(void) {
    OK(MPI_Sendrecv(NULL, 0, MPI_BYTE, 0, 0, NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
}

/* 15.3.7: each session sees its own handles; starting, stopping, resetting and writing concern one handle, or all of one
 * session. A started variable that is started again goes on, as does a stopped one that is stopped. */
static void sessions(void) {
    Value v = 0;
    FINE(MPI_T_pvar_session_create(&mine));
    FINE(MPI_T_pvar_session_create(&other));
    MPI_T_pvar_handle a = counter(mine), b = counter(mine), c = counter(other);
    message();
    CHECK_EQ(read_of(mine, a), 0);
    FINE(MPI_T_pvar_start(mine, MPI_T_PVAR_ALL_HANDLES));
    message();
    once = read_of(mine, a);
    CHECK(once > 0);
    CHECK_EQ(read_of(mine, b), once);
    CHECK_EQ(read_of(other, c), 0);
    FINE(MPI_T_pvar_start(mine, a));
    FINE(MPI_T_pvar_start(other, c));
    FINE(MPI_T_pvar_stop(mine, b));
    FINE(MPI_T_pvar_stop(mine, b));
    message();
    CHECK_EQ(read_of(mine, a), 2 * once);
    CHECK_EQ(read_of(mine, b), once);
    CHECK_EQ(read_of(other, c), once);
    /* What is stopped keeps its value, and counts on from there. */
    FINE(MPI_T_pvar_start(mine, b));
    message();
    CHECK_EQ(read_of(mine, b), 2 * once);
    /* Reading and resetting at once; the variable stays started. */
    FINE(MPI_T_pvar_readreset(mine, a, &v));
    CHECK_EQ(v, 3 * once);
    CHECK_EQ(read_of(mine, a), 0);
    message();
    CHECK_EQ(read_of(mine, a), once);
    CHECK_EQ(read_of(other, c), 3 * once);
    FINE(MPI_T_pvar_reset(mine, MPI_T_PVAR_ALL_HANDLES));
    CHECK_EQ(read_of(mine, a) + read_of(mine, b), 0);
    CHECK_EQ(read_of(other, c), 3 * once);
    v = 1000;
    FINE(MPI_T_pvar_write(other, c, &v));
    message();
    CHECK_EQ(read_of(other, c), 1000 + once);
    FINE(MPI_T_pvar_stop(other, MPI_T_PVAR_ALL_HANDLES));
    message();
    CHECK_EQ(read_of(other, c), 1000 + once);
    CHECK_EQ(read_of(mine, b), 2 * once);
    /* All of a session: where the standard allows it only. */
    CHECK_EQ(MPI_T_pvar_read(mine, MPI_T_PVAR_ALL_HANDLES, &v), MPI_T_ERR_INVALID_HANDLE);
    CHECK_EQ(MPI_T_pvar_readreset(mine, MPI_T_PVAR_ALL_HANDLES, &v), MPI_T_ERR_INVALID_HANDLE);
    CHECK_EQ(MPI_T_pvar_write(mine, MPI_T_PVAR_ALL_HANDLES, &v), MPI_T_ERR_INVALID_HANDLE);
    /* Another session's handle. */
    CHECK_EQ(MPI_T_pvar_stop(other, a), MPI_T_ERR_INVALID_HANDLE);
    CHECK_EQ(MPI_T_pvar_handle_free(other, &a), MPI_T_ERR_INVALID_HANDLE);
    FINE(MPI_T_pvar_handle_free(mine, &a));
    CHECK(a == MPI_T_PVAR_HANDLE_NULL);
    FINE(MPI_T_pvar_session_free(&mine));
    CHECK_EQ(read_of(other, c), 1000 + once);
}

static void hear(MPI_T_event_instance e, MPI_T_event_registration r, MPI_T_cb_safety safety, void *data) {}

/* 15.3.8: a callback for each level of safety, set apart and removed apart. */
static void levels(void) {
    static const MPI_T_cb_safety all[] = {MPI_T_CB_REQUIRE_NONE, MPI_T_CB_REQUIRE_MPI_RESTRICTED,
                                          MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE};
    MPI_T_event_registration r;
    MPI_Info info;
    int n;
    FINE(MPI_T_event_get_num(&n));
    CHECK_EQ(MPI_T_event_handle_alloc(n, NULL, MPI_INFO_NULL, &r), MPI_T_ERR_INVALID_INDEX);
    FINE(MPI_T_event_handle_alloc(0, NULL, MPI_INFO_NULL, &r));
    for (int k = 0; k < 4; k++) {
        CHECK(MPI_T_event_callback_get_info(r, all[k], &info) != MPI_SUCCESS);
        FINE(MPI_T_event_register_callback(r, all[k], MPI_INFO_NULL, NULL, hear));
        FINE(MPI_T_event_callback_get_info(r, all[k], &info));
        FINE(MPI_Info_free(&info));
        FINE(MPI_T_event_callback_set_info(r, all[k], MPI_INFO_NULL));
        for (int later = k + 1; later < 4; later++) CHECK(MPI_T_event_callback_get_info(r, all[later], &info) != MPI_SUCCESS);
    }
    FINE(MPI_T_event_register_callback(r, all[1], MPI_INFO_NULL, NULL, NULL));
    CHECK(MPI_T_event_callback_get_info(r, all[1], &info) != MPI_SUCCESS);
    FINE(MPI_T_event_callback_get_info(r, all[2], &info));
    FINE(MPI_Info_free(&info));
    CHECK(MPI_T_event_register_callback(r, (MPI_T_cb_safety)12345, MPI_INFO_NULL, NULL, hear) != MPI_SUCCESS);
    MPI_T_event_registration stale = r;
    FINE(MPI_T_event_handle_free(r, NULL, NULL));
    CHECK_EQ(MPI_T_event_handle_get_info(stale, &info), MPI_T_ERR_INVALID_HANDLE);
    CHECK_EQ(MPI_T_event_handle_free(stale, NULL, NULL), MPI_T_ERR_INVALID_HANDLE);
}

static void is_open(int open) {
    int n;
    if (!open && !STRICT) return; /* MPICH 5.0.2 aborts */
    CHECK_EQ(MPI_T_cvar_get_num(&n), open ? MPI_SUCCESS : MPI_T_ERR_NOT_INITIALIZED);
}

/* 15.3.4: as many ends as beginnings, whatever MPI itself does meanwhile. */
int main(int argc, char **argv) {
    int level = -1;
    is_open(0);
    FINE(MPI_T_init_thread(MPI_THREAD_SINGLE, &level));
    CHECK(level >= MPI_THREAD_SINGLE);
    FINE(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &level));
    FINE(MPI_T_finalize());
    is_open(1);
    FINE(MPI_T_finalize());
    is_open(0);
    if (!STRICT) {
        check_begin(&argc, &argv, MPI_THREAD_SINGLE);
        return check_end();
    }
    CHECK_EQ(MPI_T_finalize(), MPI_T_ERR_NOT_INITIALIZED);
    CHECK_EQ(MPI_T_init_thread(-1, &level), MPI_T_ERR_INVALID);
    is_open(0);
    FINE(MPI_T_init_thread(MPI_THREAD_SINGLE, &level));
    strings();
    categories();
    enumerations();
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    strings();
    categories();
    handles();
    sessions();
    levels();
    check_end();
    is_open(1);
    categories();
    handles();
    levels();
    FINE(MPI_T_finalize());
    is_open(0);
    return check_failed != 0;
}
