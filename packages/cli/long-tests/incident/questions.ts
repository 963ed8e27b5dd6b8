/** The questions of an incident, each with the command and the console page that answer it. */

/** One question. */
export interface Question {
  readonly question: string;
  /** The words after `holdfast`. REDLOCK stands for the flags of the three servers. */
  readonly words: readonly string[];
  readonly code?: number;
  /** Patterns that the output of the command must match. */
  readonly says: readonly RegExp[];
  /** The console page that answers the question. `shows` lists what must be visible there. */
  readonly page: string;
  readonly shows: readonly (string | RegExp)[];
  /** The text about the question on the generated page. */
  readonly text: string;
  /** Pictures of the console page, each with its alternative text. */
  readonly pictures?: readonly Picture[];
}

/** A picture in docs/console. */
export interface Picture {
  readonly file: string;
  readonly on: "desktop" | "phone";
  readonly alt: string;
}

/** Questions while Redis is up. */
export const UP: readonly Question[] = [
  {
    question: "What is stuck?",
    words: ["ls", "--waiting", "--sort", "waiters"],
    says: [/^report:daily +mutex +held, gone for \S+ .* 2 /m, /^stock:7 /m, /^invoice:9 /m, /^nightly +mutex +paused/m],
    page: "#/locks?q=waiting",
    shows: [/^4 of 5,00\d locks$/, "1 gone", "Possible deadlock", "report:daily", "nightly"],
    text: "The console's first page with the filter `waiting`, on a desktop and on a phone. A click on a number lists what it counts.",
    pictures: [
      {
        file: "locks.png",
        on: "desktop",
        alt: "The first page: a possible deadlock, and four of 5,000 locks for which clients wait",
      },
      { file: "locks-phone.png", on: "phone", alt: "The same on a phone, in the dark theme" },
    ],
  },
  {
    question: "Who holds it, is the holder alive, and who waits for how long?",
    words: ["show", "report:daily"],
    says: [
      /holder {3}app-1\/4201 api for \S+ \(since /,
      /its client has been gone for \S+, and its lease ends in \S+: holdfast release report:daily --token \d+ -m WHY/,
      /waiting {2}2/,
      /1 +app-2\/4202 billing +\S+ .*invoices/,
      /2 +app-4\/4204 worker +\S+ .*statistics/,
    ],
    page: "#/lock?kind=mutex&name=report%3Adaily",
    shows: [/^The client of .* has been gone for/, "1 holder", "2 waiters", /^holdfast release report:daily --token/],
    text: "The holder crashed, and its lease has half an hour to go. The page of the lock:",
    pictures: [
      {
        file: "lock.png",
        on: "desktop",
        alt: "One lock: its holder is gone, two clients wait, and the command that releases it",
      },
    ],
  },
  {
    question: "Is it a deadlock, and what should be released?",
    words: ["ls", "--deadlocks"],
    says: [
      /^possible deadlock for \S+: 2 clients wait for each other$/m,
      /holds {5}invoice:9 .*"charge"/,
      /holds {5}stock:7 .*"reserve"/,
      /to end it: holdfast release \S+ --token \d+ -m WHY/,
    ],
    page: "#/locks",
    shows: ["Possible deadlock", /^To end it, release/],
    text: "The first page of the console says the same, above the list. Running that command ends the deadlock.",
  },
  {
    question: "Why is this lock paused, and until when?",
    words: ["show", "nightly"],
    says: [
      /^nightly: mutex, paused$/m,
      /paused {3}by on-call@ops-1 since \S+ \S+ \(\S+ ago\), until \S+ \S+ \(\S+\): "db maintenance"/,
    ],
    page: "#/lock?kind=mutex&name=nightly",
    shows: [/^Paused by on-call@ops-1/, "db maintenance", "Until"],
    text: "Clients that were already waiting keep their places.",
    pictures: [
      { file: "paused-phone.png", on: "phone", alt: "A paused lock on a phone: who paused it, why, and until when" },
    ],
  },
  {
    question: "Does the Redlock have a majority?",
    words: ["show", "ledger", "REDLOCK"],
    says: [/^ledger: redlock, held$/m, /servers {2}held on 2 of 3 servers, a majority; 1 did not reply/],
    page: "#/lock?kind=redlock&name=ledger",
    shows: [
      /held on 2 of 3 servers, a majority; 1 did not reply\. If either of these 2 servers fails, the lock is lost/,
    ],
    text: "A console with the same flags says it on the page of the lock:",
    pictures: [
      { file: "redlock.png", on: "desktop", alt: "The page of a Redlock that is held on two of three servers" },
    ],
  },
];

/** The question after Redis was stopped. */
export const DOWN: Question = {
  question: "Is Redis down?",
  words: ["ls"],
  code: 69,
  says: [/^holdfast: Redis at \S+ could not be reached within 5s: connect ECONNREFUSED/],
  page: "#/locks",
  shows: ["The console cannot use Redis", /ECONNREFUSED/, /the next in/],
  text: "Exit code 69. Every page of the console becomes this one, and returns to what it was when Redis is back:",
  pictures: [
    {
      file: "down.png",
      on: "desktop",
      alt: "Redis is down: the error, for how long, and when the console tries again",
    },
  ],
};

/** The question after Redis was started again. */
export const BACK: Question = {
  question: "Is Redis back, and has anyone lost a lease?",
  words: ["history", "--outcome", "lost", "--since", "1h"],
  says: [/^WHEN +NAME +HOLDER/, /sync:eu +app-5\/4205 api .* lost +expired/],
  page: "#/history?outcome=lost",
  shows: ["sync:eu", "live"],
  text: "Exit code 0: Redis is back. A holder whose lease ended during the outage is listed once it has reached Redis again. All others kept their locks. The console has the same page.",
};
