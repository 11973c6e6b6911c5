#include "runtime/os/numa.h"

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/os/thread.h"

namespace hpe::os {

namespace {

// Reads a file of Linux that contains a list of numbers, such as "0-3,8"; a missing file contains none.
std::vector<unsigned> numbers_in(const std::string& file) {
  std::vector<unsigned> result;
  std::ifstream in(file);
  unsigned first = 0;
  while (in >> first) {
    unsigned last = first;
    if (in.peek() == '-') in.ignore() >> last;
    for (unsigned n = first; n <= last; ++n) result.push_back(n);
    if (in.peek() == ',') in.ignore();
  }
  return result;
}

}  // namespace

numa::numa(std::string system) : system_(std::move(system)) {
  const std::size_t found = numbers_in(system_ + "/devices/system/node/has_memory").size();
  nodes_ = std::max(1U, static_cast<unsigned>(found));
}

std::string numa::folder_of(int node) const { return fmt::format("{}/devices/system/node/node{}", system_, node); }

// Linux writes -1 for a device that is attached to several nodes, for example to the whole machine.
std::optional<int> numa::node_near(const pci_address& device) const {
  if (nodes_ == 1) return std::nullopt;
  std::ifstream in(fmt::format("{}/bus/pci/devices/{:04x}:{:02x}:{:02x}.0/numa_node", system_, device.domain,
                               device.bus, device.device));
  int node = -1;
  return in >> node && node >= 0 ? std::optional(node) : std::nullopt;
}

bool numa::settle_thread(int node) const {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (const unsigned core : numbers_in(folder_of(node) + "/cpulist"))
    if (core < CPU_SETSIZE) CPU_SET(core, &cores);
  return keep_to(cores);
}

bool numa::settle_memory(void* address, std::size_t bytes, int node) const {
  if (::access(folder_of(node).c_str(), F_OK) != 0) return false;
  constexpr unsigned bits = 8 * sizeof(unsigned long);
  const auto at = static_cast<unsigned>(node);
  std::vector<unsigned long> nodes(at / bits + 1);
  nodes.back() = 1UL << at % bits;
  // Linux ignores the last of the bits whose number is passed.
  return ::syscall(SYS_mbind, address, bytes, MPOL_PREFERRED, nodes.data(), nodes.size() * bits + 1, 0) == 0;
}

}  // namespace hpe::os
