// Shared vocabulary of the top-down compiler: literals, status codes, and the budget guard.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace semprola::ddnnf {

using Var = uint32_t;
using Lit = uint32_t;  // 2 * var, plus 1 when negated
using Clause = std::vector<Lit>;

inline Lit make_lit(Var v, bool negative) { return 2 * v + (negative ? 1 : 0); }
inline Lit negate(Lit l) { return l ^ 1U; }
inline Var var_of(Lit l) { return l >> 1; }
inline bool is_negative(Lit l) { return (l & 1U) != 0; }

// Return codes of the C interface; compile/topdown.py mirrors them.
enum Status : int32_t {
  kOk = 0,
  kUnsatisfiable = 1,
  kTimeout = 2,
  kTooManyNodes = 3,
  kOutOfMemory = 4,
  kStopped = 5,
  kNotDetermined = 6,
  kInternalError = 7,
};

enum Phase : int32_t { kSimplify = 0, kOrder = 1, kSearch = 2 };

// Memory shared with the caller: it sets `stop`, the compiler writes the rest. Mirrored by a ctypes Structure.
struct Shared {
  volatile int32_t stop;
  volatile int32_t phase;
  volatile int64_t nodes;
  volatile int64_t edges;
  volatile int64_t decisions;
  volatile int64_t conflicts;
  volatile int64_t cache_entries;
  volatile int64_t cache_hits;
  volatile int64_t bytes;
  volatile int64_t width;
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

  // Called before memory is taken, with the total that would then be held.
  void check_bytes(int64_t bytes) const {
    if (max_bytes_ >= 0 && bytes > max_bytes_) throw Abort{kOutOfMemory};
  }

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
