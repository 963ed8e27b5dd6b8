/** Checks that the tests run with the framework versions of package.json, which `npm run test:peers` replaces. */
import { readFileSync } from "node:fs";
import { Module, type ModuleMetadata } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { startRedis } from "../../../tests/support/redis-server.js";
import { HoldfastModule } from "../src/index.js";

const wanted = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
  readonly devDependencies: Readonly<Record<string, string>>;
};

/** Returns the version of the copy of the package whose code is on the call stack. */
function callingVersion(name: string): string {
  const folder = new RegExp(`(/[^\\s()]*/node_modules/${name})/`).exec(new Error("who calls").stack ?? "")?.[1];
  if (folder === undefined) throw new Error(`no code of ${name} is calling`);
  return (JSON.parse(readFileSync(`${folder}/package.json`, "utf8")) as { version: string }).version;
}

test("Nest is the version that package.json names", async () => {
  const server = await startRedis();
  const redis = new Redis(server.port);
  const found: Record<string, string> = {};
  const metadata: ModuleMetadata = {
    get imports() {
      found["@nestjs/common"] ??= callingVersion("@nestjs/common");
      return [
        HoldfastModule.forRootAsync({
          useFactory: () => {
            found["@nestjs/core"] = callingVersion("@nestjs/core");
            return { redis };
          },
        }),
      ];
    },
  };
  class App {}
  Module(metadata)(App);
  const app = await NestFactory.createApplicationContext(App, { logger: false, abortOnError: false });
  await app.close();
  redis.disconnect();
  await server.stop();
  const { "@nestjs/common": common, "@nestjs/core": core } = wanted.devDependencies;
  expect(found).toEqual({ "@nestjs/common": common, "@nestjs/core": core });
});
