#include "interpose/mpi/messages/outgoing.h"

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "interpose/buffer_access.h"
#include "interpose/mpi/libraries/library.h"
#include "interpose/mpi/messages/board/advertisement_board.h"
#include "interpose/mpi/messages/board/receive_inspection.h"
#include "interpose/mpi/messages/message_progress.h"
#include "interpose/mpi/messages/transfer/chunks.h"
#include "interpose/mpi/messages/transfer/direct_copy.h"
#include "interpose/mpi/messages/unmatched_sends.h"
#include "runtime/base/error.h"
#include "runtime/core/operations/host_access.h"

namespace hpe::interpose::mpi {

namespace {

// Unless its send is synchronous, a message of up to sent_at_once bytes waits for its receiver only for offer_patience,
// because MPI itself would send such a message eagerly. The MPI standard does not promise eager sends, but programs
// rely on them. Most receivers take the offer within offer_patience.
constexpr std::size_t sent_at_once = 4096;
constexpr std::chrono::microseconds offer_patience{100};

// Throws if the bytes are only on a device that is lost. The sender checks this before it sends the envelope.
void require_device(const std::byte* p) {
  hpePointerInfo where;
  hpeDeviceInfo device;
  if (hpeGetPointerInfo(p, &where) != HPE_SUCCESS || where.device < 0 || where.on_host != 0 ||
      hpeGetDeviceInfo(where.device, &device) != HPE_SUCCESS)
    return;
  HPE_REQUIRE(device.lost == 0, HPE_ERROR_DEVICE_LOST,
              "device {} is lost, and with it the only copy of the data to be sent", where.device);
}

}  // namespace

void outgoing::prepare() {
  whole_.reset();
  const auto& origin = what_.gathered;
  if (origin)
    what_.driver
        ->gather(origin->copy.get(), reinterpret_cast<std::uintptr_t>(origin->address), origin->which,
                 what_.rows.bytes(), what_.driver->queued_now())
        .wait();
  if (persistent && !receive_inspection::accepts_envelope(what_.world_rank, what_.rows.bytes())) {
    whole_ = packed();
    return;
  }
  if (origin) return;
  if (what_.driver != nullptr) {
    if (persistent && what_.shared)
      what_.shared = what_.driver->share(reinterpret_cast<std::uintptr_t>(what_.from), what_.rows.span(),
                                         adopted_pointers::peer_use::read, what_.driver->queued_now());
    return;
  }
  require_device(what_.from);
  core::host_access::of(what_.from)->wait_for_writers(what_.from, what_.rows.bytes());
  hpeExport handle;
  if (job::current()->is_near(what_.world_rank) &&
      hpeExportBegin(&handle, what_.from, what_.rows.bytes()) == HPE_SUCCESS) {
    exported_ = handle;
  }
}

void outgoing::end_export() {
  if (exported_) hpeExportEnd(&*exported_);
  exported_.reset();
}

int outgoing::start() {
  if (whole_ != nullptr) return send_whole();
  const job& running = *job::current();
  channel& answers = channel::of_process();
  offer_board* const board = offer_board::current();
  awaited_ = blocking_;
  const auto self = std::static_pointer_cast<outgoing>(shared_from_this());
  progress::continuation then = [self](const MPI_Status&, int code) {
    if (code != MPI_SUCCESS) {  // the envelope was not sent, so the receiver will not answer
      channel::of_process().forget(self->sequence_);
      unmatched_sends::of_process().remove(self->sequence_);
      --self->parts_left_;
    }
    self->part_over(code, std::nullopt);
  };
  progress::of_process().make_room();
  offer_ =
      what_.shared && board != nullptr ? board->make(synchronous_ || what_.rows.bytes() > sent_at_once) : std::nullopt;
  seeks_receive_ = offer_.has_value();
  envelope head;
  head.job_id = running.id;
  head.sequence = sequence_ = answers.expect_answer([self](const envelope_answer& given) { self->answered(given); });
  head.bytes = what_.rows.bytes();
  head.chunk = chunk_ = chunk_plan::chunk_for(what_.rows.bytes(), running.chunk);
  head.sender = running.rank;
  head.communicator = advertisement_board::name_of(what_.comm);
  if (exported_) head.memory = *exported_;
  if (offer_) head.memory = envelope::offered_bytes{*what_.shared, what_.rows, *offer_, awaited_};
  const bool in_short = board != nullptr && board->looks(what_.world_rank);
  const std::size_t length = in_short ? short_envelope_bytes : envelope_bytes;
  head.pack(envelope_, length);
  if (advertisement_board::current() != nullptr && running.is_near(what_.world_rank))
    unmatched_sends::of_process().add(sequence_, {what_.comm, what_.destination, what_.tag});
  // Look for an advertised receive as late as possible, because the receiver may be about to advertise it. If several
  // threads may call MPI, do not look, because another thread may send a message before the envelope.
  if (offer_ && awaited_ && !running.several_threads) copy_unasked();
  MPI_Request request{};
  const int result = HPE_REAL(Isend)(envelope_.data(), static_cast<int>(length), handles::get().byte, what_.destination,
                                     what_.tag, what_.comm, &request);
  if (result != MPI_SUCCESS) {
    answers.forget(head.sequence);
    unmatched_sends::of_process().remove(head.sequence);
    end_export();
    if (offer_) board->end(*offer_);
    return result;
  }
  parts_left_ = 2;
  progress::of_process().owe(1);
  code_ = MPI_SUCCESS;
  failure_.reset();
  if (offer_) {
    patient_until_ = std::chrono::steady_clock::now() + offer_patience;
    watch_offer();
    if (unasked_) await_unasked_copy();
  }
  if (stands_for_many(request)) {  // MPI has already sent the envelope
    part_over(MPI_SUCCESS, std::nullopt);
    return MPI_SUCCESS;
  }
  progress::of_process().when_over(request, std::move(then));
  return MPI_SUCCESS;
}

int outgoing::send_whole() {
  const auto self = std::static_pointer_cast<outgoing>(shared_from_this());
  progress::continuation then = [self](const MPI_Status&, int code) { self->part_over(code, std::nullopt); };
  progress::of_process().make_room();
  const unmatched_sends::by_mpi passing(what_.comm, what_.destination, what_.tag);
  auto& send = synchronous_ ? HPE_REAL(Issend) : HPE_REAL(Isend);
  MPI_Request request{};
  const int result = send(whole_.get(), static_cast<int>(what_.rows.bytes()), handles::get().byte, what_.destination,
                          what_.tag, what_.comm, &request);
  if (result != MPI_SUCCESS) return result;
  parts_left_ = 1;
  progress::of_process().owe(1);
  code_ = MPI_SUCCESS;
  failure_.reset();
  if (stands_for_many(request))
    part_over(MPI_SUCCESS, std::nullopt);
  else
    progress::of_process().when_over(request, std::move(then));
  return MPI_SUCCESS;
}

void outgoing::await() {
  const progress::guard held;
  awaited_ = true;
  if (offer_) offer_board::current()->await(*offer_);
}

void outgoing::watch_offer() {
  progress::of_process().repeat(
      [self = std::static_pointer_cast<outgoing>(shared_from_this())] { return self->look_at_offer(); });
}

bool outgoing::look_at_offer() {
  offer_board* const board = offer_board::current();
  if (!offer_) return true;  // the receiver has answered on the channel
  if (unasked_) return false;
  const advertisement_board* const advertised = seeks_receive_ && awaited_ ? advertisement_board::current() : nullptr;
  const auto is_advertised = [&] { return advertised != nullptr && advertised->has_any(what_.world_rank); };
  const offer_board::stage at =
      progress::of_process().only_one() ? board->watch(*offer_, is_advertised) : board->stage_of(*offer_);
  if (at == offer_board::stage::done ||
      (at == offer_board::stage::matched && !board->has_failed(job::current()->rank, *offer_))) {
    end_offer();
    return true;
  }
  if (at != offer_board::stage::offered) matched();
  if (seeks_receive_ && is_advertised()) copy_unasked();
  if (unasked_) {
    await_unasked_copy();
    return false;
  }
  if (at == offer_board::stage::asked && board->begin_push(*offer_)) {
    record_part("sender waits to be asked for a copy", patient_until_ - offer_patience, what_.rows.bytes());
    push();
    return true;
  }
  if (offer_->kept || parts_left_ != 1 || std::chrono::steady_clock::now() < patient_until_ ||
      !board->withdraw(*offer_))
    return false;
  seeks_receive_ = false;
  board->end(*std::exchange(offer_, std::nullopt));
  withdraw();
  return true;
}

void outgoing::matched() {
  seeks_receive_ = false;
  unmatched_sends::of_process().matched(sequence_);
}

// Starts to copy the message to the buffer of an advertised receive if MPI will match this receive with this message.
void outgoing::copy_unasked() {
  advertisement_board* const advertised = advertisement_board::current();
  offer_board& board = *offer_board::current();
  if (advertised == nullptr || !advertised->has_any(what_.world_rank)) return;
  if (!unmatched_sends::of_process().is_next(sequence_)) return;
  const auto place =
      advertised->claim(what_.world_rank, advertisement_board::name_of(what_.comm), what_.tag, what_.rows.bytes(),
                        *offer_, [&](const peer_bytes& p) { return may_copy_to(p); });
  if (!place) return;
  seeks_receive_ = false;
  unmatched_sends::of_process().placed(sequence_);
  unasked_ = begin_copy(*place, what_.from, to_one_run(what_.rows));
  if (!unasked_) board.fail(*offer_);  // the receiver then fetches the bytes, and reports the error if it occurs again
}

void outgoing::await_unasked_copy() {
  const auto self = std::static_pointer_cast<outgoing>(shared_from_this());
  const device_copy copy = *unasked_;
  when_copied(copy, what_.rows.bytes(), [self](const std::optional<error>& failure) {
    self->unasked_.reset();
    offer_board& board = *offer_board::current();
    failure ? board.fail(*self->offer_) : board.copied(*self->offer_);
  });
}

// Whether this rank may copy to the advertised buffer `place`. False if a receive has matched the message in the
// meantime. If both ranks use one device, the lower rank makes the copies of both (incoming::ask_for_push).
bool outgoing::may_copy_to(const peer_bytes& place) const {
  if (offer_board::current()->stage_of(*offer_) != offer_board::stage::offered) return false;
  return place.device != what_.shared->device || job::current()->rank < what_.world_rank;
}

// Copies the bytes to the target that the receiver has described. If the copy fails, the receiver must copy, and
// reports the error if it occurs again.
void outgoing::push() {
  offer_board* const board = offer_board::current();
  const offer_board::target wanted = board->target_of(*offer_);
  const auto self = std::static_pointer_cast<outgoing>(shared_from_this());
  const auto left = [self, board] {
    board->leave(*self->offer_);
    self->watch_offer();
  };
  if (!copy_directly(wanted.place, what_.from, wanted.shape, [self, board, left](const std::optional<error>& failure) {
        if (failure) return left();
        board->pushed(*self->offer_);
        self->end_offer();
      }))
    left();
}

// Ends the offer and the payload's part of the send, because the receiver has the bytes.
void outgoing::end_offer() {
  matched();
  channel::of_process().forget(sequence_);
  offer_board::current()->end(*std::exchange(offer_, std::nullopt));
  part_over(MPI_SUCCESS, std::nullopt);
}

// Returns a host copy of the bytes of all rows, in order and without the gaps between the rows.
outgoing::host_copy outgoing::packed() const {
  const std::size_t span = what_.rows.span();
  auto all = std::make_shared_for_overwrite<std::byte[]>(span);
  if (what_.driver == nullptr) {
    const buffer_access bytes(what_.from, span, host_use::read);
    std::memcpy(all.get(), bytes.data(), span);
    return all;
  }
  const placed_box rows{0, what_.rows};
  what_.driver->read(all.get(), reinterpret_cast<std::uintptr_t>(what_.from), {&rows, 1});
  if (what_.rows.extent.is_one_row()) return all;
  auto result = std::make_shared_for_overwrite<std::byte[]>(what_.rows.bytes());
  std::byte* to = result.get();
  what_.rows.for_each_row([&](std::size_t at) {
    std::memcpy(to, all.get() + at, what_.rows.extent.width);
    to += what_.rows.extent.width;
  });
  return result;
}

// Like packed(). If this fails, stores the error in `failure` and returns zeros, because the receiver waits for the
// message.
outgoing::host_copy outgoing::packed_or_zeros(std::optional<error>& failure) const {
  host_copy result;
  first_failure its;
  its.attempt([&] { result = packed(); });
  failure = its.what();
  return result != nullptr ? result : std::make_shared<std::byte[]>(what_.rows.bytes());
}

// Copies the bytes to the host and completes the send, so that the program may change its buffer. When the receiver of
// the envelope answers, hpe sends the copy to the receiver in chunks.
void outgoing::withdraw() {
  progress& all = progress::of_process();
  std::optional<error> failure;
  const host_copy kept = packed_or_zeros(failure);
  all.begun();
  all.owe(1);
  const auto end = [&all] {
    all.over();
    all.owe(-1);
  };
  channel::of_process().pass_on(sequence_, [kept, end, bytes = what_.rows.bytes(), rank = what_.world_rank,
                                            chunk = chunk_](const envelope_answer& given) {
    unmatched_sends::of_process().matched(given.sequence);
    if (given.what == envelope_answer::verdict::done) return end();
    send_in_chunks(kept.get(), {bytes, chunk, rank, given.tag}, [kept, end](const std::optional<error>&) { end(); });
  });
  part_over(MPI_SUCCESS, failure);
}

void outgoing::answered(const envelope_answer& given) {
  matched();
  // The send completes only when this rank's own copy from the program's buffer has ended, too.
  if (unasked_)
    return progress::of_process().repeat([self = std::static_pointer_cast<outgoing>(shared_from_this()), given] {
      if (self->unasked_) return false;
      self->answered(given);
      return true;
    });
  if (offer_) {
    offer_board* const board = offer_board::current();
    board->end(*std::exchange(offer_, std::nullopt));
    if (given.what == envelope_answer::verdict::unreachable) board->set_of_no_use(what_.world_rank);
  }
  if (given.what == envelope_answer::verdict::done) return part_over(MPI_SUCCESS, std::nullopt);
  if (!what_.rows.extent.is_one_row()) return send_packed(given.tag);
  const auto self = std::static_pointer_cast<outgoing>(shared_from_this());
  send_in_chunks(what_.from, {what_.rows.bytes(), chunk_, what_.world_rank, given.tag},
                 [self](const std::optional<error>& failure) { self->part_over(MPI_SUCCESS, failure); });
}

// Sends a contiguous host copy of the rows in chunks, to a receiver that cannot access the sender's memory.
void outgoing::send_packed(int tag) {
  const auto self = std::static_pointer_cast<outgoing>(shared_from_this());
  std::optional<error> failure;
  const host_copy kept = packed_or_zeros(failure);
  send_in_chunks(kept.get(), {what_.rows.bytes(), chunk_, what_.world_rank, tag},
                 [self, kept, failure](const std::optional<error>& other) {
                   self->part_over(MPI_SUCCESS, failure ? failure : other);
                 });
}

void outgoing::part_over(int code, const std::optional<error>& failure) {
  if (code != MPI_SUCCESS) code_ = code;
  if (failure) failure_ = failure;
  if (--parts_left_ > 0) return;
  progress::of_process().owe(-1);
  end_export();
  whole_.reset();
  MPI_Status status{};
  HPE_REAL(Status_set_elements_x)(&status, handles::get().byte, static_cast<MPI_Count>(what_.rows.bytes()));
  failure_ ? conclude(status, failure_) : conclude(status, code_);
}

}  // namespace hpe::interpose::mpi
