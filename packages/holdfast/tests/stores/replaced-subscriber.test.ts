/** Replaces the connection that all inboxes of a store share. */
import { beforeEach, describe, expect, test, vi } from "vitest";
import { ClusterHub } from "../../src/stores/cluster-hub.js";
import { InboxHub, type Subscriber, type SubscriberEvents } from "../../src/stores/inbox-hub.js";

/** A connection to a server that confirms every subscription, unless a test delays it. */
interface Connection extends Subscriber {
  readonly number: number;
  readonly events: SubscriberEvents;
}

let connections: Connection[];
let diary: string[];
let reconnects: number;
/** Settles before connection `number` confirms its subscriptions. Tests replace it. */
let confirm: (number: number) => Promise<void>;
let hub: InboxHub;

beforeEach(() => {
  connections = [];
  diary = [];
  reconnects = 0;
  confirm = async () => {};
  hub = new InboxHub(
    (events) => {
      const number = connections.length + 1;
      const connection: Connection = {
        number,
        events,
        async subscribe(channels) {
          await confirm(number);
          diary.push(`${number} has ${channels.join(" ")}`);
        },
        async unsubscribe(channel) {
          diary.push(`${number} leaves ${channel}`);
        },
        close() {
          diary.push(`${number} is closed`);
        },
      };
      connections.push(connection);
      return connection;
    },
    () => {
      reconnects += 1;
    },
  );
});

test("the new connection has all subscriptions before the old one is closed, and listeners are notified", async () => {
  const heard: string[] = [];
  const inbox = await hub.open("a", (message) => heard.push(message), 1_000);
  await hub.open("b", () => {}, 1_000);
  diary = [];
  await inbox.reopen?.(1_000);
  expect(diary).toEqual(["2 has a b", "1 is closed", "2 has a b"]);
  expect(reconnects).toBe(1);
  connections[1]?.events.onMessage("a", "news");
  expect(heard).toEqual(["news"]);
  // The end of the old connection does not affect the new one.
  connections[0]?.events.onEnd();
  await hub.open("c", () => {}, 1_000);
  expect(connections.length).toBe(2);
});

test("the old connection delivers messages until the new one is subscribed", async () => {
  const heard: string[] = [];
  const inbox = await hub.open("a", (message) => heard.push(message), 1_000);
  let go = (): void => {};
  confirm = (number) => (number === 2 ? new Promise((resolve) => (go = resolve)) : Promise.resolve());
  const reopening = inbox.reopen?.(1_000);
  connections[0]?.events.onMessage("a", "in time");
  expect(heard).toEqual(["in time"]);
  go();
  confirm = async () => {};
  await reopening;
});

test("a pending resubscription on a dead connection does not delay its replacement", async () => {
  const inbox = await hub.open("a", () => {}, 1_000);
  const former = await hub.open("b", () => {}, 50);
  const [dead] = connections as [Connection];
  dead.unsubscribe = () => new Promise(() => {});
  await former.close();
  confirm = (number) => (number === 1 ? new Promise(() => {}) : Promise.resolve());
  const again = hub.open("b", () => {}, 50).catch(() => "not confirmed");
  diary = [];
  await inbox.reopen?.(1_000);
  expect(diary).toEqual(["2 has a b", "1 is closed", "2 has a"]);
  await again;
});

describe("a replacement that fails", () => {
  test.each(["is refused", "gets no reply"])("because it %s leaves the old connection in place", async (how) => {
    const inbox = await hub.open("a", () => {}, 1_000);
    confirm = () => (how === "is refused" ? Promise.reject(new Error("refused")) : new Promise(() => {}));
    await expect(inbox.reopen?.(50)).rejects.toThrow(/refused|no reply/);
    expect(reconnects).toBe(0);
    expect(diary).not.toContain("1 is closed");
    expect(diary).toContain("2 is closed");
    confirm = async () => {};
    await hub.open("b", () => {}, 1_000);
    expect(diary.at(-1)).toBe("1 has b");
  });
});

test("an inbox opened during a replacement moves to the new connection, and a closed one does not", async () => {
  const inbox = await hub.open("a", () => {}, 1_000);
  const other = await hub.open("b", () => {}, 1_000);
  let go = (): void => {};
  confirm = (number) => (number === 2 ? new Promise((resolve) => (go = resolve)) : Promise.resolve());
  const reopening = inbox.reopen?.(1_000);
  await vi.waitFor(() => expect(connections.length).toBe(2));
  let late = (): void => {};
  confirm = (number) => (number === 1 ? new Promise((resolve) => (late = resolve)) : Promise.resolve());
  const opening = hub.open("c", () => {}, 1_000);
  await other.close();
  go();
  await reopening;
  late();
  await opening;
  expect(diary).toContain("2 leaves b");
  expect(diary.filter((line) => /^2 has .*c/.test(line)).length).toBeGreaterThan(0);
});

test("concurrent requests replace the connection once, and a young connection is kept", async () => {
  const first = await hub.open("a", () => {}, 1_000);
  const second = await hub.open("b", () => {}, 1_000);
  await Promise.all([first.reopen?.(1_000), second.reopen?.(1_000)]);
  await first.reopen?.(1_000);
  expect(connections.length).toBe(2);
});

test("a replacement in progress when the store closes is closed too", async () => {
  const inbox = await hub.open("a", () => {}, 1_000);
  let go = (): void => {};
  confirm = (number) => (number === 2 ? new Promise((resolve) => (go = resolve)) : Promise.resolve());
  const reopening = inbox.reopen?.(1_000);
  await vi.waitFor(() => expect(connections.length).toBe(2));
  await hub.close();
  go();
  await expect(reopening).rejects.toThrow();
  expect(diary).toContain("1 is closed");
  expect(diary).toContain("2 is closed");
  expect(reconnects).toBe(0);
});

describe("a connection to a cluster node that several Holdfasts share", () => {
  const MASTERS = ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"];
  let opened: number;
  let confirmed: () => Promise<void>;
  let cluster: ClusterHub;

  beforeEach(() => {
    opened = 0;
    confirmed = async () => {};
    cluster = new ClusterHub(
      {
        ownerOf: () => MASTERS[0],
        masters: () => MASTERS,
        refresh: async () => {},
        openSubscriber() {
          opened += 1;
          return { subscribe: () => confirmed(), unsubscribe: async () => {}, ping: async () => {}, close() {} };
        },
      },
      () => {},
    );
  });

  test.each(["openShard", "open"] as const)("is replaced once (%s)", async (open) => {
    const inboxes = await Promise.all(["{a}1", "{a}2", "{a}3"].map((name) => cluster[open](name, () => {}, 1_000)));
    expect(opened).toBe(1);
    await Promise.all(inboxes.slice(0, 2).map(async (inbox) => inbox.reopen?.(1_000)));
    // A plain channel may have moved to any master, whose connection is as young.
    for (let times = 0; times < 10; times += 1) await inboxes[2]?.reopen?.(1_000);
    expect(opened).toBe(2);
    expect(new Set(inboxes.map(({ connection }) => connection)).size).toBe(1);
    await cluster.close();
  });

  test("is replaced although one of its inboxes closes meanwhile", async () => {
    const [kept, closed] = [
      await cluster.openShard("{a}1", () => {}, 1_000),
      await cluster.openShard("{a}2", () => {}, 1_000),
    ];
    const confirm: (() => void)[] = [];
    confirmed = () => new Promise((resolve) => confirm.push(resolve));
    const reopening = kept.reopen?.(30_000);
    await vi.waitFor(() => expect(confirm).toHaveLength(2));
    const closing = closed.close();
    confirmed = async () => {};
    for (const one of confirm) one();
    await Promise.all([reopening, closing]);
    await kept.reopen?.(1_000);
    expect(opened).toBe(2);
    await cluster.close();
  });
});
