#include "interpose/mpi/messages/incoming.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <utility>

#include "interpose/mpi/messages/progress.h"
#include "interpose/mpi/messages/transfer/chunks.h"
#include "interpose/mpi/messages/transfer/direct_copy.h"

namespace hpe::interpose::mpi {

// A start goes one of three ways: MPI receives the message; MPI receives an envelope; or the envelope is there already
// (in found_, or in head_ after is_left()).

namespace {

// The shape of a copy between two layouts of rows; nothing unless both have equal rows or one of them is contiguous.
std::optional<box_copy> shape_of(const box& from, const box& to) {
  const box_extent &read = from.extent, &room = to.extent;
  if (room.is_one_row()) return to_one_run(from);
  if (read.is_one_row()) {
    const std::size_t rows = read.width / room.width;
    const std::size_t in_a_plane = std::min(rows, room.rows);
    if (rows == 0 || read.width % room.width != 0 || rows % in_a_plane != 0) return std::nullopt;
    return box_copy{{room.width, in_a_plane, rows / in_a_plane}, to.strides, {room.width, room.width * in_a_plane}};
  }
  const bool alike = read.width == room.width && (read.planes == 1 ? read.rows <= room.rows : read.rows == room.rows);
  if (!alike || read.planes > room.planes) return std::nullopt;
  return box_copy{read, to.strides, from.strides};
}

// How long a sender that need not be in MPI may take to begin a copy that it was asked for.
constexpr std::chrono::microseconds patience{30};

// The owner of a receive buffer if that is memory of the driver, else nullptr.
adopted_pointers* driver_of(const receive& what, const layout& which) {
  const std::byte* const first = moved(what.buffer, which.begin());
  return core::host_access::of(first) == nullptr ? adopted_pointers::of(first) : nullptr;
}

std::shared_ptr<std::byte> borrowed_from(adopted_pointers& driver, std::size_t bytes) {
  return {driver.borrow(bytes), [&driver, bytes](std::byte* memory) { driver.give_back(memory, bytes); }};
}

}  // namespace

// Receives of ordinary memory, with gaps or wildcards are not announced, nor those that other work of the program may
// precede: the sender could copy before that work is done.
std::unique_ptr<announcement_board::announcement> announce(const receive& what, const layout& which) {
  announcement_board* const board = announcement_board::current();
  if (board == nullptr || what.source < 0 || what.tag < 0 || !set_aside::of_process().empty()) return nullptr;
  const auto* const sender = board->sender_of(what.comm, what.source);
  if (sender == nullptr || which.size() == 0 || which.size() != which.extent()) return nullptr;
  adopted_pointers* const devices = driver_of(what, which);
  const auto rows = which.rows();
  if (devices == nullptr || !rows || !rows->shape.extent.is_one_row() || devices->queued_now() != 0) return nullptr;
  std::unique_ptr<announcement_board::announcement> made;
  first_failure failure;
  failure.attempt([&] {
    const auto place = devices->share(reinterpret_cast<std::uintptr_t>(moved(what.buffer, which.begin())), which.size(),
                                      adopted_pointers::peer_use::overwrite, 0);
    if (place) made = board->announce(*sender, what.tag, which.size(), *place);
  });
  return made;
}

incoming::incoming(const receive& what, std::unique_ptr<announcement_board::announcement> announced)
    : incoming(what, false) {
  announced_ = std::move(announced);
}

incoming::incoming(const receive& what, bool persistent)
    : message(what.comm, persistent), what_(what), which_(elements(what.count, what.type)) {
  if (which_.size() < envelope_bytes)
    landing_ = envelope::landing();
  else if (which_.size() != which_.extent() && which_.size() <= INT_MAX && driver() != nullptr)
    landing_ = borrowed_from(*driver(), which_.size());
  else if (concerns(what.buffer))
    staged_.emplace(what.buffer, which_, host_use::write, persistent);
}

incoming::~incoming() {
  if (made_) HPE_REAL(Type_free)(&what_.type);
}

incoming::slot incoming::where() const noexcept {
  if (landing_) return {landing_.get(), static_cast<int>(std::max(which_.size(), envelope_bytes)), handles::get().byte};
  return {staged_ ? staged_->pointer() : what_.buffer, what_.count, what_.type};
}

// Open MPI 4.1 frees a persistent request when a start fails, so each start posts a new receive; MPI_Recv_init only
// checks the arguments here. The datatype is duplicated because the program may free its own.
int incoming::make() {
  MPI_Request looked_at{};
  const int result =
      HPE_REAL(Recv_init)(what_.buffer, what_.count, what_.type, what_.source, what_.tag, what_.comm, &looked_at);
  if (result != MPI_SUCCESS) return result;
  HPE_REAL(Request_free)(&looked_at);
  HPE_REAL(Type_dup)(what_.type, &what_.type);
  made_ = true;
  return result;
}

void incoming::prepare() {
  adopted_pointers* const devices = adopted_pointers::instance();
  queued_ = devices != nullptr ? devices->queued_now() : 0;
  if (persistent && staged_) staged_->refresh();
}

int incoming::start() {
  if (too_long_) {
    conclude_with_new_error(status_, MPI_ERR_TRUNCATE);
    return MPI_SUCCESS;
  }
  if (head_) {
    fetch(envelope(*head_));
    return MPI_SUCCESS;
  }
  if (!found_) found_ = set_aside::of_process().take(what_.comm, what_.source, what_.tag);
  if (found_ && found_->head) {
    found_->consume();
    status_ = found_->status;
    fetch(envelope(*found_->head));
    return MPI_SUCCESS;
  }
  const auto self = std::static_pointer_cast<incoming>(shared_from_this());
  progress::continuation then = [self](const MPI_Status& status, int code) { self->arrived(status, code); };
  progress::of_process().make_room();
  if (!found_) announced_ = announce(what_, which_);
  if (const int failed = post(); failed != MPI_SUCCESS) {
    announced_.reset();
    return failed;
  }
  progress::of_process().when_over(request_, std::move(then));
  return MPI_SUCCESS;
}

int incoming::post() {
  const auto [place, count, type] = where();
  if (found_) return HPE_REAL(Imrecv)(place, count, type, &found_->handle, &request_);
  return HPE_REAL(Irecv)(place, count, type, what_.source, what_.tag, what_.comm, &request_);
}

void incoming::cancel() {
  if (!head_) HPE_REAL(Cancel)(&request_);
}

void incoming::arrived(const MPI_Status& said, int code) {
  status_ = said;
  const auto found = std::exchange(found_, std::nullopt);
  if (found) found->correct(status_);
  int cancelled = 0;
  HPE_REAL(Test_cancelled)(&status_, &cancelled);
  if (code == MPI_SUCCESS && cancelled == 0 && !found)
    if (const auto head = find_envelope(status_)) return fetch(*head);
  settle([self = std::static_pointer_cast<incoming>(shared_from_this()), code, cancelled] {
    self->conclude_arrived(code, cancelled != 0);
  });
}

// MPI has received a payload, or nothing because of an error or a cancellation.
void incoming::conclude_arrived(int code, bool cancelled) {
  if (code != MPI_SUCCESS || cancelled) return conclude(status_, code);
  if (is_too_long(status_)) return conclude_with_new_error(status_, MPI_ERR_TRUNCATE);
  first_failure failure;
  failure.attempt([&] { put_in_place(status_); });
  if (!persistent) staged_.reset();
  conclude(status_, failure.what());
}

bool incoming::is_left(const MPI_Status& status) {
  head_ = find_envelope(status);
  status_ = status;
  too_long_ = !head_ && is_too_long(status);
  if (!head_) await_settled();
  if (!head_ && !too_long_) put_in_place(status);
  return head_ || too_long_;
}

// Without landing_, MPI itself detects a message that is too long for the program's buffer or its staged copy.
bool incoming::is_too_long(const MPI_Status& status) const {
  return landing_ && bytes_received(status) > which_.size();
}

void incoming::put_in_place(const MPI_Status& status) {
  if (landing_) return scatter(landing_.get(), bytes_received(status));
  if (staged_) staged_->written(bytes_received(status));
}

std::optional<envelope> incoming::find_envelope(const MPI_Status& status) const {
  const std::size_t bytes = bytes_received(status);
  return landing_ ? envelope::recognise(landing_.get(), bytes) : envelope::recognise(where().place, which_, bytes);
}

void incoming::fetch(const envelope& head) {
  head_ = head;
  found_.reset();
  if (!persistent) staged_.reset();
  HPE_REAL(Status_set_elements_x)(&status_, handles::get().byte, static_cast<MPI_Count>(head.bytes));
  taken_ = head.offered() != nullptr && offer_board::current()->take(head.sender, head.offered()->offer);
  learn_sender();
  const auto self = std::static_pointer_cast<incoming>(shared_from_this());
  if (is_copied_unasked()) {
    offer_board::current()->matched(head.sender, head.offered()->offer);
    patient_until_ = std::chrono::steady_clock::now() + patience;
    progress::of_process().owe(1);
    return progress::of_process().repeat([self] { return self->look_at_unasked_copy(); });
  }
  settle([self] { self->fetch_unless_too_long(); });
}

void incoming::fetch_unless_too_long() {
  if (head_->bytes > which_.size()) {
    tell_done();
    head_.reset();
    return conclude_with_new_error(status_, MPI_ERR_TRUNCATE);
  }
  progress::of_process().owe(1);
  left_ = false;
  fetch_payload();
}

void incoming::learn_sender() {
  if (announcement_board* const board = announcement_board::current(); board != nullptr && head_->offered() != nullptr)
    board->learn(what_.comm, status_.MPI_SOURCE, head_->sender, head_->communicator);
}

// Whether the sender copies this message to the announced buffer. If it does not, the buffer is announced no longer.
bool incoming::is_copied_unasked() {
  if (announced_ == nullptr) return false;
  // Before the announcement is taken back: the sender must not claim the next one for this message.
  if (taken_) offer_board::current()->show_taken(head_->sender, head_->offered()->offer);
  const auto claimed = announced_->claim();
  if (claimed && taken_ && announced_->sender() == head_->sender && claimed->is_same(head_->offered()->offer))
    return true;
  if (claimed) announcement_board::current()->mistaken(what_.comm, what_.source);
  return false;
}

// Calls `then` when no sender copies to the buffer for an announcement: at once, unless one has claimed it.
void incoming::settle(const std::function<void()>& then) {
  if (is_settled()) return then();
  progress::of_process().repeat([self = std::static_pointer_cast<incoming>(shared_from_this()), then] {
    if (!self->is_settled()) return false;
    then();
    return true;
  });
}

bool incoming::is_settled() {
  if (announced_ != nullptr && announced_->claim() && !announced_->is_over()) return false;
  announced_.reset();
  return true;
}

void incoming::await_settled() {
  progress::of_process().until([this] { return is_settled(); });
}

bool incoming::look_at_unasked_copy() {
  const offer_board& board = *offer_board::current();
  const offer_board::offer& of = head_->offered()->offer;
  const bool over =
      progress::of_process().only_one() ? board.watch_copy(head_->sender, of) : board.is_copied(head_->sender, of);
  if (!over) return false;
  left_ = board.has_failed(head_->sender, of);
  announced_.reset();
  if (left_) {
    fetch_payload();
    return true;
  }
  record_part("receiver waits for the sender's copy", patient_until_ - patience, head_->bytes);
  first_failure failure;
  failure.attempt([&] {
    driver()->overwritten(reinterpret_cast<std::uintptr_t>(moved(what_.buffer, rows_->offset)), head_->bytes);
  });
  fetched(failure.what());
  return true;
}

adopted_pointers* incoming::driver() const { return driver_of(what_, which_); }

void incoming::fetch_payload() {
  if (taken_ && fetch_rows()) return;
  std::byte* to = moved(what_.buffer, which_.begin());
  if (!rows_ ||
      !rows_->shape.extent.is_one_row()) {  // a layout without gaps may still be ordered differently from the payload
    // hpe's runtime copies memory that it exported, and does not know device memory of this kind.
    if (head_->exported() == nullptr) borrow_gathered(head_->bytes);
    if (gathered_ == nullptr) assembled_ = std::make_unique_for_overwrite<std::byte[]>(head_->bytes);
    to = gathered_ != nullptr ? gathered_.get() : assembled_.get();
  }
  if (!fetch_directly(to)) fetch_chunks(to, taken_ ? answer::verdict::unreachable : answer::verdict::chunks);
}

// Copies rows to rows, without an intermediate copy. The host writes rows of ordinary memory, because a device is slow
// at it.
bool incoming::fetch_rows() {
  if (!rows_ || rows_->shape.extent.is_one_row() || !concerns(what_.buffer)) return false;
  const auto shape = shape_of(head_->offered()->rows, rows_->shape);
  if (!shape) return false;
  const auto self = std::static_pointer_cast<incoming>(shared_from_this());
  return copy(moved(what_.buffer, rows_->offset), *shape, [self](const std::optional<error>& failure) {
    self->tell_done();
    self->fetched(failure);
  });
}

// Starts the device copy for a taken offer, by the sender if possible, else by this side.
bool incoming::copy(std::byte* to, const box_copy& shape, const transfer_over& then) {
  return ask_for_push(to, shape) || copy_directly(to, head_->offered()->device, shape, queued_, then);
}

// Asks the sender to copy, if it can write the memory, and waits in MPI or may soon be there: when several messages are
// in progress, the sender is probably sending more of them. Processes take turns on a device, so if both sides use the
// same device, the lower rank makes the copies of both.
bool incoming::ask_for_push(std::byte* to, const box_copy& shape) {
  offer_board* const board = offer_board::current();
  adopted_pointers* const devices = adopted_pointers::of(to);
  if (left_ || devices == nullptr) return false;
  if (!sender_waits() && progress::of_process().only_one()) return false;
  std::optional<peer_bytes> place;
  first_failure failure;
  failure.attempt([&] {
    place = devices->share(reinterpret_cast<std::uintptr_t>(to), shape.written().span(),
                           adopted_pointers::peer_use::overwrite, queued_);
  });
  if (!place || (place->device == head_->offered()->device.device && job::current()->rank < head_->sender))
    return false;
  board->ask(head_->sender, head_->offered()->offer, {*place, shape});
  patient_until_ = std::chrono::steady_clock::now() + patience;
  progress::of_process().repeat([self = std::static_pointer_cast<incoming>(shared_from_this()), devices, to,
                                 bytes = shape.written().span()] { return self->look_at_push(*devices, to, bytes); });
  return true;
}

bool incoming::look_at_push(adopted_pointers& devices, const std::byte* to, std::size_t bytes) {
  const offer_board& board = *offer_board::current();
  const bool alone = progress::of_process().only_one();
  const offer_board::stage at = alone ? board.watch(head_->sender, head_->offered()->offer)
                                      : board.stage_of(head_->sender, head_->offered()->offer);
  if (at == offer_board::stage::pushing || (at == offer_board::stage::asked && !gives_up_push())) return false;
  left_ = at != offer_board::stage::done;
  if (left_) {
    fetch_payload();
  } else {
    record_part("receiver waits for the sender's copy", patient_until_ - patience, head_->bytes);
    first_failure failure;
    failure.attempt([&] { devices.overwritten(reinterpret_cast<std::uintptr_t>(to), bytes); });
    fetched(failure.what());
  }
  return true;
}

// Whether the sender stays in MPI until the message is over.
bool incoming::sender_waits() const {
  const envelope::offered_bytes& what = *head_->offered();
  return what.awaited || offer_board::current()->is_awaited(head_->sender, what.offer);
}

bool incoming::gives_up_push() const {
  offer_board& board = *offer_board::current();
  return !sender_waits() && std::chrono::steady_clock::now() >= patient_until_ &&
         board.take_back(head_->sender, head_->offered()->offer);
}

bool incoming::fetch_directly(std::byte* to) {
  const auto self = std::static_pointer_cast<incoming>(shared_from_this());
  const auto copied = [self, to](const std::optional<error>& failure) {
    // The sender's device may be unreachable, or lost; then the transfer in chunks fails too and returns the error.
    if (failure) return self->fetch_chunks(to);
    self->tell_done();
    self->fetched(std::nullopt);
  };
  if (taken_) return copy(to, *shape_of(head_->offered()->rows, {{head_->bytes}, {}}), copied);
  const hpeExport* const exported = head_->exported();
  return exported != nullptr && copy_directly(to, *exported, head_->bytes, copied);
}

void incoming::tell_done() const {
  if (taken_) return offer_board::current()->done(head_->sender, head_->offered()->offer);
  channel::of_process().send({head_->sequence, answer::verdict::done}, head_->sender);
}

void incoming::fetch_chunks(std::byte* to, answer::verdict verdict) {
  channel& answers = channel::of_process();
  const int tag = answers.new_tag();
  const auto self = std::static_pointer_cast<incoming>(shared_from_this());
  receive_in_chunks(to, {head_->bytes, head_->chunk, head_->sender, tag},
                    [self](const std::optional<error>& failure) { self->fetched(failure); });
  answers.send({head_->sequence, verdict, tag}, head_->sender);
}

void incoming::fetched(const std::optional<error>& failure) {
  first_failure what;
  if (assembled_ && !failure) what.attempt([&] { scatter(assembled_.get(), head_->bytes); });
  if (gathered_ && !failure) what.attempt([&] { scatter_gathered(head_->bytes); });
  assembled_.reset();
  gathered_.reset();
  head_.reset();
  progress::of_process().owe(-1);
  conclude(status_, failure ? failure : what.what());
}

// Borrows device memory for a payload that a kernel scatters, if the receive buffer is memory of the driver.
void incoming::borrow_gathered(std::size_t bytes) {
  adopted_pointers* const devices = driver();
  if (devices != nullptr && which_.scattered() && bytes != 0)
    gathered_ = devices->borrow_beside(reinterpret_cast<std::uintptr_t>(moved(what_.buffer, which_.begin())), bytes);
}

void incoming::scatter_gathered(std::size_t bytes) {
  const auto to = *which_.scattered();
  driver()
      ->scatter(reinterpret_cast<std::uintptr_t>(moved(what_.buffer, to.displacement)), to.which, gathered_.get(),
                bytes, queued_)
      .wait();
}

void incoming::scatter(const std::byte* from, std::size_t bytes) {
  std::optional<staged_buffer> device;
  if (concerns(what_.buffer)) device.emplace(what_.buffer, which_, host_use::write, false);
  void* const to = device ? device->pointer() : what_.buffer;
  which_.visit(bytes, [&](stretch s) {
    std::memcpy(moved(to, s.offset), from, s.bytes);
    from += s.bytes;
  });
  if (device) device->written(bytes);
}

}  // namespace hpe::interpose::mpi
