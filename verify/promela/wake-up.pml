/*
 * Liveness of wake-up: a waiter gets the lock although grants are lost, and a dead one holds up nobody.
 *
 * Written from docs and design, not from the Lua. One server with a queue, two waiters, and a first holder who releases
 * or dies. A grant on its way may be lost any number of times. With -DNO_RECHECK waiters only listen; with
 * -DNO_EXPIRY a lease never ends. Both must fail.
 */
#define N 2
#define FREE 255
#define OUTSIDER 254

byte owner = OUTSIDER;      /* who holds, as the server sees it */
bool queued[N];             /* who stands in the queue; the lower number came first */
bool granted[N];            /* a grant is on its way to the inbox */
bool served[N];             /* it has held, and has given back */
bool alive[N] = true;

inline promote() {
  if
  :: queued[0] -> queued[0] = false;
     if
     :: alive[0] -> owner = 0; granted[0] = true
     :: else ->
        if
        :: queued[1] && alive[1] -> queued[1] = false; owner = 1; granted[1] = true
        :: else -> owner = FREE
        fi
     fi
  :: !queued[0] && queued[1] -> queued[1] = false;
     if
     :: alive[1] -> owner = 1; granted[1] = true
     :: else -> owner = FREE
     fi
  :: else -> owner = FREE
  fi
}

/* The first holder releases, with hand-off, or dies without a word. */
active proctype Outsider() {
  if
  :: atomic { owner == OUTSIDER -> promote() }
  :: skip
  fi
}

/* The end of a lease of somebody who does not use it: the first holder, the dead, or whoever has lost its grant. */
active proctype Clock() {
#ifndef NO_EXPIRY
end:
  do
  :: atomic { owner == OUTSIDER -> owner = FREE }
  :: atomic { owner < N && !granted[owner] && !alive[owner] -> owner = FREE }
  od
#else
  skip
#endif
}

/* The network loses grants; nobody makes it. */
active proctype Network() {
end:
  do
  :: atomic { granted[0] -> granted[0] = false }
  :: atomic { granted[1] -> granted[1] = false }
  :: break
  od
}

/* Only the first may die: the property is about the other. */
active proctype Death() {
  if
  :: atomic { alive[0] = false; granted[0] = false }
  :: skip
  fi
}

proctype Waiter(byte me) {
  bool asked = false;
end:
  do
  :: !alive[me] -> break
  :: atomic { granted[me] && alive[me] -> granted[me] = false; served[me] = true; promote(); break }
#ifdef NO_RECHECK
  :: atomic { !asked && alive[me] ->
#else
  :: atomic { alive[me] ->
#endif
       asked = true;
       if
       :: owner == me -> served[me] = true; granted[me] = false; promote(); break
       :: owner == FREE && !(me == 1 && queued[0]) ->
          queued[me] = false; served[me] = true; promote(); break
       :: else -> queued[me] = true;
          if
          :: owner == FREE -> promote()
          :: else -> skip
          fi
       fi }
  od
}

init { atomic { run Waiter(0); run Waiter(1) } }

/* L3, L6: the second waiter, who stays alive, is served. */
ltl woken { <> served[1] }
