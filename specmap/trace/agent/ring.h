/* The ring in C: a wrapper type that records calls into shared memory.
 *
 * Same records and same page as ring.py and records.py. The GIL orders the writers; the only
 * other party is the thread that reads up to `head` and moves `tail`. Nothing here waits, and
 * no error of its own ever reaches the wrapped call.
 *
 * Between two calls SGLang and CUDA push all of this out of the caches, so a record costs what
 * has to be fetched for it, not what is computed: the fields that every call needs stand first,
 * close together, and a batch is looked at as seldom as possible.
 */
#ifndef SPECMAP_RING_H
#define SPECMAP_RING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <time.h>

#ifdef Py_GIL_DISABLED
#error "the ring relies on the GIL"
#endif

enum { ENTER = 1, EXIT = 2, RAISE = 3, GPU_SPAN = 9, LAUNCHES = 16, COUNTING = 17 };
enum { HEAD = 8, TAIL = 16, DROPPED = 24, FOREIGN = 25, CYCLES = 32 };
enum { PAGE_BYTES = 4096, KNOWN = 4, COUNTS = 4 };

typedef struct {
    uint64_t t_ns;
    uint32_t target;
    uint16_t kind;
    int16_t mode;
    int32_t size;
    int32_t value;
    uint64_t object;
} Record;

typedef struct Spans Spans;

typedef struct {
    PyObject_HEAD
    char calls, entries, marking;
    char pending, counting, told; /* launches: some to tell; whether they are counted, as told */
    int depth;
    const char *owner; /* a thread, by the address of its `this_thread` */
    uint64_t *words;
    Record *records;
    uint64_t mask, head, tail; /* tail: as it was when last looked at */
    PyObject *batch;           /* borrowed: of the innermost recorded call that has one */
    PyObject *wake, *cycle_done, *seen;
    int graphs, kernels, collectives; /* launched since the last record */
    PyObject *collective_names;
    Spans *spans;
    int capturing, span_fault; /* graphs being captured; why there are no spans any more */
    long long spans_dropped;
    Py_buffer memory;
} Ring;

/* An integer argument, by position or by name. */
typedef struct {
    Py_ssize_t position;
    PyObject *name;
} Place;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function;
    Ring *ring;
    uint32_t target;
    int16_t position;
    char mark, entry, bound, has_keys, timed;
    uint8_t counts, next_known;
    uint64_t known[KNOWN];
    PyObject *keyword, *mode, *sizes, *keys;
    Place count[COUNTS];
    PyObject *dict, *weak;
} Wrapper;

extern PyTypeObject WrapperType;
extern __thread char this_thread __attribute__((tls_model("initial-exec")));

int carried_init(void);
int wrapper_init(void);
PyObject *wrapper_new(Ring *ring, PyObject *function, PyObject *shape);

int mode_of(PyObject *batch, PyObject *name);
int size_of(PyObject *thing, PyObject *names);
int count_of(Place *place, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *argument(Py_ssize_t position, PyObject *keyword, PyObject *const *args, Py_ssize_t count,
                   PyObject *names);

void call_back(PyObject *callback, PyObject *argument);
int woken(Ring *ring);
void tell_launches(Ring *ring);
PyObject *ring_launches(PyObject *object, PyObject *names);
int span_begin(Ring *ring, uint32_t target);
void span_end(Ring *ring, int place);
void spans_read(Ring *ring);
PyObject *ring_spans(PyObject *object, PyObject *args);
void spans_free(Ring *ring);

static inline void append(Ring *ring, uint32_t target, int kind, int mode, int size, int value,
                          uint64_t object)
{
    uint64_t *words = ring->words;
    if (words == NULL)
        return;
    if (ring->head - ring->tail > ring->mask) {
        ring->tail = __atomic_load_n(&words[TAIL], __ATOMIC_ACQUIRE);
        if (ring->head - ring->tail > ring->mask) {
            words[DROPPED]++;
            return;
        }
    }
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    Record *record = &ring->records[ring->head & ring->mask];
    record->t_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    record->target = target;
    record->kind = (uint16_t)kind;
    record->mode = (int16_t)mode;
    record->size = size;
    record->value = value;
    record->object = object;
    __atomic_store_n(&words[HEAD], ++ring->head, __ATOMIC_RELEASE);
}

/* A record, behind the launches since the one before it. */
static inline void put(Ring *ring, uint32_t target, int kind, int mode, int size, int value,
                       uint64_t object)
{
    if (ring->pending)
        tell_launches(ring);
    append(ring, target, kind, mode, size, value, object);
}

/* One thread writes: the first one, or one that starts a cycle while none is under way. */
static inline int is_mine(Ring *ring, int starts_cycle)
{
    if (ring->owner == &this_thread)
        return 1;
    if (ring->owner != NULL && !(starts_cycle && ring->depth == 0)) {
        if (ring->words != NULL)
            ring->words[FOREIGN]++;
        return 0;
    }
    ring->owner = &this_thread;
    return 1;
}

#endif
