/** Methods under locks with standard decorators, which cannot decorate parameters or ask Nest to inject. */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { Module, Scope } from "@nestjs/common";
import { ContextIdFactory, NestFactory } from "@nestjs/core";
import { createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";
import ts from "typescript";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { HoldfastModule, Locked, Scheduled } from "../src/index.js";
import type * as source from "./standard-classes.js";

type Invoices = InstanceType<ReturnType<typeof source.standardClasses>>;

let server: RedisServer;
let redis: Redis;
let direct: Holdfast;
let Invoices: ReturnType<typeof source.standardClasses>;
let id: string;
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ port: server.port });
  direct = createHoldfast({ redis });
  Invoices = (await compiled()).standardClasses({ Locked, Scheduled });
});

beforeEach(() => {
  id = randomUUID();
});

afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

afterAll(async () => {
  await direct?.close();
  redis?.disconnect();
  await server?.stop();
});

/** Compiles standard-classes.ts and imports the result. */
async function compiled(): Promise<typeof source> {
  const text = readFileSync(new URL("./standard-classes.ts", import.meta.url), "utf8");
  const compilerOptions = { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext };
  const { outputText } = ts.transpileModule(text, { compilerOptions });
  expect(outputText).toContain("__esDecorate");
  return await import(/* @vite-ignore */ `data:text/javascript,${encodeURIComponent(outputText)}`);
}

async function start(prefix: string, scope = Scope.DEFAULT): Promise<Invoices> {
  const useFactory = (): Invoices => new Invoices();
  const App = class {};
  const providers = [{ provide: Invoices, scope, useFactory }];
  Module({ imports: [HoldfastModule.forRoot({ redis, prefix })], providers })(App);
  const app = await NestFactory.createApplicationContext(App, { logger: false, abortOnError: false });
  closing.push(() => app.close());
  return app.resolve(Invoices, ContextIdFactory.create());
}

test("a method gets its lease at `leaseAt`, and keeps its `this` and its return value", async () => {
  const invoices = await start("one");
  expect(await invoices.close(id)).toBe(`closed ${id} invoice:${id}`);
  expect(invoices.close.name).toBe("close");
});

test("a method rethrows errors unchanged, and a refusal names the holder", async () => {
  const invoices = await start("hf");
  const error = new Error("card refused");
  await expect(invoices.fail(error)).rejects.toBe(error);
  const lease = await direct.mutex(`invoice:${id}`).acquire({ label: "import" });
  await expect(invoices.close(id)).rejects.toMatchObject({ name: "AcquireTimeoutError", holder: { label: "import" } });
  expect(await invoices.skip(id)).toMatchObject({ outcome: "refused", label: "import" });
  await lease.release();
  expect(await invoices.skip(id)).toBe("ran");
});

test("a request-scoped instance is locked", async () => {
  const invoices = await start("hf", Scope.REQUEST);
  expect(await invoices.close(id)).toBe(`closed ${id} invoice:${id}`);
});

test("two applications each use their own locks", async () => {
  const [one, other] = [await start("one"), await start("other")];
  const beside = createHoldfast({ redis, prefix: "other" });
  const lease = await beside.mutex(`invoice:${id}`).acquire();
  expect(await one.skip(id)).toBe("ran");
  expect(await other.skip(id)).toMatchObject({ outcome: "refused" });
  await lease.release();
  await beside.close();
});

test("with two applications, an instance that Nest did not create is refused", async () => {
  await start("one");
  await start("other");
  await expect(new Invoices().close(id)).rejects.toThrow("let Nest create the instance");
});

test("a class that does not say where the lease goes is refused when it is defined", () => {
  const context = { kind: "method", name: "close", static: false } as ClassMethodDecoratorContext;
  expect(() => Locked({ name: "a" })(async () => {}, context)).toThrow("the method needs its lease to detect a loss");
});
