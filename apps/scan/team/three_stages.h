#pragma once

#include <functional>
#include <span>
#include <utility>

#include "apps/scan/choice/choice.h"
#include "apps/scan/choice/premises.h"
#include "apps/scan/team/team_scan.h"

namespace hpe::scan {

/// A scan in three stages (Dieguez et al., sections 3.1 and 4.1): each device reduces the chunks of its part of every
/// problem, the first device scans the sums of all chunks, and each device scans its chunks, each from the prefix that
/// the second stage computed.
class three_stages final : public team_scan {
 public:
  three_stages(const kernel_set& with, const batch& work, std::vector<device_traits> devices);

  /// Sets K. Before the first call, K is the largest of candidates().
  void set_iterations(std::uint64_t iterations);
  [[nodiscard]] std::uint64_t iterations() const { return iterations_; }
  [[nodiscard]] const std::vector<std::uint64_t>& candidates() const { return candidates_; }

  /// Returns the number of chunks of each problem.
  [[nodiscard]] std::uint64_t sums_per_problem() const { return sums_per_problem_; }

  /// Replaces the second stage by the function `elsewhere`. Each queued scan calls this function, even if each problem
  /// is a single chunk. The function receives the sums [problem][chunk] on the first device, and replaces each sum by
  /// the prefix of its chunk. Work that it queues waits for the sums if the work declares accesses to them.
  using second_stage = std::function<void(std::span<std::byte> sums)>;
  void scan_sums_by(second_stage elsewhere) { elsewhere_ = std::move(elsewhere); }

  void queue(const arrays& where) override;
  [[nodiscard]] std::string explain() const override;

 private:
  /// Whether all three stages run: if a problem has several chunks, or if `elsewhere` computes the second stage.
  /// Otherwise only the third stage runs.
  [[nodiscard]] bool staged() const { return sums_per_problem_ > 1 || elsewhere_; }
  [[nodiscard]] kernels::scan_share share_of(std::size_t d) const;
  [[nodiscard]] hpeShape shape(std::size_t d, std::uint64_t blocks) const;
  /// Calls launch(device, ranges of the arrays that the device uses, shape) for each device that has chunks.
  template <class Launch>
  void for_shares(const arrays& where, stage_kernel_parameters& p, Launch launch) const;
  void queue_sums(stage_kernel_parameters& p) const;
  void queue_chunks(const arrays& where, stage_kernel_parameters& p) const;

  const kernel_set& with_;
  const batch work_;
  const std::vector<device_traits> devices_;
  const bool connected_;  ///< the devices reach each other's memory
  const stage_parameters chosen_;
  std::vector<std::uint64_t> candidates_;
  std::uint64_t iterations_ = 0;
  std::uint64_t sums_per_problem_ = 0;
  array<std::byte> sums_;  ///< [problem][chunk], on the first device
  second_stage elsewhere_;
};

/// Returns the shape for a launch of the second stage's kernel.
[[nodiscard]] hpeShape shape_of_sums(const device_traits& on, std::uint64_t problems, std::uint64_t sums_per_problem);

}  // namespace hpe::scan
