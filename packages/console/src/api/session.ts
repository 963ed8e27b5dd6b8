/** Sessions, and the console's settings that a page needs: `api/session`, `api/login`, `api/logout`. */
import type { Stamped } from "./document.js";

/** An action that a console may allow. A console that allows none is read-only. */
export type ActionName = "release" | "pause" | "resume" | "resize" | "resign" | "resolve";

/** All actions, in the order of the help. */
export const ACTIONS: readonly ActionName[] = ["release", "pause", "resume", "resize", "resign", "resolve"];

/** GET api/session */
export interface SessionAnswer extends Stamped {
  readonly isSignedIn: boolean;
  /**
   * `token`: show the sign-in form; `mounted`: the surrounding application authorizes visitors, and there is no form.
   */
  readonly login: "token" | "mounted";
  /** The visitor's name for audit lines; null when signed out. */
  readonly who: string | null;
  /** The value of X-Holdfast-CSRF for every POST; null when signed out. */
  readonly csrf: string | null;
  /** The allowed actions; empty: read-only. */
  readonly allow: readonly ActionName[];
  readonly env: EnvironmentView | null;
  /** The fields that are hidden from all visitors. */
  readonly redacted: readonly ("label" | "value")[];
  /** The server's polling interval, in ms. */
  readonly pollMs: number;
  readonly version: string;
}

/** Body of POST api/login. `name` goes into the audit lines; at most 64 characters. */
export interface LoginBody {
  readonly token: string;
  readonly name?: string;
}

/** The `--env` badge. The word is always shown, not only its color. */
export interface EnvironmentView {
  readonly name: string;
  /** `danger` for names like prod, production, live; `caution` for staging and the like; `calm` for the rest. */
  readonly tone: "danger" | "caution" | "calm";
}
