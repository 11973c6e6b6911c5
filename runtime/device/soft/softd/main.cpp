// hpe-softd: the process of a soft device. Its arguments are the device's number, the address and size of the UVAS, and
// the owner's process number. The device receives everything else through the socket at descriptor 3.

#include <fcntl.h>
#include <sys/personality.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/options.h"
#include "runtime/device/soft/shared/control.h"
#include "runtime/device/soft/softd/crash_guard.h"
#include "runtime/device/soft/softd/page_maker.h"
#include "runtime/device/soft/softd/process.h"

namespace hpe::device::soft {

namespace {

// Runs no destructors and no exit handlers, because other threads of the process continue to use the objects.
[[noreturn]] void end_process(int status) {
  std::fflush(nullptr);
  ::_exit(status);
}

// Handles the owner's requests after the request `join`, and owns all objects of the device. Exists until the process
// ends.
class server {
 public:
  server(unsigned device, address_space& memory, std::vector<os::file_descriptor> descriptors)
      : device_(device),
        memory_(memory),
        fabric_(std::move(descriptors.at(0)), device),
        pool_(fabric_.configuration().threads, device, fabric_.configuration().core_shares),
        output_(std::move(descriptors.at(1)), fabric_.status(device).output) {
    if (fabric_.configuration().ptx.records_accesses) {
      ptx_.record_accesses(std::move(descriptors.back()));
      descriptors.pop_back();
    }
    descriptors.erase(descriptors.begin(), descriptors.begin() + 2);
    memory_.set_files(std::move(descriptors));
    start_watchdog(device_, fabric_, pool_);
  }

  void answer(const control_request& what, std::vector<os::file_descriptor>& descriptors) {
    switch (what.what) {
      case control_request::kind::map:
        memory_.map(what.device, what.address, what.bytes, what.zero_copy);
        if (what.device == device_) pages_.add(what.address, what.bytes);
        return;
      case control_request::kind::move:
        return memory_.set_zero_copy(what.device, what.address, what.bytes, what.zero_copy);
      case control_request::kind::unmap:
        if (what.device == device_) pages_.remove(what.address, what.bytes);
        return memory_.unmap(what.device, what.address, what.bytes);
      case control_request::kind::register_host:
        return memory_.register_host(what.address, what.bytes, descriptors.at(0).get(), what.offset);
      case control_request::kind::unregister_host: return memory_.unregister_host(what.address, what.bytes);
      case control_request::kind::import_memory:
        return memory_.import_memory(what.address, what.bytes, descriptors.at(0).get(), what.offset);
      case control_request::kind::drop_import: return memory_.drop_import(what.address, what.bytes);
      case control_request::kind::load_module: return kernels_.load(what.id, what.text);
      case control_request::kind::load_ptx:
        return kernels_.load(
            what.id, std::make_shared<loaded_ptx_module>(std::move(descriptors.at(0)), what.bytes, what.ptx_parts,
                                                         what.ptx_reads, fabric_.configuration()));
      case control_request::kind::unload_ptx: return kernels_.unload(what.id);
      case control_request::kind::find_kernel: return kernels_.find(what.module, what.id, what.text);
      case control_request::kind::start_stream: return start_executor(engines_, what.id);
      case control_request::kind::quit: end_process(0);
      case control_request::kind::join: break;
    }
    HPE_THROW(HPE_ERROR_INTERNAL, "device {} received an unknown request", device_);
  }

 private:
  unsigned device_;
  address_space& memory_;
  fabric fabric_;
  softd_kernels kernels_;
  tile_pool pool_;
  page_maker pages_{std::min(4U, fabric_.configuration().threads - 1), fabric_.configuration().prepared_memory};
  output_writer output_;
  ptx_runner ptx_{device_, fabric_, memory_, pool_, output_};
  device_engines engines_{device_,  fabric_, memory_, copy_engine(device_, fabric_, memory_, pool_),
                          kernels_, pool_,   ptx_};
};

template <class Action>
reply reply_of(Action action) {
  reply result;
  try {
    action();
  } catch (const error& e) {
    result.fail(e.status(), e.what());
  } catch (const std::exception& e) {
    result.fail(HPE_ERROR_INTERNAL, e.what());
  }
  return result;
}

// Linux may have loaded this program at random addresses that the UVAS needs. The process then starts this program
// again, at the addresses that Linux uses without randomisation. Returns if the UVAS does not need the addresses, or if
// the process cannot, or already did, start the program in this way.
void avoid_addresses(const hpe::uvas_layout& layout, char** arguments) {
  constexpr unsigned long query = 0xffffffff;
  const int now = ::personality(query);
  if (now < 0 || (now & ADDR_NO_RANDOMIZE) != 0 || address_space::is_free(layout)) return;
  if (::personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE) >= 0) ::execv("/proc/self/exe", arguments);
}

}  // namespace

/// Carries out requests until the owner sends `quit` or has ended, and then ends the process. `memory`: the reserved
/// address space; null if the reservation failed. In this case, the device replies to `join` with the error message
/// `refusal`.
[[noreturn]] void serve(unsigned device, std::unique_ptr<address_space> memory, const std::string& refusal) {
  std::unique_ptr<server> joined;
  control_request what;
  std::vector<os::file_descriptor> descriptors;
  while (receive_request(control_descriptor, what, descriptors)) {
    reply result = reply_of([&] {
      if (joined) return joined->answer(what, descriptors);
      HPE_REQUIRE(memory, HPE_ERROR_INITIALIZATION, "{}", refusal);
      HPE_REQUIRE(what.what == control_request::kind::join && what.id == fabric::stamp, HPE_ERROR_INITIALIZATION,
                  "hpe-softd and the library that started it are of different builds of hpe");
      joined = std::make_unique<server>(device, *memory, std::move(descriptors));
    });
    result.number = what.number;
    if (!send_reply(control_descriptor, result)) break;
  }
  end_process(0);
}

}  // namespace hpe::device::soft

int main(int argc, char** argv) {
  using namespace hpe::device::soft;
  if (argc != 5 || ::fcntl(control_descriptor, F_GETFD) < 0) {
    std::fputs("hpe-softd runs one soft device; hpe starts it when a program uses soft devices\n", stderr);
    return EXIT_FAILURE;
  }
  const hpe::uvas_layout layout{std::strtoull(argv[2], nullptr, 0), std::strtoull(argv[3], nullptr, 0), 1};
  avoid_addresses(layout, argv);
  ::fcntl(control_descriptor, F_SETFD, FD_CLOEXEC);
  start_below_keeper(argv[1]);
  // Reserve the UVAS first, before stacks of threads, heaps or libraries can be mapped there.
  std::unique_ptr<address_space> memory;
  std::string refusal;
  try {
    memory = std::make_unique<address_space>(layout);
    install_crash_handlers();
    hpe::set_log_level(hpe::options::from_environment().log);
  } catch (const hpe::error& e) {
    memory.reset();
    refusal = e.what();
  }
  // If a file would exceed the limit of file sizes (ulimit -f), the write must fail with an error instead of raising
  // SIGXFSZ.
  static_cast<void>(std::signal(SIGXFSZ, SIG_IGN));
  // Host kernels print to stdout, which is flushed after each line, so that no complete line is lost if the device is
  // killed.
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  serve(static_cast<unsigned>(std::strtoul(argv[1], nullptr, 0)), std::move(memory), refusal);
}
