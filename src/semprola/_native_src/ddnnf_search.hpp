// Exhaustive search over a simplified formula, emitting a decision-DNNF.
#pragma once

#include <memory>

#include "ddnnf_cache.hpp"
#include "ddnnf_component.hpp"
#include "ddnnf_order.hpp"
#include "ddnnf_simplify.hpp"
#include "ddnnf_trace.hpp"

namespace semprola::ddnnf {

// Correctness rests on one invariant: whenever a component is opened, the formula under the current assignment is
// satisfiable, and `solver_.phase` restricted to the open components is a model of them. So
//   - a literal that a learned clause implies inside a component is entailed by that component alone (its siblings are
//     satisfiable), and cached results never depend on a sibling that later turns out to be unsatisfiable;
//   - both sides of every decision have models: the circuit needs no false node, and no part is searched in vain.
// To keep it, the search first tries the value that differs from the model: a decision is made only after that side has
// been shown to be satisfiable; if it is not, the conflict clause asserts a literal, and the component is tried again.
class Search {
 public:
  // `hidden` marks input variables that must not appear in the circuit. If they are `determined` by the others, the
  // search branches on them like on any variable and leaves out their literals; it throws kNotDetermined if that turns
  // out to be false. Otherwise they are quantified: the search never branches on them but only satisfies them.
  Search(Var num_vars, const Simplified& formula, const std::vector<uint8_t>& hidden, bool determined, Guard& guard);

  ~Search();
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  // Runs to the end; the root is the last node of the trace.
  std::unique_ptr<Trace> run();

 private:
  enum class Stage : uint8_t { kNoDecision, kFirst, kSecond };
  struct Frame {
    Component component;
    Stage stage;
    Lit decision;            // the literal of the first branch
    int level;               // the solver's level outside the decision
    Trace::Node first_node;  // result of the first branch
    uint32_t factors_begin;  // factors of the branch's product, on a stack
    uint32_t found_begin;    // components still to do, on the analyzer's stack
    uint32_t model_begin;    // the component's model for the second branch, on a stack
  };

  void build(Var num_vars, const Simplified& formula);
  void start();
  void open(const Component& component);
  bool try_decision(const Component& component, Frame& frame);
  void close_branch();
  void finish_component(Trace::Node node);
  void split(const Component& component);
  void push_clause(const Clause& clause);
  void make_room(size_t variables);
  bool take_cached(const Component& component);
  bool satisfy_found(uint32_t from, uint32_t& conflict);
  Var pick(const Component& component) const;
  void propagate_safely();
  void improve_order(int64_t slices);
  bool maybe_restart();
  int64_t forget(int64_t missing);
  void account();

  Guard& guard_;
  const std::vector<uint8_t>& hidden_;
  bool determined_;
  std::vector<Var> input_var_;  // the input variable of each variable of the search
  std::unique_ptr<Trace> trace_;
  std::unique_ptr<Solver> solver_;
  std::unique_ptr<Analyzer> analyzer_;
  Cache cache_;
  std::vector<Trace::Node> unit_nodes_;
  std::vector<uint8_t> model_;  // of the whole formula

  std::vector<Frame> frames_;
  std::vector<Trace::Node> factors_;
  std::vector<uint8_t> models_;

  Graph graph_;
  uint32_t width_ = UINT32_MAX;
  double cost_ = 1e308;
  std::vector<double> order_score_;
  uint64_t order_seed_ = 0;
  int improvements_ = 0;
  int64_t steps_ = 0;
};

}  // namespace semprola::ddnnf
