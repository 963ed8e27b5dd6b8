/** Searches for possible deadlocks on request, and caches the result for all pages for a few seconds. */
import { type Deadlock, type DeadlockClaim, type FoundDeadlocks, findDeadlocks } from "holdfast/admin";
import type { DeadlockClaimView, DeadlockView } from "./api.js";
import type { StoreLink } from "./store-link.js";
import { serversOf } from "./text.js";
import { publicOwner, type Redaction } from "./views.js";

/** The search reads all locks, so it may run less often than pages request it. */
const EVERY_MS = 10_000;
/** After a search, the pause is at least this many times as long as the search took. */
const REST = 3;

/** Runs and caches the deadlock search. */
export class DeadlockSearch {
  readonly #link: StoreLink;
  #found: FoundDeadlocks | undefined;
  #nextMs = 0;
  #searching: Promise<FoundDeadlocks> | undefined;

  constructor(link: StoreLink) {
    this.#link = link;
  }

  /**
   * The result of a recent search, or of a new one. @throws HttpProblem 503  Redis is down; also errors from the
   * library
   */
  async result(): Promise<FoundDeadlocks> {
    if (this.#found !== undefined && performance.now() < this.#nextMs) return this.#found;
    this.#searching ??= this.#search().finally(() => {
      this.#searching = undefined;
    });
    return this.#searching;
  }

  async #search(): Promise<FoundDeadlocks> {
    const begunMs = performance.now();
    const found = await this.#link.use(({ holdfast }) => findDeadlocks(holdfast));
    const endedMs = performance.now();
    this.#found = found;
    this.#nextMs = endedMs + Math.max(EVERY_MS, REST * (endedMs - begunMs));
    return found;
  }
}

/** A deadlock for the API, without the fields in `redact`. */
export function deadlockView({ members, sinceAtMs }: Deadlock, redact: Redaction): DeadlockView {
  const claimOf = (claim: DeadlockClaim): DeadlockClaimView => ({
    ...{ kind: claim.kind, name: claim.name, key: claim.key ?? null },
    ...{ owner: publicOwner(claim.owner, redact), token: null, sinceAtMs: claim.sinceAtMs ?? null },
    label: redact.has("label") ? null : (claim.label ?? null),
    needsTopology: claim.needsTopology ?? null,
    onServers: serversOf(claim),
  });
  return {
    sinceAtMs: sinceAtMs ?? null,
    members: members.map(({ clientId, host, pid, clientName, holds, waits }) => ({
      ...{ clientId, host: host ?? null, pid: pid ?? null, app: clientName ?? null },
      holds: { ...claimOf(holds), token: holds.token ?? null },
      waits: claimOf(waits),
    })),
  };
}

/** The names of all locks of a deadlock. */
export function namesIn({ members }: DeadlockView): readonly string[] {
  return members.flatMap(({ holds, waits }) => [holds.name, waits.name]);
}
