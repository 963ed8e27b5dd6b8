/** What may happen to a process: it crashes, freezes and resumes, or loses its subscription and resubscribes. */
import type { LockClients } from "./lock-client.js";
import { type Add, LETTERS, type LockSetting } from "./lock-setting.js";
import type { LockState } from "./lock-state.js";
import type { Place } from "./place.js";

/** The parts of a world that these steps need. */
interface ProcessWorld {
  readonly setting: LockSetting;
  readonly clients: LockClients;
  readonly places: readonly Place[];
}

/** Adds the steps of processes. */
export function addProcessSteps(world: ProcessWorld, state: LockState, add: Add): void {
  const { setting, clients } = world;
  for (const client of setting.clients.keys()) {
    const letter = LETTERS[client];
    if (state.budget.crashes > 0 && !state.dead.includes(client) && isBusy(world, state, client)) {
      add(`process ${letter} dies`, true, (next) => clients.crash(next, client));
    }
    if (state.frozen.includes(client)) {
      add(`process ${letter} resumes`, false, (next) => clients.goesOn(next, client));
    } else if (
      state.budget.freezes > 0 &&
      setting.freezing?.includes(client) !== false &&
      !state.dead.includes(client) &&
      isBusy(world, state, client)
    ) {
      add(`process ${letter} freezes`, true, (next) => clients.freezes(next, client));
    }
    if (state.frozen.includes(client)) continue;
    if (state.deaf.includes(client)) {
      add(`process ${letter} listens again`, false, (next) => clients.hearsAgain(next, client));
    } else if (state.budget.deaf > 0 && !state.dead.includes(client) && isBusy(world, state, client)) {
      add(`process ${letter} loses its inbox`, true, (next) => clients.hearsNothing(next, client));
    }
  }
}

function isBusy({ places }: ProcessWorld, state: LockState, client: number): boolean {
  return places.some(
    (place, number) => place.client === client && !["idle", "end"].includes(state.claims[number]?.ph ?? "idle"),
  );
}
