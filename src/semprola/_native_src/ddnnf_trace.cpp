#include "ddnnf_trace.hpp"

#include <algorithm>

namespace semprola::ddnnf {

Trace::Trace(Var num_vars, Guard& guard) : guard_(guard), literal_node_(2 * static_cast<size_t>(num_vars), kNone) {
  rehash(1024);
}

Trace::Node Trace::literal(Lit l) {
  Node& node = literal_node_[l];
  if (node == kNone) node = intern(kLiteral, l, nullptr, 0);
  return node;
}

Trace::Node Trace::product(std::vector<Node>& nodes, size_t from) {
  size_t end = from;
  for (size_t i = from; i < nodes.size(); ++i) {
    if (!is_true(nodes[i])) nodes[end++] = nodes[i];
  }
  const size_t count = end - from;
  if (count == 1) return nodes[from];
  std::sort(nodes.begin() + static_cast<std::ptrdiff_t>(from), nodes.begin() + static_cast<std::ptrdiff_t>(end));
  const Node node = intern(kProduct, 0, nodes.data() + from, count);
  if (count == 0) true_ = node;
  return node;
}

Trace::Node Trace::sum(Var v, Node first, Node second) {
  if (first == second || is_true(first) || is_true(second)) throw Abort{kNotDetermined};
  auto factors = [&](Node n, const Node*& begin, size_t& count) {
    const bool expand = kind_[n] == kProduct;
    begin = expand ? children_.data() + child_start_[n] : nullptr;
    count = expand ? static_cast<size_t>(child_start_[n + 1] - child_start_[n]) : 1;
  };
  const Node* a = nullptr;
  const Node* b = nullptr;
  size_t count_a = 0, count_b = 0;
  factors(first, a, count_a);
  factors(second, b, count_b);
  if (count_a == count_b) {
    const Node positive = literal_node_[make_lit(v, false)], negative = literal_node_[make_lit(v, true)];
    auto decides = [&](Node n) { return n == positive || n == negative; };
    if (a == nullptr && b == nullptr) {
      if (decides(first) && decides(second)) {
        scratch_.clear();
        return product(scratch_, 0);
      }
    } else if (a != nullptr && b != nullptr) {
      scratch_.clear();
      size_t i = 0, j = 0;
      while (i < count_a || j < count_b) {
        if (i < count_a && decides(a[i])) {
          ++i;
        } else if (j < count_b && decides(b[j])) {
          ++j;
        } else if (i < count_a && j < count_b && a[i] == b[j]) {
          scratch_.push_back(a[i]);
          ++i;
          ++j;
        } else {
          break;
        }
      }
      if (i == count_a && j == count_b) return product(scratch_, 0);
    }
  }
  const Node pair[2] = {std::min(first, second), std::max(first, second)};
  return intern(kSum, 0, pair, 2);
}

void Trace::finish(Node root) {
  std::vector<Node>().swap(slots_);
  std::vector<Node> renamed(kind_.size(), kNone);
  std::vector<uint8_t> alive(kind_.size(), 0);
  alive[root] = 1;
  for (size_t n = root + 1; n-- > 0;) {
    if (!alive[n]) continue;
    for (uint64_t e = child_start_[n]; e < child_start_[n + 1]; ++e) alive[children_[e]] = 1;
  }
  Node next = 0;
  uint64_t edge = 0;
  for (size_t n = 0; n <= root; ++n) {
    if (!alive[n]) continue;
    const uint64_t begin = child_start_[n], end = child_start_[n + 1];
    child_start_[next] = edge;
    for (uint64_t e = begin; e < end; ++e) children_[edge++] = renamed[children_[e]];
    kind_[next] = kind_[n];
    label_[next] = label_[n];
    renamed[n] = next++;
  }
  child_start_[next] = edge;
  kind_.resize(next);
  label_.resize(next);
  child_start_.resize(static_cast<size_t>(next) + 1);
  children_.resize(edge);
}

void Trace::copy(int8_t* kind, int32_t* literal, int64_t* child_start, int32_t* children) const {
  std::copy(kind_.begin(), kind_.end(), kind);
  for (size_t n = 0; n < kind_.size(); ++n) {
    const int32_t v = static_cast<int32_t>(var_of(label_[n])) + 1;
    literal[n] = kind_[n] != kLiteral ? 0 : is_negative(label_[n]) ? -v : v;
  }
  std::copy(child_start_.begin(), child_start_.end(), child_start);
  std::copy(children_.begin(), children_.end(), children);
}

Trace::Node Trace::intern(Kind kind, Lit label, const Node* children, size_t count) {
  const size_t mask = slots_.size() - 1;
  size_t slot = static_cast<size_t>(hash(kind, label, children, count)) & mask;
  for (; slots_[slot] != kNone; slot = (slot + 1) & mask) {
    const Node n = slots_[slot];
    if (kind_[n] == kind && label_[n] == label && child_start_[n + 1] - child_start_[n] == count &&
        std::equal(children, children + count, children_.begin() + static_cast<std::ptrdiff_t>(child_start_[n]))) {
      return n;
    }
  }
  guard_.check_nodes(num_nodes() + 1);
  if (kind_.size() >= INT32_MAX) throw Abort{kOutOfMemory};
  grow(1, count);
  const Node node = static_cast<Node>(kind_.size());
  kind_.push_back(kind);
  label_.push_back(label);
  // `children` may point into `children_`: `grow` has made room, so the range does not move.
  for (size_t i = 0; i < count; ++i) children_.push_back(children[i]);
  child_start_.push_back(children_.size());
  slots_[slot] = node;
  if (kind_.size() * 2 > slots_.size()) rehash(slots_.size() * 2);
  return node;
}

// Grows by half instead of doubling, and asks the guard first: reallocation holds the old and the new block at once.
void Trace::grow(size_t more_nodes, size_t more_edges) {
  constexpr size_t kPerNode = sizeof(int8_t) + sizeof(Lit) + sizeof(uint64_t);
  if (kind_.size() + more_nodes >= kind_.capacity()) {
    const size_t capacity = std::max<size_t>(1024, kind_.capacity() * 3 / 2);
    guard_.check_bytes(other_bytes + bytes_ + static_cast<int64_t>(capacity * kPerNode));
    bytes_ += static_cast<int64_t>((capacity - kind_.capacity()) * kPerNode);
    kind_.reserve(capacity);
    label_.reserve(capacity);
    child_start_.reserve(capacity + 1);
  }
  if (children_.size() + more_edges > children_.capacity()) {
    const size_t capacity = std::max({size_t{4096}, children_.capacity() * 3 / 2, children_.size() + more_edges});
    guard_.check_bytes(other_bytes + bytes_ + static_cast<int64_t>(capacity * sizeof(Node)));
    bytes_ += static_cast<int64_t>((capacity - children_.capacity()) * sizeof(Node));
    children_.reserve(capacity);
  }
}

void Trace::rehash(size_t slots) {
  guard_.check_bytes(other_bytes + bytes_ + static_cast<int64_t>(slots * sizeof(Node)));
  bytes_ += static_cast<int64_t>((slots - slots_.size()) * sizeof(Node));
  slots_.assign(slots, kNone);
  for (size_t n = 0; n < kind_.size(); ++n) {
    const Node* children = children_.data() + child_start_[n];
    const size_t count = static_cast<size_t>(child_start_[n + 1] - child_start_[n]);
    size_t slot = static_cast<size_t>(hash(static_cast<Kind>(kind_[n]), label_[n], children, count)) & (slots - 1);
    while (slots_[slot] != kNone) slot = (slot + 1) & (slots - 1);
    slots_[slot] = static_cast<Node>(n);
  }
}

uint64_t Trace::hash(Kind kind, Lit label, const Node* children, size_t count) const {
  uint64_t h = mix((static_cast<uint64_t>(label) << 2) + static_cast<uint64_t>(kind) + 0x9e3779b97f4a7c15ULL);
  for (size_t i = 0; i < count; ++i) h = mix(h ^ children[i]);
  return h;
}

}  // namespace semprola::ddnnf
