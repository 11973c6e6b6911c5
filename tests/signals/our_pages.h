#pragma once

/// A small model of coherent memory: pages that are closed until the program touches them, and a fault entry (the
/// function that handles faults) that opens them.

#define OUR_PAGES_API __attribute__((visibility("default")))

namespace our_pages {

/// Installs the fault handler.
OUR_PAGES_API void start();

/// Returns a new closed page of zeros. A few hundred pages are available.
OUR_PAGES_API volatile char* add();
OUR_PAGES_API void close(volatile char* page);

/// From now on, the fault entry opens a page and then waits until go_on() is called.
OUR_PAGES_API void hold();
OUR_PAGES_API void go_on();

/// Return how often the fault entry has opened a page, and how often for a write.
OUR_PAGES_API unsigned opened();
OUR_PAGES_API unsigned opened_for_writing();

}  // namespace our_pages
