/** Signing in, and what a page may know of the console: `api/session`, `api/login`, `api/logout`. */
import type { Stamped } from "./document.js";

/** What a console may be allowed to do. A console that is allowed nothing only shows. */
export type ActionName = "release" | "pause" | "resume" | "resize" | "resign" | "resolve";

/** All of them, in the order of the help. */
export const ACTIONS: readonly ActionName[] = ["release", "pause", "resume", "resize", "resign", "resolve"];

/** GET api/session */
export interface SessionAnswer extends Stamped {
  readonly isSignedIn: boolean;
  /** `token`: show the sign-in form; `mounted`: the application around decides, there is no form. */
  readonly login: "token" | "mounted";
  /** Who the audit line will name; null when signed out. */
  readonly who: string | null;
  /** To be sent as X-Holdfast-CSRF with every POST; null when signed out. */
  readonly csrf: string | null;
  /** What is routed; empty: read-only. */
  readonly allow: readonly ActionName[];
  readonly env: EnvironmentView | null;
  /** What is hidden from everybody. */
  readonly redacted: readonly ("label" | "value")[];
  /** How often the server looks, in ms. */
  readonly pollMs: number;
  /** False if this Redis user or topology offers no history; the page then says so. */
  readonly hasHistory: boolean;
  readonly version: string;
}

/** POST api/login. `name` goes into the audit lines; at most 64 characters. */
export interface LoginBody {
  readonly token: string;
  readonly name?: string;
}

/** `--env`. The word is shown, not only the colour. */
export interface EnvironmentView {
  readonly name: string;
  /** `danger` for names like prod, production, live; `caution` for staging and the like; `calm` for the rest. */
  readonly tone: "danger" | "caution" | "calm";
}
