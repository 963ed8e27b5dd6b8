/**
 * The connection to Redis and its state. While Redis is down, the state has the cause, the start of the outage and the
 * time of the next attempt.
 *
 * The console starts and stays up without Redis. All access goes through `use`, which records the outcome. While
 * Redis is down, calls fail immediately, except for the one that makes the next attempt.
 */
import type { StoreView } from "./api.js";
import type { Backend, Link } from "./backend.js";
import { ConnectionErrors } from "./connection-errors.js";
import { HttpProblem } from "./problem.js";
import { isRefusal, isTrouble, isUndecided, isWrongType, troubleOf } from "./trouble.js";

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;

/** Tracks whether Redis is reachable. */
export class StoreLink {
  readonly #link: Link;
  readonly #now: () => number;
  readonly #closing = new AbortController();
  readonly #errors = new ConnectionErrors();
  #backend: Backend | undefined;
  #connecting: Promise<Backend> | undefined;
  #store: StoreView;
  #nextTryMs = 0;
  /** Called when the state changes, and after each attempt. */
  onChange: (store: StoreView) => void = () => {};

  /** @param now  server time if known */
  constructor(link: Link, now: () => number) {
    this.#link = link;
    this.#now = now;
    this.#store = { state: "connecting", address: link.address };
  }

  /** The current state. */
  get store(): StoreView {
    return this.#store;
  }

  /** The backend; undefined before the first successful connection. */
  get backend(): Backend | undefined {
    return this.#backend;
  }

  /** Time until the next attempt, in ms; 0 if Redis is up. Uses a monotonic clock. */
  get pauseMs(): number {
    return this.#store.state === "down" ? Math.max(0, this.#nextTryMs - performance.now()) : 0;
  }

  /**
   * Runs `work` with Redis.
   *
   * @param isPoll  whether it is the regular read. Redis may refuse one request and accept the others, so only a
   *                refused poll counts as an outage
   * @throws HttpProblem 503  Redis is down or refused; also errors from `work`
   */
  async use<Result>(
    work: (backend: Backend) => Promise<Result>,
    { isPoll = false }: { readonly isPoll?: boolean } = {},
  ): Promise<Result> {
    if (this.#closing.signal.aborted) throw new HttpProblem(503, "closed", "The console is closing.");
    if (this.pauseMs > 0) throw this.#problem();
    try {
      const backend = await this.#reach();
      this.#errors.watch(backend.servers());
      const result = await work(backend);
      this.#up();
      return result;
    } catch (error) {
      if (this.#closing.signal.aborted) throw new HttpProblem(503, "closed", "The console is closing.");
      if (isWrongType(error)) {
        this.#up();
        const detail =
          "A key of this lock has a type that Holdfast does not write. The page of the lock says which key it may be.";
        throw new HttpProblem(409, "wrong-type", detail);
      }
      if (isUndecided(error)) {
        this.#up();
        throw new HttpProblem(409, "undecided", "Too few servers replied to tell whether the lock is held. Try again.");
      }
      if (!isTrouble(error)) throw error;
      if (!isPoll && this.#store.state === "up" && isRefusal(error)) {
        const { error: detail, hint } = troubleOf(error);
        const problem = new HttpProblem(503, "refused", `${detail} ${hint}`);
        problem.cause = error;
        throw problem;
      }
      this.#down(error);
      throw this.#problem(error);
    }
  }

  /** Closes the connection. */
  async close(): Promise<void> {
    this.#closing.abort(new Error("the console is closing"));
    await this.#connecting?.catch(() => {});
    this.#errors.watch([]);
    await this.#backend?.close();
  }

  async #reach(): Promise<Backend> {
    if (this.#backend !== undefined) return this.#backend;
    this.#connecting ??= this.#link.connect(this.#closing.signal).then(
      (backend) => {
        this.#backend = backend;
        return backend;
      },
      (error: unknown) => {
        this.#connecting = undefined;
        throw error;
      },
    );
    return this.#connecting;
  }

  #up(): void {
    if (this.#store.state === "up") return;
    this.#set({ state: "up", address: this.#link.address, sinceAtMs: this.#now() });
  }

  #down(error: unknown): void {
    const before = this.#store;
    const nowMs = this.#now();
    const attempt = before.state === "down" ? before.attempt + 1 : 1;
    const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(attempt, 10));
    this.#nextTryMs = performance.now() + pauseMs;
    this.#set({
      state: "down",
      address: this.#link.address,
      ...troubleOf(error, this.#errors.last),
      sinceAtMs: before.state === "down" ? before.sinceAtMs : nowMs,
      attempt,
      nextTryAtMs: nowMs + pauseMs,
    });
  }

  #set(store: StoreView): void {
    this.#store = store;
    this.onChange(store);
  }

  #problem(cause?: unknown): HttpProblem {
    const store = this.#store;
    const detail =
      store.state === "down"
        ? `The console cannot use Redis at ${store.address}: ${store.error}`
        : "Redis has not been reached yet.";
    const headers = { "Retry-After": String(Math.max(1, Math.ceil(this.pauseMs / 1_000))) };
    const problem = new HttpProblem(503, "redis-down", detail, { facts: { store }, headers });
    if (cause !== undefined) problem.cause = cause;
    return problem;
  }
}
