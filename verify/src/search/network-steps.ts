/** What the network may do with replies and messages in flight. For requests, see deliveries.ts. */
import { START_US } from "./canonical.js";
import type { LockClients } from "./lock-client.js";
import type { Add, LockSetting } from "./lock-setting.js";
import { type LockState, rankOf } from "./lock-state.js";
import { isFrozen, type Place } from "./place.js";

/** The parts of a world that these steps need. */
interface NetworkWorld {
  readonly setting: LockSetting;
  readonly clients: LockClients;
  readonly places: readonly Place[];
  name(number: number): string;
}

/** Adds the steps of the network: let a request time out, deliver a reply, deliver or lose a message. */
export function addNetworkSteps(world: NetworkWorld, state: LockState, add: Add): void {
  const { setting, clients, places } = world;
  for (const [number, claim] of state.claims.entries()) {
    const { unansweredIn = claim.ph } = setting;
    if (claim.call === 0 || state.budget.timeouts === 0 || isFrozen(state, places[number]) || claim.ph !== unansweredIn)
      continue;
    add(`${world.name(number)} gets no answer in time`, true, (next) => {
      next.budget.timeouts -= 1;
      clients.failed(next, number);
    });
  }
  for (const [at, reply] of state.replies.entries()) {
    const [number, code] = reply;
    if (isFrozen(state, places[number])) continue;
    const shown = code >= START_US / 2 ? `token ${rankOf(state, code)}` : String(code);
    add(`${world.name(number)} is answered ${shown}`, false, (next) => {
      next.replies.splice(at, 1);
      return clients.answered(next, reply);
    });
  }
  for (const [at, push] of state.pushes.entries()) {
    const [to, token] = push;
    const shown = `${token === 0 ? "the hint" : `the grant ${rankOf(state, token)}`} to ${world.name(to)}`;
    if (isFrozen(state, places[to]) || (setting.answersFirst === true && state.claims[to]?.call === 1)) continue;
    const mayConfirm = token !== 0 && places[to]?.protocol === 1 && state.claims[to]?.ph === "ask";
    if (!mayConfirm || setting.confirms !== "first") {
      add(`${shown} arrives`, false, (next) => {
        next.pushes.splice(at, 1);
        return clients.pushed(next, push);
      });
    }
    if (mayConfirm && setting.confirms !== "later") {
      add(`${shown} arrives, and is confirmed first`, false, (next) => {
        next.pushes.splice(at, 1);
        return clients.pushed(next, push, true);
      });
    }
    if (state.budget.pushes > 0) {
      add(`${shown} is lost`, true, (next) => {
        next.budget.pushes -= 1;
        next.pushes.splice(at, 1);
      });
    }
  }
}
