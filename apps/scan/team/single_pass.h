#pragma once

#include "apps/scan/choice/choice.h"
#include "apps/scan/team/team_scan.h"

namespace hpe::scan {

/// A scan in one pass over the data by one or several devices. Several devices divide the tiles among themselves,
/// granule by granule in turn, and write the totals of chunks to the memory of each device. The data should be placed
/// by granules too (cyclic_distribution), so that each device accesses only its own memory.
class single_pass final : public team_scan {
 public:
  /// The devices must reach each other's memory. work: the problems of the team.
  single_pass(const kernel_set& with, const batch& work, std::vector<device_traits> devices);
  void queue(const arrays& where) override;
  [[nodiscard]] std::string explain() const override;

 private:
  void begin_launch();
  [[nodiscard]] single_pass_parameters parameters(const arrays& where) const;

  const kernel_set& with_;
  const batch work_;
  const std::vector<device_traits> devices_;
  const std::uint32_t room_;                  ///< largest number of elements in a tile
  std::vector<array<std::byte>> workspaces_;  ///< workspace of each device; single_pass.cpp describes its layout
  std::uint32_t launch_ = 0;
};

}  // namespace hpe::scan
