#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "runtime/device/soft/shared/control.h"
#include "runtime/device/soft/softd/process.h"
#include "runtime/os/socket_message.h"

namespace hpe::device::soft {

namespace {

[[noreturn]] void keep(pid_t device, const os::file_descriptor& owner) {
  ::prctl(PR_SET_NAME, "softd-keeper");
  const auto tell = [](const keeper_report& report, std::span<const int> descriptors) {
    return os::send_message(control_descriptor, std::as_bytes(std::span(&report, 1)), descriptors);
  };
  const os::file_descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, device, 0)));
  if (!process) ::_exit(EXIT_FAILURE);
  const int file = process.get();
  tell({device, 0, 0}, std::span(&file, 1));
  // The keeper polls `owner` only to notice that the owner has closed the socket.
  std::array<pollfd, 3> watched{{{file, POLLIN, 0}, {owner.get(), POLLIN, 0}, {control_descriptor, 0, 0}}};
  while (::poll(watched.data(), watched.size(), -1) < 0 && errno == EINTR) {
  }
  if (watched[0].revents == 0) ::kill(device, SIGKILL);
  siginfo_t end{};
  while (::waitid(P_PID, static_cast<id_t>(device), &end, WEXITED) != 0 && errno == EINTR) {
  }
  tell({device, end.si_code, end.si_status}, {});
  ::_exit(EXIT_SUCCESS);
}

}  // namespace

void start_below_keeper(char* number) {
  pid_t owner_process = 0;
  std::vector<os::file_descriptor> descriptors;  // the device's control socket, and a pidfd of the owner
  const std::size_t got =
      os::receive_message(control_descriptor, std::as_writable_bytes(std::span(&owner_process, 1)), descriptors);
  if (got != sizeof owner_process || descriptors.size() != 2) ::_exit(EXIT_FAILURE);
  const pid_t keeper = ::getpid();
  const pid_t device = ::fork();
  if (device < 0) ::_exit(EXIT_FAILURE);
  if (device > 0) {
    descriptors[0].reset();
    std::memset(number, '-', std::strlen(number));
    keep(device, descriptors[1]);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != keeper || ::dup3(descriptors[0].get(), control_descriptor, O_CLOEXEC) < 0) ::_exit(EXIT_FAILURE);
}

}  // namespace hpe::device::soft
