// @ts-check
/** A Nest application in its own process. It applies decorators like TypeScript's `experimentalDecorators`. */

import { HoldfastModule, Locked } from "@holdfast/nestjs";
import { Injectable, Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { Redis } from "ioredis";
import { args, serve, tell } from "../../../holdfast/tests/faults/programs/serve.mjs";

const redis = new Redis({ port: args.port });

let finish = () => {};
/** @type {Promise<void>} */
const finished = new Promise((resolve) => {
  finish = resolve;
});

class Invoices {
  /** @param {string} _id */
  async close(_id) {
    await tell("began");
    await finished;
  }
}
const options = { name: (/** @type {string} */ id) => `invoice:${id}`, leaseMs: args.leaseMs, noLease: true };
const close = /** @type {any} */ (Object.getOwnPropertyDescriptor(Invoices.prototype, "close"));
/** @type {any} */ (Locked)(options)(Invoices.prototype, "close", close);
Object.defineProperty(Invoices.prototype, "close", close);
Injectable()(Invoices);

class App {}
Module({ imports: [HoldfastModule.forRoot({ redis })], providers: [Invoices] })(App);

serve({
  /** @param {{ id: string }} input */
  async close({ id }) {
    const app = await NestFactory.createApplicationContext(App, { logger: false, abortOnError: false });
    await app.get(Invoices).close(id);
  },

  finish: () => finish(),
});
