/** `scheduled` with common schedulers: croner, node-cron, @nestjs/schedule and timers. */
import "reflect-metadata";
import { randomUUID } from "node:crypto";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { setInterval } from "node:timers";
import { embedded, Keyspace } from "@holdfast/embedded";
import { NestFactory } from "@nestjs/core";
import { Interval, Cron as NestCron, ScheduleModule, SchedulerRegistry } from "@nestjs/schedule";
import { Cron } from "croner";
import { createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";
import { createTask, schedule } from "node-cron";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { until } from "../../holdfast/src/testing/delays.js";
import { type RunStartedEvent, type Scheduled, scheduled } from "../src/index.js";

let server: RedisServer;
let redis: Redis;
let instances: Holdfast[];
beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ port: server.port });
  instances = Array.from({ length: 3 }, () => createHoldfast({ redis, commandTimeoutMs: 20_000 }));
});

afterAll(async () => {
  await Promise.all((instances ?? []).map((each) => each.close()));
  redis?.disconnect();
  await server?.stop();
});

/** One job in three instances, and the server times of the calls that ran. */
function threeJobs(onFinished: (clean: () => void) => void): { jobs: Scheduled<void>[]; runs: number[] } {
  const name = randomUUID();
  const runs: number[] = [];
  const listener = (message: unknown): void => {
    const { lockName, tick } = message as RunStartedEvent;
    if (lockName === name) runs.push(Date.parse(tick));
  };
  subscribe("holdfast:run:started", listener);
  onFinished(() => void unsubscribe("holdfast:run:started", listener));
  return { jobs: instances.map((each) => scheduled(each, name, () => {}, { everyMs: 1_000 })), runs };
}

/** Waits for some ticks. Asserts that runs are at least 0.9 periods apart and that some calls were skipped. */
async function expectOneAtATime({ jobs, runs }: ReturnType<typeof threeJobs>): Promise<void> {
  await until(() => runs.length >= 2 && jobs.every((job) => calls(job) >= 2), "some ticks");
  for (const [at, time] of runs.entries()) {
    if (at > 0) expect(time - (runs[at - 1] as number)).toBeGreaterThanOrEqual(900);
  }
  const skipped = jobs.reduce((sum, { counts }) => sum + counts.skipped["already-done"], 0);
  expect(skipped).toBeGreaterThan(0);
}

function calls({ counts }: Pick<Scheduled<void>, "counts">): number {
  return counts.started + Object.values(counts.skipped).reduce((sum, count) => sum + count, 0);
}

describe.concurrent("three instances run one at a time under", () => {
  test("croner", async ({ onTestFinished }) => {
    const three = threeJobs(onTestFinished);
    const crons = three.jobs.map((job) => new Cron("* * * * * *", job));
    onTestFinished(() => {
      for (const cron of crons) cron.stop();
    });
    await expectOneAtATime(three);
  });

  test("node-cron, without a coordinator", async ({ onTestFinished }) => {
    const three = threeJobs(onTestFinished);
    const tasks = three.jobs.map((job) => schedule("* * * * * *", job));
    onTestFinished(async () => {
      for (const task of tasks) await task.destroy();
    });
    await expectOneAtATime(three);
  });

  test("timers", async ({ onTestFinished }) => {
    const three = threeJobs(onTestFinished);
    const timers = three.jobs.map((job) => setInterval(() => void job(), 1_000));
    onTestFinished(() => {
      for (const timer of timers) clearInterval(timer);
    });
    await expectOneAtATime(three);
  });

  test("@nestjs/schedule, with @Cron and @Interval", async ({ onTestFinished }) => {
    const three = threeJobs(onTestFinished);
    const [first, second, third] = three.jobs as [Scheduled<void>, Scheduled<void>, Scheduled<void>];
    class Reports {
      readonly first = first;
      readonly second = second;
      readonly third = third;
      byCron(): Promise<unknown> {
        return this.first();
      }
      byInterval(): Promise<unknown> {
        return this.second();
      }
      byCronToo(): Promise<unknown> {
        return this.third();
      }
    }
    decorate(Reports, "byCron", NestCron("* * * * * *"));
    decorate(Reports, "byInterval", Interval(1_000));
    decorate(Reports, "byCronToo", NestCron("* * * * * *"));
    class App {}
    const app = await NestFactory.createApplicationContext(
      { module: App, imports: [ScheduleModule.forRoot()], providers: [Reports] },
      { logger: false },
    );
    onTestFinished(() => app.close());
    await app.init();
    await expectOneAtATime(three);
  });
});

/** Applies a decorator as `@decorator` before a method does. */
function decorate(type: { prototype: object }, method: string, decorator: MethodDecorator): void {
  const { prototype } = type;
  decorator(prototype, method, Object.getOwnPropertyDescriptor(prototype, method) as PropertyDescriptor);
}

describe("across daylight saving changes", () => {
  const timezone = "Europe/Berlin";
  /** In 2027 one hour is skipped on 28 March, and one occurs twice on 31 October. */
  const weeks = { "in spring": "2027-03-26T12:00:00Z", "in autumn": "2027-10-29T12:00:00Z" };

  const fires: Record<string, (pattern: string, from: Date, count: number) => Date[] | Promise<Date[]>> = {
    croner(pattern, from, count) {
      return new Cron(pattern, { timezone, paused: true }).nextRuns(count, from);
    },
    "node-cron"(pattern, from, count) {
      const task = createTask(pattern, () => {}, { timezone });
      const dates: Date[] = [];
      // node-cron computes fire times only from the current time, so the test checks each minute.
      for (let at = from.getTime(); dates.length < count; at += 60_000) {
        if (task.match(new Date(at))) dates.push(new Date(at));
      }
      return dates;
    },
    async "@nestjs/schedule"(pattern, from, count) {
      class Reports {
        daily(): void {}
      }
      decorate(Reports, "daily", NestCron(pattern, { name: "daily", timeZone: timezone, disabled: true }));
      class App {}
      const app = await NestFactory.createApplicationContext(
        { module: App, imports: [ScheduleModule.forRoot()], providers: [Reports] },
        { logger: false },
      );
      await app.init();
      const { cronTime } = app.get(SchedulerRegistry).getCronJob("daily");
      const dates: Date[] = [];
      // Like a job that has just fired, this requests the next time from the last one.
      while (dates.length < count) dates.push(cronTime.getNextDateFrom(dates.at(-1) ?? from, timezone).toJSDate());
      await app.close();
      return dates;
    },
  };

  test.each(
    Object.entries(weeks).flatMap(([when, from]) => Object.keys(fires).map((scheduler) => [scheduler, when, from])),
  )("a daily job of %s runs each day once %s", async (scheduler, _, from) => {
    for (const hour of ["2:30", "3:00", "12:00"]) {
      const [at, minute] = hour.split(":");
      const clock = { atUs: 0, nowUs: () => clock.atUs };
      const keyspace = new Keyspace({ clock });
      const hosts = [1, 2].map(() => createHoldfast({ store: embedded({ keyspace }) }));
      const [one, two] = hosts.map((host) => scheduled(host, "job", () => {}, { everyMs: 86_400_000 }));
      const pattern = `${minute} ${at} * * *`.replace(/^00/, "0");
      const dates = (await fires[scheduler]?.(pattern, new Date(from as string), 5)) ?? [];
      const days = new Set<string>();
      for (const date of dates) {
        clock.atUs = date.getTime() * 1_000;
        const first = await one?.();
        // The second host is 5 s late.
        clock.atUs += 5_000_000;
        expect(await two?.()).toMatchObject({ outcome: "refused", reason: "already-done" });
        const day = date.toLocaleDateString("sv", { timeZone: timezone });
        // An hour that occurs twice may fire twice. The second call is refused.
        expect(first?.outcome, `${scheduler} ${hour} ${date.toISOString()}`).toBe(days.has(day) ? "refused" : "ran");
        days.add(day);
      }
      expect(dates).toHaveLength(5);
      await Promise.all(hosts.map((host) => host.close()));
    }
  });
});
