#include "apps/imaging/cublas.h"

#include <dlfcn.h>

#include <string>

#include "hpe/error.hpp"

namespace hpe::imaging {

namespace {

constexpr int as_it_is = 0;  // CUBLAS_OP_N

/// The functions of cuBLAS that this file calls, as <cublas_v2.h> declares them.
struct library {
  int (*create)(void** handle);
  int (*destroy)(void* handle);
  int (*set_stream)(void* handle, void* stream);
  int (*sgemm)(void* handle, int a_form, int b_form, int m, int n, int k, const float* alpha, const float* a, int lda,
               const float* b, int ldb, const float* beta, float* c, int ldc);
};

void* open_library(std::string& words) {
  for (const char* name :
       {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "/usr/local/cuda/lib64/libcublas.so"}) {
    if (void* const opened = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) return opened;
    if (words.empty()) words = ::dlerror();  // NOLINT(concurrency-mt-unsafe): the words of this thread's call
  }
  return nullptr;
}

template <class Function>
void find(void* opened, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(opened, name));
  if (function == nullptr)
    throw error(HPE_ERROR_NOT_SUPPORTED, std::string("the cuBLAS library lacks the function ") + name);
}

const library& load() {
  static const library loaded = [] {
    std::string words;
    void* const opened = open_library(words);
    if (opened == nullptr) throw error(HPE_ERROR_NOT_SUPPORTED, "cuBLAS: " + words);
    library it{};
    find(opened, "cublasCreate_v2", it.create);
    find(opened, "cublasDestroy_v2", it.destroy);
    find(opened, "cublasSetStream_v2", it.set_stream);
    find(opened, "cublasSgemm_v2", it.sgemm);
    return it;
  }();
  return loaded;
}

/// Queues a call of function(stream) in which `device` is the current device. The accesses determine for which earlier
/// work the call waits.
template <class Function>
void queue(int device, Function function, std::initializer_list<hpeAccess> accesses) {
  const auto call = [](void* stream, void* self) noexcept { return (*static_cast<Function*>(self))(stream); };
  check(hpeEnqueue(device, call, &function, accesses.begin(), accesses.size()));
}

}  // namespace

bool cublas_handle::installed() {
  std::string ignored;
  return open_library(ignored) != nullptr;
}

cublas_handle::cublas_handle(int device) : device_(device) {
  const library& cublas = load();
  queue(device, [&](void*) { return cublas.create(&handle_); }, {});
}

cublas_handle::~cublas_handle() {
  if (handle_ == nullptr) return;
  auto call = [](void*, void* handle) noexcept { return load().destroy(handle); };
  // The error is ignored, because a destructor cannot report it.
  static_cast<void>(hpeEnqueue(device_, call, handle_, nullptr, 0));
}

void cublas_handle::multiply(const hpe::array<float>& a, const hpe::array<float>& b, const hpe::array<float>& c, int n,
                             bool replace) {
  const library& cublas = load();
  const auto work = [&](void* stream) {
    if (const int status = cublas.set_stream(handle_, stream)) return status;
    const float one = 1, old = replace ? 0 : 1;
    // cuBLAS reads these row-major matrices as column-major, that is, transposed. The operands are exchanged, because
    // the transpose of a b is the product of the transposed b and the transposed a.
    return cublas.sgemm(handle_, as_it_is, as_it_is, n, n, n, &one, b.data(), n, a.data(), n, &old, c.data(), n);
  };
  queue(device_, work, {in(a), in(b), replace ? out(c) : inout(c)});
}

}  // namespace hpe::imaging
