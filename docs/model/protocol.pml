/* A model of the coherence of one region, for the model checker Spin: two host threads, two devices, the view's protection,
 * page faults, fetches, uploads and launches. README.md in this folder describes what the model contains and omits;
 * scripts/check-model runs it.
 *
 * This file does not contain the table of the protocol. tests/coherence/print_protocol.cpp prints the table from the C++
 * function, as protocol_table.pml: waits(s, e), uploads(s, e), ..., next_state(s, e).
 *
 * Properties, with the names of the README:
 *   no stale read   assertions "stale" in access and execute
 *   no lost write   the same assertions: after a lost write, the next read finds a value that was not written last
 *   no overlap      assertions "overlap": no copy reads or writes a shadow that the host may change at that moment
 *   agreement       assertion in unlock: a view is never more open than the state of its block allows
 *   no deadlock     no invalid end states: a process that waits outside a label end_... is woken at some time
 *   served          ltl formula at the end: no load or store waits forever (weak fairness)
 *
 * The script sets BLOCKS; PARTS (the number of parts of a block that kernels may write separately); SYNCHRONISED (1: the program
 * orders its threads, and the model compares the values that are read); STEPS (the largest number of loads, stores and
 * launches; 0: any number); FAIR (1: a block that was opened for a waiting thread is not closed again before a host thread has
 * used it); FAILURES (the largest total number of failed launches, failed fetches and losses of a home). */

#include "protocol_table.pml"

#define CELLS (BLOCKS * PARTS)
#define first_cell(b) ((b) * PARTS)
#define last_cell(b) ((b) * PARTS + PARTS - 1)
#define block_of(c) ((c) / PARTS)

/* Each slot contains an upload or a kernel that is queued on one of the devices. Queued commands run in any order that their
 * dependencies allow, as on any number of streams. So the device of a command does not matter, and both devices share the
 * slots. The numbers of fetches follow the numbers of the slots, so that one byte can represent a set of commands. A command
 * number represents a timepoint; when the timepoint is reached, the model removes the number from all sets. */
#define SLOTS 3
#define FETCHES 2
#define as_set(command) (1 << (command))
#define fetch_command(f) (SLOTS + (f))

#define closed 0
#define readable 1
#define writable 2

#define undefined 0 /* the value of memory whose contents are not defined */

/* ---- the region; the mutex guards all variables except `view` -------------------------------------------------- */

bool mutex;
mtype state[BLOCKS] = fresh;
byte view[BLOCKS];      /* closed, readable or writable; the hardware checks it without a lock */
byte under_way[BLOCKS]; /* the number of the block's latest fetch */
byte writer[CELLS];     /* access order: the last writer of the home, a set of at most one command */
byte readers[CELLS];    /* access order: the readers since that write */

/* ---- the two copies, and the value that a read must see -------------------------------------------------------- */

byte home[CELLS];
byte shadow[CELLS];
byte last[CELLS]; /* the value written last in program order; undefined: none */

/* ---- queued work ----------------------------------------------------------------------------------------------- */

#define free 0
#define upload 1
#define kernel 2
typedef command {
  byte kind;
  byte after; /* the commands for which this command waits */
  byte block; /* upload: the block */
  byte ins;   /* kernel: one more than the cell that it reads; 0: none */
  byte seen;  /* kernel: the value that it must read there */
  byte outs;  /* kernel: the set of cells that it writes */
  byte made   /* kernel: the value that it writes */
};
command queue[SLOTS];

#define held 1   /* waits until the home's last writer has finished */
#define issued 2 /* queued on a device; recorded as a reader of the home */
#define copied 3 /* finished; the runtime has not noticed this yet */
#define broken 4 /* failed; the runtime has not noticed this yet */
typedef transfer {
  byte phase;
  byte block;
  byte number
};
transfer fetch[FETCHES];

/* ---- the host threads ------------------------------------------------------------------------------------------ */

byte turn;           /* SYNCHRONISED: the thread that may take the next step; the threads take turns */
byte steps;          /* the number of loads, stores and launches that the program has begun */
byte failures;       /* the number of failures so far */
#define may_fail (failures < FAILURES)
#define MORE (STEPS == 0 || steps < STEPS)
mtype asked[2];      /* the published page fault of a thread; 0: none */
byte asked_block[2];
bool accessing[2];   /* whether the thread is in a load or store */
bool used[BLOCKS];   /* FAIR: whether the host has used the block since the view was changed */

/* ---- values ---------------------------------------------------------------------------------------------------- */

/* Only the equality of values matters. After a change, the model renumbers all values in the order in which they occur in
 * the variables. So the number of states is finite in executions of any length, and a copy with an old value still differs
 * from the value that was written last. */
#define fresh_value 15
hidden byte i;
hidden byte names[16];
hidden byte named;

inline rename(value) {
  if
  :: value != undefined && names[value] == 0 ->
    named++;
    names[value] = named
  :: else
  fi;
  value = names[value]
}

inline rename_values() {
  for (i : 0 .. 15) { names[i] = 0 };
  named = 0;
  for (i : 0 .. CELLS - 1) {
    rename(home[i]);
    rename(shadow[i]);
    rename(last[i])
  };
  for (i : 0 .. SLOTS - 1) {
    rename(queue[i].seen);
    rename(queue[i].made)
  };
  i = 0
}

/* ---- the runtime: steps under the mutex ------------------------------------------------------------------------ */

inline unlock() {
  d_step {
    for (i : 0 .. BLOCKS - 1) {
      assert(view[i] != writable || state[i] == host);                      /* agreement */
      assert(view[i] != readable || state[i] == shared || state[i] == host) /* agreement */
    }
    mutex = false
  }
}

#define fetch_free (fetch[0].phase == free || fetch[1].phase == free)

/* The condition for which wait_upload waits: the home has no unfinished writer. An upload, which reads the shadow, is a writer
 * of the home. A launch that has invalidated a fetch is a writer of the home too, and waits for the fetch, which writes the
 * shadow. */
#define writers_done(b) (writer[first_cell(b)] == 0 && writer[last_cell(b)] == 0)

inline take_slot(s) {
  if
  :: queue[0].kind == free -> s = 0
  :: queue[0].kind != free && queue[1].kind == free -> s = 1
  :: queue[0].kind != free && queue[1].kind != free && queue[2].kind == free -> s = 2
  fi
}

/* Records that the command in slot s writes cell c, so that it runs after the cell's writer and readers. */
inline order_write(s, c) {
  queue[s].after = queue[s].after | writer[c] | readers[c];
  writer[c] = as_set(s);
  readers[c] = 0
}

inline queue_upload(s, b) {
  take_slot(s);
  d_step {
    queue[s].kind = upload;
    queue[s].block = b;
    for (i : first_cell(b) .. last_cell(b)) { order_write(s, i) };
    i = 0
  }
}

inline start_fetch(b) {
  d_step {
    if
    :: fetch[0].phase == free -> i = 0
    :: else -> assert(fetch[1].phase == free); i = 1
    fi;
    fetch[i].phase = held;
    fetch[i].block = b;
    fetch[i].number = (fetch[1 - i].phase != free && fetch[1 - i].block == b && fetch[1 - i].number == 1 -> 2 : 1);
    under_way[b] = fetch[i].number
  }
}

inline change_view(b, event) {
  if
  :: closes(state[b], event) -> view[b] = closed
  :: opens_read(state[b], event) -> view[b] = readable
  :: opens_write(state[b], event) -> view[b] = writable
  :: else
  fi;
  used[b] = false
}

/* Performs the actions of a transition, in the order of block_actions. The caller has locked the mutex, and has waited as the
 * transition requires. Host threads and devices may take steps between the change of the view and the upload. */
inline carry_out(b, event, s) {
  if
  :: atomic {
      !uploads(state[b], event) ->
      change_view(b, event);
      if
      :: fetches(state[b], event) -> start_fetch(b)
      :: else
      fi;
      state[b] = next_state(state[b], event)
    }
  :: atomic {
      uploads(state[b], event) ->
      change_view(b, event)
    }
    atomic {
      queue_upload(s, b);
      state[b] = next_state(state[b], event);
      s = 0
    }
  fi
}

/* ---- the devices ----------------------------------------------------------------------------------------------- */

inline finish(done) {
  for (i : 0 .. SLOTS - 1) { queue[i].after = queue[i].after & ~done }
  for (i : 0 .. CELLS - 1) {
    writer[i] = writer[i] & ~done;
    readers[i] = readers[i] & ~done
  }
  i = 0
}

inline execute(s) {
  if
  :: queue[s].kind == upload ->
    assert(view[queue[s].block] != writable); /* overlap */
    for (i : first_cell(queue[s].block) .. last_cell(queue[s].block)) { home[i] = shadow[i] }
  :: else ->
    assert(queue[s].seen == undefined || home[queue[s].ins - 1] == queue[s].seen); /* stale */
    for (i : 0 .. CELLS - 1) { home[i] = (queue[s].outs & as_set(i) -> queue[s].made : home[i]) }
  fi;
  queue[s].kind = free;
  queue[s].block = 0;
  queue[s].ins = 0;
  queue[s].seen = undefined;
  queue[s].outs = 0;
  queue[s].made = undefined;
  finish(as_set(s));
  rename_values()
}

/* Runs the commands that are queued in one slot. */
proctype slot(byte s) {
end_idle:
  do
  :: d_step { queue[s].kind != free && queue[s].after == 0 -> execute(s) }
  od
}

#define latest(f) (fetch[f].number == under_way[fetch[f].block])
#define waits_to_write(t, b) ((asked[t] == host_write || asked[t] == host_overwrite) && asked_block[t] == (b))

inline end_fetch(f) {
  fetch[f].phase = free;
  fetch[f].block = 0;
  fetch[f].number = 0
}

/* The steps of a fetch after start_fetch. */
proctype fetcher(byte f) {
  byte b, s;
end_idle:
  do
  :: atomic { fetch[f].phase == held && !mutex && !(latest(f) && state[fetch[f].block] == fetching) -> end_fetch(f) }
  :: atomic {
      fetch[f].phase == held && !mutex && latest(f) && state[fetch[f].block] == fetching &&
          writers_done(fetch[f].block) ->
      fetch[f].phase = issued;
      for (s : first_cell(fetch[f].block) .. last_cell(fetch[f].block)) {
        readers[s] = readers[s] | as_set(fetch_command(f))
      }
      s = 0
    }
  :: d_step {
      fetch[f].phase == issued ->
      assert(view[fetch[f].block] == closed); /* overlap */
      for (i : first_cell(fetch[f].block) .. last_cell(fetch[f].block)) { shadow[i] = home[i] }
      finish(as_set(fetch_command(f)));
      rename_values();
      fetch[f].phase = copied
    }
  :: d_step { /* the fetch fails part-way: the shadow contains neither the old nor the new bytes */
      fetch[f].phase == issued && may_fail ->
      failures++;
      assert(view[fetch[f].block] == closed); /* overlap */
      for (i : first_cell(fetch[f].block) .. last_cell(fetch[f].block)) { shadow[i] = undefined }
      finish(as_set(fetch_command(f)));
      rename_values();
      fetch[f].phase = broken
    }
  :: atomic { /* the fetch cannot be issued */
      fetch[f].phase == held && !mutex && may_fail ->
      failures++;
      fetch[f].phase = broken
    }
  :: atomic { fetch[f].phase == broken && !mutex && !latest(f) -> end_fetch(f) }
  :: atomic {
      fetch[f].phase == broken && !mutex && latest(f) ->
      mutex = true;
      b = fetch[f].block
    }
    carry_out(b, fetch_failed, s);
    atomic {
      end_fetch(f);
      b = 0;
      unlock()
    }
  :: atomic { fetch[f].phase == copied && !mutex && !latest(f) -> end_fetch(f) }
  :: atomic {
      fetch[f].phase == copied && !mutex && latest(f) ->
      mutex = true;
      b = fetch[f].block
    }
    if
    :: waits_to_write(0, b) || waits_to_write(1, b) -> carry_out(b, fetched_for_write, s)
    :: else ->
      if
      :: carry_out(b, fetched, s)
      :: atomic { state[b] = next_state(state[b], fetched) } /* a marker: the view stays closed */
      fi
    fi;
    atomic {
      end_fetch(f);
      b = 0;
      unlock()
    }
  od
}

/* ---- the runtime's threads ------------------------------------------------------------------------------------- */

#define can_serve(t) \
  (asked[t] != 0 && !mutex && !waits(state[asked_block[t]], asked[t]) && \
   (!waits_upload(state[asked_block[t]], asked[t]) || writers_done(asked_block[t])) && \
   (!fetches(state[asked_block[t]], asked[t]) || fetch_free))

/* A lane: serves page faults. */
active proctype server() {
  byte t, b, s;
  mtype event;
  bool started;
end_idle:
  do
  :: atomic {
      if
      :: can_serve(0) -> t = 0
      :: can_serve(1) -> t = 1
      fi;
      mutex = true;
      b = asked_block[t];
      event = asked[t];
      started = fetches(state[b], event)
    }
    carry_out(b, event, s);
    atomic {
      if
      :: started /* the page fault stays published until the fetch is complete */
      :: else ->
        asked[t] = 0;
        asked_block[t] = 0
      fi;
      started = false;
      t = 0;
      b = 0;
      event = 0;
      unlock()
    }
  od
}

#define can_flush(b) (!mutex && uploads(state[b], flush) && (!FAIR || used[b]))
#define can_prefetch(b) (!mutex && fetches(state[b], prefetch) && fetch_free)

/* No queued command uses the block. A fetch in phase `held` is not queued. */
#define quiet(b) \
  (writer[first_cell(b)] == 0 && writer[last_cell(b)] == 0 && readers[first_cell(b)] == 0 && readers[last_cell(b)] == 0)

/* The loss of a home: its device is lost or short of memory, or the region moves. First, hpe copies the bytes that only the
 * home has to the shadow. The next home begins with undefined bytes. */
#define can_bring(b) (!mutex && may_fail && quiet(b))
inline bring(b) {
  failures++;
  mutex = true;
  for (i : first_cell(b) .. last_cell(b)) {
    shadow[i] = (state[b] == device || state[b] == fetching -> home[i] : shadow[i]);
    home[i] = undefined
  }
  assert(view[b] == closed || (state[b] != device && state[b] != fetching)); /* overlap */
  rename_values();
  state[b] = next_state(state[b], brought_to_host);
  unlock()
}

inline do_ahead(b, event) {
  carry_out(b, event, s);
  unlock()
}

/* Uploads behind the host's writes, prefetches, and losses of a home; each may happen at any time. */
active proctype ahead() {
  byte s;
end_idle:
  do
  :: atomic { can_flush(0) -> mutex = true }
    do_ahead(0, flush)
  :: atomic { can_flush(BLOCKS - 1) -> mutex = true }
    do_ahead(BLOCKS - 1, flush)
  :: atomic { can_prefetch(0) -> mutex = true }
    do_ahead(0, prefetch)
  :: atomic { can_prefetch(BLOCKS - 1) -> mutex = true }
    do_ahead(BLOCKS - 1, prefetch)
  :: atomic { can_bring(0) -> bring(0) }
  :: atomic { can_bring(BLOCKS - 1) -> bring(BLOCKS - 1) }
  od
}

/* ---- the program ----------------------------------------------------------------------------------------------- */

#define end_turn() \
  c = 0; \
  to = 0; \
  event = 0; \
  accessing[t] = false; \
  turn = (SYNCHRONISED -> 1 - t : 0)

/* The host loads or stores the cells c to `to`. */
inline access() {
  do
  :: atomic {
      view[block_of(c)] >= (event == host_read -> readable : writable) ->
      if
      :: event == host_read -> assert(last[c] == undefined || shadow[c] == last[c]) /* stale */
      :: else ->
        d_step {
          shadow[c] = fresh_value * SYNCHRONISED;
          last[c] = shadow[c];
          rename_values()
        }
      fi;
      used[block_of(c)] = FAIR;
      if
      :: c < to -> c++
      :: else ->
        end_turn();
        break
      fi
    }
  :: atomic {
      view[block_of(c)] < (event == host_read -> readable : writable) ->
      asked_block[t] = block_of(c);
      asked[t] = event
    }
    asked[t] == 0
  od
}

#define cells_of(b) (((1 << PARTS) - 1) << first_cell(b))
#define reads_block(b) (ins != 0 && block_of(ins - 1) == (b))
#define writes_block(b) ((outs & cells_of(b)) != 0)
#define overwrites_block(b) ((outs & cells_of(b)) == cells_of(b) && !reads_block(b))

#define event_of(b) \
  (overwrites_block(b) -> device_overwrite : (writes_block(b) -> device_write : (reads_block(b) -> device_read : 0)))

inline release(b) {
  if
  :: overwrites_block(b) -> carry_out(b, device_overwrite, s)
  :: writes_block(b) && !overwrites_block(b) -> carry_out(b, device_write, s)
  :: reads_block(b) && !writes_block(b) -> carry_out(b, device_read, s)
  :: else
  fi
}

/* The release of a launch that fails afterwards: the model changes the view. If it also queues an upload, the state of the
 * block changes as for a flush, not as for the launch. */
inline begin_release(b) {
  event = event_of(b);
  if
  :: event != 0 && uploads(state[b], event) ->
    change_view(b, event);
    queue_upload(s, b);
    state[b] = next_state(state[b], flush)
  :: event != 0 && !uploads(state[b], event) -> change_view(b, event)
  :: else
  fi
}

/* Work that writes the block has failed, and parts of it may have run. From then on, host and devices must read the bytes of
 * the copy that is valid in the new state. */
inline abandon(b) {
  if
  :: writes_block(b) ->
    state[b] = next_state(state[b], abandoned);
    for (i : first_cell(b) .. last_cell(b)) {
      if
      :: outs & as_set(i) -> last[i] = (state[b] == shared || state[b] == host -> shadow[i] : home[i])
      :: else
      fi
    }
  :: else
  fi
}

#if BLOCKS > 1
#define release_second() release(1)
#define begin_release_second() begin_release(1)
#define abandon_second() abandon(1)
#else
#define release_second() skip
#define begin_release_second() skip
#define abandon_second() skip
#endif

/* Launches a kernel that reads at most one cell (`ins`) and writes the set of cells `outs`. */
inline launch() {
  release(0);
  release_second();
  atomic {
    take_slot(s);
    d_step {
      queue[s].kind = kernel;
      queue[s].ins = ins;
      queue[s].outs = outs;
      queue[s].made = (outs != 0 -> fresh_value * SYNCHRONISED : undefined);
      if
      :: ins != 0 ->
        queue[s].seen = last[ins - 1];
        if
        :: !(outs & as_set(ins - 1)) ->
          queue[s].after = queue[s].after | writer[ins - 1];
          readers[ins - 1] = readers[ins - 1] | as_set(s)
        :: else
        fi
      :: else
      fi;
      for (i : 0 .. CELLS - 1) {
        if
        :: outs & as_set(i) ->
          order_write(s, i);
          last[i] = queue[s].made
        :: else
        fi
      }
      s = 0;
      ins = 0;
      outs = 0;
      rename_values()
    }
    end_turn();
    unlock()
  }
}

/* A launch that fails, either before any part of it was queued, or after some parts have run and no part is running. */
inline failing_launch() {
  atomic { begin_release(0) }
  atomic { begin_release_second() }
  if
  :: skip
  :: atomic {
      outs != 0 && (event_of(0) == 0 || quiet(0)) && (event_of(BLOCKS - 1) == 0 || quiet(BLOCKS - 1)) ->
      for (s : 0 .. CELLS - 1) {
        if
        :: outs & as_set(s) -> home[s] = fresh_value * SYNCHRONISED
        :: skip
        fi
      }
      abandon(0);
      abandon_second()
    }
  fi;
  atomic {
    s = 0;
    ins = 0;
    outs = 0;
    rename_values();
    end_turn();
    unlock()
  }
}

proctype thread(byte t) {
  byte c, to, s, ins, outs;
  mtype event;
end_idle:
  do
  :: atomic {
      (turn == t || !SYNCHRONISED) && MORE ->
      steps = (STEPS == 0 -> 0 : steps + 1);
      if
      :: c = 0
      :: c = CELLS - 1
      fi;
      to = c;
      accessing[t] = true;
      if
      :: event = host_read
      :: event = host_write
      :: event = host_overwrite; /* the program has promised to write the whole block */
        d_step {
          for (i : first_cell(block_of(c)) .. last_cell(block_of(c))) { last[i] = undefined };
          rename_values();
          to = last_cell(block_of(c));
          c = first_cell(block_of(c))
        }
      fi
    }
    access()
  :: atomic {
      (turn == t || !SYNCHRONISED) && !mutex && MORE ->
      steps = (STEPS == 0 -> 0 : steps + 1);
      mutex = true;
      if
      :: c = 0
      :: c = CELLS - 1
      fi;
      if /* accesses: in, inout, out, out of the whole block, in and out of different cells */
      :: ins = c + 1
      :: ins = c + 1; outs = as_set(c)
      :: outs = as_set(c)
      :: outs = cells_of(block_of(c))
      :: CELLS > 1 -> ins = c + 1; outs = as_set(CELLS - 1 - c)
      fi
    }
    if
    :: launch()
    :: atomic { may_fail -> failures++ }
      failing_launch()
    fi
  :: !SYNCHRONISED -> break
  od
}

init {
  atomic {
    run slot(0);
    run slot(1);
    run slot(2);
    run fetcher(0);
    run fetcher(1);
    run thread(0);
    run thread(1)
  }
}

/* No load or store of host thread 0 waits forever. (The two threads are alike.) */
ltl served { [] (accessing[0] -> <> !accessing[0]) }
