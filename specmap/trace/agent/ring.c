/* The ring as Python sees it, and the module. ring.h says what a ring is. */
#include "ring.h"

#include <stddef.h>
#include <structmember.h>

__thread char this_thread;

/* Call back into Python; an exception that is on its way is kept, a new one is cleared. */
void call_back(PyObject *callback, PyObject *argument)
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

int woken(Ring *ring)
{
    PyObject *wake = ring->wake;
    if (wake == NULL)
        return ring->calls;
    ring->wake = NULL;
    call_back(wake, NULL);
    Py_DECREF(wake);
    return ring->calls;
}

static PyObject *ring_wrap(PyObject *object, PyObject *args)
{
    PyObject *function, *shape;
    if (!PyArg_ParseTuple(args, "OO", &function, &shape))
        return NULL;
    return wrapper_new((Ring *)object, function, shape);
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
    self->mask = capacity - 1;
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
    Py_CLEAR(self->collective_names);
    spans_free(self);
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
    {"launches", ring_launches, METH_O, NULL},
    {"spans", ring_spans, METH_VARARGS, NULL},
    {"wrap", ring_wrap, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef ring_members[] = {
    {"capturing", T_INT, offsetof(Ring, capturing), 0, NULL},
    {"span_fault", T_INT, offsetof(Ring, span_fault), READONLY, NULL},
    {"spans_dropped", T_LONGLONG, offsetof(Ring, spans_dropped), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyTypeObject RingType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "specmap_agent._ring.Ring",
    .tp_basicsize = sizeof(Ring),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_traverse = ring_traverse,
    .tp_clear = ring_clear,
    .tp_dealloc = ring_dealloc,
    .tp_members = ring_members,
    .tp_methods = ring_methods,
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_ring", .m_doc = "The ring in C.", .m_size = -1,
};

PyMODINIT_FUNC PyInit__ring(void)
{
    _Static_assert(sizeof(Record) == 32, "a record is 32 bytes");
    if (carried_init() < 0 || wrapper_init() < 0 || PyType_Ready(&RingType) < 0)
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
