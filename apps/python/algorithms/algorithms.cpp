#include "apps/python/algorithms/algorithms.h"

#include <complex>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "apps/fft/fft.h"
#include "apps/scan/scan_plan.h"
#include "apps/sort/sorter.h"

namespace {

thread_local std::string last_message;

template <class Body>
hpeStatus guarded(const Body& body) noexcept {
  try {
    body();
    return HPE_SUCCESS;
  } catch (const hpe::error& e) {
    last_message = e.what();
    return e.status();
  } catch (const std::bad_alloc&) {
    last_message = "the host has too little memory for the plan of an algorithm";
    return HPE_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception& e) {
    last_message = e.what();
    return HPE_ERROR_INTERNAL;
  }
}

/// Keeps the plan that was used last. A plan is used by one thread at a time: a thread takes the plan out, or makes
/// another one if a different plan, or none, is there.
template <class Plan>
class last_plan {
 public:
  template <class Make, class Use>
  void use(const std::string& description, const Make& make, const Use& use) {
    std::unique_ptr<Plan> plan = take(description);
    if (plan == nullptr) plan = make();
    use(*plan);
    keep(description, std::move(plan));
  }

 private:
  std::unique_ptr<Plan> take(const std::string& description) {
    const std::lock_guard lock(mutex_);
    if (description_ == description) return std::move(plan_);
    return nullptr;
  }
  void keep(const std::string& description, std::unique_ptr<Plan> plan) {
    const std::lock_guard lock(mutex_);
    description_ = description;
    plan_.swap(plan);
  }

  std::mutex mutex_;
  std::string description_;
  std::unique_ptr<Plan> plan_;
};

/// The plans live until the process ends, because the runtime may end first.
template <class Plan>
last_plan<Plan>& plans() {
  static auto* const only = new last_plan<Plan>;
  return *only;
}

template <class... Parts>
std::string described(const Parts&... parts) {
  std::string result;
  ((result += std::string(parts) + ' '), ...);
  return result;
}

std::string described(const std::vector<int>& devices) {
  std::string result;
  for (const int d : devices) result += std::to_string(d) + ' ';
  return result;
}

hpe::sort::element element_named(const std::string& type) {
#define HPE_SORT_PAIR(K, V) hpe::kernels::sort_pair<K, V>
#define HPE_SORT(name, ...) \
  if (type == #name) return hpe::sort::element_of<__VA_ARGS__>();
#include "kernels/sort.def"
#undef HPE_SORT
#undef HPE_SORT_PAIR
  throw hpe::error(HPE_ERROR_NOT_SUPPORTED, "no sort for elements of type " + type);
}

hpe::scan::operation sum_named(const std::string& type) {
  using hpe::scan::built_in, hpe::scan::operation_for;
  if (type == "i32") return operation_for<std::int32_t>(built_in::sum);
  if (type == "i64") return operation_for<std::int64_t>(built_in::sum);
  if (type == "f32") return operation_for<float>(built_in::sum);
  if (type == "f64") return operation_for<double>(built_in::sum);
  throw hpe::error(HPE_ERROR_NOT_SUPPORTED, "no prefix sums for elements of type " + type);
}

template <class T>
void transform(int sign, const void* in, void* out, const hpe::fft::problem& what, int devices) {
  using hpe::fft::plan;
  const auto make = [&] {
    return std::make_unique<plan<T>>(what,
                                     hpe::fft::settings{.devices = devices, .soft_effort = hpe::fft::effort::estimate});
  };
  const auto run = [&](plan<T>& made) {
    const auto* from = static_cast<const std::complex<T>*>(in);
    auto* to = static_cast<std::complex<T>*>(out);
    if (sign < 0)
      made.forward(from, to);
    else
      made.inverse(from, to);
  };
  using std::to_string;
  plans<plan<T>>().use(
      described(to_string(what.rows), to_string(what.length), to_string(what.batch), to_string(devices)), make, run);
}

}  // namespace

const char* hpeAlgorithmsMessage(void) { return last_message.c_str(); }

hpeStatus hpeSort(const char* type, void* data, uint64_t elements, const int* devices, size_t count) {
  return guarded([&] {
    const std::vector<int> on(devices, devices + count);
    plans<hpe::sort::sorter>().use(
        described(type, std::to_string(elements), described(on)),
        [&] {
          const hpe::sort::element what = element_named(type);
          // Merges compare elements, so they cannot sort NaNs.
          const bool has_nans = what.radix.has_value() && what.radix->order == hpe::kernels::radix_order::floating;
          using hpe::sort::method;
          return std::make_unique<hpe::sort::sorter>(what, elements, on, has_nans ? method::radix : method::automatic);
        },
        [&](hpe::sort::sorter& made) { made.run(data); });
  });
}

hpeStatus hpeCumulativeSum(const char* type, void* data, uint64_t length, uint64_t problems, const int* devices,
                           size_t count) {
  return guarded([&] {
    const std::vector<int> on(devices, devices + count);
    plans<hpe::scan::plan>().use(
        described(type, std::to_string(length), std::to_string(problems), described(on)),
        [&] {
          return std::make_unique<hpe::scan::plan>(sum_named(type),
                                                   hpe::scan::batch{.length = length, .problems = problems},
                                                   hpe::scan::wishes{.devices = on, .cache = {}});
        },
        [&](hpe::scan::plan& made) { made.run(data, data); });
  });
}

hpeStatus hpeFourierTransform(int precision, int sign, const void* in, void* out, int64_t rows, int64_t length,
                              int64_t batch, int devices) {
  return guarded([&] {
    const hpe::fft::problem what{rows, length, batch};
    if (precision == sizeof(float))
      transform<float>(sign, in, out, what, devices);
    else
      transform<double>(sign, in, out, what, devices);
  });
}
