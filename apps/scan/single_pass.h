#pragma once

#include "apps/scan/choice.h"
#include "apps/scan/team_scan.h"

namespace hpe::scan {

/// A scan in one pass over the data by one or several devices. Several deal the tiles out among each other, granule by
/// granule, and tell each other the totals of tiles in the memory of each: data should be placed in granules
/// as well (cyclic_distribution), so that each device reads and writes its own memory only.
class single_pass final : public team_scan {
 public:
  /// The devices reach each other. work.inclusive and the problems count for the team.
  single_pass(const kernel_set& with, const batch& work, std::vector<device_traits> devices);
  void queue(const arrays& where) override;
  [[nodiscard]] std::string explain() const override;

 private:
  void begin_launch();
  [[nodiscard]] single_pass_parameters parameters(const arrays& where) const;

  const kernel_set& with_;
  const batch work_;
  const std::vector<device_traits> devices_;
  const std::uint32_t room_;                  ///< elements in a tile, at most
  std::vector<array<std::byte>> workspaces_;  ///< of each device; see layout in the .cpp
  std::uint32_t launch_ = 0;
};

}  // namespace hpe::scan
