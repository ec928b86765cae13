#include "ddnnf_search.hpp"

#include <algorithm>
#include <cmath>

namespace semprola::ddnnf {

namespace {

constexpr size_t kMaxGraphEdges = 10'000'000;
constexpr double kMaxTriangles = 2e8;
// Effort in slices of work, each well below a millisecond: for the first order, and later after this many search steps.
constexpr int64_t kFirstOrderSlices = 6000;
constexpr int64_t kImproveAfter[] = {20'000, 300'000};
constexpr int64_t kImproveSlices[] = {200, 2000};
// Formulas of small width with more variables are split at balanced points: sweeping a chain takes quadratic time.
constexpr size_t kLongChain = 4000;
constexpr int64_t kDefaultCacheBytes = int64_t{1} << 31;

// The work allowed for the first order, given the timeout of the compilation: a power of two, so that the same timeout
// gives the same order even if a few milliseconds of it have been spent.
int64_t first_slices(double seconds) {
  if (seconds < 0 || seconds * 200 >= static_cast<double>(kFirstOrderSlices)) return kFirstOrderSlices;
  // 210, not 200: a round number of seconds is well above its power of two
  return static_cast<int64_t>(std::exp2(std::floor(std::log2(std::max(seconds * 210, 1.0)))));
}

}  // namespace

Search::Search(Var num_vars, const Simplified& formula, const std::vector<uint8_t>& hidden, bool determined,
               Guard& guard)
    : guard_(guard), hidden_(hidden), determined_(determined), trace_(std::make_unique<Trace>(num_vars, guard)) {
  for (Lit l : formula.units) {
    if (!hidden_[var_of(l)]) unit_nodes_.push_back(trace_->literal(l));
  }
  build(num_vars, formula);
  guard_.set_relief([this](int64_t missing) { return forget(missing); });
}

Search::~Search() { guard_.set_relief(nullptr); }

std::unique_ptr<Trace> Search::run() {
  guard_.shared().phase = kSearch;
  start();
  while (frames_.size() > 1 || analyzer_->found.size() > frames_[0].found_begin) {
    if (analyzer_->found.size() > frames_.back().found_begin) {
      const Component next = analyzer_->found.back();
      analyzer_->found.pop_back();
      open(next);
    } else {
      close_branch();
    }
    if ((++steps_ & 255) == 0) {
      account();
      if (maybe_restart()) start();
    }
    guard_.tick();
  }
  const Trace::Node root = trace_->product(factors_, 0);
  account();
  cache_.clear();
  solver_.reset();
  analyzer_.reset();
  trace_->finish(root);
  return std::move(trace_);
}

// Renumbers the remaining variables by first occurrence and builds the solver, the analyzer and the first order.
void Search::build(Var num_vars, const Simplified& formula) {
  guard_.shared().phase = kOrder;
  std::vector<uint32_t> number(num_vars, UINT32_MAX);
  auto rename = [&](const std::vector<Clause>& clauses, bool grow) {
    std::vector<Clause> renamed;
    for (const Clause& c : clauses) {
      Clause d;
      for (Lit l : c) {
        uint32_t& v = number[var_of(l)];
        if (v == UINT32_MAX && grow) {
          v = static_cast<uint32_t>(input_var_.size());
          input_var_.push_back(var_of(l));
        }
        if (v != UINT32_MAX) d.push_back(make_lit(v, is_negative(l)));
      }
      if (d.size() == c.size()) renamed.push_back(std::move(d));
    }
    return renamed;
  };
  std::vector<Clause> clauses = rename(formula.clauses, true);
  const Var n = static_cast<Var>(input_var_.size());
  std::vector<std::vector<Var>> sets;
  for (const Clause& c : clauses) {
    sets.emplace_back();
    for (Lit l : c) sets.back().push_back(var_of(l));
  }
  try {
    graph_ = clique_graph(n, sets, kMaxGraphEdges);
  } catch (const Abort&) {
    graph_.clear();  // too dense for a decomposition to help: branch by frequency and activity
  }
  order_score_.assign(n, 0.0);
  improve_order(first_slices(guard_.seconds()));
  solver_ = std::make_unique<Solver>(n, guard_);
  for (const Clause& c : clauses) solver_->add_clause(c, false);
  for (const Clause& c : rename(formula.redundant, false)) solver_->add_clause(c, true);
  analyzer_ = std::make_unique<Analyzer>(n, clauses);
  for (Var v = 0; v < n; ++v) model_.push_back(formula.model[input_var_[v]]);
}

// Opens the outermost frame: a product of the fixed literals and of the components of the whole formula.
void Search::start() {
  solver_->backtrack(0);
  solver_->phase = model_;
  propagate_safely();
  frames_.clear();
  models_.clear();
  factors_ = unit_nodes_;
  analyzer_->vars.resize(input_var_.size());
  analyzer_->keys.clear();
  analyzer_->found.clear();
  for (Var v = 0; v < input_var_.size(); ++v) analyzer_->vars[v] = v;
  Frame frame{};
  frame.component.vars_end = static_cast<uint32_t>(input_var_.size());
  frame.stage = Stage::kNoDecision;
  frames_.push_back(frame);
  split(frame.component);
}

// Solves a component that is not in the cache: decides on a variable, or first removes literals that have turned out
// to be implied since the component was split off.
void Search::open(const Component& component) {
  const auto begin = analyzer_->vars.begin() + component.vars_begin, end = analyzer_->vars.begin() + component.vars_end;
  const bool all_hidden = std::all_of(begin, end, [&](Var v) { return hidden_[input_var_[v]] != 0; });
  if (all_hidden && !determined_) {
    // It is satisfiable; nothing else matters.
    analyzer_->vars.resize(component.vars_begin);
    analyzer_->keys.resize(component.key_begin);
    return;
  }
  Frame frame{};
  frame.component = component;
  frame.level = solver_->level();
  frame.factors_begin = static_cast<uint32_t>(factors_.size());
  frame.found_begin = static_cast<uint32_t>(analyzer_->found.size());
  frame.model_begin = static_cast<uint32_t>(models_.size());
  for (uint32_t i = component.vars_begin; i < component.vars_end; ++i) {
    models_.push_back(solver_->phase[analyzer_->vars[i]]);
  }
  for (;;) {
    bool untouched = true;
    for (uint32_t i = component.vars_begin; i < component.vars_end && untouched; ++i) {
      untouched = !solver_->assigned(analyzer_->vars[i]);
    }
    if (!untouched) {
      frame.stage = Stage::kNoDecision;
      frames_.push_back(frame);
      split(component);
      return;
    }
    if (try_decision(component, frame)) {
      if (all_hidden) throw Abort{kNotDetermined};
      frames_.push_back(frame);
      return;
    }
  }
}

// Shows that the component has a model in which the chosen variable differs from the current model, and stays in that
// branch. If there is none, returns false with a new literal assigned at the outer level.
bool Search::try_decision(const Component& component, Frame& frame) {
  const Var v = pick(component);
  frame.decision = make_lit(v, solver_->phase[v] != 0);
  frame.stage = Stage::kFirst;
  solver_->decide(frame.decision);
  uint32_t conflict = solver_->propagate();
  if (conflict == Solver::kNoClause) {
    split(component);
    if (satisfy_found(frame.found_begin, conflict)) return true;
  }
  analyzer_->found.resize(frame.found_begin);
  analyzer_->vars.resize(component.vars_end);
  analyzer_->keys.resize(component.key_end);
  factors_.resize(frame.factors_begin);
  for (uint32_t i = component.vars_begin; i < component.vars_end; ++i) {
    solver_->phase[analyzer_->vars[i]] = models_[frame.model_begin + i - component.vars_begin];
  }
  solver_->learn_and_backtrack(conflict, frame.level);
  propagate_safely();
  return false;
}

// Called when a branch has all its factors. After the first branch the second starts; after the second, or if there was
// no decision, the component is done.
void Search::close_branch() {
  Frame& frame = frames_.back();
  const Trace::Node node = trace_->product(factors_, frame.factors_begin);
  factors_.resize(frame.factors_begin);
  if (frame.stage == Stage::kNoDecision) {
    finish_component(node);
    return;
  }
  solver_->backtrack(frame.level);
  propagate_safely();
  if (frame.stage == Stage::kSecond) {
    finish_component(trace_->sum(input_var_[var_of(frame.decision)], frame.first_node, node));
    return;
  }
  const Component& component = frame.component;
  for (uint32_t i = component.vars_begin; i < component.vars_end; ++i) {
    solver_->phase[analyzer_->vars[i]] = models_[frame.model_begin + i - component.vars_begin];
  }
  frame.first_node = node;
  frame.stage = Stage::kSecond;
  analyzer_->vars.resize(component.vars_end);
  analyzer_->keys.resize(component.key_end);
  if (solver_->value(frame.decision) != 0) throw Abort{kInternalError};
  solver_->decide(negate(frame.decision));
  propagate_safely();
  split(component);
}

void Search::finish_component(Trace::Node node) {
  const Frame& frame = frames_.back();
  const Component& component = frame.component;
  const uint8_t* key = analyzer_->keys.data() + component.key_begin;
  cache_.insert(key, component.key_end - component.key_begin, component.hash, node);
  models_.resize(frame.model_begin);
  analyzer_->vars.resize(component.vars_begin);
  analyzer_->keys.resize(component.key_begin);
  frames_.pop_back();
  factors_.push_back(node);
}

// Assigned literals of the component and cached components become factors; the other components remain to be solved.
void Search::split(const Component& component) {
  make_room(component.vars_end - component.vars_begin);
  const uint32_t from = static_cast<uint32_t>(analyzer_->found.size());
  auto on_literal = [&](Lit l) {
    const Var v = input_var_[var_of(l)];
    if (!hidden_[v]) factors_.push_back(trace_->literal(make_lit(v, is_negative(l))));
  };
  auto on_free = [&](Var v) {
    if (determined_ && hidden_[input_var_[v]]) throw Abort{kNotDetermined};
  };
  auto on_clause = [&](const Clause& clause) { push_clause(clause); };
  analyzer_->split(*solver_, component.vars_begin, component.vars_end, on_literal, on_free, on_clause);
  auto& found = analyzer_->found;
  found.erase(std::remove_if(found.begin() + from, found.end(), [&](const Component& c) { return take_cached(c); }),
              found.end());
}

// A single clause needs no search: it becomes a chain of decisions, one per literal, on its first true literal.
void Search::push_clause(const Clause& clause) {
  const bool touches_hidden =
      std::any_of(clause.begin(), clause.end(), [&](Lit l) { return hidden_[input_var_[var_of(l)]] != 0; });
  if (touches_hidden) {
    // The hidden variable can always satisfy the clause, but need not if another literal is true.
    if (determined_) throw Abort{kNotDetermined};
    return;
  }
  const size_t from = factors_.size();
  Trace::Node rest = 0;
  for (size_t i = clause.size(); i-- > 0;) {
    const Var v = input_var_[var_of(clause[i])];
    const Trace::Node yes = trace_->literal(make_lit(v, is_negative(clause[i])));
    if (i + 1 == clause.size()) {
      rest = yes;
      continue;
    }
    factors_.push_back(trace_->literal(make_lit(v, !is_negative(clause[i]))));
    factors_.push_back(rest);
    const Trace::Node no = trace_->product(factors_, from);
    factors_.resize(from);
    rest = trace_->sum(v, yes, no);
  }
  factors_.push_back(rest);
}

// A deep search over large components holds many variable lists; their growth also counts against the memory budget.
void Search::make_room(size_t variables) {
  auto& vars = analyzer_->vars;
  if (vars.size() + variables >= UINT32_MAX || analyzer_->keys.size() + 8 * variables >= UINT32_MAX) {
    throw Abort{kOutOfMemory};
  }
  if (vars.size() + variables <= vars.capacity()) return;
  const size_t capacity = vars.capacity() + vars.capacity() / 4 + variables;
  guard_.check_bytes(guard_.shared().bytes + static_cast<int64_t>(capacity * sizeof(Var)));
  vars.reserve(capacity);
  account();
}

bool Search::take_cached(const Component& component) {
  const uint8_t* key = analyzer_->keys.data() + component.key_begin;
  const uint32_t node = cache_.find(key, component.key_end - component.key_begin, component.hash);
  if (node == Cache::kMissing) return false;
  factors_.push_back(node);
  return true;
}

bool Search::satisfy_found(uint32_t from, uint32_t& conflict) {
  for (uint32_t i = from; i < analyzer_->found.size(); ++i) {
    const Component& c = analyzer_->found[i];
    const Var* vars = analyzer_->vars.data();
    if (!solver_->satisfy(vars + c.vars_begin, vars + c.vars_end, conflict)) return false;
  }
  // Clauses learned by the last calls may be unit here.
  conflict = solver_->propagate();
  return conflict == Solver::kNoClause;
}

Var Search::pick(const Component& component) const {
  Var best = analyzer_->vars[component.vars_begin];
  double best_score = -1e300;
  for (uint32_t i = component.vars_begin; i < component.vars_end; ++i) {
    const Var v = analyzer_->vars[i];
    if (!determined_ && hidden_[input_var_[v]]) continue;
    const double score = order_score_[v] + analyzer_->frequency[v] + solver_->activity(v);
    if (score > best_score) {
      best_score = score;
      best = v;
    }
  }
  return best;
}

// Propagation where the formula is known to be satisfiable.
void Search::propagate_safely() {
  if (solver_->propagate() != Solver::kNoClause) throw Abort{kInternalError};
}

// Looks for a better elimination order and scores the variables by it: variables near the centroid of the decomposition
// come early, and the scores weigh more if the decomposition is narrow. Effort is counted in slices of work, not in
// seconds, so the same input always gives the same circuit.
void Search::improve_order(int64_t slices) {
  if (graph_.empty()) return;
  const size_t n = graph_.size();
  Elimination best;
  auto attempt = [&](Greedy method) {
    --slices;
    Elimination next = eliminate(graph_, method, order_seed_, width_, [&] {
      guard_.check_clock();
      return --slices < 0;
    });
    if (next.order.empty()) return;
    // Among orders of equal width, those by fill are better guides, even if their bags are larger on the whole.
    if (next.width == width_ && (method == Greedy::kMinDegree || next.cost >= cost_)) return;
    width_ = next.width;
    cost_ = next.cost;
    best = std::move(next);
  };
  if (order_seed_ == 0) {
    double triangles = 0;  // the work of counting fill edges
    for (const std::vector<Var>& list : graph_) triangles += static_cast<double>(list.size() * list.size());
    if (triangles < kMaxTriangles) attempt(Greedy::kMinFill);
    attempt(Greedy::kMinDegree);
    order_seed_ = 1;
  } else {
    for (; slices > 0 && width_ > 1; ++order_seed_) {
      attempt(order_seed_ % 4 == 0 ? Greedy::kMinDegree : Greedy::kMinFill);
    }
  }
  if (best.order.empty()) return;
  guard_.shared().width = width_;
  const std::vector<uint32_t> depth = branching_depth(best, n > kLongChain && width_ <= 8);
  const double deepest = *std::max_element(depth.begin(), depth.end()) + 1.0;
  const double ratio = static_cast<double>(n) / (width_ + 1.0);
  const double weight = std::min(1e8, 1000.0 * std::exp(std::min(ratio, 40.0)) / static_cast<double>(n));
  for (Var v = 0; v < n; ++v) order_score_[v] = weight * (1.0 - depth[v] / deepest);
}

// A better order pays off in a hard search. The cache and the learned clauses survive the restart.
bool Search::maybe_restart() {
  if (improvements_ == 2 || steps_ < kImproveAfter[improvements_]) return false;
  const int64_t slices = kImproveSlices[improvements_++];
  // In a graph that is nearly one clique, no order is better than another.
  if (graph_.empty() || 2 * static_cast<size_t>(width_) > graph_.size()) return false;
  const double before = cost_;
  improve_order(slices);
  if (improvements_ == 2) Graph().swap(graph_);  // not needed any more
  return cost_ < before / 2;
}

// Called when memory has run out: forgets components, which are searched again if needed. Does nothing if there is no
// room for a cache at all, because a search without one may take forever.
int64_t Search::forget(int64_t missing) {
  const int64_t before = cache_.bytes();
  if (missing > before || trace_->other_bytes - before + trace_->bytes() > guard_.max_bytes() / 16 * 15) return 0;
  // Free more than what is missing, so that it does not happen again at once.
  cache_.shrink(std::min(before - missing, before / 2));
  const int64_t freed = before - cache_.bytes();
  trace_->other_bytes -= freed;
  guard_.shared().bytes = guard_.shared().bytes - freed;
  return freed;
}

void Search::account() {
  Shared& shared = guard_.shared();
  const int64_t solver = solver_->bytes() + analyzer_->bytes() +
                         static_cast<int64_t>(models_.capacity() + factors_.capacity() * sizeof(Trace::Node) +
                                              frames_.capacity() * sizeof(Frame));
  const int64_t limit = guard_.max_bytes() >= 0 ? guard_.max_bytes() : 4 * kDefaultCacheBytes;
  // The cache may have all the remaining memory: `forget` makes room when the circuit needs it.
  cache_.set_limit(std::max(limit / 16, std::min(kDefaultCacheBytes, limit - solver - trace_->bytes())));
  trace_->other_bytes = solver + cache_.bytes();
  guard_.check_bytes(trace_->other_bytes + trace_->bytes());
  shared.nodes = trace_->num_nodes();
  shared.edges = trace_->num_edges();
  shared.decisions = steps_;
  shared.conflicts = solver_->conflicts();
  shared.cache_entries = cache_.entries();
  shared.cache_hits = cache_.hits();
  shared.bytes = trace_->other_bytes + trace_->bytes();
}

}  // namespace semprola::ddnnf
