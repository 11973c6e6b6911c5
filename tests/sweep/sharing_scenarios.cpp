// Scenarios with other processes, and with host code that knows nothing of hpe. The host code accesses memory through
// interpose/buffer_access, as hpe does for system calls and for libraries like MPI.

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "hpe/node.h"
#include "runtime/core/api/api_guard.h"
#include "runtime/core/operations/host_access.h"
#include "runtime/node/handle.h"
#include "tests/sweep/runner.h"

extern char** environ;

namespace sweep {

namespace {

using arm_function = std::function<void()>;

constexpr std::size_t middle = 5 * model_block + 100;
constexpr std::size_t two_homes = granule + 3 * model_block;
constexpr std::uint8_t exported_first = 11;

part all_of(memory* m) { return {m, 0, m->bytes}; }
part across_homes(memory* m) { return {m, granule - 2 * model_block - 50, 4 * model_block}; }

std::vector<std::uint8_t> bytes_of(const part& p) {
  const auto begin = p.of->model.begin() + static_cast<std::ptrdiff_t>(p.begin);
  return {begin, begin + static_cast<std::ptrdiff_t>(p.bytes)};
}

template <class Value>
bool get(int from, Value& value) {
  return ::read(from, &value, sizeof value) == static_cast<ssize_t>(sizeof value);
}
template <class Value>
void put(int to, const Value& value) {
  if (::write(to, &value, sizeof value) != static_cast<ssize_t>(sizeof value)) ::_exit(3);
}

// The request to the importer: either to copy the bytes, or to open the memory, write other bytes, and close it.
struct question {
  hpeExport handle{};
  std::uint64_t bytes = 0;
  std::uint8_t first = 0;
  bool writes = false;
};
enum class copied : char { rightly = 'y', wrongly = 'n', not_at_all = 'e' };

// A process that runs this program in another role, connected by two pipes. It ends when its input ends.
class other {
 public:
  explicit other(const char* role) {
    std::array<int, 2> there{};
    std::array<int, 2> back{};
    if (::pipe2(there.data(), O_CLOEXEC) != 0 || ::pipe2(back.data(), O_CLOEXEC) != 0) std::exit(3);
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_adddup2(&files, there[0], STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&files, back[1], STDOUT_FILENO);
    const char* arguments[] = {"test-sweep", "--other", role, nullptr};
    pid_t process = 0;
    if (::posix_spawn(&process, "/proc/self/exe", &files, nullptr, const_cast<char**>(arguments), environ) != 0)
      std::exit(3);
    ::posix_spawn_file_actions_destroy(&files);
    ::close(there[0]);
    ::close(back[1]);
    to_ = there[1];
    from_ = back[0];
  }

  [[nodiscard]] int to() const noexcept { return to_; }
  [[nodiscard]] int from() const noexcept { return from_; }

 private:
  int to_ = -1;
  int from_ = -1;
};

int export_something() {
  void* p = nullptr;
  if (hpeMallocOn(&p, middle, 0) != HPE_SUCCESS) return 1;
  const auto bytes = pattern(middle, exported_first);
  std::memcpy(p, bytes.data(), bytes.size());
  hpeExport handle{};
  if (hpeExportBegin(&handle, p, middle) != HPE_SUCCESS) return 1;
  put(STDOUT_FILENO, handle);
  char end = 0;
  while (get(STDIN_FILENO, end)) {
  }
  return 0;
}

copied write_opened(const question& asked) {
  void* opened = nullptr;
  if (hpeExportOpen(&opened, &asked.handle) != HPE_SUCCESS) return copied::not_at_all;
  const auto bytes = pattern(asked.bytes, asked.first);
  std::memcpy(opened, bytes.data(), bytes.size());
  return hpeFree(opened) == HPE_SUCCESS ? copied::rightly : copied::wrongly;
}

int import_what_is_asked() {
  question asked;
  while (get(STDIN_FILENO, asked)) {
    std::vector<std::uint8_t> got(asked.bytes);
    copied answer = copied::not_at_all;
    if (asked.writes)
      answer = write_opened(asked);
    else if (hpeExportCopy(got.data(), &asked.handle, 0, asked.bytes) == HPE_SUCCESS)
      answer = got == pattern(asked.bytes, asked.first) ? copied::rightly : copied::wrongly;
    put(STDOUT_FILENO, answer);
  }
  return 0;
}

const hpeExport& handle_of_exporter() {
  static const hpeExport handle = [] {
    static const other exporter("exporter");
    hpeExport result{};
    if (!get(exporter.from(), result)) std::exit(3);
    return result;
  }();
  return handle;
}

void imports(world& w, const arm_function& arm) {
  const hpeExport& handle = handle_of_exporter();
  memory* m = w.allocate(middle, 0);
  memory* s = w.allocate_striped(two_homes);
  memory* h = w.allocate_host(middle);
  w.write(all_of(m), 1);
  w.write(across_homes(s), 2);
  const auto exported = pattern(middle, exported_first);
  const auto copy = [&](const part& to, std::size_t offset) {
    const auto begin = exported.begin() + static_cast<std::ptrdiff_t>(offset);
    w.call("hpeExportCopy", [&] { return hpeExportCopy(to.of->data + to.begin, &handle, offset, to.bytes); },
           {{to, {begin, begin + static_cast<std::ptrdiff_t>(to.bytes)}}});
  };
  arm();
  int reachable = 0;
  w.call("hpeExportReachable", [&] { return hpeExportReachable(&handle, &reachable); });
  copy({m, 10, 3 * model_block}, 7);
  copy(across_homes(s), 0);
  copy({h, 5, 1000}, 1);
  std::vector<std::uint8_t> ordinary(2 * model_block, 0xEE);
  w.call("hpeExportCopy to ordinary memory",
         [&] { return hpeExportCopy(ordinary.data(), &handle, 0, ordinary.size()); });
  if (w.succeeded() && !std::equal(ordinary.begin(), ordinary.end(), exported.begin()))
    w.report("hpeExportCopy to ordinary memory gave other bytes");
  void* opened = nullptr;
  w.call("hpeExportOpen", [&] { return hpeExportOpen(&opened, &handle); });
  if (opened == nullptr) return;
  memory* o = w.adopt(opened, exported);
  w.launch_copy(1, {m, 0, model_block}, {o, 3, model_block});
  w.read({o, 0, 100});
  w.free(o);
}

const other& the_importer() {
  static const other importer("importer");
  return importer;
}

void exports(world& w, const arm_function& arm) {
  const other& importer = the_importer();
  memory* m = w.allocate(middle, 1);
  memory* own = w.allocate(middle, 0);
  w.write(all_of(own), 5);
  w.write(all_of(m), exported_first);
  w.launch_add(1, {m, 0, 100}, 0);
  arm();
  question asked{{}, middle, exported_first};
  w.call("hpeExportBegin", [&] { return hpeExportBegin(&asked.handle, m->data, middle); });
  if (!w.succeeded()) return;
  // Entries of the export table are reused, and there is only one export at a time, so each export must get entry 0.
  if (hpe::node::decode(asked.handle)->entry != 0) w.report("an export that failed keeps its entry in the table");
  const auto ended = std::make_shared<bool>(false);
  w.at_end([&w, ended, handle = asked.handle] {
    if (!*ended) w.call("hpeExportEnd", [&] { return hpeExportEnd(&handle); });
  });
  put(importer.to(), asked);
  copied answer{};
  if (!get(importer.from(), answer)) w.report("the importing process ended");
  if (answer == copied::wrongly) w.report("another process copied other bytes than were exported");
  if (answer == copied::not_at_all && !injected().fired()) w.report("another process could not copy");
  const part to{own, 7, 2 * model_block};
  w.call("hpeExportCopy of the own export",
         [&] { return hpeExportCopy(to.of->data + to.begin, &asked.handle, 10, to.bytes); },
         {{to, bytes_of({m, 10, to.bytes})}});
  w.call("hpeExportEnd", [&] { return hpeExportEnd(&asked.handle); });
  *ended = w.succeeded();
}

// Exports memory that another process writes and closes before the export ends.
void export_to_writer(world& w, memory* m) {
  const other& importer = the_importer();
  constexpr std::uint8_t written = 77;
  question asked{{}, m->bytes, written, true};
  w.call("hpeExportBegin", [&] { return hpeExportBegin(&asked.handle, m->data, m->bytes); });
  if (!w.succeeded()) return;
  put(importer.to(), asked);
  copied answer{};
  if (!get(importer.from(), answer)) w.report("the importing process ended");
  if (answer == copied::wrongly) w.report("another process could not close the memory");
  if (answer == copied::not_at_all && !injected().fired()) w.report("another process could not open the memory");
  if (answer == copied::rightly) m->model = pattern(m->bytes, written);
  // The test does not use w.call here, because w.call compares all copies after a failure, and the host's copy may be
  // outdated until the export ends.
  int failures = 0;
  while (hpeExportEnd(&asked.handle) != HPE_SUCCESS && ++failures < 3) {
  }
  if (failures == 3 || (failures != 0 && !injected().fired())) w.report("hpeExportEnd failed");
}

void written_exports(world& w, const arm_function& arm) {
  memory* m = w.allocate(middle, 0);
  memory* small = w.allocate(1000, 0);
  w.write(all_of(m), exported_first);
  w.write(all_of(small), 3);
  arm();
  for (memory* each : {m, small}) {
    export_to_writer(w, each);
    w.read(all_of(each));
  }
}

// After the export, the device has no memory for all data, so the memory that the other process wrote is evicted.
void evicted_exports(world& w, const arm_function& arm) {
  memory* m = w.allocate(middle, 0);
  memory* first = w.allocate(middle, 0);
  memory* second = w.allocate(middle, 0);
  w.write(all_of(m), exported_first);
  arm();
  export_to_writer(w, m);
  w.launch_add(0, all_of(first), 1);
  w.launch_add(0, all_of(second), 2);
  w.launch_add(0, {m, 5, model_block}, 3);
  w.read(all_of(m));
}

// Writes bytes to hpe memory like a call of read() or a receive.
void put_bytes(world& w, const part& p, std::uint8_t first) {
  const auto bytes = pattern(p.bytes, first);
  w.call("writing for host code",
         [&] {
           return hpe::core::guarded([&] {
             auto* const access = hpe::core::host_access::of(p.of->data);
             auto loan = access->borrow(p.of->data + p.begin, p.bytes);
             std::memcpy(loan.data(), bytes.data(), bytes.size());
             access->write(p.of->data + p.begin, loan, loan.data(), p.bytes);
           });
         },
         {{p, bytes}});
}

// Reads bytes of hpe memory like a call of write() or a send.
void get_bytes(world& w, const part& p) {
  std::vector<std::uint8_t> got(p.bytes);
  const auto expected = bytes_of(p);
  w.call("reading for host code", [&] {
    return hpe::core::guarded([&] {
      auto* const access = hpe::core::host_access::of(p.of->data);
      const auto* place = access->in_place(p.of->data + p.begin, p.bytes, hpe::core::host_use::read);
      if (place != nullptr) {
        std::memcpy(got.data(), place, p.bytes);
        return;
      }
      auto loan = access->borrow(p.of->data + p.begin, p.bytes);
      const hpe::core::host_run all{0, p.bytes};
      access->read(loan.data(), p.of->data + p.begin, p.bytes, {&all, 1});
      std::memcpy(got.data(), loan.data(), p.bytes);
    });
  });
  if (w.succeeded() && got != expected) w.report("host code read other bytes than were written");
}

void host_code(world& w, const arm_function& arm) {
  memory* m = w.allocate(middle, 1);
  memory* s = w.allocate_striped(two_homes);
  memory* h = w.allocate_host(middle);
  w.write(all_of(m), 1);
  w.launch_add(1, {m, 0, 2 * model_block}, 1);
  w.set(across_homes(s), 6);
  arm();
  get_bytes(w, all_of(m));
  put_bytes(w, {m, model_block - 10, 2 * model_block}, 3);
  get_bytes(w, across_homes(s));
  put_bytes(w, across_homes(s), 4);
  put_bytes(w, {h, 3, 1000}, 5);
  get_bytes(w, {s, granule - 20, 40});
}

}  // namespace

int other_process(const std::string& role) {
  this_thread_is_the_test();
  ::setenv("HPE_DEVICES", "soft:1", 1);
  return role == "exporter" ? export_something() : import_what_is_asked();
}

std::vector<scenario> sharing_scenarios() {
  return {
      {"imports", "soft:2", {}, imports},
      {"exports", "soft:2", {}, exports},
      {"written_exports", "soft:2", {}, written_exports},
      {"evicted_exports", "soft:2", {{"HPE_DEVICE_MEMORY", "6M"}}, evicted_exports},
      {"host_code", "soft:2", {}, host_code},
  };
}

}  // namespace sweep
