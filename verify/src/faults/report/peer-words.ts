/** The parts of verify/docs/peers-under-faults.md that do not depend on a run. */

/** What the document covers and what it does not. */
export const ABOUT: string = `
This page shows how other lock libraries for Redis behave in the cells of the fault matrix ([verification.md](../../docs/verification.md)). The same
program runs them and Holdfast, with the same servers, client programs, faults and judges.

This is not a ranking. Most of these libraries promise less than the tests look for, and some of them say so in their
documentation. A lock that polls and checks no token may be all that a program needs. The tests count what a caller would
have seen, by properties that were written for Holdfast. Leases last only 600 ms, so that many end during a fault. That is
far shorter than in practice, and makes rare violations frequent. If a library is used incorrectly here, the mistake is
ours: the code is in \`verify/src/faults/subjects/\`, about 150 lines for each library.
`.trim();

/** How peers are mapped to cells. Other choices would have been possible. */
export const MAPPING: string = `
- A peer runs a cell with the kind of lock that the matrix names, if it has that kind, and otherwise with a mutex. Holdfast
  runs the same cells, also those that its own matrix does not contain.
- S2 (X1 for permits) asks whether two clients held the lock at the same time. A lease counts from the return of its acquire
  until its release, or until the end of the validity that the library states: \`expiration\` in redlock, by its wall clock,
  and \`getRemainingTime()\` in verrou. redis-semaphore states no end, but has \`isAcquired\`: a lease counts until the last
  time that this was true. simple-redis-mutex has neither, and gives a holder no way to learn that its lease is over. There,
  a lease counts until its release is called. A caller that measures the time itself would stop earlier.
- S4 asks whether a loss is reported, and judges a peer only by what it reports. A library without a query is not judged,
  and one without a signal cannot send it too late. redlock has a signal only in \`using\`, which the cells with renewal run.
  Nothing else can be queried there, so a lease counts as held until that signal. redlock retries a failed extension
  as often as an acquire (here 12 times, by default 10, 200 ms apart) before it sends the signal.
- S1 and S3 ask whether the replies are possible in some order, and whether only the owner changed a lock. Some calls
  resolve without a value, whether or not the lock was still held: the release of redis-semaphore and simple-redis-mutex, and
  \`refreshTimeout\`. Such a call counts as a success within the lease, and as unknown after it.
- F1 and F2 are judged where there are tokens. Of the peers, only simple-redis-mutex has them, with one counter for all locks.
- For peers, the tests do not judge when something happens (waits that end, crashed holders, order) or what remains on the server.
- redlock runs on one server, like all libraries here. Its algorithm is meant for several servers.
- No peer runs the following: steps of the client's wall clock and suspended hosts, because they need a library that accepts
  a clock (J06, J07); the check at the start (J36g); and counters that start from the clock. Faults of notifications (J16, J17)
  apply only to peers that have notifications. verrou sends the full text of its scripts, so a server that forgets scripts (J21) does
  not affect it.
`.trim();

/** How to read the tables; comes before them. */
export const HOW_TO_READ: string = `
In the tables, \`m S2 3/41\` means a mutex with 3 violations of S2 in 41 decided cases. \`none\` means no violation of any property
that is judged, and \`·\` means not run or not supported. \`void\` is a run that showed nothing, and \`unknown\` is a run whose
search did not finish; neither is a good or a bad result. The letters are kinds: m mutex, k several locks together, s
semaphore, t mutex with tokens, a mutex with renewal.

The third column is what Holdfast promises in the row: \`0\` everything, \`~\` and \`!\` nothing. In rows with \`!\`, the run causes a
violation on purpose and stops after three. Such a violation is not a fault of a library, because no library can promise a
lease on one such server. As controls, Holdfast runs the rows named \`-plain\` without its protection of tokens, and J36 without
its check at the start.

In the violations of S1 under lost requests, late requests and error replies that we examined, one of two things had happened. A request that arrived
twice got a wrong reply ("busy", or "not the owner"), or a lock stayed taken until the end of its lease although no client knew of
it. Two holders at the same time would be a violation of S2.
`.trim();
