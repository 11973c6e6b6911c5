// hpe-softd: the process that a soft device is. The owner starts it with the device's number and the place of the UVAS;
// everything else it learns over the socket that it finds as descriptor 3.

#include <fcntl.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "runtime/base/error.h"
#include "runtime/device/soft/control.h"
#include "runtime/device/soft/softd_guard.h"
#include "runtime/device/soft/softd_server.h"

int main(int argc, char** argv) {
  using namespace hpe::device::soft;
  if (argc != 4 || ::fcntl(control_descriptor, F_SETFD, FD_CLOEXEC) != 0) {
    std::fputs("hpe-softd runs one soft device; hpe starts it when a program uses soft devices\n", stderr);
    return EXIT_FAILURE;
  }
  // The address space first, before threads, heaps and libraries of kernels can be in its way.
  const hpe::device::uvas_layout layout{std::strtoull(argv[2], nullptr, 0), std::strtoull(argv[3], nullptr, 0), 1};
  std::unique_ptr<softd_memory> memory;
  std::string refusal;
  try {
    memory = std::make_unique<softd_memory>(layout);
    install_crash_handlers();
  } catch (const hpe::error& e) {
    memory.reset();
    refusal = e.what();
  }
  // What kernels print is seen line by line, also from a device that is killed.
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  serve(static_cast<unsigned>(std::strtoul(argv[1], nullptr, 0)), std::move(memory), refusal);
}
