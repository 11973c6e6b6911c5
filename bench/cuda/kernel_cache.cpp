// The time, from start to end, of a CUDA program with fifty kernels on one soft device: without the kernel cache, in
// the first run with the cache, in later runs, and if the kernels begin in the interpreter. This benchmark is also that
// program: it starts itself with the option --program under hpe run.

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/common/measure.h"
#include "bench/cuda/fifty_kernels.h"

namespace {

namespace fs = std::filesystem;
using hpe::bench::result;
using hpe::bench::timed;
using hpe::bench::timing;

/// A temporary folder for the kernel cache; the destructor deletes it.
class temporary_folder {
 public:
  temporary_folder() : path_((fs::temp_directory_path() / "hpe-kernels-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("cannot make the folder " + path_);
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() { fs::remove_all(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }
  void clear() const {
    for (const auto& entry : fs::directory_iterator(path_)) fs::remove_all(entry);
  }

 private:
  std::string path_;
};

void run_program(const std::string& cache, const char* engine = "compiler") {
  ::setenv("HPE_KERNEL_CACHE", cache.c_str(), 1);
  ::setenv("HPE_PTX_ENGINE", engine, 1);
  const std::string program = fs::read_symlink("/proc/self/exe");
  const std::string hpe = fs::path(program).replace_filename("hpe");
  std::vector<std::string> words{hpe, "run", "--cuda", "soft", "--devices", "soft:1", "--", program, "--program"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = -1;
  const int failure = ::posix_spawn(&child, hpe.c_str(), &files, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  int status = -1;
  if (failure != 0 || ::waitpid(child, &status, 0) != child || status != 0)
    throw std::runtime_error("the program with fifty kernels failed");
}

void tell(std::vector<result>& results, const std::string& what, const timing& t, double bar = 0) {
  const std::string spread = std::to_string(t.fastest) + " to " + std::to_string(t.slowest);
  if (bar == 0) return results.push_back({what, t.median, "s", "", true, spread});
  results.push_back({what, t.median, "s", "<= " + std::to_string(bar).substr(0, 4), t.median <= bar, spread});
}

}  // namespace

int main(int argc, char** argv) {
  bool is_program = false;
  const hpe::bench::arguments arguments = hpe::bench::parse(
      argc, argv, "a CUDA program with fifty kernels from its start to its end, with and without the kernel cache",
      {{"--program", "", "launch fifty kernels and exit; the benchmark starts itself with this option",
        hpe::bench::to_flag(is_program)}});
  if (is_program) {
    std::printf("%.6g\n", hpe::bench::launch_fifty_kernels());
    return EXIT_SUCCESS;
  }
  const temporary_folder folder;
  const auto nothing = [] {};
  constexpr double later_bar = 0.2;
  std::vector<result> results;
  tell(results, "fifty kernels, without the kernel cache",
       timed(arguments.repeats, nothing, [] { run_program("off"); }));
  tell(results, "fifty kernels, first run",
       timed(
           arguments.repeats, [&] { folder.clear(); }, [&] { run_program(folder.path()); }));
  tell(results, "fifty kernels, later runs", timed(arguments.repeats, nothing, [&] { run_program(folder.path()); }),
       later_bar);
  tell(results, "fifty kernels, first run, kernels begin in the interpreter",
       timed(
           arguments.repeats, [&] { folder.clear(); }, [&] { run_program(folder.path(), "auto"); }));
  return hpe::bench::report("The kernel cache of soft devices, one device, " + hpe::bench::load_of_machine(), results,
                            arguments);
}
