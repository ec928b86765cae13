// Work on tiles: one parallel region a call, tiles handed out one by one, scratch memory kept between calls.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace semprola {

// Fresh pages cost more than the arithmetic of a small circuit, so buffers of moderate size are used again.
class Scratch {
   public:
    explicit Scratch(int64_t bytes);
    ~Scratch();
    Scratch(const Scratch &) = delete;
    Scratch &operator=(const Scratch &) = delete;
    template <class T> T *as() const { return static_cast<T *>(aligned_); }

   private:
    void *memory_ = nullptr, *aligned_ = nullptr;
    int64_t size_ = 0;
};

// Calls work(next) on up to `threads` threads; next() gives tiles 0 … tiles - 1, then -1. Tiles are handed out one by
// one, so that a thread whose core is busy with something else delays nobody. Throws what work throws.
template <class Work> void run_tiles(int threads, int64_t tiles, const Work &work) {
    std::atomic<int64_t> counter{0};
    std::atomic<bool> out_of_memory{false};
    const auto next = [&]() -> int64_t {
        const int64_t tile = counter.fetch_add(1, std::memory_order_relaxed);
        return tile < tiles ? tile : -1;
    };
    const auto guarded = [&]() {
        try {
            work(next);
        } catch (const std::bad_alloc &) {
            out_of_memory = true;
        }
    };
    std::vector<std::thread> others;
    for (int64_t i = 1; i < threads && i < tiles; ++i) {
        try {
            others.emplace_back(guarded);
        } catch (const std::system_error &) {
            break;  // no more threads to be had: do with those there are
        }
    }
    guarded();
    for (std::thread &thread : others) thread.join();
    if (out_of_memory) throw std::bad_alloc();
}

}  // namespace semprola
