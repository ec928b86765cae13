// Formulas to compile, and what the compiler makes of them.
#pragma once

#include <cstdint>
#include <vector>

#include "ddnnf_common.hpp"

using semprola::ddnnf::kBadInput;
using semprola::ddnnf::kNotDetermined;
using semprola::ddnnf::kOk;
using semprola::ddnnf::kOutOfMemory;
using semprola::ddnnf::kStopped;
using semprola::ddnnf::kTooManyNodes;
using semprola::ddnnf::kUnsatisfiable;
using semprola::ddnnf::Shared;

struct Cnf {
  int64_t num_vars = 0;
  std::vector<std::vector<int32_t>> clauses;  // DIMACS literals
};

Cnf random_cnf(int64_t num_vars, int64_t num_clauses, int length, unsigned seed);
// Clauses of three among `width` neighbours, so that components are many and large, and their circuits small.
Cnf band_cnf(int64_t num_vars, int64_t num_clauses, int64_t width, unsigned seed);

struct Compiled {
  int32_t status = 0;
  std::vector<int8_t> kind;
  std::vector<int32_t> literal;
  std::vector<int64_t> child_start;
  std::vector<int32_t> children;

  // The number of models over so many variables; the circuit need not be smooth.
  double count(int64_t num_vars) const;
};

Compiled compile(const Cnf& cnf, Shared& shared, int64_t max_bytes = -1, const std::vector<uint8_t>& hidden = {},
                 bool determined = true);
Compiled compile(const Cnf& cnf, int64_t max_bytes = -1);
// Models of the formula, by trying all assignments.
double brute_count(const Cnf& cnf);
