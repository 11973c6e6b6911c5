#include "interpose/mpi/messages/message_progress.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "interpose/mpi/libraries/library.h"
#include "runtime/os/thread.h"

// Invariant: requests_ and thens_ have the same length, and change only while mutex_ is locked. look_at_requests()
// removes completed requests from both before it calls continuations, because a continuation may add requests to both.

namespace hpe::interpose::mpi {

namespace {

constinit thread_local int guards_of_this_thread = 0;

}  // namespace

progress& progress::of_process() {
  static auto* const it = new progress;
  return *it;
}

bool progress::attach() {
  if (const progress_function its = call_in_progress(called_by_mpi); its != nullptr) {
    wait_a_little_ = its;
  } else {
    int level = MPI_THREAD_SINGLE;
    HPE_REAL(Query_thread)(&level);
    if (level != MPI_THREAD_MULTIPLE) return false;
    wait_a_little_ = step;
    attached_ = true;
    assistant_ = os::start_thread("hpe-mpi", [this] { assist(); });
    unaided_ = true;
  }
  attached_ = true;
  return true;
}

void progress::detach() {
  attached_ = false;
  if (!assistant_.joinable()) return;
  begun();  // wakes the thread
  assistant_.join();
  over();
}

// Threads that wait share the core with other ranks if there are more ranks than cores. A thread that waits does not
// call MPI while another thread continues the transfers, because MPI would let only one of the two threads in.
void progress::step() {
  progress& all = of_process();
  all.steps_.fetch_add(1, std::memory_order_relaxed);
  // If several threads wait, none of them blocks here, so that each soon sees the results of the other threads.
  const bool alone = all.waiting_.load(std::memory_order_relaxed) <= 1;
  if (all.take_turn(alone ? other_threads::awaited : other_threads::left_alone) == 0) std::this_thread::yield();
}

// The program's own waits continue transfers sooner. So this thread only matters in calls that the wrappers cannot
// replace, sleeps between its turns, and takes no turn while the program waits. A function of the program that MPI or
// hpe calls may leave a wait by longjmp, which runs no destructor; waiting_ then remains too high. A thread that waits
// steps all the time, so if waiting_ is not 0 and no thread has stepped for `missing` intervals, no thread waits.
void progress::assist() {
  constexpr std::chrono::microseconds interval{100};
  constexpr unsigned missing = 100;  // a thread that shares its core with other ranks may not step for some ms
  unsigned last = steps_.load(std::memory_order_relaxed);
  unsigned without_step = 0;  // the number of intervals
  while (attached_) {
    going_on_.wait(0);
    std::this_thread::sleep_for(interval);
    const unsigned now = steps_.load(std::memory_order_relaxed);
    without_step = std::exchange(last, now) == now ? std::min(without_step + 1, missing) : 0;
    if (waiting_.load(std::memory_order_relaxed) == 0 || without_step == missing) called_by_mpi();
  }
}

progress::guard::guard() {
  of_process().mutex_.lock();
  ++guards_of_this_thread;
}

progress::guard::~guard() {
  --guards_of_this_thread;
  of_process().mutex_.unlock();
}

bool progress::guard::is_held() noexcept { return guards_of_this_thread != 0; }

void progress::make_room() {
  const auto grow = [](auto& list) {
    if (list.size() == list.capacity()) list.reserve(2 * list.size() + 8);
  };
  grow(requests_);
  grow(thens_);
}

void progress::when_over(MPI_Request request, continuation&& then) noexcept {
  requests_.push_back(request);
  thens_.push_back(std::move(then));
}

void progress::repeat(poll each) { polls_.push_back(std::move(each)); }

// advance() calls functions of MPI, which call this function again. The inner call finds that the thread holds a guard,
// and returns at once.
int progress::called_by_mpi() { return of_process().take_turn(other_threads::left_alone); }

int progress::take_turn(other_threads others) {
  if (idle() || !attached_) return 0;
  std::unique_lock lock(mutex_, std::defer_lock);
  if (others == other_threads::awaited) lock.lock();
  if ((!lock.owns_lock() && !lock.try_lock()) || guard::is_held()) return 0;
  const guard held;
  return advance();
}

void progress::catch_up() {
  const std::lock_guard lock(mutex_);
  take_turn(other_threads::awaited);
}

void progress::look() {
  if (idle() || only_one()) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || guard::is_held()) return;
  const guard held;
  call_polls();
}

void progress::look_at_arrivals() {
  // Only one call in 8 makes progress, because progress takes about as long as the program's call, or longer if many
  // operations are in progress.
  constexpr unsigned some = 8;
  if (idle() || only_one()) return;
  if (begun_beside_others_.fetch_add(1, std::memory_order_relaxed) % some != 0) return;
  if (unaided_)
    called_by_mpi();
  else
    wait_a_little_();
}

int progress::advance() {
  const int events = look_at_requests();
  return events + call_polls();
}

// A poll may add new polls. repeat() adds them to polls_, and after the loop they follow the existing polls.
int progress::call_polls() {
  running_.swap(polls_);
  const auto done = static_cast<int>(std::erase_if(running_, [](const poll& p) { return p(); }));
  running_.insert(running_.end(), std::make_move_iterator(polls_.begin()), std::make_move_iterator(polls_.end()));
  polls_.clear();
  running_.swap(polls_);
  return done;
}

int progress::look_at_requests() {
  if (requests_.empty()) return 0;
  const int count = static_cast<int>(requests_.size());
  indices_.resize(requests_.size());
  statuses_.resize(requests_.size());
  int done = 0;
  const int result = HPE_REAL(Testsome)(count, requests_.data(), &done, indices_.data(), statuses_.data());
  if (done == MPI_UNDEFINED || done <= 0) return 0;
  const std::vector<int> indices = indices_;
  const std::vector<MPI_Status> statuses = statuses_;
  std::vector<continuation> thens;
  for (int k = 0; k < done; ++k) {
    const auto i = static_cast<std::size_t>(indices[static_cast<std::size_t>(k)]);
    thens.push_back(std::move(thens_[i]));
    thens_[i] = nullptr;
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < thens_.size(); ++i) {
    if (!thens_[i]) continue;
    requests_[kept] = requests_[i];
    if (kept != i) thens_[kept] = std::move(thens_[i]);
    ++kept;
  }
  requests_.resize(kept);
  thens_.resize(kept);
  for (std::size_t k = 0; k < thens.size(); ++k)
    thens[k](statuses[k], result == MPI_ERR_IN_STATUS ? statuses[k].MPI_ERROR : MPI_SUCCESS);
  return done;
}

}  // namespace hpe::interpose::mpi
