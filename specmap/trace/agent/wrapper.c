/* The wrapper: a callable of its own type that records the calls of a function. */
#include "ring.h"

#include <stddef.h>
#include <structmember.h>

static PyObject *update_wrapper, *qualname_name;

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

/* One record before the call; none for a call inside it, as of a subclass that calls its base. */
static PyObject *marked_call(Wrapper *self, PyObject *const *args, size_t flags, PyObject *names)
{
    Ring *ring = self->ring;
    if (ring->marking)
        return PyObject_Vectorcall(self->function, args, flags, names);
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    if (self->counts == 0) {
        PyObject *holder = count > 0 ? args[0] : NULL;
        put(ring, self->target, self->mark, -1, -1, -1, (uint64_t)(uintptr_t)holder);
    } else {
        int64_t total = self->counts > 1 ? 0 : -1;
        for (int i = 1; i < self->counts && total >= 0; i++) {
            int one = count_of(&self->count[i], args, count, names);
            total = one < 0 ? -1 : total + one;
        }
        int size = count_of(&self->count[0], args, count, names);
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
    PyObject *holder = self->bound && count > 0 ? args[0] : NULL, *outer = ring->batch;
    int mode = -1, size = -1;
    if (self->position >= 0) {
        PyObject *batch = argument(self->position, self->keyword, args, count, names);
        if (batch != NULL && batch != Py_None && batch != outer) {
            mode = mode_of(batch, self->mode);
            size = size_of(batch, self->sizes);
        }
        if (self->has_keys && batch != NULL)
            ring->batch = batch;
    }
    if (holder != NULL && (self->entry || self->has_keys))
        look_at(self, holder);
    put(ring, self->target, ENTER, mode, size, -1, (uint64_t)(uintptr_t)holder);
    ring->depth += self->entry;
    int span = self->timed && ring->spans != NULL ? span_begin(ring, self->target) : -1;

    PyObject *result = PyObject_Vectorcall(self->function, args, flags, names);

    if (span >= 0)
        span_end(ring, span);
    ring->batch = outer;
    if (self->entry ? ring->entries : ring->calls) {
        int looks = result != NULL && holder != NULL && self->has_keys;
        int kind = result != NULL ? EXIT : RAISE, value = looks ? size_of(holder, self->keys) : -1;
        put(ring, self->target, kind, mode, size, value, (uint64_t)(uintptr_t)holder);
    }
    if (self->entry && ring->depth > 0 && --ring->depth == 0 && ring->words != NULL) {
        ring->words[CYCLES]++;
        if (ring->spans != NULL)
            spans_read(ring);
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
    for (int i = 0; i < COUNTS; i++)
        Py_CLEAR(self->count[i].name);
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

PyTypeObject WrapperType = {
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

/* ---- made from a shape (shape.py) ---- */

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

static long shape_number(PyObject *shape, const char *name)
{
    PyObject *found = shape_field(shape, name, &PyLong_Type);
    long number = found != NULL ? PyLong_AsLong(found) : -1;
    Py_XDECREF(found);
    return number;
}

/* Pairs of a position and a name. */
static void shape_counts(PyObject *shape, Wrapper *made)
{
    PyObject *counts = shape_field(shape, "counts", &PyTuple_Type);
    if (counts == NULL)
        return;
    if (PyTuple_GET_SIZE(counts) > COUNTS)
        PyErr_Format(PyExc_ValueError, "a shape has %d counts at most", COUNTS);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(counts) && !PyErr_Occurred(); i++) {
        Place *place = &made->count[i];
        PyObject *pair = PyTuple_GET_ITEM(counts, i);
        if (!PyTuple_Check(pair))
            PyErr_SetString(PyExc_TypeError, "a shape's counts are pairs");
        else if (PyArg_ParseTuple(pair, "nU", &place->position, &place->name))
            Py_INCREF(place->name);
        else
            place->name = NULL;
        made->counts = (uint8_t)(i + 1);
    }
    Py_DECREF(counts);
}

PyObject *wrapper_new(Ring *ring, PyObject *function, PyObject *shape)
{
    Wrapper *made = PyObject_GC_New(Wrapper, &WrapperType);
    if (made == NULL)
        return NULL;
    memset((char *)made + sizeof(PyObject), 0, sizeof(Wrapper) - sizeof(PyObject));
    made->vectorcall = wrapper_call;
    made->function = Py_NewRef(function);
    made->ring = (Ring *)Py_NewRef(ring);
    made->dict = PyDict_New();
    made->keyword = shape_name(shape, "keyword");
    made->mode = shape_name(shape, "mode");
    made->sizes = shape_field(shape, "sizes", &PyTuple_Type);
    made->keys = shape_field(shape, "keys", &PyTuple_Type);
    made->has_keys = made->keys != NULL && PyTuple_GET_SIZE(made->keys) > 0;
    made->position = (int16_t)shape_number(shape, "position");
    made->target = (uint32_t)shape_number(shape, "target");
    made->bound = (char)shape_number(shape, "bound");
    made->entry = (char)shape_number(shape, "entry");
    made->timed = (char)shape_number(shape, "timed");
    made->mark = (char)shape_number(shape, "mark");
    shape_counts(shape, made);
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

/* Make the type and the names that it needs; -1 with an error set. */
int wrapper_init(void)
{
    PyObject *functools = PyImport_ImportModule("functools");
    if (functools == NULL)
        return -1;
    update_wrapper = PyObject_GetAttrString(functools, "update_wrapper");
    Py_DECREF(functools);
    qualname_name = PyUnicode_InternFromString("__qualname__");
    return update_wrapper == NULL || qualname_name == NULL ? -1 : PyType_Ready(&WrapperType);
}
