// A conflict-driven clause-learning solver that the exhaustive search steers level by level.
#pragma once

#include <climits>

#include "ddnnf_common.hpp"

namespace semprola::ddnnf {

// The caller opens decision levels with `decide`; `satisfy` finds a model of some of the variables above that level.
//
// A learned clause may already be unit at a level below the caller's. The caller's levels are never undone for that:
// the literal is assigned at the caller's level, and assigned again after each `backtrack` as long as its clause stays
// unit. Every learned clause is entailed by the formula, whatever the caller has decided.
class Solver {
 public:
  static constexpr uint32_t kNoClause = UINT32_MAX;

  Solver(Var num_vars, Guard& guard);

  // Clauses of two or more open literals, and units, are added at level 0 and propagated by the next `propagate`.
  // add_unit returns false if the literal is already false.
  uint32_t add_clause(const Clause& lits, bool redundant);
  bool add_unit(Lit l);
  // Removes a clause added by `add_clause`; only allowed before anything is learned.
  void detach(uint32_t clause);

  int8_t value(Lit l) const { return value_[l]; }
  bool assigned(Var v) const { return value_[2 * v] != 0; }
  int level() const { return static_cast<int>(level_start_.size()); }
  const std::vector<Lit>& trail() const { return trail_; }
  double activity(Var v) const { return activity_[v] / bump_; }

  // Opens a level with `l` assigned true. Does not propagate.
  void decide(Lit l);
  // Unit propagation; returns a falsified clause or kNoClause. The clause `ignored` is treated as absent.
  uint32_t propagate(uint32_t ignored = kNoClause);
  void backtrack(int target);
  // Learns from `conflict`, backtracks no further than `target`, and asserts the learned literal there.
  void learn_and_backtrack(uint32_t conflict, int target);
  // Searches for a model of the given variables above the current level. True: their values are in `phase`, and
  // the solver is back at the level of the call. False: `conflict` holds a clause falsified at that level.
  bool satisfy(const Var* begin, const Var* end, uint32_t& conflict);

  int64_t bytes() const;
  int64_t conflicts() const { return conflicts_; }

  std::vector<uint8_t> phase;  // per variable, 1 = true: the caller's current model

 private:
  struct Watch {
    uint32_t clause;  // the top bit marks a binary clause, of which `blocker` is the whole rest
    Lit blocker;
  };
  static constexpr uint32_t kBinary = 1U << 31;
  static constexpr int kHeader = 2;  // size; glue (0 for irredundant clauses)
  static constexpr int kNever = INT_MAX;

  void enqueue(Lit l, uint32_t reason, int real_level = kNever);
  uint32_t store(const Clause& lits, uint32_t glue);
  void attach(uint32_t clause);
  int analyze(uint32_t conflict, Clause& learned, uint32_t& glue);
  bool implied_by_seen(Lit l) const;
  int highest_level(uint32_t clause) const;
  void bump(Var v);
  Lit next_decision(const Var*& cursor, const Var* end) const;
  void reduce_learned();

  Guard& guard_;
  std::vector<uint32_t> arena_;
  std::vector<std::vector<Watch>> watches_;  // watches_[l]: clauses to visit when l becomes false
  std::vector<int8_t> value_;                // per literal: 1 true, -1 false, 0 open
  std::vector<int> var_level_;
  std::vector<int> real_level_;  // the level at which an asserted literal already holds; kNever for ordinary ones
  std::vector<uint8_t> fixed_;   // true in every model
  std::vector<uint32_t> reason_;
  std::vector<Lit> trail_;
  std::vector<size_t> level_start_;
  size_t head_ = 0;
  std::vector<double> activity_;
  double bump_ = 1.0;
  std::vector<uint8_t> seen_;
  std::vector<Var> seen_list_;
  std::vector<uint64_t> level_stamp_;
  uint64_t level_stamp_now_ = 0;
  std::vector<uint32_t> learned_;
  size_t learned_limit_ = 4000;
  std::vector<uint8_t> saved_;        // phases inside one `satisfy` call,
  std::vector<uint64_t> saved_call_;  // valid when stamped with the call's number
  uint64_t call_ = 0;
  bool saving_ = false;
  std::vector<Var> by_activity_;
  std::vector<std::pair<Lit, uint32_t>> requeue_;
  Clause scratch_;
  int64_t conflicts_ = 0;
};

}  // namespace semprola::ddnnf
