// A cuFFT plan belongs to one device and has its own work area in hpe memory. Each use of the plan declares an access
// to this work area. Therefore, the uses run one after another, and freeing the work area waits for them.

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "apps/fft/cufft.h"
#include "apps/fft/local.h"

namespace hpe::fft {

namespace {

constexpr bool is_single(float) { return true; }
constexpr bool is_single(double) { return false; }

/// Queues a call of function(stream) in which `device` is the current device. The accesses determine for which earlier
/// work the call waits.
template <class Function>
void queue(int device, const char* what, Function function, std::initializer_list<hpeAccess> accesses) {
  const auto call = [](void* stream, void* self) noexcept { return (*static_cast<Function*>(self))(stream); };
  try {
    check(hpeEnqueue(device, call, &function, accesses.begin(), accesses.size()));
  } catch (const error& e) {
    throw error(e.status(), std::string("cuFFT, ") + what + ": " + e.what());
  }
}

class one_plan {
 public:
  one_plan(int device, const shape& what, bool single) : device_(device), cufft_(cufft::load()), single_(single) {
    std::size_t bytes = 0;
    const auto make = [&](void*) {
      long long lengths[2] = {what.lengths[0], what.lengths[1]};
      const bool flat = what.lengths[0] == 1;
      if (const auto s = cufft_.create(&handle_)) return s;
      made_ = true;
      if (const auto s = cufft_.set_auto_allocation(handle_, 0)) return s;
      return cufft_.make_plan_many(handle_, flat ? 1 : 2, lengths + (flat ? 1 : 0), nullptr, 1, 0, nullptr, 1, 0,
                                   single_ ? cufft::c2c : cufft::z2z, what.count, &bytes);
    };
    try {
      queue(device_, "making a plan", make, {});
      work_ = array<char>(std::max<std::size_t>(bytes, 1), on_device(device_));
      queue(device_, "setting the work area of a plan",
            [&](void*) { return cufft_.set_work_area(handle_, work_.data()); }, {});
    } catch (...) {
      destroy();
      throw;
    }
  }
  one_plan(const one_plan&) = delete;
  one_plan& operator=(const one_plan&) = delete;
  ~one_plan() {
    work_ = {};  // frees the old array here, which waits for its uses
    destroy();
  }

  void run(const hpeAccess& from, const hpeAccess& to, void* in, void* out, int sign) {
    const auto execute = [&](void* stream) {
      if (const auto s = cufft_.set_stream(handle_, stream)) return s;
      return single_ ? cufft_.execute_c2c(handle_, in, out, sign) : cufft_.execute_z2z(handle_, in, out, sign);
    };
    const hpeAccess work = inout(work_);
    if (in == out)
      queue(device_, "a transform", execute, {to, work});
    else
      queue(device_, "a transform", execute, {from, to, work});
  }

 private:
  void destroy() noexcept {
    if (!made_) return;
    auto call = [](void*, void* self) noexcept {
      auto& plan = *static_cast<one_plan*>(self);
      return plan.cufft_.destroy(plan.handle_);
    };
    // The error is ignored, because this function runs in destructors.
    static_cast<void>(hpeEnqueue(device_, call, this, nullptr, 0));
    made_ = false;
  }

  int device_;
  const cufft::library& cufft_;
  bool single_;
  cufft::handle handle_ = 0;
  bool made_ = false;
  array<char> work_;
};

template <class T>
class cufft_transforms final : public local_transforms<T> {
 public:
  void run(int device, const shape& what, int sign, const number<T>* in, number<T>* out) override {
    find(device, what)
        .run(read(in, what.elements()), written(out, what.elements(), in == out), const_cast<number<T>*>(in), out,
             sign);
  }

 private:
  one_plan& find(int device, const shape& what) {
    return plans_.try_emplace(std::pair(device, what), device, what, is_single(T{})).first->second;
  }

  std::map<std::pair<int, shape>, one_plan> plans_;
};

}  // namespace

template <class T>
std::unique_ptr<local_transforms<T>> make_cufft_transforms() {
  static_cast<void>(cufft::load());
  return std::make_unique<cufft_transforms<T>>();
}

template std::unique_ptr<local_transforms<float>> make_cufft_transforms();
template std::unique_ptr<local_transforms<double>> make_cufft_transforms();

}  // namespace hpe::fft
