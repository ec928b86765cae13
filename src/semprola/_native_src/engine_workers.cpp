// Buffers that are reused, so that a call need not wait for fresh pages.

#include "engine_workers.hpp"

#include <cstdlib>
#include <new>
#include <utility>

namespace semprola {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kLargestKept = int64_t(64) << 20;
constexpr size_t kMostKept = 8;

struct Kept {
  void* memory;
  int64_t size;
};

std::mutex kept_lock;
std::vector<Kept>& kept() {
  static auto* buffers = new std::vector<Kept>;  // never destroyed: threads may outlive static destructors
  return *buffers;
}

void* align(void* memory) {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  return reinterpret_cast<void*>((address + kAlignment - 1) / kAlignment * kAlignment);
}

}  // namespace

Scratch::Scratch(int64_t bytes) {
  {
    const std::lock_guard<std::mutex> hold(kept_lock);
    std::vector<Kept>& buffers = kept();
    size_t best = buffers.size();
    for (size_t i = 0; i < buffers.size(); ++i)
      if (buffers[i].size >= bytes && (best == buffers.size() || buffers[i].size < buffers[best].size)) best = i;
    // a buffer that is many times too large is left for a larger request
    if (best < buffers.size() && buffers[best].size <= 4 * bytes + 65536) {
      memory_ = buffers[best].memory;
      size_ = buffers[best].size;
      buffers.erase(buffers.begin() + static_cast<std::ptrdiff_t>(best));
    }
  }
  if (!memory_) {
    memory_ = std::malloc(static_cast<size_t>(bytes + kAlignment));
    if (!memory_) throw std::bad_alloc();
    size_ = bytes;
  }
  aligned_ = align(memory_);
}

Scratch::~Scratch() {
  if (size_ <= kLargestKept) {
    const std::lock_guard<std::mutex> hold(kept_lock);
    std::vector<Kept>& buffers = kept();
    if (buffers.size() < kMostKept) {
      try {
        buffers.push_back({memory_, size_});
        return;
      } catch (const std::bad_alloc&) {
      }
    } else {
      // drop the smallest buffer, which is the cheapest to allocate again
      Kept* smallest = &buffers[0];
      for (Kept& kept : buffers)
        if (kept.size < smallest->size) smallest = &kept;
      if (smallest->size < size_) {
        std::swap(smallest->memory, memory_);
        std::swap(smallest->size, size_);
      }
    }
  }
  std::free(memory_);
}

}  // namespace semprola
