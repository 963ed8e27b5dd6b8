/** `HoldfastModule`: makes a Holdfast for an application, and closes it with the application. */
import {
  type DynamicModule,
  type FactoryProvider,
  Inject,
  Module,
  type ModuleMetadata,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
} from "@nestjs/common";
import { DiscoveryModule, DiscoveryService, MetadataScanner } from "@nestjs/core";
import { createHoldfast, type Holdfast, type HoldfastOptions, type Store } from "../../index.js";
import { graceOf, show } from "../../internal.js";
import { HOLDFAST, settleIn } from "./instances.js";
import { Leaders } from "./leaders.js";

/** What `createHoldfast` takes, and how the module closes it. */
export interface HoldfastModuleOptions extends HoldfastOptions {
  /**
   * Longest wait for work under leases when the application shuts down, in ms: nothing is given back under it. It must end before
   * whoever stops the process loses patience. Whole milliseconds, 0 to 86,400,000.
   * @default 25_000, as Kubernetes kills after 30 seconds
   */
  readonly graceMs?: number | undefined;
}

/** How the options come from what Nest provides. */
export interface HoldfastModuleAsyncOptions extends Pick<ModuleMetadata, "imports"> {
  /** Makes the options, of what `inject` names. */
  readonly useFactory: (
    // biome-ignore lint/suspicious/noExplicitAny: what Nest injects is known to the factory only
    ...injected: any[] // oxlint-disable-line typescript/no-explicit-any
  ) => HoldfastModuleOptions | Promise<HoldfastModuleOptions>;
  readonly inject?: FactoryProvider["inject"] | undefined;
}

/** What an application for tests is told, beside the defaults of `createHoldfast`. */
export interface HoldfastModuleTestOptions
  extends Omit<HoldfastModuleOptions, "redis" | "redlock" | "subscriber" | "failoverGrace" | "replicas" | "graceMs"> {
  /** As for an application; but a test has no work to be waited for. @default 0 */
  readonly graceMs?: number | undefined;
  /** @default `embedded()` of `@holdfast/embedded`, which then has to be installed */
  readonly store?: Store | undefined;
}

const OPTIONS: unique symbol = Symbol("holdfast:options");
const DEFAULT_GRACE_MS = 25_000;

/**
 * Makes a Holdfast for the whole application: `InjectHoldfast()` injects it, and `@Locked` methods of all modules stand on it.
 *
 * When the application shuts down (`app.close()`, or a signal after `app.enableShutdownHooks()`), no more locks are
 * acquired, the signal of each lease aborts for the reason `closing`, and each is released when its work has ended; see `graceMs`.
 * The Redis client is yours, and stays connected.
 */
export class HoldfastModule implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly #holdfast: Holdfast;
  readonly #graceMs: number;
  readonly #discovery: DiscoveryService;
  readonly #leaders: Leaders;
  readonly #leave: () => void;

  /** Nest makes it. @internal */
  constructor(holdfast: Holdfast, { graceMs = DEFAULT_GRACE_MS }: HoldfastModuleOptions, discovery: DiscoveryService) {
    this.#holdfast = holdfast;
    this.#graceMs = graceMs;
    this.#discovery = discovery;
    this.#leaders = new Leaders(holdfast);
    this.#leave = settleIn({
      holdfast,
      has: (instance) =>
        [...discovery.getProviders(), ...discovery.getControllers()].some((wrapper) => wrapper.instance === instance),
    });
  }

  /** @throws TypeError, RangeError  a wrong option, when the application starts */
  static forRoot(options: HoldfastModuleOptions): DynamicModule {
    return HoldfastModule.forRootAsync({ useFactory: () => options });
  }

  /** @throws TypeError  there is no factory */
  static forRootAsync({ imports = [], inject = [], useFactory }: HoldfastModuleAsyncOptions): DynamicModule {
    if (typeof useFactory !== "function") {
      throw new TypeError(`useFactory must be a function that returns the options; got ${show(useFactory)}`);
    }
    return {
      module: HoldfastModule,
      global: true,
      imports: [DiscoveryModule, ...imports],
      providers: [
        { provide: OPTIONS, inject, useFactory },
        { provide: HOLDFAST, inject: [OPTIONS], useFactory: holdfastFor },
      ],
      exports: [HOLDFAST],
    };
  }

  /**
   * For tests: locks in this process, and no server. The same scripts decide as on a server.
   *
   * @throws Error  `@holdfast/embedded` is not installed, and no store was given; when the application starts
   */
  static forTest(options: HoldfastModuleTestOptions = {}): DynamicModule {
    return HoldfastModule.forRootAsync({
      useFactory: async () => ({ graceMs: 0, ...options, store: options.store ?? (await embeddedStore()) }),
    });
  }

  /** Starts the methods that are `@Leading`. Nest calls it. @throws TypeError  the class of one is not made once */
  onApplicationBootstrap(): void {
    this.#leaders.start(this.#discovery, new MetadataScanner());
  }

  /** As `holdfast.close({ graceMs })`. Nest calls it. */
  async onApplicationShutdown(): Promise<void> {
    this.#leaders.stop();
    this.#leave();
    await this.#holdfast.close({ graceMs: this.#graceMs });
  }
}

// By hand, since the library is compiled without decorators.
Module({})(HoldfastModule);
Inject(HOLDFAST)(HoldfastModule, undefined, 0);
Inject(OPTIONS)(HoldfastModule, undefined, 1);
Inject(DiscoveryService)(HoldfastModule, undefined, 2);

function holdfastFor(options: HoldfastModuleOptions): Holdfast {
  if (options === null || typeof options !== "object") {
    throw new TypeError(`HoldfastModule needs an object with redis, store or redlock; got ${show(options)}`);
  }
  const { graceMs, ...rest } = options;
  graceOf(graceMs === undefined ? undefined : { graceMs });
  return createHoldfast(rest);
}

/** Not an import that a bundler sees: whoever does not test with it does not have it. */
const EMBEDDED = "@holdfast/embedded";

async function embeddedStore(): Promise<Store> {
  let found: { readonly embedded: () => Store };
  try {
    found = (await import(EMBEDDED)) as typeof found;
  } catch (cause) {
    const text = `HoldfastModule.forTest needs ${EMBEDDED}, which cannot be loaded: install it, or give { store }.`;
    throw new Error(text, { cause });
  }
  return found.embedded();
}
