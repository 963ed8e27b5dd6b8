/*
 * Liveness of a failover: behind a promotion, and the quiet period that follows it, waiters go on in the end.
 *
 * Written from docs and design, not from the Lua. One lock with a queue on a master, whose replica may lack the last
 * grant and any part of the queue, and is promoted once. While it is quiet nobody is granted anything new, holders put
 * back what it lacks, and a release hands over to nobody. Quiet lasts as long as the longest lease. A grant on its way
 * may be lost, and the first waiter may die.
 *
 * With -DNO_RECHECK who was told of the quiet only listens, with -DNO_QUIET_END it lasts for ever: both must fail `goesOn`.
 * With -DNO_QUIET, or with -DSHORT_QUIET, in which leases outlast it, `alone` must fail.
 */
#define N 2
#define HOLDER 2            /* who holds at the beginning */
#define FREE 255

byte owner = HOLDER;        /* who holds, as the server sees it */
bool relies[3];             /* who works, by its own clock */
bool queued[N];             /* who stands in the queue; the lower number came first */
bool granted[N];            /* a grant is on its way to the inbox */
bool served[N];             /* it has held, and has given back */
bool alive[N] = true;
bool promoted;
bool quiet;

inline handOff() {
  owner = FREE;
  if
  :: queued[0] -> queued[0] = false;
     if
     :: alive[0] -> owner = 0; granted[0] = true
     :: else -> skip
     fi
  :: else -> skip
  fi;
  if
  :: owner == FREE && queued[1] -> queued[1] = false; owner = 1; granted[1] = true
  :: else -> skip
  fi
}

inline giveBack(who) {
  relies[who] = false;
  if
  :: owner == who && quiet -> owner = FREE
  :: owner == who && !quiet -> handOff()
  :: else -> skip
  fi
}

/* The first holder puts its claim back, releases, or loses its lease, or dies. */
proctype Holder() {
  do
  :: atomic { relies[HOLDER] && quiet && owner == FREE -> owner = HOLDER }
  :: atomic { relies[HOLDER] -> giveBack(HOLDER) }
  :: atomic { relies[HOLDER] -> relies[HOLDER] = false }
  :: !relies[HOLDER] -> break
  od
}

/* A lease ends on the server, which is not before its holder thinks so. */
proctype Leases() {
end:
  do
  :: atomic { owner == HOLDER && !relies[HOLDER] -> owner = FREE }
  :: atomic { owner < N && !relies[owner] && !granted[owner] -> owner = FREE }
  od
}

/* The replica may have seen the last grant, or only the first one, or that the lock was free; and any part of the queue. */
proctype Promotion() {
  atomic {
    promoted = true;
#ifndef NO_QUIET
    quiet = true;
#endif
    if
    :: owner = FREE
    :: owner = HOLDER
    :: skip
    fi;
    if
    :: queued[0] = false
    :: skip
    fi;
    if
    :: queued[1] = false
    :: skip
    fi
  }
#ifndef NO_QUIET_END
  /* What the old master had granted is over by now, unless it was put back. */
  atomic {
    quiet = false;
#ifndef SHORT_QUIET
    if
    :: owner != 0 -> relies[0] = false; granted[0] = false
    :: else -> skip
    fi;
    if
    :: owner != 1 -> relies[1] = false; granted[1] = false
    :: else -> skip
    fi;
    if
    :: owner != HOLDER -> relies[HOLDER] = false
    :: else -> skip
    fi
#endif
  }
#endif
}

/* The network loses grants; nobody makes it. */
proctype Network() {
end:
  do
  :: atomic { granted[0] -> granted[0] = false }
  :: atomic { granted[1] -> granted[1] = false }
  :: break
  od
}

/* Only the first may die: the property is about the other. */
proctype Death() {
  if
  :: atomic { alive[0] = false; granted[0] = false; relies[0] = false }
  :: skip
  fi
}

proctype Waiter(byte me) {
  bool listens = false;
end:
  do
  :: !alive[me] || served[me] -> break
  :: atomic { alive[me] && granted[me] && !served[me] -> granted[me] = false; relies[me] = true }
  :: atomic { relies[me] && quiet && owner == FREE -> owner = me }
  :: atomic { relies[me] -> served[me] = true; giveBack(me); break }
  :: atomic { alive[me] && !relies[me] && !served[me] && !listens ->
       if
       :: quiet ->
#ifdef NO_RECHECK
          listens = true
#else
          skip
#endif
       :: !quiet && owner == me -> granted[me] = false; relies[me] = true
       :: !quiet && owner != me -> queued[me] = true;
          if
          :: owner == FREE -> handOff();
             /* Whoever is the head itself is told by the answer, which needs no message. */
             if
             :: owner == me -> granted[me] = false; relies[me] = true
             :: else -> skip
             fi
          :: else -> skip
          fi
       fi }
  od
}

init {
  atomic {
    relies[HOLDER] = true;
    run Holder(); run Leases(); run Promotion(); run Network(); run Death(); run Waiter(0); run Waiter(1)
  }
}

/* The second waiter, who stays alive, is served. */
ltl goesOn { <> served[1] }
/* S2 */
ltl alone { [] (relies[0] + relies[1] + relies[2] <= 1) }
