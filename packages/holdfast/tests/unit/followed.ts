/** An observed value on a scripted server. Tests control its replies and read which requests were sent. */
import { type ObserveOptions, observe } from "../../src/election/observer.js";
import { settle } from "./manual-runtime.js";
import { ScriptedLock } from "./scripted-lock.js";

/** A subscription to a channel, open or closed. */
interface Subscriber {
  readonly channel: string;
  readonly push: () => void;
  isOpen: boolean;
}

const CHANNEL = "hf:followed";
const TIMEOUT_MS = 1_500;

/** The observed value is a number. A greater number is news. */
export class Followed {
  readonly world = new ScriptedLock({ commandTimeoutMs: TIMEOUT_MS });
  /** The server's current value. */
  state = 1;
  changesInMs = Infinity;
  /** Replaced to make a request fail or hang. */
  read: () => Promise<number> = async () => this.state;
  /** When each request was sent, in ms after the start. */
  reads: number[] = [];
  /** The timeout of each request. */
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

  /** Observes the value. States are texts such as `state 1`. */
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

  /** Starts an observation and takes the first state, after which it is subscribed. Clears the list of requests. */
  async begun(options?: ObserveOptions): Promise<AsyncGenerator<string, void, undefined>> {
    const states = this.observe(options);
    await states.next();
    await settle();
    this.reads = [];
    return states;
  }

  /** The latest subscription to the value's channel, undefined if there was none. The client has another inbox. */
  get subscriber(): Subscriber | undefined {
    return this.subscribers.findLast(({ channel }) => channel === CHANNEL);
  }

  /** What is left of an observation: open subscriptions, claims of the session, timers that keep the process alive. */
  get left(): { readonly subscribers: number; readonly claims: number; readonly timers: number } {
    const { session, runtime } = this.world;
    const open = this.subscribers.filter(({ channel, isOpen }) => channel === CHANNEL && isOpen);
    return { subscribers: open.length, claims: session.clientInbox.size, timers: runtime.running(true) };
  }
}
