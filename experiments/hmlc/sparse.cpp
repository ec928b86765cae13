// ReLU, dropout and a product with a matrix of weights: only activations that are not zero are multiplied.
// The matrix of weights is stored by inputs, [inputs, outputs], so that an activation meets contiguous weights.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

#ifdef __AVX512F__
constexpr int64_t kLanes = 16;
#else
constexpr int64_t kLanes = 8;
#endif
// as wide as a register: a wider one goes through memory, four times as slow as a dense product
typedef float Vec __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));

// All weights of `kInputs` inputs and one block of outputs are in the nearest cache while the rows pass.
constexpr int64_t kInputs = 128;
constexpr int64_t kAhead = 8;  // registers of sums in `sparse_forward`
constexpr int64_t kOutputs = kAhead * kLanes;
constexpr int64_t kPair = 4;  // registers of weights, and as many of sums, in `sparse_backward`
constexpr int64_t kSlopes = kPair * kLanes;
constexpr int64_t kEarly = 8;  // weights of this many inputs later are fetched: too far apart for a processor to guess
constexpr int64_t kLine = 64 / sizeof(float);

struct Entry {
  int32_t index;
  float value;
};

// What a layer does to its inputs h [rows, in]: a unit stays if it is positive and its byte is below `kept` of 256.
struct Units {
  const float* h;
  const uint8_t* bytes;
  int64_t in, kept;
  float scale;

  Units(const float* h, const uint8_t* bytes, int64_t in, int64_t kept)
      : h(h), bytes(bytes), in(in), kept(kept), scale(static_cast<float>(256.0 / static_cast<double>(kept))) {}

  // Writes an entry for input `j` of row `r`, and returns whether it counts. What is not a number does.
  bool put(int64_t r, int64_t j, int64_t index, Entry* entry) const {
    const float value = h[r * in + j];
    *entry = {static_cast<int32_t>(index), value * scale};
    return !(value <= 0.0f) & (bytes[r * in + j] < kept);
  }
};

Vec load(const float* p) { return *reinterpret_cast<const Vec*>(p); }
void store(float* p, Vec v) { *reinterpret_cast<Vec*>(p) = v; }

float sum(const float* lanes) {
  float total = 0;
  for (int64_t k = 0; k < kLanes; k++) total += lanes[k];
  return total;
}

int64_t blocks_of(int64_t size, int64_t block) { return (size + block - 1) / block; }

// A buffer that is kept between calls, because a new one of a megabyte costs page faults; it begins with a cache line.
template <class T>
T* grown(std::vector<T>& buffer, int64_t size) {
  constexpr int64_t line = 64;
  constexpr int64_t spare = line / sizeof(T);
  if (static_cast<int64_t>(buffer.size()) < size + spare) buffer.resize(size + spare);
  const uintptr_t start = reinterpret_cast<uintptr_t>(buffer.data());
  return reinterpret_cast<T*>((start + line - 1) / line * line);
}

// `rows` rows of at most `width` numbers next to each other, with zeros after the last.
void pack(const float* from, int64_t stride, int64_t rows, int64_t filled, int64_t width, float* to) {
  for (int64_t r = 0; r < rows; r++) {
    const float* own = from + r * stride;
    float* there = to + r * width;
    if (filled == width) {
      for (int64_t k = 0; k < width; k += kLanes) store(there + k, load(own + k));
    } else {
      std::memcpy(there, own, filled * sizeof(float));
      std::fill(there + filled, there + width, 0.0f);
    }
  }
}

// [rows, width] from `height` columns that are each `rows` long, with zeros after the last.
void pack_columns(const float* from, int64_t rows, int64_t height, int64_t width, float* to) {
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t k = 0; k < height; k++) to[r * width + k] = from[k * rows + r];
    std::fill(to + r * width + height, to + (r + 1) * width, 0.0f);
  }
}

// The entries of each row, with the place of their input in its block; `starts` has one place per row and block of
// inputs, and one more per row.
void compress(const Units& units, int64_t rows, Entry* entries, int64_t* starts) {
  int64_t n = 0;
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t first = 0; first < units.in; first += kInputs) {
      *starts++ = n;
      const int64_t inputs = std::min(kInputs, units.in - first);
      for (int64_t j = 0; j < inputs; j++) n += units.put(r, first + j, j, entries + n);
    }
    *starts++ = n;
  }
}

// The entries of `kInputs` inputs or fewer, input by input: `starts` has one place per input, and one more.
void by_inputs(const Units& units, int64_t rows, int64_t first, int64_t inputs, Entry* entries, int64_t* starts) {
  int64_t n = 0;
  for (int64_t j = 0; j < inputs; j++) {
    starts[j] = n;
    for (int64_t r = 0; r < rows; r++) n += units.put(r, first + j, r, entries + n);
  }
  starts[inputs] = n;
}

}  // namespace

extern "C" {

// out [rows, outputs] = bias + x [rows, in] · w [in, outputs], where x are the units of h and `bytes` that stay; with
// `turned`, out is stored as [outputs, rows]
void sparse_forward(const float* h, const uint8_t* bytes, const float* w, const float* bias, float* out, int64_t rows,
                    int64_t in, int64_t outputs, int64_t kept, int64_t turned) {
  thread_local std::vector<Entry> entry_buffer;
  thread_local std::vector<int64_t> start_buffer;
  thread_local std::vector<float> weight_buffer, sum_buffer;
  const int64_t blocks = blocks_of(in, kInputs);
  // one more, because an entry is written before it is known to count
  Entry* entries = grown(entry_buffer, rows * in + 1);
  int64_t* starts = grown(start_buffer, rows * (blocks + 1));
  float* weights = grown(weight_buffer, kInputs * kOutputs);
  float* sums = grown(sum_buffer, rows * kOutputs);
  compress(Units(h, bytes, in, kept), rows, entries, starts);
  for (int64_t c = 0; c < outputs; c += kOutputs) {
    const int64_t width = std::min(kOutputs, outputs - c);
    pack(bias + c, 0, rows, width, kOutputs, sums);
    for (int64_t b = 0; b < blocks; b++) {
      pack(w + b * kInputs * outputs + c, outputs, std::min(kInputs, in - b * kInputs), width, kOutputs, weights);
      for (int64_t r = 0; r < rows; r++) {
        const int64_t* range = starts + r * (blocks + 1) + b;
        Vec total[kAhead];
        for (int64_t k = 0; k < kAhead; k++) total[k] = load(sums + r * kOutputs + k * kLanes);
        for (int64_t i = range[0]; i < range[1]; i++) {
          const float* from = weights + entries[i].index * kOutputs;
          for (int64_t k = 0; k < kAhead; k++) total[k] += entries[i].value * load(from + k * kLanes);
        }
        for (int64_t k = 0; k < kAhead; k++) store(sums + r * kOutputs + k * kLanes, total[k]);
      }
    }
    if (turned) {
      for (int64_t k = 0; k < width; k++) {
        for (int64_t r = 0; r < rows; r++) out[(c + k) * rows + r] = sums[r * kOutputs + k];
      }
    } else {
      for (int64_t r = 0; r < rows; r++) {
        std::memcpy(out + r * outputs + c, sums + r * kOutputs, width * sizeof(float));
      }
    }
  }
}

// From g [rows, outputs], the gradient of `out` and stored like it: dw [in, outputs] = xᵀ · g; dh [rows, in] is g · wᵀ,
// scaled up, for the units that stay, and zero for the others.
void sparse_backward(const float* h, const uint8_t* bytes, const float* w, const float* g, float* dh, float* dw,
                     int64_t rows, int64_t in, int64_t outputs, int64_t kept, int64_t turned) {
  const Units units(h, bytes, in, kept);
  thread_local std::vector<Entry> entry_buffer;
  thread_local std::vector<float> slope_buffer, product_buffer;
  const int64_t blocks = blocks_of(outputs, kSlopes);
  Entry* entries = grown(entry_buffer, rows * kInputs + 1);
  float* products = grown(product_buffer, rows * kInputs * kLanes);
  float* slopes = grown(slope_buffer, blocks * rows * kSlopes);
  int64_t starts[kInputs + 1];
  for (int64_t c = 0; c < blocks; c++) {
    const int64_t width = std::min(kSlopes, outputs - c * kSlopes);
    float* part = slopes + c * rows * kSlopes;
    if (turned) {
      pack_columns(g + c * kSlopes * rows, rows, width, kSlopes, part);
    } else {
      pack(g + c * kSlopes, outputs, rows, width, kSlopes, part);
    }
  }
  std::fill(dh, dh + rows * in, 0.0f);
  for (int64_t first = 0; first < in; first += kInputs) {
    const int64_t inputs = std::min(kInputs, in - first);
    by_inputs(units, rows, first, inputs, entries, starts);
    std::fill(products, products + starts[inputs] * kLanes, 0.0f);
    for (int64_t c = 0; c < blocks; c++) {
      const int64_t width = std::min(kSlopes, outputs - c * kSlopes);
      const float* part = slopes + c * rows * kSlopes;
      for (int64_t j = 0; j < inputs; j++) {
        const int64_t at = (first + j) * outputs + c * kSlopes;
        for (int64_t k = 0; k < kSlopes && first + j + kEarly < in; k += kLine) {
          __builtin_prefetch(w + at + kEarly * outputs + k);
          __builtin_prefetch(dw + at + kEarly * outputs + k, 1);
        }
        float edge[kSlopes];
        const float* from = w + at;
        if (width < kSlopes) pack(w + at, 0, 1, width, kSlopes, edge), from = edge;
        Vec own[kPair], total[kPair];
        for (int64_t k = 0; k < kPair; k++) own[k] = load(from + k * kLanes), total[k] = Vec{};
        for (int64_t i = starts[j]; i < starts[j + 1]; i++) {
          const float* there = part + entries[i].index * kSlopes;
          Vec product = load(products + i * kLanes);
          for (int64_t k = 0; k < kPair; k++) {
            const Vec slope = load(there + k * kLanes);
            total[k] += entries[i].value * slope;
            product += own[k] * slope;
          }
          store(products + i * kLanes, product);
        }
        for (int64_t k = 0; k < kPair; k++) store(edge + k * kLanes, total[k]);
        std::memcpy(dw + at, edge, width * sizeof(float));
      }
    }
    for (int64_t j = 0; j < inputs; j++) {
      for (int64_t i = starts[j]; i < starts[j + 1]; i++) {
        dh[entries[i].index * in + first + j] = units.scale * sum(products + i * kLanes);
      }
    }
  }
}

}  // extern "C"
