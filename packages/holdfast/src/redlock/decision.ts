/**
 * What the answers of N independent servers come to: whether an attempt is granted, and under which token.
 *
 * Pure, so that the exhaustive search in verify/ decides by the very same functions. Lists are indexed by server, and
 * their length is N. Time plays no part here: that the lease still runs when the majority is there is judged by whoever
 * calls. Why the token rises is told in docs/adr/092-tokens-on-a-quorum.md.
 */

/** What one server has answered to redlock/acquire. No answer in time, and an error, count as `refused` too. */
export type ServerAnswer =
  | { readonly outcome: "pending" }
  | { readonly outcome: "refused" }
  /** `token` is the server's own number. */
  | { readonly outcome: "granted"; readonly token: number };

/** What one server has answered to redlock/confirm. No answer in time, and an error, count as `refused` too. */
export type ConfirmAnswer = "pending" | "confirmed" | "refused";

/** A server that granted with less than the token. */
export interface Behind {
  readonly server: number;
  /** The number that it answered, for redlock/confirm to compare. */
  readonly reported: number;
}

/**
 * A majority has granted, but fewer stand at the token: it has to be written to those who are `behind`.
 *
 * Together with those that are `standing` they are the decided set. A server that grants later is none of it and is
 * never counted: it may stand above the token, by a grant to somebody else.
 */
export interface Unconfirmed {
  readonly outcome: "confirm";
  readonly token: number;
  /** Servers that answered the token itself. */
  readonly standing: readonly number[];
  readonly behind: readonly Behind[];
}

/** What to do next about an attempt. */
export type Decision =
  /** It is held, under this token. */
  | { readonly outcome: "granted"; readonly token: number }
  | Unconfirmed
  /** A majority may still be reached. */
  | { readonly outcome: "wait" }
  /** A majority cannot be reached any more: release everywhere, and try again as a new owner. */
  | { readonly outcome: "refused" };

/** How many of `servers` are a majority of them; two of these always share a server. */
export function quorumOf(servers: number): number {
  return Math.floor(servers / 2) + 1;
}

/** What `yes` answers, and `open` ones to come, of `servers` mean for what needs a majority. */
export function tally(yes: number, open: number, servers: number): "granted" | "wait" | "refused" {
  if (yes >= quorumOf(servers)) return "granted";
  return yes + open >= quorumOf(servers) ? "wait" : "refused";
}

/**
 * Decides an attempt by what has been answered so far.
 *
 * The token is the maximum of the numbers of all that granted. If a majority answered exactly that, one round trip
 * was enough. `confirm` is the answer as soon as a majority has granted, even while others are pending; whoever calls
 * may confirm at once, or wait for more and ask again, which may save the second round trip and widens the decided set.
 *
 * @param answers  one for each server; a number beyond the safe integers is no grant, because it may have been rounded
 */
export function decide(answers: readonly ServerAnswer[]): Decision {
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
 * Decides an attempt by what has been answered to redlock/confirm so far.
 *
 * @param unconfirmed  what `decide` said, whatever has been granted since
 * @param answers      one for each server; those of servers that are not behind are not looked at
 */
export function confirmed(
  { standing, behind }: Unconfirmed,
  answers: readonly ConfirmAnswer[],
): "granted" | "wait" | "refused" {
  const count = (wanted: ConfirmAnswer): number => behind.filter(({ server }) => answers[server] === wanted).length;
  return tally(standing.length + count("confirmed"), count("pending"), answers.length);
}
