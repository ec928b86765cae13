// How the flows of a plan change along a change of its weights and leaves: the values upward, then their changes, then
// flows and their changes downward. Included once per instruction set, after engine_kernels.hpp.

template <class O>
struct TangentTile : Tile<O> {
  using T = typename O::T;
  using V = typename O::V;
  using View = typename Tile<O>::View;
  using Tile<O>::N;
  using Tile<O>::c;

  TangentTile(const TangentJob<T>& what, T* scratch, const View& columns)
      : Tile<O>(*what.plan, scratch),
        job(what),
        v(columns),
        change(this->flow + N * c.num_rows()),
        share(change + N * c.num_rows()),
        share_change(share + N * int64_t(c.num_edges)) {}

  const TangentJob<T>& job;
  const View& v;
  T* change;                // of each row [rows, N]: of its value on the way up, of the flow into it on the way down
  T *share, *share_change;  // of each edge [edges, N]

  // How the logarithm of an edge changes.
  SEMPROLA_INLINE V edge_change(int32_t e, int32_t w) const {
    V total = w < 0 ? O::set(T(0)) : load<O>(job.d_weights, w, v.first, v.count);
    for (int32_t f = c.factor_start[e]; f < c.factor_start[e + 1]; ++f)
      total = O::add(total, O::load(change + N * int64_t(c.factors[f])));
    return total;
  }

  void changes_up() {
    for (int32_t i = 0; i < c.num_used_leaves; ++i) {
      const int32_t row = c.used_leaves[i];
      O::store(change + N * int64_t(row), load<O>(job.d_leaves, row, v.first, v.count));
    }
    for (int32_t s = 0; s < c.num_sums; ++s) {
      const int32_t begin = c.edge_start[s], end = c.edge_start[s + 1];
      const int32_t w = v.weights.data ? c.first_weight[s] : -1;
      const int64_t row = int64_t(c.num_leaves) + s;
      const Number<O> sum = this->at(row);
      // the exponent of an impossible sum is minus infinity; its edges have a share of zero
      const V inverse = O::inverse(sum.mantissa), top = O::max(sum.exponent, O::set(lowest<T>()));
      V total = O::set(T(0));
      for (int32_t e = begin; e < end; ++e) {
        const int32_t own = w < 0 ? w : w + e - begin;
        const Number<O> all = this->template edge<false>(v, row, e, own);
        const V part = O::mul(inverse, O::scale(all.mantissa, O::sub(all.exponent, top)));
        const V by = edge_change(e, own);
        O::store(share + N * int64_t(e), part);
        O::store(share_change + N * int64_t(e), by);
        total = O::fma(part, by, total);
      }
      for (int32_t e = begin; e < end; ++e) {
        T* p = share_change + N * int64_t(e);
        O::store(p, O::mul(O::load(share + N * int64_t(e)), O::sub(O::load(p), total)));
      }
      O::store(change + N * row, total);
    }
  }

  void changes_down() {
    std::memset(this->flow, 0, size_t(N * c.num_rows()) * sizeof(T));
    std::memset(change, 0, size_t(N * c.num_rows()) * sizeof(T));
    O::store(this->flow + N * int64_t(c.root_row), this->flow_of_root());
    for (int32_t s = c.num_sums - 1; s >= 0; --s) {
      const int64_t row = int64_t(c.num_leaves) + s;
      const V arriving = O::load(this->flow + N * row), by = O::load(change + N * row);
      const int32_t begin = c.edge_start[s], end = c.edge_start[s + 1];
      const int32_t w = job.edge_changes ? c.first_weight[s] : -1;
      for (int32_t e = begin; e < end; ++e) {
        const V own = O::load(share + N * int64_t(e));
        const V part = O::fma(by, own, O::mul(arriving, O::load(share_change + N * int64_t(e))));
        if (w >= 0) store<O>(job.edge_changes + (w + e - begin) * job.columns + v.first, part, v.count);
        this->hand_on(e, O::mul(arriving, own));
        for (int32_t f = c.factor_start[e]; f < c.factor_start[e + 1]; ++f) {
          T* p = change + N * int64_t(c.factors[f]);
          O::store(p, O::add(O::load(p), part));
        }
      }
    }
  }
};

template <class O>
int64_t tangent_numbers(const Plan& c) {
  return O::N * (4 * c.num_rows() + 2 * int64_t(c.num_edges));
}

template <class O>
void tangent_tile(const TangentJob<typename O::T>& job, int64_t first, int count, typename O::T* scratch) {
  const typename Tile<O>::View view{job.weights, first, count, nullptr, 0};
  TangentTile<O> tile(job, scratch, view);
  tile.leaves(job.leaves, first, count);
  tile.template up<false, false>(view);
  tile.changes_up();
  tile.changes_down();
  for (int64_t row = 0; row < job.plan->num_leaves; ++row)
    store<O>(job.leaf_changes + row * job.columns + first, O::load(tile.change + tile.N * row), count);
}
