// Checks that the arrays of a plan fit together. The kernels trust them: a wrong index would read or write foreign
// memory.

#include "engine_check.hpp"

#include <cinttypes>
#include <cstdio>
#include <stdexcept>
#include <vector>

namespace semprola {
namespace {

template <class... Numbers>
void require(bool condition, const char* format, Numbers... numbers) {
  if (condition) return;
  char text[256];
  std::snprintf(text, sizeof(text), format, numbers...);
  throw std::invalid_argument(text);
}

void check_counts(const GivenPlan& c) {
  require(c.num_leaves >= 0 && c.num_leaves % 2 == 0, "a plan has two leaves per variable, not %" PRId32 " in all",
          c.num_leaves);
  require(c.num_sums > 0, "a plan needs a sum, not %" PRId32 " of them", c.num_sums);
  require(c.num_edges >= 0 && c.num_weights >= 0, "a plan cannot have %" PRId32 " edges and %" PRId32 " weights",
          c.num_edges, c.num_weights);
  const int64_t rows = int64_t(c.num_leaves) + c.num_sums;
  require(rows <= INT32_MAX, "a plan of %" PRId64 " rows is too large for indices of 32 bits", rows);
  require(c.root_row >= c.num_leaves && c.root_row < rows, "the root is row %" PRId32 ", which is no sum", c.root_row);
}

// Checks an array of offsets: it starts at zero, each list has at least `least` members, the end is `end` (-1: any).
void check_starts(const char* name, const int32_t* start, int32_t lists, int32_t least, int32_t end) {
  require(start[0] == 0, "%s: begins with %" PRId32 ", not with 0", name, start[0]);
  for (int32_t i = 0; i < lists; ++i)
    require(int64_t(start[i + 1]) - start[i] >= least, "%s: list %" PRId32 " has %" PRId64 " members", name, i,
            int64_t(start[i + 1]) - start[i]);
  require(end < 0 || start[lists] == end, "%s: ends with %" PRId32 ", not with %" PRId32, name, start[lists], end);
}

// Every sum has one place in the order.
void check_order(const GivenPlan& c) {
  for (int32_t place = 0; place < c.num_sums; ++place) {
    const int32_t s = c.order[place];
    require(s >= 0 && s < c.num_sums, "order: place %" PRId32 " holds sum %" PRId32 ", which does not exist", place, s);
    require(c.row[s] == c.num_leaves + place, "row: sum %" PRId32 " is at place %" PRId32 " but has row %" PRId32, s,
            place, c.row[s]);
  }
}

// Factors come before the sums that use them, so that there is no cycle.
void check_factors(const GivenPlan& c) {
  for (int32_t s = 0; s < c.num_sums; ++s) {
    const int32_t begin = c.factor_start[c.edge_start[s]], end = c.factor_start[c.edge_start[s + 1]];
    for (int32_t f = begin; f < end; ++f) {
      const int32_t factor = c.factors[f];
      require(factor >= 0 && int64_t(factor) - c.num_leaves < c.num_sums && c.row_of(factor) < c.row[s],
              "row %" PRId32 " has %" PRId32 " as a factor", c.row[s], factor);
    }
  }
}

// Every weight belongs to one edge.
void check_weights(const GivenPlan& c) {
  if (!c.first_weight) return;
  std::vector<bool> owned(static_cast<size_t>(c.num_weights), false);
  int64_t count = 0;
  for (int32_t s = 0; s < c.num_sums; ++s) {
    const int64_t first = c.first_weight[s], fan_in = c.edge_start[s + 1] - c.edge_start[s];
    if (first == -1) continue;
    require(first >= 0 && first + fan_in <= c.num_weights,
            "sum %" PRId32 " has weights %" PRId64 " to %" PRId64 " of %" PRId32, s, first, first + fan_in - 1,
            c.num_weights);
    for (int64_t w = first; w < first + fan_in; ++w, ++count) {
      require(!owned[static_cast<size_t>(w)], "weight %" PRId64 " belongs to two edges", w);
      owned[static_cast<size_t>(w)] = true;
    }
  }
  require(count == c.num_weights, "%" PRId64 " of %" PRId32 " weights belong to an edge", count, c.num_weights);
}

}  // namespace

void check_plan(const GivenPlan& c) {
  check_counts(c);
  check_starts("edge_start", c.edge_start, c.num_sums, 1, c.num_edges);
  check_starts("factor_start", c.factor_start, c.num_edges, 0, -1);
  check_order(c);
  check_factors(c);
  check_weights(c);
}

}  // namespace semprola
