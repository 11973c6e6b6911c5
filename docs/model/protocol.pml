/* The coherence of one region, for the model checker Spin: two host threads, two devices, the view's protection, faults,
 * fetches, uploads and launches. README.md beside this file says what is modelled and what is not; scripts/check-model
 * runs it.
 *
 * The table of the protocol is not written here. protocol_table.pml is printed from the C++ function
 * (tests/coherence/print_protocol.cpp): waits(s, e), uploads(s, e), ..., next_state(s, e).
 *
 * Properties, by the name they have in the README:
 *   no stale read   assertions "stale" in access and execute
 *   no lost write   the same: the next read finds a value that was not written last
 *   no overlap      assertions "overlap": a copy never works on a shadow that the host may change
 *   agreement       assertion in unlock: a view is never more open than the state of its block allows
 *   no deadlock     invalid end states: everything that can wait outside a label end_... must be woken
 *   served          ltl at the end: no load or store waits for ever (weak fairness)
 *
 * Set by the script: BLOCKS; PARTS (of a block, which kernels may write separately); SYNCHRONISED (the program orders its
 * threads, so reads are compared); STEPS (how many loads, stores and launches; 0: any number); FAIR (a block that was
 * opened for a waiting thread is not closed again before the thread has used it); FAILURES (how many launches and fetches may
 * fail and how often a home may go). */

#include "protocol_table.pml"

#define CELLS (BLOCKS * PARTS)
#define first_cell(b) ((b) * PARTS)
#define last_cell(b) ((b) * PARTS + PARTS - 1)
#define block_of(c) ((c) / PARTS)

/* Uploads and kernels that are queued on the devices. They run in any order that what they wait for allows, on however many
 * streams, so it makes no difference on which device one is: the slots are those of both. A fetch is numbered behind the
 * slots, so that a byte is a set of commands. Command numbers stand for timepoints: a point that is reached is in no set
 * any more. */
#define SLOTS 3
#define FETCHES 2
#define as_set(command) (1 << (command))
#define fetch_command(f) (SLOTS + (f))

#define closed 0
#define readable 1
#define writable 2

#define undefined 0 /* the value of what nobody may rely on */

/* ---- the region; all but the view is under the mutex ----------------------------------------------------------- */

bool mutex;
mtype state[BLOCKS] = fresh;
byte view[BLOCKS];      /* closed, readable, writable; the hardware looks at it without any lock */
byte under_way[BLOCKS]; /* the number of the block's latest fetch */
byte writer[CELLS];     /* access order: the last writer of the home, as a set of at most one */
byte readers[CELLS];    /* and the readers since */

/* ---- the two copies, and what a read must see ------------------------------------------------------------------ */

byte home[CELLS];
byte shadow[CELLS];
byte last[CELLS]; /* written last in program order; undefined: nothing was written */

/* ---- queued work ----------------------------------------------------------------------------------------------- */

#define free 0
#define upload 1
#define kernel 2
typedef command {
  byte kind;
  byte after; /* the commands it waits for */
  byte block; /* upload */
  byte ins;   /* kernel: one more than the cell it reads; 0: none */
  byte seen;  /* what it must find there */
  byte outs;  /* the set of cells that it writes */
  byte made   /* what it writes */
};
command queue[SLOTS];

#define held 1   /* waits until the home's last writer has finished */
#define issued 2 /* on its way */
#define copied 3 /* finished; the runtime has not seen it yet */
#define broken 4 /* failed; likewise */
typedef transfer {
  byte phase;
  byte block;
  byte number
};
transfer fetch[FETCHES];

/* ---- the host threads ------------------------------------------------------------------------------------------ */

byte turn;           /* SYNCHRONISED: the thread that may go on; they alternate */
byte steps;          /* how many loads, stores and launches the program has begun */
byte failures;       /* how much has failed */
#define may_fail (failures < FAILURES)
#define MORE (STEPS == 0 || steps < STEPS)
mtype asked[2];      /* the published fault of a thread; 0: none */
byte asked_block[2];
bool accessing[2];   /* the thread is in a load or store */
bool used[BLOCKS];   /* FAIR: the host has used the block since it was opened */

/* ---- values ---------------------------------------------------------------------------------------------------- */

/* Only which values are equal matters. They are renamed in the order in which they are met, so that the number of
 * states is finite in executions of any length, and a copy that has an old value still differs from what was
 * written last. */
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

/* ---- the runtime: what happens under the mutex ----------------------------------------------------------------- */

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

/* What wait_upload waits for: the home's writers. An upload that reads the shadow is one of them; a fetch that writes it
 * though a launch has made it useless is waited for by that launch, which is one of them too. */
#define writers_done(b) (writer[first_cell(b)] == 0 && writer[last_cell(b)] == 0)

inline take_slot(s) {
  if
  :: queue[0].kind == free -> s = 0
  :: queue[0].kind != free && queue[1].kind == free -> s = 1
  :: queue[0].kind != free && queue[1].kind != free && queue[2].kind == free -> s = 2
  fi
}

/* A command writes the cell: it runs after the cell's writer and readers. */
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

/* What a transition asks for, in the order of block_actions. The caller has the mutex and has waited for what the
 * transition waits for. Host threads and devices may act between closing a view and the upload. */
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

/* Runs what is queued in one slot. */
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

/* The life of a fetch after it was started. */
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
  :: d_step { /* it fails part-way: the shadow has neither the old bytes nor the new */
      fetch[f].phase == issued && may_fail ->
      failures++;
      assert(view[fetch[f].block] == closed); /* overlap */
      for (i : first_cell(fetch[f].block) .. last_cell(fetch[f].block)) { shadow[i] = undefined }
      finish(as_set(fetch_command(f)));
      rename_values();
      fetch[f].phase = broken
    }
  :: atomic { /* it cannot be issued */
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

/* Serves faults. */
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
      :: started /* it stays asked, and waits for the fetch */
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

/* Nothing that is queued uses the block. A fetch that waits to be issued is not queued. */
#define quiet(b) \
  (writer[first_cell(b)] == 0 && writer[last_cell(b)] == 0 && readers[first_cell(b)] == 0 && readers[last_cell(b)] == 0)

/* The home goes, as its device is lost, its memory is short or the region moves: what only the home has is copied to the
 * shadow first, and the next home begins with other bytes. */
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

/* Uploads behind the host, and fetches before it asks, whenever it likes. */
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

/* Loads or stores the cells from c to `to`. */
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

/* The same where the launch fails afterwards: the view is changed and the upload queued, which is a flush; the state does not
 * follow the launch. */
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

/* Work that writes the block has failed, and some of it may have run. Whichever copy is valid has the bytes that host and
 * devices find from now on. */
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

/* A kernel that reads one cell or none and writes some. */
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

/* A launch that fails: before anything of it was queued, or when some of it has run and none runs any more. */
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
      if /* in, inout, out, out of the whole block, in and out of different cells */
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

/* No load or store of a host thread waits for ever: each of its faults is served, and then the view is open. */
ltl served { [] (accessing[0] -> <> !accessing[0]) }
