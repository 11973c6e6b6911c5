// A program in which a rank or a device fails, for faults_test.py: faults <failure> <host|device>. The second argument
// is the memory of the messages.
#include <mpi.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "hpe/hpe.hpp"

namespace {

// Kills this rank's device processes (hpe-softd). The last argument of hpe-softd is the number of the process that owns
// the device.
void kill_devices() {
  const std::string owner = std::to_string(::getpid());
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t process = std::atoi(entry.path().filename().c_str());
    std::ifstream arguments(process != 0 ? entry.path() / "cmdline" : "/dev/null");
    std::vector<std::string> words;
    for (std::string word; std::getline(arguments, word, '\0');) words.push_back(word);
    if (words.size() == 5 && words[0].ends_with("hpe-softd") && words[1] != "-" && words[4] == owner)
      ::kill(process, SIGKILL);
  }
  ::usleep(300000);  // so that the runtime detects the loss
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 3) return 2;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  constexpr int n = 4 << 20;
  std::vector<char> host(n);
  const bool on_host = std::strcmp(argv[2], "host") == 0;
  const hpe::array<char> device = on_host ? hpe::array<char>() : hpe::array<char>(n);
  char* const p = on_host ? host.data() : device.data();
  std::memset(p, 1, n);
  MPI_Barrier(MPI_COMM_WORLD);

  if (std::strcmp(argv[1], "killed") == 0) {
    // Rank 1 ends after its first message. The second message, for which rank 0 waits, never arrives.
    if (rank == 1) {
      MPI_Send(p, n / 2, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
      std::raise(SIGKILL);
    }
    MPI_Recv(p, n / 2, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(p, n, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (std::strcmp(argv[1], "late") == 0) {
    // Rank 0 waits for more than a second: first for a message, and then in a barrier.
    for (int step = 0; step < 2; ++step) {
      if (rank == 1) ::sleep(3);
      if (step == 1) MPI_Barrier(MPI_COMM_WORLD);
      if (step == 0 && rank == 1) MPI_Send(p, 100, MPI_CHAR, 0, 7, MPI_COMM_WORLD);
      if (step == 0 && rank == 0) MPI_Recv(p, n, MPI_CHAR, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  } else if (std::strcmp(argv[1], "killed-sending") == 0) {
    // Rank 1 ends after 200 ms, most likely during the transfer of a message.
    if (rank == 1)
      std::thread([] {
        ::usleep(200000);
        std::raise(SIGKILL);
      }).detach();
    for (int i = 0; i < 100000; ++i) {
      if (rank == 1) MPI_Send(p, n, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
      if (rank == 0) MPI_Recv(p, n, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  } else if (std::strcmp(argv[1], "truncated") == 0) {
    if (rank == 1) MPI_Send(p, n, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    if (rank == 0) MPI_Recv(p, n / 2, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
  } else if (std::strcmp(argv[1], "past-the-end") == 0) {
    if (rank == 1) MPI_Send(p + 1, n, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (std::strcmp(argv[1], "lost-device") == 0) {
    // After the loss of the device, data that was only on the device cannot be sent; data with a valid copy on the host
    // can be sent.
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 1) {
      hpeMemset(p, 2, n);
      hpeSynchronize();
      kill_devices();
      const int code = MPI_Send(p, n, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
      char text[MPI_MAX_ERROR_STRING];
      int length = 0;
      if (code == MPI_SUCCESS) return 3;
      MPI_Error_string(code, text, &length);
      std::puts(text);
      MPI_Send(host.data(), n, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    } else {
      MPI_Recv(p, n, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (p[0] != 0 || p[n - 1] != 0) return 4;
    }
  }
  std::puts("went on");
  MPI_Finalize();
  return 0;
}
