// What the native module exports to Python.
//
// Everything is compiled with hidden visibility; ctypes finds a function marked SEMPROLA_EXPORT by its C name:
//
//     SEMPROLA_EXPORT int64_t semprola_count_things(const int32_t *things, int64_t length);
//
// The functions are independent of Python: they take and return plain C types and must not let an exception escape.
#pragma once

#if defined(_MSC_VER)
#define SEMPROLA_EXPORT extern "C" __declspec(dllexport)
#else
#define SEMPROLA_EXPORT extern "C" __attribute__((visibility("default")))
#endif
