#include "tests/mpi/suite/device_calls.h"

#include <dlfcn.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <mutex>
#include <set>

#include "tests/mpi/ranks.h"

namespace device_calls {

namespace {

thread_local int depth = 0;

struct noted {
  std::mutex mutex;
  std::set<std::string> lines;
  static noted& all() {
    static auto* const it = new noted;
    return *it;
  }
};

class at_the_end : public testing::Environment {
  void TearDown() override {
    const char* const name = std::getenv("HPE_TEST_MPI_CALLS");
    if (name == nullptr) return;
    std::ofstream file(std::string(name) + "." + std::to_string(rank()));
    for (const std::string& line : noted::all().lines) file << line << "\n";
    ASSERT_TRUE(file.flush()) << name << " cannot be written";
  }
};

// GoogleTest owns and deletes the object.
[[maybe_unused]] testing::Environment* const registered = testing::AddGlobalTestEnvironment(new at_the_end);

bool is_of_devices(const void* address) {
  hpePointerInfo info;
  return hpeGetPointerInfo(address, &info) == HPE_SUCCESS &&
         (info.kind == HPE_MEMORY_DEVICE || info.kind == HPE_MEMORY_STRIPED);
}

}  // namespace

call::call(const char* function) : function_(function), nested_(depth++ > 0) {}
call::~call() { --depth; }

void call::given(const char* argument, const void* address) const {
  if (nested_ || !is_of_devices(address)) return;
  noted& all = noted::all();
  const std::lock_guard lock(all.mutex);
  all.lines.insert(std::string(function_) + " " + argument);
}

void call::given_back(const char* argument, const void* place) const {
  given(argument, *static_cast<void* const*>(place));
}

void* behind(const char* name) {
  void* const found = ::dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    std::cerr << name << " is in no library\n";
    std::abort();
  }
  return found;
}

}  // namespace device_calls
