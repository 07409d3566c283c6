// run: n=1,2 timeout=60 paths=one
/* The tool interface lists everything it has, before MPI_Init, inside and after MPI_Finalize, and says the same each time;
 * strings keep the rules of MPI 5.0, 15.3.3. */
#include "check.h"

#define SOME 512
#define FINE(call) CHECK_EQ(call, MPI_SUCCESS)

static unsigned long long sum;

static void digest(const char *text) {
    for (; *text; text++) sum = sum * 31 + (unsigned char)*text;
}

/* The same string whatever the room is, cut where it must be; the length is always that of the whole. */
static void strings(int index) {
    char whole[SOME], part[SOME];
    int len = sizeof whole, i;
    FINE(MPI_T_cvar_get_info(index, whole, &len, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK_EQ(len, strlen(whole) + 1);
    for (i = 0; i <= len; i++) {
        int room = i;
        memset(part, 'x', sizeof part);
        FINE(MPI_T_cvar_get_info(index, part, &room, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
        CHECK_EQ(room, len);
        if (i == 0) CHECK(part[0] == 'x');
        if (i > 0) CHECK(strncmp(part, whole, i - 1) == 0 && (int)strlen(part) == (i < len ? i - 1 : len - 1));
        CHECK(part[i] == 'x' || i > len);
    }
    len = 0;
    FINE(MPI_T_cvar_get_info(index, NULL, &len, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK_EQ(len, strlen(whole) + 1);
    part[0] = 'x';
    FINE(MPI_T_cvar_get_info(index, part, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(part[0] == 'x');
}

static void enumeration(MPI_T_enum e, int value) {
    char name[SOME];
    int n, len = sizeof name, i, v, found = 0;
    FINE(MPI_T_enum_get_info(e, &n, name, &len));
    CHECK(n > 0);
    digest(name);
    for (i = 0; i < n; i++) {
        len = sizeof name;
        FINE(MPI_T_enum_get_item(e, i, &v, name, &len));
        digest(name);
        found += v == value;
    }
    CHECK_EQ(found, 1);
    CHECK_EQ(MPI_T_enum_get_item(e, n, &v, name, &len), MPI_T_ERR_INVALID_ITEM);
    CHECK_EQ(MPI_T_enum_get_item(e, -1, &v, name, &len), MPI_T_ERR_INVALID_ITEM);
}

static void cvars(void) {
    int n, i;
    FINE(MPI_T_cvar_get_num(&n));
    CHECK(n > 5);
    for (i = 0; i < n; i++) {
        char name[SOME], desc[SOME], *value;
        int name_len = sizeof name, desc_len = sizeof desc, verbosity, bind, scope, count, again, size;
        MPI_Datatype type;
        MPI_T_enum e;
        MPI_T_cvar_handle h;
        FINE(MPI_T_cvar_get_info(i, name, &name_len, &verbosity, &type, &e, desc, &desc_len, &bind, &scope));
        CHECK(verbosity >= MPI_T_VERBOSITY_USER_BASIC && verbosity <= MPI_T_VERBOSITY_MPIDEV_ALL);
        CHECK(scope >= MPI_T_SCOPE_CONSTANT && scope <= MPI_T_SCOPE_ALL_EQ);
        CHECK(desc[0] != 0);
        FINE(MPI_T_cvar_get_index(name, &again));
        CHECK_EQ(again, i);
        digest(name);
        digest(desc);
        if (!STRICT && bind != MPI_T_BIND_NO_OBJECT) continue;
        CHECK_EQ(bind, MPI_T_BIND_NO_OBJECT);
        FINE(MPI_T_cvar_handle_alloc(i, NULL, &h, &count));
        size = type == MPI_CHAR ? 1 : type == MPI_INT ? 4 : 8;
        value = calloc(count + 1, size);
        FINE(MPI_T_cvar_read(h, value));
        if (type == MPI_CHAR) CHECK(memchr(value, 0, count) != NULL);
        if (STRICT && e != MPI_T_ENUM_NULL) {
            CHECK(type == MPI_INT);
            enumeration(e, *(int *)value);
        }
        free(value);
        FINE(MPI_T_cvar_handle_free(&h));
        CHECK(h == MPI_T_CVAR_HANDLE_NULL);
        if (STRICT) strings(i);
    }
    if (!STRICT) return; /* MPICH 5.0.2 crashes when no place is given */
    CHECK_EQ(MPI_T_cvar_get_info(n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    CHECK_EQ(MPI_T_cvar_get_info(-1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    CHECK_EQ(MPI_T_cvar_get_index("there is no such thing", &i), MPI_T_ERR_INVALID_NAME);
}

static void pvars(void) {
    int n, i;
    FINE(MPI_T_pvar_get_num(&n));
    CHECK(!STRICT || n > 10);
    for (i = 0; i < n; i++) {
        char name[SOME], desc[SOME];
        int name_len = sizeof name, desc_len = sizeof desc, verbosity, class, bind, readonly, continuous, atomic, again;
        MPI_Datatype type;
        MPI_T_enum e;
        FINE(MPI_T_pvar_get_info(i, name, &name_len, &verbosity, &class, &type, &e, desc, &desc_len, &bind, &readonly,
                               &continuous, &atomic));
        CHECK(class >= MPI_T_PVAR_CLASS_STATE && class <= MPI_T_PVAR_CLASS_GENERIC);
        FINE(MPI_T_pvar_get_index(name, class, &again));
        CHECK_EQ(again, i);
        CHECK_EQ(MPI_T_pvar_get_index(name, class == 1 ? 2 : 1, &again), MPI_T_ERR_INVALID_NAME);
        if (class == MPI_T_PVAR_CLASS_STATE) CHECK(type == MPI_INT && e != MPI_T_ENUM_NULL);
        digest(name);
        digest(desc);
    }
    if (!STRICT) return;
    CHECK_EQ(MPI_T_pvar_get_info(n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
                MPI_T_ERR_INVALID_INDEX);
}

/* Every control variable, performance variable and event lies in exactly one category; every category but one lies below
 * another. */
static void categories(void) {
    int ncat, nc, np, ne, i, j, stamp;
    int *c, *p, *e, *below, list[SOME];
    FINE(MPI_T_category_get_num(&ncat));
    FINE(MPI_T_cvar_get_num(&nc));
    FINE(MPI_T_pvar_get_num(&np));
    FINE(MPI_T_event_get_num(&ne));
    c = calloc(nc + 1, sizeof *c), p = calloc(np + 1, sizeof *p), e = calloc(ne + 1, sizeof *e);
    below = calloc(ncat + 1, sizeof *below);
    for (i = 0; i < ncat; i++) {
        char name[SOME], desc[SOME];
        int name_len = sizeof name, desc_len = sizeof desc, again, cvars, pvars, events, subs;
        FINE(MPI_T_category_get_info(i, name, &name_len, desc, &desc_len, &cvars, &pvars, &subs));
        FINE(MPI_T_category_get_num_events(i, &events));
        FINE(MPI_T_category_get_index(name, &again));
        CHECK_EQ(again, i);
        digest(name);
        FINE(MPI_T_category_get_cvars(i, SOME, list));
        for (j = 0; j < cvars && j < SOME; j++) c[list[j]]++;
        FINE(MPI_T_category_get_pvars(i, SOME, list));
        for (j = 0; j < pvars && j < SOME; j++) p[list[j]]++;
        FINE(MPI_T_category_get_events(i, SOME, list));
        for (j = 0; j < events; j++) e[list[j]]++;
        FINE(MPI_T_category_get_categories(i, SOME, list));
        for (j = 0; j < subs; j++) below[list[j]]++;
        list[0] = -5;
        FINE(MPI_T_category_get_cvars(i, 0, list));
        CHECK_EQ(list[0], -5);
    }
    if (STRICT) {
        int top = 0;
        for (i = 0; i < nc; i++) CHECK_EQ(c[i], 1);
        for (i = 0; i < np; i++) CHECK_EQ(p[i], 1);
        for (i = 0; i < ne; i++) CHECK_EQ(e[i], 1);
        for (i = 0; i < ncat; i++) top += below[i] == 0;
        CHECK_EQ(top, 1);
    }
    FINE(MPI_T_category_changed(&stamp));
    CHECK_EQ(MPI_T_category_get_index("no such category", &i), MPI_T_ERR_INVALID_NAME);
    CHECK_EQ(MPI_T_category_get_cvars(ncat, SOME, list), MPI_T_ERR_INVALID_INDEX);
    free(c), free(p), free(e), free(below);
}

static void events(void) {
    int n, i, j, nsources;
    FINE(MPI_T_event_get_num(&n));
    CHECK(!STRICT || n >= 4);
    for (i = 0; i < n; i++) {
        char name[SOME], desc[SOME];
        int name_len = sizeof name, desc_len = sizeof desc, verbosity, bind, again, elements = 16;
        MPI_Datatype types[16];
        MPI_Aint places[16];
        MPI_T_enum e;
        MPI_Info info;
        FINE(MPI_T_event_get_info(i, name, &name_len, &verbosity, types, places, &elements, &e, &info, desc, &desc_len, &bind));
        CHECK(elements > 0 && elements <= 16);
        for (j = 1; j < elements; j++) CHECK(places[j] > places[j - 1]);
        FINE(MPI_Info_free(&info));
        FINE(MPI_T_event_get_index(name, &again));
        CHECK_EQ(again, i);
        again = 0;
        FINE(MPI_T_event_get_info(i, NULL, NULL, NULL, NULL, NULL, &again, NULL, NULL, NULL, NULL, NULL));
        CHECK_EQ(again, elements);
        digest(name);
        digest(desc);
    }
    FINE(MPI_T_source_get_num(&nsources));
    for (i = 0; i < nsources; i++) {
        char name[SOME], desc[SOME];
        int name_len = sizeof name, desc_len = sizeof desc;
        MPI_T_source_order order;
        MPI_Count per_second, max, a, b;
        FINE(MPI_T_source_get_info(i, name, &name_len, desc, &desc_len, &order, &per_second, &max, NULL));
        CHECK(order == MPI_T_SOURCE_ORDERED || order == MPI_T_SOURCE_UNORDERED);
        CHECK(!STRICT || per_second > 0);
        FINE(MPI_T_source_get_timestamp(i, &a));
        FINE(MPI_T_source_get_timestamp(i, &b));
        CHECK(b >= a);
    }
    CHECK_EQ(MPI_T_source_get_timestamp(nsources, NULL), MPI_T_ERR_INVALID_INDEX);
}

static unsigned long long everything(void) {
    sum = 0;
    cvars();
    pvars();
    if (STRICT) {
        events();
        categories();
    }
    return sum;
}

/* All 50 functions answer that the interface is not initialised; those that matter are tried. */
static void closed(void) {
    int i;
    char name[SOME];
    MPI_Count ticks;
    MPI_T_pvar_session s;
    CHECK_EQ(MPI_T_cvar_get_num(&i), MPI_T_ERR_NOT_INITIALIZED);
    CHECK_EQ(MPI_T_pvar_get_num(&i), MPI_T_ERR_NOT_INITIALIZED);
    CHECK_EQ(MPI_T_category_get_num(&i), MPI_T_ERR_NOT_INITIALIZED);
    CHECK_EQ(MPI_T_pvar_session_create(&s), MPI_T_ERR_NOT_INITIALIZED);
    CHECK_EQ(MPI_T_cvar_get_index("KW_SPIN", &i), MPI_T_ERR_NOT_INITIALIZED);
    CHECK_EQ(MPI_T_finalize(), MPI_T_ERR_NOT_INITIALIZED);
    if (STRICT) {
        MPI_T_pvar_session null_session = MPI_T_PVAR_SESSION_NULL;
        MPI_T_pvar_handle null_pvar = MPI_T_PVAR_HANDLE_NULL;
        MPI_T_cvar_handle null_cvar = MPI_T_CVAR_HANDLE_NULL;
        CHECK_EQ(MPI_T_event_get_num(&i), MPI_T_ERR_NOT_INITIALIZED);
        CHECK_EQ(MPI_T_source_get_num(&i), MPI_T_ERR_NOT_INITIALIZED);
        CHECK_EQ(MPI_T_source_get_timestamp(0, &ticks), MPI_T_ERR_NOT_INITIALIZED);
        CHECK_EQ(MPI_T_pvar_start(null_session, MPI_T_PVAR_ALL_HANDLES), MPI_T_ERR_NOT_INITIALIZED);
        CHECK_EQ(MPI_T_pvar_read(null_session, null_pvar, name), MPI_T_ERR_NOT_INITIALIZED);
        CHECK_EQ(MPI_T_cvar_read(null_cvar, name), MPI_T_ERR_NOT_INITIALIZED);
        CHECK_EQ(MPI_T_cvar_handle_free(&null_cvar), MPI_T_ERR_NOT_INITIALIZED);
        CHECK_EQ(MPI_T_category_changed(&i), MPI_T_ERR_NOT_INITIALIZED);
        CHECK_EQ(MPI_T_enum_get_info(MPI_T_ENUM_NULL, &i, NULL, NULL), MPI_T_ERR_NOT_INITIALIZED);
    }
}

int main(int argc, char **argv) {
    unsigned long long before, inside, after;
    int level;
    closed();
    CHECK_EQ(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &level), MPI_SUCCESS);
    CHECK_EQ(MPI_T_init_thread(MPI_THREAD_SINGLE, &level), MPI_SUCCESS);
    before = everything();
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    inside = everything();
    FINE(MPI_T_finalize());
    meet();
    MPI_Comm_free(&check_comm);
    MPI_Finalize();
    after = everything();
    CHECK(!STRICT || (before == inside && inside == after));
    CHECK_EQ(MPI_T_finalize(), MPI_SUCCESS);
    closed();
    if (!STRICT) return check_failed != 0; /* MPICH 5.0.2 does not outlive the next lines */
    CHECK_EQ(MPI_T_init_thread(MPI_THREAD_SINGLE, &level), MPI_SUCCESS);
    CHECK(everything() == before);
    CHECK_EQ(MPI_T_finalize(), MPI_SUCCESS);
    return check_failed != 0;
}
