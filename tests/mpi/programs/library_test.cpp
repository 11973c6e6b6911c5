// Tests the parts of the wrappers that ask the MPI library, and the part that tells the check of a program which
// buffers MPI uses.

#include "interpose/mpi/libraries/library.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "interpose/message_checks.h"
#include "interpose/mpi/checks/checked_call.h"
#include "interpose/mpi/libraries/own_transport.h"
#include "interpose/mpi/pending.h"
#include "tests/mpi/programs/fake_mpi.h"

namespace {

using namespace hpe::interpose::mpi;
using hpe::interpose::message_checks;

template <class Function>
void* address(Function* function) {
  return reinterpret_cast<void*>(function);
}

// ---- the transport of the MPI library

// UCX, as far as hpe uses it.
struct fake_ucx {
  int read_result = 0, init_result = 0, query_result = 0;
  std::uint64_t memory_types = 0;
  int settings = 0, contexts = 0;  // that hpe has not released
};
fake_ucx& ucx() {
  static fake_ucx it;
  return it;
}

// The beginning of UCX's structs.
struct wanted_features {
  std::uint64_t mask, features;
};
struct context_attributes {
  std::uint64_t mask;
  std::size_t request_size;
  int thread_mode;
  std::uint64_t memory_types;
};

int config_read(const char* prefix, const char* file, void** settings) {
  EXPECT_STREQ(prefix, "MPI");
  EXPECT_EQ(file, nullptr);
  if (ucx().read_result == 0) ++ucx().settings;
  *settings = &ucx();
  return ucx().read_result;
}
void config_release(void* settings) {
  EXPECT_EQ(settings, &ucx());
  --ucx().settings;
}
int init_version(unsigned major, unsigned minor, const wanted_features* wanted, void* settings, void** context) {
  EXPECT_EQ(std::tuple(major, minor), std::tuple(1U, 0U));
  EXPECT_EQ(std::tuple(wanted->mask, wanted->features), std::tuple(1U, 1U));
  EXPECT_EQ(settings, &ucx());
  EXPECT_EQ(ucx().settings, 1);
  if (ucx().init_result == 0) ++ucx().contexts;
  *context = &ucx().contexts;
  return ucx().init_result;
}
int context_query(void* context, context_attributes* attributes) {
  EXPECT_EQ(context, &ucx().contexts);
  EXPECT_EQ(attributes->mask, 4U);
  attributes->memory_types = ucx().memory_types;
  return ucx().query_result;
}
void cleanup(void* context) {
  EXPECT_EQ(context, &ucx().contexts);
  --ucx().contexts;
}

// Open MPI's description of the selected component.
struct component {
  std::array<int, 3> architecture{};
  std::array<char, 16> project{"ompi"};
  std::array<int, 3> of_project{};
  std::array<char, 32> type{"pml"};
  std::array<int, 3> of_type{};
  std::array<char, 64> name{};
  std::array<char, 8> behind{"version"};
};

class Transport : public ::testing::Test {
 protected:
  Transport() {
    fake_mpi::use();
    fake_mpi::symbols().clear();
    fake_mpi::library() = {};
    ucx() = {};
  }
  ~Transport() override {
    EXPECT_EQ(ucx().settings, 0);
    EXPECT_EQ(ucx().contexts, 0);
  }

  static void load_ucx(std::uint64_t memory_types) {
    ucx().memory_types = memory_types;
    auto& all = fake_mpi::symbols();
    all["ucp_config_read"] = address(config_read);
    all["ucp_config_release"] = address(config_release);
    all["ucp_init_version"] = address(init_version);
    all["ucp_context_query"] = address(context_query);
    all["ucp_cleanup"] = address(cleanup);
  }
  static void answer_as_open_mpi(int answer) {
    static int given = 0;
    given = answer;
    fake_mpi::symbols()["MPIX_Query_cuda_support"] = address(+[] { return given; });
  }
  static void answer_as_mpich(int result, int answer) {
    static int its_result = 0, given = 0;
    its_result = result;
    given = answer;
    fake_mpi::symbols()["MPIX_GPU_query_support"] = address(+[](int kind, int* is_supported) {
      EXPECT_EQ(kind, 0);
      *is_supported = given;
      return its_result;
    });
  }
  void select(const std::string& name, const std::string& type = "pml") {
    selected_ = {};
    selected_.type.fill('\0');
    std::memcpy(selected_.type.data(), type.data(), type.size());
    std::memcpy(selected_.name.data(), name.data(), name.size());
    fake_mpi::symbols()["mca_pml_base_selected_component"] = &selected_;
  }

  static constexpr std::uint64_t host = 1, cuda = 2, managed = 4;
  component selected_;
};

TEST_F(Transport, IsNoneIfTheLibraryDoesNotAcceptDeviceMemory) {
  load_ucx(host | cuda);
  select("ucx");
  EXPECT_EQ(own_transport(), "") << "the library does not answer";
  answer_as_open_mpi(0);
  EXPECT_EQ(own_transport(), "");
  answer_as_open_mpi(1);
  EXPECT_EQ(own_transport(), "ucx");
  answer_as_mpich(MPI_SUCCESS, 0);
  EXPECT_EQ(own_transport(), "") << "this question is asked first";
  answer_as_mpich(MPI_ERR_ARG, 1);
  EXPECT_EQ(own_transport(), "");
  answer_as_mpich(MPI_SUCCESS, 1);
  EXPECT_EQ(own_transport(), "ucx");
}

TEST_F(Transport, OfOpenMpiIsTheSelectedComponent) {
  answer_as_open_mpi(1);
  load_ucx(host | managed);
  select("ucx");
  EXPECT_EQ(own_transport(), "") << "UCX does not accept device memory";
  select("cm");
  EXPECT_EQ(own_transport(), "cm");
  select("ob1");
  EXPECT_EQ(own_transport(), "");
  const std::string longest(64, 'n');
  select(longest);
  EXPECT_EQ(own_transport(), "");
  load_ucx(cuda);
  select("ucx");
  EXPECT_EQ(own_transport(), "ucx");
  select("ucx", "btl");
  EXPECT_EQ(own_transport(), "unnamed") << "this is not the component for messages";
}

TEST_F(Transport, UcxIsAskedWithoutLeavingAnythingBehind) {
  answer_as_open_mpi(1);
  select("ucx");
  EXPECT_EQ(own_transport(), "") << "UCX is not loaded";
  for (int fake_ucx::*const failure : {&fake_ucx::read_result, &fake_ucx::init_result, &fake_ucx::query_result}) {
    load_ucx(host | cuda);
    EXPECT_EQ(own_transport(), "ucx");
    ucx().*failure = -1;
    EXPECT_EQ(own_transport(), "");
    ucx().*failure = 0;
    EXPECT_EQ(ucx().settings, 0);
    EXPECT_EQ(ucx().contexts, 0);
  }
  for (const char* const lacking :
       {"ucp_config_read", "ucp_config_release", "ucp_init_version", "ucp_context_query", "ucp_cleanup"}) {
    load_ucx(host | cuda);
    fake_mpi::symbols().erase(lacking);
    EXPECT_EQ(own_transport(), "") << lacking;
  }
}

TEST_F(Transport, OfMpichIsTheDeviceInItsDescription) {
  answer_as_mpich(MPI_SUCCESS, 1);
  const auto transport_of = [](const std::string& version) {
    fake_mpi::library().version = version;
    return own_transport();
  };
  EXPECT_EQ(transport_of("MPICH Version: 4\nMPICH Device:    \t ch4:ofi\nMPICH configure: x\n"), "ch4:ofi");
  EXPECT_EQ(transport_of("MPICH Device: ch4:ofi"), "ch4:ofi");
  EXPECT_EQ(transport_of("MPICH Device: ch3:nemesis and more"), "");
  EXPECT_EQ(transport_of("MPICH Device: ch3:sock\n"), "");
  for (const char* const each : {"CRAY MPICH", "MPICH Device:", "MPICH Device: \t"})
    EXPECT_EQ(transport_of(each), "unnamed") << each;
  fake_mpi::library().version_result = MPI_ERR_OTHER;
  EXPECT_EQ(transport_of("MPICH Device: ch4:ofi"), "unnamed");
  fake_mpi::library().version_result = MPI_SUCCESS;
  EXPECT_EQ(transport_of("MPICH Device: ch4:ucx\n"), "ch4:ucx") << "with a copy of UCX of its own";
  load_ucx(host);
  EXPECT_EQ(transport_of("MPICH Device: ch4:ucx\n"), "");
  EXPECT_EQ(transport_of("MPICH Device: ch4:ofi\n"), "ch4:ofi");
  load_ucx(cuda);
  EXPECT_EQ(transport_of("MPICH Device: ch4:ucx\n"), "ch4:ucx");
}

// ---- the library

TEST_F(Transport, FunctionsOfTheLibraryAreFoundByName) {
  int variable = 0;
  fake_mpi::symbols()["a_variable"] = &variable;
  EXPECT_TRUE(library_has("a_variable"));
  EXPECT_FALSE(library_has("another_variable"));
  EXPECT_EQ(find_in_library("a_variable"), &variable);
  EXPECT_TRUE(calls_while_it_waits());
  EXPECT_TRUE(status_is_silent());
  EXPECT_TRUE(shows_added_strings());
  const std::set<void*> all{handles::get().comm_world, handles::get().comm_self, handles::get().comm_null,
                            handles::get().byte,       handles::get().integer,   handles::get().packed,
                            handles::get().max,        handles::get().min,       handles::get().sum,
                            handles::get().product,    handles::get().bit_or,    handles::get().request_null};
  EXPECT_EQ(all.size(), 12U);
  EXPECT_FALSE(all.contains(nullptr));
  EXPECT_FALSE(stands_for_many(handles::get().request_null));
}

TEST_F(Transport, TheConstructionOfATypeIsQueried) {
  auto& answers = fake_mpi::library();
  const auto type = handles::get().byte;
  EXPECT_FALSE(envelope_of(type).is_derived());
  type_contents contents = contents_of(type);
  EXPECT_EQ(contents.combiner, MPI_COMBINER_NAMED);
  EXPECT_TRUE(contents.integers.empty());
  EXPECT_TRUE(contents.types.empty());
  answers.combiner = MPI_COMBINER_STRUCT;
  answers.integers = {3, 1, 2, 4};
  answers.addresses = {0, 8, 16};
  answers.types = {handles::get().integer, handles::get().byte, handles::get().packed};
  const type_envelope how = envelope_of(type);
  EXPECT_TRUE(how.is_derived());
  EXPECT_EQ(std::tuple(how.integers, how.addresses, how.counts, how.types), std::tuple(4, 3, 0, 3));
  contents = contents_of(type);
  EXPECT_EQ(contents.combiner, MPI_COMBINER_STRUCT);
  EXPECT_EQ(std::vector(contents.integers.begin(), contents.integers.begin() + 4),
            (std::vector<MPI_Count>{3, 1, 2, 4}));
  EXPECT_EQ(std::vector(contents.addresses.begin(), contents.addresses.begin() + 3), (std::vector<MPI_Aint>{0, 8, 16}));
  EXPECT_EQ(contents.types, answers.types);
  answers.types.clear();  // as of MPI_Type_create_f90_real
  EXPECT_FALSE(envelope_of(type).is_derived());
}

// ---- the uses of buffers in a program that is checked

// Writes down what it is told.
class recorded_checks final : public message_checks {
 public:
  static recorded_checks& of_process() {
    static auto* const it = [] {
      auto* const made = new recorded_checks;
      made->start();
      return made;
    }();
    return *it;
  }

  std::uint64_t begin(const char* function, std::span<const buffer> buffers) override {
    std::string words = function;
    for (const buffer& each : buffers)
      words += std::string(each.is_written ? " write " : " read ") +
               std::to_string(static_cast<const char*>(each.begin) - memory.data()) + "+" + std::to_string(each.bytes);
    told.push_back(words + " = " + std::to_string(++last_));
    return last_;
  }
  void end(std::uint64_t use, bool is_new) override {
    told.push_back("end " + std::to_string(use) + (is_new ? "" : ", not new"));
  }
  void enter() noexcept override { ++inside; }
  void leave() noexcept override { --inside; }

  std::vector<std::string> take() { return std::exchange(told, {}); }
  void restart() {
    told.clear();
    last_ = 0;
    inside = 0;
  }

  std::array<char, 256> memory{};
  std::vector<std::string> told;
  int inside = 0;

 private:
  std::uint64_t last_ = 0;
};

class CheckedCalls : public ::testing::Test {
 protected:
  using words = std::vector<std::string>;

  CheckedCalls() {
    fake_mpi::use();
    fake_mpi::library() = {};
    told().restart();
  }
  ~CheckedCalls() override {
    for (MPI_Request& each : requests_) checked_requests(1, &each).freed();
    EXPECT_EQ(told().inside, 0);
    EXPECT_FALSE(is_in_checked_call());
  }

  static recorded_checks& told() { return recorded_checks::of_process(); }
  static char* at(std::size_t n) { return told().memory.data() + n; }
  MPI_Request* request(std::size_t n) {
    requests_[n] = reinterpret_cast<MPI_Request>(&objects_[n]);
    return &requests_[n];
  }
  static layout bytes(std::size_t n) {
    layout result;
    result.add_bytes(0, n);
    return result;
  }
  static void add(checked_call& to, std::size_t n, std::size_t size, bool is_written) {
    to.add(at(n), is_written, [=] { return bytes(size); });
  }

  std::array<int, 4> objects_{};
  std::array<MPI_Request, 4> requests_{};
};

TEST_F(CheckedCalls, UseTheirBuffersUntilTheyReturn) {
  EXPECT_TRUE(is_checked());
  {
    checked_call call("MPI_Sendrecv");
    EXPECT_EQ(told().inside, 1);
    EXPECT_TRUE(is_in_checked_call());
    EXPECT_FALSE(is_checked());
    add(call, 8, 16, false);
    add(call, 32, 4, true);
    call.add(nullptr, true, [] { return bytes(5); });
    call.add(MPI_IN_PLACE, true, [] { return bytes(5); });
    call.add(at(1), true, []() -> layout { throw std::bad_alloc(); });
    call.add(at(64), false, [] {
      layout two;
      two.add_bytes(2, 3);
      two.add_bytes(10, 1);
      return two;
    });
    EXPECT_TRUE(told().take().empty());
    call.begin();
    EXPECT_EQ(told().take(), words{"MPI_Sendrecv read 8+16 write 32+4 read 66+3 read 74+1 = 1"});
    {
      const checked_thread inner;
      EXPECT_EQ(told().inside, 2);
    }
    EXPECT_TRUE(is_in_checked_call());
  }
  EXPECT_EQ(told().take(), words{"end 1"});
  EXPECT_EQ(told().inside, 0);
  {
    checked_call empty("MPI_Barrier");
    empty.begin();
  }
  EXPECT_TRUE(told().take().empty());
}

TEST_F(CheckedCalls, OfARequestLastUntilItIsComplete) {
  MPI_Request* const its = request(0);
  {
    checked_call call("MPI_Isend");
    add(call, 0, 8, false);
    call.begin();
    EXPECT_EQ(call.lasts(MPI_SUCCESS, its), MPI_SUCCESS);
  }
  EXPECT_EQ(told().take(), words{"MPI_Isend read 0+8 = 1"});
  { const checked_requests test(1, its); }
  EXPECT_TRUE(told().take().empty()) << "MPI has not completed the request";
  const MPI_Request before = *its;
  {
    const checked_requests wait(1, its);
    EXPECT_EQ(told().inside, 1);
    *its = handles::get().request_null;
  }
  EXPECT_EQ(told().take(), words{"end 1"});
  *its = before;
  {
    const checked_requests again(1, its);
    *its = handles::get().request_null;
  }
  EXPECT_TRUE(told().take().empty()) << "a use ends once";
}

TEST_F(CheckedCalls, ThatFailOrNeedNoRequestEndAtOnce) {
  MPI_Request* const its = request(0);
  {
    checked_call call("MPI_Irecv");
    add(call, 0, 8, true);
    call.begin();
    EXPECT_EQ(call.lasts(MPI_ERR_RANK, its), MPI_ERR_RANK);
  }
  EXPECT_EQ(told().take(), (words{"MPI_Irecv write 0+8 = 1", "end 1"}));
  {
    checked_call call("MPI_Irecv");
    add(call, 0, 8, true);
    call.begin();
    *its = handles::get().request_null;
    EXPECT_EQ(call.lasts(MPI_SUCCESS, its), MPI_SUCCESS);
  }
  EXPECT_EQ(told().take(), (words{"MPI_Irecv write 0+8 = 2", "end 2"}));
  {
    checked_call call("MPI_Ibarrier");
    call.begin();
    EXPECT_EQ(call.lasts(MPI_SUCCESS, request(1)), MPI_SUCCESS);
  }
  EXPECT_TRUE(told().take().empty());
}

TEST_F(CheckedCalls, AReusedHandleEndsTheOldUse) {
  MPI_Request* const its = request(0);
  for (const char* const function : {"MPI_Isend", "MPI_Irecv"}) {
    checked_call call(function);
    add(call, 0, 8, false);
    call.begin();
    EXPECT_EQ(call.lasts(MPI_SUCCESS, its), MPI_SUCCESS);
  }
  EXPECT_EQ(told().take(), (words{"MPI_Isend read 0+8 = 1", "MPI_Irecv read 0+8 = 2", "end 1, not new"}));
  checked_requests(1, its).freed();
  EXPECT_EQ(told().take(), words{"end 2"});
}

TEST_F(CheckedCalls, PersistentRequestsUseTheirBuffersFromEachStart) {
  MPI_Request* const its = request(0);
  {
    checked_call call("MPI_Send_init");
    add(call, 0, 8, false);
    EXPECT_EQ(call.made(MPI_ERR_RANK, request(1)), MPI_ERR_RANK);
    EXPECT_EQ(call.made(MPI_SUCCESS, its), MPI_SUCCESS);
  }
  EXPECT_TRUE(told().take().empty());
  const auto start = [&](MPI_Request* which) { checked_requests(1, which).start("MPI_Start"); };
  start(request(1));
  EXPECT_TRUE(told().take().empty()) << "the call that made it has failed";
  for (const std::string use : {"1", "2"}) {
    fake_mpi::library().request_is_complete = 0;
    start(its);
    EXPECT_EQ(told().take(), words{"MPI_Start read 0+8 = " + use});
    start(its);
    EXPECT_TRUE(told().take().empty()) << "it is active";
    { const checked_requests test(1, its); }
    EXPECT_TRUE(told().take().empty());
    fake_mpi::library().request_is_complete = 1;
    { const checked_requests wait(1, its); }
    EXPECT_EQ(told().take(), words{"end " + use});
    { const checked_requests wait(1, its); }
    EXPECT_TRUE(told().take().empty());
  }
  fake_mpi::library().request_is_complete = 0;
  start(its);
  EXPECT_EQ(told().take(), words{"MPI_Start read 0+8 = 3"});
  checked_requests(1, its).freed();
  EXPECT_EQ(told().take(), words{"end 3"});
  start(its);
  EXPECT_TRUE(told().take().empty()) << "it is freed";
}

TEST_F(CheckedCalls, OfSeveralRequestsEndOneByOne) {
  for (std::size_t n = 0; n < 3; ++n) {
    checked_call call("MPI_Isend");
    add(call, 8 * n, 8, false);
    call.begin();
    static_cast<void>(call.lasts(MPI_SUCCESS, request(n)));
  }
  static_cast<void>(told().take());
  {
    const checked_requests some(3, requests_.data());
    requests_[1] = handles::get().request_null;
  }
  EXPECT_EQ(told().take(), words{"end 2"});
  fake_mpi::library().request_is_complete = 1;
  { const checked_requests test(3, requests_.data()); }
  EXPECT_TRUE(told().take().empty()) << "this function of MPI frees the requests that it completes";
  { const checked_requests keeps(1, requests_.data(), true); }
  EXPECT_EQ(told().take(), words{"end 1"});
  {
    const checked_requests keeps(1, requests_.data(), true);
    const checked_requests none(0, requests_.data());
    const checked_requests nowhere(2, nullptr);
  }
  EXPECT_TRUE(told().take().empty());
  {
    const checked_thread wrapper;
    const checked_requests inner(3, requests_.data());
    requests_[2] = handles::get().request_null;
  }
  EXPECT_TRUE(told().take().empty()) << "the program has not made this call";
  request(2);
}

// An operation whose progress hpe knows.
class known_operation final : public pending {
 public:
  known_operation() : pending(no_object{}, true) {}
  int begin() override { return MPI_SUCCESS; }
  int finish(const MPI_Status* /*status*/) override { return MPI_SUCCESS; }
  void drop() noexcept override {}
  [[nodiscard]] bool active() override { return is_active; }
  bool is_active = true;
};

TEST_F(CheckedCalls, OperationsOfHpeAreCompleteWhenHpeSays) {
  MPI_Request* const its = request(0);
  const auto operation = std::make_shared<known_operation>();
  pending_table::all().add(*its, operation);
  {
    checked_call call("MPI_Recv_init");
    add(call, 0, 8, true);
    static_cast<void>(call.made(MPI_SUCCESS, its));
  }
  checked_requests(1, its).start("MPI_Startall");
  EXPECT_EQ(told().take(), words{"MPI_Startall write 0+8 = 1"});
  fake_mpi::library().request_is_complete = 1;
  { const checked_requests test(1, its); }
  EXPECT_TRUE(told().take().empty());
  operation->is_active = false;
  fake_mpi::library().request_is_complete = 0;
  { const checked_requests test(1, its); }
  EXPECT_EQ(told().take(), words{"end 1"});
  pending_table::all().remove(*its, operation);
}

}  // namespace
