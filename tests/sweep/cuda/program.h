#pragma once

/// A CUDA program with a model of its memory. Each operation is a call of the driver, with its effect on the model. An
/// operation that fails may leave any bytes in the memory that it writes. An operation that succeeds leaves the right
/// bytes, and so does the work that the operation has queued.

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/sweep/cuda/failing_driver.h"
#include "tests/sweep/injection.h"

namespace sweep {

/// Return a function of the failing driver, or of the stand-in behind it.
void* find_in_driver(const char* name);
template <class Function>
Function* find_in_stand_in(const char* name) {
  return reinterpret_cast<Function*>(
      reinterpret_cast<stand_in_entry_function*>(find_in_driver("sweep_stand_in"))(name));
}

struct array {
  CUdeviceptr at = 0;
  std::vector<std::uint8_t> model;
  std::vector<std::uint8_t> known;  ///< for each byte: whether it has the model's value
  bool of_pool = false;
  std::vector<CUmemGenericAllocationHandle> parts{};  ///< for mapped memory: the handles of its parts
};

class program {
 public:
  /// report: called with one sentence for each error.
  explicit program(std::function<void(const std::string&)> report) : report_(std::move(report)) {}

  /// Starts the driver, as CUDA's runtime does, and loads the kernel. Returns false if that fails.
  bool start();
  /// Releases the program's context.
  void end();

  // ---- memory. A failed allocation returns nullptr.
  array* allocate(std::size_t bytes);
  array* allocate_rows(std::size_t width, std::size_t rows);
  array* allocate_of_pool(std::size_t bytes);
  void free(array* which);
  /// Creates memory by cuMemCreate and maps it, in two parts of half the bytes.
  array* map(std::size_t bytes);
  void unmap(array* which);

  // ---- work: on a stream or, without a stream, by the synchronous entry
  void upload(array* to, std::size_t offset, std::size_t bytes, std::uint8_t first, CUstream stream = nullptr);
  void download(array* from, std::size_t offset, std::size_t bytes, CUstream stream = nullptr);
  void copy(array* to, array* from, std::size_t bytes, CUstream stream = nullptr);
  /// Calls cuMemcpy, which finds the direction from the addresses.
  void copy_any(array* to, std::size_t offset, std::size_t bytes, std::uint8_t first);
  void copy_peer(array* to, array* from, std::size_t bytes, CUstream stream = nullptr);
  /// Copy rows as wide as half of the pitch, from the host or from another array; planes of four such rows; and planes
  /// between contexts.
  void copy_rows(array* to, array* from, CUstream stream = nullptr);
  void copy_planes(array* to, array* from, CUstream stream = nullptr);
  void copy_peer_planes(array* to, array* from, CUstream stream = nullptr);
  void fill(array* to, std::size_t offset, std::size_t bytes, std::uint8_t value, CUstream stream = nullptr);
  void fill_words(array* to, std::size_t words, std::uint32_t value, CUstream stream = nullptr);
  void fill_rows(array* to, std::uint32_t value, CUstream stream);
  /// Launches a kernel that sets to[n] = from[n] + value in every 1024th word.
  void launch(array* to, array* from, std::uint32_t value, CUstream stream = nullptr);
  /// Launches a kernel without PTX, which hpe cannot analyse. The kernel adds a value to the first word.
  void launch_unknown(array* to, std::uint32_t value, CUstream stream = nullptr);
  void write_word(array* to, std::uint32_t value, CUstream stream);

  CUstream make_stream();
  void end_stream(CUstream stream);
  void wait(CUstream stream);
  void wait_for_all();

  // ---- CPU code and calls of libc
  void write_by_cpu(array* to, std::size_t offset, std::size_t bytes, std::uint8_t first);
  void read_by_cpu(array* from, std::size_t offset, std::size_t bytes);
  void read_file(array* to, int file, std::size_t bytes);

  /// Makes any other call of the driver. Returns false if the call failed.
  bool call(const char* name, const std::function<CUresult()>& function);
  /// Repeats a call until it succeeds. Reports an error if the third call fails, unless the device is lost or
  /// is_given_up().
  void repeat(const char* name, const std::function<CUresult()>& function);
  /// The same as call() for hpe's C++ interface, which may throw.
  bool call_or_throw(const char* name, const std::function<void()>& function);
  /// Adds a function that runs before the memory is freed.
  void at_end(std::function<void()> cleanup) { cleanups_.push_back(std::move(cleanup)); }

  void known(array* which, std::size_t offset, const std::vector<std::uint8_t>& bytes);
  void unknown(array* which, std::size_t offset, std::size_t bytes);
  [[nodiscard]] static std::vector<std::uint8_t> pattern(std::size_t bytes, std::uint8_t first);
  [[nodiscard]] CUfunction kernel() const noexcept { return kernel_; }
  void report(const std::string& what) { report_(what); }

  /// verify() compares all memory with the model, and free_all() frees it. After the injected failures, no call may
  /// fail in these functions.
  void verify();
  void free_all();
  /// Whether a wait was refused; hpe has then given up the device, so all later calls fail.
  [[nodiscard]] bool is_given_up() const noexcept { return given_up_; }

 private:
  /// Makes a call that writes a range. The range then contains `bytes` if the call succeeds, and unknown bytes if it
  /// fails.
  bool write(const char* name, array* to, std::size_t offset, const std::vector<std::uint8_t>& bytes,
             const std::function<CUresult()>& function);
  /// Adds a value to a word in the model. `done`: whether the program's call succeeded.
  static void add_to_word(array* to, array* from, std::size_t at, std::uint32_t value, bool done);
  void take_box(array* to, array* from, const std::vector<std::uint8_t>* host, bool is_done, std::size_t planes);
  array* add(CUdeviceptr at, std::size_t bytes);
  void check(const char* name, CUresult result);

  std::function<void(const std::string&)> report_;
  bool given_up_ = false;
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  CUfunction kernel_ = nullptr;
  std::vector<std::unique_ptr<array>> arrays_;
  std::vector<CUstream> streams_;
  std::vector<std::function<void()>> cleanups_;
  struct download_of {
    std::vector<std::uint8_t> bytes, expected, known;
    bool is_done = false;
  };
  std::deque<download_of> downloads_;
  std::deque<std::vector<std::uint8_t>> sources_;  // the sources of queued copies
};

inline constexpr std::size_t mebibyte = std::size_t{1} << 20;
inline constexpr std::size_t box_pitch = 4096, box_rows = 64;

}  // namespace sweep
