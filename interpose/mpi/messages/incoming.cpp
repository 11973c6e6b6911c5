#include "interpose/mpi/messages/incoming.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <utility>

#include "interpose/mpi/messages/message_progress.h"
#include "interpose/mpi/messages/transfer/chunks.h"
#include "interpose/mpi/messages/transfer/direct_copy.h"

namespace hpe::interpose::mpi {

using namespace receive_phase;  // NOLINT(google-build-using-namespace): of this class alone

namespace {

// Returns the shape of a copy between two boxes (equal rows at equal distances); nullopt if the bytes of a contiguous
// box do not fill whole rows or planes of the other box, or if neither box is contiguous and their rows or planes
// differ.
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

// The time after which a receiver copies the message itself, if the sender may be outside MPI and has not begun the
// copy for which the receiver has asked.
constexpr std::chrono::microseconds patience{30};

// Returns the object that manages the receive buffer if the buffer is memory of the driver; otherwise nullptr.
adopted_pointers* driver_of(const receive& what, const layout& which) {
  const std::byte* const first = moved(what.buffer, which.begin());
  return core::host_access::of(first) == nullptr ? adopted_pointers::of(first) : nullptr;
}

std::shared_ptr<std::byte> borrowed_from(adopted_pointers& driver, std::size_t bytes) {
  return {driver.borrow(bytes), [&driver, bytes](std::byte* memory) { driver.give_back(memory, bytes); }};
}

}  // namespace

// hpe does not advertise receives with buffers in ordinary memory or hpe memory, with gaps or with wildcards. A receive
// is also not advertised while the program has unfinished work on its devices, because the sender could copy before
// this work ends. MPI must match the receive with the sender's next message, so a receive is not advertised if an
// earlier receive may get this message.
std::unique_ptr<advertisement_board::advertisement> advertise(const receive& what, const layout& which) {
  advertisement_board* const board = advertisement_board::current();
  if (board == nullptr || what.source < 0 || what.tag < 0 || !set_aside::of_process().empty()) return nullptr;
  if (unadvertised_receive::may_precede(what.comm, what.source, what.tag)) return nullptr;
  const auto* const sender = board->sender_of(what.comm, what.source);
  if (sender == nullptr || which.size() == 0 || which.size() != which.extent()) return nullptr;
  adopted_pointers* const devices = driver_of(what, which);
  const auto rows = which.rows();
  if (devices == nullptr || !rows || !rows->shape.extent.is_one_row() || devices->queued_now() != 0) return nullptr;
  std::unique_ptr<advertisement_board::advertisement> made;
  first_failure failure;
  failure.attempt([&] {
    const auto place = devices->share(reinterpret_cast<std::uintptr_t>(moved(what.buffer, which.begin())), which.size(),
                                      adopted_pointers::peer_use::overwrite, 0);
    if (place) made = board->advertise(*sender, what.tag, which.size(), *place);
  });
  return made;
}

incoming::incoming(const receive& what, std::unique_ptr<advertisement_board::advertisement> advertised)
    : incoming(what, false) {
  advertised_ = std::move(advertised);
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

incoming::buffer_arguments incoming::where() const noexcept {
  if (landing_) return {landing_.get(), static_cast<int>(std::max(which_.size(), envelope_bytes)), handles::get().byte};
  return {staged_ ? staged_->pointer() : what_.buffer, what_.count, what_.type};
}

// Prepares a persistent receive. Open MPI 4.1 frees a persistent request when a start fails, so each start posts a new
// receive, and MPI_Recv_init is called here only to check the arguments. The datatype is duplicated because the program
// may free its datatype before the last start.
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

// Three cases: a blocking call has received an envelope or too many bytes before; hpe has taken the message out of MPI
// after a probe; or MPI has not received anything, and this function posts a receive.
int incoming::start() {
  if (std::holds_alternative<has_too_much>(phase_)) {
    enter(ready{});
    conclude_with_new_error(status_, MPI_ERR_TRUNCATE);
    return MPI_SUCCESS;
  }
  if (const auto* const left = std::get_if<has_envelope>(&phase_)) {
    open_envelope(envelope(left->head));
    return MPI_SUCCESS;
  }
  std::optional<matched>& found = in<ready>().found;
  if (!found) found = set_aside::of_process().take(what_.comm, what_.source, what_.tag);
  if (found) unadvertised_.emplace(found->comm, found->status.MPI_SOURCE, found->status.MPI_TAG);
  if (found && found->head) {
    found->consume();
    status_ = found->status;
    open_envelope(envelope(*found->head));
    return MPI_SUCCESS;
  }
  const auto self = std::static_pointer_cast<incoming>(shared_from_this());
  progress::continuation then = [self](const MPI_Status& status, int code) { self->arrived(status, code); };
  progress::of_process().make_room();
  if (!found) advertised_ = advertise(what_, which_);
  if (!found && advertised_ == nullptr) unadvertised_.emplace(what_.comm, what_.source, what_.tag);
  posted next{{}, found};
  if (const int failed = post(next); failed != MPI_SUCCESS) {
    advertised_.reset();
    unadvertised_.reset();
    return failed;
  }
  const MPI_Request request = next.request;
  enter(next);
  progress::of_process().when_over(request, std::move(then));
  return MPI_SUCCESS;
}

int incoming::post(posted& what) const {
  const auto [place, count, type] = where();
  if (what.found) return HPE_REAL(Imrecv)(place, count, type, &what.found->handle, &what.request);
  return HPE_REAL(Irecv)(place, count, type, what_.source, what_.tag, what_.comm, &what.request);
}

// A receive is not cancelled if a sender has begun to copy to its buffer, because a cancelled receive must leave its
// buffer unchanged.
void incoming::cancel_started() {
  auto* const now = std::get_if<posted>(&phase_);
  if (now == nullptr || (advertised_ != nullptr && advertised_->claim())) return;
  if (!unadvertised_) unadvertised_.emplace(what_.comm, what_.source, what_.tag);
  HPE_REAL(Cancel)(&now->request);
}

void incoming::arrived(const MPI_Status& said, int code) {
  status_ = said;
  const auto found = in<posted>().found;
  if (found) found->correct(status_);
  int cancelled = 0;
  HPE_REAL(Test_cancelled)(&status_, &cancelled);
  if (code == MPI_SUCCESS && cancelled == 0 && !found)
    if (const auto head = find_envelope(status_)) return open_envelope(*head);
  enter(received{code, cancelled != 0});
  settle();
}

void incoming::conclude_received() {
  const received was = in<received>();
  enter(ready{});
  unadvertised_.reset();
  if (was.code != MPI_SUCCESS || was.cancelled) return conclude(status_, was.code);
  if (is_too_long(status_)) return conclude_with_new_error(status_, MPI_ERR_TRUNCATE);
  first_failure failure;
  failure.attempt([&] { put_in_place(status_); });
  if (!persistent) staged_.reset();
  conclude(status_, failure.what());
}

bool incoming::is_left(const MPI_Status& status) {
  status_ = status;
  if (const auto head = find_envelope(status)) {
    enter(has_envelope{*head});
    return true;
  }
  await_settled();
  if (is_too_long(status)) {
    enter(has_too_much{});
    return true;
  }
  put_in_place(status);
  return false;
}

// Without landing_, MPI receives into the program's buffer or a staged buffer of the same size, and itself reports a
// message that is too long.
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

void incoming::open_envelope(const envelope& head) {
  if (!persistent) staged_.reset();
  HPE_REAL(Status_set_elements_x)(&status_, handles::get().byte, static_cast<MPI_Count>(head.bytes));
  if (advertisement_board* const board = advertisement_board::current(); board != nullptr)
    board->withdraw_before(advertised_.get(), {head.sender, head.communicator, status_.MPI_TAG});
  const payload what{head,
                     head.offered() != nullptr && offer_board::current()->take(head.sender, head.offered()->offer)};
  learn_sender(head);
  if (is_copied_unasked(what)) {
    offer_board::current()->matched(head.sender, head.offered()->offer);
    enter(copied_unasked{what, std::chrono::steady_clock::now()});
    progress::of_process().owe(1);
    return progress::of_process().repeat(
        [self = std::static_pointer_cast<incoming>(shared_from_this())] { return self->look_at_unasked_copy(); });
  }
  enter(unsettled{what});
  settle();
}

void incoming::learn_sender(const envelope& head) const {
  if (advertisement_board* const board = advertisement_board::current(); board != nullptr && head.offered() != nullptr)
    board->learn(what_.comm, status_.MPI_SOURCE, head.sender, head.communicator);
}

// Whether the sender copies this message to the advertised buffer. Withdraws the advertisement if no sender has claimed
// it.
bool incoming::is_copied_unasked(const payload& what) {
  if (advertised_ == nullptr) return false;
  // Show the offer as taken before claim() withdraws the advertisement, so that the sender does not claim the next
  // advertisement for this message.
  if (what.taken) offer_board::current()->show_taken(what.head.sender, what.head.offered()->offer);
  const auto claimed = advertised_->claim();
  const bool is_its = claimed && what.head.offered() != nullptr && advertised_->about().sender == what.head.sender &&
                      claimed->is_same(what.head.offered()->offer);
  if (is_its && what.taken) return true;
  if (claimed && !is_its) advertisement_board::current()->mistaken(what_.comm, what_.source);
  return false;
}

// Calls settled() when no sender copies to the advertised buffer: at once if no sender has claimed the advertisement,
// otherwise after the sender's copy.
void incoming::settle() {
  if (is_settled()) return settled();
  progress::of_process().repeat([self = std::static_pointer_cast<incoming>(shared_from_this())] {
    if (!self->is_settled()) return false;
    self->settled();
    return true;
  });
}

void incoming::settled() { std::holds_alternative<received>(phase_) ? conclude_received() : fetch_unless_too_long(); }

void incoming::fetch_unless_too_long() {
  const payload what = in<unsettled>();
  if (what.head.bytes > which_.size()) {
    tell_done(what);
    enter(ready{});
    unadvertised_.reset();
    return conclude_with_new_error(status_, MPI_ERR_TRUNCATE);
  }
  progress::of_process().owe(1);
  fetch_payload(what, asking::yes);
}

bool incoming::is_settled() {
  if (advertised_ != nullptr && advertised_->claim() && !advertised_->is_over()) return false;
  advertised_.reset();
  return true;
}

void incoming::await_arrived() {
  // MPI may have received the message in a call after which it has not called hpe.
  progress::of_process().catch_up();
  {
    const progress::guard held;
    if (over() || std::holds_alternative<receive_phase::posted>(phase_)) return;
  }
  progress::of_process().until([this] { return over(); });
}

void incoming::await_settled() {
  progress::of_process().until([this] { return is_settled(); });
}

bool incoming::look_at_unasked_copy() {
  const copied_unasked& now = in<copied_unasked>();
  const offer_board& board = *offer_board::current();
  const offer_board::offer& of = now.head.offered()->offer;
  const bool over =
      progress::of_process().only_one() ? board.watch_copy(now.head.sender, of) : board.is_copied(now.head.sender, of);
  if (!over) return false;
  const bool has_failed = board.has_failed(now.head.sender, of);
  advertised_.reset();
  if (has_failed) {
    fetch_payload(payload(now), asking::no);
    return true;
  }
  record_part("receiver waits for the sender's copy", now.since, now.head.bytes);
  first_failure failure;
  failure.attempt([&] {
    driver()->overwritten(reinterpret_cast<std::uintptr_t>(moved(what_.buffer, rows_->offset)), now.head.bytes);
  });
  conclude_payload(failure.what());
  return true;
}

adopted_pointers* incoming::driver() const { return driver_of(what_, which_); }

void incoming::fetch_payload(const payload& what, asking may_ask) {
  enter(fetching{what, nullptr, nullptr, nullptr});
  if (what.taken && fetch_rows(may_ask)) return;
  fetching& now = in<fetching>();
  now.to = moved(what_.buffer, which_.begin());
  // A datatype without gaps may also have no rows, because its elements may be in another order than in the payload.
  if (!rows_ || !rows_->shape.extent.is_one_row()) {
    // The runtime copies payloads in exported hpe memory, but cannot copy to device memory that was borrowed from the
    // driver.
    if (now.head.exported() == nullptr) now.gathered = borrow_gathered(now.head.bytes);
    if (now.gathered == nullptr) now.assembled = std::make_unique_for_overwrite<std::byte[]>(now.head.bytes);
    now.to = now.gathered != nullptr ? now.gathered.get() : now.assembled.get();
  }
  if (!fetch_directly(may_ask))
    fetch_chunks(now.taken ? envelope_answer::verdict::unreachable : envelope_answer::verdict::chunks);
}

// Starts a copy from the payload's rows directly to the rows of the receive buffer. Returns false if this is
// impossible, or if the receive buffer is in ordinary memory: the host then writes the rows, because a device writes
// rows in ordinary memory slowly.
bool incoming::fetch_rows(asking may_ask) {
  if (!rows_ || rows_->shape.extent.is_one_row() || !concerns(what_.buffer)) return false;
  fetching& now = in<fetching>();
  const auto shape = shape_of(now.head.offered()->rows, rows_->shape);
  if (!shape) return false;
  now.to = moved(what_.buffer, rows_->offset);
  const auto self = std::static_pointer_cast<incoming>(shared_from_this());
  return copy(*shape, may_ask, [self](const std::optional<error>& failure) {
    tell_done(self->in<fetching>());
    self->fetched(self->in<fetching>(), failure);
  });
}

// Starts a copy from device to device for a taken offer: asks the sender to copy if possible, otherwise copies itself.
// Returns false if neither is possible.
bool incoming::copy(const box_copy& shape, asking may_ask, const transfer_over& then) {
  if (may_ask == asking::yes && ask_for_push(shape)) return true;
  const fetching& now = in<fetching>();
  return copy_directly(now.to, now.head.offered()->device, shape, queued_, then);
}

// Asks the sender to copy if the sender can write to the receive buffer and will probably begin the copy soon. hpe
// assumes this if a thread of the sender waits in MPI, or if this rank has several operations in progress, because the
// sender then probably calls MPI again. If both ranks use the same device, the lower rank makes the copies of both,
// because without MPS processes take turns on a device.
bool incoming::ask_for_push(const box_copy& shape) {
  offer_board* const board = offer_board::current();
  fetching& now = in<fetching>();
  adopted_pointers* const devices = adopted_pointers::of(now.to);
  if (devices == nullptr) return false;
  if (!sender_waits(now) && progress::of_process().only_one()) return false;
  std::optional<peer_bytes> place;
  first_failure failure;
  failure.attempt([&] {
    place = devices->share(reinterpret_cast<std::uintptr_t>(now.to), shape.written().span(),
                           adopted_pointers::peer_use::overwrite, queued_);
  });
  if (!place || (place->device == now.head.offered()->device.device && job::current()->rank < now.head.sender))
    return false;
  board->ask(now.head.sender, now.head.offered()->offer, {*place, shape});
  enter(asked{std::move(now), devices, shape.written().span(), std::chrono::steady_clock::now()});
  progress::of_process().repeat(
      [self = std::static_pointer_cast<incoming>(shared_from_this())] { return self->look_at_push(); });
  return true;
}

bool incoming::look_at_push() {
  const asked& now = in<asked>();
  const offer_board& board = *offer_board::current();
  const offer_board::offer& of = now.head.offered()->offer;
  const bool alone = progress::of_process().only_one();
  const offer_board::stage at = alone ? board.watch(now.head.sender, of) : board.stage_of(now.head.sender, of);
  if (at == offer_board::stage::pushing || (at == offer_board::stage::asked && !gives_up_push(now))) return false;
  if (at != offer_board::stage::done) {
    fetch_payload(payload(now), asking::no);
    return true;
  }
  record_part("receiver waits for the sender's copy", now.since, now.head.bytes);
  first_failure failure;
  failure.attempt([&] { now.devices->overwritten(reinterpret_cast<std::uintptr_t>(now.to), now.bytes); });
  fetched(now, failure.what());
  return true;
}

// Whether a thread of the sender stays in MPI until the message has completed.
bool incoming::sender_waits(const payload& what) {
  const envelope::offered_bytes& offered = *what.head.offered();
  return offered.awaited || offer_board::current()->is_awaited(what.head.sender, offered.offer);
}

bool incoming::gives_up_push(const asked& now) {
  return !sender_waits(now) && std::chrono::steady_clock::now() >= now.since + patience &&
         offer_board::current()->take_back(now.head.sender, now.head.offered()->offer);
}

bool incoming::fetch_directly(asking may_ask) {
  const auto self = std::static_pointer_cast<incoming>(shared_from_this());
  const auto copied = [self](const std::optional<error>& failure) {
    // The copy may fail because this process cannot access the sender's memory; then the transfer in chunks succeeds.
    // If the sender's device is lost, the transfer in chunks fails, too, and reports the error.
    if (failure) return self->fetch_chunks();
    tell_done(self->in<fetching>());
    self->fetched(self->in<fetching>(), std::nullopt);
  };
  const fetching& now = in<fetching>();
  if (now.taken) return copy(*shape_of(now.head.offered()->rows, {{now.head.bytes}, {}}), may_ask, copied);
  const hpeExport* const exported = now.head.exported();
  return exported != nullptr && copy_directly(now.to, *exported, now.head.bytes, copied);
}

void incoming::tell_done(const payload& what) {
  if (what.taken) return offer_board::current()->done(what.head.sender, what.head.offered()->offer);
  channel::of_process().send({what.head.sequence, envelope_answer::verdict::done}, what.head.sender);
}

void incoming::fetch_chunks(envelope_answer::verdict verdict) {
  channel& answers = channel::of_process();
  const int tag = answers.new_tag();
  const auto self = std::static_pointer_cast<incoming>(shared_from_this());
  const fetching& now = in<fetching>();
  receive_in_chunks(now.to, {now.head.bytes, now.head.chunk, now.head.sender, tag},
                    [self](const std::optional<error>& failure) { self->fetched(self->in<fetching>(), failure); });
  answers.send({now.head.sequence, verdict, tag}, now.head.sender);
}

void incoming::fetched(const fetching& what, const std::optional<error>& failure) {
  first_failure later;
  if (what.assembled && !failure) later.attempt([&] { scatter(what.assembled.get(), what.head.bytes); });
  if (what.gathered && !failure) later.attempt([&] { scatter_gathered(what.gathered.get(), what.head.bytes); });
  conclude_payload(failure ? failure : later.what());
}

void incoming::conclude_payload(const std::optional<error>& failure) {
  enter(ready{});
  unadvertised_.reset();
  progress::of_process().owe(-1);
  conclude(status_, failure);
}

// Returns borrowed device memory for a contiguous payload, from which a kernel scatters the bytes to the receive
// buffer. Returns nullptr if the receive buffer is not memory of the driver, or if no device memory is free.
std::shared_ptr<std::byte> incoming::borrow_gathered(std::size_t bytes) const {
  adopted_pointers* const devices = driver();
  if (devices == nullptr || !which_.scattered() || bytes == 0) return nullptr;
  return devices->borrow_beside(reinterpret_cast<std::uintptr_t>(moved(what_.buffer, which_.begin())), bytes);
}

void incoming::scatter_gathered(std::byte* from, std::size_t bytes) const {
  const auto to = *which_.scattered();
  driver()
      ->scatter(reinterpret_cast<std::uintptr_t>(moved(what_.buffer, to.displacement)), to.which, from, bytes, queued_)
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
