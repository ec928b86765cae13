// An empty Python module, semprola._native: with it, setuptools builds, places and tags the shared library like any
// other extension. Its functions are plain C and are called through ctypes (see export.h).

#include <Python.h>

#include "export.h"

// The package version that this library was built for; the loader compares it to detect a stale build.
SEMPROLA_EXPORT const char* semprola_native_version() { return SEMPROLA_VERSION; }

static PyModuleDef_Slot slots[] = {
#if defined(Py_mod_gil)
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, nullptr},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "_native",
    "Native kernels of semprola, to be loaded by ctypes.",
    0,
    nullptr,
    slots,
    nullptr,
    nullptr,
    nullptr,
};

PyMODINIT_FUNC PyInit__native() { return PyModuleDef_Init(&definition); }
