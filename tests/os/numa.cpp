#include "runtime/os/numa.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace {

using hpe::os::numa;

/// A folder with files like those in which Linux describes a machine.
class described_machine {
 public:
  described_machine()
      : folder_(testing::TempDir() + fmt::format("numa-{}-{}", ::getpid(), static_cast<const void*>(this))) {}
  ~described_machine() { std::filesystem::remove_all(folder_); }
  described_machine(const described_machine&) = delete;
  described_machine& operator=(const described_machine&) = delete;

  [[nodiscard]] const std::string& folder() const { return folder_; }
  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = folder_ + "/" + name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
  }
  void nodes(const std::string& list) const { write("devices/system/node/has_memory", list); }
  void cores(int node, const std::string& list) const {
    write(fmt::format("devices/system/node/node{}/cpulist", node), list);
  }
  void device(const std::string& address, int node) const {
    write("bus/pci/devices/" + address + "/numa_node", std::to_string(node));
  }

 private:
  const std::string folder_;
};

cpu_set_t cores_of_this_thread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  ::sched_getaffinity(0, sizeof set, &set);
  return set;
}

TEST(numa, the_node_of_a_device_is_the_node_at_its_bus) {
  const described_machine two;
  two.nodes("3,5");
  two.device("0000:1b:00.0", 3);
  two.device("0001:9b:1f.0", 5);
  const numa machine(two.folder());
  ASSERT_EQ(machine.nodes(), 2u);
  EXPECT_EQ(machine.node_near({0, 0x1b, 0}), 3);
  EXPECT_EQ(machine.node_near({1, 0x9b, 0x1f}), 5);
}

TEST(numa, devices_beside_the_nodes_and_unknown_ones_have_no_node) {
  const described_machine two;
  two.nodes("3,5");
  two.device("0000:1b:00.0", 3);
  two.device("0000:c0:00.0", -1);
  const numa machine(two.folder());
  EXPECT_EQ(machine.node_near({0, 0xc0, 0}), std::nullopt);
  EXPECT_EQ(machine.node_near({0, 0x1c, 0}), std::nullopt);
  EXPECT_EQ(machine.node_near({7, 0x1b, 0}), std::nullopt);
}

TEST(numa, a_device_of_a_machine_with_one_node_has_no_node) {
  const described_machine one;
  one.nodes("0");
  one.device("0000:1b:00.0", 0);
  EXPECT_EQ(numa(one.folder()).node_near({0, 0x1b, 0}), std::nullopt);
}

TEST(numa, counts_the_nodes_with_memory) {
  for (const auto& [list, count] : {std::pair("0", 1U), {"0-3", 4U}, {"0-1,8,10-11", 5U}, {"", 1U}}) {
    const described_machine any;
    any.nodes(list);
    EXPECT_EQ(numa(any.folder()).nodes(), count) << list;
  }
  EXPECT_EQ(numa("/there/is/no/such/folder").nodes(), 1u);
  EXPECT_GE(numa().nodes(), 1u);
}

TEST(numa, a_thread_settles_on_those_cores_of_a_node_that_the_process_may_use) {
  const cpu_set_t before = cores_of_this_thread();
  std::size_t last = 0;
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &before)) last = core;
  const described_machine two;
  two.nodes("0-1");
  two.cores(0, fmt::format("{},{}", last, CPU_SETSIZE - 1));  // the process may not use the second core
  two.cores(1, fmt::format("{}-{}", CPU_SETSIZE - 2, CPU_SETSIZE + 7));
  const numa machine(two.folder());
  std::thread([&] {
    EXPECT_FALSE(machine.settle_thread(1));
    cpu_set_t now = cores_of_this_thread();
    EXPECT_TRUE(CPU_EQUAL(&now, &before));
    EXPECT_TRUE(machine.settle_thread(0));
    now = cores_of_this_thread();
    EXPECT_EQ(CPU_COUNT(&now), 1);
    EXPECT_TRUE(CPU_ISSET(last, &now));
  }).join();
}

TEST(numa, refuses_nodes_that_are_not_there) {
  const numa machine;
  void* const memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::thread([&] {
    const cpu_set_t before = cores_of_this_thread();
    for (const int node : {-1, 1000, 1 << 30}) {
      EXPECT_FALSE(machine.settle_thread(node));
      EXPECT_FALSE(machine.settle_memory(memory, 4096, node));
    }
    const cpu_set_t after = cores_of_this_thread();
    EXPECT_TRUE(CPU_EQUAL(&after, &before));
  }).join();
  ::munmap(memory, 4096);
}

TEST(numa, settled_memory_is_usable) {
  constexpr std::size_t bytes = 1 << 20;
  const numa machine;
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  if (!machine.settle_memory(memory, bytes, 0)) GTEST_LOG_(INFO) << "the system places no memory (a container?)";
  std::memset(memory, 7, bytes);
  EXPECT_EQ(static_cast<unsigned char*>(memory)[bytes - 1], 7);
  ::munmap(memory, bytes);
}

}  // namespace
