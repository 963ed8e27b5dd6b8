/** The arrival of requests at the server: any request in flight may arrive next, and some arrive twice. */
import { LEASE_TICKS } from "./canonical.js";
import type { Step } from "./explore.js";
import { INBOX, tokensOf } from "./lock-kinds.js";
import { type Claim, copyOf, type LockState, type Reply, type Request } from "./lock-state.js";
import type { Place } from "./place.js";
import type { Call, Held, Outcome, Server } from "./server.js";

/** The parts of a world that a delivery needs. */
export interface Receiving {
  readonly setting: { readonly clockStands?: boolean; readonly stepUs?: number };
  readonly places: readonly Place[];
  listening(state: LockState): string[];
  name(number: number): string;
  callOf(request: Request, state: LockState): Call;
  isWait(request: Request, outcome: Outcome): boolean;
  replyOf(request: Request, outcome: Outcome, slow: number): Reply;
  /** The next command that the client sent together with this one; undefined if the client gets the reply. */
  followedBy(request: Request, outcome: Outcome): Request | undefined;
  /** The client knows that this request was sent twice. */
  copied(claim: Claim, verb: Request[1]): void;
  broken(before: LockState, next: LockState, request: Request, outcome: Outcome, after: Held): string | undefined;
}

/** Adds the arrivals to `steps`. */
export async function addDeliveries(
  world: Receiving,
  server: Server,
  state: LockState,
  steps: Step<LockState>[],
): Promise<void> {
  const listening = world.listening(state);
  for (const [at, request] of state.requests.entries()) {
    const [number, verb, , orphan] = request;
    const outcome = await server.run(state.held, state.t, listening, world.callOf(request, state));
    for (const isCopied of [false, true]) {
      if (isCopied && (state.budget.copies === 0 || orphan !== 0)) continue;
      const next = copyOf(state);
      if (isCopied) {
        next.budget.copies -= 1;
        // The client lost its connection and resent the request, so it knows that the request may run twice.
        const claim = next.claims[number] as Claim;
        if (verb === "release") claim.may = 1;
        if (verb === "leave") claim.un = 1;
        if (verb === "wait" && claim.wait !== undefined) claim.wait.twice = 1;
        world.copied(claim, verb);
        (next.requests[at] as Request)[3] = 2;
      } else {
        next.requests.splice(at, 1);
      }
      const of = state.claims[number] as Claim;
      const isOutlived = orphan === 2 || (orphan === 1 && of.ph === "dep" && of.dep >= LEASE_TICKS);
      if (isOutlived && (verb === "acquire" || verb === "wait")) next.late = 1;
      if (orphan === 0) {
        const isWait = world.isWait(request, outcome);
        const slow = isWait ? Math.min(1, of.sent) : 0;
        if (isWait) outdate(world, next, number);
        const following = world.followedBy(request, outcome);
        if (following === undefined) next.replies.push(world.replyOf(request, outcome, slow));
        else next.requests.push(following);
      }
      next.held = outcome.held;
      for (const [channel, message] of outcome.told) {
        const [to, granted] = message.slice(1).split(" ").map(Number);
        const target = recipient(world, channel.slice(INBOX.length), to ?? -1, state);
        // A client keeps the last of the tokens that its grant reserves.
        const last = granted === undefined ? 0 : granted + tokensIn(world.places[target]) - 1;
        if (target >= 0) next.pushes.push([target, last, 0, 0]);
      }
      const violation = world.broken(state, next, request, outcome, outcome.held);
      if (world.setting.clockStands !== true) next.t += world.setting.stepUs ?? 1;
      const how = orphan === 0 ? "" : orphan === 1 ? " (late)" : " (second copy)";
      const copied = isCopied ? ", and will arrive once more" : "";
      steps.push({ label: `${verb} of ${world.name(number)} runs${how}${copied}`, next, isFault: isCopied, violation });
    }
  }
}

/** The number of tokens that a grant to that claim reserves. */
function tokensIn(place: Place | undefined): number {
  return place?.role === "retain" ? tokensOf(place.owner) : 1;
}

/** Marks grants in flight as older than the server's "wait" reply. */
function outdate(world: Receiving, next: LockState, number: number): void {
  for (const push of next.pushes) {
    const isOlder = world.setting.clockStands !== true || push[3] > 0;
    if (push[0] === number && push[1] !== 0 && push[2] === 0 && isOlder) push[2] = 1;
  }
}

/** The claim that a message to a client's inbox addresses; the current one if several claims share a number. */
function recipient({ places }: Receiving, client: string, shown: number, state: LockState): number {
  const named = places.flatMap(({ owner }, number) => (owner.startsWith(`${client}/${shown}/`) ? [number] : []));
  return named.findLast((number) => state.claims[number]?.ph !== "idle") ?? -1;
}
