/** Tests `holdfast elect`: leading, following, stepping down. */
import { describe, expect, it } from "vitest";
import { until } from "../../../holdfast/src/testing/delays.js";
import { newStage } from "./harness.js";

const stage = newStage();

interface Event {
  readonly event: string;
  readonly term?: number;
  readonly reason?: string;
}

function eventsIn(text: string): Event[] {
  return text
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line): Event => JSON.parse(line));
}

/** Leads an election in this process, so that a candidate has to wait. */
async function leaderOf(name: string): Promise<number> {
  await until(async () => (await stage.holdfast.election(name).leader()) !== null, `${name} has a leader`);
  return (await stage.holdfast.election(name).leader())?.term ?? 0;
}

describe("elect", () => {
  it("leads until TERM, and then resigns, so that the next candidate leads immediately", async () => {
    const first = stage.start("elect", "feed", "--delay", "0", "--value", "a:1", "--json");
    const term = await leaderOf("feed");
    const second = stage.start("elect", "feed", "--delay", "0", "--value", "b:2", "--json");
    await until(async () => (await stage.holdfast.election("feed").inspect()).waiterCount === 1, "a candidate waits");
    const who = await stage.ask("elect", "feed", "--who");
    expect(who).toMatchObject({ v: 1, name: "feed", value: "a:1", term });
    first.child.kill("SIGTERM");
    const ended = await first.ended;
    expect(ended.code).toBe(0);
    // On a busy machine it leads long enough to be renewed.
    const events = eventsIn(ended.stdout).flatMap(({ event }) => (event === "renewed" ? [] : [event]));
    expect(events).toEqual(["candidate", "elected", "resigned"]);
    await until(() => eventsIn(second.stdout()).some(({ event }) => event === "elected"), "the second leads");
    expect(await leaderOf("feed")).toBeGreaterThan(term);

    const present = await stage.ask("elect", "feed", "--who");
    const past = await stage.say("elect", "feed", "--resign", "--token", String(term));
    expect(past).toMatchObject({ code: 1, stdout: expect.stringMatching(/no leader was removed\n$/) });
    const down = await stage.say("elect", "feed", "--resign", "--token", String(present.term), "-m", "drain");
    expect(down).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^removed leader .* after \S+; feed has no leader now\n$/),
    });
    // The second process lost the leadership, and was not started with the flag to campaign again.
    const lost = await second.ended;
    expect(lost.code).toBe(123);
    expect(eventsIn(lost.stdout).at(-1)).toMatchObject({ event: "lost", reason: "force-released" });
    const nobody = await stage.say("elect", "feed", "--who");
    expect(nobody).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^feed has no leader\n {2}changes {2}2 in /),
    });
  });

  it("campaigns again after a loss with --rejoin", async () => {
    const going = stage.start("elect", "again", "--delay", "0", "--rejoin", "--json");
    const term = await leaderOf("again");
    await stage.holdfast.election("again").forceRelease({ token: term });
    await until(
      () => eventsIn(going.stdout()).filter(({ event }) => event === "elected").length === 2,
      "elected again",
    );
    going.child.kill("SIGINT");
    const { code, stdout } = await going.ended;
    expect(code).toBe(0);
    // If the leadership was removed before the command could be notified, a renewal finds out.
    const events = eventsIn(stdout).filter(({ event }) => event !== "renewed");
    expect(events.map(({ event }) => event)).toEqual([
      "candidate",
      "elected",
      "lost",
      "candidate",
      "elected",
      "resigned",
    ]);
  });

  it("runs a command while it leads, passes it the term, and exits with its code", async () => {
    const { code, stdout, stderr } = await stage.say(
      "elect",
      "job",
      "--delay",
      "0",
      "--json",
      "--",
      "sh",
      "-c",
      'echo "$HOLDFAST_TERM $HOLDFAST_KIND $HOLDFAST_NAME"; exit 7',
    );
    expect(code).toBe(7);
    const elected = eventsIn(stderr).find(({ event }) => event === "elected");
    expect(stdout).toBe(`${elected?.term} election job\n`);
    expect(eventsIn(stderr).map(({ event }) => event)).toContain("resigned");
  });

  it("ends the command and exits with 123 when the leader is removed", async () => {
    const going = stage.start("elect", "taken", "--delay", "0", "--", "sleep", "60");
    const term = await leaderOf("taken");
    expect((await stage.say("elect", "taken", "--resign", "--token", String(term))).code).toBe(0);
    const { code, stderr } = await going.ended;
    expect(code).toBe(123);
    expect(stderr).toMatch(/LOST taken: released by force.*; led for \S+, term \d+; sent TERM\n/);
  });

  it("leaves the queue when a signal ends its wait, and exits with 128 plus the signal", async () => {
    const leadership = await stage.holdfast.election("busy").campaign("here");
    const going = stage.start("elect", "busy", "--delay", "0");
    await until(async () => (await stage.holdfast.election("busy").inspect()).waiterCount === 1, "it waits");
    going.child.kill("SIGINT");
    expect((await going.ended).code).toBe(130);
    expect((await stage.holdfast.election("busy").inspect()).waiterCount).toBe(0);
    await leadership.release();
  });

  it("resigns when the reader of its output has closed the pipe", async () => {
    const going = stage.start("elect", "unread", "--delay", "0", "--lease", "3s", "--json");
    const term = await leaderOf("unread");
    going.child.stdout?.destroy();
    // The command finds out when it reports its next renewal.
    expect((await going.ended).code).toBe(0);
    const next = await stage.holdfast.election("unread").tryAcquire();
    expect(next?.term).toBeGreaterThan(term);
    await next?.release();
  });

  it("exits with 65 before it campaigns if the name is in use as another kind", async () => {
    await stage.holdfast.semaphore("mixed", { permits: 2 }).acquire({ leaseMs: 600_000 });
    const refused = await stage.say("elect", "mixed", "--delay", "0", "--", "true");
    expect(refused.code).toBe(65);
    expect(refused.stderr).toContain("mixed is in use as a semaphore (held by ");
    expect(refused.stderr).toContain("but this run requests an election: use another name");
    expect(await stage.holdfast.election("mixed").leader()).toBeNull();
  });

  it("exits with 75 immediately while the election is paused", async () => {
    await stage.holdfast.pause("closed", { kind: "election", label: "no changes", by: "ana@ops-1" });
    const { code, stderr } = await stage.say("elect", "closed", "--delay", "0");
    expect(code).toBe(75);
    expect(stderr).toMatch(/^holdfast: closed has been paused by ana@ops-1 for \S+: "no changes"\n$/);
  });

  it("prints the current state and then one line for each change with --listen", async () => {
    const going = stage.start("elect", "watched", "--listen");
    await until(() => going.stdout() === "watched  no leader\n", "the present state");
    const leadership = await stage.holdfast.election("watched").campaign("x\x1b[2J");
    await until(() => going.stdout().split("\n").length === 3, "the change");
    expect(going.stdout().split("\n")[1]).toMatch(
      new RegExp(`^watched {2}.*/${process.pid} tests {2}term ${leadership.term} {2}"x\\\\x1b\\[2J"$`),
    );
    going.child.kill("SIGINT");
    expect((await going.ended).code).toBe(0);
    await leadership.release();
  });

  it("exits with 64 for flags that do not fit together", async () => {
    const wrong = await Promise.all([
      stage.say("elect", "x", "--who", "--listen"),
      stage.say("elect", "x", "--who", "--value", "v"),
      stage.say("elect", "x", "--resign"),
      stage.say("elect", "x", "--token", "1"),
      stage.say("elect", "x", "--who", "--", "true"),
      stage.say("elect", "x", "--lease", "1s"),
    ]);
    expect(wrong.map(({ code }) => code)).toEqual([64, 64, 64, 64, 64, 64]);
  });
});
