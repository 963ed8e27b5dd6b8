/** The effect of each fault on the world. */
import { historyName } from "../draft.js";
import type { Strike } from "./plan.js";
import type { TopologyWorld } from "./world.js";

/** Schedules a fault. */
export function schedule(world: TopologyWorld, strike: Strike): void {
  world.plan(strike.atMs, `FAULT ${describeStrike(strike)}`, () => happen(world, strike));
}

/** A fault as one line of a trace. */
export function describeStrike({ id, atMs, process, server, ...facts }: Strike): string {
  return `${id} at ${atMs} ms on p${process}, server ${server}: ${JSON.stringify(facts)}`;
}

/** When all effects of a fault have ended. */
export function endOf(strike: Strike): number {
  const lasts = "forMs" in strike ? strike.forMs : "backInMs" in strike ? strike.backInMs : 0;
  const ofPromotion = strike.what === "promote" ? strike.cutMs + strike.awayMs + strike.livesMs + strike.rejoinInMs : 0;
  const late = strike.what === "weather" ? strike.weather.lateMs + strike.weather.slowMs : 0;
  return strike.atMs + lasts + ofPromotion + late;
}

function happen(world: TopologyWorld, strike: Strike): void {
  const member = world.members[strike.process];
  const server = world.servers[strike.server];
  if (member === undefined || server === undefined) return;
  const { process, clients } = member;
  const inMs = (delayMs: number, what: string, then: () => void): void =>
    void world.plan(world.nowMs + delayMs, `${what} (end of fault ${strike.id})`, then);
  note(world, strike, strike.what === "kill" || strike.what === "freeze" ? historyName(process) : server.name);
  switch (strike.what) {
    case "weather": {
      const { process: index, weather, isOfAll } = strike;
      const cloud = { process: index, server: isOfAll ? undefined : server.index, weather };
      world.clouds.push(cloud);
      inMs(strike.forMs, "fair weather", () => world.clouds.splice(world.clouds.indexOf(cloud), 1));
      return;
    }
    case "cut":
      clients[strike.server % clients.length]?.lose(strike.connection, strike.backInMs, strike.resends);
      return;
    case "freeze":
      process.freeze(strike.suspended);
      inMs(strike.forMs, `${process.name} runs on`, () => process.resume());
      return;
    case "kill":
      if (process.isDead) return;
      process.kill();
      for (const client of clients) client.end();
      inMs(strike.backInMs, `${process.name} starts again`, () => world.restart(strike.process));
      return;
    case "flush-scripts":
      server.flushScripts();
      return;
    case "freeze-server":
      server.frozenUntilMs = Math.max(server.frozenUntilMs, world.nowMs + strike.forMs);
      return;
    case "restart-server": {
      // With leases of different lengths, a majority must not be restarted at the same time: docs/adr/131.
      if (server.isDown || (world.isMixed && world.areManyAlone)) return;
      server.isDown = true;
      for (const { clients: all } of world.members) {
        const client = all[server.index];
        client?.lose("commands", 1, world.random.chance(0.5));
        client?.lose("inbox", 1, false);
      }
      inMs(strike.forMs, `${server.name} is back and knows ${strike.keeps ? "all" : "nothing"}`, () => {
        server.restart(strike.keeps);
        // A lease that was granted by a bare majority is lost, and reported as lost, when one of those servers is
        // gone.
        if (!strike.keeps) world.judge.leases.forgotten();
      });
      return;
    }
    case "lag":
      world.replication?.lag(world.nowMs + strike.forMs);
      return;
    case "promote":
      promote(world, strike);
  }
}

function promote(world: TopologyWorld, strike: Extract<Strike, { what: "promote" }>): void {
  const { replication } = world;
  // One at a time: a promoted server must get a replica first.
  if (replication?.replica === undefined || replication.isFailingOver) return;
  replication.isFailingOver = true;
  const { cutMs, awayMs, livesMs, rejoinInMs, restarts } = strike;
  const { master, replica } = replication;
  const inMs = (delayMs: number, what: string, then: () => void): void =>
    void world.plan(world.nowMs + delayMs, `${what} (fault ${strike.id})`, then);
  const rejoin = (): void =>
    inMs(rejoinInMs, `${master.name} follows ${replica.name}`, () => {
      if (restarts) master.restart(false);
      else master.demote(replica.replication);
      replication.follow(master);
      replication.isFailingOver = false;
    });
  replication.lag(Number.POSITIVE_INFINITY);
  inMs(cutMs, `${master.name} is gone for the others`, () => {
    if (livesMs > 0) {
      // Until it notices that it is no longer master, it continues to grant.
      loseGround(world);
      const unaware = world.members.filter(({ process }) => !process.isDead && world.random.chance(0.7));
      replication.promote(unaware.map(({ process }) => process));
      for (const member of world.members) {
        const isUnaware = unaware.includes(member);
        inMs(isUnaware ? world.random.between(0, livesMs) : 0, `${member.process.name} notices`, () =>
          move(world, member.process.name),
        );
      }
      inMs(livesMs, `${master.name} is no longer master`, () => {
        master.isDown = true;
        rejoin();
      });
      return;
    }
    master.isDown = true;
    for (const { clients } of world.members) {
      const resends = world.random.chance(0.5);
      // Some processes take longer to reconnect than others wait.
      const withinMs = world.random.pick([50, world.longestMs / 2, world.longestMs]);
      for (const client of clients) {
        client.lose("commands", world.random.between(1, withinMs), resends);
        client.lose("inbox", world.random.between(1, withinMs), false);
      }
    }
    inMs(awayMs, `${replica.name} takes over`, () => {
      if (!world.isGraceful) loseGround(world);
      replication.promote([]);
      rejoin();
    });
  });
}

function loseGround({ judge }: TopologyWorld): void {
  judge.loseGround("exclusion");
  judge.loseGround("tokens");
}

/** A process notices that another server is master. */
function move(world: TopologyWorld, name: string): void {
  const member = world.members.find(({ process }) => process.name === name);
  if (member === undefined) return;
  world.replication?.notice(member.process);
  for (const client of member.clients) {
    client.lose("commands", 1, world.random.chance(0.5));
    client.lose("inbox", 1, false);
  }
}

/** Records a fault. */
function note({ recorder, nowMs }: TopologyWorld, strike: Strike, target: string): void {
  const endedMs = strike.what === "kill" ? Number.POSITIVE_INFINITY : nowMs + endOf(strike) - strike.atMs;
  recorder.add({
    type: "fault",
    id: `${strike.what}-${strike.id}`,
    beganMs: nowMs,
    endedMs,
    target,
    proof: JSON.stringify(strike),
  });
}
