/* A model of memory that another process has open, for the model checker Spin: an exporter with one block, and an importer.
 * README.md in this folder describes what the model contains and omits; scripts/check-model runs it.
 *
 * Assertions:
 *   stale   the exporter's CPU code reads the value that either process wrote last
 *   gone    no process writes to memory after hpe has taken the memory from the process
 *
 * The programs obey the rules of hpe/node.h: the exporter's CPU code writes only while the memory is neither exported nor open,
 * and reads only if an export has begun or ended since the importer's last write. */

#include "protocol_table.pml"

#define undefined 0

/* ---- the exporter's block; the region's mutex guards these variables ---- */
mtype state = host; /* the shadow contains the value 1 */
byte shadow = 1;
byte home = undefined;
bool resident = true; /* whether the block has device memory */
bool viewed = true;   /* whether CPU code can read through the view */
byte fetch_of;        /* the value that the fetch in progress copies; undefined: no fetch */
bool fetch_is_useless;

/* ---- node::exporter ---- */
bool exported;
byte open_here; /* how often the memory is open, according to the messages that the exporter has read */
bool written;   /* node::openings: whether the importer may have written since the exporter's last check */

/* ---- the programs, which exchange messages of their own to order their accesses ---- */
byte last = 1;    /* the value written last */
bool seen = true; /* whether the exporter has checked since the importer's last write */
bool reading;     /* whether the exporter's CPU code is in a load; the importer then does not write */
bool open_there;  /* whether the importer has the memory open */

chan questions = [2] of { bool }; /* true: open; false: close */
chan answers = [1] of { bool };

byte value = 1; /* the latest value, 1 or 2: two values suffice to distinguish old from new bytes; neither is `undefined` */
#define new_value() value = 3 - value; last = value

/* The writes of the importer make the home's copy the valid one (work::drop_host_copy). */
inline drop_host_copy() {
  if
  :: state != host && state != device ->
     if
     :: closes(state, device_write) -> viewed = false
     :: else
     fi;
     if
     :: state == fetching && next_state(state, device_write) != fetching -> fetch_is_useless = true
     :: else
     fi;
     state = next_state(state, device_write)
  :: else
  fi
}

inline see_writes() {
  if
  :: written -> written = open_here != 0; drop_host_copy()
  :: else
  fi
}

/* Prepares the block as for a kernel: maps device memory, and uploads bytes that the host has written. */
inline bring_in_and_release(event) {
  if
  :: !resident -> resident = true; home = undefined
  :: else
  fi;
  if
  :: uploads(state, event) -> home = shadow
  :: else
  fi;
  if
  :: closes(state, event) -> viewed = false
  :: else
  fi;
  if
  :: state == fetching && next_state(state, event) != fetching -> fetch_is_useless = true
  :: else
  fi;
  state = next_state(state, event)
}

active proctype program() {
  do
  :: !exported -> /* begin */
     atomic { see_writes(); bring_in_and_release(device_read); exported = true; seen = true }
  :: exported -> /* end */
     atomic { see_writes(); exported = false; seen = true }
  :: atomic { seen -> reading = true }; /* read */
     do
     :: atomic { viewed -> assert(shadow == last); reading = false; break } /* stale */
     :: atomic { !viewed && fetches(state, host_read) && fetch_of == undefined ->
        state = next_state(state, host_read); fetch_of = home; fetch_is_useless = false }
     :: atomic { !viewed && state == fetching && fetch_of == undefined -> skip }
     :: atomic { !viewed && opens_read(state, host_read) -> viewed = true }
     :: atomic { !viewed && opens_write(state, host_read) -> viewed = true; state = next_state(state, host_read) }
     od
  :: atomic { !exported && !open_there && seen && viewed -> /* write */
     state = next_state(state, host_write); new_value(); shadow = value }
  :: atomic { (seen || resident) && (exported || open_here == 0) -> /* a kernel that overwrites */
     bring_in_and_release(device_write); new_value(); home = value }
  od
}

/* A lane: begins prefetches, and completes fetches. */
active proctype lane() {
end_lane:
  do
  :: atomic { fetches(state, prefetch) && fetch_of == undefined ->
     state = next_state(state, prefetch); fetch_of = home; fetch_is_useless = false }
  :: atomic { fetch_of != undefined ->
     shadow = fetch_of;
     fetch_of = undefined;
     if
     :: !fetch_is_useless && state == fetching -> state = next_state(state, fetched); viewed = true
     :: else
     fi }
  od
}

/* Evicts the block, because other work needs device memory. */
active proctype evictor() {
end_evictor:
  do
  :: atomic { resident && !exported && open_here == 0 && fetch_of == undefined ->
     see_writes();
     if
     :: state == device -> shadow = home
     :: else
     fi;
     state = next_state(state, brought_to_host);
     resident = false;
     home = undefined }
  od
}

/* The thread of node::exporter. */
active proctype server() {
  bool opens;
end_server:
  do
  :: atomic { questions?opens ->
     if
     :: opens && exported -> open_here++; written = true; answers!true
     :: opens && !exported -> answers!false
     :: else -> open_here--
     fi }
  od
}

active proctype importer() {
  bool opened;
end_importer:
  do
  :: atomic { exported -> open_there = true }; questions!true; answers?opened;
     if
     :: opened ->
        do
        :: atomic { !reading -> assert(resident); new_value(); home = value; seen = false } /* gone */
        :: atomic { open_there = false; questions!false; break }
        od
     :: else -> open_there = false
     fi
  od
}
