/** A master and its replica behind a switchboard, and a failover that loses unreplicated writes. */
import { randomUUID } from "node:crypto";
import { afterEach, beforeEach } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { type Switchboard, startSwitchboard } from "../../../../tests/support/switchboard.js";
import { createHoldfast, type Holdfast, type HoldfastOptions } from "../../src/index.js";
import { until } from "../../src/testing/delays.js";
import type { Library } from "../faults/scene.js";

/** The setup of one test. */
export interface FailoverScene {
  readonly name: string;
  readonly master: RedisServer;
  readonly replica: RedisServer;
  /** A client that follows failovers. Closed after the test. */
  client(library: Library, options?: Partial<HoldfastOptions>): Promise<Holdfast>;
  /** Waits until the replica has everything that the master has. */
  synced(): Promise<void>;
  /** From now on, the replica receives nothing. */
  cutReplication(): Promise<void>;
  /** Undoes `cutReplication`. */
  mendReplication(): void;
  /** Kills the master, promotes the replica and redirects all clients to it. */
  failOver(): Promise<void>;
}

async function offset(server: RedisServer, field: string): Promise<number> {
  const info = String(await server.command("INFO", "replication"));
  return Number(new RegExp(`${field}:(\\d+)`).exec(info)?.[1] ?? -1);
}

/** Sets up a scene for each test of the file. */
export function useFailoverScene(): FailoverScene {
  const scene = {} as { -readonly [Key in keyof FailoverScene]: FailoverScene[Key] };
  let closers: (() => unknown)[] = [];
  let front: Switchboard;
  let link: Switchboard;

  beforeEach(async () => {
    const master = await startRedis({ args: ["--repl-diskless-sync-delay", "0"] });
    link = await startSwitchboard(master.port);
    const replica = await startRedis({ args: ["--replicaof", "127.0.0.1", `${link.port}`] });
    front = await startSwitchboard(master.port);
    scene.name = `failover:${randomUUID()}`;
    scene.master = master;
    scene.replica = replica;
    await until(
      async () => String(await replica.command("INFO", "replication")).includes("master_link_status:up"),
      "the replica to follow",
    );
    scene.client = async (library, options = {}) => {
      const { options: found, disconnect } = await library.connect(front.port);
      const holdfast = createHoldfast({ ...found, ...options });
      closers.push(async () => {
        await holdfast.close();
        await disconnect();
      });
      return holdfast;
    };
    scene.synced = () =>
      until(
        async () => (await offset(master, "master_repl_offset")) === (await offset(replica, "slave_repl_offset")),
        "the replica to have everything",
      );
    scene.cutReplication = async () => {
      await scene.synced();
      link.switchTo(undefined);
    };
    scene.mendReplication = () => link.switchTo(master.port);
    scene.failOver = async () => {
      front.switchTo(undefined);
      await master.kill();
      await replica.command("REPLICAOF", "NO", "ONE");
      front.switchTo(replica.port);
    };
  });
  afterEach(async () => {
    await Promise.allSettled(closers.map((close) => close()));
    closers = [];
    await Promise.all([front.close(), link.close(), scene.master.stop(), scene.replica.stop()]);
  });
  return scene;
}
