import { describe, expect, it } from "vitest";
import { redisScene, startConsole, TOKEN } from "./scene.js";

const redis = redisScene();

describe("a page on another origin", () => {
  it("changes nothing with the visitor's cookie, because origin, CSRF token and content type are checked", async () => {
    const lease = await redis.holdfast.mutex("mine").acquire();
    const site = await startConsole({ holdfast: redis.holdfast, allow: ["release"] });
    const page = await site.signIn();
    const body = { kind: "mutex", name: "mine", owner: lease.owner, token: lease.token, reason: "because" };
    const own = {
      cookie: page.cookie,
      origin: site.origin,
      "x-holdfast-csrf": page.csrf,
      "content-type": "application/json",
    };
    const attempts: [string, Record<string, string>, number][] = [
      ["another origin", { ...own, origin: "http://evil.example" }, 403],
      ["an origin that begins as ours", { ...own, origin: `${site.origin}.evil.example` }, 403],
      ["our name on another port", { ...own, origin: "http://127.0.0.1:1" }, 403],
      ["a sandboxed page", { ...own, origin: "null" }, 403],
      ["no origin", without(own, "origin"), 403],
      ["no login token", without(own, "x-holdfast-csrf"), 403],
      ["a wrong login token", { ...own, "x-holdfast-csrf": "x".repeat(43) }, 403],
      ["a form", { ...own, "content-type": "application/x-www-form-urlencoded" }, 415],
      ["a form that looks like JSON", { ...own, "content-type": "text/plain" }, 415],
      ["no content type", without(own, "content-type"), 415],
      ["as the browser reports it", { ...own, "sec-fetch-site": "cross-site" }, 403],
      ["a sibling host", { ...own, "sec-fetch-site": "same-site" }, 403],
    ];
    for (const [what, headers, expected] of attempts) {
      const { status } = await site.ask("api/actions/release", { method: "POST", headers, body });
      expect([what, status]).toEqual([what, expected]);
    }
    expect((await redis.holdfast.mutex("mine").inspect()).holders).toHaveLength(1);
    expect(site.audit).toEqual([]);
    expect((await site.ask("api/actions/release", { method: "POST", headers: own, body })).status).toBe(200);
    await lease.release().catch(() => {});
  });

  it("cannot use the CSRF token of another login", async () => {
    const site = await startConsole({ holdfast: redis.holdfast });
    const [one, other] = [await site.signIn(), await site.signIn()];
    expect(one.csrf).not.toBe(other.csrf);
    expect((await one.post("api/logout", {}, { "x-holdfast-csrf": other.csrf })).status).toBe(403);
  });

  it("cannot sign a visitor in", async () => {
    const site = await startConsole({ holdfast: redis.holdfast });
    const body = { token: TOKEN };
    for (const origin of ["http://evil.example", "null"]) {
      const headers = { origin, "content-type": "application/json" };
      expect((await site.ask("api/login", { method: "POST", headers, body })).status).toBe(403);
    }
    const headers = { "content-type": "application/json" };
    expect((await site.ask("api/login", { method: "POST", headers, body })).status).toBe(403);
  });

  it("cannot read responses, because none has a CORS header", async () => {
    const site = await startConsole({ holdfast: redis.holdfast });
    const page = await site.signIn();
    const answer = await site.ask("api/locks", { headers: { cookie: page.cookie, origin: "http://evil.example" } });
    expect(Object.keys(answer.headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
    expect(answer.headers["cross-origin-resource-policy"]).toBe("same-origin");
    const { status } = await site.ask("api/locks", { method: "OPTIONS", headers: { cookie: page.cookie } });
    expect(status).toBe(405);
  });
});

describe("an unknown host name that resolves to this machine", () => {
  it("gets 421 for pages and for the API", async () => {
    const site = await startConsole({ holdfast: redis.holdfast, allowHosts: ["locks.example", "ops.example:8443"] });
    const as = (host: string, path = "api/session") =>
      site.ask(path, { headers: { host } }).then(({ status }) => status);
    for (const host of [
      "evil.example",
      "evil.example:80",
      "127.0.0.1.evil.example",
      "localhost.evil.example",
      "127.0.0.1@evil",
    ]) {
      expect([host, await as(host)]).toEqual([host, 421]);
      expect([host, await as(host, "")]).toEqual([host, 421]);
    }
    const own = [
      "localhost",
      "LOCALHOST:1",
      `127.0.0.1:${site.port}`,
      "127.9.9.9",
      "[::1]:80",
      "locks.example:1",
      "ops.example:8443",
    ];
    for (const host of own) expect([host, await as(host)]).toEqual([host, 200]);
    expect(await as("ops.example:9")).toBe(421);
  });
});

describe("every response", () => {
  it("has the security headers", async () => {
    const site = await startConsole({ holdfast: redis.holdfast });
    for (const path of ["", "assets/index-abc123.js", "api/session", "api/locks", "nothing"]) {
      const { headers } = await site.ask(path);
      const policy = String(headers["content-security-policy"]);
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("script-src 'self'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toMatch(/unsafe|\*|data:|http/);
      expect(headers["x-content-type-options"]).toBe("nosniff");
      expect(headers["referrer-policy"]).toBe("no-referrer");
      if (path.startsWith("api")) expect(headers["cache-control"]).toBe("no-store");
    }
  });

  it("is 404 for a path outside the pages", async () => {
    const site = await startConsole({ holdfast: redis.holdfast });
    const paths = [
      "../package.json",
      "..%2fpackage.json",
      "assets/../../x",
      "%2e%2e/x",
      "assets//etc/passwd",
      "api.js",
      "__proto__",
      "assets/%00",
    ];
    for (const path of paths) expect([path, (await site.ask(path)).status]).toEqual([path, 404]);
    expect((await site.get("api/__proto__")).status).toBe(404);
    expect((await site.get("api/actions/constructor")).status).toBe(404);
    expect((await site.ask("")).text).toContain("<title>pages</title>");
    expect((await site.ask("assets/index-abc123.js")).headers["cache-control"]).toContain("immutable");
  });
});

function without(headers: Readonly<Record<string, string>>, name: string): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([key]) => key !== name));
}
