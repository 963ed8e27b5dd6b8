/** Something that an observer follows: what the server says of it is in the hands of a test, and a diary of what was asked. */
import { type ObserveOptions, observe } from "../../src/election/observer.js";
import { settle } from "./manual-runtime.js";
import { ScriptedLock } from "./scripted-lock.js";

/** A channel on which somebody listens or has listened. */
interface Subscriber {
  readonly channel: string;
  readonly push: () => void;
  isOpen: boolean;
}

const CHANNEL = "hf:followed";
const TIMEOUT_MS = 1_500;

/** See the file header. A number, of which a greater one is news. */
export class Followed {
  readonly world = new ScriptedLock({ commandTimeoutMs: TIMEOUT_MS });
  /** What the server says. */
  state = 1;
  changesInMs = Infinity;
  /** Replaced to make a question fail or hang. */
  read: () => Promise<number> = async () => this.state;
  /** When it was asked, counted from the start. */
  reads: number[] = [];
  /** How long each answer was waited for at most. */
  readonly timeouts = new Set<number>();
  readonly subscribers: Subscriber[] = [];
  readonly #startMs = this.world.runtime.monotonicMs();

  constructor() {
    const { store } = this.world;
    store.inbox = async (channel, onMessage) => {
      await store.subscribe();
      const subscriber = { channel, push: () => onMessage("changed"), isOpen: true };
      this.subscribers.push(subscriber);
      const close = async (): Promise<void> => {
        subscriber.isOpen = false;
      };
      return { close };
    };
  }

  /** Follows it; numbers are shown as texts. */
  observe(options: ObserveOptions = {}): AsyncGenerator<string, void, undefined> {
    const about = {
      session: this.world.session,
      name: "followed",
      channel: CHANNEL,
      read: (timeoutMs: number) => {
        this.timeouts.add(timeoutMs);
        this.reads.push(this.world.runtime.monotonicMs() - this.#startMs);
        return this.read();
      },
      isNews: (is: number, last: number) => is > last,
      changesInMs: () => this.changesInMs,
    };
    return observe(about, options, async (is) => `state ${is}`);
  }

  /** Follows it, and takes the first state, by which time it listens. Forgets what was asked until then. */
  async begun(options?: ObserveOptions): Promise<AsyncGenerator<string, void, undefined>> {
    const states = this.observe(options);
    await states.next();
    await settle();
    this.reads = [];
    return states;
  }

  /** Where a message says that it has changed; undefined if nobody ever listened there. The client has another inbox. */
  get subscriber(): Subscriber | undefined {
    return this.subscribers.findLast(({ channel }) => channel === CHANNEL);
  }

  /** What of an observation goes on: whether it listens, claims that the session knows, timers that keep the process alive. */
  get left(): { readonly subscribers: number; readonly claims: number; readonly timers: number } {
    const { session, runtime } = this.world;
    const open = this.subscribers.filter(({ channel, isOpen }) => channel === CHANNEL && isOpen);
    return { subscribers: open.length, claims: session.clientInbox.size, timers: runtime.running(true) };
  }
}
