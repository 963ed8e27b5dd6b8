import { describe, expect, it } from "vitest";
import { redisScene, startConsole, TOKEN } from "./scene.js";

const redis = redisScene();

const API = [
  ...[
    "api/locks",
    "api/lock?kind=mutex&name=secret-name",
    "api/clients",
    "api/deadlocks",
    "api/semaphores",
    "api/elections",
  ],
  ...[
    "api/history",
    "api/history.csv",
    "api/redis",
    "api/doctor",
    "api/events?topics=locks",
    "api/nothing",
    "api/actions/release",
  ],
];

describe("a visitor without the token", () => {
  it("gets 401 from the API, and no data", async () => {
    const lease = await redis.holdfast.mutex("secret-name").acquire({ label: "secret-label" });
    const site = await startConsole({ holdfast: redis.holdfast, allow: ["release"] });
    for (const path of API) {
      const { status, text, headers } = await site.ask(path);
      expect([path, status]).toEqual([path, 401]);
      expect(text).not.toMatch(/secret|worker/);
      expect(headers["content-type"]).toContain("application/problem+json");
    }
    await lease.release();
  });

  it("gets the sign-in method and the environment's name from the session, and nothing else", async () => {
    const site = await startConsole({ holdfast: redis.holdfast, allow: ["release"], env: "prod", redact: ["label"] });
    const { status, json } = await site.ask("api/session");
    expect(status).toBe(200);
    expect(json).toMatchObject({
      isSignedIn: false,
      login: "token",
      who: null,
      csrf: null,
      allow: [],
      redacted: [],
      version: "",
    });
    expect(json.env).toEqual({ name: "prod", tone: "danger" });
  });

  it("changes nothing, even with a valid request body", async () => {
    const lease = await redis.holdfast.mutex("kept").acquire();
    const site = await startConsole({ holdfast: redis.holdfast, allow: ["release"] });
    const body = { kind: "mutex", name: "kept", owner: lease.owner, token: lease.token, reason: "because" };
    const headers = { origin: site.origin, "content-type": "application/json", "x-holdfast-csrf": "x" };
    expect((await site.ask("api/actions/release", { method: "POST", headers, body })).status).toBe(401);
    expect((await redis.holdfast.mutex("kept").inspect()).holders).toHaveLength(1);
    expect(site.audit).toEqual([]);
    await lease.release();
  });

  it("cannot forge or change a cookie", async () => {
    const site = await startConsole({ holdfast: redis.holdfast });
    const { cookie } = await site.signIn();
    const [name, value = ""] = cookie.split("=");
    const [said = "", signature = ""] = value.split(".");
    const later = Buffer.from(JSON.stringify(["root", Date.now() + 1e9, "x"])).toString("base64url");
    for (const made of [`${later}.${signature}`, `${said}.`, said, "", `${said}.${signature}x`, `${later}.${later}`]) {
      const { status } = await site.ask("api/locks", { headers: { cookie: `${name}=${made}` } });
      expect([made, status]).toEqual([made, 401]);
    }
    expect((await site.ask("api/locks", { headers: { cookie } })).status).toBe(200);
  });

  it("may guess five times a minute, and the correct token is accepted even then", async () => {
    const site = await startConsole({ holdfast: redis.holdfast });
    const headers = { origin: site.origin, "content-type": "application/json" };
    const guess = (token: string) => site.ask("api/login", { method: "POST", headers, body: { token } });
    expect((await guess("wrong 0")).json.detail).toMatch(
      /^Wrong token\. If holdfast console made the token, each start makes a new one/,
    );
    for (let i = 0; i < 5; i += 1) expect((await guess(`wrong ${i}`)).status).toBe(401);
    const { status, headers: answered, json } = await guess("wrong 5");
    expect(status).toBe(429);
    expect(Number(answered["retry-after"])).toBeGreaterThan(0);
    expect(json.code).toBe("too-many-attempts");
    expect((await guess(TOKEN)).status).toBe(200);
    expect((await site.get("api/locks")).status).toBe(200);
  });

  it("has the same limit for bearer tokens", async () => {
    const site = await startConsole({ holdfast: redis.holdfast });
    const { cookie } = await site.signIn();
    const bearer = (token: string) => site.ask("api/locks", { headers: { authorization: `Bearer ${token}` } });
    for (let i = 0; i < 5; i += 1) expect((await bearer(`wrong ${i}`)).status).toBe(401);
    expect((await bearer("wrong 5")).status).toBe(429);
    // Guesses of a stranger must not lock out a visitor who is signed in.
    expect((await site.ask("api/locks", { headers: { cookie } })).status).toBe(200);
  });
});

describe("a visitor with the token", () => {
  it("gets access with it, and a cookie that scripts and other sites cannot use", async () => {
    const site = await startConsole({ holdfast: redis.holdfast });
    expect((await site.get("api/locks")).status).toBe(200);
    const headers = { origin: site.origin, "content-type": "application/json" };
    const answer = await site.ask("api/login", { method: "POST", headers, body: { token: TOKEN, name: "ana" } });
    const [cookie = ""] = answer.headers["set-cookie"] ?? [];
    expect(cookie).toMatch(/^holdfast-console-\d+=[\w.-]+; Path=\/; HttpOnly; SameSite=Strict$/);
    expect(cookie).not.toContain(TOKEN);
    expect(answer.json).toMatchObject({ isSignedIn: true, who: "ana" });
  });

  it("gets a secure cookie if the browser uses https", async () => {
    const site = await startConsole({ holdfast: redis.holdfast });
    const headers = {
      origin: `https://127.0.0.1:${site.port}`,
      "content-type": "application/json",
      "x-forwarded-proto": "https",
    };
    const { headers: answered } = await site.ask("api/login", { method: "POST", headers, body: { token: TOKEN } });
    expect(String(answered["set-cookie"])).toContain("; Secure");
  });

  it("loses the cookie on signing out", async () => {
    const site = await startConsole({ holdfast: redis.holdfast });
    const page = await site.signIn();
    const { status, headers } = await page.post("api/logout", {});
    expect(status).toBe(200);
    expect(String(headers["set-cookie"])).toMatch(/=; .*Max-Age=0/);
  });
});

describe("a console", () => {
  it("cannot be created without authorize or a token, or with a misspelled option", async () => {
    const { createConsole } = await import("../src/create-console.js");
    expect(() => createConsole({ holdfast: redis.holdfast })).toThrow(/exactly one of authorize and token/);
    expect(() => createConsole({ holdfast: redis.holdfast, token: "short" })).toThrow(/16 to 1024/);
    const odd = { holdfast: redis.holdfast, token: TOKEN, allow: ["all"] };
    expect(() => createConsole(odd as never)).toThrow(/allow must be an array of release/);
    expect(() => createConsole({ holdfast: redis.holdfast, token: TOKEN, alow: [] } as never)).toThrow(
      /no option "alow"; did you mean allow/,
    );
  });
});
