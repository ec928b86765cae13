// Definitions shared by the top-down compiler: literals, status codes, and the budget guard.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace semprola::ddnnf {

using Var = uint32_t;
using Lit = uint32_t;  // 2 * var, plus 1 when negated
using Clause = std::vector<Lit>;

inline Lit make_lit(Var v, bool negative) { return 2 * v + (negative ? 1 : 0); }
inline Lit negate(Lit l) { return l ^ 1U; }
inline Var var_of(Lit l) { return l >> 1; }
inline bool is_negative(Lit l) { return (l & 1U) != 0; }

// Return codes of the C interface; compiler/backends/topdown/search.py mirrors them.
enum Status : int32_t {
  kOk = 0,
  kUnsatisfiable = 1,
  kTimeout = 2,
  kTooManyNodes = 3,
  kOutOfMemory = 4,
  kStopped = 5,
  kNotDetermined = 6,
  kInternalError = 7,
  kBadInput = 8,
};

enum Phase : int32_t { kSimplify = 0, kOrder = 1, kSearch = 2 };

// A number that one thread writes while another reads it. Nothing else depends on it, so no memory order is needed.
template <typename T>
class Cell {
 public:
  operator T() const { return value_.load(std::memory_order_relaxed); }
  Cell& operator=(T value) {
    value_.store(value, std::memory_order_relaxed);
    return *this;
  }

 private:
  std::atomic<T> value_;
  static_assert(std::atomic<T>::is_always_lock_free && sizeof(std::atomic<T>) == sizeof(T),
                "the caller reads and writes plain numbers");
};

// Memory shared with the caller, which sets `stop`; the compiler writes the rest. Mirrored by a ctypes Structure.
struct Shared {
  Cell<int32_t> stop;
  Cell<int32_t> phase;
  Cell<int64_t> nodes;
  Cell<int64_t> edges;
  Cell<int64_t> decisions;
  Cell<int64_t> conflicts;
  Cell<int64_t> cache_entries;
  Cell<int64_t> cache_hits;
  Cell<int64_t> bytes;
  Cell<int64_t> width;
};

// Thrown to leave the compilation from any depth; caught at the C interface.
struct Abort {
  Status status;
};

// Clock, node and memory budgets. `tick` is cheap enough to be called once per decision.
class Guard {
 public:
  Guard(Shared* shared, double seconds, int64_t max_nodes, int64_t max_bytes)
      : shared_(shared), max_nodes_(max_nodes), max_bytes_(max_bytes), start_(Clock::now()), seconds_(seconds) {}

  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  void tick() {
    if (shared_->stop != 0) throw Abort{kStopped};
    if ((++ticks_ & 63U) == 0) check_clock();
  }

  void check_clock() const {
    if (shared_->stop != 0) throw Abort{kStopped};
    if (seconds_ >= 0 && elapsed() > seconds_) throw Abort{kTimeout};
  }

  void check_nodes(int64_t nodes) const {
    if (max_nodes_ >= 0 && nodes > max_nodes_) throw Abort{kTooManyNodes};
  }

  // Called before memory is allocated, with the total after the allocation.
  void check_bytes(int64_t bytes) const {
    if (max_bytes_ < 0 || bytes <= max_bytes_) return;
    if (relief_ && bytes - relief_(bytes - max_bytes_) <= max_bytes_) return;
    throw Abort{kOutOfMemory};
  }

  // Sets what to do before giving up because memory has run out: the function gets the number of bytes that are
  // missing, frees what it can spare, and returns how many bytes it has freed.
  void set_relief(std::function<int64_t(int64_t)> relief) { relief_ = std::move(relief); }

  double seconds() const { return seconds_; }
  int64_t max_bytes() const { return max_bytes_; }
  Shared& shared() { return *shared_; }

 private:
  using Clock = std::chrono::steady_clock;
  Shared* shared_;
  int64_t max_nodes_;
  int64_t max_bytes_;
  Clock::time_point start_;
  double seconds_;
  uint64_t ticks_ = 0;
  std::function<int64_t(int64_t)> relief_;
};

// One round of a multiply-and-fold mixer: spreads all bits of `x` into all bits of the result.
inline uint64_t mix(uint64_t x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ULL;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ULL;
  return x ^ (x >> 32);
}

}  // namespace semprola::ddnnf
