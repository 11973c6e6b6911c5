#include "runtime/device/soft/softd_server.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <thread>

#include "runtime/base/error.h"
#include "runtime/device/soft/control.h"
#include "runtime/device/soft/softd_executor.h"

namespace hpe::device::soft {

namespace {

// No destructors, no exit handlers: other threads are still at work.
[[noreturn]] void end_process(int status) {
  std::fflush(nullptr);
  ::_exit(status);
}

// A thread of its own, because the one that serves may be inside the program's code (a module's constructors).
void die_with(os::file_descriptor owner) {
  std::thread([owner = std::move(owner)] {
    ::pthread_setname_np(::pthread_self(), "softd-owner");
    pollfd watched{owner.get(), POLLIN, 0};
    while (::poll(&watched, 1, -1) < 0 && errno == EINTR) {
    }
    ::_exit(0);
  }).detach();
}

// Everything a joined device has. Lives until the process ends.
class server {
 public:
  server(unsigned device, softd_memory& memory, std::vector<os::file_descriptor> descriptors)
      : device_(device),
        memory_(memory),
        fabric_(std::move(descriptors.at(0))),
        pool_(fabric_.state().threads, device, fabric_.state().core_shares),
        output_(std::move(descriptors.at(2)), fabric_.state().devices[device].output) {
    die_with(std::move(descriptors.at(1)));
    descriptors.erase(descriptors.begin(), descriptors.begin() + 3);
    memory_.set_files(std::move(descriptors));
  }

  void answer(const request& what, std::vector<os::file_descriptor>& descriptors) {
    switch (what.what) {
      case request::kind::map: return memory_.map(what.device, what.address, what.bytes);
      case request::kind::unmap: return memory_.unmap(what.device, what.address, what.bytes);
      case request::kind::register_host:
        return memory_.register_host(what.address, what.bytes, descriptors.at(0).get(), what.offset);
      case request::kind::unregister_host: return memory_.unregister_host(what.address, what.bytes);
      case request::kind::import_memory:
        return memory_.import_memory(what.address, what.bytes, descriptors.at(0).get(), what.offset);
      case request::kind::drop_import: return memory_.drop_import(what.address, what.bytes);
      case request::kind::load_module: return kernels_.load(what.id, what.text);
      case request::kind::load_ptx:
        return kernels_.load(
            what.id, std::make_shared<softd_ptx_module>(std::move(descriptors.at(0)), what.bytes, what.ptx_parts,
                                                        fabric_.state().interpret_ptx));
      case request::kind::unload_ptx: return kernels_.unload(what.id);
      case request::kind::find_kernel: return kernels_.find(what.module, what.id, what.text);
      case request::kind::start_stream: return start_executor(engines_, *fabric_.find_stream(device_, what.id));
      case request::kind::quit: end_process(0);
      case request::kind::join: break;
    }
    HPE_THROW(HPE_ERROR_INTERNAL, "device {} was asked for what it does not know", device_);
  }

 private:
  unsigned device_;
  softd_memory& memory_;
  fabric fabric_;
  softd_kernels kernels_;
  softd_pool pool_;
  output_writer output_;
  softd_ptx_runner ptx_{memory_, pool_, output_};
  softd_engines engines_{device_, fabric_, memory_, softd_copier(device_, fabric_, memory_), kernels_, pool_, ptx_};
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

}  // namespace

void serve(unsigned device, std::unique_ptr<softd_memory> memory, const std::string& refusal) {
  std::unique_ptr<server> joined;
  request what;
  std::vector<os::file_descriptor> descriptors;
  while (receive_request(control_descriptor, what, descriptors)) {
    const reply result = reply_of([&] {
      if (joined) return joined->answer(what, descriptors);
      HPE_REQUIRE(memory, HPE_ERROR_INITIALIZATION, "{}", refusal);
      HPE_REQUIRE(what.what == request::kind::join && what.id == fabric::stamp, HPE_ERROR_INITIALIZATION,
                  "hpe-softd and the library that started it are of different builds of hpe");
      joined = std::make_unique<server>(device, *memory, std::move(descriptors));
    });
    if (!send_reply(control_descriptor, result)) break;
  }
  end_process(0);
}

}  // namespace hpe::device::soft
