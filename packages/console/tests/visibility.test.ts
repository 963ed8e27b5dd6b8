/** What a visitor who may not see all locks learns about the others. */
import { expect, it } from "vitest";
import type { Viewer } from "../src/access.js";
import type { ClientsState, ClientView, HoldView } from "../src/api.js";
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
