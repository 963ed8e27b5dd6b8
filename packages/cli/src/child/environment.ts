/** The environment variables that tell a child process about the lock it runs under. */

/** The facts about one lease that a child process receives. */
export interface LeaseFacts {
  readonly name: string;
  readonly kind: string;
  readonly mode: "exclusive" | "shared";
  /** Undefined for a lock in another system's format, because such a token orders only Holdfast's own grants. */
  readonly token: number | undefined;
  readonly owner: string;
  readonly slot: number | undefined;
  readonly acquiredAtMs: number;
  readonly waitedMs: number;
  readonly leaseMs: number;
  readonly maxHoldMs: number | undefined;
  /** Set only for an election. */
  readonly term?: number;
}

const HELD = "HOLDFAST_HELD";

/** The names of locks that enclosing runs hold. */
export function heldNames(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  return (env[HELD] ?? "").split("\n").filter((name) => name !== "");
}

/**
 * The environment variables of a lease. A variable that this lease does not set is removed from the child's
 * environment, because the inherited value describes the lock of an enclosing run.
 */
export function leaseVariables(facts: LeaseFacts): Readonly<Record<string, string | undefined>> {
  const { acquiredAtMs, leaseMs, maxHoldMs } = facts;
  return {
    HOLDFAST_NAME: facts.name,
    HOLDFAST_KIND: facts.kind,
    HOLDFAST_MODE: facts.mode,
    HOLDFAST_TOKEN: textOf(facts.token),
    HOLDFAST_OWNER: facts.owner,
    HOLDFAST_SLOT: textOf(facts.slot),
    HOLDFAST_ACQUIRED_AT: String(acquiredAtMs),
    HOLDFAST_WAITED_MS: String(facts.waitedMs),
    HOLDFAST_EXPIRES_AT: String(acquiredAtMs + leaseMs),
    HOLDFAST_LEASE_MS: String(leaseMs),
    HOLDFAST_HARD_STOP_AT: maxHoldMs === undefined ? undefined : String(acquiredAtMs + maxHoldMs),
    HOLDFAST_TERM: textOf(facts.term),
  };
}

/** The environment of a child: this process's environment, the variables of the lease, and one more held name. */
export function childEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  facts: LeaseFacts,
): Readonly<Record<string, string | undefined>> {
  const own = { ...env, ...leaseVariables(facts), [HELD]: [...heldNames(env), facts.name].join("\n") };
  return Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined));
}

function textOf(number: number | undefined): string | undefined {
  return number === undefined ? undefined : String(number);
}
