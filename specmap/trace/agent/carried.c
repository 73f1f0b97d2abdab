/* What a call carries: forward mode, sizes, integer arguments. */
#include "ring.h"

static PyObject *value_name;

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

int mode_of(PyObject *batch, PyObject *name)
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
int size_of(PyObject *thing, PyObject *names)
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
PyObject *argument(Py_ssize_t position, PyObject *keyword, PyObject *const *args, Py_ssize_t count,
                   PyObject *names)
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

/* The int at a place, -1 where it is none. */
int count_of(Place *place, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    PyObject *found = argument(place->position, place->name, args, count, names);
    return found != NULL && PyLong_CheckExact(found) ? bounded(found, 0, INT32_MAX) : -1;
}

/* Make the name that is looked up; -1 with an error set. */
int carried_init(void)
{
    value_name = PyUnicode_InternFromString("value");
    return value_name == NULL ? -1 : 0;
}
