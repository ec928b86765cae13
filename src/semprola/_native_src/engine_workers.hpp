// Work on tiles: one parallel region per call, tiles handed out one by one, scratch memory kept between calls.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace semprola {

// Fresh pages cost more than the arithmetic of a small plan, so buffers of moderate size are reused.
class Scratch {
 public:
  explicit Scratch(int64_t bytes);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  template <class T>
  T* as() const {
    return static_cast<T*>(aligned_);
  }

 private:
  void *memory_ = nullptr, *aligned_ = nullptr;
  int64_t size_ = 0;
};

// Keeps the first exception that any of several threads throws, to rethrow it where the threads join.
class FirstFailure {
 public:
  // Call inside a catch block.
  void keep() noexcept {
    const std::lock_guard<std::mutex> hold(lock_);
    if (!failure_) failure_ = std::current_exception();
  }

  // Call it only when no other thread is running.
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::mutex lock_;
  std::exception_ptr failure_;
};

// Calls work(next) on up to `threads` threads; next() returns tiles 0 … tiles - 1, then -1. Tiles are handed out one by
// one, so that a thread whose core is busy with something else delays nobody. If a thread cannot be started, the others
// do its share; the caller's thread always works. Throws the first exception that work throws, on any thread, once all
// threads have ended. Tests replace Thread to see this.
template <class Work, class Thread = std::thread>
void run_tiles(int threads, int64_t tiles, const Work& work) {
  std::atomic<int64_t> counter{0};
  FirstFailure failure;
  const auto next = [&]() -> int64_t {
    const int64_t tile = counter.fetch_add(1, std::memory_order_relaxed);
    return tile < tiles ? tile : -1;
  };
  const auto guarded = [&]() noexcept {
    try {
      work(next);
    } catch (...) {
      failure.keep();
      counter.store(tiles, std::memory_order_relaxed);  // the result is lost, so skip the remaining tiles
    }
  };
  const int64_t wanted = std::min<int64_t>(threads, tiles) - 1;
  std::vector<Thread> others;
  if (wanted > 0) {
    try {
      others.reserve(static_cast<size_t>(wanted));  // so that no thread is lost if the vector cannot grow
      for (int64_t i = 0; i < wanted; ++i) others.emplace_back(guarded);
    } catch (...) {
      // no threads or no memory for more of them: continue with the existing ones
    }
  }
  guarded();
  for (Thread& thread : others) thread.join();
  failure.rethrow();
}

}  // namespace semprola
