// Tests how hpe finds out from a program's file which CUDA runtime the program uses, and the message of `hpe run`.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "interpose/soft/cudart/notice/relink_notice.h"
#include "tests/interpose/soft/cudart/programs/soft_run.h"

namespace {

using hpe::cudart::read_cuda_parts;
using hpe::cudart::relink_notice;

constexpr const char* relink = "Link it again with the shared runtime";
constexpr const char* compile = "-arch=compute_75";

class temporary_file {
 public:
  temporary_file() : path_("/tmp/hpe-notice-" + std::to_string(::getpid())) {}
  temporary_file(const temporary_file&) = delete;
  temporary_file& operator=(const temporary_file&) = delete;
  ~temporary_file() { std::filesystem::remove(path_); }
  void write(const std::string& content) const { std::ofstream(path_, std::ios::binary) << content; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

struct kind {
  const char* name;
  bool own_runtime;
  bool ptx;
};

TEST(CudaParts, OfProgramsThatNvccMade) {
  for (const kind& k :
       {kind{"small-shared", false, true}, kind{"small-shared-stripped", false, true}, kind{"small-rpath", false, true},
        kind{"small-parts", false, true}, kind{"small-cubin", false, false}, kind{"libplugin.so", false, true},
        kind{"driver-only", false, true}, kind{"libplugin-static.so", true, true}, kind{"small-static", true, true},
        kind{"small-static-stripped", true, true}, kind{"small-static-fixed", true, true},
        kind{"small-static-fixed-stripped", true, true}, kind{"small-static-parts", true, true},
        kind{"small-static-cubin", true, false}}) {
    const auto parts = read_cuda_parts(cuda_program(k.name));
    ASSERT_TRUE(parts.has_value()) << k.name;
    EXPECT_EQ(parts->has_own_runtime, k.own_runtime) << k.name;
    EXPECT_EQ(parts->has_ptx, k.ptx) << k.name;
    const auto text = relink_notice(k.name, parts);
    EXPECT_EQ(text.has_value(), k.own_runtime) << k.name;
    if (!text) continue;
    EXPECT_NE(text->find(relink), std::string::npos) << *text;
    EXPECT_EQ(text->find(compile) != std::string::npos, !k.ptx) << *text;
  }
}

TEST(CudaParts, NoneInOtherFiles) {
  const temporary_file file;
  for (const char* const path : {"/bin/sh", HPE_TEST_PLUGIN_HOST, "/no/such/file", "/", "/dev/null", "/etc/passwd"})
    EXPECT_FALSE(read_cuda_parts(path).has_value()) << path;
  for (const char* const content : {"", "\177", "\177ELF", "#!/bin/sh\n"}) {
    file.write(content);
    EXPECT_FALSE(read_cuda_parts(file.path()).has_value()) << content;
  }
}

TEST(CudaParts, ADamagedFileIsNoHarm) {
  const std::string whole = content_of(cuda_program("small-shared"));
  ASSERT_GT(whole.size(), 10000U);
  const temporary_file file;
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::string damaged = whole;
    if (round % 4 == 0) {
      damaged.resize(random() % whole.size());
    } else {  // damages the header, the table of sections at the end, or any other part of the file
      const std::size_t at =
          round % 4 == 1 ? random() % 64 : whole.size() - 1 - random() % (round % 4 == 2 ? 2000 : whole.size());
      for (std::size_t i = at; i < std::min(at + 8, whole.size()); ++i) damaged[i] = static_cast<char>(random());
    }
    file.write(damaged);
    EXPECT_NO_THROW(static_cast<void>(read_cuda_parts(file.path())));
  }
}

TEST(Notice, TellsAProgramWithARuntimeOfItsOwnToRelink) {
  for (const char* const name : {"small-static", "small-static-stripped", "small-static-fixed-stripped"}) {
    const outcome o = soft_run(cuda_program(name));
    EXPECT_NE(o.text.find(std::string(name) + " contains a static CUDA runtime"), std::string::npos) << o.text;
    EXPECT_NE(o.text.find(relink), std::string::npos) << o.text;
    EXPECT_EQ(o.text.find(compile), std::string::npos) << o.text;
    EXPECT_LT(o.text.find(relink), o.text.find("cudaMalloc"))
        << "the message comes too late, after the program's start\n"
        << o.text;
  }
  const outcome cubin = soft_run(cuda_program("small-static-cubin"));
  EXPECT_NE(cubin.text.find(compile), std::string::npos) << cubin.text;
}

TEST(Notice, TellsThatLibrariesOfNvidiaNeedAGpu) {
  const std::filesystem::path place = "/tmp/hpe-notice-libraries-" + std::to_string(::getpid());
  std::filesystem::create_directory(place);
  std::string preloaded;
  for (const char* const name : {"libcublas.so.13", "libcufft.so.12", "libcus.so"}) {
    std::filesystem::copy_file(cuda_program("libplugin.so"), place / name);
    preloaded += (place / name).string() + ":";
  }
  const outcome o = soft_run("env LD_PRELOAD=" + preloaded + " " + cuda_program("small-shared"));
  std::filesystem::remove_all(place);
  EXPECT_NE(o.text.find("libcublas.so.13, " + (place / "libcufft.so.12").string() + ": these NVIDIA libraries"),
            std::string::npos)
      << o.text;
  EXPECT_EQ(o.text.find("libcus.so"), std::string::npos) << o.text;
}

TEST(Notice, ReachesTheChildrenOfScriptsAndPrograms) {
  const temporary_file script;
  script.write("#!/bin/sh\nexec " + cuda_program("small-static") + "\n");
  std::filesystem::permissions(script.path(), std::filesystem::perms::owner_all);
  const outcome o = soft_run(script.path());
  EXPECT_NE(o.text.find(relink), std::string::npos) << o.text;
  EXPECT_EQ(o.text.find(relink), o.text.rfind(relink)) << o.text;
  EXPECT_NE(soft_run("env LC_ALL=C " + cuda_program("small-static")).text.find(relink), std::string::npos);
}

TEST(Notice, IsSilentForProgramsWithoutCuda) {
  EXPECT_EQ(soft_run("sh -c 'echo; ls -d /'").text, "\n/\n");
  const outcome quiet = soft_run(cuda_program("small-static"), 2, "--log silent");
  EXPECT_EQ(quiet.text.find(relink), std::string::npos) << quiet.text;
}

TEST(Notice, IsSilentForProgramsOfTheDriver) {
  for (const char* const name : {"driver-only", "driver-only-static"})
    EXPECT_EQ(soft_run(cuda_program(name), 3).text, "driver: 3 devices of 9.0\n");
}

TEST(Notice, ComesWhenALibraryIsOpened) {
  const std::string library = cuda_program("libplugin-static.so");
  const outcome o = soft_run(HPE_TEST_PLUGIN_HOST " " + library);
  EXPECT_NE(exit_status(o), 0);
  const std::size_t told = o.text.find(library + " contains a static CUDA runtime");
  ASSERT_NE(told, std::string::npos) << o.text;
  EXPECT_EQ(o.text.find(relink), o.text.rfind(relink)) << "twice\n" << o.text;
  EXPECT_LT(told, o.text.find("plugin.cu")) << "the message comes too late, after the library's first call\n" << o.text;
}

// g++ links the module HPE_TEST_STATIC_MODULE, and the module has no kernels. So nothing in the module's file shows
// that the module uses CUDA, and hpe notices the static runtime only at the module's first call.
TEST(Notice, ComesAtTheLatestWithTheFirstCall) {
  const outcome o = soft_run(HPE_TEST_PLUGIN_HOST " " HPE_TEST_STATIC_MODULE);
  EXPECT_NE(o.text.find(HPE_TEST_STATIC_MODULE " contains a static CUDA runtime"), std::string::npos) << o.text;
  EXPECT_EQ(o.text.find(relink), o.text.rfind(relink)) << "twice\n" << o.text;
}

TEST(SharedRuntime, IsHpesForAnyRunpathOfTheProgram) {
  for (const char* const name :
       {"small-shared", "small-shared-stripped", "small-rpath", "small-runpath", "small-parts"}) {
    const outcome o = soft_run(cuda_program(name));
    EXPECT_EQ(exit_status(o), 0) << name;
    EXPECT_EQ(o.text, "small: right\n") << name;
  }
  EXPECT_EQ(shell("HPE_CUDA_DRIVER=/no/such/driver " HPE_COMMAND " run -- " + cuda_program("small-shared")).text,
            "small: right\n");
  EXPECT_EQ(soft_run("sh -c 'sh -c " + cuda_program("small-shared") + "'").text, "small: right\n");
}

TEST(SharedRuntime, OfAProgramThatOpensItLater) {
  const outcome o = soft_run(HPE_TEST_PLUGIN_HOST " " + cuda_program("libplugin.so"), 3);
  EXPECT_EQ(exit_status(o), 0);
  EXPECT_EQ(o.text, "libcudart.so: status 0, 3 devices\nlibcudart.so.13: status 0, 3 devices\nplugin: right\n");
}

// The program opens NVIDIA's runtime by its path, as PyTorch and cuda.pathfinder do, and under a name as in wheels.
TEST(SharedRuntime, OfAProgramThatOpensNvidiasFile) {
  const std::filesystem::path place = "/tmp/hpe-runtime-" + std::to_string(::getpid());
  std::filesystem::create_directory(place);
  const std::string copy = place / "libcudart.3eda8113.so.13";
  std::filesystem::copy_file(std::filesystem::canonical(HPE_TEST_TOOLKIT_CUDART), copy);
  const std::string none = place / "libcudart.so.13";  // there is no such file
  const outcome o = soft_run(HPE_TEST_PLUGIN_HOST " " + cuda_program("libplugin.so") + " " HPE_TEST_TOOLKIT_CUDART " " +
                             copy + " " + none + " libcudart.so.13");
  std::filesystem::remove_all(place);
  EXPECT_EQ(exit_status(o), 0);
  const std::string found = ": status 0, 2 devices\n", missing = ": status -1, -1 devices\n";
  const std::string again = "in a new namespace";
  EXPECT_EQ(o.text, "libcudart.so" + found + "libcudart.so.13" + found + HPE_TEST_TOOLKIT_CUDART + found + again +
                        found + copy + found + again + found + none + missing + again + missing + "libcudart.so.13" +
                        found + again + found + "plugin: right\n");
}

TEST(SharedRuntime, OfALibraryThatIsLinkedWithARenamedCopy) {
  const outcome o = soft_run(HPE_TEST_PLUGIN_HOST " " + cuda_program("libplugin-renamed.so"));
  EXPECT_EQ(exit_status(o), 0);
  EXPECT_EQ(o.text, "libcudart.so: status 0, 2 devices\nlibcudart.so.13: status 0, 2 devices\nplugin: right\n");
}

TEST(SharedRuntime, SaysHowAProgramGetsPtx) {
  const outcome o = soft_run(cuda_program("small-cubin"));
  EXPECT_NE(exit_status(o), 0);
  EXPECT_NE(o.text.find("compute_"), std::string::npos) << o.text;
}

}  // namespace
