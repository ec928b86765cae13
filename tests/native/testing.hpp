// A small frame for unit tests: TEST defines one, CHECK states what must hold, run_tests runs all whose name contains a
// given text. Failures are printed and counted; a test goes on after one.
#pragma once

#include <cmath>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <vector>

namespace testing {

struct Test {
  const char* name;
  void (*body)();
};

inline std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

inline int& failures() {
  static int count = 0;
  return count;
}

struct Register {
  Register(const char* name, void (*body)()) { tests().push_back({name, body}); }
};

inline void fail(const char* file, int line, const std::string& what) {
  ++failures();
  std::printf("%s:%d: %s\n", file, line, what.c_str());
}

inline bool close(double a, double b, double tolerance) {
  return a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= tolerance * (1 + std::fabs(b));
}

inline int run_tests(const std::string& part) {
  int run = 0;
  for (const Test& test : tests()) {
    if (std::string(test.name).find(part) == std::string::npos) continue;
    const int before = failures();
    try {
      test.body();
    } catch (const std::exception& error) {
      fail(test.name, 0, std::string("an exception escaped: ") + error.what());
    } catch (...) {
      fail(test.name, 0, "an exception escaped");
    }
    std::printf("%s %s\n", failures() == before ? "ok  " : "FAIL", test.name);
    ++run;
  }
  std::printf("%d tests, %d failures\n", run, failures());
  return failures() != 0 || run == 0;
}

}  // namespace testing

#define TEST(name)                                                    \
  static void test_##name();                                          \
  static const testing::Register register_##name(#name, test_##name); \
  static void test_##name()

#define CHECK(condition)                                             \
  do {                                                               \
    if (!(condition)) testing::fail(__FILE__, __LINE__, #condition); \
  } while (0)

#define CHECK_EQUAL(a, b)                                                                                    \
  do {                                                                                                       \
    const auto a_ = (a);                                                                                     \
    const auto b_ = (b);                                                                                     \
    if (!(a_ == b_))                                                                                         \
      testing::fail(__FILE__, __LINE__, #a " == " #b ": " + std::to_string(a_) + ", " + std::to_string(b_)); \
  } while (0)

#define CHECK_CLOSE(a, b, tolerance)                                                                         \
  do {                                                                                                       \
    const double a_ = (a), b_ = (b);                                                                         \
    if (!testing::close(a_, b_, tolerance))                                                                  \
      testing::fail(__FILE__, __LINE__, #a " == " #b ": " + std::to_string(a_) + ", " + std::to_string(b_)); \
  } while (0)
