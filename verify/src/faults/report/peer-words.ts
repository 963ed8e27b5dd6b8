/** The parts of verify/docs/peers-under-faults.md that do not depend on a run. */

/** What the document covers and what it does not. */
export const ABOUT: string = `
Other libraries that lock on Redis, run by the same program as this one in the same cells of the fault matrix
([verification.md](../../docs/verification.md)): the same servers, the same clients that work, the same faults, the same judges.

It is no ranking. Most of these libraries promise less than what is looked for here, some of them say so in their
documentation, and a lock that polls and checks no token may be all that a program needs. What is counted is what a
caller would have seen, by properties that were written down for this library. Leases last 600 ms, so that many end
while faults last; that is far shorter than what anybody uses, and makes rare things frequent. Mistakes in how a library
is driven here would be ours; the code is in \`verify/src/faults/subjects/\`, about 150 lines each.
`.trim();

/** How peers are mapped to cells. Other choices would have been possible. */
export const MAPPING: string = `
- A peer takes the cell in the kind of the matrix if it has that kind, and a mutex in its place if not. This library runs
  the same cells, also those that its own matrix does not have.
- S2 (X1 for permits) asks for two holders at once. A lease counts from the return of its acquire until it is released, or
  until the validity is over that the library states: \`expiration\` of redlock, on its wall clock, and \`getRemainingTime()\`
  of verrou. redis-semaphore states none and says \`isAcquired\`: it counts until it was last asked and said yes.
  simple-redis-mutex has neither an end nor a question "held?": it counts until its release is called, since it gives a
  holder no way to learn that its time is over. A caller who keeps time by himself would stop earlier.
- S4 asks whether a loss is told. It is judged only by what a peer says: whoever cannot be asked is not judged, and who has
  no signal cannot give one too late. redlock has a signal in \`using\` only, which is what runs where leases are renewed;
  nothing else can be asked there, so a lease counts as held in its own words until that signal. An extension that fails is
  tried again as often as an acquire (12 times here, 10 by default, 200 ms apart) before the signal comes.
- S1 and S3 ask whether the answers make sense in some order, and whether anybody but the owner changed something. A call
  that resolves with nothing whether or not the lock was still held (release of redis-semaphore and simple-redis-mutex,
  \`refreshTimeout\`) counts as a success within the lease, and as unknown after it.
- F1 and F2 are judged where there are tokens: of the peers, simple-redis-mutex, whose counter is one for all locks.
- When something happens (waits that settle, crashed holders, order) and what is left behind is not judged of peers.
- redlock runs on one server, as everything here; several servers are what its algorithm is for.
- Left out for all peers: steps of the client's wall clock and suspended hosts, which need a library that can be given a
  clock (J06, J07), the check at the start (J36g), and counters seeded by the clock. Notifications (J16, J17) are struck
  only where a peer has them. verrou sends its scripts whole, so that a server that forgets scripts (J21) is nothing to it.
`.trim();

/** How to read the tables; comes before them. */
export const HOW_TO_READ: string = `
In the tables, \`m S2 3/41\` is a mutex with 3 violations of S2 in 41 decided cases, \`none\` is no violation of anything that
is judged, and \`·\` is not run or not offered. \`void\` is a run that shows nothing, \`unknown\` one whose search came to no
end; neither is a good or a bad result. Letters are kinds: m mutex, k several locks at once, s semaphore, t mutex with
tokens, a mutex that is renewed.

The third column is what this library promises there: \`0\` all of it, \`~\` and \`!\` nothing. Where it is \`!\` the run directs a
violation on purpose and stops after three: that it appears is no fault of a library, and no lease on one such server can
be promised otherwise. In the rows named \`-plain\` this library runs with its own protection of tokens switched off, and in
J36 without its check at the start, as controls.

S1 under lost or late requests and error replies was, where we looked, a wrong word about a request that arrived twice
("busy", or "not the owner"), or a lock that nobody knew of until its lease was over; two holders at once would be S2.
`.trim();
