#include "interpose/mpi/collectives/background_call.h"

#include <memory>
#include <optional>
#include <utility>

#include "interpose/mpi/messages/message.h"
#include "interpose/mpi/messages/message_progress.h"
#include "interpose/mpi/messages/transfer/chunks.h"

namespace hpe::interpose::mpi {

namespace {

class background_call final : public message {
 public:
  background_call(MPI_Comm comm, exchange::ranks who, std::vector<call_step> steps)
      : message(comm, false), who_(std::move(who)), steps_(std::move(steps)) {}

  void await() override {
    const progress::guard held;
    if (current_) current_->await();
  }

 private:
  // Begins the first step here, where the thread holds no progress::guard, because the step's messages may wait for
  // devices. If MPI has not created the channel's communicator yet, advance() begins the first step later.
  void prepare() override {
    if (who_.channel->ready()) begin_step();
  }

  int start() override {
    if (!advance())
      progress::of_process().repeat(
          [self = std::static_pointer_cast<background_call>(shared_from_this())] { return self->advance(); });
    return MPI_SUCCESS;
  }

  // Begins the next steps as soon as their previous steps have completed. Returns true if the whole call has completed.
  bool advance() {
    if (!who_.channel->ready()) return false;
    while (true) {
      if (!begun_ && !begin_step()) return false;
      if (!current_->over()) return false;
      if (result_ == MPI_SUCCESS) result_ = current_->result();
      current_.reset();
      begun_ = false;
      if (++step_ < steps_.size()) continue;
      steps_.clear();  // frees the duplicated datatypes that the steps use
      if (problem_.any())
        conclude({}, problem_.what());
      else if (result_ != MPI_SUCCESS)
        conclude_with_new_error({}, result_);
      else
        conclude({}, MPI_SUCCESS);
      return true;
    }
  }

  bool begin_step() {
    if (!current_) current_.emplace(who_);
    begun_ = true;
    problem_.attempt([&] { begun_ = steps_[step_](*current_); });
    return begun_;
  }

  const exchange::ranks who_;
  std::vector<call_step> steps_;
  std::size_t step_ = 0;
  std::optional<exchange> current_;  // the messages of the current step
  bool begun_ = false;               // whether the current step has added its messages
  int result_ = MPI_SUCCESS;
  first_failure problem_;
};

}  // namespace

int begin_in_background(const exchange::ranks& who, MPI_Comm comm, MPI_Request* request, std::vector<call_step> steps) {
  return std::make_shared<background_call>(comm, who, std::move(steps))->open(request);
}

}  // namespace hpe::interpose::mpi
