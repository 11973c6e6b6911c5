#include "apps/sparse/product.h"

#include <algorithm>
#include <cstring>

namespace hpe::sparse {

template <class T>
product<T>::product(const compressed_rows<T>& matrix, form how, const gather::choice& gather_by,
                    std::vector<int> devices)
    : matrix_(matrix), sharing_(share_rows(matrix.first)), multiply_(module(kernels_file()), "sparse_multiply") {
  devices = gather::all_unless(std::move(devices));
  if (how == form::gathered) {
    if (devices.size() > 1)
      throw error(HPE_ERROR_INVALID_ARGUMENT, "a product that first gathers x runs on one device only");
    gather_.emplace_back(gather::problem{gather::way::gather, sizeof(T), 4, matrix.columns, matrix.elements()},
                         gather_by, devices);
    gathered_ = array<T>(matrix.elements(), on_device(devices.front()));
  }
  const std::uint64_t all = matrix.elements();
  const auto* const first = matrix.first.data();
  std::uint64_t row = 0;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const std::uint64_t share = all / devices.size() * (d + 1);
    const std::uint64_t end =
        d + 1 == devices.size()
            ? matrix.rows
            : static_cast<std::uint64_t>(std::lower_bound(first + row, first + matrix.rows, share) - first);
    const placement here = on_device(devices[d]);
    part p{devices[d], row, end - row, {}, {}, {}, array<T>(matrix.columns, here), array<T>(end - row, here)};
    if (devices.size() > 1) {
      const std::uint32_t begin = first[row], own = first[end] - begin;
      p.first = array<std::uint32_t>(p.rows + 1, here);
      std::transform(first + row, first + end + 1, p.first.begin(), [&](std::uint32_t at) { return at - begin; });
      p.column = array<std::uint32_t>(own, here);
      p.values = array<T>(own, here);
      if (own > 0) {
        copy(p.column.data(), matrix.column.data() + begin, own * sizeof(std::uint32_t));
        copy(p.values.data(), matrix.values.data() + begin, own * sizeof(T));
      }
    }
    parts_.push_back(std::move(p));
    row = end;
  }
}

template <class T>
void product<T>::run() {
  for (part& p : parts_) {
    if (&p != &parts_.front()) copy(p.x.data(), x().data(), x().size() * sizeof(T));
    if (p.rows == 0) continue;
    const auto& first = parts_.size() > 1 ? p.first : matrix_.first;
    const auto& column = parts_.size() > 1 ? p.column : matrix_.column;
    const auto& values = parts_.size() > 1 ? p.values : matrix_.values;
    const bool gathers = !gather_.empty();
    if (gathers) gather_.front().run(p.x.data(), column.data(), gathered_.data());
    const array<T>& from = gathers ? gathered_ : p.x;
    launch_on(p.device, multiply_, shape_for(p.rows * sharing_.lanes, p.device),
              {sizeof(T), sharing_.lanes, sharing_.each, p.rows, first.data(), gathers ? nullptr : column.data(),
               values.data(), from.data(), p.y.data()},
              in(first), in(column), in(values), in(from), out(p.y));
  }
}

template <class T>
void product<T>::result(T* y) const {
  for (const part& p : parts_)
    if (p.rows > 0) copy(y + p.row, p.y.data(), p.rows * sizeof(T));
}

template class product<float>;
template class product<double>;

}  // namespace hpe::sparse
