#include "cnf.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "library.hpp"

Cnf random_cnf(int64_t num_vars, int64_t num_clauses, int length, unsigned seed) {
  std::mt19937 random(seed);
  Cnf cnf;
  cnf.num_vars = num_vars;
  for (int64_t c = 0; c < num_clauses; ++c) {
    std::vector<int32_t> clause;
    for (int i = 0; i < length; ++i) {
      const int32_t v = int32_t(random() % static_cast<unsigned>(num_vars)) + 1;
      clause.push_back(random() % 2 == 0 ? v : -v);
    }
    cnf.clauses.push_back(clause);
  }
  return cnf;
}

Cnf band_cnf(int64_t num_vars, int64_t num_clauses, int64_t width, unsigned seed) {
  std::mt19937 random(seed);
  Cnf cnf = random_cnf(width, num_clauses, 3, seed + 1);
  cnf.num_vars = num_vars;
  for (auto& clause : cnf.clauses) {
    const int32_t shift = int32_t(random() % static_cast<unsigned>(num_vars - width + 1));
    for (int32_t& literal : clause) literal += literal < 0 ? -shift : shift;
  }
  return cnf;
}

Compiled compile(const Cnf& cnf, Shared& shared, int64_t max_bytes, const std::vector<uint8_t>& hidden,
                 bool determined) {
  using Run = int32_t(int64_t, int64_t, const int64_t*, const int32_t*, const uint8_t*, int32_t, double, int64_t,
                      int64_t, Shared*, void**, int64_t*);
  std::vector<int64_t> start{0};
  std::vector<int32_t> literals;
  for (const auto& clause : cnf.clauses) {
    literals.insert(literals.end(), clause.begin(), clause.end());
    start.push_back(static_cast<int64_t>(literals.size()));
  }
  std::vector<uint8_t> hide = hidden;
  hide.resize(static_cast<size_t>(std::max<int64_t>(cnf.num_vars, 1)), 0);
  void* circuit = nullptr;
  int64_t sizes[2] = {0, 0};
  Compiled result;
  result.status = function<Run>("semprola_ddnnf_compile")(cnf.num_vars, static_cast<int64_t>(cnf.clauses.size()),
                                                          start.data(), literals.data(), hide.data(), determined, -1,
                                                          -1, max_bytes, &shared, &circuit, sizes);
  if (circuit == nullptr) return result;
  result.kind.resize(static_cast<size_t>(sizes[0]));
  result.literal.resize(static_cast<size_t>(sizes[0]));
  result.child_start.resize(static_cast<size_t>(sizes[0]) + 1);
  result.children.resize(static_cast<size_t>(sizes[1]) + 1);
  function<void(const void*, int8_t*, int32_t*, int64_t*, int32_t*)>("semprola_ddnnf_copy")(
      circuit, result.kind.data(), result.literal.data(), result.child_start.data(), result.children.data());
  function<void(void*)>("semprola_ddnnf_free")(circuit);
  return result;
}

Compiled compile(const Cnf& cnf, int64_t max_bytes) {
  Shared shared{};
  return compile(cnf, shared, max_bytes);
}

double Compiled::count(int64_t num_vars) const {
  // The probability that a random assignment is a model needs no smoothness.
  std::vector<double> share;
  for (size_t n = 0; n < kind.size(); ++n) {
    double p = kind[n] == 0 ? 0.5 : kind[n] == 1 ? 1.0 : 0.0;
    for (int64_t e = child_start[n]; e < child_start[n + 1]; ++e) {
      const double child = share[static_cast<size_t>(children[static_cast<size_t>(e)])];
      p = kind[n] == 1 ? p * child : p + child;
    }
    share.push_back(p);
  }
  return std::ldexp(share.back(), static_cast<int>(num_vars));
}

double brute_count(const Cnf& cnf) {
  double count = 0;
  for (uint64_t state = 0; state < uint64_t{1} << cnf.num_vars; ++state) {
    count += std::all_of(cnf.clauses.begin(), cnf.clauses.end(), [&](const std::vector<int32_t>& clause) {
      return std::any_of(clause.begin(), clause.end(),
                         [&](int32_t l) { return ((state >> (std::abs(l) - 1)) & 1) == (l > 0 ? 1u : 0u); });
    });
  }
  return count;
}
