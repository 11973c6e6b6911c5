#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "interpose/gpu/oversubscribed/oversubscribed.h"
#include "interpose/gpu/work/launch_parameters.h"

namespace hpe::spread {
class kernel_model;
}

namespace hpe::cuda_hooks {

/// The launches of a thread that hpe has left on one GPU, and that need no decision as long as nothing that hpe knows
/// about their memory has changed. Launches are equal if they have the same kernel, shape, stream, pointers and
/// decisive parameters (kernel_model). Launches of kernels that hpe has not analysed are equal if they are on one
/// stream. Each thread has an object of its own.
class known_launches {
 public:
  /// The result of hpe's examination of a launch.
  struct finding {
    std::uint64_t changes = 0;              // launch_planner::changes(), before the decision
    std::uint32_t same_for = 0;             // launch_planner::plan::same_for, less the launches since then
    bool writes_anything = false;           // whether the launch may write any memory, even the driver's
    oversubscribed::repeatable submission;  // of the latest equal launch
  };

  /// Returns the object of the calling thread; null if the thread's variables have been destroyed, in exit handlers.
  /// The object is not itself a variable of the thread, because programs may load libhpe.so later, when there is little
  /// thread-local storage left for it.
  [[nodiscard]] static known_launches* of_thread();

  /// Returns the finding about an equal launch; null if there is none. The object forgets all launches when `version`
  /// is another number than in the last call.
  [[nodiscard]] finding* find(const program_launch& what, std::uint64_t version);
  /// Returns the finding about the launches of kernels on a stream that hpe has not analysed. With --oversubscribe
  /// alone, hpe analyses no kernel as long as all data is in device memory. The caller may change the finding.
  [[nodiscard]] finding& unknown_on(CUstream stream);
  /// Adds a finding about a launch. kernel: null if hpe has not analysed the kernel, so that its parameters do not
  /// matter; the same in all calls for a kernel.
  void add(const program_launch& what, const spread::kernel_model* kernel, const finding& found);

 private:
  /// A part of a parameter that belongs to the key of a launch.
  struct key_part {
    std::uint32_t parameter = 0, offset = 0, bytes = 0;
  };
  struct hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view key) const noexcept { return std::hash<std::string_view>()(key); }
  };
  // Limits. Multigrid solvers repeat thousands of different launches.
  static constexpr std::size_t most_kernels = 1024, most_launches = 16384, most_streams = 1024;

  [[nodiscard]] static std::vector<key_part> parts_of(const spread::kernel_model& kernel);
  /// Sets key_ to the key of a launch. Returns false if the launch does not pass its parameters one by one.
  [[nodiscard]] bool make_key(const program_launch& what, const std::vector<key_part>& parts);

  std::uint64_t version_ = 0;
  std::string key_;
  std::unordered_map<CUfunction, std::optional<std::vector<key_part>>> kernels_;  // nullopt: not analysed
  std::unordered_map<std::string, finding, hash, std::equal_to<>> launches_;
  std::unordered_map<CUstream, finding> unknown_;  // by stream
};

}  // namespace hpe::cuda_hooks
