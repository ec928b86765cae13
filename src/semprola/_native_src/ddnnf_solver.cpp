#include "ddnnf_solver.hpp"

#include <algorithm>

namespace semprola::ddnnf {

namespace {

// The Luby sequence 1 1 2 1 1 2 4 ...; restart intervals are multiples of it.
int64_t luby(int64_t i) {
  int64_t size = 1, exponent = 0;
  while (size < i + 1) {
    size = 2 * size + 1;
    ++exponent;
  }
  while (size - 1 != i) {
    size = (size - 1) / 2;
    --exponent;
    i %= size;
  }
  return int64_t{1} << exponent;
}

}  // namespace

Solver::Solver(Var num_vars, Guard& guard)
    : phase(num_vars, 0),
      guard_(guard),
      watches_(2 * static_cast<size_t>(num_vars)),
      value_(2 * static_cast<size_t>(num_vars), 0),
      var_level_(num_vars, 0),
      real_level_(num_vars, kNever),
      fixed_(num_vars, 0),
      reason_(num_vars, kNoClause),
      activity_(num_vars, 0.0),
      seen_(num_vars, 0),
      level_stamp_(static_cast<size_t>(num_vars) + 1, 0),
      saved_(num_vars, 0),
      saved_call_(num_vars, 0) {}

bool Solver::add_unit(Lit l) {
  if (value_[l] < 0) return false;
  if (value_[l] == 0) enqueue(l, kNoClause);
  fixed_[var_of(l)] = 1;
  return true;
}

uint32_t Solver::add_clause(const Clause& lits, bool redundant) {
  const uint32_t clause = store(lits, redundant ? static_cast<uint32_t>(lits.size()) : 0);
  attach(clause);
  if (redundant) learned_.push_back(clause);
  return clause;
}

void Solver::detach(uint32_t clause) {
  for (uint32_t i = 0; i < 2; ++i) {
    std::vector<Watch>& list = watches_[arena_[clause + kHeader + i]];
    list.erase(std::find_if(list.begin(), list.end(), [&](const Watch& w) { return (w.clause & ~kBinary) == clause; }));
  }
}

void Solver::decide(Lit l) {
  level_start_.push_back(trail_.size());
  enqueue(l, kNoClause);
}

uint32_t Solver::propagate(uint32_t ignored) {
  while (head_ < trail_.size()) {
    const Lit falsified = negate(trail_[head_++]);
    std::vector<Watch>& list = watches_[falsified];
    Watch* keep = list.data();
    Watch* const end = keep + list.size();
    for (Watch* w = keep; w != end; ++w) {
      const Watch watch = *w;
      const int8_t blocker = value_[watch.blocker];
      if (blocker > 0) {
        *keep++ = watch;
        continue;
      }
      const uint32_t clause = watch.clause & ~kBinary;
      if (clause == ignored) {
        *keep++ = watch;
        continue;
      }
      if ((watch.clause & kBinary) != 0) {
        *keep++ = watch;
        if (blocker < 0) {
          while (++w != end) *keep++ = *w;
          list.resize(static_cast<size_t>(keep - list.data()));
          head_ = trail_.size();
          return clause;
        }
        enqueue(watch.blocker, clause);
        continue;
      }
      uint32_t* lits = &arena_[clause + kHeader];
      const uint32_t size = arena_[clause];
      if (lits[0] == falsified) std::swap(lits[0], lits[1]);
      const Lit first = lits[0];
      if (first != watch.blocker && value_[first] > 0) {
        *keep++ = Watch{clause, first};
        continue;
      }
      bool moved = false;
      for (uint32_t i = 2; i < size; ++i) {
        if (value_[lits[i]] >= 0) {
          std::swap(lits[1], lits[i]);
          watches_[lits[1]].push_back(Watch{clause, first});
          moved = true;
          break;
        }
      }
      if (moved) continue;
      *keep++ = Watch{clause, first};
      if (value_[first] < 0) {
        while (++w != end) *keep++ = *w;
        list.resize(static_cast<size_t>(keep - list.data()));
        head_ = trail_.size();
        return clause;
      }
      enqueue(first, clause);
    }
    list.resize(static_cast<size_t>(keep - list.data()));
  }
  return kNoClause;
}

void Solver::backtrack(int target) {
  if (level() <= target) return;
  requeue_.clear();
  const size_t start = level_start_[static_cast<size_t>(target)];
  while (trail_.size() > start) {
    const Lit l = trail_.back();
    const Var v = var_of(l);
    trail_.pop_back();
    value_[l] = value_[negate(l)] = 0;
    if (saving_) {
      saved_[v] = is_negative(l) ? 0 : 1;
      saved_call_[v] = call_;
    }
    if (fixed_[v] || real_level_[v] <= target) requeue_.emplace_back(l, reason_[v]);
  }
  level_start_.resize(static_cast<size_t>(target));
  head_ = trail_.size();
  for (auto it = requeue_.rbegin(); it != requeue_.rend(); ++it) {
    if (value_[it->first] == 0) enqueue(it->first, it->second, real_level_[var_of(it->first)]);
  }
}

void Solver::learn_and_backtrack(uint32_t conflict, int target) {
  ++conflicts_;
  // A conflict that was noticed late has no literal of the current level: analysis must start at a level where it has.
  backtrack(std::max(highest_level(conflict), target));
  Clause& learned = scratch_;
  uint32_t glue = 0;
  const int real = analyze(conflict, learned, glue);
  backtrack(std::max(real, target));
  bump_ *= 1.0 / 0.95;
  if (learned.size() == 1) {
    fixed_[var_of(learned[0])] = 1;
    if (value_[learned[0]] < 0) throw Abort{kInternalError};
    if (value_[learned[0]] == 0) enqueue(learned[0], kNoClause, 0);
    return;
  }
  const uint32_t clause = store(learned, std::max(glue, 1U));
  attach(clause);
  learned_.push_back(clause);
  if (value_[learned[0]] < 0) throw Abort{kInternalError};
  if (value_[learned[0]] == 0) enqueue(learned[0], clause, real);
  if (learned_.size() > learned_limit_) reduce_learned();
}

bool Solver::satisfy(const Var* begin, const Var* end, uint32_t& conflict) {
  const int base = level();
  ++call_;
  const Var* cursor = begin;
  const Var* last = end;
  int64_t restarts = 0, until_restart = 0;
  for (;;) {
    conflict = propagate();
    if (conflict != kNoClause) {
      guard_.tick();
      if (level() == base || highest_level(conflict) <= base) {
        backtrack(base);
        saving_ = false;
        return false;
      }
      saving_ = true;
      learn_and_backtrack(conflict, base);
      if (--until_restart <= 0) {
        backtrack(base);
        until_restart = 100 * luby(restarts++);
        by_activity_.assign(begin, end);
        std::sort(by_activity_.begin(), by_activity_.end(),
                  [&](Var a, Var b) { return activity_[a] > activity_[b] || (activity_[a] == activity_[b] && a < b); });
      }
      cursor = by_activity_.data();
      last = cursor + by_activity_.size();
      continue;
    }
    const Lit next = next_decision(cursor, last);
    if (next == UINT32_MAX) break;
    decide(next);
  }
  for (const Var* v = begin; v != end; ++v) phase[*v] = value_[2 * *v] > 0 ? 1 : 0;
  saving_ = false;
  backtrack(base);
  return true;
}

int64_t Solver::bytes() const {
  size_t total = arena_.capacity() * sizeof(uint32_t) + learned_.capacity() * sizeof(uint32_t);
  total += value_.size() * 48;
  // Two watches per clause; estimated from the arena because walking all lists is too slow for a check.
  total += arena_.size() * 3;
  return static_cast<int64_t>(total);
}

void Solver::enqueue(Lit l, uint32_t reason, int real_level) {
  value_[l] = 1;
  value_[negate(l)] = -1;
  const Var v = var_of(l);
  var_level_[v] = level();
  real_level_[v] = real_level;
  reason_[v] = reason;
  trail_.push_back(l);
}

uint32_t Solver::store(const Clause& lits, uint32_t glue) {
  if (arena_.size() + lits.size() + kHeader >= kBinary) throw Abort{kOutOfMemory};
  const uint32_t clause = static_cast<uint32_t>(arena_.size());
  arena_.push_back(static_cast<uint32_t>(lits.size()));
  arena_.push_back(glue);
  arena_.insert(arena_.end(), lits.begin(), lits.end());
  return clause;
}

void Solver::attach(uint32_t clause) {
  const uint32_t* lits = &arena_[clause + kHeader];
  const uint32_t tag = arena_[clause] == 2 ? clause | kBinary : clause;
  watches_[lits[0]].push_back(Watch{tag, lits[1]});
  watches_[lits[1]].push_back(Watch{tag, lits[0]});
}

// First unique implication point. Returns the level at which the learned clause becomes unit; its asserted literal is
// learned[0], and learned[1] is a literal of that level. Literals that are fixed in every model are left out.
int Solver::analyze(uint32_t conflict, Clause& learned, uint32_t& glue) {
  learned.assign(1, 0);
  const int current = level();
  int open = 0;
  size_t position = trail_.size();
  uint32_t clause = conflict;
  for (;;) {
    if (clause == kNoClause) throw Abort{kInternalError};
    const uint32_t* lits = &arena_[clause + kHeader];
    for (uint32_t i = 0; i < arena_[clause]; ++i) {
      const Var v = var_of(lits[i]);
      if (value_[lits[i]] > 0 || seen_[v] || fixed_[v] || var_level_[v] == 0) continue;
      seen_[v] = 1;
      seen_list_.push_back(v);
      bump(v);
      if (var_level_[v] == current) {
        ++open;
      } else {
        learned.push_back(lits[i]);
      }
    }
    if (open == 0) throw Abort{kInternalError};
    do --position;
    while (!seen_[var_of(trail_[position])] || var_level_[var_of(trail_[position])] != current);
    const Lit l = trail_[position];
    if (--open == 0) {
      learned[0] = negate(l);
      break;
    }
    clause = reason_[var_of(l)];
  }
  size_t kept = 1;
  for (size_t i = 1; i < learned.size(); ++i) {
    if (!implied_by_seen(learned[i])) learned[kept++] = learned[i];
  }
  learned.resize(kept);
  ++level_stamp_now_;
  glue = 1;
  int real = 0;
  for (size_t i = 1; i < learned.size(); ++i) {
    const int lv = var_level_[var_of(learned[i])];
    if (level_stamp_[static_cast<size_t>(lv)] != level_stamp_now_) {
      level_stamp_[static_cast<size_t>(lv)] = level_stamp_now_;
      ++glue;
    }
    if (lv > real) {
      real = lv;
      std::swap(learned[1], learned[i]);
    }
  }
  for (Var v : seen_list_) seen_[v] = 0;
  seen_list_.clear();
  return real;
}

// A literal of a learned clause is superfluous if the rest of its reason is already in the clause.
bool Solver::implied_by_seen(Lit l) const {
  const uint32_t clause = reason_[var_of(l)];
  if (clause == kNoClause) return false;
  const uint32_t* lits = &arena_[clause + kHeader];
  for (uint32_t i = 0; i < arena_[clause]; ++i) {
    const Var v = var_of(lits[i]);
    if (v != var_of(l) && !seen_[v] && !fixed_[v] && var_level_[v] != 0) return false;
  }
  return true;
}

int Solver::highest_level(uint32_t clause) const {
  int highest = 0;
  const uint32_t* lits = &arena_[clause + kHeader];
  for (uint32_t i = 0; i < arena_[clause]; ++i) {
    const Var v = var_of(lits[i]);
    if (!fixed_[v]) highest = std::max(highest, var_level_[v]);
  }
  return highest;
}

void Solver::bump(Var v) {
  activity_[v] += bump_;
  if (activity_[v] > 1e100) {
    for (double& a : activity_) a *= 1e-100;
    bump_ *= 1e-100;
  }
}

// Before the first conflict of a call the order does not matter and a scan is cheapest; then the most active come
// first.
Lit Solver::next_decision(const Var*& cursor, const Var* end) const {
  while (cursor != end && assigned(*cursor)) ++cursor;
  if (cursor == end) return UINT32_MAX;
  const uint8_t value = saved_call_[*cursor] == call_ ? saved_[*cursor] : phase[*cursor];
  return make_lit(*cursor, value == 0);
}

// Forgets the worse half of the learned clauses, first those with many levels, then long ones. Compacts the arena.
void Solver::reduce_learned() {
  auto locked = [&](uint32_t clause) {
    for (uint32_t i = 0; i < 2; ++i) {
      const Lit l = arena_[clause + kHeader + i];
      if (value_[l] > 0 && reason_[var_of(l)] == clause) return true;
    }
    return false;
  };
  std::sort(learned_.begin(), learned_.end(), [&](uint32_t a, uint32_t b) {
    if (arena_[a + 1] != arena_[b + 1]) return arena_[a + 1] < arena_[b + 1];
    if (arena_[a] != arena_[b]) return arena_[a] < arena_[b];
    return a > b;
  });
  std::vector<uint32_t> kept;
  const size_t half = learned_.size() / 2;
  constexpr uint32_t kDead = UINT32_MAX;
  for (size_t i = 0; i < learned_.size(); ++i) {
    const uint32_t clause = learned_[i];
    if (i < half || arena_[clause] == 2 || locked(clause)) {
      kept.push_back(clause);
    } else {
      arena_[clause + 1] = kDead;
    }
  }
  learned_ = std::move(kept);
  learned_limit_ = std::max(learned_limit_ + 200, learned_.size() * 3 / 2);

  std::vector<uint32_t> compact;
  compact.reserve(arena_.size());
  std::vector<std::pair<uint32_t, uint32_t>> moved;  // old position, new position; ascending
  for (size_t at = 0; at < arena_.size(); at += arena_[at] + kHeader) {
    if (arena_[at + 1] == kDead) continue;
    moved.emplace_back(static_cast<uint32_t>(at), static_cast<uint32_t>(compact.size()));
    compact.insert(compact.end(), arena_.begin() + static_cast<std::ptrdiff_t>(at),
                   arena_.begin() + static_cast<std::ptrdiff_t>(at + arena_[at] + kHeader));
  }
  auto relocate = [&](uint32_t old) -> uint32_t {
    auto it = std::lower_bound(moved.begin(), moved.end(), std::make_pair(old, 0U));
    return it != moved.end() && it->first == old ? it->second : kNoClause;
  };
  for (uint32_t& clause : learned_) clause = relocate(clause);
  for (Lit l : trail_) {
    uint32_t& reason = reason_[var_of(l)];
    if (reason != kNoClause) reason = relocate(reason);
  }
  arena_ = std::move(compact);
  for (auto& list : watches_) list.clear();
  for (size_t at = 0; at < arena_.size(); at += arena_[at] + kHeader) attach(static_cast<uint32_t>(at));
}

}  // namespace semprola::ddnnf
