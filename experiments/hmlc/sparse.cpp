// Products with a matrix of activations that are mostly zero, after ReLU and dropout: only the others are touched.
// The matrix of weights is stored by inputs, [inputs, outputs], so that an activation meets contiguous weights.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

typedef float Vec __attribute__((vector_size(64), aligned(4), may_alias));

constexpr int64_t kLanes = 16;
constexpr int64_t kInputs = 128;  // whose weights stay in the nearest cache while all rows pass, in `sparse_forward`
constexpr int64_t kOutputs = 64;
constexpr int64_t kWide = 128;  // outputs at a time in `sparse_backward`

struct Entry {
  int32_t index;
  float value;
};

Vec load(const float* p) { return *reinterpret_cast<const Vec*>(p); }
void store(float* p, Vec v) { *reinterpret_cast<Vec*>(p) = v; }

float sum(Vec v) {
  float total = 0;
  for (int64_t k = 0; k < kLanes; k++) total += v[k];
  return total;
}

// The entries of each row that are not zero; `starts` has one place per row and block of inputs, and one more per row.
void compress(const float* x, int64_t rows, int64_t in, std::vector<Entry>& entries, std::vector<int64_t>& starts) {
  const int64_t blocks = (in + kInputs - 1) / kInputs;
  entries.resize(rows * in + 1);  // one more, because an entry is written before it is known to count
  starts.clear();
  int64_t n = 0;
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t b = 0; b < blocks; b++) {
      starts.push_back(n);
      for (int64_t j = b * kInputs; j < std::min(in, (b + 1) * kInputs); j++) {
        const float value = x[r * in + j];
        entries[n] = {static_cast<int32_t>(j), value};
        n += value != 0.0f;
      }
    }
    starts.push_back(n);
  }
}

// The same entries by inputs: `starts` has one place per input, and one more.
void by_inputs(const std::vector<Entry>& entries, const std::vector<int64_t>& row_starts, int64_t rows, int64_t in,
               std::vector<Entry>& turned, std::vector<int64_t>& starts) {
  const int64_t places = (in + kInputs - 1) / kInputs + 1;
  const int64_t total = rows ? row_starts[rows * places - 1] : 0;
  starts.assign(in + 1, 0);
  for (int64_t i = 0; i < total; i++) starts[entries[i].index + 1]++;
  for (int64_t j = 0; j < in; j++) starts[j + 1] += starts[j];
  turned.resize(total);
  std::vector<int64_t> next(starts.begin(), starts.end() - 1);
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t i = row_starts[r * places]; i < row_starts[r * places + places - 1]; i++) {
      turned[next[entries[i].index]++] = {static_cast<int32_t>(r), entries[i].value};
    }
  }
}

}  // namespace

extern "C" {

// out [rows, outputs] = bias + x [rows, inputs] · w [inputs, outputs]
void sparse_forward(const float* x, const float* w, const float* bias, float* out, int64_t rows, int64_t in,
                    int64_t outputs) {
  std::vector<Entry> entries;
  std::vector<int64_t> starts;
  compress(x, rows, in, entries, starts);
  const int64_t places = (in + kInputs - 1) / kInputs + 1;
  for (int64_t r = 0; r < rows; r++) std::memcpy(out + r * outputs, bias, outputs * sizeof(float));
  int64_t c = 0;
  for (; c + kOutputs <= outputs; c += kOutputs) {
    for (int64_t b = 0; b + 1 < places; b++) {
      for (int64_t r = 0; r < rows; r++) {
        float* to = out + r * outputs + c;
        Vec a0 = load(to), a1 = load(to + kLanes), a2 = load(to + 2 * kLanes), a3 = load(to + 3 * kLanes);
        for (int64_t i = starts[r * places + b]; i < starts[r * places + b + 1]; i++) {
          const float* from = w + entries[i].index * outputs + c;
          const float value = entries[i].value;
          a0 += value * load(from);
          a1 += value * load(from + kLanes);
          a2 += value * load(from + 2 * kLanes);
          a3 += value * load(from + 3 * kLanes);
        }
        store(to, a0);
        store(to + kLanes, a1);
        store(to + 2 * kLanes, a2);
        store(to + 3 * kLanes, a3);
      }
    }
  }
  if (c == outputs) return;
  for (int64_t r = 0; r < rows; r++) {
    float* to = out + r * outputs;
    for (int64_t i = starts[r * places]; i < starts[r * places + places - 1]; i++) {
      const float* from = w + entries[i].index * outputs;
      for (int64_t k = c; k < outputs; k++) to[k] += entries[i].value * from[k];
    }
  }
}

// From g [rows, outputs], the gradient of `out`: dw [inputs, outputs] = xᵀ · g; dx [rows, inputs] = g · wᵀ where x is
// not zero, and zero elsewhere.
void sparse_backward(const float* x, const float* w, const float* g, float* dx, float* dw, int64_t rows, int64_t in,
                     int64_t outputs) {
  std::vector<Entry> entries, turned;
  std::vector<int64_t> row_starts, starts;
  compress(x, rows, in, entries, row_starts);
  by_inputs(entries, row_starts, rows, in, turned, starts);
  std::fill(dx, dx + rows * in, 0.0f);
  std::vector<float> part(rows * kWide), padded(kWide), result(kWide);
  constexpr int64_t vecs = kWide / kLanes;
  for (int64_t c = 0; c < outputs; c += kWide) {
    const int64_t width = std::min(kWide, outputs - c);
    for (int64_t r = 0; r < rows; r++) {
      std::memcpy(part.data() + r * kWide, g + r * outputs + c, width * sizeof(float));
      std::fill(part.data() + r * kWide + width, part.data() + (r + 1) * kWide, 0.0f);
    }
    for (int64_t j = 0; j < in; j++) {
      const float* from = w + j * outputs + c;
      if (width < kWide) {
        std::memcpy(padded.data(), from, width * sizeof(float));
        from = padded.data();
      }
      Vec own[vecs], total[vecs];
      for (int64_t k = 0; k < vecs; k++) own[k] = load(from + k * kLanes), total[k] = Vec{};
      for (int64_t i = starts[j]; i < starts[j + 1]; i++) {
        const float* there = part.data() + turned[i].index * kWide;
        const float value = turned[i].value;
        Vec product = Vec{};
        for (int64_t k = 0; k < vecs; k++) {
          const Vec slope = load(there + k * kLanes);
          total[k] += value * slope;
          product += own[k] * slope;
        }
        dx[turned[i].index * in + j] += sum(product);
      }
      float* to = width < kWide ? result.data() : dw + j * outputs + c;
      for (int64_t k = 0; k < vecs; k++) store(to + k * kLanes, total[k]);
      if (width < kWide) std::memcpy(dw + j * outputs + c, result.data(), width * sizeof(float));
    }
  }
}

}  // extern "C"
