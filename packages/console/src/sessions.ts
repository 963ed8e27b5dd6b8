/**
 * Who has signed in, in a cookie that only we can have written: nothing is remembered here, so there is nothing to fill up.
 *
 * The key is this process's own unless one is given: a cookie that leaks says nothing about the token, and restarting the
 * console signs everybody out.
 */
import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";

/** A day at work. */
const LASTS_MS = 12 * 3_600_000;

/** What a cookie says. */
export interface Session {
  readonly who: string;
  /** What a page must send in X-Holdfast-CSRF. Another page cannot read it. */
  readonly csrf: string;
  readonly endsAtMs: number;
}

/** See the file header. */
export class Sessions {
  readonly #key: Buffer;
  readonly #now: () => number;

  /** @param secret  shared by processes that must know each other's cookies; else random */
  constructor(now: () => number, secret?: string) {
    this.#now = now;
    this.#key =
      secret === undefined ? randomBytes(32) : Buffer.from(hkdfSync("sha256", secret, "", "holdfast console", 32));
  }

  /** A new session, as the value of a cookie. */
  begin(who: string): { readonly cookie: string; readonly session: Session } {
    const endsAtMs = this.#now() + LASTS_MS;
    const said = Buffer.from(JSON.stringify([who, endsAtMs, randomBytes(12).toString("base64url")])).toString(
      "base64url",
    );
    return { cookie: `${said}.${this.#sign("session", said)}`, session: this.#sessionOf(said, who, endsAtMs) };
  }

  /** What the cookie says; undefined if it is over, or not ours. */
  read(cookie: string): Session | undefined {
    const [said = "", signature = ""] = cookie.split(".");
    if (!areEqual(signature, this.#sign("session", said))) return undefined;
    // Whoever has signed it was us.
    const [who, endsAtMs] = JSON.parse(Buffer.from(said, "base64url").toString()) as [string, number];
    return endsAtMs > this.#now() ? this.#sessionOf(said, who, endsAtMs) : undefined;
  }

  /** What a page must send that signed in by other means than our cookie. */
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

/** Takes as long whatever the difference is, and for any lengths. */
export function areEqual(left: string, right: string): boolean {
  const key = randomBytes(32);
  const digest = (text: string): Buffer => createHmac("sha256", key).update(text).digest();
  return timingSafeEqual(digest(left), digest(right));
}
