#include "bench/gather/cusparse.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <type_traits>

namespace hpe::bench {

namespace {

// Values of enumerators in <cusparse.h> and <library_types.h>, which may be absent when hpe is built.
constexpr int as_it_is = 0, index_32 = 2, base_zero = 0, csr_algorithm_1 = 2, real_32 = 0, real_64 = 1;

/// The functions of cuSPARSE that the benchmark calls, with the types of <cusparse.h>.
struct library {
  int (*create)(void** handle);
  int (*destroy)(void* handle);
  int (*set_stream)(void* handle, void* stream);
  int (*create_csr)(void** matrix, std::int64_t rows, std::int64_t columns, std::int64_t elements, const void* first,
                    const void* column, const void* values, int offset_type, int column_type, int base, int value_type);
  int (*create_vector)(void** vector, std::int64_t size, const void* values, int type);
  int (*destroy_matrix)(void* matrix);
  int (*destroy_vector)(void* vector);
  int (*work_size)(void* handle, int operation, const void* alpha, void* matrix, void* from, const void* beta, void* to,
                   int type, int algorithm, std::size_t* bytes);
  int (*multiply)(void* handle, int operation, const void* alpha, void* matrix, void* from, const void* beta, void* to,
                  int type, int algorithm, void* work);
};

void* open_library() {
  for (const char* name :
       {"libcusparse.so.12", "libcusparse.so.13", "libcusparse.so.11", "/usr/local/cuda/lib64/libcusparse.so"})
    if (void* const opened = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) return opened;
  return nullptr;
}

const library& load() {
  static const library loaded = [] {
    void* const opened = open_library();
    if (opened == nullptr) throw error(HPE_ERROR_NOT_SUPPORTED, "cuSPARSE cannot be loaded");
    library it{};
    const auto find = [&](const char* name, auto& function) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(opened, name));
      if (function == nullptr) throw error(HPE_ERROR_NOT_SUPPORTED, fmt::format("this cuSPARSE has no {}", name));
    };
    find("cusparseCreate", it.create);
    find("cusparseDestroy", it.destroy);
    find("cusparseSetStream", it.set_stream);
    find("cusparseCreateCsr", it.create_csr);
    find("cusparseCreateDnVec", it.create_vector);
    find("cusparseDestroySpMat", it.destroy_matrix);
    find("cusparseDestroyDnVec", it.destroy_vector);
    find("cusparseSpMV_bufferSize", it.work_size);
    find("cusparseSpMV", it.multiply);
    return it;
  }();
  return loaded;
}

constexpr double one = 1, zero = 0;
constexpr float one_32 = 1, zero_32 = 0;
const void* one_of(int type) { return type == real_32 ? static_cast<const void*>(&one_32) : &one; }
const void* zero_of(int type) { return type == real_32 ? static_cast<const void*>(&zero_32) : &zero; }

}  // namespace

bool cusparse_product::installed() { return open_library() != nullptr; }

/// Queues function(stream) as device work of hpe, ordered after and before other uses of the arrays A, x and y. During
/// the call, the device's CUDA context is current.
template <class Function>
void cusparse_product::queue(Function function) const {
  const auto call = [](void* stream, void* self) noexcept { return (*static_cast<Function*>(self))(stream); };
  check(hpeEnqueueLocked(device_, call, &function, uses_.data(), uses_.size()));
}

template <class T>
cusparse_product::cusparse_product(const sparse::compressed_rows<T>& a, const array<T>& x, const array<T>& y,
                                   int device)
    : device_(device),
      type_(std::is_same_v<T, float> ? real_32 : real_64),
      uses_{in(a.first), in(a.column), in(a.values), in(x), out(y)} {
  const library& cusparse = load();
  std::size_t bytes = 0;
  queue([&](void* stream) {
    if (const int status = cusparse.create(&handle_)) return status;
    if (const int status = cusparse.set_stream(handle_, stream)) return status;
    if (const int status =
            cusparse.create_csr(&matrix_, static_cast<std::int64_t>(a.rows), static_cast<std::int64_t>(a.columns),
                                static_cast<std::int64_t>(a.elements()), a.first.data(), a.column.data(),
                                a.values.data(), index_32, index_32, base_zero, type_))
      return status;
    if (const int status = cusparse.create_vector(&from_, static_cast<std::int64_t>(a.columns), x.data(), type_))
      return status;
    if (const int status = cusparse.create_vector(&to_, static_cast<std::int64_t>(a.rows), y.data(), type_))
      return status;
    return cusparse.work_size(handle_, as_it_is, one_of(type_), matrix_, from_, zero_of(type_), to_, type_,
                              csr_algorithm_1, &bytes);
  });
  work_ = array<std::byte>(bytes, on_device(device));
  if (bytes > 0) uses_.push_back(inout(work_));
}

cusparse_product::~cusparse_product() {
  if (handle_ == nullptr) return;
  synchronize();
  const library& cusparse = load();
  static_cast<void>(cusparse.destroy_matrix(matrix_));
  static_cast<void>(cusparse.destroy_vector(from_));
  static_cast<void>(cusparse.destroy_vector(to_));
  static_cast<void>(cusparse.destroy(handle_));
}

void cusparse_product::run() {
  const library& cusparse = load();
  queue([&](void* stream) {
    if (const int status = cusparse.set_stream(handle_, stream)) return status;
    return cusparse.multiply(handle_, as_it_is, one_of(type_), matrix_, from_, zero_of(type_), to_, type_,
                             csr_algorithm_1, work_.data());
  });
}

template cusparse_product::cusparse_product(const sparse::compressed_rows<float>&, const array<float>&,
                                            const array<float>&, int);
template cusparse_product::cusparse_product(const sparse::compressed_rows<double>&, const array<double>&,
                                            const array<double>&, int);

}  // namespace hpe::bench
