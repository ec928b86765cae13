#include "ddnnf_component.hpp"

#include <algorithm>

#include "ddnnf_cache.hpp"

namespace semprola::ddnnf {

namespace {

// Appends a sorted set of numbers: as a bitmap over its range if that is shorter, otherwise as byte-wise differences.
void pack_set(const uint32_t* begin, const uint32_t* end, std::vector<uint8_t>& out) {
  auto put = [&](uint32_t x) {
    for (; x >= 128; x >>= 7) out.push_back(static_cast<uint8_t>(x | 128U));
    out.push_back(static_cast<uint8_t>(x));
  };
  const uint32_t count = static_cast<uint32_t>(end - begin);
  if (count == 0) {
    put(0);
    return;
  }
  const uint32_t first = *begin, range = *(end - 1) - first;
  const bool bitmap = range / 8 < count;
  put(2 * count + (bitmap ? 1 : 0));
  put(first);
  if (!bitmap) {
    for (const uint32_t* x = begin + 1; x != end; ++x) put(*x - *(x - 1));
    return;
  }
  const size_t start = out.size();
  out.resize(start + range / 8 + 1, 0);
  for (const uint32_t* x = begin; x != end; ++x) {
    out[start + (*x - first) / 8] = static_cast<uint8_t>(out[start + (*x - first) / 8] | (1U << ((*x - first) % 8)));
  }
}

}  // namespace

Analyzer::Analyzer(Var num_vars, const std::vector<Clause>& clauses)
    : frequency(num_vars, 0), var_stamp_(num_vars, 0), label_(num_vars, 0) {
  long_start_.assign(static_cast<size_t>(num_vars) + 1, 0);
  binary_start_.assign(static_cast<size_t>(num_vars) + 1, 0);
  for (const Clause& c : clauses) {
    for (Lit l : c) ++(c.size() == 2 ? binary_start_ : long_start_)[var_of(l) + 1];
  }
  for (Var v = 0; v < num_vars; ++v) {
    long_start_[v + 1] += long_start_[v];
    binary_start_[v + 1] += binary_start_[v];
  }
  long_clauses_.resize(long_start_[num_vars]);
  binary_own_.resize(binary_start_[num_vars]);
  binary_other_.resize(binary_start_[num_vars]);
  std::vector<uint32_t> long_next(long_start_), binary_next(binary_start_);
  clause_start_.push_back(0);
  for (const Clause& c : clauses) {
    if (c.size() == 2) {
      for (int side = 0; side < 2; ++side) {
        const uint32_t at = binary_next[var_of(c[side])]++;
        binary_own_[at] = c[side];
        binary_other_[at] = c[1 - side];
      }
      continue;
    }
    const uint32_t id = static_cast<uint32_t>(clause_start_.size() - 1);
    for (Lit l : c) long_clauses_[long_next[var_of(l)]++] = id;
    clause_lits_.insert(clause_lits_.end(), c.begin(), c.end());
    clause_start_.push_back(static_cast<uint32_t>(clause_lits_.size()));
  }
  clause_stamp_.assign(clause_start_.size(), 0);
}

void Analyzer::explore(const Solver& solver, Var start, uint32_t label) {
  const uint32_t partial_begin = static_cast<uint32_t>(partial_.size());
  queue_.clear();
  long_active_ = binary_active_ = 0;
  auto reach = [&](Var v) {
    if (var_stamp_[v] == stamp_) return;
    var_stamp_[v] = stamp_;
    label_[v] = label;
    queue_.push_back(v);
  };
  reach(start);
  for (size_t head = 0; head < queue_.size(); ++head) {
    const Var v = queue_[head];
    uint32_t active = 0;
    for (uint32_t i = binary_start_[v]; i < binary_start_[v + 1]; ++i) {
      if (solver.value(binary_other_[i]) != 0) continue;
      ++active;
      last_binary_ = i;
      reach(var_of(binary_other_[i]));
    }
    binary_active_ += active;
    for (uint32_t i = long_start_[v]; i < long_start_[v + 1]; ++i) {
      const uint32_t c = long_clauses_[i];
      if (clause_stamp_[c] >= 2 * stamp_) {
        active += static_cast<uint32_t>(clause_stamp_[c] & 1);
        continue;
      }
      const Lit* lits = clause_lits_.data() + clause_start_[c];
      const uint32_t size = clause_start_[c + 1] - clause_start_[c];
      bool satisfied = false, lost = false;
      for (uint32_t k = 0; k < size && !satisfied; ++k) {
        satisfied = solver.value(lits[k]) > 0;
        lost = lost || solver.value(lits[k]) < 0;
      }
      clause_stamp_[c] = 2 * stamp_ + (satisfied ? 0 : 1);
      if (satisfied) continue;
      ++active;
      ++long_active_;
      last_long_ = c;
      if (lost) partial_.push_back(c);
      for (uint32_t k = 0; k < size; ++k) {
        if (solver.value(lits[k]) == 0) reach(var_of(lits[k]));
      }
    }
    frequency[v] = active;
  }
  const uint32_t partial_end = static_cast<uint32_t>(partial_.size());
  groups_.push_back(Group{static_cast<uint32_t>(queue_.size()), partial_begin, partial_end, 0});
}

// Collects the open literals of the group's only clause, sorted, so that equal remainders give equal circuits.
void Analyzer::only_clause(const Solver& solver) {
  clause_.clear();
  if (long_active_ == 0) {
    clause_ = {binary_own_[last_binary_], binary_other_[last_binary_]};
  } else {
    for (uint32_t k = clause_start_[last_long_]; k < clause_start_[last_long_ + 1]; ++k) {
      if (solver.value(clause_lits_[k]) == 0) clause_.push_back(clause_lits_[k]);
    }
  }
  std::sort(clause_.begin(), clause_.end());
}

// Distributes the variables in their given order: every component is then sorted without further work.
void Analyzer::push_components(const Solver& solver, uint32_t begin, uint32_t end) {
  uint32_t next = static_cast<uint32_t>(vars.size());
  for (Group& group : groups_) {
    if (group.size < 2) continue;
    group.next = next;
    next += group.size;
  }
  vars.resize(next);
  for (uint32_t i = begin; i < end; ++i) {
    const Var v = vars[i];
    if (solver.assigned(v)) continue;
    Group& group = groups_[label_[v]];
    if (group.size >= 2) vars[group.next++] = v;
  }
  for (uint32_t label = 0; label < groups_.size(); ++label) {
    const Group& group = groups_[label];
    if (group.size < 2) continue;
    Component component{};
    component.vars_begin = group.next - group.size;
    component.vars_end = group.next;
    pack(label, component);
    found.push_back(component);
  }
}

void Analyzer::pack(uint32_t label, Component& component) {
  const Group& group = groups_[label];
  component.key_begin = static_cast<uint32_t>(keys.size());
  pack_set(vars.data() + component.vars_begin, vars.data() + component.vars_end, keys);
  std::sort(partial_.begin() + group.partial_begin, partial_.begin() + group.partial_end);
  pack_set(partial_.data() + group.partial_begin, partial_.data() + group.partial_end, keys);
  component.key_end = static_cast<uint32_t>(keys.size());
  component.hash = Cache::hash(keys.data() + component.key_begin, component.key_end - component.key_begin);
}

}  // namespace semprola::ddnnf
