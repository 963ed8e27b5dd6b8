/** Runs the methods that `@Leading` has marked, from the start to the shutdown of the application. */
import { setTimeout as pause } from "node:timers/promises";
import type { LeadOptions } from "@holdfast/recipes";
import { lead } from "@holdfast/recipes";
import { Logger } from "@nestjs/common";
import type { DiscoveryService, MetadataScanner } from "@nestjs/core";
import type { Election, Holdfast } from "holdfast";
import { show } from "holdfast/internal";
import { type AnyMethod, type StartMark, startMarkOf, withLease } from "./marks.js";

/** Delay between a failure of the method and the next candidacy, in ms. */
const FAILED_PAUSE_MS = 1_000;

/** A marked method of an instance. */
interface Marked {
  readonly instance: object;
  readonly key: string;
  readonly mark: StartMark;
}

/** The candidacies of one application. */
export class Leaders {
  readonly #holdfast: Holdfast;
  readonly #closing = new AbortController();
  readonly #logger = new Logger("HoldfastModule");

  constructor(holdfast: Holdfast) {
    this.#holdfast = holdfast;
  }

  /**
   * Becomes a candidate for every marked method.
   *
   * @throws TypeError  the class of a marked method has an instance per request, or two methods or instances are
   *                    candidates in the same election
   * @throws UnsupportedError  the Holdfast does not support elections
   */
  start(discovery: DiscoveryService, scanner: MetadataScanner): void {
    for (const each of candidates(marked(discovery, scanner))) {
      void this.#keepStanding(each, this.#holdfast.election(each.mark.name));
    }
  }

  /** Prevents new candidacies. Current terms end when the Holdfast closes. */
  stop(): void {
    this.#closing.abort();
  }

  async #keepStanding({ instance, key, mark }: Marked, election: Election): Promise<void> {
    const { signal } = this.#closing;
    const options: LeadOptions = { rejoin: true, ...mark.options };
    // `marked` has found a method with this name.
    const method = (instance as Record<string, AnyMethod>)[key] as AnyMethod;
    while (!signal.aborted) {
      try {
        await lead(election, (leadership) => method.apply(instance, withLease([], mark.leaseAt, leadership)), options);
        return;
      } catch (error) {
        if (signal.aborted) return;
        const next =
          options.rejoin === true
            ? `Holdfast tries again in ${FAILED_PAUSE_MS} ms.`
            : "This application is no longer a candidate.";
        this.#logger.error(
          `${nameOf({ instance, key })} stopped leading, or was not elected, in the election ${show(mark.name)}. ${next}`,
          stackOf(error),
        );
        if (options.rejoin !== true) return;
        await pause(FAILED_PAUSE_MS, undefined, { signal, ref: false }).catch(() => {});
      }
    }
  }
}

/**
 * Checks that each election has one candidate, because a second one in the same application would be refused forever.
 */
function candidates(found: readonly Marked[]): readonly Marked[] {
  const standing = new Map<string, Marked>();
  for (const each of found) {
    const other = standing.get(each.mark.name);
    if (other !== undefined) {
      throw new TypeError(
        `@${each.mark.kind} on ${nameOf(each)}: ${nameOf(other)} is already a candidate in the election ${show(each.mark.name)}, and an application can have only one. If two modules provide the class, provide it in one of them and export it.`,
      );
    }
    standing.set(each.mark.name, each);
  }
  return found;
}

function nameOf({ instance, key }: Pick<Marked, "instance" | "key">): string {
  return `${instance.constructor.name}.${key}`;
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

function marked(discovery: DiscoveryService, scanner: MetadataScanner): readonly Marked[] {
  const found = new Map<object, Marked[]>();
  for (const wrapper of [...discovery.getProviders(), ...discovery.getControllers()]) {
    const isStatic = wrapper.isDependencyTreeStatic();
    const instance: unknown = wrapper.instance;
    if (typeof instance !== "object" || instance === null || found.has(instance)) continue;
    const prototype: unknown = Object.getPrototypeOf(instance);
    if (typeof prototype !== "object" || prototype === null) continue;
    const methods = scanner.getAllMethodNames(prototype).flatMap((key): Marked[] => {
      const mark = startMarkOf((prototype as Record<string, AnyMethod>)[key] as AnyMethod);
      if (mark === undefined) return [];
      if (isStatic) return [{ instance, key, mark }];
      throw new TypeError(
        `@${mark.kind} on ${String(wrapper.name)}.${key}: the class must have one instance, but it or a dependency is request-scoped or transient. Use the default scope.`,
      );
    });
    found.set(instance, methods);
  }
  return [...found.values()].flat();
}
