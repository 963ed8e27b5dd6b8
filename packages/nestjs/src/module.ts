/** `HoldfastModule`: creates the Holdfast of an application, and closes it on shutdown. */
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
import { createHoldfast, type Holdfast, type HoldfastOptions, type Store } from "holdfast";
import { graceOf, show } from "holdfast/internal";
import { HOLDFAST, settleIn } from "./instances.js";
import { Leaders } from "./leaders.js";

/** Options of `HoldfastModule.forRoot`: those of `createHoldfast`, and how the module closes the Holdfast. */
export interface HoldfastModuleOptions extends HoldfastOptions {
  /**
   * The longest wait for work under leases when the application shuts down. During that time, no lease is released
   * before its work ends. It must be shorter than the time after which the process is killed. Whole milliseconds, 0 to
   * 86,400,000.
   * @default 25_000, because Kubernetes kills a process after 30 seconds
   */
  readonly graceMs?: number | undefined;
}

/** Options of `HoldfastModule.forRootAsync`. */
export interface HoldfastModuleAsyncOptions extends Pick<ModuleMetadata, "imports"> {
  /** Returns the options of the module. It gets the providers named in `inject` as arguments. */
  readonly useFactory: (
    // biome-ignore lint/suspicious/noExplicitAny: only the factory knows the types of what Nest injects
    ...injected: any[] // oxlint-disable-line typescript/no-explicit-any
  ) => HoldfastModuleOptions | Promise<HoldfastModuleOptions>;
  /** The injection tokens of the arguments of `useFactory`. */
  readonly inject?: FactoryProvider["inject"] | undefined;
}

/** Options of `HoldfastModule.forTest`. */
export interface HoldfastModuleTestOptions
  extends Omit<HoldfastModuleOptions, "redis" | "redlock" | "subscriber" | "failoverGrace" | "replicas" | "graceMs"> {
  /** As in `forRoot`. Zero by default because a test has no work to wait for. @default 0 */
  readonly graceMs?: number | undefined;
  /**
   * The store for the locks.
   * @default `embedded()` of the package `@holdfast/embedded`, which must then be installed
   */
  readonly store?: Store | undefined;
}

const OPTIONS: unique symbol = Symbol("holdfast:options");
const DEFAULT_GRACE_MS = 25_000;

/**
 * Creates a Holdfast for the whole application. `InjectHoldfast()` injects it, and all decorated methods use it.
 *
 * When the application shuts down (`app.close()`, or a signal after `app.enableShutdownHooks()`), Holdfast acquires no
 * more locks. The signal of each lease aborts with the reason `closing`, and each lease is released when its work has
 * ended; see `graceMs`. Holdfast does not close your Redis client.
 */
export class HoldfastModule implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly #holdfast: Holdfast;
  readonly #graceMs: number;
  readonly #discovery: DiscoveryService;
  readonly #leaders: Leaders;
  readonly #leave: () => void;

  /** Called by Nest. @internal */
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

  /**
   * Configures the module with fixed options.
   *
   * @throws TypeError, RangeError  invalid option; thrown at application start
   */
  static forRoot(options: HoldfastModuleOptions): DynamicModule {
    return HoldfastModule.forRootAsync({ useFactory: () => options });
  }

  /**
   * Configures the module with options from a factory, which can use injected providers.
   *
   * @throws TypeError  `useFactory` is not a function
   */
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
   * Configures the module for tests: locks are in this process and need no server. The scripts are the same as on a
   * server.
   *
   * @throws Error  `@holdfast/embedded` is not installed and no store was given; thrown at application start
   */
  static forTest(options: HoldfastModuleTestOptions = {}): DynamicModule {
    return HoldfastModule.forRootAsync({
      useFactory: async () => ({ graceMs: 0, ...options, store: options.store ?? (await embeddedStore()) }),
    });
  }

  /**
   * Starts the methods with `@Leading`. Called by Nest.
   *
   * @throws TypeError  a class with `@Leading` has an instance per request, or an election has two candidates
   * @throws UnsupportedError  the Holdfast does not support elections
   */
  onApplicationBootstrap(): void {
    this.#leaders.start(this.#discovery, new MetadataScanner());
  }

  /** Closes the Holdfast as `holdfast.close({ graceMs })` does. Called by Nest. */
  async onApplicationShutdown(): Promise<void> {
    this.#leaders.stop();
    this.#leave();
    await this.#holdfast.close({ graceMs: this.#graceMs });
  }
}

// Applies the decorators as functions because the library is compiled without decorators.
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

/** A constant instead of a literal import hides this optional package from bundlers. Only tests need it. */
const EMBEDDED = "@holdfast/embedded";

async function embeddedStore(): Promise<Store> {
  let found: { readonly embedded: () => Store };
  try {
    found = (await import(EMBEDDED)) as typeof found;
  } catch (cause) {
    const text = `HoldfastModule.forTest needs ${EMBEDDED}, which cannot be loaded: install it, or pass { store }.`;
    throw new Error(text, { cause });
  }
  return found.embedded();
}
