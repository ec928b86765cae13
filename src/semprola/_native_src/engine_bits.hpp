// Bit-parallel passes over 64 columns at once: which rows are possible, and which a state reaches.
#pragma once

#include <algorithm>
#include <limits>

#include "engine_plan.hpp"

namespace semprola {

// Computes the bits of all sums from those of the literals (the first rows of `alive`).
inline void bits_up(Bits& bits) {
  const Plan& c = *bits.c;
  for (int32_t s = 0; s < c.num_sums; ++s) {
    Word any = 0;
    for (int32_t e = c.edge_start[s]; e < c.edge_start[s + 1]; ++e) any |= bits.edge(e);
    bits.alive[c.num_leaves + s] = any;
  }
}

// What the root reaches through possible edges; calls visit(sum, columns) for every sum reached, highest first.
template <class Visit>
void bits_down(Bits& bits, Visit visit) {
  const Plan& c = *bits.c;
  std::fill(bits.reach, bits.reach + c.num_rows(), Word(0));
  bits.reach[c.root_row] = bits.alive[c.root_row];
  for (int32_t s = c.num_sums - 1; s >= 0; --s) {
    const Word here = bits.reach[c.num_leaves + s];
    if (!here) continue;
    for (int32_t e = c.edge_start[s]; e < c.edge_start[s + 1]; ++e) {
      const Word through = here & bits.edge(e);
      if (!through) continue;
      for (int32_t f = c.factor_start[e]; f < c.factor_start[e + 1]; ++f) bits.reach[c.factors[f]] |= through;
    }
    visit(s, here);
  }
}

// Literals' bits from log-values: possible where above minus infinity.
template <class T>
void bits_of_leaves(const Matrix<const T>& leaves, int64_t first, int count, Bits& bits) {
  const T impossible = -std::numeric_limits<T>::infinity();
  for (int32_t row = 0; row < bits.c->num_leaves; ++row) {
    Word word = 0;
    for (int i = 0; i < count; ++i) {
      const Word bit = leaves.at(row, first + i) != impossible;
      word |= bit << i;
    }
    bits.alive[row] = word;
  }
}

}  // namespace semprola
