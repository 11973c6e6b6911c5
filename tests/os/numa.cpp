#include "runtime/os/numa.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

// This test is built with and without hwloc. Without hwloc (HPE_TEST_HWLOC is 0), hpe knows no NUMA nodes.

namespace {

using hpe::os::numa;

/// Sets a variable of hwloc as long as the object exists.
class described_by {
 public:
  described_by(const char* variable, const std::string& value) : variable_(variable) {
    ::setenv(variable_, value.c_str(), 1);
  }
  ~described_by() { ::unsetenv(variable_); }
  described_by(const described_by&) = delete;
  described_by& operator=(const described_by&) = delete;

 private:
  const char* const variable_;
};

/// Returns a machine with two sockets. Each socket is a NUMA node with two cores; the nodes have the numbers 3 and 5.
/// There is one GPU at each socket, and a third GPU that belongs to no socket.
std::string two_sockets() {
  const auto socket = [](int number, int node, const char* mask, const char* nodes, const char* bus) {
    const std::string n = std::to_string(number);
    const std::string sets = std::string(R"(cpuset=")") + mask + R"(" complete_cpuset=")" + mask + R"(" nodeset=")" +
                             nodes + R"(" complete_nodeset=")" + nodes + '"';
    std::string text = R"(<object type="Package" os_index=")" + n + R"(" )" + sets + R"( gp_index="1)" + n + R"(">)";
    text += R"(<object type="NUMANode" os_index=")" + std::to_string(node) + R"(" )" + sets + R"( gp_index="2)" + n +
            R"(" local_memory="1073741824"/>)";
    for (int core = 2 * number; core < 2 * number + 2; ++core) {
      const std::string c = std::to_string(core);
      const std::string own = std::string(R"(cpuset="0x0000000)") + std::to_string(1 << core) +
                              R"(" complete_cpuset="0x0000000)" + std::to_string(1 << core) + R"(" nodeset=")" + nodes +
                              R"(" complete_nodeset=")" + nodes + '"';
      text += fmt::format(R"(<object type="Core" os_index="{0}" {1} gp_index="3{0}">)", c, own);
      text += fmt::format(R"(<object type="PU" os_index="{0}" {1} gp_index="4{0}"/></object>)", c, own);
    }
    text += R"(<object type="Bridge" gp_index="5)" + n + R"(" bridge_type="0-1" depth="0" bridge_pci="0000:[)" + bus +
            "-" + bus + R"(]">)";
    text += R"(<object type="PCIDev" gp_index="6)" + n + R"(" pci_busid="0000:)" + bus +
            R"(:00.0" pci_type="0302 [10de:2335] [10de:18be] a1" pci_link_speed="0.0"/></object></object>)";
    return text;
  };
  // hwloc's own XML reader, which is used if there is no libxml, requires these line ends.
  return R"(<?xml version="1.0" encoding="UTF-8"?>)"
         "\n"
         R"(<!DOCTYPE topology SYSTEM "hwloc2.dtd">)"
         "\n"
         R"(<topology version="2.0">)"
         R"(<object type="Machine" os_index="0" cpuset="0x0000000f" complete_cpuset="0x0000000f" allowed_cpuset="0x0000000f" )"
         R"(nodeset="0x00000028" complete_nodeset="0x00000028" allowed_nodeset="0x00000028" gp_index="1">)" +
         socket(0, 3, "0x00000003", "0x00000008", "1b") + socket(1, 5, "0x0000000c", "0x00000020", "9b") +
         R"(<object type="Bridge" gp_index="70" bridge_type="0-1" depth="0" bridge_pci="0000:[c0-c0]">)"
         R"(<object type="PCIDev" gp_index="71" pci_busid="0000:c0:00.0" pci_type="0302 [10de:2335] [10de:18be] a1" )"
         R"(pci_link_speed="0.0"/></object></object></topology>)";
}

class xml_file {
 public:
  explicit xml_file(const std::string& text)
      : name_(testing::TempDir() + "numa-" + std::to_string(::getpid()) + ".xml") {
    std::ofstream(name_) << text;
  }
  ~xml_file() { ::unlink(name_.c_str()); }
  xml_file(const xml_file&) = delete;
  xml_file& operator=(const xml_file&) = delete;
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  const std::string name_;
};

std::string cores_of_this_thread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  ::sched_getaffinity(0, sizeof set, &set);
  std::string text;
  for (int c = 0; c < CPU_SETSIZE; ++c)
    if (CPU_ISSET(c, &set)) text += std::to_string(c) + " ";
  return text;
}

class with_hwloc : public testing::Test {
 protected:
  void SetUp() override {
    if (!HPE_TEST_HWLOC) GTEST_SKIP() << "built without hwloc";
  }
};

using numa_choice = with_hwloc;
using numa_binding = with_hwloc;

TEST_F(numa_choice, is_the_node_of_the_socket_that_a_device_hangs_on) {
  const xml_file file(two_sockets());
  const described_by here("HWLOC_XMLFILE", file.name());
  const numa machine;
  ASSERT_EQ(machine.nodes(), 2u);
  EXPECT_EQ(machine.node_near({0, 0x1b, 0}), 3);
  EXPECT_EQ(machine.node_near({0, 0x9b, 0}), 5);
}

TEST_F(numa_choice, is_open_for_devices_beside_the_sockets_and_unknown_ones) {
  const xml_file file(two_sockets());
  const described_by here("HWLOC_XMLFILE", file.name());
  const numa machine;
  EXPECT_EQ(machine.node_near({0, 0xc0, 0}), std::nullopt);
  EXPECT_EQ(machine.node_near({0, 0x1c, 0}), std::nullopt);
  EXPECT_EQ(machine.node_near({7, 0x1b, 0}), std::nullopt);
}

TEST_F(numa_choice, counts_the_nodes_of_any_machine) {
  {
    const described_by here("HWLOC_SYNTHETIC", "pack:4 [numa] core:3 pu:2");
    EXPECT_EQ(numa().nodes(), 4u);
  }
  const described_by here("HWLOC_SYNTHETIC", "[numa] core:3 pu:2");
  EXPECT_EQ(numa().nodes(), 1u);
}

TEST_F(numa_choice, of_a_machine_that_cannot_be_read_is_none) {
  const described_by here("HWLOC_XMLFILE", "/nowhere/there/is/no/such/file.xml");
  const numa machine;
  EXPECT_GE(machine.nodes(), 1u);
  EXPECT_EQ(machine.node_near({0, 0x1b, 0}), std::nullopt);
}

TEST_F(numa_binding, of_another_machine_changes_nothing) {
  const described_by here("HWLOC_SYNTHETIC", "pack:2 [numa] core:2 pu:1");
  const numa machine;
  std::thread([&] {
    const std::string before = cores_of_this_thread();
    machine.settle_thread(0);
    machine.settle_thread(1);
    EXPECT_EQ(cores_of_this_thread(), before);
  }).join();
}

TEST_F(numa_binding, keeps_to_what_the_process_may_use) {
  // Runs in a child process, because the test binds the whole process, as taskset does.
  const auto child = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    ::sched_getaffinity(0, sizeof set, &set);
    for (int c = 0, kept = 0; c < CPU_SETSIZE; ++c)
      if (CPU_ISSET(c, &set) && kept++ > 0) CPU_CLR(c, &set);
    // Binds every thread, because a sanitizer may have its own threads.
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
      if (::sched_setaffinity(std::stoi(task.path().filename()), sizeof set, &set) != 0) return 2;
    const std::string before = cores_of_this_thread();
    const numa machine;
    int result = 1;
    std::thread([&] {
      // The test does not know the node of the remaining core, so it tries all nodes.
      bool settled = false;
      for (int node = 0; node < 64 && !settled; ++node) settled = machine.settle_thread(node);
      result = settled && cores_of_this_thread() == before ? 0 : 1;
    }).join();
    return result;
  };
  EXPECT_EXIT(std::_Exit(child()), testing::ExitedWithCode(0), "");
}

TEST_F(numa_binding, refuses_nodes_that_are_not_there) {
  const numa machine;
  void* const memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::thread([&] {
    const std::string before = cores_of_this_thread();
    for (const int node : {-1, 1000, 1 << 30}) {
      EXPECT_FALSE(machine.settle_thread(node));
      EXPECT_FALSE(machine.settle_memory(memory, 4096, node));
    }
    EXPECT_EQ(cores_of_this_thread(), before);
  }).join();
  ::munmap(memory, 4096);
}

TEST_F(numa_binding, leaves_memory_usable) {
  constexpr std::size_t bytes = 1 << 20;
  const numa machine;
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  // A container may forbid the call; the call then has no effect.
  static_cast<void>(machine.settle_memory(memory, bytes, 0));
  std::memset(memory, 7, bytes);
  EXPECT_EQ(static_cast<unsigned char*>(memory)[bytes - 1], 7);
  ::munmap(memory, bytes);
}

TEST(numa_without_hwloc, has_one_node_and_binds_nothing) {
  if (HPE_TEST_HWLOC) GTEST_SKIP() << "built with hwloc";
  const numa machine;
  EXPECT_EQ(machine.nodes(), 1u);
  EXPECT_EQ(machine.node_near({0, 0x1b, 0}), std::nullopt);
  EXPECT_FALSE(machine.settle_thread(0));
  EXPECT_FALSE(machine.settle_memory(nullptr, 4096, 0));
}

}  // namespace
