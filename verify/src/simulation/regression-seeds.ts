/** Runs that once failed, and why; each is played again by the tests, so that it does not fail again. */
import type { Choice } from "./choose.js";

/** One of them. */
export interface RegressionSeed {
  readonly seed: number;
  readonly kind: string;
  readonly profile: Choice;
  /** What was wrong. */
  readonly was: string;
}

/** All of them; those of the library first, then those in which the simulation expected what is not promised. */
export const REGRESSION_SEEDS: readonly RegressionSeed[] = [
  {
    seed: 117235,
    kind: "semaphore",
    profile: "promised",
    was: "a release in time was a loss, since its second answer came late",
  },
  {
    seed: 146083,
    kind: "election",
    profile: "promised",
    was: "a campaign that could not proclaim waited for what it gave back",
  },
  {
    seed: 156,
    kind: "reentrant-mutex",
    profile: "forgets",
    was: "a loss was told at the next renewal only, after the wall clock had gone forward",
  },
  { seed: 115547, kind: "multi-lock", profile: "promised", was: "the same, for the first of several locks" },
  {
    seed: 20777034950,
    kind: "barrier",
    profile: "promised",
    was: "who gave up before its arrival came was told that a generation broke which passed",
  },
  {
    seed: 600780,
    kind: "mutex",
    profile: "forgets",
    was: "who shared a claim that the first answer granted had no deadline behind a long hold",
  },
  { seed: 102737, kind: "read-write-lock", profile: "promised", was: "a lease of unknown mode refuses to be exported" },
  {
    seed: 103525,
    kind: "count-down-latch",
    profile: "promised",
    was: "a late copy of a setting is answered as the first",
  },
  {
    seed: 111451,
    kind: "election",
    profile: "promised",
    was: "a host that slept and was set back cannot know its lateness",
  },
  { seed: 114234, kind: "condition", profile: "promised", was: "the same" },
  { seed: 125690, kind: "multi-lock", profile: "promised", was: "the same, at a release" },
  {
    seed: 174124,
    kind: "semaphore",
    profile: "promised",
    was: "who begins to wait without an ear may be taken for dead",
  },
  {
    seed: 452,
    kind: "read-write-lock",
    profile: "promised",
    was: "what was over runs again when the server's clock goes back",
  },
  {
    seed: 301910,
    kind: "multi-lock",
    profile: "forgets",
    was: "of several locks all are over when one is, also those that run on",
  },
  {
    seed: 402229,
    kind: "semaphore",
    profile: "promised",
    was: "who adopts a lease has what is left of it on the server, if that is more",
  },
  {
    seed: 411134,
    kind: "multi-lock",
    profile: "forgets",
    was: "a grant was made before, and returned after, the instant up to which it is judged",
  },
  { seed: 400339, kind: "semaphore", profile: "promised", was: "an extension says how long the lease is good for" },
  {
    seed: 407323,
    kind: "semaphore",
    profile: "promised",
    was: "a release that is sent again cannot tell what was lost",
  },
  { seed: 400990, kind: "election", profile: "promised", was: "what comes late of a process that is gone, stays" },
  { seed: 406677, kind: "reentrant-mutex", profile: "promised", was: "who cannot reach the server stays in the queue" },
  { seed: 666, kind: "mutex", profile: "promised", was: "a late copy of an acquire begins the lease anew" },
  {
    seed: 1103965,
    kind: "count-down-latch",
    profile: "promised",
    was: "a late copy of a count-down at zero counted under the next count",
  },
  {
    seed: 412634,
    kind: "read-write-lock",
    profile: "none",
    was: "a token that an unanswered upgrade may have changed",
  },
  { seed: 1109792, kind: "read-write-lock", profile: "promised", was: "a history that ends before a loss is due" },
  {
    seed: 2007678,
    kind: "reentrant-mutex",
    profile: "promised",
    was: "who was told of its loss relies on it no longer",
  },
  {
    seed: 303376,
    kind: "election",
    profile: "promised",
    was: "who stood still while it was granted was served in its turn",
  },
  { seed: 405459, kind: "mutex", profile: "promised", was: "the same, of a mutex" },
  {
    seed: 20777007767,
    kind: "multi-lock",
    profile: "promised",
    was: "an extension of one of several locks may put off the end of all",
  },
  {
    seed: 605334,
    kind: "reentrant-mutex",
    profile: "promised",
    was: "a late request of a claim takes a place again after its lease was adopted elsewhere",
  },
  { seed: 601395, kind: "condition", profile: "promised", was: "the same, under a condition" },
  {
    seed: 618085,
    kind: "semaphore",
    profile: "promised",
    was: "a release over whose time the connection came back cannot tell what was lost",
  },
  {
    seed: 3182,
    kind: "multi-lock",
    profile: "forgets",
    was: "a server that forgets may bring back a place that was given up",
  },
  {
    seed: 702200,
    kind: "mutex",
    profile: "promised",
    was: "a server that was frozen lets a claim leave and take a place at one instant",
  },
  { seed: 219, kind: "condition", profile: "none", was: "a key lives to the end of its last millisecond" },
  {
    seed: 655619,
    kind: "multi-lock",
    profile: "promised",
    was: "a lease goes on if the process that was to take it by force is dead",
  },
  {
    seed: 663378,
    kind: "condition",
    profile: "promised",
    was: "what a claim had asked for before it had its lease comes after that",
  },
  {
    seed: 720129,
    kind: "reentrant-mutex",
    profile: "promised",
    was: "a grant of which nobody heard was made when the server made it, and no sooner",
  },
  {
    seed: 909825,
    kind: "condition",
    profile: "promised",
    was: "who had heard nothing of its wait did not pass on a signal whose lease went by unused",
  },
  {
    seed: 4006626,
    kind: "condition",
    profile: "promised",
    was: "who had heard nothing of its wait did not pass on a signal when it had been dropped from the queue",
  },
  {
    seed: 3000579,
    kind: "condition",
    profile: "promised",
    was: "a grant went by unused while the answer to the first request was lost",
  },
  {
    seed: 911075,
    kind: "multi-lock",
    profile: "promised",
    was: "who releases several locks, of which one was lost, does not say that of the others",
  },
  {
    seed: 2009676,
    kind: "reentrant-mutex",
    profile: "forgets",
    was: "a key in its last millisecond came back from the disk without an end",
  },
  {
    seed: 6074769,
    kind: "reentrant-mutex",
    profile: "promised",
    was: "who stood still at its turn was served, and is passed by others until it takes notice",
  },
  {
    seed: 6076327,
    kind: "election",
    profile: "promised",
    was: "a late resignation does not take a late request out of the queue",
  },
  {
    seed: 20029026,
    kind: "reentrant-mutex",
    profile: "promised",
    was: "who gives back late extends first, and that answer tells as much as one to the release",
  },
  {
    seed: 20033394,
    kind: "condition",
    profile: "promised",
    was: "a key that was over when somebody looked does not come back with a clock that is set back",
  },
  {
    seed: 20045983,
    kind: "election",
    profile: "promised",
    was: "a late lease that harmed nobody may be on the server until its departure is heard there",
  },
  {
    seed: 30018719,
    kind: "read-write-lock",
    profile: "promised",
    was: "a clock that is set back twice is late by both",
  },
  {
    seed: 50007522,
    kind: "reentrant-mutex",
    profile: "promised",
    was: "what is given back after a late request was granted once more does not show that the release before it did so",
  },
  {
    seed: 60103430,
    kind: "barrier",
    profile: "promised",
    was: "a late copy of an arrival that had been told broken arrived in the generation after the reset",
  },
  {
    seed: 70133887,
    kind: "semaphore",
    profile: "promised",
    was: "whoever wanted more permits than there were for a moment was to keep its place in the queue",
  },
  { seed: 70034527, kind: "semaphore", profile: "promised", was: "the same, told late" },
  {
    seed: 500111571,
    kind: "reentrant-mutex",
    profile: "none",
    was: "of a claim that was handed on and then adopted, the length that its first lease had asked for was forgotten",
  },
  {
    seed: 710115560,
    kind: "barrier",
    profile: "none",
    was: "the last one at a barrier, for whom nobody came any more, was to be done before its wait was over",
  },
  {
    seed: 710028686,
    kind: "read-write-lock",
    profile: "promised",
    was: "what a process did within a second before it froze was taken for a part of its pause",
  },
  { seed: 710137900, kind: "semaphore", profile: "promised", was: "the same" },
  {
    seed: 720130448,
    kind: "read-write-lock",
    profile: "promised",
    was: "a writer that had become a reader was still a writer where it was adopted and nobody heard of it",
  },
  {
    seed: 241125966,
    kind: "mutex",
    profile: "promised",
    was: "a claim that was ended by force, and granted anew by a late copy of its request, was given back as if nothing had been",
  },
  {
    seed: 241131215,
    kind: "read-write-lock",
    profile: "promised",
    was: "a late copy of a reader's request, answered with the token of a writer, was not known to begin its lease anew",
  },
  {
    seed: 241120727,
    kind: "barrier",
    profile: "promised",
    was: "who called while the process still waited for a question that was lost before was to be told at once",
  },
  {
    seed: 241253179,
    kind: "count-down-latch",
    profile: "promised",
    was: "who came at the instant at which a latch opened, but after it, was to have waited before",
  },
  {
    seed: 900126933,
    kind: "condition",
    profile: "promised",
    was: "a waiter whose lease of 500 ms ended before its next question was expected back although another one held the lock",
  },
  {
    seed: 921180335,
    kind: "multi-lock",
    profile: "kills",
    was: "a waiter for two locks was expected to say that it had the first one before it had both",
  },
  {
    seed: 927116238,
    kind: "reentrant-mutex",
    profile: "promised",
    was: "after a suspension of the host, an expired lease was reported as server-lost when the next grant arrived",
  },
];
