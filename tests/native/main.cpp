// Runs the unit tests of the native code: unit_tests LIBRARY [PART OF A NAME].

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "library.hpp"
#include "testing.hpp"

// The library is also a Python module, whose only need of Python is this function; no test calls it.
extern "C" __attribute__((visibility("default"))) void* PyModuleDef_Init(void*) { return nullptr; }

namespace {
void* library = nullptr;
}

void open_library(const char* path) {
  library = dlopen(path, RTLD_NOW);
  if (library != nullptr) return;
  std::printf("%s\n", dlerror());
  std::exit(2);
}

void* find_function(const char* name) {
  void* const found = dlsym(library, name);
  if (found != nullptr) return found;
  std::printf("the library has no function %s\n", name);
  std::exit(2);
}

int main(int count, char** arguments) {
  if (count < 2) {
    std::printf("usage: %s LIBRARY [PART OF A NAME]\n", arguments[0]);
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // what a crash leaves says where it was
  open_library(arguments[1]);
  return testing::run_tests(count > 2 ? arguments[2] : "");
}
