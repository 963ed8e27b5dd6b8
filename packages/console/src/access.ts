/**
 * Authentication and authorization. There are two ways: a token that people sign in with and scripts send, or the
 * `authorize` callback of the application that mounts the console.
 */
import type { ActionName } from "./api.js";
import { Attempts } from "./attempts.js";
import type { ConsoleRequest, Exchange } from "./exchange.js";
import { HttpProblem } from "./problem.js";
import { areEqual, type Session, Sessions } from "./sessions.js";

/** A permission that `authorize` grants or denies: viewing, running the doctor, or one of the actions. */
export type Permission = "view" | "doctor" | ActionName;

/**
 * Decides who has access, for the application that mounts the console. Without a `name`, it decides for the console as
 * a whole. With a `name`, it decides whether this visitor may view that lock or run that action on it, so the
 * application can limit tenants to their own locks.
 *
 * @returns the visitor's name for the audit line, or false
 */
export type Authorize = (
  req: ConsoleRequest,
  action: Permission,
  name: string | undefined,
) => { readonly who: string } | false | Promise<{ readonly who: string } | false>;

/** A visitor who may view the console. */
export interface Viewer {
  readonly who: string;
  /** The CSRF token that the visitor's page must send with every change. */
  readonly csrf: string;
  /**
   * Whether the browser sends the credentials automatically, as it does a cookie. A foreign page could then use them.
   */
  readonly isAmbient: boolean;
  /** True if this visitor may view all locks. */
  readonly seesAll: boolean;
  /** Whether the visitor has this permission. Checks again on each call. */
  may(action: Permission, name: string | undefined): Promise<boolean>;
}

/** Recognizes visitors by token, by cookie or with `authorize`. */
export class Access {
  readonly login: "token" | "mounted";
  readonly #token: string;
  readonly #authorize: Authorize | undefined;
  readonly #sessions: Sessions;
  readonly #attempts: Attempts;
  readonly #cookiePath: string;

  constructor(options: {
    readonly token: string | undefined;
    readonly authorize: Authorize | undefined;
    readonly secret: string | undefined;
    readonly basePath: string;
    readonly now: () => number;
  }) {
    this.login = options.authorize === undefined ? "token" : "mounted";
    this.#token = options.token ?? "";
    this.#authorize = options.authorize;
    this.#sessions = new Sessions(options.now, options.secret);
    this.#attempts = new Attempts(() => performance.now());
    this.#cookiePath = `${options.basePath}/`;
  }

  /**
   * The visitor who sent the request; undefined if unknown.
   *
   * @throws HttpProblem 401 a wrong token, 429 too many wrong tokens
   */
  async viewerOf(exchange: Exchange): Promise<Viewer | undefined> {
    const authorize = this.#authorize;
    const bearer = /^Bearer (.+)$/i.exec(exchange.req.headers.authorization ?? "")?.[1];
    if (authorize !== undefined) return this.#mounted(exchange.req, authorize, bearer !== undefined);
    if (bearer !== undefined) {
      this.#check(exchange.address, bearer);
      return { who: "script", csrf: "", isAmbient: false, seesAll: true, may: async () => true };
    }
    const session = this.#sessionOf(exchange);
    if (session === undefined) return undefined;
    const { who, csrf } = session;
    // A stream can outlive its session, so the cookie is checked again each time.
    const may = async (): Promise<boolean> => this.#sessionOf(exchange) !== undefined;
    return { who, csrf, isAmbient: true, seesAll: true, may };
  }

  /**
   * Signs in with a token.
   *
   * @returns the visitor, and the cookie to set
   * @throws HttpProblem  401 a wrong token, 429 too many wrong tokens
   */
  signIn(exchange: Exchange, token: string, name: string): { readonly viewer: Viewer; readonly cookie: string } {
    if (this.login !== "token")
      throw new HttpProblem(404, "not-found", "The application that mounts this console decides who has access.");
    this.#check(exchange.address, token);
    const { cookie, session } = this.#sessions.begin(name);
    const { who, csrf } = session;
    const viewer = { who, csrf, isAmbient: true, seesAll: true, may: async () => true };
    return { viewer, cookie: this.#cookie(exchange, cookie, "") };
  }

  /** The cookie that removes the session cookie. */
  signOut(exchange: Exchange): string {
    return this.#cookie(exchange, "", "; Max-Age=0");
  }

  async #mounted(req: ConsoleRequest, authorize: Authorize, isBearer: boolean): Promise<Viewer | undefined> {
    const found = await authorize(req, "view", undefined);
    if (found === false) return undefined;
    // The same limit as for names entered at sign-in, because the name appears in errors and logs.
    const who = found.who.slice(0, 64);
    return {
      who,
      csrf: this.#sessions.csrfFor(who),
      isAmbient: !isBearer,
      seesAll: false,
      may: async (action, name) => (await authorize(req, action, name)) !== false,
    };
  }

  #check(address: string, token: string): void {
    if (areEqual(token, this.#token)) {
      this.#attempts.succeeded(address);
      return;
    }
    const blockedMs = this.#attempts.blockedForMs(address);
    if (blockedMs > 0) {
      const seconds = Math.ceil(blockedMs / 1_000);
      const headers = { "Retry-After": String(seconds) };
      throw new HttpProblem(429, "too-many-attempts", `Too many wrong tokens. Try again in ${seconds} s.`, { headers });
    }
    this.#attempts.failed(address, token);
    const detail =
      "Wrong token. If holdfast console made the token, each start makes a new one, and prints the new address.";
    throw new HttpProblem(401, "unauthenticated", detail, { headers: { "WWW-Authenticate": "Bearer" } });
  }

  #sessionOf(exchange: Exchange): Session | undefined {
    const name = this.#cookieName(exchange);
    for (const part of (exchange.req.headers.cookie ?? "").split(";")) {
      const [key = "", value = ""] = part.trim().split("=");
      const session = key === name ? this.#sessions.read(value) : undefined;
      if (session !== undefined) return session;
    }
    return undefined;
  }

  #cookie(exchange: Exchange, value: string, more: string): string {
    const secure = exchange.isSecure ? "; Secure" : "";
    return `${this.#cookieName(exchange)}=${value}; Path=${this.#cookiePath}; HttpOnly; SameSite=Strict${secure}${more}`;
  }

  /**
   * The cookie's name contains the port because browsers share cookies between ports: two consoles on one machine
   * would sign each other out.
   */
  #cookieName({ req }: Exchange): string {
    return `holdfast-console-${req.socket.localPort ?? 0}`;
  }
}
