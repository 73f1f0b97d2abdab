/* The ring in C: a wrapper type that records calls into shared memory.
 *
 * Same records and same page as ring.py and records.py. The GIL orders the writers; the only
 * other party is the thread that reads up to `head` and moves `tail`. Nothing here waits, and
 * no error of its own ever reaches the wrapped call.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <structmember.h>
#include <time.h>

#ifdef Py_GIL_DISABLED
#error "the ring relies on the GIL"
#endif

enum { ENTER = 1, EXIT = 2, RAISE = 3 };
enum { HEAD = 8, TAIL = 16, DROPPED = 24, FOREIGN = 25, CYCLES = 32 };
enum { PAGE_BYTES = 4096, KNOWN = 4 };

typedef struct {
    uint64_t t_ns;
    uint32_t target;
    uint16_t kind;
    int16_t mode;
    int32_t size;
    int32_t value;
    uint64_t object;
} Record;

typedef struct {
    PyObject_HEAD
    Py_buffer memory;
    uint64_t *words;
    Record *records;
    uint64_t capacity, head, tail; /* tail: as it was when last looked at */
    int calls, entries, depth, marking;
    unsigned long owner;
    PyObject *wake, *cycle_done, *seen;
} Ring;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function, *dict, *weak;
    Ring *ring;
    PyObject *keyword, *mode, *sizes, *keys, *counts;
    uint64_t known[KNOWN];
    unsigned next_known;
    Py_ssize_t position;
    uint32_t target;
    int bound, entry, mark;
} Wrapper;

static PyObject *update_wrapper, *value_name, *qualname_name;

/* ---- records ---- */

static void put(Ring *ring, uint32_t target, int kind, int mode, int size, int value, uint64_t object)
{
    uint64_t *words = ring->words;
    if (words == NULL)
        return;
    if (ring->head - ring->tail >= ring->capacity) {
        ring->tail = __atomic_load_n(&words[TAIL], __ATOMIC_ACQUIRE);
        if (ring->head - ring->tail >= ring->capacity) {
            words[DROPPED]++;
            return;
        }
    }
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    Record *record = &ring->records[ring->head & (ring->capacity - 1)];
    record->t_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    record->target = target;
    record->kind = (uint16_t)kind;
    record->mode = (int16_t)mode;
    record->size = size;
    record->value = value;
    record->object = object;
    __atomic_store_n(&words[HEAD], ++ring->head, __ATOMIC_RELEASE);
}

/* One thread writes: the first one, or one that starts a cycle while none is under way. */
static int is_mine(Ring *ring, int starts_cycle)
{
    unsigned long thread = PyThread_get_thread_ident();
    if (thread == ring->owner)
        return 1;
    if (ring->owner != 0 && !(starts_cycle && ring->depth == 0)) {
        if (ring->words != NULL)
            ring->words[FOREIGN]++;
        return 0;
    }
    ring->owner = thread;
    return 1;
}

/* Call back into Python; an exception that is on its way is kept, a new one is cleared. */
static void call_back(PyObject *callback, PyObject *argument)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    Py_INCREF(callback);
    PyObject *result =
        argument ? PyObject_CallOneArg(callback, argument) : PyObject_CallNoArgs(callback);
    Py_DECREF(callback);
    Py_XDECREF(result);
    PyErr_Restore(type, value, trace);
}

static int woken(Ring *ring)
{
    PyObject *wake = ring->wake;
    if (wake == NULL)
        return ring->calls;
    ring->wake = NULL;
    call_back(wake, NULL);
    Py_DECREF(wake);
    return ring->calls;
}

/* ---- what a call carries ---- */

/* A new reference, or NULL without an error set. */
static PyObject *attribute(PyObject *thing, PyObject *name)
{
    PyObject *found = NULL;
#if PY_VERSION_HEX >= 0x030D0000
    int status = PyObject_GetOptionalAttr(thing, name, &found);
#else
    int status = _PyObject_LookupAttr(thing, name, &found);
#endif
    if (status < 0)
        PyErr_Clear();
    return found;
}

static int bounded(PyObject *number, long low, long high)
{
    int overflow = 0;
    long value = PyLong_AsLongAndOverflow(number, &overflow);
    return overflow || value < low || value > high ? -1 : (int)value;
}

static int mode_of(PyObject *batch, PyObject *name)
{
    PyObject *found = attribute(batch, name);
    if (found != NULL && !PyLong_Check(found)) {
        PyObject *value = attribute(found, value_name);
        Py_DECREF(found);
        found = value;
    }
    int mode = found != NULL && PyLong_Check(found) ? bounded(found, -INT16_MAX, INT16_MAX) : -1;
    Py_XDECREF(found);
    return mode;
}

/* An int, a length, or, if `calls`, what a method returns; -1 otherwise. Takes the reference. */
static int size_in(PyObject *found, int calls)
{
    if (!PyLong_Check(found) && PyCallable_Check(found)) {
        PyObject *result = calls ? PyObject_CallNoArgs(found) : NULL;
        Py_DECREF(found);
        if (result == NULL) {
            PyErr_Clear();
            return -1;
        }
        found = result;
    }
    int size = -1;
    if (PyLong_Check(found) && !PyBool_Check(found)) {
        size = bounded(found, 0, INT32_MAX);
    } else if (PyList_Check(found) || PyTuple_Check(found) || PyDict_Check(found) ||
               PyAnySet_Check(found)) {
        size = (int)PyObject_Size(found);
    }
    Py_DECREF(found);
    return size;
}

/* The first size among attributes; methods are called only where no attribute has one. */
static int size_of(PyObject *thing, PyObject *names)
{
    for (int calls = 0; calls < 2; calls++)
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
            PyObject *found = attribute(thing, PyTuple_GET_ITEM(names, i));
            int size = found == NULL ? -1 : size_in(found, calls);
            if (size >= 0)
                return size;
        }
    return -1;
}

/* An argument given by position or by name, or NULL; borrowed. */
static PyObject *argument(Py_ssize_t position, PyObject *keyword, PyObject *const *args,
                          Py_ssize_t count, PyObject *names)
{
    if (position >= 0 && position < count)
        return args[position];
    for (Py_ssize_t i = 0; names != NULL && i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        if (name == keyword || PyUnicode_Compare(name, keyword) == 0)
            return args[count + i];
    }
    return NULL;
}

/* The int that is the i-th of the counts, -1 where it is none. */
static int count_of(Wrapper *self, Py_ssize_t i, PyObject *const *args, Py_ssize_t count,
                    PyObject *names)
{
    PyObject *place = PyTuple_GET_ITEM(self->counts, i);
    Py_ssize_t position = PyLong_AsSsize_t(PyTuple_GET_ITEM(place, 0));
    PyObject *found = argument(position, PyTuple_GET_ITEM(place, 1), args, count, names);
    return found != NULL && PyLong_CheckExact(found) ? bounded(found, 0, INT32_MAX) : -1;
}

static void look_at(Wrapper *self, PyObject *thing)
{
    uint64_t object = (uint64_t)(uintptr_t)thing;
    for (int i = 0; i < KNOWN; i++)
        if (self->known[i] == object)
            return;
    self->known[self->next_known++ % KNOWN] = object;
    if (self->ring->seen != NULL)
        call_back(self->ring->seen, thing);
}

/* ---- the wrapper ---- */

/* One record before the call; none for a call inside it, as of a subclass that calls its base. */
static PyObject *marked_call(Wrapper *self, PyObject *const *args, size_t flags, PyObject *names)
{
    Ring *ring = self->ring;
    if (ring->marking)
        return PyObject_Vectorcall(self->function, args, flags, names);
    Py_ssize_t count = PyVectorcall_NARGS(flags), counts = PyTuple_GET_SIZE(self->counts);
    if (counts == 0) {
        PyObject *holder = count > 0 ? args[0] : NULL;
        put(ring, self->target, self->mark, -1, -1, -1, (uint64_t)(uintptr_t)holder);
    } else {
        int64_t total = counts > 1 ? 0 : -1;
        for (Py_ssize_t i = 1; i < counts && total >= 0; i++) {
            int one = count_of(self, i, args, count, names);
            total = one < 0 ? -1 : total + one;
        }
        int size = count_of(self, 0, args, count, names);
        put(ring, self->target, self->mark, -1, size, total > INT32_MAX ? -1 : (int)total, 0);
    }
    ring->marking = 1;
    PyObject *result = PyObject_Vectorcall(self->function, args, flags, names);
    ring->marking = 0;
    return result;
}

static PyObject *wrapper_call(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names)
{
    Wrapper *self = (Wrapper *)callable;
    Ring *ring = self->ring;
    if (!(self->entry ? ring->entries : ring->calls) && (ring->wake == NULL || !woken(ring)))
        return PyObject_Vectorcall(self->function, args, flags, names);
    if (!is_mine(ring, self->entry))
        return PyObject_Vectorcall(self->function, args, flags, names);
    if (self->mark)
        return marked_call(self, args, flags, names);

    Py_ssize_t count = PyVectorcall_NARGS(flags);
    PyObject *batch = NULL;
    if (self->position >= 0)
        batch = argument(self->position, self->keyword, args, count, names);
    int mode = -1, size = -1;
    if (batch != NULL && batch != Py_None) {
        mode = mode_of(batch, self->mode);
        size = size_of(batch, self->sizes);
    }
    PyObject *holder = self->bound && count > 0 ? args[0] : NULL;
    if (holder != NULL && (self->entry || PyTuple_GET_SIZE(self->keys)))
        look_at(self, holder);
    put(ring, self->target, ENTER, mode, size, -1, (uint64_t)(uintptr_t)holder);
    ring->depth += self->entry;

    PyObject *result = PyObject_Vectorcall(self->function, args, flags, names);

    if (self->entry ? ring->entries : ring->calls) {
        int value = result != NULL && holder != NULL ? size_of(holder, self->keys) : -1;
        int kind = result != NULL ? EXIT : RAISE;
        put(ring, self->target, kind, mode, size, value, (uint64_t)(uintptr_t)holder);
    }
    if (self->entry && ring->depth > 0 && --ring->depth == 0 && ring->words != NULL) {
        ring->words[CYCLES]++;
        if (ring->cycle_done != NULL)
            call_back(ring->cycle_done, NULL);
    }
    return result;
}

static PyObject *wrapper_get(PyObject *self, PyObject *object, PyObject *type)
{
    (void)type;
    if (object == NULL || object == Py_None)
        return Py_NewRef(self);
    return PyMethod_New(self, object);
}

/* What a wrapper does not have (__code__, __defaults__ ...) is the function's. */
static PyObject *wrapper_getattr(PyObject *self, PyObject *name)
{
    PyObject *found = PyObject_GenericGetAttr(self, name);
    if (found == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        found = PyObject_GetAttr(((Wrapper *)self)->function, name);
    }
    return found;
}

static PyObject *wrapper_repr(PyObject *self)
{
    return PyObject_Repr(((Wrapper *)self)->function);
}

/* Pickled by name, as a function is. */
static PyObject *wrapper_reduce(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    return PyObject_GetAttr(self, qualname_name);
}

static int wrapper_traverse(PyObject *object, visitproc visit, void *arg)
{
    Wrapper *self = (Wrapper *)object;
    Py_VISIT(self->function);
    Py_VISIT(self->dict);
    Py_VISIT(self->ring);
    return 0;
}

static int wrapper_clear(PyObject *object)
{
    Wrapper *self = (Wrapper *)object;
    Py_CLEAR(self->dict);
    return 0;
}

static void wrapper_dealloc(PyObject *object)
{
    Wrapper *self = (Wrapper *)object;
    PyObject_GC_UnTrack(object);
    if (self->weak != NULL)
        PyObject_ClearWeakRefs(object);
    Py_CLEAR(self->dict);
    Py_CLEAR(self->function);
    Py_CLEAR(self->ring);
    Py_CLEAR(self->keyword);
    Py_CLEAR(self->mode);
    Py_CLEAR(self->sizes);
    Py_CLEAR(self->keys);
    Py_CLEAR(self->counts);
    Py_TYPE(object)->tp_free(object);
}

static PyMemberDef wrapper_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Wrapper, vectorcall), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef wrapper_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef wrapper_methods[] = {
    {"__reduce__", wrapper_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject WrapperType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "specmap_agent._ring.Wrapper",
    .tp_basicsize = sizeof(Wrapper),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Wrapper, vectorcall),
    .tp_descr_get = wrapper_get,
    .tp_getattro = wrapper_getattr,
    .tp_repr = wrapper_repr,
    .tp_dictoffset = offsetof(Wrapper, dict),
    .tp_weaklistoffset = offsetof(Wrapper, weak),
    .tp_traverse = wrapper_traverse,
    .tp_clear = wrapper_clear,
    .tp_dealloc = wrapper_dealloc,
    .tp_members = wrapper_members,
    .tp_getset = wrapper_getset,
    .tp_methods = wrapper_methods,
};

/* ---- the ring ---- */

static PyObject *shape_field(PyObject *shape, const char *name, PyTypeObject *type)
{
    PyObject *found = PyObject_GetAttrString(shape, name);
    if (found != NULL && !PyObject_TypeCheck(found, type)) {
        PyErr_Format(PyExc_TypeError, "a shape's %s is a %s", name, type->tp_name);
        Py_CLEAR(found);
    }
    return found;
}

static PyObject *shape_name(PyObject *shape, const char *name)
{
    PyObject *found = shape_field(shape, name, &PyUnicode_Type);
    if (found != NULL)
        PyUnicode_InternInPlace(&found);
    return found;
}

/* Pairs of a position and a name, each looked at once, here. */
static PyObject *shape_counts(PyObject *shape)
{
    PyObject *counts = shape_field(shape, "counts", &PyTuple_Type);
    for (Py_ssize_t i = 0; counts != NULL && i < PyTuple_GET_SIZE(counts); i++) {
        Py_ssize_t position;
        PyObject *name, *place = PyTuple_GET_ITEM(counts, i);
        if (!PyTuple_Check(place) || !PyArg_ParseTuple(place, "nU", &position, &name)) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError, "a shape's counts are pairs");
            Py_CLEAR(counts);
        }
    }
    return counts;
}

static long shape_number(PyObject *shape, const char *name)
{
    PyObject *found = shape_field(shape, name, &PyLong_Type);
    long number = found != NULL ? PyLong_AsLong(found) : -1;
    Py_XDECREF(found);
    return number;
}

static PyObject *ring_wrap(PyObject *object, PyObject *args)
{
    PyObject *function, *shape;
    if (!PyArg_ParseTuple(args, "OO", &function, &shape))
        return NULL;
    Wrapper *made = PyObject_GC_New(Wrapper, &WrapperType);
    if (made == NULL)
        return NULL;
    memset((char *)made + sizeof(PyObject), 0, sizeof(Wrapper) - sizeof(PyObject));
    made->vectorcall = wrapper_call;
    made->function = Py_NewRef(function);
    made->ring = (Ring *)Py_NewRef(object);
    made->dict = PyDict_New();
    made->keyword = shape_name(shape, "keyword");
    made->mode = shape_name(shape, "mode");
    made->sizes = shape_field(shape, "sizes", &PyTuple_Type);
    made->keys = shape_field(shape, "keys", &PyTuple_Type);
    made->counts = shape_counts(shape);
    made->position = shape_number(shape, "position");
    made->target = (uint32_t)shape_number(shape, "target");
    made->bound = (int)shape_number(shape, "bound");
    made->entry = (int)shape_number(shape, "entry");
    made->mark = (int)shape_number(shape, "mark");
    PyObject_GC_Track(made);
    PyObject *copied =
        PyErr_Occurred() ? NULL : PyObject_CallFunctionObjArgs(update_wrapper, made, function, NULL);
    if (copied == NULL) {
        Py_DECREF(made);
        return NULL;
    }
    Py_DECREF(copied);
    return (PyObject *)made;
}

static PyObject *ring_attach(PyObject *object, PyObject *args)
{
    Ring *self = (Ring *)object;
    PyObject *memory;
    unsigned long long capacity;
    if (!PyArg_ParseTuple(args, "OK", &memory, &capacity))
        return NULL;
    Py_buffer view;
    if (PyObject_GetBuffer(memory, &view, PyBUF_WRITABLE) < 0)
        return NULL;
    if ((capacity & (capacity - 1)) != 0 || capacity == 0 ||
        (uint64_t)view.len < PAGE_BYTES + capacity * sizeof(Record)) {
        PyBuffer_Release(&view);
        PyErr_SetString(PyExc_ValueError, "the memory does not hold a power of two of records");
        return NULL;
    }
    if (self->words != NULL)
        PyBuffer_Release(&self->memory);
    self->memory = view;
    self->words = view.buf;
    self->records = (Record *)((char *)view.buf + PAGE_BYTES);
    self->capacity = capacity;
    self->head = self->words[HEAD];
    self->tail = self->words[TAIL];
    Py_RETURN_NONE;
}

static PyObject *ring_arm(PyObject *object, PyObject *args)
{
    Ring *self = (Ring *)object;
    int calls, entries;
    if (!PyArg_ParseTuple(args, "pp", &calls, &entries))
        return NULL;
    self->calls = calls && self->words != NULL;
    self->entries = entries && self->words != NULL;
    if (!entries)
        self->depth = 0;
    Py_RETURN_NONE;
}

static PyObject *ring_recording(PyObject *object, PyObject *nothing)
{
    (void)nothing;
    return PyBool_FromLong(woken((Ring *)object));
}

static void set(PyObject **place, PyObject *value)
{
    PyObject *old = *place;
    *place = value == Py_None ? NULL : Py_NewRef(value);
    Py_XDECREF(old);
}

static PyObject *ring_hooks(PyObject *object, PyObject *args)
{
    Ring *self = (Ring *)object;
    PyObject *wake, *cycle_done, *seen;
    if (!PyArg_ParseTuple(args, "OOO", &wake, &cycle_done, &seen))
        return NULL;
    set(&self->wake, wake);
    set(&self->cycle_done, cycle_done);
    set(&self->seen, seen);
    Py_RETURN_NONE;
}

static PyObject *ring_put(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
    Ring *self = (Ring *)object;
    long numbers[5];
    if (count != 6) {
        PyErr_SetString(PyExc_TypeError, "put() takes six numbers");
        return NULL;
    }
    for (int i = 0; i < 5; i++) {
        int overflow = 0;
        numbers[i] = PyLong_AsLongAndOverflow(args[i], &overflow);
        if (overflow || numbers[i] > INT32_MAX)
            numbers[i] = INT32_MAX;
    }
    uint64_t thing = PyLong_AsUnsignedLongLongMask(args[5]);
    if (PyErr_Occurred())
        return NULL;
    if (is_mine(self, 0))
        put(self, (uint32_t)numbers[0], (int)numbers[1], (int)numbers[2], (int)numbers[3],
            (int)numbers[4], thing);
    Py_RETURN_NONE;
}

static int ring_traverse(PyObject *object, visitproc visit, void *arg)
{
    Ring *self = (Ring *)object;
    Py_VISIT(self->wake);
    Py_VISIT(self->cycle_done);
    Py_VISIT(self->seen);
    return 0;
}

static int ring_clear(PyObject *object)
{
    Ring *self = (Ring *)object;
    Py_CLEAR(self->wake);
    Py_CLEAR(self->cycle_done);
    Py_CLEAR(self->seen);
    return 0;
}

static void ring_dealloc(PyObject *object)
{
    Ring *self = (Ring *)object;
    PyObject_GC_UnTrack(object);
    ring_clear(object);
    if (self->words != NULL)
        PyBuffer_Release(&self->memory);
    Py_TYPE(object)->tp_free(object);
}

static PyMethodDef ring_methods[] = {
    {"attach", ring_attach, METH_VARARGS, NULL},
    {"arm", ring_arm, METH_VARARGS, NULL},
    {"recording", ring_recording, METH_NOARGS, NULL},
    {"hooks", ring_hooks, METH_VARARGS, NULL},
    {"put", (PyCFunction)(void (*)(void))ring_put, METH_FASTCALL, NULL},
    {"wrap", ring_wrap, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject RingType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "specmap_agent._ring.Ring",
    .tp_basicsize = sizeof(Ring),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_traverse = ring_traverse,
    .tp_clear = ring_clear,
    .tp_dealloc = ring_dealloc,
    .tp_methods = ring_methods,
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_ring", .m_doc = "The ring in C.", .m_size = -1,
};

PyMODINIT_FUNC PyInit__ring(void)
{
    _Static_assert(sizeof(Record) == 32, "a record is 32 bytes");
    PyObject *functools = PyImport_ImportModule("functools");
    if (functools == NULL)
        return NULL;
    update_wrapper = PyObject_GetAttrString(functools, "update_wrapper");
    Py_DECREF(functools);
    value_name = PyUnicode_InternFromString("value");
    qualname_name = PyUnicode_InternFromString("__qualname__");
    if (update_wrapper == NULL || value_name == NULL || qualname_name == NULL)
        return NULL;
    if (PyType_Ready(&WrapperType) < 0 || PyType_Ready(&RingType) < 0)
        return NULL;
    PyObject *kind = PyUnicode_FromString("c");
    if (kind == NULL || PyDict_SetItemString(RingType.tp_dict, "kind", kind) < 0)
        return NULL;
    Py_DECREF(kind);
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL || PyModule_AddObject(module, "Ring", Py_NewRef(&RingType)) < 0 ||
        PyModule_AddObject(module, "Wrapper", Py_NewRef(&WrapperType)) < 0)
        return NULL;
    return module;
}
