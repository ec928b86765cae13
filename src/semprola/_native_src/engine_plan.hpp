// A plan of evaluation as the engine's kernels see it: sums in topological order, each a list of edges, each edge a
// list of factors (rows). Rows are the literals, then the sums. Everything is flat and 32 bits wide.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

// For functions in the innermost loops: compilers do not inline all of them, and a call costs more than the work.
#if defined(__GNUC__)
#define SEMPROLA_INLINE inline __attribute__((always_inline))
#else
#define SEMPROLA_INLINE inline
#endif

namespace semprola {

// A view: its arrays are owned by somebody else and outlive it.
struct Plan {
  int32_t num_leaves, num_sums, num_edges, num_weights, root_row, max_fan_in, num_used_leaves, num_slots, num_shares;
  const int32_t* edge_start;     // [sums + 1]
  const int32_t* first_weight;   // [sums]: the weight of a sum's first edge, the others follow; -1: none
  const int32_t* factor_start;   // [edges + 1]
  const int32_t* factors;        // rows
  const int32_t* sum_of_weight;  // [W]
  const int32_t* used_leaves;    // leaves that are a factor of some edge
  const int32_t* slot_of_sum;    // [sums]: where its value and the flow into it are kept while some pass needs them
  const int32_t* slot_factors;   // the factors, as slots; a leaf is its own slot
  const uint8_t* has_default;    // [variables]: a branch may leave it out, and then either value is possible
  bool decides;                  // any two edges of a sum have opposite literals: literals alone tell which one is used

  int64_t num_rows() const { return int64_t(num_leaves) + num_sums; }
  int32_t root_slot() const { return slot_of_sum[root_row - num_leaves]; }
  // Whether the shares of edges are kept from the upward to the downward pass, as they are if they fit into a cache.
  bool keeps_shares() const { return num_sums <= 4096; }
};

using Word = uint64_t;
constexpr int kWordBits = 64;

// For each row, in which of 64 columns it is possible, and in which it is reached from the root.
struct Bits {
  const Plan* c;
  Word *alive, *reach;

  // Columns in which all factors of an edge are possible.
  Word edge(int32_t e) const {
    Word all = ~Word(0);
    for (int32_t f = c->factor_start[e]; f < c->factor_start[e + 1]; ++f) all &= alive[c->factors[f]];
    return all;
  }
};

// A matrix of numbers [rows, columns] with any strides, counted in elements.
template <class T>
struct Matrix {
  T* data;
  int64_t row_stride;
  int64_t column_stride;

  T& at(int64_t row, int64_t column) const { return data[row * row_stride + column * column_stride]; }
};

// Upward and downward pass. Null pointers mean: no weights (all one), no flows wanted.
template <class T>
struct EvaluateJob {
  const Plan* plan;
  Matrix<const T> weights, leaves;
  int64_t columns;
  T* value;       // [columns]
  T* edge_flows;  // [W, columns], contiguous
  T* leaf_flows;  // [leaves, columns], contiguous
};

// How the flows of EvaluateJob change along a change of the weights and leaves.
template <class T>
struct TangentJob {
  const Plan* plan;
  Matrix<const T> weights, leaves, d_weights, d_leaves;  // all weights or none
  int64_t columns;
  T* edge_changes;  // [W, columns], contiguous; null without weights
  T* leaf_changes;  // [leaves, columns], contiguous
};

// What a branch says of a variable that it leaves out: there is no such branch, it is zero, or it may be either.
enum VariableKind : uint8_t { kMentioned = 0, kSuppressed = 1, kOpen = 2 };

// Independent labels times the constraint: log Z, or the log-likelihood of states.
template <class T>
struct IndependentJob {
  const Plan *plan,
      *referee;            // the circuit; and with all literals spelled out, to tell which states are in the support
  const uint8_t* kinds;    // [variables], see VariableKind
  Matrix<const T> odds;    // log-odds [variables, columns]
  Matrix<const T> states;  // 0/1 [variables, columns]; null for log Z
  int64_t columns;
  T* value;     // [columns]; of best states [columns, variables]
  T* gradient;  // [columns, variables], contiguous; or null
};

// Max-product and backtracking.
template <class T>
struct MaximizeJob {
  const Plan* plan;
  Matrix<const T> weights, leaves;
  const T* defaults;  // value of a variable that the best state leaves out [variables, columns], contiguous
  int64_t columns;
  T* value;     // [columns]
  T* states;    // [variables, columns], contiguous; or null
  T* literals;  // 0/1 for the literals that the best state uses [leaves, columns], contiguous; or null
};

// Exact samples; those of column c are sample_start[c] … sample_start[c + 1] - 1 of sample.
template <class T>
struct SampleJob {
  const Plan* plan;
  Matrix<const T> weights, leaves;
  const T* defaults;  // probability that a variable that is left out is one [variables, columns], contiguous
  int64_t columns;
  const int64_t *sample_start, *sample;
  int64_t samples;
  uint64_t seed;
  T* states;  // [variables, samples], contiguous
};

// How the logits of a plan are numbered: a sum with two edges, whose weights come first, has one logit.
struct LogitRows {
  int64_t pairs;  // sums with two edges

  // The row for a weight: one for each pair, then one for each other weight.
  int64_t row_of(int64_t w) const { return w < 2 * pairs ? w / 2 : w - pairs; }
  // Whether a weight is the first of a pair, whose logit is zero.
  bool is_zero(int64_t w) const { return w < 2 * pairs && w % 2 == 0; }
};

// The likelihood of states under the sums' local softmaxes. Either rows or codes say what the states are.
template <class T>
struct LikelihoodJob {
  const Plan* plan;
  Matrix<const T> logits;  // [W - pairs, components * batch]; see LogitRows
  Matrix<const T> rows;    // 0/1 of every variable [variables, samples * batch]
  const int32_t* codes;    // active weights of each state [samples * batch, width]: -1 for none, -2 for impossible
  int64_t width;
  int32_t labels;  // rows from here on are given: only edges that they leave possible share in a softmax
  int64_t pairs;   // see LogitRows
  int64_t samples, components, batch;
  T* value;            // [samples, components, batch], or null
  const T* cotangent;  // of the value, same shape; null for ones
  T* gradient;         // like the logits, contiguous, zeroed by the caller if samples > 1; or null

  int64_t row_of(int64_t w) const { return LogitRows{pairs}.row_of(w); }
  bool is_zero(int64_t w) const { return LogitRows{pairs}.is_zero(w); }
};

// The likelihood of encoded states whose logits are a linear map of features; only rows that are used are computed.
template <class T>
struct GateJob {
  const Plan* plan;
  Matrix<const T> matrix;    // [logits * components, width]: row r * components + c is logit r of component c
  const T* bias;             // [logits * components]
  Matrix<const T> features;  // [batch, width]
  int64_t width;
  const int32_t* codes;  // [batch, most], as for LikelihoodJob
  int64_t most;
  int64_t pairs;  // see LogitRows
  int64_t components, batch;
  T* value;                                                // [components, batch]
  const T* cotangent;                                      // of the value; null: compute the value, not its gradients
  T *matrix_gradient, *bias_gradient, *features_gradient;  // contiguous, zeroed by the caller

  int64_t row_of(int64_t w) const { return LogitRows{pairs}.row_of(w); }
  bool is_zero(int64_t w) const { return LogitRows{pairs}.is_zero(w); }
};

// The likelihood of partly observed states under the sums' local softmaxes.
template <class T>
struct MarginalJob {
  const Plan* plan;
  Matrix<const T> logits;    // [logits, components * batch]; see LogitRows
  Matrix<const T> observed;  // 0, 1, or NaN where nothing is observed [variables, batch]
  int64_t pairs;
  int64_t components, batch;
  T* value;     // [components, batch]
  T* gradient;  // of the value by the logits, contiguous; or null

  int64_t row_of(int64_t w) const { return LogitRows{pairs}.row_of(w); }
  bool is_zero(int64_t w) const { return LogitRows{pairs}.is_zero(w); }
};

// A sum that some of 64 states reach, and which of them.
struct Reached {
  int32_t sum;
  Word states;
};

// Up to 64 states and what they use, for one component of their likelihood.
template <class T>
struct LikelihoodWord {
  const Reached* reached;  // the same sums for all words that are worked on together
  const Word* used;        // by weight, where its sum is reached
  int64_t first;           // column
  int count;
  T* total;            // the result, or null
  const T* cotangent;  // null for ones
};

// The kernels for one number type and one instruction set; a tile is `lanes` columns wide.
template <class T>
struct Kernels {
  int lanes;
  int64_t (*scratch_numbers)(const Plan&, bool flows);
  int64_t (*slot_numbers)(const Plan&, bool flows);
  void (*evaluate)(const EvaluateJob<T>&, int64_t first, int count, T* scratch, const Bits*, int shift);
  void (*maximize)(const MaximizeJob<T>&, int64_t first, int count, T* scratch, uint32_t* used);
  void (*sample)(const SampleJob<T>&, int64_t first, int count, T* scratch, uint32_t* used);
  void (*ones)(const Matrix<const T>& rows, int64_t first, int count, int32_t from, int32_t variables, Word* ones);
  void (*likelihood)(const LikelihoodJob<T>&, const LikelihoodWord<T>*, int words, int64_t reached, const Word* open);
  void (*scale_columns)(T* numbers, int64_t rows, int64_t columns, const T* factors);
  T (*dot)(const T* a, const T* b, int64_t length);
  void (*add_scaled)(T* to, const T* a, T factor, int64_t length);
  int64_t (*marginal_numbers)(const Plan&);
  void (*marginal)(const MarginalJob<T>&, int64_t component, int64_t first, int count, T* scratch);
  int64_t (*tangent_numbers)(const Plan&);
  void (*tangent)(const TangentJob<T>&, int64_t first, int count, T* scratch);
  int64_t (*independent_numbers)(const Plan&, bool flows);
  void (*independent)(const IndependentJob<T>&, int64_t first, int count, T* scratch, Word holds);
  void (*likeliest)(const IndependentJob<T>&, int64_t first, int count, T* scratch, uint32_t* used);
  double (*largest_norm)(const T* numbers, int64_t columns, int64_t rows);
};

// Wide tiles for batches, wider ones for small plans, single columns for batches of one, and narrow tiles if a wide one
// would take too much memory.
struct KernelSet {
  Kernels<float> wide_float, broad_float, one_float, narrow_float;
  Kernels<double> wide_double, broad_double, one_double, narrow_double;
};

// Null if the library was built without them; the caller must check whether the processor supports them.
const KernelSet* plain_kernels();
const KernelSet* avx2_kernels();
const KernelSet* avx512_kernels();

}  // namespace semprola
