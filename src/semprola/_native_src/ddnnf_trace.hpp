// The circuit under construction: hash-consed nodes in topological order.
#pragma once

#include "ddnnf_common.hpp"

namespace semprola::ddnnf {

// The nodes of the result. Children are created before their parents, and equal nodes only once.
class Trace {
 public:
  enum Kind : int8_t { kLiteral = 0, kProduct = 1, kSum = 2 };
  using Node = uint32_t;

  // `num_vars` is the number of input variables; literals are those of the input, not of the simplified formula.
  Trace(Var num_vars, Guard& guard);

  Node literal(Lit l);
  // The conjunction of `nodes[from...]` without true nodes; a single factor stands for itself. Reorders `nodes`.
  Node product(std::vector<Node>& nodes, size_t from);
  // The disjunction of two nodes that differ in the value of `v`; if `v` has no influence, it disappears.
  // Throws kNotDetermined if `v` is hidden and the two sides are the same.
  Node sum(Var v, Node first, Node second);

  bool is_true(Node n) const { return n == true_; }
  int64_t num_nodes() const { return static_cast<int64_t>(kind_.size()); }
  int64_t num_edges() const { return static_cast<int64_t>(children_.size()); }
  int64_t bytes() const { return bytes_; }

  // Drops the hash table and all nodes that `root` does not reach; `root` becomes the last node.
  void finish(Node root);
  void copy(int8_t* kind, int32_t* literal, int64_t* child_start, int32_t* children) const;

  // The bytes that the other parts hold, to check the growth of this part against the memory budget.
  int64_t other_bytes = 0;

 private:
  Node intern(Kind kind, Lit label, const Node* children, size_t count);
  void grow(size_t more_nodes, size_t more_edges);
  void rehash(size_t slots);
  uint64_t hash(Kind kind, Lit label, const Node* children, size_t count) const;

  static constexpr Node kNone = UINT32_MAX;
  Guard& guard_;
  std::vector<Node> literal_node_;
  std::vector<int8_t> kind_;
  std::vector<Lit> label_;
  std::vector<uint64_t> child_start_{0};
  std::vector<Node> children_;
  std::vector<Node> slots_;
  std::vector<Node> scratch_;
  Node true_ = kNone;
  int64_t bytes_ = 0;
};

}  // namespace semprola::ddnnf
