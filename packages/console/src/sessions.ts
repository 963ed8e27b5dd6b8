/**
 * Sessions in a signed cookie. The server stores nothing, so sessions cannot exhaust its memory.
 *
 * The signing key is random unless a secret is given. With a random key, a leaked cookie reveals nothing about the
 * token, and a restart of the console signs everyone out.
 */
import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";

/** How long a session lasts: a working day. */
const LASTS_MS = 12 * 3_600_000;

/** The contents of a cookie. */
export interface Session {
  readonly who: string;
  /** The CSRF token, sent as X-Holdfast-CSRF. Pages of other origins cannot read it. */
  readonly csrf: string;
  readonly endsAtMs: number;
}

/** Signs and verifies session cookies. */
export class Sessions {
  readonly #key: Buffer;
  readonly #now: () => number;

  /** @param secret  shared by processes that must accept each other's cookies; random if absent */
  constructor(now: () => number, secret?: string) {
    this.#now = now;
    this.#key =
      secret === undefined ? randomBytes(32) : Buffer.from(hkdfSync("sha256", secret, "", "holdfast console", 32));
  }

  /** Starts a session. @returns the value of its cookie */
  begin(who: string): { readonly cookie: string; readonly session: Session } {
    const endsAtMs = this.#now() + LASTS_MS;
    const said = Buffer.from(JSON.stringify([who, endsAtMs, randomBytes(12).toString("base64url")])).toString(
      "base64url",
    );
    return { cookie: `${said}.${this.#sign("session", said)}`, session: this.#sessionOf(said, who, endsAtMs) };
  }

  /** The session of a cookie; undefined if it has ended or its signature is invalid. */
  read(cookie: string): Session | undefined {
    const [said = "", signature = ""] = cookie.split(".");
    if (!areEqual(signature, this.#sign("session", said))) return undefined;
    // The signature is valid, so the format can be trusted.
    const [who, endsAtMs] = JSON.parse(Buffer.from(said, "base64url").toString()) as [string, number];
    return endsAtMs > this.#now() ? this.#sessionOf(said, who, endsAtMs) : undefined;
  }

  /** The CSRF token for a visitor who was recognized by means other than the session cookie. */
  csrfFor(who: string): string {
    return this.#sign("csrf", `mounted ${who}`);
  }

  #sessionOf(said: string, who: string, endsAtMs: number): Session {
    return { who, csrf: this.#sign("csrf", said), endsAtMs };
  }

  #sign(purpose: string, text: string): string {
    return createHmac("sha256", this.#key).update(`${purpose}\n${text}`).digest("base64url");
  }
}

/** Compares two strings of any length in constant time. */
export function areEqual(left: string, right: string): boolean {
  const key = randomBytes(32);
  const digest = (text: string): Buffer => createHmac("sha256", key).update(text).digest();
  return timingSafeEqual(digest(left), digest(right));
}
