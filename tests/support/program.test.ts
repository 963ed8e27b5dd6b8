import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, expect, test } from "vitest";
import { type Program, startProgram } from "./program.js";

const folder = mkdtempSync(join(tmpdir(), "holdfast-program-"));
let program: Program;

afterEach(async () => {
  await program.kill();
  rmSync(folder, { recursive: true, force: true });
});

test("a program's messages all arrive, and waits for missing ones fail when the program ends", async () => {
  const file = join(folder, "teller.mjs");
  writeFileSync(
    file,
    `for (let at = 0; at < 8; at += 1) process.send({ name: "thing " + at, value: at });
     process.once("message", () => process.disconnect());`,
  );
  program = startProgram(pathToFileURL(file));
  const things = Array.from({ length: 8 }, (_, at) => at);
  const never = program.heard("another");
  expect(await Promise.all(things.map((at) => program.heard(`thing ${at}`)))).toEqual(things);
  await expect(program.call("end")).rejects.toThrow("before it answered end");
  await expect(never).rejects.toThrow("the program ended (0) before it sent another");
  await expect(program.heard("too late")).rejects.toThrow("before it sent too late");
});
