// Component cache: packed keys that are compared in full, in two generations of bounded size.
#pragma once

#include "ddnnf_common.hpp"

namespace semprola::ddnnf {

// Maps byte strings to circuit nodes. When the young generation is full, the old one is dropped and the two swap roles;
// an entry found in the old generation is copied to the young one. So entries in use stay, and no clean-up interrupts
// the search. Forgetting costs time, never correctness: a forgotten component is searched again.
class Cache {
 public:
  static constexpr uint32_t kMissing = UINT32_MAX;

  static uint64_t hash(const uint8_t* key, size_t size);

  uint32_t find(const uint8_t* key, size_t size, uint64_t hash);
  void insert(const uint8_t* key, size_t size, uint64_t hash, uint32_t node);

  // Limits the cache to this many bytes from now on; drops entries at once if it holds more.
  void set_limit(int64_t bytes);
  // Forgets the old generation if the cache holds more than `bytes`, and the young one if that is not enough.
  void shrink(int64_t bytes);
  int64_t bytes() const { return generations_[0].bytes() + generations_[1].bytes(); }
  int64_t entries() const { return generations_[0].count + generations_[1].count; }
  int64_t hits() const { return hits_; }
  void clear();

 private:
  struct Slot {
    uint32_t tag = 0;  // upper half of the hash
    uint32_t node = kMissing;
    uint64_t key = 0;  // position in the key store: 4 bytes of size, then the key
  };
  struct Generation {
    std::vector<Slot> slots;
    std::vector<std::vector<uint8_t>> blocks;  // the key store, never reallocated
    int64_t block_bytes = 0;
    int64_t count = 0;

    int64_t bytes() const { return static_cast<int64_t>(slots.size() * sizeof(Slot)) + block_bytes; }
    bool is_crowded() const { return static_cast<size_t>(count) * 2 >= slots.size(); }
    bool has_room_for(size_t size) const {
      return !blocks.empty() && blocks.back().size() + size + 4 <= blocks.back().capacity();
    }
    int64_t bytes_with(size_t size, size_t block) const;  // bytes after one more key of that size
    const Slot* find(const uint8_t* key, size_t size, uint64_t hash) const;
    void insert(const uint8_t* key, size_t size, uint64_t hash, uint32_t node, size_t block);
    void grow();
    void clear();
  };

  size_t block_size() const;

  Generation generations_[2];
  int young_ = 0;
  int64_t limit_ = int64_t{1} << 30;
  int64_t hits_ = 0;
};

}  // namespace semprola::ddnnf
