/** A page's stream that breaks silently: the page notices, polls, and returns to the stream. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";

interface Live {
  follow(subject: { readonly topics: readonly string[] }): void;
  disconnect(): void;
  readonly liveness: { readonly value: string };
}

// A dynamic path that the compiler does not follow, because browser types conflict with the Node types of other
// tests.
const LIVE = new URL("../../src/ui/live.ts", import.meta.url).pathname;
const { disconnect, follow, liveness }: Live = await import(LIVE);

const STATE = { v: 1, atMs: 5, store: { state: "up", address: "redis://db", sinceAtMs: 1 }, clients: [] };
const SILENCE_MS = 35_000;
const RETRY_STREAM_MS = 20_000;
const POLL_MS = 5_000;

/** A fake EventSource without a server. */
class Source extends EventTarget {
  static readonly CLOSED = 2;
  static readonly opened: Source[] = [];
  readyState = 1;

  constructor() {
    super();
    Source.opened.push(this);
  }

  close(): void {
    this.readyState = Source.CLOSED;
  }

  hear(type: string, data: object = {}): void {
    this.dispatchEvent(Object.assign(new Event(type), { data: JSON.stringify(data) }));
  }
}

const asked: string[] = [];
const answer = new Response(JSON.stringify({ v: 1, atMs: 5, clients: [] }), {
  headers: { "content-type": "application/json" },
});

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("EventSource", Source);
  vi.stubGlobal("fetch", async (path: string) => {
    asked.push(path);
    return answer.clone();
  });
});
afterEach(() => {
  disconnect();
  vi.useRealTimers();
});

it("a stream that is silent for 35 s is replaced with polling, and opened again later", async () => {
  follow({ topics: ["clients"] });
  const [first = new Source()] = Source.opened;
  first.hear("open");
  first.hear("state", STATE);
  expect(liveness.value).toBe("live");

  // A beat also shows that the stream is alive.
  await vi.advanceTimersByTimeAsync(SILENCE_MS - 1);
  first.hear("beat");
  await vi.advanceTimersByTimeAsync(SILENCE_MS - 1);
  expect([liveness.value, first.readyState, asked]).toEqual(["live", 1, []]);

  await vi.advanceTimersByTimeAsync(1);
  expect([liveness.value, first.readyState, asked]).toEqual(["polling", Source.CLOSED, ["api/clients"]]);
  await vi.advanceTimersByTimeAsync(POLL_MS);
  expect(asked).toHaveLength(2);

  await vi.advanceTimersByTimeAsync(RETRY_STREAM_MS - POLL_MS);
  const second = Source.opened.at(-1) as Source;
  expect(second).not.toBe(first);
  second.hear("open");
  second.hear("state", STATE);
  expect(liveness.value).toBe("live");
  const before = asked.length;
  await vi.advanceTimersByTimeAsync(2 * POLL_MS);
  expect(asked).toHaveLength(before);
});
