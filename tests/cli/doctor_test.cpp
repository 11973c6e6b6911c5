// `hpe doctor`: its findings about programs on several kinds of machines, and about this machine. Tests with programs
// of nvcc are in tests/interpose/soft/cudart/programs/doctor_test.cpp.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/command_line/bad_input.h"
#include "apps/hpe/doctor/examined_program.h"
#include "tests/shell.h"

namespace {

using hpe::cli::examined_program;
using hpe::cli::finding;
using hpe::cli::machine_facts;
using state = hpe::cli::finding::state;

constexpr std::uint64_t gibi = 1 << 30;
const machine_facts two_soft_devices{false, {}, {4 * gibi, 4 * gibi}};
const machine_facts two_gpus{true, {90, 90}, {80 * gibi, 80 * gibi}};
const machine_facts one_gpu{true, {90}, {80 * gibi}};

/// Returns the examination of a dynamically linked program that nvcc has compiled.
examined_program cuda_program(bool shared, std::set<std::uint32_t> ptx, std::set<std::uint32_t> machine_code) {
  examined_program p;
  p.path = "/opt/program";
  p.is_elf = p.is_dynamic = true;
  if (shared) p.runtimes = {"libcudart.so.13"};
  p.cuda.push_back({p.path,
                    {.has_own_runtime = !shared,
                     .has_ptx = !ptx.empty(),
                     .has_functions = true,
                     .ptx_architectures = std::move(ptx),
                     .machine_code_architectures = std::move(machine_code)}});
  p.kernels = {3, 2, 0, {{"its blocks wait for each other", 1}}};
  return p;
}

finding mode(const examined_program& p, const machine_facts& machine, std::size_t number) {
  return hpe::cli::modes_of(p, machine).at(number);
}
finding plain(const examined_program& p, const machine_facts& machine) { return mode(p, machine, 0); }
finding spread(const examined_program& p, const machine_facts& machine) { return mode(p, machine, 1); }
finding oversubscribed(const examined_program& p, const machine_facts& machine) { return mode(p, machine, 2); }

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(doctor, soft_devices_need_the_shared_runtime_and_ptx) {
  EXPECT_EQ(plain(cuda_program(true, {75}, {}), two_soft_devices).how, state::good);
  const finding its_own = plain(cuda_program(false, {75}, {}), two_soft_devices);
  EXPECT_EQ(its_own.how, state::bad);
  EXPECT_TRUE(has(its_own.text, "contains a static CUDA runtime")) << its_own.text;
  EXPECT_TRUE(has(its_own.remedy, "-cudart shared")) << its_own.remedy;
  const finding no_ptx = plain(cuda_program(true, {}, {90}), two_soft_devices);
  EXPECT_EQ(no_ptx.how, state::bad);
  EXPECT_TRUE(has(no_ptx.text, "machine code for particular GPUs only")) << no_ptx.text;
  examined_program old = cuda_program(true, {75}, {});
  old.runtimes = {"libcudart.so.11.0"};
  EXPECT_EQ(plain(old, two_soft_devices).how, state::bad);
}

TEST(doctor, libraries_that_hpe_brings_are_not_missing_on_soft_devices) {
  examined_program p = cuda_program(true, {75}, {});
  p.missing = {"libcudart.so.13"};
  EXPECT_EQ(plain(p, two_soft_devices).how, state::good);
  EXPECT_EQ(plain(p, two_gpus).how, state::bad) << "on GPUs, the program loads NVIDIA's CUDA runtime";
  p.missing = {"libcudart.so.13", "libelse.so.2"};
  const finding f = plain(p, two_soft_devices);
  EXPECT_EQ(f.how, state::bad);
  EXPECT_TRUE(has(f.text, "libelse.so.2") && !has(f.text, "libcudart")) << f.text;
}

TEST(doctor, a_gpu_needs_code_that_it_can_run) {
  EXPECT_EQ(plain(cuda_program(false, {}, {90}), two_gpus).how, state::good);
  EXPECT_EQ(plain(cuda_program(false, {80}, {}), two_gpus).how, state::good) << "the driver compiles PTX";
  EXPECT_EQ(plain(cuda_program(false, {}, {80}), two_gpus).how, state::bad) << "another major version";
  EXPECT_EQ(plain(cuda_program(false, {100}, {80}), two_gpus).how, state::bad) << "PTX for newer GPUs";
  const finding f = plain(cuda_program(false, {}, {80, 86}), two_gpus);
  EXPECT_TRUE(has(f.text, "sm_90") && has(f.text, "machine code for sm_80, sm_86")) << f.text;
  EXPECT_EQ(plain(cuda_program(false, {}, {86}), {true, {89}, {gibi}}).how, state::good);
  EXPECT_EQ(plain(cuda_program(false, {}, {89}), {true, {86}, {gibi}}).how, state::bad);
}

TEST(doctor, says_how_many_kernels_could_be_spread) {
  const finding f = spread(cuda_program(true, {75}, {}), two_soft_devices);
  EXPECT_EQ(f.how, state::good);
  EXPECT_EQ(f.text, "2 of 3 kernels could be spread over 2 devices");
  ASSERT_EQ(f.more.size(), 1U);
  EXPECT_EQ(f.more[0], "1 stays on one device: its blocks wait for each other");
  EXPECT_EQ(spread(cuda_program(true, {75}, {}), one_gpu).how, state::note);
  const finding none = spread(cuda_program(true, {}, {90}), two_gpus);
  EXPECT_EQ(none.how, state::note);
  EXPECT_TRUE(has(none.text, "no PTX")) << none.text;
}

TEST(doctor, says_what_may_be_larger_than_a_device) {
  const finding f = oversubscribed(cuda_program(true, {75}, {}), two_gpus);
  EXPECT_EQ(f.how, state::good);
  EXPECT_TRUE(has(f.text, "the 81920 MiB of a device")) << f.text;
}

TEST(doctor, what_does_not_run_at_all_does_not_run_in_any_mode) {
  examined_program fixed;
  fixed.is_elf = true;
  for (std::size_t number : {0, 1, 2}) {
    EXPECT_EQ(mode(fixed, two_gpus, number).how, state::bad) << number;
    EXPECT_EQ(mode({}, two_gpus, number).how, state::bad) << number;
  }
  EXPECT_TRUE(has(plain(fixed, two_gpus).text, "linked statically"));
}

TEST(doctor, a_program_without_cuda_is_no_trouble) {
  const examined_program p = hpe::cli::examine("sh");
  EXPECT_TRUE(p.is_elf && p.is_dynamic && !p.has_cuda()) << p.path;
  EXPECT_FALSE(p.libraries.empty());
  EXPECT_TRUE(p.missing.empty());
  for (const finding& f : hpe::cli::modes_of(p, two_soft_devices)) EXPECT_NE(f.how, state::bad) << f.text;
  EXPECT_TRUE(hpe::cli::examine(HPE_COMMAND).is_linked_with_hpe);
}

TEST(doctor, a_script_is_judged_by_its_interpreter) {
  const std::filesystem::path script =
      std::filesystem::path(::testing::TempDir()) / fmt::format("hpe-doctor-{}", ::getpid());
  for (const char* const first : {"#!/bin/sh\n", "#! /usr/bin/env sh\n", "#!/usr/bin/env -S sh -e\n"}) {
    std::ofstream(script) << first;
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    const examined_program p = hpe::cli::examine(script);
    EXPECT_EQ(p.script, script.string()) << first;
    EXPECT_EQ(std::filesystem::path(p.path).filename(), "sh") << first;
    EXPECT_EQ(hpe::cli::parts_of(p).at(0).subject, "script");
  }
  std::filesystem::remove(script);
}

outcome doctor(const std::string& arguments, const std::string& before = "HPE_DEVICES=soft:2 HPE_SOFT_MEMORY=64M") {
  return shell(fmt::format("{} COLUMNS=200 '{}' doctor {}", before, HPE_COMMAND, arguments));
}

TEST(doctor, checks_the_devices_of_this_machine) {
  const outcome o = doctor("");
  EXPECT_EQ(exit_status(o), 0) << o.text;
  for (const char* part : {"device 0", "device 1", "copies to all devices are right", "MPI library", "/dev/shm",
                           "vm.max_map_count", "container", "Everything works."})
    EXPECT_TRUE(has(o.text, part)) << part << "\n" << o.text;
}

TEST(doctor, names_the_library_that_is_not_found) {
  const outcome lacking = doctor(HPE_LACKS_A_LIBRARY);
  EXPECT_EQ(exit_status(lacking), 1) << lacking.text;
  EXPECT_TRUE(has(lacking.text, "libcli-absent.so not found")) << lacking.text;
  EXPECT_FALSE(has(lacking.text, "linked statically")) << lacking.text;
}

TEST(doctor, fails_where_hpe_does_not_start) {
  const outcome o = doctor("", "HPE_DEVICES=nonsense");
  EXPECT_EQ(exit_status(o), 1) << o.text;
  EXPECT_TRUE(has(o.text, "BAD   runtime")) << o.text;
  EXPECT_TRUE(has(o.text, "nonsense")) << o.text;
}

TEST(doctor_preloads, tells_the_peak_of_device_memory_of_a_run) {
  const outcome o = doctor("--run --json - -- '" HPE_COMMAND "' wave 96 --steps 20 --quiet");
  ASSERT_EQ(exit_status(o), 0) << o.text;
  const nlohmann::json trial = nlohmann::json::parse(o.text).at("trial");
  EXPECT_EQ(trial.at("exit_status"), 0);
  ASSERT_EQ(trial.at("peaks").size(), 2U) << trial;
  for (const nlohmann::json& peak : trial.at("peaks")) {
    EXPECT_GT(peak.at("most_bytes"), std::uint64_t{96} * 96 * 48 * 4) << "half of one field";
    EXPECT_LE(peak.at("most_bytes"), peak.at("memory_bytes"));
    EXPECT_EQ(peak.at("memory_bytes"), std::uint64_t{64} << 20);
  }
}

TEST(doctor_preloads, tells_how_a_run_ended) {
  const outcome failed = doctor("--run -- sh -c 'exit 3'");
  EXPECT_EQ(exit_status(failed), 1) << failed.text;
  EXPECT_TRUE(has(failed.text, "exit status 3")) << failed.text;
  const outcome killed = doctor("--run -- sh -c 'kill -9 $$'");
  EXPECT_EQ(exit_status(killed), 1) << killed.text;
  EXPECT_TRUE(has(killed.text, "signal 9 ended the program")) << killed.text;
}

TEST(doctor, refuses_what_cannot_be_meant) {
  for (const char* arguments :
       {"/no/such/program", "no-such-program-in-path", "/etc/passwd", "--run", "sh -- sh", "sh -c"})
    EXPECT_EQ(exit_status(doctor(arguments)), 2) << arguments;
}

}  // namespace
