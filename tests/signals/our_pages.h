#pragma once

/// Coherent memory in miniature: pages that are closed until the program touches them, and a fault entry that opens
/// them.

#define OUR_PAGES_API __attribute__((visibility("default")))

namespace our_pages {

/// Installs the fault handler.
OUR_PAGES_API void start();

/// A closed page of zeros. There is room for a few hundred.
OUR_PAGES_API volatile char* add();
OUR_PAGES_API void close(volatile char* page);

/// From now on the entry opens a page and then waits until go_on().
OUR_PAGES_API void hold();
OUR_PAGES_API void go_on();

/// How often the entry opened a page, and how often for a write.
OUR_PAGES_API unsigned opened();
OUR_PAGES_API unsigned opened_for_writing();

}  // namespace our_pages
