// Threads that share out tiles, and what becomes of exceptions: none may end the program, none may be lost.

#include <atomic>
#include <new>
#include <set>
#include <stdexcept>
#include <system_error>

#include "engine_workers.hpp"
#include "testing.hpp"

using semprola::run_tiles;

namespace {

// A thread of which only so many can be started.
class Rare {
 public:
  template <class Body>
  explicit Rare(const Body& body) {
    if (left == 0) throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    --left;
    ++started;
    thread_ = std::thread(body);
  }
  Rare(Rare&&) = default;
  void join() {
    thread_.join();
    ++joined;
  }
  static int left, started, joined;

 private:
  std::thread thread_;
};
int Rare::left = 0, Rare::started = 0, Rare::joined = 0;

// A thread that takes too much memory to be put into any vector.
struct Giant {
  template <class Body>
  explicit Giant(const Body&) {}
  Giant(Giant&&) = default;
  void join() {}
  char size[size_t{1} << 58];
};

template <class Thrown>
void check_thrown(int threads, int64_t tiles, int64_t culprit, const Thrown& thrown) {
  bool caught = false;
  try {
    run_tiles(threads, tiles, [&](const auto& next) {
      for (int64_t tile = next(); tile >= 0; tile = next()) {
        if (tile == culprit) throw thrown;
      }
    });
  } catch (const Thrown&) {
    caught = true;
  }
  CHECK(caught);
}

}  // namespace

TEST(workers_do_every_tile_once) {
  for (int threads : {-1, 0, 1, 2, 7}) {
    for (int64_t tiles : {0, 1, 5, 1000}) {
      std::vector<std::atomic<int>> done(static_cast<size_t>(tiles) + 1);
      run_tiles(threads, tiles, [&](const auto& next) {
        for (int64_t tile = next(); tile >= 0; tile = next()) ++done[static_cast<size_t>(tile)];
      });
      for (int64_t i = 0; i < tiles; ++i) CHECK_EQUAL(done[static_cast<size_t>(i)].load(), 1);
    }
  }
}

TEST(workers_throw_what_the_work_throws) {
  for (int threads : {1, 4}) {
    for (int64_t culprit : {0, 3, 49}) {
      check_thrown(threads, 50, culprit, std::runtime_error("an accident"));
      check_thrown(threads, 50, culprit, std::bad_alloc());
      check_thrown(threads, 50, culprit, 42);
    }
  }
}

TEST(workers_all_fail_and_one_is_reported) {
  int caught = 0;
  try {
    run_tiles(5, 5, [&](const auto& next) { throw std::logic_error("tile " + std::to_string(next())); });
  } catch (const std::logic_error&) {
    ++caught;
  }
  CHECK_EQUAL(caught, 1);
}

TEST(workers_do_without_threads_that_cannot_start) {
  for (int available : {0, 1, 3}) {
    Rare::left = available;
    Rare::started = Rare::joined = 0;
    std::atomic<int64_t> done{0};
    const auto work = [&](const auto& next) {
      while (next() >= 0) ++done;
    };
    run_tiles<decltype(work), Rare>(6, 100, work);
    CHECK_EQUAL(done.load(), int64_t{100});
    CHECK_EQUAL(Rare::started, available);
    CHECK_EQUAL(Rare::joined, available);
  }
}

TEST(workers_do_without_memory_for_threads) {
  int64_t done = 0;
  const auto work = [&](const auto& next) {
    while (next() >= 0) ++done;
  };
  run_tiles<decltype(work), Giant>(1 << 20, 100, work);
  CHECK_EQUAL(done, int64_t{100});
}

TEST(scratch_is_aligned_and_apart) {
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<semprola::Scratch>> all;
    std::set<void*> places;
    for (int64_t bytes : {0, 1, 100, 65536, 1 << 22}) {
      all.push_back(std::make_unique<semprola::Scratch>(bytes));
      char* const p = all.back()->as<char>();
      CHECK(reinterpret_cast<uintptr_t>(p) % 64 == 0);
      for (int64_t i = 0; i < bytes; ++i) p[i] = char(i);
      places.insert(p);
    }
    CHECK_EQUAL(places.size(), all.size());
  }
  bool refused = false;
  try {
    semprola::Scratch(int64_t{1} << 60);
  } catch (const std::bad_alloc&) {
    refused = true;
  }
  CHECK(refused);
}
