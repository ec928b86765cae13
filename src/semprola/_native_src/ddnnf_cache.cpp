#include "ddnnf_cache.hpp"

#include <algorithm>
#include <cstring>

namespace semprola::ddnnf {

namespace {
constexpr size_t kSmallestBlock = size_t{1} << 12, kLargestBlock = size_t{1} << 20;
constexpr size_t kFirstSlots = 1024;
constexpr int kBlockBits = 40;  // key position: block number above, offset below
}  // namespace

uint64_t Cache::hash(const uint8_t* key, size_t size) {
  uint64_t h = mix(size + 0x9e3779b97f4a7c15ULL);
  size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, key + i, 8);
    h = mix(h ^ word);
  }
  uint64_t rest = 0;
  std::memcpy(&rest, key + i, size - i);
  return mix(h ^ rest);
}

uint32_t Cache::find(const uint8_t* key, size_t size, uint64_t hash) {
  const Slot* slot = generations_[young_].find(key, size, hash);
  if (slot == nullptr) {
    slot = generations_[1 - young_].find(key, size, hash);
    if (slot == nullptr) return kMissing;
    const uint32_t node = slot->node;
    insert(key, size, hash, node);
    ++hits_;
    return node;
  }
  ++hits_;
  return slot->node;
}

void Cache::insert(const uint8_t* key, size_t size, uint64_t hash, uint32_t node) {
  if (generations_[young_].find(key, size, hash) != nullptr) return;
  const size_t block = block_size();
  if (generations_[young_].bytes_with(size, block) > limit_ / 2) {
    young_ = 1 - young_;
    generations_[young_].clear();
    if (generations_[young_].bytes_with(size, block) > limit_ / 2) return;  // does not fit even alone
  }
  generations_[young_].insert(key, size, hash, node, block);
}

void Cache::set_limit(int64_t bytes) {
  limit_ = bytes;
  shrink(bytes);
}

void Cache::shrink(int64_t bytes) {
  if (this->bytes() > bytes) generations_[1 - young_].clear();
  if (this->bytes() > bytes) generations_[young_].clear();
}

// Small if the limit is small: otherwise a single block would fill a generation.
size_t Cache::block_size() const {
  return std::min(kLargestBlock, std::max(kSmallestBlock, static_cast<size_t>(std::max<int64_t>(limit_, 0)) / 32));
}

void Cache::clear() {
  generations_[0].clear();
  generations_[1].clear();
}

const Cache::Slot* Cache::Generation::find(const uint8_t* key, size_t size, uint64_t hash) const {
  if (slots.empty()) return nullptr;
  const uint32_t tag = static_cast<uint32_t>(hash >> 32);
  const size_t mask = slots.size() - 1;
  for (size_t at = static_cast<size_t>(hash) & mask; slots[at].node != kMissing; at = (at + 1) & mask) {
    const Slot& slot = slots[at];
    if (slot.tag != tag) continue;
    const uint8_t* stored = blocks[slot.key >> kBlockBits].data() + (slot.key & ((uint64_t{1} << kBlockBits) - 1));
    uint32_t stored_size = 0;
    std::memcpy(&stored_size, stored, 4);
    if (stored_size == size && std::memcmp(stored + 4, key, size) == 0) return &slot;
  }
  return nullptr;
}

int64_t Cache::Generation::bytes_with(size_t size, size_t block) const {
  const size_t more_slots = is_crowded() ? std::max(kFirstSlots, slots.size()) : 0;
  const size_t more_keys = has_room_for(size) ? 0 : std::max(block, size + 4);
  return bytes() + static_cast<int64_t>(more_slots * sizeof(Slot) + more_keys);
}

void Cache::Generation::insert(const uint8_t* key, size_t size, uint64_t hash, uint32_t node, size_t block_size) {
  if (is_crowded()) grow();
  if (!has_room_for(size)) {
    std::vector<uint8_t> block;
    block.reserve(std::max(block_size, size + 4));
    block_bytes += static_cast<int64_t>(block.capacity());
    blocks.push_back(std::move(block));
  }
  std::vector<uint8_t>& block = blocks.back();
  const uint64_t position = (static_cast<uint64_t>(blocks.size() - 1) << kBlockBits) | block.size();
  const uint32_t size32 = static_cast<uint32_t>(size);
  const uint8_t* size_bytes = reinterpret_cast<const uint8_t*>(&size32);
  block.insert(block.end(), size_bytes, size_bytes + 4);
  block.insert(block.end(), key, key + size);
  const size_t mask = slots.size() - 1;
  size_t at = static_cast<size_t>(hash) & mask;
  while (slots[at].node != kMissing) at = (at + 1) & mask;
  slots[at] = Slot{static_cast<uint32_t>(hash >> 32), node, position};
  ++count;
}

void Cache::Generation::grow() {
  const size_t bigger = slots.empty() ? kFirstSlots : slots.size() * 2;
  std::vector<Slot> old(bigger);
  old.swap(slots);
  for (const Slot& slot : old) {
    if (slot.node == kMissing) continue;
    const uint8_t* stored = blocks[slot.key >> kBlockBits].data() + (slot.key & ((uint64_t{1} << kBlockBits) - 1));
    uint32_t size = 0;
    std::memcpy(&size, stored, 4);
    size_t at = static_cast<size_t>(Cache::hash(stored + 4, size)) & (bigger - 1);
    while (slots[at].node != kMissing) at = (at + 1) & (bigger - 1);
    slots[at] = slot;
  }
}

void Cache::Generation::clear() {
  std::vector<Slot>().swap(slots);
  std::vector<std::vector<uint8_t>>().swap(blocks);
  block_bytes = 0;
  count = 0;
}

}  // namespace semprola::ddnnf
