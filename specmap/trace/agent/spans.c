/* GPU time of phases: pairs of CUDA events, recorded and read through the driver, never waited
 * for. A pair that is not ready after PATIENCE cycles, or that finds no free one, is dropped and
 * counted. While a graph is captured an event would become a part of it: then there is none. */
#include "ring.h"

enum { PAIRS = 64, PATIENCE = 16, TOGETHER = 8, NOT_READY = 600 };

typedef struct {
    void *start, *end, *stream;
    uint64_t cycle;
    uint32_t target;
    char state;
} Pair;
enum { OPEN, ENDED, VOID };

struct Spans {
    int (*record)(void *event, void *stream);
    int (*elapsed)(float *ms, void *start, void *end);
    PyObject *stream, *device; /* stream(device) is the current stream's number */
    uint64_t every, first, next; /* the pairs from first to before next are in use */
    char timing;
    Pair pairs[PAIRS];
};

/* No more spans; the agent's thread says why. */
static void fail(Ring *ring, int code)
{
    PyErr_Clear();
    ring->spans->timing = 0;
    ring->spans->every = 0;
    ring->span_fault = code;
}

int span_begin(Ring *ring, uint32_t target)
{
    Spans *spans = ring->spans;
    if (!spans->timing || ring->capturing || !ring->calls)
        return -1;
    if (spans->next - spans->first == PAIRS) {
        ring->spans_dropped++;
        return -1;
    }
    int place = (int)(spans->next % PAIRS);
    Pair *pair = &spans->pairs[place];
    PyObject *number = PyObject_CallOneArg(spans->stream, spans->device);
    pair->stream = number != NULL ? PyLong_AsVoidPtr(number) : NULL;
    Py_XDECREF(number);
    int code = PyErr_Occurred() ? -1 : spans->record(pair->start, pair->stream);
    if (code != 0) {
        fail(ring, code);
        return -1;
    }
    pair->target = target;
    pair->state = OPEN;
    spans->next++;
    return place;
}

/* The end is recorded where the start was: one pair, one stream. May run with an exception set. */
void span_end(Ring *ring, int place)
{
    Pair *pair = &ring->spans->pairs[place];
    pair->cycle = ring->words[CYCLES];
    pair->state = ring->capturing || ring->spans->record(pair->end, pair->stream) ? VOID : ENDED;
}

/* Between cycles: put the times of earlier cycles that are ready. Those of some cycles are read
 * together: what each read needs is out of the caches a cycle later. */
void spans_read(Ring *ring)
{
    Spans *spans = ring->spans;
    uint64_t now = ring->words[CYCLES];
    spans->timing = spans->every > 0 && now % spans->every == 0;
    if (now % TOGETHER != 0)
        return;
    while (spans->first < spans->next && !ring->capturing) {
        Pair *pair = &spans->pairs[spans->first % PAIRS];
        if (pair->state == OPEN || pair->cycle + 1 >= now)
            return;
        float ms = 0;
        int code = pair->state == VOID ? NOT_READY : spans->elapsed(&ms, pair->start, pair->end);
        if (code == NOT_READY && pair->state == ENDED && now - pair->cycle < PATIENCE)
            return;
        if (code == 0)
            put(ring, pair->target, GPU_SPAN, -1, -1, ms < 2000 ? (int)(ms * 1e6f) : INT32_MAX,
                pair->cycle);
        else if (code == NOT_READY)
            ring->spans_dropped++;
        else
            fail(ring, code);
        spans->first++;
    }
}

/* spans(record, elapsed, stream, device, events, every): addresses of the driver's functions,
 * what names the current stream, two events for each pair. */
PyObject *ring_spans(PyObject *object, PyObject *args)
{
    Ring *self = (Ring *)object;
    unsigned long long record, elapsed, every;
    PyObject *stream, *device, *events;
    if (!PyArg_ParseTuple(args, "KKOOO!K", &record, &elapsed, &stream, &device,
                          &PyTuple_Type, &events, &every))
        return NULL;
    if (PyTuple_GET_SIZE(events) != 2 * PAIRS || self->spans != NULL || self->words == NULL)
        return PyErr_Format(PyExc_ValueError, "spans() takes %d events, once", 2 * PAIRS);
    Spans *made = PyMem_Calloc(1, sizeof *made);
    if (made == NULL)
        return PyErr_NoMemory();
    for (int i = 0; i < PAIRS; i++) {
        made->pairs[i].start = PyLong_AsVoidPtr(PyTuple_GET_ITEM(events, 2 * i));
        made->pairs[i].end = PyLong_AsVoidPtr(PyTuple_GET_ITEM(events, 2 * i + 1));
    }
    if (PyErr_Occurred()) {
        PyMem_Free(made);
        return NULL;
    }
    made->record = (int (*)(void *, void *))(uintptr_t)record;
    made->elapsed = (int (*)(float *, void *, void *))(uintptr_t)elapsed;
    made->stream = Py_NewRef(stream);
    made->device = Py_NewRef(device);
    made->every = every;
    self->spans = made;
    spans_read(self); /* whether the cycle to come is timed */
    Py_RETURN_NONE;
}

void spans_free(Ring *ring)
{
    if (ring->spans == NULL)
        return;
    Py_CLEAR(ring->spans->stream);
    Py_CLEAR(ring->spans->device);
    PyMem_Free(ring->spans);
    ring->spans = NULL;
}
