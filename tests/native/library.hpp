// The library under test, reached as Python reaches it: by the C names of its functions.
#pragma once

#include <cstdint>
#include <string>

// Fails the program where the library has no such function.
void* find_function(const char* name);
void open_library(const char* path);

// The function of that name and type.
template <class Function>
Function* function(const std::string& name) {
  return reinterpret_cast<Function*>(find_function(name.c_str()));
}

template <class T>
const char* suffix();
template <>
inline const char* suffix<float>() {
  return "float";
}
template <>
inline const char* suffix<double>() {
  return "double";
}

// The function for a number type: query<Evaluate<T>, T>("evaluate").
template <class Function, class T>
Function* query(const std::string& name) {
  return function<Function>("semprola_" + name + "_" + suffix<T>());
}

using Create = void*(int32_t, int32_t, int32_t, int32_t, int32_t, const int32_t*, const int32_t*, const int32_t*,
                     const int32_t*, const int32_t*, const int32_t*, const uint8_t*);
template <class T>
using Evaluate = int(const void*, const T*, int64_t, int64_t, const T*, int64_t, int64_t, int64_t, T*, T*, T*, int);
template <class T>
using Maximize = int(const void*, const T*, int64_t, int64_t, const T*, int64_t, int64_t, const T*, int64_t, T*, T*, T*,
                     int);
template <class T>
using Sample = int(const void*, const T*, int64_t, int64_t, const T*, int64_t, int64_t, const T*, int64_t,
                   const int64_t*, int64_t, uint64_t, T*, int);
template <class T>
using Rank = int(const void*, const T*, int64_t, int64_t, const T*, int64_t, int64_t, int64_t, int32_t, T*, T*, int);
template <class T>
using Support = int(const void*, const T*, int64_t, int64_t, int64_t, int, uint8_t*, uint8_t*, int);
template <class T>
using Encode = int(const void*, const T*, int64_t, int64_t, int32_t, int64_t, int32_t*, int64_t, int64_t*);
template <class T>
using Likelihood = int(const void*, const T*, int64_t, int64_t, const T*, int64_t, int64_t, const int32_t*, int64_t,
                       int32_t, int64_t, int64_t, int64_t, int64_t, T*, const T*, T*, int);

// Instruction sets, as semprola_engine_set_level numbers them.
enum Level { kPlain = 0, kAvx2 = 1, kAvx512 = 2 };

// Calls `body` for every instruction set that both the library and the processor have.
template <class Body>
void for_each_level(const Body& body) {
  auto* const set_level = function<void(int)>("semprola_engine_set_level");
  auto* const level = function<int()>("semprola_engine_level");
  for (int wanted = kPlain; wanted <= kAvx512; ++wanted) {
    set_level(wanted);
    if (level() == wanted) body();
  }
  set_level(-1);
}
