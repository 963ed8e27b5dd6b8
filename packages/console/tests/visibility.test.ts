/** What a visitor who may not see all locks learns about the others. */
import { expect, it } from "vitest";
import type { Viewer } from "../src/access.js";
import type { ClientsState, ClientView, HoldView, LockRow } from "../src/api.js";
import { StreamView, type StreamViewParts } from "../src/stream-view.js";
import { Visibility } from "../src/visibility.js";

const viewer = { seesAll: false, may: async (_: string, name?: string) => name?.startsWith("mine:") } as Viewer;

function client(names: readonly string[], heldCount: number): ClientView {
  const holds = names.map((name) => ({ kind: "mutex", name, key: null }) as HoldView);
  return { clientId: names.join(), host: "app-1", pid: 1, holds, heldCount, waitCount: 5 } as unknown as ClientView;
}

it("neither the number of hidden holds nor that of waits is shown", async () => {
  const clients = [client(["mine:1", "other:1"], 2), client(["mine:2"], 1), client(["other:2"], 1)];
  const state: ClientsState = { clients, lockCount: 4, isCut: false, unreachable: 1 };
  const seen = await new Visibility(viewer).clients(state);
  expect(seen).toMatchObject({ lockCount: null, isCut: false, unreachable: 1 });
  expect(seen.clients.map(({ holds, heldCount, waitCount }) => [holds.length, heldCount, waitCount])).toEqual([
    [1, 1, 0],
    [1, 1, 0],
  ]);
});

it("all visible holds are counted, and the first 100 are listed", async () => {
  const names = Array.from({ length: 150 }, (_, i) => `mine:${i}`);
  const state: ClientsState = {
    clients: [client([...names, "other:1"], 151)],
    lockCount: 151,
    isCut: false,
    unreachable: 0,
  };
  for (const [one, count] of [
    [viewer, 150],
    [{ ...viewer, seesAll: true }, 151],
  ] as const) {
    const { clients } = await new Visibility(one).clients(state);
    expect(clients.map(({ holds, heldCount }) => [holds.length, heldCount])).toEqual([[100, count]]);
  }
});

it("a change of hidden locks is not sent, but a change of the number of silent servers is", async () => {
  const parts = { viewer, topics: new Set(["locks"]), lock: undefined, allow: [], nowMs: () => 0 };
  const view = new StreamView(parts as unknown as StreamViewParts);
  const changed = [{ id: "1", name: "other:1" } as unknown as LockRow];
  const sent = (unreachable: number, isExtentNew: boolean): Promise<unknown> =>
    view.change({ atMs: 1, locks: { changed, removed: changed, isCut: false, unreachable, isExtentNew } });
  expect(await sent(0, false)).toBeUndefined();
  expect(await sent(1, true)).toEqual({
    v: 1,
    atMs: 1,
    locks: { changed: [], removed: [], isCut: false, unreachable: 1 },
  });
});
