#include "interpose/message_checks.h"

namespace hpe::interpose {

constinit std::atomic<message_checks*> message_checks::the_instance{nullptr};

}  // namespace hpe::interpose
