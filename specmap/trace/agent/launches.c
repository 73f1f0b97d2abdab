/* Launches, counted by CUPTI: it calls `launched` inside every launch of this process. */
#include "ring.h"

#include <string.h>

/* How CUPTI's CUpti_CallbackData begins; `symbol` is the kernel's name. */
typedef struct {
    int site; /* 0 where the call begins */
    const char *function;
    const void *parameters;
    void *returned;
    const char *symbol;
} Call;

static int is_collective(PyObject *names, const char *symbol)
{
    for (Py_ssize_t i = 0; symbol != NULL && i < PyTuple_GET_SIZE(names); i++)
        if (strstr(symbol, PyBytes_AS_STRING(PyTuple_GET_ITEM(names, i))) != NULL)
            return 1;
    return 0;
}

/* Without the GIL. Only the thread that writes records counts, and only it empties the counts. */
static void launched(void *data, int domain, uint32_t id, const void *about)
{
    (void)domain, (void)id;
    Ring *ring = data;
    const Call *call = about;
    if (call->site != 0 || ring->owner != &this_thread || ring->counting != 1)
        return;
    if (strncmp(call->function, "cuGraph", 7) == 0) {
        ring->graphs++;
    } else {
        ring->kernels++;
        ring->collectives += is_collective(ring->collective_names, call->symbol);
    }
    ring->pending = 1;
}

void tell_launches(Ring *ring)
{
    ring->pending = 0;
    if (ring->graphs || ring->kernels)
        append(ring, 0, LAUNCHES, -1, ring->graphs, ring->kernels, (uint64_t)ring->collectives);
    ring->graphs = ring->kernels = ring->collectives = 0;
    if (ring->counting != ring->told)
        append(ring, 0, COUNTING, -1, -1, ring->counting, 0);
    ring->told = ring->counting;
}

/* launches(names): count from now on, and return what CUPTI is to call, and with what; the
 * names, in bytes, are parts of those of collective kernels. launches(None): no more. */
PyObject *ring_launches(PyObject *object, PyObject *names)
{
    Ring *self = (Ring *)object;
    int counts = names != Py_None;
    if (counts && !PyTuple_Check(names)) {
        PyErr_SetString(PyExc_TypeError, "launches() takes a tuple of bytes");
        return NULL;
    }
    for (Py_ssize_t i = 0; counts && i < PyTuple_GET_SIZE(names); i++)
        if (!PyBytes_Check(PyTuple_GET_ITEM(names, i))) {
            PyErr_SetString(PyExc_TypeError, "launches() takes a tuple of bytes");
            return NULL;
        }
    if (counts && self->collective_names == NULL)
        self->collective_names = Py_NewRef(names); /* kept: a launch may be under way */
    self->counting = (char)counts;
    self->pending = 1;
    return Py_BuildValue("(KK)", (unsigned long long)(uintptr_t)launched,
                         (unsigned long long)(uintptr_t)self);
}
