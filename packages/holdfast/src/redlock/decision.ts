/**
 * Decides from the replies of N independent servers whether an attempt is granted, and with which token.
 *
 * The functions are pure, so that the exhaustive search in verify/ can use them. Lists are indexed by server and have
 * length N. Time plays no part here: the caller checks that the lease has not ended when the majority is reached.
 * docs/adr/092-tokens-on-a-quorum.md explains why the token rises.
 */

/** The reply of one server to redlock/acquire. An error or no reply in time counts as `refused`. */
export type AcquireVote =
  | { readonly outcome: "pending" }
  | { readonly outcome: "refused" }
  /** `token` is the server's own number. */
  | { readonly outcome: "granted"; readonly token: number };

/** The reply of one server to redlock/confirm. An error or no reply in time counts as `refused`. */
export type ConfirmAnswer = "pending" | "confirmed" | "refused";

/** A server that granted with a number lower than the token. */
export interface LaggingServer {
  readonly server: number;
  /** The number in its reply, which redlock/confirm compares with the server's current number. */
  readonly reported: number;
}

/**
 * A majority has granted, but fewer than a majority have the token as their number. The token must be written to the
 * servers in `behind`.
 *
 * The servers in `behind` and `standing` are the decided set. A server that grants later is not part of the set and is
 * never counted: it may have granted the lock to another owner in the meantime, so its number may be higher than the
 * token.
 */
export interface Unconfirmed {
  readonly outcome: "confirm";
  readonly token: number;
  /** Servers that replied with the token itself. */
  readonly standing: readonly number[];
  readonly behind: readonly LaggingServer[];
}

/** The next step of an attempt. */
export type Decision =
  /** The lock is held with this token. */
  | { readonly outcome: "granted"; readonly token: number }
  | Unconfirmed
  /** A majority can still be reached. */
  | { readonly outcome: "wait" }
  /** A majority can no longer be reached. Release on all servers and retry with a new owner id. */
  | { readonly outcome: "refused" };

/** Why an inspection fails if the missing replies could change whether the lock is held. */
export const UNDECIDED = "it may be held, but too few servers replied to be sure";

/** Returns the number of servers that form a majority of `servers`. Any two majorities share a server. */
export function quorumOf(servers: number): number {
  return Math.floor(servers / 2) + 1;
}

/**
 * Decides whether a majority is reached.
 *
 * @param yes      number of servers that agreed
 * @param open     number of servers without a reply
 * @param servers  total number of servers
 * @returns "refused" if a majority can no longer be reached
 */
export function tally(yes: number, open: number, servers: number): "granted" | "wait" | "refused" {
  if (yes >= quorumOf(servers)) return "granted";
  return yes + open >= quorumOf(servers) ? "wait" : "refused";
}

/**
 * Decides the outcome of an attempt from the replies so far.
 *
 * The token is the highest number among the servers that granted. If a majority replied with exactly that number, the
 * result is `granted`. Otherwise, it is `confirm` as soon as a majority has granted, even while other replies are
 * pending. The caller may confirm immediately, or wait for more replies and decide again. Waiting can save the second
 * round trip, and it enlarges the decided set.
 *
 * @param answers  one per server; a grant does not count if its number is not a safe integer and so may be rounded
 */
export function decide(answers: readonly AcquireVote[]): Decision {
  const granted = answers.flatMap((answer, server) =>
    answer.outcome === "granted" && Number.isSafeInteger(answer.token) ? [{ server, reported: answer.token }] : [],
  );
  const open = answers.filter(({ outcome }) => outcome === "pending").length;
  const outcome = tally(granted.length, open, answers.length);
  if (outcome !== "granted") return { outcome };

  const token = Math.max(...granted.map(({ reported }) => reported));
  const standing = granted.filter(({ reported }) => reported === token).map(({ server }) => server);
  if (tally(standing.length, 0, answers.length) === "granted") return { outcome: "granted", token };
  return { outcome: "confirm", token, standing, behind: granted.filter(({ reported }) => reported < token) };
}

/**
 * Decides the outcome of an attempt from the replies to redlock/confirm that have arrived.
 *
 * @param unconfirmed  the result of `decide` that led to the confirmation; later grants do not change it
 * @param answers      one per server; those of servers that are not in `behind` are ignored
 */
export function confirmed(
  { standing, behind }: Unconfirmed,
  answers: readonly ConfirmAnswer[],
): "granted" | "wait" | "refused" {
  const count = (wanted: ConfirmAnswer): number => behind.filter(({ server }) => answers[server] === wanted).length;
  return tally(standing.length + count("confirmed"), count("pending"), answers.length);
}
