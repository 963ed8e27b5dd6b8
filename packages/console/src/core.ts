/** The state that all routes of one console share. */
import type { Access } from "./access.js";
import type { ActionName, EnvironmentView } from "./api.js";
import type { Assets } from "./assets.js";
import type { Audit } from "./audit.js";
import type { DeadlockSearch } from "./deadlocks.js";
import type { DoctorRuns } from "./doctor-runs.js";
import type { Poller } from "./poller.js";
import type { Reader } from "./reader.js";
import type { StoreLink } from "./store-link.js";
import type { Streams } from "./stream.js";

/** The shared state of a console. */
export interface Core {
  readonly basePath: string;
  readonly allow: readonly ActionName[];
  readonly env: EnvironmentView | null;
  readonly redacted: readonly ("label" | "value")[];
  readonly pollMs: number;
  /**
   * Allowed host names besides the loopback names; undefined: any, because the surrounding application checks them.
   */
  readonly allowHosts: readonly string[] | undefined;
  readonly access: Access;
  readonly assets: Assets;
  readonly audit: Audit;
  /** Reports internal errors to the operator of the console. */
  readonly report: (error: unknown) => void;
  readonly link: StoreLink;
  readonly reader: Reader;
  readonly poller: Poller;
  readonly streams: Streams;
  readonly doctor: DoctorRuns;
  readonly deadlocks: DeadlockSearch;
}
