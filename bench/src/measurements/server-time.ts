import type { Measurement } from "./measurement.js";
import { pairsFor, warmUp } from "./pairs.js";

/** Enough at a time that the server always has work, so that its caches are as warm as they would be in service. */
const PARALLEL = 32;

/**
 * What a pair costs the server, by its own account (INFO commandstats): the one resource that cannot be scaled
 * out, and a number that a busy client machine disturbs least.
 */
export const serverTime: Measurement = {
  name: "server",
  title: () => "server time per uncontended acquire + release",
  figures: [
    { name: "time", unit: "µs", digits: 2 },
    { name: "commands", unit: "per pair", digits: 2 },
  ],

  async prepare(adapter, { server: { control }, connection, seconds }) {
    const contestant = await adapter.open(connection);
    await warmUp(contestant, seconds, PARALLEL);
    return {
      async run() {
        await control.config("RESETSTAT");
        const { pairs } = await pairsFor(contestant, { seconds, parallel: PARALLEL });
        const { calls, us } = totalOf(await control.info("commandstats"), adapter.commands);
        return [us / pairs, calls / pairs];
      },
      close: () => contestant.close(),
    };
  },
};

function totalOf(info: string, commands: readonly string[]): { readonly calls: number; readonly us: number } {
  const lines = [...info.matchAll(/^cmdstat_([^:]+):calls=(\d+),usec=(\d+)/gm)];
  const own = lines.filter(([, command = ""]) => commands.includes(command));
  return {
    calls: own.reduce((sum, [, , calls]) => sum + Number(calls), 0),
    us: own.reduce((sum, [, , , us]) => sum + Number(us), 0),
  };
}
