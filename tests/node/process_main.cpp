// A process that uses hpe and executes orders from standard input (orders.h).

#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "hpe/hpe.h"
#include "hpe/spread.h"
#include "runtime/node/messages.h"
#include "tests/core/test_kernels.h"
#include "tests/node/orders.h"

namespace {

bool is_forked_child = false;

}  // namespace

// LeakSanitizer calls this function at the end of a process. In a forked child, its search for leaks could wait forever
// for a lock that another thread of the parent held.
extern "C" __attribute__((visibility("default"))) int __lsan_is_turned_off() {  // NOLINT(bugprone-reserved-identifier)
  return is_forked_child ? 1 : 0;
}

namespace {

using node_test::order;
using node_test::report;
using bytes = std::vector<std::byte>;

class worker {
 public:
  report obey(const order& o) {
    report r;
    status_ = HPE_SUCCESS;
    handle_ = {};
    r.value = act(o);
    r.status = status_;
    r.handle = handle_;
    if (status_ != HPE_SUCCESS) std::snprintf(r.words, sizeof r.words, "%s", hpeGetLastErrorMessage());
    return r;
  }

 private:
  static constexpr std::uint32_t over_block = 128;  // threads of a block, in kernels that run over all devices

  bool ok(hpeStatus status) {
    if (status_ == HPE_SUCCESS) status_ = status;
    return status == HPE_SUCCESS;
  }

  std::byte* at(const order& o) { return memories_.at(o.number) + o.offset; }

  static bytes make_pattern(const order& o) {
    bytes result(o.bytes);
    for (std::uint64_t i = 0; i < o.bytes; ++i) result[i] = node_test::pattern(o.seed, o.from + i);
    return result;
  }

  std::uint64_t keep(void* p) {
    memories_[++numbers_] = static_cast<std::byte*>(p);
    return numbers_;
  }

  std::uint64_t allocate(const order& o) {
    void* p = nullptr;
    hpeStatus status = HPE_SUCCESS;
    if (o.on == node_test::on_host) {
      status = hpeMallocHost(&p, o.bytes);
    } else if (o.on == node_test::striped) {
      status = hpeMallocStriped(&p, o.bytes, nullptr);
    } else {
      status = hpeMallocOn(&p, o.bytes, o.on);
    }
    return ok(status) ? keep(p) : 0;
  }

  void add(const order& o) {
    if (kernel_ == nullptr) {
      hpeModule module = nullptr;
      if (!ok(hpeModuleLoad(&module, HPE_TEST_KERNELS)) || !ok(hpeModuleGetKernel(&kernel_, module, "increment")))
        return;
    }
    const increment_parameters parameters{reinterpret_cast<std::uint32_t*>(at(o)), o.bytes / 4,
                                          static_cast<std::uint32_t>(o.seed), static_cast<std::uint32_t>(o.from)};
    const hpeAccess access{at(o), o.bytes, HPE_INOUT};
    const hpeShape shape{{test_tiles, 1, 1}, {1, 1, 1}};
    ok(hpeLaunch(o.on, kernel_, &shape, &parameters, sizeof parameters, &access, 1)) && o.from == 0 &&
        ok(hpeSynchronize());
  }

  std::uint64_t over_all_devices(hpeKernel kernel, const order& o, const void* parameters, std::size_t size,
                                 std::uint32_t blocks) {
    const hpeGrid grid{{blocks, 1, 1}, {over_block, 1, 1}, 0, 0, {0, 0, 0}};
    hpeSpread how{};
    ok(hpeLaunchOver(nullptr, 0, kernel, &grid, parameters, size, &how)) && o.from == 0 && ok(hpeSynchronize());
    return how.parts;
  }

  hpeKernel over_kernel(const char* name) {
    static const char* const text =
#include "node_kernels_ptx.h"
        ;
    hpeKernel kernel = nullptr;
    if (module_ == nullptr) ok(hpeModuleLoadPtx(&module_, &text, 1));
    ok(hpeModuleGetKernel(&kernel, module_, name));
    return kernel;
  }

  std::uint64_t add_over(const order& o) {
    const std::uint64_t words = o.bytes / 4;
    if (words == 0) return 0;
    const struct {
      std::byte* words;
      std::uint64_t count;
      std::uint32_t by;
    } parameters{at(o), words, static_cast<std::uint32_t>(o.seed)};
    return over_all_devices(over_kernel("add"), o, &parameters, sizeof parameters,
                            static_cast<std::uint32_t>((words + over_block - 1) / over_block));
  }

  std::uint64_t mix_over(const order& o) {
    const struct {
      std::byte* words;
      const std::byte* others;
      std::uint64_t count;
      std::uint32_t key;
    } parameters{at(o), memories_.at(o.other) + o.other_offset, o.bytes / 4, static_cast<std::uint32_t>(o.seed)};
    return over_all_devices(over_kernel("mix"), o, &parameters, sizeof parameters,
                            1 + static_cast<std::uint32_t>(o.seed % 7));
  }

  std::uint64_t sum_over(const order& o) {
    const struct {
      std::byte* words;
      const std::byte* others;
      std::uint64_t count;
    } parameters{at(o), memories_.at(o.other) + o.other_offset, o.seed};
    static_assert(node_test::sum_threads == over_block);
    return over_all_devices(over_kernel("sum"), o, &parameters, sizeof parameters,
                            static_cast<std::uint32_t>(o.bytes / node_test::sum_block));
  }

  std::uint64_t check_words(const order& o) {
    const auto* words = reinterpret_cast<const std::uint32_t*>(at(o));
    for (std::uint64_t i = 0; i < o.bytes / 4; ++i)
      if (words[i] != static_cast<std::uint32_t>(o.seed)) return 0;
    return 1;
  }

  std::uint64_t check_copy(const order& o) {
    bytes found(o.bytes, std::byte{0xee});
    return ok(hpeMemcpy(found.data(), at(o), o.bytes)) && found == make_pattern(o) ? 1 : 0;
  }

  std::uint64_t copy_out(const order& o) {
    constexpr std::size_t margin = 64;
    bytes found(o.bytes + 2 * margin, std::byte{0xee});
    if (!ok(hpeExportCopy(found.data() + margin, &o.handle, o.from, o.bytes))) return 0;
    order expected = o;
    expected.from = o.offset;
    const bytes pattern = make_pattern(expected);
    for (std::size_t i = 0; i < margin; ++i)
      if (found[i] != std::byte{0xee} || found[margin + o.bytes + i] != std::byte{0xee}) return 0;
    return std::equal(pattern.begin(), pattern.end(), found.begin() + margin) ? 1 : 0;
  }

  std::uint64_t repeat(const order& o) {
    std::uint64_t done = 0;
    for (; done < o.seed; ++done) {
      hpeExport handle;
      if (!ok(hpeExportBegin(&handle, at(o), o.bytes)) || !ok(hpeExportEnd(&handle))) break;
    }
    return done;
  }

  // Tries to connect to an exporter without hpe, as another user's process could do.
  static std::uint64_t connect_raw(const order& o) {
    std::uint64_t key[2];
    std::memcpy(key, o.handle.bytes + 8, sizeof key);
    char name[64];
    const int length = std::snprintf(name, sizeof name, "hpe-node-%016lx%016lx", key[0], key[1]);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name, static_cast<std::size_t>(length));
    const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<std::size_t>(length));
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), size) != 0) std::abort();
    char question[64] = {};
    ::send(socket, question, sizeof(hpe::node::question), MSG_NOSIGNAL);
    char answer[4096];
    const ssize_t got = ::recv(socket, answer, sizeof answer, 0);
    ::close(socket);
    return got > 0 ? 1 : 0;
  }

  static std::uint64_t fork_one(bool ends) {
    const pid_t child = ::fork();
    if (child == 0) {
      is_forked_child = true;
      if (ends) std::exit(EXIT_SUCCESS);
      ::close(STDIN_FILENO);
      ::close(STDOUT_FILENO);
      ::pause();
    }
    if (ends) ::waitpid(child, nullptr, 0);
    return static_cast<std::uint64_t>(child);
  }

  std::uint64_t count(std::uint64_t hpeStatistics::*what) {
    hpeStatistics s{};
    ok(hpeGetStatistics(&s));
    return s.*what;
  }

  std::uint64_t act(const order& o) {
    using enum order::kind;
    switch (o.what) {
      case allocate: return this->allocate(o);
      case free: ok(hpeFree(at(o))); return 0;
      case fill: {
        const bytes pattern = make_pattern(o);
        std::copy(pattern.begin(), pattern.end(), at(o));
        return 0;
      }
      case fill_copy: ok(hpeMemcpy(at(o), make_pattern(o).data(), o.bytes)); return 0;
      case add: this->add(o); return 0;
      case add_over: return this->add_over(o);
      case mix_over: return this->mix_over(o);
      case sum_over: return this->sum_over(o);
      case check: {
        const bytes pattern = make_pattern(o);
        return std::equal(pattern.begin(), pattern.end(), at(o)) ? 1 : 0;
      }
      case check_copy: return this->check_copy(o);
      case check_word: return check_words(o);
      case hash: return node_test::hash_of(at(o), o.bytes);
      case hash_copy: {
        bytes found(o.bytes);
        return ok(hpeMemcpy(found.data(), at(o), o.bytes)) ? node_test::hash_of(found.data(), o.bytes) : 0;
      }
      case hash_export: {
        bytes found(o.bytes);
        return ok(hpeExportCopy(found.data(), &o.handle, o.from, o.bytes)) ? node_test::hash_of(found.data(), o.bytes)
                                                                           : 0;
      }
      case begin: ok(hpeExportBegin(&handle_, at(o), o.bytes)); return 0;
      case end: ok(hpeExportEnd(&o.handle)); return 0;
      case reachable: {
        int answer = -1;
        ok(hpeExportReachable(&o.handle, &answer));
        return static_cast<std::uint64_t>(answer);
      }
      case copy: ok(hpeExportCopy(at(o), &o.handle, o.from, o.bytes)); return 0;
      case copy_out: return this->copy_out(o);
      case open: {
        void* p = nullptr;
        return ok(hpeExportOpen(&p, &o.handle)) ? keep(p) : 0;
      }
      case migrate: ok(hpeMigrate(at(o), o.on)); return 0;
      case descriptors:
        return static_cast<std::uint64_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
      case mappings: {
        std::ifstream maps("/proc/self/maps");
        return static_cast<std::uint64_t>(
            std::count(std::istreambuf_iterator<char>(maps), std::istreambuf_iterator<char>(), '\n'));
      }
      case other_user:
        return ::setresuid(static_cast<uid_t>(o.seed), static_cast<uid_t>(o.seed), static_cast<uid_t>(o.seed)) == 0;
      case connect_raw: return this->connect_raw(o);
      case fork_child: return fork_one(o.seed == 1);
      case own_network: return ::unshare(CLONE_NEWNET) == 0;
      case repeat: return this->repeat(o);
      case statistics: return count(&hpeStatistics::bytes_staged);
      case given_back: return count(&hpeStatistics::bytes_given_back);
      case evicted: return count(&hpeStatistics::bytes_evicted);
      case spilled: return count(&hpeStatistics::bytes_spilled);
    }
    return 0;
  }

  hpeStatus status_ = HPE_SUCCESS;
  hpeExport handle_ = {};
  hpeKernel kernel_ = nullptr;
  hpeModule module_ = nullptr;
  std::uint64_t numbers_ = 0;
  std::map<std::uint64_t, std::byte*> memories_;
};

bool read_all(void* data, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t got = ::read(STDIN_FILENO, static_cast<char*>(data) + done, size - done);
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

int main() {
  worker it;
  order o;
  while (read_all(&o, sizeof o)) {
    const report r = it.obey(o);
    if (::write(STDOUT_FILENO, &r, sizeof r) != sizeof r) return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
